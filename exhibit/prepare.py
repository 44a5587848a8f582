"""Gets what no package carries: a Chromium to print with, and the weights of the embedder.

examples:
    exhibit prepare            both
    exhibit prepare browser    or: model

What is here already is not fetched again.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from exhibit.schemas.command import documented, guarded

PARTS: dict[str, tuple[str, *tuple[list[str], ...]]] = {
    "browser": ("exhibit.converters._browser",),
    "model": ("exhibit.models.embedders.legal", ["--prepare"]),
}
"""The module that gets a part, and what its command is told."""


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Get the parts that are named, or all; return the exit code of the first that fails."""
    parser = documented("exhibit prepare", __doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[[], *PARTS], help=" or ".join(PARTS))
    chosen = parser.parse_args(argv).parts or list(PARTS)
    return next((code for part in chosen if (code := _get(*PARTS[part]))), 0)


def _get(module: str, *given: list[str]) -> int:
    code: int = import_module(module).main(*given)
    return code
