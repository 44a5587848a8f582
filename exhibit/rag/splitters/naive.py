"""A splitter that cuts at a fixed number of characters: the baseline for the other splitters."""

from collections.abc import Sequence

from exhibit.evidence import Span
from exhibit.rag.splitters import Splitter, check_size
from exhibit.schemas.errors import ToolkitError


def open(argument: str | None) -> Splitter:
    if argument is not None:
        raise ToolkitError(f"the splitter naive takes no argument; remove {argument!r}")
    return split


def split(text: str, *, size: int = 500, overlap: int = 0, sections: Sequence[Span] = ()) -> list[Span]:  # noqa: ARG001
    """Return spans of `size` characters; each starts `overlap` characters before the end of the previous one."""
    check_size(size=size, overlap=overlap)
    # a span that starts within the last overlap would be inside the span before it
    starts = range(0, max(len(text) - overlap, 1), size - overlap) if text else range(0)
    return [Span(start, min(start + size, len(text))) for start in starts]
