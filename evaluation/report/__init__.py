"""The report: one HTML file in which the evidence of a run can be seen, made from its results folder.

>>> write_report(Path("results/first"), datasets={"cuad": Path("datasets_out/cuad")})
"""

from evaluation.report.write import NAME, write_report

__all__ = ["NAME", "write_report"]
