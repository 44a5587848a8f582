"""Converters, one module per benchmark: each turns the raw files of its benchmark into a bundle."""

from exhibit.converters.core.benchmark import (
    CC_BY,
    Benchmark,
    Block,
    Converter,
    DatasetInfo,
    Download,
    Item,
    Label,
    Quote,
    RawDocument,
    RawRow,
    Tally,
    format_points,
    list_questions,
)
from exhibit.schemas.models import Licence

__all__ = [
    "CC_BY", "Benchmark", "Block", "Converter", "DatasetInfo", "Download", "Item", "Label", "Licence", "Quote",
    "RawDocument", "RawRow", "Tally", "format_points", "list_questions",
]  # fmt: skip
