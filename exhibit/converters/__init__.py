"""Converters: they turn the raw files of a benchmark into a bundle; one module per benchmark."""

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
    points,
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
    "points",
    "read_info",
]
