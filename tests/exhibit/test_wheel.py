"""The wheel works anywhere: built from the sdist, installed into an empty environment, used from an empty folder."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.hub.conftest import hub, hub_env  # noqa: F401 - fixtures

ROOT = Path(__file__).parent.parent.parent
MOST = 6_000_000
"""The most bytes of the wheel without the files in LATER; every user downloads it, and it contains fonts."""
LATER = ("exhibit/models/", "exhibit/samples/")
MOST_LATER = 19_000_000
"""The most bytes of the models' weights and the samples: the whole wheel has at most 25 MB."""

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist, and the wheel that was built from it."""
    tree = tmp_path_factory.mktemp("tree")
    for room in ("exhibit", "samples"):
        shutil.copytree(ROOT / room, tree / room, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copyfile(ROOT / name, tree / name)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", tree / "dist", tree, cwd=tree)
    return tree / "dist"


@pytest.fixture
def programs(dist: Path, tmp_path: Path) -> Path:
    """The program folder of a virtual environment with the wheel and its dependencies, without this checkout.

    EXHIBIT_WHEEL_PYTHON names another Python, whose environment has the wheel's dependencies.
    """
    base = os.environ.get("EXHIBIT_WHEEL_PYTHON") or sys.executable
    place = tmp_path / "venv"
    run(base, "-m", "venv", "--without-pip", place, cwd=tmp_path)
    folder = place / ("Scripts" if os.name == "nt" else "bin")
    python = folder / "python"
    packages = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    listed = run(base, "-c", "import sys; print(*sys.path, sep='\\n')", cwd=tmp_path).splitlines()
    shared = [path for path in listed if path.endswith("site-packages")]
    (Path(packages) / "shared.pth").write_text("\n".join(shared) + "\n", encoding="utf-8")
    [wheel] = dist.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", "-q"]
    run(*pip, "--disable-pip-version-check", wheel, cwd=tmp_path)
    return folder


def test_wheel_is_small_and_contains_all_modules_below_exhibit(dist):
    [wheel] = dist.glob("*.whl")
    [sdist] = dist.glob("*.tar.gz")
    packed = {info.filename: info.compress_size for info in zipfile.ZipFile(wheel).infolist()}
    later = sum(size for name, size in packed.items() if name.startswith(LATER))
    assert 0 < later < MOST_LATER
    assert wheel.stat().st_size - later < MOST and sdist.stat().st_size - later < MOST
    names = set(zipfile.ZipFile(wheel).namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"exhibit"}, "no other top-level package"
    assert "exhibit/samples/cuad/CUAD_v1/master_clauses.csv" in names, "`exhibit demo` converts this sample"
    assert "exhibit/py.typed" in names
    kinds = (".py", ".j2", ".css", ".js", ".toml", ".json", ".safetensors")
    for path in (ROOT / "exhibit").rglob("*"):
        if path.is_file() and (path.suffix in kinds or "_typefaces" in path.parts):
            assert path.relative_to(ROOT).as_posix() in names


MODULES = ("exhibit", "schemas", "rag", "evaluation")


@pytest.mark.parametrize("order", [MODULES, MODULES[::-1]], ids=["exhibit first", "exhibit last"])
def test_user_modules_stay_importable_after_installation_of_the_wheel(programs, order, tmp_path):
    folder = tmp_path / "mine"
    for name in ("rag", "evaluation"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text("MINE = True", encoding="utf-8")
    (folder / "schemas.py").write_text("MINE = True", encoding="utf-8")
    code = f"import {', '.join(order)}\nimport exhibit.rag, exhibit.evaluation.metrics, sys\n"
    code += "assert schemas.MINE and rag.MINE and evaluation.MINE and not hasattr(exhibit.rag, 'MINE')\n"
    code += "print(exhibit.load, exhibit.schemas.__file__, sum('exhibit' in path for path in sys.path))"
    output = run(programs / "python", "-c", code, cwd=folder)
    assert str(programs.parent) in output and output.split()[-1] == "0", "the wheel must not change sys.path"


def test_installed_wheel_converts_evaluates_and_publishes_from_empty_folder(programs, hub, hub_env, tmp_path):  # noqa: F811
    folder = tmp_path / "empty"
    folder.mkdir()
    shutil.copytree(ROOT / "samples" / "cuad", folder / "source")
    env = {name: value for name, value in hub_env.items() if name != "PYTHONPATH"}
    env |= {"EXHIBIT_CACHE": str(tmp_path / "cache"), "HF_TOKEN": hub.token("me")}

    def exhibit(*words: object) -> str:
        return run(programs / "exhibit", *words, cwd=folder, env=env)

    assert exhibit("--version").startswith("exhibit ")
    exhibit("convert", "cuad", "--source", "source", "--out", "cuad", "--max-documents", "1", "--jobs", "1")
    assert "cuad: sound" in exhibit("validate", "cuad")
    asked = ["--embedder", "hashing", "--limit", "4", "--report-cases", "1", "--run-name", "r", "--jobs", "2"]
    exhibit("evaluate", "--dataset-paths", "cuad", *asked)
    assert "<html" in (folder / "results" / "r" / "report.html").read_text(encoding="utf-8")
    exhibit("publish", "cuad", "--repo-id", "me/cuad-rag")
    assert hub.files("me/cuad-rag")["train.json"] == (folder / "cuad" / "train.json").read_bytes()
    doctor = [programs / "exhibit", "doctor", "--json"]
    shown = subprocess.run(doctor, cwd=folder, env=env, capture_output=True, encoding="utf-8").stdout
    assert '"base"' in shown, "doctor reads packages from the metadata of the wheel"
