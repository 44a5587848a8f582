"""`python -m evaluation.review`."""

from __future__ import annotations

import sys

from evaluation.review.command import main

if __name__ == "__main__":
    sys.exit(main())
