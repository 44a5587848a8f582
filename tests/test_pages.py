"""The commands of README.md and docs/ run: every line of a ```bash block, page after page, in one working folder."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.evaluation.loopback import chat
from tests.evaluation.loopback import serving as rag_serving
from tests.rag.models import link_models

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    *(f"docs/{name}.md" for name in "evaluation report view draft vary statutes rag hub bakeoff scale".split()),
]
CONTRACTS = 3


def list_commands(page: str) -> list[list[str]]:
    """Return the words of each command of a page that this test can run: those of `exhibit` and of Python."""
    text = (ROOT / page).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    return [line for line in words if line and line[0] in ("exhibit", "python")]


def prepare(folder: Path) -> None:
    """Write the files that the pages use: the samples, a bundle, a run, and a folder of contracts."""
    (folder / "samples").symlink_to(ROOT / "samples")
    (folder / "contracts").mkdir()
    for path in sorted((ROOT / "training" / "lessons" / "documents").glob("*-*.md"))[:CONTRACTS]:
        shutil.copy(path, folder / "contracts" / f"{path.stem}.txt")
    run(["exhibit", "convert", "cuad", "--source", "samples/cuad", "--out", "datasets_out/cuad"], folder)
    run(["exhibit", "evaluate", "datasets_out/cuad", "--limit", "40", "--run-name", "demo"], folder)


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of a page in the folder."""
    if words[0] == "exhibit":
        words = [sys.executable, "-m", *words]
    else:
        words = [sys.executable, *(str(ROOT / word) if word.endswith(".py") else word for word in words[1:])]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_documentation_pages_commands_run_in_page_order(tmp_path):
    prepare(tmp_path)
    failed = []
    with rag_serving() as server:
        server.reply = lambda question: chat(
            "Not found in provided documents", [{"content": question, "file": "a.pdf"}]
        )
        for page in PAGES:
            for words in list_commands(page):
                line = [word.replace("http://localhost:8000/ask", server.url) for word in words]
                done = run(line, tmp_path)
                if done.returncode not in ((0, 1) if words[1] == "doctor" else (0,)):
                    failed.append(f"{page}: {shlex.join(words)}\n{done.stdout[-500:]}\n{done.stderr[-1500:]}")
    assert not failed, "\n\n".join(failed)


def test_documentation_pages_with_commands_are_all_tested():
    pages = ["README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
    tested = {*PAGES, *(f"docs/{name}.md" for name in ("tutorial", "extending", "converters"))}
    assert [page for page in pages if list_commands(page) and page not in tested] == []


TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
TEN = 10
MINUTES = 10
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", TUTORIAL, re.DOTALL) for line in block.splitlines()]


@pytest.mark.slow
def test_tutorial_commands_evaluate_ten_documents_without_browser(tmp_path):
    """Needs only the base install, without a browser."""
    (tmp_path / "contracts").mkdir()
    for path in sorted((ROOT / "training" / "lessons" / "documents").glob("*-*.md"))[:TEN]:
        shutil.copy(path, tmp_path / "contracts" / f"{path.stem}.txt")
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "sitecustomize.py").write_text("import sys\nsys.modules['playwright'] = None\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path / "hidden"), str(ROOT)])}
    before = os.times()
    with rag_serving() as server:
        server.reply = lambda question: chat("Not found in provided documents", [{"content": question, "file": "a.md"}])
        for line in COMMANDS[1:]:
            words = shlex.split(line.replace("http://localhost:8000/ask", server.url))
            done = subprocess.run(
                [sys.executable, "-m", *words], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode in (0, 1 if words[1] == "doctor" else 0), f"{line}\n{done.stdout}\n{done.stderr}"
    used = os.times()
    assert sum(used[2:4]) - sum(before[2:4]) < MINUTES * 60, "processor time exceeds the limit"
    assert "recall@10" in done.stdout and (tmp_path / "results" / "mine" / "report.html").is_file()


def test_tutorial_python_examples_run_and_write_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXHIBIT_CACHE", str(link_models(tmp_path / "cache")))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", TUTORIAL.partition("## From Python")[2], re.DOTALL):
        exec(compile(block, "docs/tutorial.md", "exec"), names)
    assert "nowhere: no such folder" in capsys.readouterr().out
    assert (tmp_path / "results" / "after" / "report.html").is_file()
