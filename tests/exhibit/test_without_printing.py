"""The base install without Playwright: PDFs and texts are converted; if pages need printing, errors name the extra."""

import json
import os
from pathlib import Path

import pytest

from tests.commands import CommandResult, run_commands

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder to which the commands write; it contains contracts for drafting questions."""
    folder = tmp_path_factory.mktemp("without")
    (folder / "contracts").mkdir()
    (folder / "pages").mkdir()
    for name in ("contracts/lease.md", "contracts/loan.md", "contracts/will.txt", "pages/lease.md"):
        text = "COMMERCIAL LEASE\n\n1. Rent\n\nThe rent is due on the first day of each month.\n\n2. Governing Law\n\n"
        text += "This Lease is governed by the law of Norway.\n"
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def command_results(folder, samples, request) -> dict[str, CommandResult]:
    """The result of each command; neither the process of the commands nor its workers can import Playwright."""
    hidden = folder / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text("import sys\nsys.modules['playwright'] = None\n", encoding="utf-8")
    commands: dict[str, list[str]] = {}
    asked = [item for item in request.session.items if item.path == request.path and hasattr(item, "callspec")]
    for name in ("table", *(item.callspec.params["name"] for item in asked)):
        out = ["--out", str(folder / name), "--jobs", "1"]
        limit = [] if name == "table" else ["--max-documents", "1"]
        commands[name] = ["convert", name, "--source", str(samples / name), *out, *limit]
    commands["draft"] = ["draft", str(folder / "contracts"), "--out", str(folder / "mine"), "--jobs", "1"]
    if any(item.path == request.path and item.get_closest_marker("slow") for item in request.session.items):
        commands["pages alone"] = ["draft", str(folder / "pages"), "--out", str(folder / "none"), "--jobs", "1"]
        commands |= {"doctor": ["doctor"], "fix": ["doctor", "--fix", "browser"]}
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(hidden), str(ROOT)])}
    done = run_commands(folder, list(commands.values()), ROOT, environment)
    return dict(zip(commands, done, strict=True))


@pytest.mark.parametrize("name", ["cuad", "maud"])
@pytest.mark.slow
def test_convert_works_without_playwright_for_pdf_and_text_benchmarks(command_results, folder, name):
    assert command_results[name].code == 0, command_results[name].err
    assert (folder / name / "parquet" / "gold.parquet").is_file()


def test_convert_error_names_the_print_extra_when_pages_must_be_printed(command_results, folder):
    assert command_results["table"].code == 1 and not (folder / "table").exists()
    [line] = [line for line in command_results["table"].err.splitlines() if line.startswith("error: ")]
    assert "pip install 'exhibit-rag[print]', then exhibit doctor --fix browser" in line


def test_draft_without_browser_excludes_markdown_files_and_uses_text_files(command_results, folder):
    assert command_results["draft"].code == 0, command_results["draft"].err
    info = json.loads((folder / "mine/bundle.json").read_text(encoding="utf-8"))
    [names] = [names for reason, names in info["left_out"].items() if "exhibit-rag[print]" in reason]
    assert names == ["lease.md", "loan.md"]
    assert [path.name for path in (folder / "mine/corpus").iterdir()] == ["will.txt.pdf"]


@pytest.mark.slow
def test_draft_error_names_the_print_extra_when_no_document_can_be_printed(command_results):
    assert command_results["pages alone"].code == 1
    assert "lease.md" in command_results["pages alone"].err
    assert "exhibit-rag[print]" in command_results["pages alone"].err


@pytest.mark.slow
def test_doctor_reports_missing_printing_as_optional(command_results):
    shown = command_results["doctor"].out
    assert "absent   browser" in shown and "exhibit-rag[print]" in shown
    assert "missing  browser" not in shown
    assert command_results["fix"].code == 1 and "exhibit-rag[print]" in command_results["fix"].err
