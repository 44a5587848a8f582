"""The former name of `python -m evaluation.results`."""

from __future__ import annotations

import sys

from exhibit.schemas.command import guarded, print_error
from exhibit.schemas.errors import ToolkitError


@guarded()
def main() -> int:
    """Say where the command is now."""
    print_error(ToolkitError("this command is now python -m evaluation.results, with the same arguments"))
    return 2


if __name__ == "__main__":
    sys.exit(main())
