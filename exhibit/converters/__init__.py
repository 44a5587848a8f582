"""Raw benchmark files in, bundles out: one module per benchmark, made of the names below."""

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
