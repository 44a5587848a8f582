"""The evaluation with its report: `python evaluate_rag.py`, `exhibit evaluate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from exhibit.evaluation.command import main as evaluate
from exhibit.schemas.command import guarded
from exhibit.viewer.report import write_report


@guarded("stopped; go on with the same command and --resume")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the evaluation, draw its report, and print one table."""
    code: int = evaluate(argv, draw=write_report)
    return code


if __name__ == "__main__":
    sys.exit(main())
