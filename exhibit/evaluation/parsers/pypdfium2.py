"""Read a PDF with PDFium. Exhibit uses the same text, with line ends and spaces normalised."""

from pathlib import Path

from exhibit.evidence.readers.pdf import open_pdf


def read(path: Path) -> list[str]:
    """Return the text of each page."""
    with open_pdf(path) as pdf:
        return [pdf[number].get_textpage().get_text_range() for number in range(len(pdf))]
