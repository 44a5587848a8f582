"""Handles errors in every command: one line on stderr, an exit code, and no secrets."""

import argparse
import difflib
import functools
import json
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn, ParamSpec

from exhibit.runtime.secrets import scrub, scrub_logs
from exhibit.schemas.errors import ToolkitError, describe_disk_error

FAILED, USAGE, STOPPED, CLOSED = 1, 2, 130, 141  # an error, wrong usage, Ctrl-C, a closed pipe

Arguments = ParamSpec("Arguments")


class Invocation(NamedTuple):
    quiet: bool = False
    verbose: bool = False


_ALONE = Invocation()
_invocation: ContextVar[Invocation] = ContextVar("invocation", default=_ALONE)


@contextmanager
def set_invocation(invocation: Invocation) -> Iterator[None]:
    token = _invocation.set(invocation)
    try:
        yield
    finally:
        _invocation.reset(token)


def is_quiet() -> bool:
    return _invocation.get().quiet


def guarded(stopped: str = "stopped") -> Callable[[Callable[Arguments, int]], Callable[Arguments, int]]:
    def decorate(main: Callable[Arguments, int]) -> Callable[Arguments, int]:
        @functools.wraps(main)
        def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> int:
            with scrub_logs(), escape_terminal():
                try:
                    code = main(*args, **kwargs)
                    sys.stdout.flush()  # raise here if the pipe is closed, not when the interpreter exits
                except ToolkitError as error:
                    print_error(error)
                    return FAILED
                except BrokenPipeError:
                    # the interpreter flushes stdout again at exit, and would raise there
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                    return CLOSED
                except OSError as error:
                    return _report_disk_error(error)
                except KeyboardInterrupt:
                    sys.stderr.write(f"\n{stopped}\n")
                    return STOPPED
                except MemoryError:
                    print_error(ToolkitError(_NO_MEMORY))
                    return FAILED
                except Exception:
                    return _report_bug()
                return code

        return run

    return decorate


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors have three lines: the mistake, the nearest correct form, and a help command."""

    words: tuple[str, ...] = ()  # further correct words that the parser suggests when a word is mistyped

    def error(self, message: str) -> NoReturn:
        self.exit(print_usage_error(message, self._suggest(message), self.prog))

    def _suggest(self, message: str) -> str:
        if unknown := _UNKNOWN.search(message):
            words = [word for action in self._actions for word in action.option_strings if action.help != HIDDEN]
            near = difflib.get_close_matches(unknown[1].partition("=")[0], [*words, *self.words], n=1)
        else:
            wrong = _WRONG.search(message)
            near = difflib.get_close_matches(wrong[1], re.findall(r"[\w.:-]+", wrong[2]), n=1) if wrong else []
        return f"did you mean {near[0]}?" if near else f"usage: {self._format_short_usage()}"

    def _format_short_usage(self) -> str:
        """Return one line of usage with the required arguments."""
        parts = [self.prog, "[flags]"]
        for action in self._actions:
            shown = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest)
            name = shown if isinstance(shown, str) else " ".join(shown)
            if action.option_strings and action.required:
                parts.append(f"{action.option_strings[0]} {name}")
            elif not action.option_strings and action.help != HIDDEN:
                parts.append(f"{name} …" if action.nargs in ("*", "+") else name)
        return " ".join(parts)


def build_parser(program: str, doc: str | None, **more: Any) -> Parser:
    """Return a parser with the module's docstring: the first paragraph is its description, the others are examples."""
    what, _, examples = (doc or "").partition("\n\n")
    how = argparse.RawDescriptionHelpFormatter
    return Parser(prog=program, description=what, epilog=examples, formatter_class=how, **more)


def print_usage_error(wrong: str, nearest: str, program: str) -> int:
    for line in (f"error: {wrong}", nearest, f"help: {program} --help"):
        sys.stderr.write(f"{without_controls(scrub(line))}\n")
    return USAGE


HIDDEN = argparse.SUPPRESS
_UNKNOWN = re.compile(r"unrecognized arguments: (\S+)")
_WRONG = re.compile(r"invalid choice: '([^'\n]*)' \(choose from ([^\n]*)")


def parse_positive(text: str) -> int:
    return int(_require_least(1, int(text), ""))


def parse_natural(text: str) -> int:
    return int(_require_least(0, int(text), ""))


def parse_seconds(text: str) -> float:
    return _require_least(0, float(text), " seconds")


def _require_least(least: int, number: float, unit: str) -> float:
    if not least <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be {least} or more{unit}")
    return number


def add_json(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--json", action="store_true", default=False, help="print the results as JSON")


def print_results(record: Any, lines: str, *, as_json: bool) -> None:
    text = json.dumps(record, ensure_ascii=False, indent=1, default=str) if as_json else lines
    sys.stdout.write(f"{text}\n")


def measure_text_width() -> int:
    return max(80, shutil.get_terminal_size((80, 24)).columns)


def align_rows(rows: Sequence[Sequence[str]], most: int = sys.maxsize) -> list[str]:
    """Return rows as aligned lines; each column is padded to its widest cell, but to at most `most` characters."""
    widths = [min(most, max(map(len, column))) for column in zip(*rows, strict=True)]
    return ["  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip() for row in rows]


_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
"""Escapes for control characters, which in a file name or document could move the cursor or type commands."""


def without_controls(text: str) -> str:
    return text.translate(_CONTROLS)


class ChangedStream:
    """An output stream that changes each text before it writes it."""

    def __init__(self, stream: Any, change: Callable[[str], str]) -> None:
        self._stream, self._change = stream, change

    def write(self, text: str) -> int:
        self._stream.write(self._change(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def escape_terminal() -> Iterator[None]:
    """Within the block, escape control characters for a terminal; a file or a pipe receives every byte unchanged."""
    stream: Any = sys.stdout
    if hasattr(stream, "reconfigure"):  # escape a character that an older encoding (cp1252, latin-1) lacks
        stream.reconfigure(errors="backslashreplace")
    if not stream.isatty():
        yield
        return
    sys.stdout = ChangedStream(stream, without_controls)
    try:
        yield
    finally:
        sys.stdout = stream


_NO_MEMORY = "no memory is left; close other programs, raise ulimit -v, or use fewer --jobs or smaller documents"


def _report_disk_error(error: OSError) -> int:
    try:
        print_error(ToolkitError(describe_disk_error(error)))
    except OSError:
        return _report_bug()
    return FAILED


def _report_bug() -> int:
    sys.stderr.write(without_controls(scrub(traceback.format_exc())))
    return FAILED


def print_error(error: ToolkitError) -> None:
    if _invocation.get().verbose:
        sys.stderr.write(without_controls(scrub("".join(traceback.format_exception(error)))))
    for line in without_controls(scrub(str(error))).split("\n"):
        sys.stderr.write(f"error: {line}\n")


def print_note(text: str) -> None:
    if not is_quiet():
        sys.stderr.write(f"note: {without_controls(scrub(text))}\n")
