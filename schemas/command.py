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
from typing import NamedTuple, ParamSpec

from schemas.errors import ToolkitError, disk_trouble
from schemas.secrets import scrubbed, scrubbed_logs

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
            with scrubbed_logs():
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


def _disk_or_bug(error: OSError) -> int:
    try:
        print_error(ToolkitError(disk_trouble(error)))
    except OSError:
        return _bug()
    return FAILED


def _bug() -> int:
    """Print the traceback of what is being handled; it may hold what was sent to a server."""
    sys.stderr.write(scrubbed(traceback.format_exc()))
    return FAILED


def print_error(error: ToolkitError) -> None:
    """Print an error as every command does, a line for each thing that is wrong; verbose, with where it was raised."""
    if _manner.get().verbose:
        sys.stderr.write(scrubbed("".join(traceback.format_exception(error))))
    for line in spelled(scrubbed(str(error))).split("\n"):
        sys.stderr.write(f"error: {line}\n")


def print_note(text: str) -> None:
    """Print what a user should know and need not act on, unless they asked for quiet; results alone go to stdout."""
    if is_quiet():
        return
    sys.stderr.write(f"note: {spelled(scrubbed(text))}\n")
