"""The project keeps its own rules: layers, two commands, a lock that installs anywhere."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("schemas", "evidence", "engine", "hub", "converters", "rag")
"""From the ground up: each may import from those before it; converters and rag never from each other."""


def sources() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def imports(tree: ast.AST) -> list[str]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
    return found


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_from_rooms_below_it(path):
    room = path.relative_to(ROOT).parts[0]
    allowed = set(ROOMS[: ROOMS.index(room) + 1]) - ({"converters", "hub"} if room == "rag" else set())
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for module in imports(tree):
        assert module.split(".")[0] not in set(ROOMS) - allowed, f"{path} imports {module}"
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)):
        for module in imports(function):
            assert module.split(".")[0] not in ROOMS, f"{path}: {function.name} imports {module} inside"


@pytest.mark.parametrize("name", ["requirements.lock", "models.lock", "extras.lock"])
def test_the_locks_hold_names_versions_and_hashes_only(name):
    for line in (ROOT / name).read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[a-z0-9._-]+==[^\s/@]+( ; [^/@]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line), line


def test_the_lock_covers_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = set(
        re.findall(r"^([a-z0-9._-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    )
    asked = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.split(r"[<>=\[ ;]", line)[0].lower().replace("_", "-") for line in asked}
    assert names <= locked, names - locked
    assert not {"torch", "ray", "pymilvus"} & locked


def test_every_room_is_packed():
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert setuptools["packages"]["find"]["include"] == [f"{room}*" for room in ROOMS]
    for folder in {path.parent for path in sources()}:
        assert (folder / "__init__.py").is_file(), folder


def test_ci_runs_the_readmes_test_command_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith(("#", "set ", "cd "))] == ["make test"]
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    return [line.split("#")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


def test_every_command_of_the_readme_exists():
    found = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) >= 6
    for command in found:
        words = command.split()
        if words[0] == "make":
            assert words[1] in targets
        else:
            assert words[0] == "python", command
            program = words[1:3] if words[1] == "-m" else words[1:2]
            program += words[3:4] if program[-1] == "rag" else []
            told = help_of(*program)
            for flag in (word for word in words if word.startswith("--")):
                assert flag in told, f"{command}: no {flag}"


@cache
def help_of(*program: str) -> str:
    """What a program says of itself."""
    done = subprocess.run([sys.executable, *program, "--help"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_converter_has_a_sample_and_its_help_an_example_that_works():
    names = [p.stem for p in (ROOT / "converters").glob("*.py") if not p.stem.startswith("_")]
    assert set(names) >= {"cuad", "contractnli", "maud", "privacyqa", "cpr", "table", "web", "legalbenchrag", "acord"}
    for name in names:
        assert (ROOT / "samples" / name / "README.md").is_file(), name


def test_the_base_install_needs_no_torch():
    code = "import sys, converters.cuad, evidence.show, hub.card; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
