"""docs/extending.md: its distribution is built and installed outside the project, and its commands are run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run_commands
from tests.rag.models import link_models

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"```(?:python|toml)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))
GROUPS = dict(re.findall(r"^\| [^|]+ \| `(exhibit\.[a-z]+)` \| (.*?) \|", PAGE, re.MULTILINE))


def write_files(folder: Path) -> None:
    """Write the folders `exhibit-leases` and `house` of the page into a folder."""
    [questions] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    house = {"house/faq.json": questions, "house/hearing.trn": "THE COURT\tPlease be seated.\n"}
    package = {f"exhibit-leases/{name}": text for name, text in FILES.items()}
    for name, text in {**package, "exhibit-leases/exhibit_leases/__init__.py": "", **house}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with the page's distribution, which is installed in its `site` folder, outside this environment."""
    folder = tmp_path_factory.mktemp("leases")
    write_files(folder)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    done = subprocess.run(
        [*pip, "--disable-pip-version-check", "--target", str(folder / "site"), str(folder / "exhibit-leases")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    link_models(folder / "cache")
    return folder


def exhibit(folder: Path, *commands: list[str], last: int = 0) -> list[str]:
    """Run commands in one process with the page's distribution; return the output of each.

    The last command must end with the exit code `last`, all others with 0.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder / "site"), str(ROOT)])}
    environment |= {"EXHIBIT_CACHE": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    lines = [(code, out + err) for code, out, err in run_commands(folder, commands, folder, environment)]
    assert [line[0] for line in lines] == [*[0] * (len(commands) - 1), last], lines
    return [line[1] for line in lines]


@pytest.mark.slow
def test_commands_on_page_extending_md_work_with_installed_plugins(installed):
    [block] = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    install, *commands = [shlex.split(line) for line in block.splitlines()]
    assert install == ["pip", "install", "./exhibit-leases"]
    said = exhibit(installed, *(words[1:] for words in commands))
    outputs = {" ".join(words[1:3]): output for words, output in zip(commands, said, strict=True)}
    assert re.search(r"^commas .* 1\.00", outputs["evaluate faq"], re.MULTILINE), outputs["evaluate faq"]
    assert "1 chunks" in outputs["index house/hearing.trn"]
    assert "THE COURT: Please be seated." in outputs["search index"]
    assert (installed / "pairs" / "pairs.csv").read_text(encoding="utf-8").startswith("When does the gate close?,")


@pytest.mark.slow
def test_broken_plugin_error_names_its_distribution(installed):
    wrong = ["evaluate", "faq", "--metrics", "comas"]
    own, all_of_them, message = exhibit(installed, ["convert", "faq", "--help"], ["convert", "--help"], wrong, last=1)
    assert "stamp" in own and "faq" in all_of_them and "commas" in message
    (installed / "site" / "exhibit_leases" / "commas.py").write_text("import nowhere_to_be_found", encoding="utf-8")
    [message] = exhibit(installed, ["evaluate", "faq", "--metrics", "commas"], last=1)
    assert "error: commas (exhibit.metrics) of exhibit-leases cannot be loaded" in message
    assert "uninstall exhibit-leases" in message and "Traceback" not in message
