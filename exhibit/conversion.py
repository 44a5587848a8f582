"""Run converters by name: `exhibit convert cuad …`, and `exhibit.convert("cuad", …)` in a notebook."""

import asyncio
import contextlib
import contextvars
import difflib
import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import cast

from exhibit.bundles import DEFAULT_OUT, Bundle, load
from exhibit.converters import Converter
from exhibit.converters.core import command
from exhibit.runtime.command import guarded, print_usage_error
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas.errors import SourceError, ToolkitError
from exhibit.schemas.models import BundleInfo

_PACKAGE = "exhibit.converters"


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    given = list(sys.argv[1:] if argv is None else argv)
    names = ", ".join(list_plugins(_PACKAGE))
    if not given or given[0] in ("--help", "-h"):
        (sys.stdout if given else sys.stderr).write(
            f"usage: exhibit convert NAME|FILE.py --out DIR [--source PATH] …\n\nnames: {names}\ninputs and options of "
            "each: exhibit convert NAME --help\nto write a converter, see docs/converters.md\n"
        )
        return 0 if given else 2
    if not given[0].endswith(".py") and given[0] not in list_plugins(_PACKAGE):
        near = difflib.get_close_matches(given[0], list_plugins(_PACKAGE), n=1)
        near = [f"{given[0]}.py"] if Path(f"{given[0]}.py").is_file() else near
        meant = f"did you mean exhibit convert {near[0]}?" if near else f"choose one of {names}"
        return print_usage_error(f"no converter {given[0]!r}", meant, "exhibit convert")
    converter = find_converter(given[0])
    custom_run = getattr(converter, "run", None)  # a converter with more than one action has its own command
    return int(custom_run(given[1:]) if custom_run else command.main(converter, given[1:]))


def find_converter(name: str) -> Converter:
    """Return the converter with this name, or the converter in a user's Python file; raise if the name is unknown."""
    if name.endswith(".py"):
        return load_converter(Path(name))
    if name == "draft":
        return cast(Converter, import_module("exhibit.drafting.folder"))
    if name not in list_plugins(_PACKAGE):
        raise ToolkitError(f"no converter {name!r}; the converters are {', '.join(list_plugins(_PACKAGE))}")
    return cast(Converter, load_plugin(_PACKAGE, name)[0])


def load_converter(path: Path) -> Converter:
    """Return the converter in a user's Python file; raise an error if the file has no INFO or no read()."""
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SourceError(f"{path}: no such file; name a converter, or a Python file with INFO and read()")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    missing = [name for name in ("INFO", "read") if not hasattr(module, name)]
    if missing:
        raise SourceError(f"{path}: has no {' and no '.join(missing)}; see the example in docs/converters.md")
    converter = cast(Converter, module)
    converter.INFO = replace(converter.INFO, command=f"exhibit convert {path.name} --source PATH")
    return converter


@dataclass(frozen=True)
class Conversion:
    """The result of a conversion; a notebook shows it as the counts of the bundle and the skipped items."""

    info: BundleInfo
    out: Path | str
    seconds: float

    def load(self) -> Bundle:
        return load(self.out)

    def __repr__(self) -> str:
        return command.format_table(self.info, str(self.out), self.seconds)


def convert(
    name: str, *, source: Path | str | None = None, out: Path | str | None = None, **options: object
) -> Conversion:
    """Convert a benchmark; `name` is the name of a converter or the path of its Python file.

    `options` are the flags of `exhibit convert NAME`, with underscores: `max_documents=10`, `ocr=True`, `split="test"`.
    """
    out = out or DEFAULT_OUT / Path(name).stem
    given: dict[str, object] = {"out": out, "source": source, **options}
    converter, complaint = find_converter(name), io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            words = list(_format_flags(given))
            words = import_module("exhibit.drafting.folder").add_ocr(words) if name == "draft" else words
            parsed = command.make_parser(converter).parse_args(words)
    except SystemExit:
        reason = complaint.getvalue().rpartition("error: ")[2].partition("\n")[0]
        raise ToolkitError(f"convert({name!r}): {reason}; see exhibit convert {name} --help") from None
    started = time.monotonic()
    info = _run_apart(lambda: command.convert(converter, parsed))
    return Conversion(info, out, time.monotonic() - started)


def draft(source: Path | str, *, out: Path | str | None = None, **options: object) -> Conversion:
    """Draft questions about a folder of documents; `options` are flags of `exhibit draft`, with underscores."""
    return convert("draft", source=source, out=out or DEFAULT_OUT / Path(source).resolve().name, **options)


def _run_apart(work: Callable[[], BundleInfo]) -> BundleInfo:
    """Call a function; if this thread runs an event loop, as in a notebook, call it in another thread."""
    running = False
    # call the function outside `except`, so that this error is not the context of its errors
    with contextlib.suppress(RuntimeError):
        running = asyncio.get_running_loop().is_running()
    if not running:
        return work()
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(contextvars.copy_context().run, work).result()


def _format_flags(options: dict[str, object]) -> Iterator[str]:
    for name, value in options.items():
        if value is None or value is False:
            continue
        yield f"--{name.replace('_', '-')}"
        if isinstance(value, list | tuple):
            yield from map(str, value)
        elif value is not True:
            yield str(value)
