"""Convert for tests: only this module knows how a converter parses its flags and selects its rows."""

from argparse import Namespace
from pathlib import Path
from types import ModuleType

from exhibit.converters import Benchmark, Tally, choose
from exhibit.converters.core.command import make_parser


def options_of(converter: ModuleType, *flags: object) -> Namespace:
    """Return the options that a converter parses from these flags and the required `--out`."""
    return make_parser(converter).parse_args(["--out", "unused", *map(str, flags)])


def read_source(converter: ModuleType, source: Path, *flags: object, strict: bool = False) -> tuple[Benchmark, Tally]:
    """Read a source and select its rows by flags, without making a bundle."""
    tally = Tally(strict=strict)
    options = options_of(converter, *flags)
    return choose(converter.read(source, options, tally), options, tally), tally
