"""Read a PDF with pypdf, as most tutorials do."""

from pathlib import Path

from pypdf import PdfReader


def read(path: Path) -> list[str]:
    """Return the text of each page."""
    return [page.extract_text() for page in PdfReader(path).pages]
