"""Converters, one module per benchmark: each turns the raw files of its benchmark into a bundle."""

from exhibit.converters.benchmark import (
    Benchmark,
    Converter,
    DatasetInfo,
    Download,
    Item,
    Quote,
    RawDocument,
    RawRow,
    Tally,
    format_points,
    read_info,
)
from exhibit.schemas.models import Licence

__all__ = [
    "Benchmark",
    "Converter",
    "DatasetInfo",
    "Download",
    "Item",
    "Licence",
    "Quote",
    "RawDocument",
    "RawRow",
    "Tally",
    "format_points",
    "read_info",
]
