"""Conversions as tests ask for them: the one place that knows how a converter's flags are read and rows are chosen."""

from __future__ import annotations

from argparse import Namespace
from types import ModuleType

from exhibit.converters import Benchmark, Tally
from exhibit.converters.benchmark import choose
from exhibit.converters.steps.cli import make_parser


def options_of(converter: ModuleType, *flags: object) -> Namespace:
    """Return the options that these flags give a converter, beside those that every one has."""
    return make_parser(converter).parse_args(["--out", "unused", *map(str, flags)])


def chosen(benchmark: Benchmark, tally: Tally, *, limit: int | None = None, answerable_only: bool = False) -> Benchmark:
    """Return what `--limit` and `--answerable-only` leave of a benchmark."""
    return choose(benchmark, Namespace(limit=limit, answerable_only=answerable_only), tally)
