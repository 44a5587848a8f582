"""The project's own rules: layers, two commands, and a lock file that installs on any machine."""

from __future__ import annotations

import ast
import io
import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import pytest

from exhibit.commands import VERBS

ROOT = Path(__file__).parent.parent
PRODUCT = ROOT / "exhibit"
FLOORS = (
    ("schemas",), ("runtime",), ("storage",), ("engine",), ("evidence",), ("law",), ("models",),
    ("hub", "converters", "rag"), ("draft", "vary"), ("evaluation",), ("viewer",), ("exhibit",),
)  # fmt: skip
"""From the ground up: a room may import from the floors below its own, never from a room beside it."""
ROOMS = tuple(room for floor in FLOORS for room in floor)
BESIDE = {("converters", "exhibit.hub.card")}
"""The one door between two rooms of a floor: a converter writes the card of its bundle."""
LARGEST = 0.30
"""Share of the product's lines that one room may hold: above it, a room holds more than one thing."""


def sources() -> list[Path]:
    return sorted(PRODUCT.rglob("*.py"))


def room_of(path: Path) -> str:
    """Return the top-level folder of the product that a file is in; `exhibit` for files directly in the package."""
    return path.relative_to(PRODUCT).parts[0] if path.parent != PRODUCT else "exhibit"


class Import(NamedTuple):
    """An import statement: the module, the imported names, and the enclosing function, if any."""

    module: str
    names: tuple[str, ...]
    function: str | None


@cache
def imports(path: Path) -> list[Import]:
    """Return the imports of a file; cached, because parsing takes time."""
    found: list[Import] = []

    def visit(node: ast.AST, function: str | None) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, (), function) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(Import(node.module, tuple(alias.name for alias in node.names), function))
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.Module | ast.match_case):  # no import is in another
            name = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else function
            for child in ast.iter_child_nodes(node):
                visit(child, name)

    visit(ast.parse(path.read_text(encoding="utf-8")), None)
    return found


def floor_of(room: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if room in floor)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_room_imports_only_from_rooms_below_it(path):
    room = room_of(path)
    for module, _, function in imports(path):
        top, _, rest = module.partition(".")
        other = rest.split(".")[0] if top == "exhibit" and rest.split(".")[0] in ROOMS else top
        assert top == "exhibit" or top not in ROOMS, f"{path} imports {module}: its name is exhibit.{module}"
        if other in ROOMS and other != room and (room, module) not in BESIDE and module != "exhibit":
            assert floor_of(other) < floor_of(room), f"{path} imports {module}"
        assert function is None or other not in ROOMS, f"{path}: {function} imports {module} inside"


@cache
def graph() -> dict[str, set[str]]:
    """Return which module of the product imports which."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sources()}
    modules = {name.removesuffix(".__init__"): path for name, path in names.items()}
    arrows: dict[str, set[str]] = {}
    for name, path in modules.items():
        arrows[name] = set()
        for module, names, _ in imports(path):
            wanted = {f"{module}.{part}" for part in names} or {module}
            arrows[name] |= {w if w in modules else module for w in wanted} & modules.keys()
    return arrows


def test_no_imports_run_in_a_circle():
    arrows, done = graph(), set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join([*way, name])
        if name not in done:
            for other in sorted(arrows[name] - {name}):
                visit(other, (*way, name))
            done.add(name)

    for name in arrows:
        visit(name, ())
    assert len(done) == len(sources())


def _room_named(module: str) -> str:
    folder = (*module.split("."), "")[1]
    return folder if folder in ROOMS else "exhibit"


def assert_below(importer: str, imported: str) -> None:
    """Assert that a module imports only from its own folder or from a lower layer."""
    room, other = _room_named(importer), _room_named(imported)
    allowed = room == other or imported == "exhibit" or (room, imported) in BESIDE or floor_of(other) < floor_of(room)
    assert allowed, f"{importer} imports {imported}"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_names_a_module_of_a_room_above_it(path):
    """A string such as `import_module("exhibit.viewer.page")` counts as an import too."""
    importer = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.rstrip(".")
            if re.fullmatch(r"exhibit(\.\w+)+", name) and any(
                (ROOT / Path(*name.split("."))).with_suffix(ending).exists() for ending in ("", ".py")
            ):
                assert_below(importer, name)


RECORDING = """
import builtins, importlib, pkgutil, sys
arrows, plain, by_name = set(), builtins.__import__, importlib.import_module
def hooked(name, globals=None, locals=None, fromlist=(), level=0):
    importer = (globals or {}).get("__name__", "")
    for part in fromlist or ():
        arrows.add((importer, f"{name}.{part}"))
    arrows.add((importer, name))
    return plain(name, globals, locals, fromlist, level)
