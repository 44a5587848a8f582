"""Scores retrieved passages against a gold file: `python score.py --help`."""

import sys

from exhibit.evaluation.score import main

if __name__ == "__main__":
    sys.exit(main())
