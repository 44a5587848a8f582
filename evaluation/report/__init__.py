"""The report: a page in which the evidence of a run can be seen, made from its results folder alone.

>>> write_report(Path("results/first"))
"""

from exhibit.evaluation.report.write import NAME, write_report

__all__ = ["NAME", "write_report"]
