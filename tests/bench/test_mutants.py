"""The mutation tester notices a weak test and leaves a strong one alone."""

from __future__ import annotations

import ast
import gc
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from bench._mutants import trial
from bench._mutants.changes import Change, changed, changed_tree, changes_of
from bench._mutants.page import Rule, Trials, read_reasons, read_rules, reason_of, write_page
from bench._mutants.swap import exchange, exchanged
from bench._mutants.trial import Reach, Workshop
from bench.mutants import REASONS, ROOMS, main
from exhibit.schemas.errors import ToolkitError

SOURCE = '''\
"""A page of rules."""
LIMIT = 10


def within(number: int, *, most: int = LIMIT) -> bool:
    """Return whether a number is allowed."""
    if not number or number < 0:
        return False
    return number <= most


def first(words: list[str], count: int) -> list[str]:
    words.sort()
    return words[:count]
'''

LOADED = (
    SOURCE
    + """

def last(words: list[str]) -> str:
    return words[0]


def counted(number: int) -> int:
    while number < 10:
        number += 1
    return number


FEW = first(["b", "a"], 1)
"""
)
_COPIED = ("changes", "nursery", "reach", "seedbed", "swap")


def worded(source: str) -> dict[str, str]:
    """Each change in words, and the source that it makes."""
    return {f"{change.line}: {change.words}": changed(source, change) for change in changes_of("rules.py", source)}


def test_every_kind_of_change_is_made_and_each_in_one_place():
    made = worded(SOURCE)
    assert list(made) == [
        "2: 10 → 20",
        "2: 10 → 9",
        "7: Or → And in `not number or number < 0`",
        "7: without `not`",
        "7: Lt → LtE in `number < 0`",
        "7: 0 → 1",
        "7: 0 → -1",
        "8: False → True",
        "9: return None",
        "9: LtE → Lt in `number <= most`",
        "13: without `words.sort()`",
        "14: return None",
        "14: [: count] → [: count + 1]",
    ]
    whole = ast.unparse(ast.parse(SOURCE)).splitlines()
    for words, source in made.items():
        lines = source.splitlines()
        assert len(lines) == len(whole), words
        assert sum(one != other for one, other in zip(lines, whole, strict=True)) == 1, words


def test_what_no_test_could_notice_is_not_changed():
    quiet = (
        "from typing import Protocol\n@cache(size=3)\nclass A(Protocol):\n    x: int = 1\n"
        "def f(x: list[int, 2]) -> 'a' | 3:\n    '''1'''\n    zip(x, strict=True)\n    raise E(f'{x[1 + 2]}')\n"
        "if __name__ == 'x':\n    f(1)\n"
    )
    assert [change.words for change in changes_of("a.py", quiet)] == [
        "without `zip(x, strict=True)`", "without `raise E(f'{x[1 + 2]}')`",
    ]  # fmt: skip


@pytest.fixture
def shop(tmp_path) -> Iterator[Workshop]:
    root = tmp_path / "root"
    (root / "tests").mkdir(parents=True)
    (root / "rules.py").write_text(LOADED, encoding="utf-8")
    (root / "tests" / "test_rules.py").write_text(
        "from rules import FEW, counted, within\n\n\n"
        "def test_ten_is_within():\n    assert within(10) and not within(11) and not within(0)\n\n\n"
        "def test_counted():\n    assert counted(1) == 10\n\n\n"
        "def test_few():\n    assert FEW == ['a']\n",
        encoding="utf-8",
    )
    package = Path(__file__).parents[2] / "bench"
    (root / "bench" / "_mutants").mkdir(parents=True)
    for name in ("__init__", "_mutants/__init__", *(f"_mutants/{part}" for part in _COPIED)):
        shutil.copy(package / f"{name}.py", root / "bench" / f"{name}.py")
    (root / "pytest.ini").write_text(
        "[pytest]\npythonpath = .\nmarkers =\n  slow\n  extra\n  server\n  llm\n  data\n", encoding="utf-8"
    )
    shop = Workshop(root, tmp_path / "copy")
    yield shop
    shop.close()


