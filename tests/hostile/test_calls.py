"""Every call that deletes or replaces a file, or starts a program, is listed with its reason in docs/calls.md."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = [*(ROOT / "exhibit").rglob("*.py"), *(ROOT / name for name in ("install.py", "evaluate_rag.py", "score.py"))]
REMOVING = {"rmtree", "unlink", "rmdir", "removedirs", "rm_file", "truncate"}
STARTING = {"Popen", "startfile", "execv", "execve", "spawnv", "posix_spawn", "check_output"}


def kind_of(call: ast.Call) -> str | None:
    """Return how a call affects files or programs, by its name and arguments; None if it does not."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return function.id if isinstance(function, ast.Name) and function.id in {"rmtree", "Popen"} else None
    owner = function.value.id if isinstance(function.value, ast.Name) else ""
    name = function.attr
    if name in REMOVING | STARTING or (owner == "os" and name in {"remove", "system", "popen"}):
        return name
    if owner == "subprocess":
        return name if name in {"run", "call", "check_call"} else None
    if name == "rename" or (owner == "shutil" and name == "move") or (owner == "os" and name in {"replace", "renames"}):
        return name
    # Path.replace takes one argument; a string's takes two, and that of a dataclass has names
    plain = len(call.args) == 1 and not call.keywords and not isinstance(call.args[0], ast.Starred)
    return "replace" if name == "replace" and plain and owner not in {"dataclasses"} else None


def calls_in(source: str) -> Counter[str]:
    kinds = (kind_of(node) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return Counter(kind for kind in kinds if kind)


def listed() -> dict[str, Counter[str]]:
    page = (ROOT / "docs" / "calls.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w./]+\.py)` \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert all(len(reason.split()) >= 4 for _, _, reason in rows), "every one has a reason"
    return {name: Counter({kind: int(n) for kind, n in re.findall(r"(\w+) (\d+)", calls)}) for name, calls, _ in rows}


def test_every_call_that_removes_replaces_or_starts_is_listed_with_its_reason():
    found = {
        path.relative_to(ROOT).as_posix(): calls
        for path in PRODUCT
        if (calls := calls_in(path.read_text(encoding="utf-8")))
    }
    assert listed() == found, "docs/calls.md lists them: what is new needs a reason there"


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("shutil.rmtree(folder, ignore_errors=True)", "rmtree"),
        ("path.unlink(missing_ok=True)", "unlink"),
        ("partial.replace(path)", "replace"),
        ("os.replace(a, b)", "replace"),
        ("(folder / name).rename(other)", "rename"),
        ("shutil.move(a, b)", "move"),
        ("os.remove(path)", "remove"),
        ("subprocess.run(['git'])", "run"),
        ("with subprocess.Popen(words): pass", "Popen"),
        ("os.system('x')", "system"),
        ("os.truncate(path, 0)", "truncate"),
    ],
)
def test_a_new_call_is_seen(source, kind):
    assert calls_in(source) == Counter([kind])


@pytest.mark.parametrize(
    "source", ["text.replace('a', 'b')", "replace(case, gold=())", "rows.remove(one)", "engine.run(x)"]
)
def test_other_calls_are_not(source):
    assert calls_in(source) == Counter()
