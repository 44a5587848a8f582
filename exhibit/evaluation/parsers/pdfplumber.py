"""Read a PDF with pdfplumber, which arranges the characters by their positions on the page."""

from pathlib import Path

from exhibit.schemas.errors import ToolkitError

try:
    import pdfplumber
except ImportError as error:
    raise ToolkitError("the parser pdfplumber is not installed: pip install pdfplumber") from error


def read(path: Path) -> list[str]:
    """Return the text of each page."""
    with pdfplumber.open(path) as pdf:
        return [page.extract_text() or "" for page in pdf.pages]
