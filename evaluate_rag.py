"""Tests a RAG system on bundles: `python evaluate_rag.py --help`; installed, it is `exhibit evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from exhibit.__main__ import main as exhibit


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `exhibit evaluate` and return its exit code."""
    return exhibit(["evaluate", *(sys.argv[1:] if argv is None else argv)])


if __name__ == "__main__":
    sys.exit(main())
