"""No text makes a regular expression of the product take more than linear time."""

import ast
import pkgutil
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import exhibit

SHORT_CHARS, LONG_CHARS = 500, 4000
MIN_SECONDS = 0.003
"""Seconds: a linear expression reads 4,000 characters in less time."""
QUADRATIC_RATIO = 24.0
"""Eight times the text takes eight times as long if time is linear, and 64 times as long if it is quadratic."""
PUMPS = (" ", "a", "1", "A", ".", "(", "<", "-", ",", "\n", "a ", "A a ", "1.", "a.", "(a)", "<a ", " -", "1 ")
SHORT_TEXTS = {
    "exhibit.law.profile._BETWEEN": "reads the first 3,000 characters of a document",
    "exhibit.law.profile._NEXT": "reads at most 700 characters of a paragraph that names parties",
    "exhibit.law.references.statutes._TOKEN": "reads at most the 160 characters before a name's end",
    "exhibit.law.structure.lines._LEADERS": "reads the last 60 characters of a line",
}
"""Expressions that are never used on a long text, with the reason."""
AT_ONE_POSITION = {"match", "fullmatch"}
"""Methods that try an expression only at one position."""


def find_methods() -> dict[str, set[str]]:
    """Return the methods that the product uses on each name of a module; a use without a method counts as `search`."""
    methods: dict[str, set[str]] = defaultdict(set)
    package = Path(exhibit.__path__[0])
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        own = ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        imported = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        called = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                place = imported.get(node.id, f"{own}.{node.id}")
                methods[place].add(called.get(id(node), "search"))
    return methods


def find_expressions() -> dict[str, tuple[re.Pattern[Any], bool]]:
    """Return the regular expressions of all modules by name, and whether each is tried at only one position."""
    found: dict[str, tuple[re.Pattern[Any], bool]] = {}
    methods = find_methods()
    for info in pkgutil.walk_packages(exhibit.__path__, "exhibit."):
        if info.name.endswith("__main__"):
            continue
        try:
            module = import_module(info.name)
        except Exception:  # a module that needs an extra
            continue
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and f"{info.name}.{name}" not in SHORT_TEXTS:
                used = methods[f"{info.name}.{name}"] - {"pattern"}
                found.setdefault(f"{info.name}.{name}", (value, bool(used) and used <= AT_ONE_POSITION))
    return found


def make_pumps(pattern: re.Pattern[Any]) -> Iterator[str]:
    """Yield texts to repeat: pieces that slow many expressions down, and the expression's own literal characters."""
    written = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    yield from dict.fromkeys([*PUMPS, *re.sub(r"\\.|[\\?*+{}|^$\[\]()]", "", written)[:12]])


def find_slow_text(pattern: re.Pattern[Any], *, fixed: bool = False) -> str | None:
    """Return a text whose repetition takes an expression more than linear time to read; None if there is none."""
    for pump in make_pumps(pattern):
        short, long = (pump * (size // len(pump)) + "\x01" for size in (SHORT_CHARS, LONG_CHARS))
        shortest = min(measure(pattern, short, fixed=fixed) for _ in range(3))
        if shortest * QUADRATIC_RATIO < MIN_SECONDS:
            continue
        # take the shortest times, because other programs only add time
        if min(measure(pattern, long, fixed=fixed) for _ in range(3)) > QUADRATIC_RATIO * shortest:
            return pump
    return None


def measure(pattern: re.Pattern[Any], text: str, *, fixed: bool) -> float:
    subject: Any = text.encode("utf-8", "surrogatepass") if isinstance(pattern.pattern, bytes) else text
    began = time.thread_time()
    if fixed:
        pattern.match(subject)
        pattern.fullmatch(subject)
    else:
        for _ in pattern.finditer(subject):
            pass
    return time.thread_time() - began


@pytest.mark.slow
def test_every_regular_expression_is_linear_on_repeated_texts():
    expressions = find_expressions()
    assert len(expressions) > 150
    slow = {
        place: text
        for place, (pattern, fixed) in expressions.items()
        if (text := find_slow_text(pattern, fixed=fixed)) is not None
    }
    assert slow == {}


@pytest.mark.slow
@pytest.mark.parametrize(("written", "slow"), [(r"\d+\s*-\s*\d+", True), (r"\s*<think>", True), (r"[a-z]+", False)])
def test_find_slow_text_recognises_a_slow_regular_expression(written, slow):
    assert (find_slow_text(re.compile(written)) is not None) == slow
