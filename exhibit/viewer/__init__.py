"""Static HTML pages about runs: the report, the comparison, the trend over time, and the review by an expert.

>>> write_report(Path("results/first"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exhibit.viewer.comparison import write_comparison
    from exhibit.viewer.report import write_report

_HOMES = {"write_comparison": "exhibit.viewer.comparison", "write_report": "exhibit.viewer.report"}
__all__ = ["write_comparison", "write_report"]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use, so that a worker that only draws pages loads no module of the report."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