@pytest.mark.slow
def test_changes_are_tried_against_the_tests_that_call_them(shop, monkeypatch):
    monkeypatch.setattr(trial, "_LEAST", 0.3)  # seconds of the processor for a loop that never ends
    (shop.folder / "tests" / "test_rules.py").rename(shop.folder / "tests" / "test_house.py")
    known = shop.reach(["rules.py"], ["tests"])
    tests = sorted({test.partition("::")[2] for tests in known.calls["rules.py"].values() for test in tests})
    assert tests == ["test_counted", "test_ten_is_within"] and len(known.seconds) == 3
    assert known.early == {"rules.py": [12]}, "what runs while files are loaded"
    changes = {f"{change.line}: {change.words}": change for change in changes_of("rules.py", LOADED)}
    outcomes = {
        "2: 10 → 20": "noticed",
        "9: LtE → Lt in `number <= most`": "noticed",
        "7: Lt → LtE in `number < 0`": "survived",
        "13: without `words.sort()`": "noticed",
        "18: 0 → 1": "no test runs it",
        "23: without `number += 1`": "too slow",
    }
    assert {words: shop.attempt(changes[words], known) for words in outcomes} == outcomes
    assert (shop.folder / "rules.py").read_text(encoding="utf-8") == LOADED, "what is changed is put back"
    (shop.folder / "tests" / "test_house.py").write_text("def test_a():\n    assert 0\n", encoding="utf-8")
    with pytest.raises(ToolkitError, match="fail before anything is changed"):
        shop.reach(["rules.py"], ["tests"])


@pytest.mark.slow
def test_a_fixture_that_tests_share_is_each_ones_own(shop):
    (shop.folder / "tests" / "test_rules.py").write_text(
        "import time\n\nimport pytest\n\nfrom rules import first\n\n\n"
        "@pytest.fixture(scope='module')\ndef words():\n    end = time.process_time() + 0.2\n"
        "    while time.process_time() < end:\n        pass\n    return first(['b', 'a'], 2)\n\n\n"
        "def test_one(words):\n    assert words\n\n\ndef test_two(words):\n    assert words == ['a', 'b']\n",
        encoding="utf-8",
    )
    known = shop.reach(["rules.py"], ["tests"])
    one, two = (f"tests/test_rules.py::test_{name}" for name in ("one", "two"))
    assert set(known.calls["rules.py"][12]) == {one, two}
    assert known.seconds[one] < 0.15 and known.takes(two) > 0.15 and known.takes(one, two) < 0.35
    [change] = [c for c in changes_of("rules.py", LOADED) if c.line == 13]
    assert shop.attempt(change, known) == "noticed", "by the second, which did not set it up"


def exchangeable(source: str, file: str = "rules.py") -> dict[str, list[str] | None]:
    """Each change, and the functions whose code it touches; None where the file must be loaded anew."""
    touched = {}
    for change in changes_of(file, source):
        codes = exchanged(file, ast.parse(source), changed_tree(source, change))
        touched[f"{change.line}: {change.words}"] = codes if codes is None else sorted(place.name for place in codes)
    return touched


def test_functions_are_changed_in_place_and_constants_fields_and_defaults_are_not():
    touched = exchangeable(SOURCE)
    assert touched["2: 10 → 20"] is None
    assert touched["9: LtE → Lt in `number <= most`"] == ["within"]
    assert touched["14: [: count] → [: count + 1]"] == ["first"]
    nested = (
        "class Rule:\n    most = 3\n\n    def allows(self, n=1):\n        return sorted(x > 2 for x in n)\n\n\n"
        "both = [lambda x: x + 5, lambda x: x + 7]\nalone = lambda x: x + 9\n"
    )
    touched = exchangeable(nested)
    assert touched["2: 3 → 4"] is touched["4: 1 → 2"] is None
    assert touched["5: 2 → 3"] == ["Rule.allows", "Rule.allows.<locals>.<genexpr>"]
    assert touched["8: 5 → 10"] is None, "two functions of one line and name cannot be told apart"
    assert touched["9: 9 → 18"] == ["<lambda>"]


