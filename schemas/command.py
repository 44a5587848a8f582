"""What every command does with what goes wrong: one line on stderr, an exit code, and nothing secret.

@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int: ...
"""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, NamedTuple, ParamSpec

from exhibit.schemas.errors import ToolkitError, disk_trouble
from exhibit.schemas.secrets import scrubbed, scrubbed_logs

FAILED, STOPPED, CLOSED = 1, 130, 141
"""Exit codes: an error; Ctrl-C; a reader that closed the pipe, as shells number it."""

Arguments = ParamSpec("Arguments")


class Manner(NamedTuple):
    """How a command was called: what commands are named there, and how much it should say on stderr."""

    names: Mapping[str, str] = MappingProxyType({})
    """The name under which a command was called, by the one that it has by itself."""
    quiet: bool = False
    verbose: bool = False


_ALONE = Manner()
_manner: ContextVar[Manner] = ContextVar("manner", default=_ALONE)


@contextmanager
def called(manner: Manner) -> Iterator[None]:
    """Let the commands inside know how they were called."""
    token = _manner.set(manner)
    try:
        yield
    finally:
        _manner.reset(token)


def spelled(text: str) -> str:
    """Return a text, such as a command's help, in which commands are named as their user calls them."""
    names = _manner.get().names
    for usual in sorted(names, key=len, reverse=True):  # the longest first: one may begin with another
        text = re.sub(re.escape(usual) + r"(?!\w|\.\w)", names[usual], text)  # not `python -m rag.inspect`
    return text


def is_quiet() -> bool:
    """Return whether notes and progress are to be left out; errors never are."""
    return _manner.get().quiet


def guarded(stopped: str = "stopped") -> Callable[[Callable[Arguments, int]], Callable[Arguments, int]]:
    """Return a decorator for a command's `main`; `stopped` is what it says when Ctrl-C ends it."""

    def decorate(main: Callable[Arguments, int]) -> Callable[Arguments, int]:
        @functools.wraps(main)
        def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> int:
            with scrubbed_logs(), plain_terminal():
                try:
                    code = main(*args, **kwargs)
                    sys.stdout.flush()  # a closed pipe is noticed here, not when the interpreter ends
                except ToolkitError as error:
                    print_error(error)
                    return FAILED
                except OSError as error:
                    if isinstance(error, BrokenPipeError):
                        # the interpreter flushes stdout once more at its end, and would complain there
                        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                        return CLOSED
                    return _disk_or_bug(error)
                except KeyboardInterrupt:
                    sys.stderr.write(f"\n{stopped}\n")
                    return STOPPED
                except Exception:
                    return _bug()
                return code

        return run

    return decorate


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
"""What a terminal obeys and nobody reads: a file's name or a document's text may move the cursor, or type commands."""


def without_controls(text: str) -> str:
    """Return a text in which control characters are written out, but for ends of lines and tabs."""
    return text.translate(_CONTROLS)


class _Plain:
    """Standard output on a terminal, to which no control character goes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(without_controls(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def plain_terminal() -> Iterator[None]:
    """Let what the block prints for a person hold no control characters; a file or a pipe gets every byte as it is."""
    stream: Any = sys.stdout
    if hasattr(stream, "reconfigure"):  # what an older encoding (cp1252, latin-1) lacks is written out, not an error
        stream.reconfigure(errors="backslashreplace")
    if isinstance(stream, _Plain) or not stream.isatty():
        yield
        return
    sys.stdout = _Plain(stream)
    try:
        yield
    finally:
        sys.stdout = stream


def _disk_or_bug(error: OSError) -> int:
    try:
        print_error(ToolkitError(disk_trouble(error)))
    except OSError:
        return _bug()
    return FAILED


def _bug() -> int:
    """Print the traceback of what is being handled; it may hold what was sent to a server."""
    sys.stderr.write(without_controls(scrubbed(traceback.format_exc())))
    return FAILED


def print_error(error: ToolkitError) -> None:
    """Print an error as every command does, a line for each thing that is wrong; verbose, with where it was raised."""
    if _manner.get().verbose:
        sys.stderr.write(without_controls(scrubbed("".join(traceback.format_exception(error)))))
    for line in without_controls(spelled(scrubbed(str(error)))).split("\n"):
        sys.stderr.write(f"error: {line}\n")


def print_note(text: str) -> None:
    """Print what a user should know and need not act on, unless they asked for quiet; results alone go to stdout."""
    if is_quiet():
        return
    sys.stderr.write(f"note: {without_controls(spelled(scrubbed(text)))}\n")