def hooked_by_name(name, package=None):
    arrows.add((sys._getframe(1).f_globals["__name__"], name))
    return by_name(name, package)
builtins.__import__, importlib.import_module = hooked, hooked_by_name
import exhibit
for module in pkgutil.walk_packages(exhibit.__path__, "exhibit."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except Exception as error:
            print("not imported", module.name, type(error).__name__, file=sys.stderr)
from exhibit.__main__ import main
folder = sys.argv[1]
codes = [
    main(["convert", "cuad", "--source", "samples/cuad", "--out", f"{folder}/cuad", "--engine", "serial"]),
    main(["evaluate", "--dataset-paths", f"{folder}/cuad", "--preset", "bm25", "--limit", "2", "--jobs", "1",
          "--output-dir", f"{folder}/runs"]),
]
print(codes, file=sys.stderr)
known = {name for name in sys.modules if name.split(".")[0] == "exhibit"}
for importer, imported in sorted(arrows):
    if importer in known and imported in known:
        print(importer, imported)
"""


BY_DATA = {
    "exhibit.runtime.plugins": "a part is loaded by the name that a user gives",
    "exhibit.engine.worker": "unpickles what it is sent, wherever its class stands",
}
"""Modules that import what their input names, and how."""


def test_layers_hold_for_what_is_imported_while_a_bundle_is_converted_and_evaluated(tmp_path):
    """The whole product is imported, and two commands are run, with every import recorded."""
    run = subprocess.run(
        [sys.executable, "-c", RECORDING, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, encoding="utf-8"
    )
    assert "[0, 0]" in run.stderr, run.stderr
    arrows = [line.split() for line in run.stdout.splitlines() if line.startswith("exhibit.")]
    assert len(arrows) > 1000 and ["exhibit.evaluation.evaluate", "exhibit.evaluation.targets"] in arrows
    for importer, imported in arrows:
        if importer not in BY_DATA:
            assert_below(importer, imported)


def test_no_room_holds_more_than_its_share():
    lines = dict.fromkeys(ROOMS, 0)
    for path in sources():
        lines[room_of(path)] += len(path.read_text(encoding="utf-8").splitlines())
    assert {room: count for room, count in lines.items() if count > LARGEST * sum(lines.values())} == {}


def test_the_pipeline_is_known_to_the_evaluation_only_as_a_target():
    doors = {
        name
        for name, arrows in graph().items()
        if name.startswith("exhibit.evaluation") and any(arrow.startswith("exhibit.rag.") for arrow in arrows)
    }
    # the command and the catalogue, because every setting of the pipeline can be set there
    known = {
        "exhibit.evaluation.answering",
        "exhibit.evaluation.catalogue",
        "exhibit.evaluation.targets.builtin",
        "exhibit.evaluation.settings",
        "exhibit.evaluation.target_protocol",
        "exhibit.evaluation.command",
    }
    assert doors == known, doors


def test_an_editor_resolves_every_import_of_a_fresh_checkout(tmp_path):
    """pyright resolves each module and name in a copy of the files, with nothing installed from it."""
    for folder in ("exhibit", "converters", "rag", "schemas"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("evaluate_rag.py", "score.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    files = ["evaluate_rag.py", "score.py", "exhibit/converters/cuad.py", "exhibit/viewer/report.py"]
    looked = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, *files]
    done = subprocess.run(looked, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    report = json.loads(done.stdout)
    rules = {"reportMissingImports", "reportUndefinedVariable"}
    missing = [one for one in report["generalDiagnostics"] if one.get("rule") in rules]
    assert report["summary"]["filesAnalyzed"] == len(files) and missing == []


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


def test_every_folder_of_code_is_a_package_and_every_room_has_its_floor():
    assert {room_of(path) for path in sources()} == set(ROOMS)
    for folder in {path.parent for path in sources()}:
        assert (folder / "__init__.py").is_file(), folder


def test_the_doors_at_the_top_lead_into_the_package_and_hold_nothing_else():
    """`python -m converters.cuad` works in a checkout; no other package takes a common top-level name."""
    doors = {path.parent.name for path in ROOT.glob("*/__init__.py") if path.parent.name in ROOMS}
    assert doors == {"converters", "schemas", "rag", "exhibit"}
    for name in doors - {"exhibit"}:
        assert [path.name for path in (ROOT / name).iterdir() if path.name != "__pycache__"] == ["__init__.py"]
        lines = (ROOT / name / "__init__.py").read_text(encoding="utf-8").splitlines()
        assert len(lines) == 3 and lines[-1] == f"from exhibit.{name} import __path__ as __path__"


def test_nothing_changes_where_modules_are_looked_for():
    """Except in a worker, which uses the search path of the process that started it."""
    changing = re.compile(r"sys\.path(\[|\.\w+\(| =)|__path__(\.| =)")
    files = {path for path in sources() if changing.search(path.read_text(encoding="utf-8"))}
    assert files == {PRODUCT / "engine" / "worker.py"}


def test_ci_runs_make_check_and_nothing_else():
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line and not line.startswith(("#", "set ", "cd "))] == ["make check"]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^check: lint test\b", makefile, re.MULTILINE)
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    blocks = re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    return [line.split("#")[0].strip() for block in blocks for line in block.splitlines() if line.strip()]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_every_command_of_the_readme_exists():
    found = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) >= 6
    for command in found:
        words = command.split()
        if words[0] == "make":
            assert words[1] in targets
        elif words[0] == "exhibit":
            assert words[1] in VERBS
        elif words[0] != "pip":
            assert words[0] == "python", command
            program = words[1:3] if words[1] == "-m" else words[1:2]
            program += words[3:4] if program[-1] == "rag" else []
            told = help_of(*program)
            for flag in (word for word in words if word.startswith("--")):
                assert flag in told, f"{command}: no {flag}"


@cache
def help_of(*program: str) -> str:
    """Return a program's help text, run in this process because most programs import the same modules."""
    name, *words = program[program[0] == "-m" :]
    told = io.StringIO()
    with patch.object(sys, "argv", [name, *words, "--help"]), redirect_stdout(told), pytest.raises(SystemExit) as end:
        if program[0] == "-m":
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(str(ROOT / name), run_name="__main__")
    assert not end.value.code
    return told.getvalue()


def test_every_converter_has_a_sample_and_its_help_an_example_that_works():
    names = [p.stem for p in (PRODUCT / "converters").glob("*.py") if not p.stem.startswith("_")]
    assert set(names) >= {"cuad", "contractnli", "maud", "privacyqa", "cpr", "table", "web", "legalbenchrag", "acord"}
    for name in names:
        assert (ROOT / "samples" / name / "README.md").is_file(), name


def test_a_process_imports_what_it_uses_and_the_base_install_needs_no_torch():
    """Every command and every worker pays for what it imports: these took a third of a second of each."""
    code = """
import sys
def told(*packages):
    print(*(name for name in packages if name in sys.modules), sep=" ", end="|")
import exhibit.engine.worker, exhibit.evidence
told("pydantic", "pypdf")
import exhibit.converters.cuad
told("pydantic", "playwright.sync_api", "pypdf", "httpx")
import exhibit.evidence.show, exhibit.hub.card
told("torch")
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.split("|") == ["", "pydantic", "", ""]
