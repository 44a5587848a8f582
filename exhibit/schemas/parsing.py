"""Files, JSON, lines of it, and TOML from outside: what cannot be read is one error that says where, no traceback."""

from __future__ import annotations

import errno
import json
import os
import stat
import tomllib
from array import array
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from exhibit.schemas.errors import BundleError, ToolkitError

if TYPE_CHECKING:
    from pydantic import ValidationError


LARGEST_FILE = 64 << 20
"""Bytes of a file that is read at once where nothing else is said: settings, patches and reviews have far fewer."""


def read_regular(path: Path, *, most: int | None = LARGEST_FILE) -> bytes:
    """Return a file's bytes; raise OSError for a pipe, a socket or a device, which may never end, and above `most`."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe is opened without waiting
    with os.fdopen(os.open(path, flags), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            words = os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "a pipe, a socket or a device, not a file"
            raise OSError(errno.EISDIR, words, str(path))
        data = file.read() if most is None else file.read(most + 1)
    if most is not None and len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes", str(path))
    return data


def read_outside(path: Path, *, error: type[ToolkitError] = ToolkitError, most: int = LARGEST_FILE) -> str:
    """Return the text of a file from outside; raise `error` where it is no file, too large or not UTF-8."""
    try:
        return read_regular(path, most=most).decode("utf-8-sig")
    except OSError as fault:
        raise error(f"{path}: cannot be read: {fault.strerror or fault}") from fault
    except UnicodeDecodeError as fault:
        raise error(f"{path}: not UTF-8 (byte {fault.start})") from fault


def parse_json(text: str | bytes, *, where: object, error: type[ToolkitError] = BundleError) -> Any:
    """Return parsed JSON; raise `error` where it is none, nested too deep, or has a number too long to read."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as fault:
        raise error(f"{where}: not JSON: {fault.msg} at line {fault.lineno}") from fault
    except UnicodeDecodeError as fault:
        raise error(f"{where}: not UTF-8 (byte {fault.start})") from fault
    except RecursionError:
        raise error(f"{where}: JSON that is nested too deep") from None
    except ValueError as fault:  # Python reads no number of more than 4,300 digits
        raise error(f"{where}: JSON with a number that is too long") from fault


_LARGEST_TOML = 256 << 10
"""Characters: the largest of ours has 8,000, and a file of this size takes Python about a second."""
_DEEPEST_KEY = 100
"""Parts of a dotted key: each is looked up from the top, so that time grows with their square."""


def parse_toml(text: str, *, where: object, error: type[ToolkitError] = ToolkitError) -> dict[str, Any]:
    """Return parsed TOML; raise `error` where it is none, too large, nested too deep, or has too long a number."""
    if len(text) > _LARGEST_TOML:
        raise error(f"{where}: {len(text)} characters, more than any settings file has ({_LARGEST_TOML})")
    if any(line.partition("=")[0].count(".") > _DEEPEST_KEY for line in text.split("\n")):
        raise error(f"{where}: TOML that is nested too deep")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise error(f"{where}: TOML that is nested too deep") from None
    except ValueError as fault:
        raise error(f"{where}: not TOML: {fault}") from fault


def read_beside(module: str, name: str = "") -> dict[str, Any]:
    """Return the TOML file of a module's own name, or of another, beside it: `read_beside(__file__)`."""
    path = Path(module).parent / name if name else Path(module).with_suffix(".toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def parse_pair(text: object, *, example: str) -> tuple[str, str]:
    """Return the two sides of NAME=VALUE; raise ValueError that shows how it is written."""
    name, sign, value = str(text).partition("=")
    if not sign or not name.strip():
        raise ValueError(f"{text!r} is not NAME=VALUE, such as {example}")
    return name.strip(), value.strip()


def faults_in(error: ValidationError, *, most: int | None = None, under: str = "") -> str:
    """Return what a model finds wrong, in one line: each field with its fault."""
    return "; ".join(f"{under}{'.'.join(map(str, e['loc'])) or 'all of it'}: {e['msg']}" for e in error.errors()[:most])


Row = TypeVar("Row")


class LazyLines(Generic[Row]):
    """The rows of a file, one a line: where each begins is held, with its number; it is read when asked for."""

    def __init__(self, path: Path, parse: Callable[[bytes, str], Row]) -> None:
        """Take what makes a row of a line's bytes, and of the words that say which line it is."""
        self.path, self._parse = path, parse

    @cached_property
    def _starts(self) -> array[int]:
        return self._lines[0]

    @cached_property
    def _lines(self) -> tuple[array[int], array[int]]:
        """Where each row begins, and the number of its line: blank lines are no rows, but they count."""
        starts, numbers, at = array("Q"), array("Q"), 0
        with self.path.open("rb") as file:
            # by bytes: a line ends at a line feed, and not at U+2028 and other marks that JSON keeps inside strings
            for number, line in enumerate(file, 1):
                if line.strip():
                    starts.append(at)
                    numbers.append(number)
                at += len(line)
        return starts, numbers

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, place: int) -> Row:
        with self.path.open("rb") as file:
            file.seek(self._starts[place])
            return self._parse(file.readline(), f"{self.path}: line {self._lines[1][place]}")

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows in order; one at a time is in memory."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield self._parse(line, f"{self.path}: line {number}")
