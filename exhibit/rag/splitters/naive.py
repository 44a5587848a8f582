"""A splitter that cuts at a fixed number of characters: the baseline for the other splitters."""

from functools import partial

from exhibit.rag.splitters import Splitter, split
from exhibit.schemas.errors import ToolkitError


def open(argument: str | None) -> Splitter:
    if argument is not None:
        raise ToolkitError(f"the splitter naive takes no argument; remove {argument!r}")
    return partial(split, separators=(), within_sections=False)
