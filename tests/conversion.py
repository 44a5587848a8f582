"""Conversions for tests: the only module that knows how a converter's flags are parsed and its rows selected."""

from __future__ import annotations

from argparse import Namespace
from types import ModuleType

from exhibit.converters import Benchmark, Tally
from exhibit.converters.core.benchmark import choose
from exhibit.converters.core.command import make_parser


def options_of(converter: ModuleType, *flags: object) -> Namespace:
    """Return the options that a converter parses from these flags and the required `--out`."""
    return make_parser(converter).parse_args(["--out", "unused", *map(str, flags)])


def chosen(benchmark: Benchmark, tally: Tally, *, limit: int | None = None, answerable_only: bool = False) -> Benchmark:
    """Return a benchmark reduced as `--limit` and `--answerable-only` would do it."""
    return choose(benchmark, Namespace(max_documents=limit, answerable_only=answerable_only), tally)
