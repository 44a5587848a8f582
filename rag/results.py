"""The former name of `python -m evaluation.results`."""

from __future__ import annotations

import sys


def main() -> int:
    """Say where the command is now."""
    sys.stderr.write("error: this command is now python -m evaluation.results, with the same arguments\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
