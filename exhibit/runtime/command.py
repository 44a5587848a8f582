"""What every command does with what goes wrong: one line on stderr, an exit code, and nothing secret.

@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int: ...
"""

import argparse
import difflib
import functools
import json
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, ParamSpec

from exhibit.runtime.plugins import failed_plugin
from exhibit.runtime.secrets import scrubbed, scrubbed_logs
from exhibit.schemas.errors import ToolkitError, disk_trouble
from exhibit.schemas.parsing import read_beside

FAILED, USAGE, STOPPED, CLOSED = 1, 2, 130, 141
"""Exit codes: an error; a command that cannot be understood; Ctrl-C; a reader that closed the pipe, as in shells."""

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
        text = re.sub(re.escape(usual) + r"(?!\w|\.\w)", names[usual], text)  # not `exhibit inspect`
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
                except MemoryError:
                    print_error(ToolkitError(_NO_MEMORY))
                    return FAILED
                except UnicodeEncodeError as error:
                    return _encoding_or_bug(error)
                except Exception as error:
                    if type(error).__module__ != "sqlite3" or "disk" not in str(error):
                        return _bug()
                    print_error(ToolkitError(f"the disk: {error}; make room, or choose another place"))
                    return FAILED
                return code

        return run

    return decorate


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is three lines: what is wrong, the nearest right form, where the help is."""

    words: tuple[str, ...] = ()
    """Further words that a wrong one may be meant for."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end with the code of a command that cannot be understood."""
        self.exit(print_usage_error(message, self._nearest(message), self.prog))

    def _nearest(self, message: str) -> str:
        if unknown := _UNKNOWN.search(message):
            words = [word for action in self._actions for word in action.option_strings if action.help != HIDDEN]
            near = difflib.get_close_matches(unknown[1].partition("=")[0], [*words, *self.words], n=1)
        else:
            wrong = _WRONG.search(message)
            near = difflib.get_close_matches(wrong[1], re.findall(r"[\w.:-]+", wrong[2]), n=1) if wrong else []
        return f"did you mean {near[0]}?" if near else f"usage: {self._short_usage()}"

    def _short_usage(self) -> str:
        """Return one line with what cannot be left out."""
        parts = [self.prog, "[flags]"]
        for action in self._actions:
            shown = action.metavar or (f"{{{','.join(map(str, action.choices))}}}" if action.choices else action.dest)
            name = shown if isinstance(shown, str) else " ".join(shown)
            if action.option_strings and action.required:
                parts.append(f"{action.option_strings[0]} {name}")
            elif not action.option_strings and action.help != HIDDEN:
                parts.append(f"{name} …" if action.nargs in ("*", "+") else name)
        return " ".join(parts)


def documented(program: str, doc: str | None, *, module: str = "", **more: Any) -> Parser:
    """Return a parser whose description is the first paragraph of a module's docstring, and its examples the rest.

    With `module=__file__` its flags are those of the TOML file beside the module.
    """
    what, _, examples = (doc or "").partition("\n\n")
    how = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=spelled(program), description=what, epilog=spelled(examples), formatter_class=how, **more)
    if module:
        add_arguments(parser, read_beside(module))
    return parser


def print_usage_error(wrong: str, nearest: str, program: str) -> int:
    """Print the three lines about a command that cannot be understood; return its exit code."""
    for line in (f"error: {wrong}", nearest, f"help: {program} --help"):
        sys.stderr.write(f"{without_controls(scrubbed(line))}\n")
    return USAGE


def parser_of(
    program: str, doc: str | None, commands: Mapping[str, Any], kinds: Mapping[str, Any], **words: object
) -> tuple[Parser, dict[str, Parser]]:
    """Return the parser of several commands as a file has them, and each command's own."""
    how = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog=spelled(program), description=spelled(doc or ""), formatter_class=how)
    added = parser.add_subparsers(dest="command", required=True)
    for name, described in commands.items():
        command = added.add_parser(name, help=described["help"])
        like = commands[described["like"]]["flags"] if "like" in described else {}
        add_arguments(command, {**like, **described["flags"]}, kinds, **words)
        add_json(command)
    return parser, dict(added.choices)


HIDDEN = argparse.SUPPRESS
_UNKNOWN = re.compile(r"unrecognized arguments: (\S+)")
_WRONG = re.compile(r"invalid choice: '([^'\n]*)' \(choose from ([^\n]*)")