def test_a_function_that_is_loaded_gets_its_new_code_wherever_it_is_held(tmp_path, monkeypatch):
    (tmp_path / "houserules.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    rules = import_module("houserules")
    held = rules.within
    [change] = [c for c in changes_of("houserules.py", SOURCE) if c.words == "LtE → Lt in `number <= most`"]
    codes = exchanged(rules.__file__, ast.parse(SOURCE), changed_tree(SOURCE, change))
    assert held(10)
    gc.freeze()  # as this project's own tests do with all that is loaded
    exchange(rules.__file__, codes)
    gc.freeze()
    assert not held(10) and held(9) and rules.within is held


def test_a_line_outside_functions_is_tried_by_all_who_use_the_file_and_a_cache_hides_who_calls():
    remembered = SOURCE.replace("def first", "@cache\ndef first")
    known = Reach({"a": 0.2, "b": 0.1, "far": 0.0}, {"rules.py": {5: ["a"], 12: ["b"]}})
    limit, *_ = changes_of("rules.py", SOURCE)
    assert known.tests_of(limit, SOURCE) == ["a", "b", "far"], "those that read the constant, of its file, and of any"
    default = SOURCE.replace("= LIMIT", "= 9").replace("LIMIT", "count")
    assert known.tests_of(changes_of("rules.py", default)[2], default) == ["a", "b", "far"], "its own default"
    assert known.tests_of(changes_of("rules.py", default)[0], default) == ["b", "a", "far"], "`first` reads a `count`"
    within = next(change for change in changes_of("rules.py", SOURCE) if change.line == 9)
    assert known.tests_of(within, SOURCE) == ["a"]
    first = changes_of("rules.py", remembered)[-1]
    assert known.tests_of(first, remembered) == ["b", "a"]
    assert Reach(known.seconds, {"rules.py": {}}).tests_of(limit, SOURCE) == ["far", "b", "a"]
    elsewhere = Reach(known.seconds, {"rules.py": {99: ["far", "a"]}})
    assert elsewhere.tests_of(within, SOURCE) == ["far", "a"], "it may run in a process that these start"
    named = Reach({"tests/test_rules.py::test_it": 1.0, "t.py::test[rules]": 2.0, **known.seconds}, known.calls)
    assert named.tests_of(within, SOURCE) == ["a", "tests/test_rules.py::test_it", "t.py::test[rules]"]


def test_the_page_keeps_the_rooms_that_were_not_tried_and_gives_reasons(tmp_path):
    one, two = changes_of("rules.py", SOURCE)[:2]
    reasons = {("rules.py", "LIMIT = 10", "10 → 9"): "nobody asks for ten"}
    page = tmp_path / "mutants.md"
    first = {"law": "1 of 4, seed 3", "rag": "none"}
    write_page(page, [Trials("law", 14, 1, {one: "noticed", two: "survived"})], reasons, first=first)
    write_page(page, [Trials("evidence", 14, 1, {one: "too slow", two: "no test runs it"})], {})
    text = page.read_text(encoding="utf-8")
    assert text.index("## evidence") < text.index("## law")
    assert text.count("1 of 2 changes noticed (50%); 14 possible, seed 1.") == 2
    assert "seed 1. When it was first measured: 1 of 4, seed 3.\n" in text and text.count("first measured") == 1
    assert "| rules.py:2 | 10 → 9 | nobody asks for ten |" in text
    assert "| rules.py:2 | 10 → 9 | no test runs this function |" in text
    assert reason_of(Change("x.py", 1, 0, "a", "b"), "survived", reasons) == "a test is missing"


def test_what_is_not_tried_is_told_on_the_page(tmp_path):
    limit, *_, last = changes_of("rules.py", SOURCE)
    rule = Rule("*.py", "LIMIT =", "a matter of speed")
    assert rule.covers(limit) and not rule.covers(last) and not Rule("x/*.py", "LIMIT", "").covers(limit)
    page = tmp_path / "mutants.md"
    for _ in range(2):
        write_page(page, [Trials("law", 1, 1, {last: "noticed"})], {}, [rule])
    assert page.read_text(encoding="utf-8").endswith("| *.py | `LIMIT =` | a matter of speed |\n")
    assert page.read_text(encoding="utf-8").count("a matter of speed") == 1


def test_every_reason_is_of_a_change_that_there_is():
    root = REASONS.parents[1]
    files = [file for room in ROOMS.values() for file in room.files()]
    rules, reasons = read_rules(REASONS), read_reasons(REASONS)

    @cache
    def changes(file: str) -> list[Change]:
        return changes_of(file, (root / file).read_text(encoding="utf-8"))

    for rule in rules:
        named = (file for file in files if fnmatch(file, rule.file))
        assert any(rule.covers(change) for file in named for change in changes(file)), rule
    for file, code, words in reasons:
        assert (code, words) in {(change.code, change.words) for change in changes(file)}, (file, code, words)


def test_every_file_of_the_product_is_in_one_room():
    root = REASONS.parents[1]
    files = Counter(file for room in ROOMS.values() for file in room.files())
    rooms = re.search("^ROOMS := (.*)$", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert rooms
    product = {
        path.relative_to(root).as_posix()
        for room in (*rooms[1].split(), "exhibit")
        for path in (root / room).rglob("*.py")
    }
    assert set(files) == product and set(files.values()) == {1}
    places = [place for room in ROOMS.values() for place in (*room.code, *room.tests, *room.without)]
    assert all((root / place.partition("::")[0]).exists() for place in places)


def test_a_file_that_is_not_of_the_room_is_an_error(capsys, monkeypatch):
    monkeypatch.setattr("bench.mutants.Workshop", lambda *_: None)
    assert main(["--room", "law", "--file", "schemas/models.py"]) == 1
    assert "schemas/models.py is in the room law" in capsys.readouterr().err
