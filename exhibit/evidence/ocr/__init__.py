"""One file for each program that reads pictures of text.

A plug-in says everything about itself:

    LANGUAGES = frozenset({"en", "cs"})          # two-letter codes of what it can read at all
    CODES = {"cs": "ces"}                        # its own names of languages, where it has others; may be left out
    def missing(language) -> str: ...            # what is not installed and how to get it; several as `cs+en`
    def open(language) -> Callable[[Image], list[TextLine]]: ...

Pictures come straightened, so that lines run from left to right; boxes are in pixels from the top left.
"""

from typing import NamedTuple


class TextLine(NamedTuple):
    """Words side by side: their box, and the program's confidence from 0 to 1."""

    left: float
    top: float
    right: float
    bottom: float
    text: str
    confidence: float


__all__ = ["TextLine"]
