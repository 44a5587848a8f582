"""OCR engines, one file each.

An engine has:

    LANGUAGES = frozenset({"en", "cs"})          # two-letter codes of the languages that it can read
    CODES = {"cs": "ces"}                        # its own codes of languages, where they differ; optional
    def missing(language) -> str: ...            # what is missing and how to install it; empty if nothing
    def open(language) -> Callable[[Image], list[TextLine]]: ...

`language` is one code, or several joined as `cs+en`. Images are already straightened. Boxes are in pixels.
"""

from typing import NamedTuple


class TextLine(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float
    text: str
    confidence: float  # from 0 to 1
