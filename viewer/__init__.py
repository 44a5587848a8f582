"""One static viewer over runs: the report, any number of runs compared, runs over time, and review by an expert.

>>> write_report(Path("results/first"))
"""

from exhibit.viewer.comparison import write_comparison
from exhibit.viewer.report import write_report

__all__ = ["write_comparison", "write_report"]
