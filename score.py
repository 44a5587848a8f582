"""Scores retrieved passages against a gold file: `python score.py --help`; installed, it is `exhibit score`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from exhibit.__main__ import main as exhibit


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `exhibit score` with the given arguments; return its exit code."""
    return exhibit(["score", *(sys.argv[1:] if argv is None else argv)], alone=True)


if __name__ == "__main__":
    sys.exit(main())
