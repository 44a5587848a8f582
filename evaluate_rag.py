"""Tests a RAG system on bundles: `python evaluate_rag.py --help`; installed, it is `exhibit evaluate`."""

from __future__ import annotations

import sys

from exhibit.viewer.evaluate import main

if __name__ == "__main__":
    sys.exit(main())
