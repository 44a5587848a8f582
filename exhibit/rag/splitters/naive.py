"""A cut every so many characters, whatever is there: what the others are compared with."""

from collections.abc import Sequence

from exhibit.evidence import Span
from exhibit.rag.splitters import Splitter, check
from exhibit.schemas.errors import ToolkitError


def open(argument: str | None) -> Splitter:
    """Return the splitter, which has no variants."""
    if argument is not None:
        raise ToolkitError(f"the splitter naive takes no argument, but was given {argument!r}")
    return split


def split(
    text: str,
    *,
    size: int = 500,
    overlap: int = 0,
    sections: Sequence[Span] = (),  # noqa: ARG001 - all splitters are called alike
    separators: Sequence[str] = (),  # noqa: ARG001
) -> list[Span]:
    """Return spans of `size` characters, each starting `overlap` characters before the last one's end."""
    check(size=size, overlap=overlap)
    length = len(text)
    # what starts within the last overlap is in the span before it already
    starts = range(0, max(length - overlap, 1), size - overlap) if text else range(0)
    return [Span(start, min(start + size, length)) for start in starts]
