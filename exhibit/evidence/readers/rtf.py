"""Rich Text Format: its words, paragraphs and table rows, without LibreOffice."""

from pathlib import Path

from exhibit.evidence.files import convert_parser_errors, head_of
from exhibit.evidence.markup import Printable, format_paragraph

SUFFIXES = (".rtf",)
KIND = "Rich Text"
TYPES = {"application/rtf": ".rtf", "text/rtf": ".rtf"}


def page(path: Path) -> Printable:
    """Return the paragraphs of an RTF file as HTML to print.

    A row of a table is one paragraph, with vertical bars between its cells.
    """
    with convert_parser_errors(path, KIND):
        head_of(path, kind=f"{path.suffix} file", starts=(b"{\\rtf",))
        text = extract_rtf_text(path.read_bytes())
    return Printable("".join(format_paragraph(line) for line in text.split("\n") if line.strip()))


def extract_rtf_text(data: bytes) -> str:
    """Return the text of an RTF file.

    An RTF file is ASCII. It writes all other characters as escapes, in a code page that it declares.
    """
    from striprtf.striprtf import rtf_to_text

    return str(rtf_to_text(data.decode("latin-1"), errors="replace")).strip()
