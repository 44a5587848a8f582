"""One static viewer over runs: the report, any number of runs compared, runs over time, and review by an expert.

>>> write_report(Path("results/first"))
"""

from exhibit.viewer.report import write_report
from exhibit.viewer.results import write_comparison

__all__ = ["write_comparison", "write_report"]
