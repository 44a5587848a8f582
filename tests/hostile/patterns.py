"""Every regular expression of the product, with texts built from the expression to make it slow."""

from __future__ import annotations

import ast
import pkgutil
import re
import signal
import time
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

from exhibit.schemas.errors import ToolkitError

PRODUCT = Path(__file__).parent.parent.parent / "exhibit"
CALLS = ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
ONCE = {"match", "fullmatch"}
"""Ways to use an expression that begin at one place only."""

_SHORT, _LONG = 4000, 32000
_SLOW = 0.0005
"""Seconds: an expression that is linear reads 4,000 characters in a third of this."""
_QUADRATIC = 24.0
"""Eight times the text takes eight times as long where time is linear, and 64 times where it is quadratic."""
_HOPELESS = 1.0
"""Seconds of processor time after which a match is given up: of those that are linear the slowest takes 0.12."""


SHORT = {
    "exhibit.evaluation.metrics._requests._COMMA": "reads --metrics, which the user writes",
    "exhibit.law.references.statutes._TOKEN": "reads at most the 160 characters before a name's end",
    "exhibit.law.structure.lines._LEADERS": "reads the last 60 characters of a line",
}
"""Expressions that are never given a long text, and why."""


class Expression(NamedTuple):
    """A regular expression, its location in the code, and the methods that it is used with."""

    where: str
    pattern: re.Pattern[Any]
    used: frozenset[str]


class Slow(NamedTuple):
    """A regular expression that is too slow, and the text that shows it."""

    where: str
    pattern: str
    text: str
    ratio: float


# ---------------------------------------------------------------- which there are


@cache
def expressions() -> list[Expression]:
    """Return every regular expression that a module stores or passes to a call as a literal."""
    found: dict[tuple[Any, int], Expression] = {}
    for name in modules():
        module = import_module(name)
        if module.__file__ is None:  # a folder of data
            continue
        source = Path(module.__file__).read_text(encoding="utf-8")
        for one in [*_held(module, source), *_written(name, source)]:
            key = (one.pattern.pattern, one.pattern.flags)
            other = found.get(key)
            found[key] = one if other is None else one._replace(used=one.used | other.used)
    return list(found.values())


def modules() -> Iterator[str]:
    """Yield the modules of the product that can be imported without an extra."""
    yield "exhibit"
    for info in pkgutil.walk_packages([str(PRODUCT)], "exhibit."):
        if info.name.rpartition(".")[2] != "__main__" and _imports(info.name):
            yield info.name


def _imports(name: str) -> bool:
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] == "exhibit":
            raise
        return False
    except ToolkitError as error:  # a plug-in that says which extra it needs
        if "extra" not in str(error):
            raise
        return False
    return True


def _held(module: ModuleType, source: str) -> Iterator[Expression]:
    for name, value in vars(module).items():
        for pattern in _inside(value, depth=3):
            plain = isinstance(value, re.Pattern)
            calls = _calls(source) if name.startswith("_") else _calls_anywhere()
            used = calls.get(name) if plain else None
            yield Expression(f"{module.__name__}.{name}", pattern, frozenset(used or {"search"}))


@cache
def _calls(source: str) -> dict[str, set[str]]:
    """Return the methods of regular expressions that a source calls, by the name of the variable."""
    calls: dict[str, set[str]] = {}
    for name, method in re.findall(rf"\b(\w++)\.({'|'.join(CALLS)})\b", source):
        calls.setdefault(name, set()).add(method)
    return calls


@cache
def _calls_anywhere() -> dict[str, set[str]]:
    calls: dict[str, set[str]] = {}
    for path in PRODUCT.rglob("*.py"):
        for name, methods in _calls(path.read_text(encoding="utf-8")).items():
            calls.setdefault(name, set()).update(methods)
    return calls


def _inside(value: object, depth: int) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        yield from (p for one in value.values() for p in _inside(one, depth - 1))
    elif depth and isinstance(value, list | tuple | set | frozenset):
        yield from (p for one in value for p in _inside(one, depth - 1))


def _written(name: str, source: str) -> Iterator[Expression]:
    if "re" not in _calls(source):
        return  # most modules: to walk through all of them takes seconds
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS):
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args):
            continue
        if isinstance(node.args[0], ast.Constant) and node.func.attr != "compile":
            pattern = re.compile(node.args[0].value, _flags(node))
            yield Expression(f"{name}:{node.lineno}", pattern, frozenset({node.func.attr}))


def _flags(call: ast.Call) -> int:
    told = [k.value for k in call.keywords if k.arg == "flags"]
    names = [n.attr for value in told for n in ast.walk(value) if isinstance(n, ast.Attribute)]
    return sum(int(getattr(re, name)) for name in names)


# ---------------------------------------------------------------- what slows one down


