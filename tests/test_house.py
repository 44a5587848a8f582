"""The code follows its own rules: names, sizes, errors, and the two traces of docs/architecture.md."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from exhibit.runtime.plugins import list_plugins

ROOT = Path(__file__).parent.parent
PRODUCT = "exhibit"
ROOMS = sorted(path.parent.relative_to(ROOT).as_posix() for path in (ROOT / PRODUCT).glob("*/__init__.py"))
OUTSIDE = ("training", "bench")
"""They use the rooms, and no room uses them."""
BRANCHES, FUNCTION, MODULE = 25, 70, 400
"""The most branches and lines of a function, and the most lines of a module."""
BLOCK = 6
"""Lines that stand in two rooms: from so many on, they are one thing written twice."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return all syntax nodes of a file, cached because walking the tree takes longer than parsing it."""
    return list(ast.walk(parsed(path)))


@cache
def constants(path: Path) -> list[str]:
    """Return the string constants in a file's code."""
    return [node.value for node in nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def files(*folders: str) -> Iterator[Path]:
    for folder in folders or (PRODUCT, *OUTSIDE):
        yield from sorted((ROOT / folder).rglob("*.py"))


def told(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# ---------------------------------------------------------------- names


def test_a_public_class_has_a_name_of_its_own():
    """Except for the engine's `Runner` classes, which their modules distinguish."""
    classes = defaultdict(list)
    for path in files(PRODUCT):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes[node.name].append(told(path))
    assert {name: places for name, places in classes.items() if len(places) > 1}.keys() == {"Runner"}


def test_no_two_modules_of_a_room_have_one_name():
    """Except for plug-ins, whose file name is what a user writes; for example two plug-ins are called `llm`."""
    for room in ROOMS:
        names = defaultdict(list)
        for path in files(room):
            package = ".".join(path.parent.relative_to(ROOT).parts)
            plugins = list_plugins(package) if path.parent.name in PLUGINS else []
            if path.stem not in ("__init__", "__main__", *plugins):
                names[path.stem.strip("_")].append(told(path))
        assert {name: places for name, places in names.items() if len(places) > 1} == {}


_IMPORTS = re.compile(r"^[ \t]*((?:from|import)[ ]exhibit\b(?:[^\n(]*\([^)]*\)|[^\n]*))", re.MULTILINE)


def private_imports(source: str) -> list[str]:
    """Return the private names (`_name`) that a file imports from the product."""
    imports = [node for line in _IMPORTS.findall(source) for node in ast.parse(line).body]
    names = [f"{getattr(node, 'module', '')}.{alias.name}" for node in imports for alias in node.names]
    return [name for name in names if re.search(r"^\.?exhibit\..*(?<=\.)_(?!_)", name)]


def test_a_private_import_is_seen():
    source = "import exhibit.law._a\nfrom exhibit.law._b import c\nfrom exhibit.law import _d, e, __f__"
    assert private_imports(source) == [".exhibit.law._a", "exhibit.law._b.c", "exhibit.law._d"]


def test_tests_go_through_public_names():
    """The exceptions are patched in place: a limit made small, a clock, a missing program."""
    private = {told(path): private_imports(path.read_text(encoding="utf-8")) for path in files("tests")}
    assert {path: names for path, names in private.items() if names} == {}


def test_tests_call_no_private_function_of_the_product():
    """Under any alias: a function that a test calls is part of a module's interface."""
    private = {
        node.name
        for path in files(PRODUCT)
        for node in nodes(path)
        if isinstance(node, Function) and re.fullmatch(r"_[^_].*[^_]", node.name)
    }
    assert len(private) > 900
    calls = [
        f"{told(path)}: {name}"
        for path in files("tests")
        for name in re.findall(r"(?<!self)\.(_[a-z]\w*)\(", path.read_text(encoding="utf-8"))
        if name in private
    ]
    assert calls == []


PLUGINS = {
    "answerers", "embedders", "exports", "llms", "metrics", "ocr", "readers", "rerankers", "runners", "splitters",
    "stores", "summaries", "targets",
}  # fmt: skip
"""Folders in which a file's name is its name on the command line."""


# ---------------------------------------------------------------- sizes


def branches(function: ast.AST) -> int:
    """Return the number of branches in a function: loops, conditions and their parts, comprehensions."""
    kinds = (
        ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.comprehension, ast.match_case,
    )  # fmt: skip
    inside = list(ast.walk(function))
    joined = sum(len(node.values) - 1 for node in inside if isinstance(node, ast.BoolOp))
    return joined + sum(isinstance(node, kinds) for node in inside)


def test_branches_are_counted():
    tree = ast.parse("if a and a > 1 or not a:\n    b = [x for x in a if x]\nc = 1 if a else 2")
    assert branches(tree) == 5


def test_no_function_has_too_many_branches_or_lines():
    large = []
    for path in files():
        for node in nodes(path):
            if isinstance(node, Function):
                lines = (node.end_lineno or 0) - node.lineno + 1
                if branches(node) > BRANCHES or lines > FUNCTION:
                    large.append(f"{told(path)}:{node.lineno} {node.name}: {branches(node)} branches, {lines} lines")
    assert large == []


def test_no_module_is_too_long():
    lengths = {told(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files()}
    assert {path: lines for path, lines in lengths.items() if lines > MODULE} == {}


def is_number(value: ast.AST) -> bool:
    """Return whether a constant is made of numbers alone."""
    inside = list(ast.walk(value))
    kinds = [type(node.value) for node in inside if isinstance(node, ast.Constant)]
    return bool({int, float} & set(kinds)) and str not in kinds and not any(isinstance(n, ast.Call) for n in inside)


def bare_numbers(source: str, tree: ast.Module) -> list[str]:
    """Return the names of a module's numeric constants that have neither a comment nor a docstring."""
    lines, body = source.splitlines(), tree.body
    names = []
    for node, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.Assign) and is_number(node.value):
            told_after = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            told_beside = "#" in lines[node.lineno - 1] or lines[node.lineno - 2].startswith("#")
            if not told_after and not told_beside:
                names.append(lines[node.lineno - 1])
    return names


def test_a_number_without_its_reason_is_seen():
    source = (
        'import re\n_FAR = 3\n_NEAR = 2  # words\n# pages\n_MOST = 4\n_SHARE = 0.5\n"""Of a line."""\n_NAME = \'x\'\n'
    )
    assert bare_numbers(source, ast.parse(source)) == ["_FAR = 3"]


def test_every_number_that_decides_has_its_reason_beside_it():
    folders = (PRODUCT, "training")
    bare = {told(path): bare_numbers(path.read_text(encoding="utf-8"), parsed(path)) for path in files(*folders)}
    assert {path: names for path, names in bare.items() if names} == {}


# ---------------------------------------------------------------- each thing said once


def code_lines(source: str) -> list[tuple[int, str]]:
    """Return the numbered lines of code, without imports, comments and blank lines, whitespace normalised."""
    some = []
    for number, line in enumerate(source.splitlines(), 1):
        words = " ".join(line.split())
        if re.search(r"\w", words) and not words.startswith(("#", "import ", "from ")):
            some.append((number, words))
    return some


def blocks(source: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield every sequence of six lines of code, with the number of its first line."""
    lines = code_lines(source)
    for at in range(len(lines) - BLOCK + 1):
        yield tuple(words for _, words in lines[at : at + BLOCK]), lines[at][0]


def test_a_block_is_six_lines_that_say_something():
    source = "import os\n\na = 1\n)\nb = 2\n# why\nc = 3\nd = 4\ne  =  5\nf = 6\n"
    assert list(blocks(source)) == [(("a = 1", "b = 2", "c = 3", "d = 4", "e = 5", "f = 6"), 3)]


def test_no_block_stands_in_two_rooms():
    places: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for room in (*ROOMS, *OUTSIDE):
        for path in files(room):
            for block, line in blocks(path.read_text(encoding="utf-8")):
                places[block].setdefault(room, f"{told(path)}:{line}")
    assert len(places) > 10_000
    assert [list(rooms.values()) for rooms in places.values() if len(rooms) > 1] == []


@pytest.mark.parametrize(
    ("mark", "home"),
    [(r"<\\s\*omitted", "exhibit/schemas/layout.py"), (r"\(pages\?\\s", "exhibit/converters/raw/maud_release.py")],
)
def test_the_marks_of_quotes_are_read_in_one_place(mark, home):
    patterns = {told(path) for path in files(PRODUCT) for text in constants(path) if re.search(mark, text)}
    assert patterns == {home}


@pytest.mark.parametrize("room", ["evidence", "law", "rag", "evaluation"])
def test_no_room_but_the_converters_names_a_benchmarks_own_marks(room):
    for path in files(f"exhibit/{room}"):
        assert not re.search(r"<omitted>|\(Pages? n", path.read_text(encoding="utf-8")), path


# ---------------------------------------------------------------- errors


def guarded(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "guarded"
               for decorator in function.decorator_list for node in ast.walk(decorator))  # fmt: skip


def test_every_command_prints_its_errors_the_one_way():
    mains = {
        told(path): node
        for path in [*files(), ROOT / "docs" / "pictures.py"]
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef) and node.name == "main"
    }
    assert len(mains) > 40
    shared = {"exhibit/converters/steps/cli.py"}  # called by the guarded `main` that it makes for each converter
    assert {path for path, node in mains.items() if not guarded(node)} - shared == set()


def test_only_one_place_writes_error():
    writers = {told(path) for path in files() for text in constants(path) if text.startswith("error: ")}
    # a notebook reads what a command of its own said
    assert writers == {"exhibit/runtime/command.py", "exhibit/conversion.py"}
