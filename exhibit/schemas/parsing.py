"""Parses JSON, JSON Lines and TOML from untrusted files; invalid input raises one error that names the file."""

from __future__ import annotations

import errno
import json
import os
import stat
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exhibit.schemas.errors import BundleError, ToolkitError

if TYPE_CHECKING:
    from pydantic import ValidationError


LARGEST_FILE = 64 << 20  # default size limit of a file in bytes: settings, patches and reviews are far smaller


def read_regular(path: Path, *, most: int | None = LARGEST_FILE) -> bytes:
    """Return a file's bytes; raise OSError for a pipe, a socket or a device, and for a file above `most` bytes."""
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # do not wait if the path is a pipe
    with os.fdopen(os.open(path, flags), "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            words = os.strerror(errno.EISDIR) if stat.S_ISDIR(mode) else "a pipe, a socket or a device, not a file"
            raise OSError(errno.EISDIR, words, str(path))
        data = file.read() if most is None else file.read(most + 1)
    if most is not None and len(data) > most:
        raise OSError(errno.EFBIG, f"more than {most:,} bytes", str(path))
    return data


@contextmanager
def explain_read_errors(path: Path, error: type[ToolkitError] = BundleError) -> Iterator[None]:
    """Within the `with` block, raise `error` for a file that is missing, unreadable or not UTF-8."""
    try:
        yield
    except FileNotFoundError:
        raise error(f"{path}: missing") from None
    except OSError as fault:
        raise error(f"{path}: cannot be read: {fault.strerror or fault}; check this file") from fault
    except UnicodeDecodeError as fault:
        raise error(f"{path}: not UTF-8 (byte {fault.start}); save it again as UTF-8") from fault


def read_text(path: Path, *, error: type[ToolkitError] = BundleError, most: int | None = None) -> str:
    """Return the text of a UTF-8 file without its byte order mark; line ends are unchanged."""
    with explain_read_errors(path, error):
        return read_regular(path, most=most).decode("utf-8-sig")


def parse_json(text: str | bytes, *, where: object, error: type[ToolkitError] = BundleError) -> Any:
    """Return parsed JSON; raise `error` if it is invalid, nested too deeply, or has a number that is too long."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:
        raise error(f"{where}: not JSON: {fault}") from fault


_LARGEST_TOML = 256 << 10  # characters of a TOML file: Python parses this many in about a second
_DEEPEST_KEY = 100  # most parts of a dotted key: parsing time grows with the square of their number


def parse_toml(text: str, *, where: object, error: type[ToolkitError] = ToolkitError) -> dict[str, Any]:
    """Return parsed TOML; raise `error` if it is invalid, too large or nested too deeply."""
    if len(text) > _LARGEST_TOML:
        raise error(f"{where}: {len(text)} characters, more than the limit of a settings file ({_LARGEST_TOML})")
    if any(line.partition("=")[0].count(".") > _DEEPEST_KEY for line in text.split("\n")):
        raise error(f"{where}: the TOML is nested too deeply")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as fault:
        raise error(f"{where}: not TOML: {fault}") from fault


def read_beside(module: str) -> dict[str, Any]:
    """Return the content of the TOML file beside a module: `read_beside(__file__)` in cuad.py reads cuad.toml."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


def parse_pair(text: object, *, example: str) -> tuple[str, str]:
    """Return the two sides of NAME=VALUE; raise ValueError with the example if there is no `=`."""
    name, sign, value = str(text).partition("=")
    if not sign or not name.strip():
        raise ValueError(f"{text!r} is not NAME=VALUE, such as {example}")
    return name.strip(), value.strip()


def list_faults(error: ValidationError) -> Iterator[tuple[str, str, str]]:
    """Yield the row (such as `row 3`, or empty), the field and the message of each fault in a list or an object."""
    for fault in error.errors():
        index, *field = fault["loc"] or ("",)
        row, names = (f"row {index}", field) if isinstance(index, int) else ("", [index, *field])
        yield row, ".".join(map(str, names)), fault["msg"].removeprefix("Value error, ")


def format_faults(error: ValidationError, *, most: int | None = None, under: str = "") -> str:
    """Return a model's validation errors as one line: each field with its problem."""
    return "; ".join(f"{under}{'.'.join(map(str, e['loc'])) or 'all of it'}: {e['msg']}" for e in error.errors()[:most])


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the non-empty lines of a JSONL file with their line numbers; only one line is in memory at a time."""
    if path.exists() and not path.is_file():  # opening a pipe would block
        raise BundleError(f"{path}: not a file; give the path of a file")
    with explain_read_errors(path), path.open("rb") as file:
        # split bytes, because only a line feed ends a line, not U+2028, which JSON allows inside strings
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8").removesuffix("\n")
            except UnicodeDecodeError as fault:
                at = file.tell() - len(line) + fault.start
                raise BundleError(f"{path}: not UTF-8 (byte {at}); save it again as UTF-8") from fault
            if text:
                yield number, text