def texts(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield a prefix, a text to repeat and a suffix that does not match, for every repetition in an expression."""
    tree = list(parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE if _is_bytes(pattern) else pattern.flags))
    alphabet = dict.fromkeys([*_letters(tree), *" \na1A.,-("])
    starts = dict.fromkeys(["", *(start for start, _ in _repeats(tree, ""))])
    pumps = dict.fromkeys([*(p for _, p in _repeats(tree, "")), *starts, _sample(tree), *list(alphabet)[:16]])
    for start in list(starts)[:5]:
        for pump in pumps:
            if pump:
                yield start, pump, "\x01"


def _is_bytes(pattern: re.Pattern[Any]) -> bool:
    return isinstance(pattern.pattern, bytes)


def _letters(tree: Any) -> Iterator[str]:
    for code, argument in tree:
        if code in (op.LITERAL, op.NOT_LITERAL):
            yield chr(argument)
        elif code is op.IN:
            yield _one_of(argument)
        else:
            for part in _parts(argument):
                yield from _letters(part)


def _parts(argument: Any) -> Iterator[Any]:
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, list | tuple):
        for one in argument:
            yield from _parts(one)


def _repeats(tree: Any, start: str) -> Iterator[tuple[str, str]]:
    """Yield, for every repetition in an expression, a text that leads to it and a text that it repeats."""
    for code, argument in tree:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT):
            yield start, _sample(argument[2])
            yield from _repeats(argument[2], start)
        elif code is op.SUBPATTERN:
            yield from _repeats(argument[-1], start)
        elif code is op.BRANCH:
            for branch in argument[1]:
                yield from _repeats(branch, start)
        elif code is op.ATOMIC_GROUP:
            yield from _repeats(argument, start)
        start += _sample([(code, argument)])


def _sample(tree: Any) -> str:
    """Return a short text that an expression matches, at least nearly."""
    return "".join(_sample_of(code, argument) for code, argument in tree)


def _sample_of(code: Any, argument: Any) -> str:
    if code is op.LITERAL:
        return chr(argument)
    if code in (op.NOT_LITERAL, op.ANY):
        return "a" if argument != ord("a") else "b"
    if code is op.IN:
        return _one_of(argument)
    if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        return _sample(argument[2]) * max(argument[0], 1 if argument[0] else 0)
    if code is op.SUBPATTERN:
        return _sample(argument[-1])
    if code is op.ATOMIC_GROUP:
        return _sample(argument)
    if code is op.BRANCH:
        return _sample(argument[1][0])
    return ""


def _one_of(members: Any) -> str:
    """Return a character that a character class matches."""
    if members[0][0] is op.NEGATE:
        inside = re.compile("[" + "".join(_written_class(m) for m in members[1:]) + "]")
        return next((c for c in "a1 \n.-(x<\t\u00e9" if not inside.match(c)), "")
    code, argument = members[0]
    if code is op.LITERAL:
        return chr(argument)
    if code is op.RANGE:
        return chr(argument[0])
    return {op.CATEGORY_DIGIT: "1", op.CATEGORY_SPACE: " ", op.CATEGORY_WORD: "a"}.get(argument, ".")


def _written_class(member: Any) -> str:
    code, argument = member
    if code is op.LITERAL:
        return re.escape(chr(argument))
    if code is op.RANGE:
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    names = {op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s"}
    names |= {op.CATEGORY_NOT_SPACE: r"\S", op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W"}
    return names[argument]


# ---------------------------------------------------------------- how long it takes


class _HopelessError(Exception):
    pass


def slowness(one: Expression) -> Slow | None:
    """Return the text on which an expression takes more than linear time; None if there is no such text."""
    for start, pump, end in texts(one.pattern):
        short, long = (start + pump * (size // len(pump)) + end for size in (_SHORT, _LONG))
        shortest = _seconds(one, short)
        if shortest < _SLOW:
            continue
        longest = _seconds(one, long) if shortest < float("inf") else shortest
        for _ in range(4):
            # looked at again, and the smallest figures: whatever else the machine does only ever adds
            if longest == float("inf") or longest / shortest < _QUADRATIC:
                break
            shortest, longest = min(shortest, _seconds(one, short)), min(longest, _seconds(one, long))
        if longest == float("inf") or longest / shortest >= _QUADRATIC:
            return Slow(one.where, str(one.pattern.pattern), f"{start!r} + {pump!r} * n", longest / shortest)
    return None


def _seconds(one: Expression, text: str) -> float:
    """Return the processor time of matching a text with an expression; infinite if the match was stopped.

    It is the time of this thread, because the clock of the whole process jumps while an alarm is set.
    """
    subject: Any = text.encode("utf-8", "surrogatepass") if _is_bytes(one.pattern) else text
    before = signal.signal(signal.SIGPROF, _give_up)
    signal.setitimer(signal.ITIMER_PROF, _HOPELESS)
    began = time.thread_time()
    try:
        for method in one.used & ONCE:
            getattr(one.pattern, method)(subject)
        if one.used - ONCE:
            for _ in one.pattern.finditer(subject):
                pass
        return time.thread_time() - began
    except _HopelessError:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _give_up(_signal: int, _frame: object) -> None:
    raise _HopelessError