def positive(text: str) -> int:
    """Read a number of at least 1 from the command line."""
    return int(_at_least(1, int(text), "must be 1 or more"))


def natural(text: str) -> int:
    """Read a whole number of at least 0 from the command line."""
    return int(_at_least(0, int(text), "must be 0 or more"))


def seconds(text: str) -> float:
    """Read a number of seconds from the command line."""
    return _at_least(0, float(text), "must be 0 or more seconds")


def _at_least(least: int, number: float, words: str) -> float:
    if not least <= number < float("inf"):
        raise argparse.ArgumentTypeError(words)
    return number


_KINDS: Mapping[str, Any] = MappingProxyType(
    {"int": int, "float": float, "path": Path, "positive": positive, "natural": natural, "seconds": seconds}
)


def add_arguments(parser: Any, flags: Mapping[str, Any], kinds: Mapping[str, Any] = _KINDS, **words: object) -> None:
    """Add flags as a TOML file gives them: what argparse takes for each, with `group`, and `also` for other spellings.

    `kinds` are the types and the lists of choices that the file names; `words` fill the places of help and defaults.
    """
    groups: dict[str, Any] = {}
    for name, described in flags.items():
        given = dict(described)
        title = given.pop("group", "")
        if title and title not in groups:
            groups[title] = parser.add_argument_group(title)
        for key in {"type", "choices", "help", "default"} & given.keys():
            if isinstance(given[key], str) and key in ("type", "choices"):
                given[key] = {**_KINDS, **kinds}[given[key]]
            elif isinstance(given[key], str):
                # argparse knows the mark of what is hidden by identity
                given[key] = HIDDEN if given[key] == HIDDEN else given[key].format(**words) if words else given[key]
        groups.get(title, parser).add_argument(name, *given.pop("also", ()), **given)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add --json, which every command has that prints results."""
    parser.add_argument("--json", action="store_true", default=False, help="print the results as JSON")


def print_results(record: Any, lines: str, *, as_json: bool) -> None:
    """Print results: as JSON for a program, else as lines for a person."""
    text = json.dumps(record, ensure_ascii=False, indent=1, default=str) if as_json else lines
    sys.stdout.write(f"{text}\n")


def text_width() -> int:
    """Return how many columns the terminal has, and at least what every terminal has."""
    return max(_NARROWEST, shutil.get_terminal_size((_NARROWEST, 24)).columns)


_NARROWEST = 80  # columns: what every terminal has


def aligned(rows: Sequence[Sequence[str]], most: int = sys.maxsize) -> list[str]:
    """Return cells as lines, each column as wide as its widest cell, or as `most` says but for the last."""
    widths = [min(most, max(map(len, column))) for column in zip(*rows, strict=True)]
    return ["  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip() for row in rows]


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


_LEAST_ROOM = 680 << 20  # bytes of addresses: with 500,000 KiB FAISS crashes when it is loaded, 700,000 are enough


def check_room() -> None:
    """Raise where the shell allows a process too few addresses: libraries would crash without a word."""
    if sys.platform == "win32":
        return
    import resource

    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= allowed < _LEAST_ROOM:
        words = f"this shell allows {allowed >> 20} MiB of memory (ulimit -v)"
        raise ToolkitError(f"{words}; at least {_LEAST_ROOM >> 20} MiB are needed: ulimit -v unlimited")


_NO_MEMORY = "no memory is left (ulimit -v, or other programs); close some, or use fewer --jobs and smaller documents"


def _encoding_or_bug(error: UnicodeEncodeError) -> int:
    """Say what to do where this system's encoding of file names has no room for a name; anything else is a bug."""
    used = sys.getfilesystemencoding()
    if used.replace("-", "").lower() == "utf8":
        return _bug()
    name = error.object[: error.end][-_NAME:]
    print_error(ToolkitError(f"{name}: a name that {used}, this system's encoding of names, lacks; set PYTHONUTF8=1"))
    return FAILED


_NAME = 80  # characters of a name that are shown


def _bug() -> int:
    """Print the traceback of what is being handled; it may hold what was sent to a server.

    A part that another distribution brings is named, and its fault is one line.
    """
    trace = traceback.format_exc()
    if part := failed_plugin(trace):
        error = sys.exc_info()[1]
        print_error(ToolkitError(f"{part} failed: {type(error).__name__}: {error}; mend it, or uninstall it"))
        return FAILED
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
