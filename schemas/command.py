"""What every command does with what goes wrong: one line on stderr, an exit code, and nothing secret.

@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int: ...
"""

from __future__ import annotations

import functools
import os
import sys
import traceback
from collections.abc import Callable
from typing import ParamSpec

from schemas.errors import ToolkitError, disk_trouble
from schemas.secrets import scrubbed, scrubbed_logs

FAILED, STOPPED, CLOSED = 1, 130, 141
"""Exit codes: an error; Ctrl-C; a reader that closed the pipe, as shells number it."""

Arguments = ParamSpec("Arguments")


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
    """Print an error as every command does, a line for each thing that is wrong."""
    for line in scrubbed(str(error)).split("\n"):
        sys.stderr.write(f"error: {line}\n")


def print_note(text: str) -> None:
    """Print what a user should know and need not act on; results alone go to stdout."""
    sys.stderr.write(f"note: {scrubbed(text)}\n")
