"""`doctor`: a missing requirement is reported and counts, an optional one does not, and no token is shown."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from exhibit import doctor
from exhibit.__main__ import main
from exhibit.doctor import Finding

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """A file that counts as an installed browser on every machine."""
    path = tmp_path / "chromium"
    path.touch()
    monkeypatch.setenv("EXHIBIT_BROWSER", str(path))
    return path


def found(capsys, *flags: str) -> tuple[int, dict[str, Finding]]:
    code = main(["doctor", "--json", *flags])
    record = json.loads(capsys.readouterr().out)
    assert record["ok"] is (code == 0)
    return code, {finding["name"]: Finding(**finding) for finding in record["findings"]}


def test_every_extra_is_explained():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(doctor.EXTRAS) == set(project["optional-dependencies"])


def test_extras_of_a_checkout_are_not_offered_to_who_installed_the_wheel(capsys, monkeypatch, tmp_path):
    wanted = {name: [doctor.Requirement("no-such-package")] for name in ("dev", "ocr", "train")}
    monkeypatch.setattr(doctor, "read_requirements", lambda: {"": [], **wanted})
    assert wanted.keys() <= found(capsys)[1].keys()
    monkeypatch.setattr(doctor, "_CHECKOUT", tmp_path / "pyproject.toml")
    assert found(capsys)[1].keys() & wanted.keys() == {"ocr"}


def test_what_is_here_is_well_and_tokens_are_not_shown(browser, capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HF_TOKEN", "hf_abcdefghijklmnop")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnop")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:word@127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    _, findings = found(capsys)
    main(["doctor"])
    shown = capsys.readouterr().out
    assert "abcdefghij" not in shown + str(findings) and "word@" not in shown + str(findings)
    assert findings["Hugging Face Hub"].detail == "present"
    assert findings["OpenAI-compatible server"].detail == "OPENAI_API_KEY is set"
    assert "HTTPS_PROXY" in findings["proxy"].detail and findings["offline"].detail == "by HF_HUB_OFFLINE"
    assert findings["browser"] == Finding("programs", "browser", "ok", str(browser))
    assert findings["base"].state == "ok" and findings["fonts"].state == "ok"
    assert "made when needed" in findings["exhibit (EXHIBIT_CACHE)"].detail


def test_something_needed_that_is_missing_is_exit_1(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_BROWSER", str(tmp_path / "gone"))
    code, findings = found(capsys)
    assert code == 1 and findings["browser"].state == "missing" and "EXHIBIT_BROWSER" in findings["browser"].detail


def test_a_cache_that_cannot_be_written_is_missing(browser, capsys, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "file"))
    code, findings = found(capsys)
    assert code == 1 and findings["exhibit (EXHIBIT_CACHE)"].state == "missing"


def test_a_package_that_is_missing_or_old_is_named(capsys, monkeypatch):
    wanted = {"": [doctor.Requirement("no-such-package>=1"), doctor.Requirement("pydantic>=999")]}
    extras = {"ocr": [doctor.Requirement("no-such-ocr")]}
    monkeypatch.setattr(doctor, "read_requirements", lambda: wanted | extras)
    code, findings = found(capsys)
    assert code == 1 and findings["no-such-package"].state == "missing"
    assert ">=999 is required" in findings["pydantic"].detail
    assert findings["ocr"].state == "absent" and "exhibit-rag[ocr]" in findings["ocr"].detail


# ---------------------------------------------------------------- what is said


WELL = [
    Finding("Python", "Python", "ok", "3.11.7"),
    Finding("Python", "exhibit-rag", "ok", "1.0"),
    Finding("programs", "OCR", "ok", "English"),
    Finding("tokens", "S3", "absent", "AWS_PROFILE not set"),
]


@pytest.mark.parametrize(
    ("more", "code", "last"),
    [
        ([], 0, ["everything that is required is present"]),
        (
            [Finding("programs", "LibreOffice", "absent", "no .doc"), Finding("programs", "fonts", "absent", "none")],
            0,
            ["missing, so that some files cannot be converted or read: LibreOffice, fonts; see above"],
        ),
        ([Finding("model", "MiniLM", "missing", "no weights")], 1, ["missing: MiniLM"]),
    ],
)
def test_findings_stand_under_their_groups_and_the_end_says_what_it_means(more, code, last, monkeypatch, capsys):
    monkeypatch.setattr(doctor, "examine", lambda: [*WELL, *more])
    assert main(["doctor"]) == code
    wide = max(len(finding.name) for finding in [*WELL, *more])
    lines = capsys.readouterr().out.splitlines()
    assert lines[:7] == [
        "Python",
        f"  ok       {'Python':<{wide}}  3.11.7",
        f"  ok       {'exhibit-rag':<{wide}}  1.0",
        "programs",
        f"  ok       {'OCR':<{wide}}  English",
        "tokens",
        f"  absent   {'S3':<{wide}}  AWS_PROFILE not set",
    ]
    assert lines[-2:] == ["", *last]


def test_python_is_asked_for_as_the_project_says(browser, capsys, monkeypatch):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">={'.'.join(map(str, doctor.OLDEST))}"
    assert found(capsys)[1]["Python"].state == "ok"
    monkeypatch.setattr(doctor, "OLDEST", (99, 0))
    code, findings = found(capsys)
    assert code == 1 and findings["Python"].state == "missing" and "or later is required" in findings["Python"].detail


def test_programs_that_are_not_here_say_what_gives_them(capsys, monkeypatch):
    monkeypatch.setattr("exhibit.converters.pages.chromium.find_browser", lambda: None)
    monkeypatch.setattr("exhibit.evidence.readers.libreoffice.find_command", lambda: None)
    engines = SimpleNamespace(missing=lambda language: f"no program for {language}")
    monkeypatch.setattr(doctor, "load_plugin", lambda package, name: (engines, None))
    monkeypatch.setattr("exhibit.models.network.find_here", lambda file: None)
    code, findings = found(capsys)
    assert code == 1 and findings["browser"].state == "missing" and "no Chromium" in findings["browser"].detail
    assert findings["LibreOffice"].state == "absent" and ".doc, .rtf" in findings["LibreOffice"].detail
    assert findings["OCR"].state == "absent" and findings["OCR"].detail.startswith("no program for en")
    assert findings["all-MiniLM-L6-v2"].state == "missing" and "downloads 86 MB" in findings["all-MiniLM-L6-v2"].detail
    monkeypatch.setattr("exhibit.converters.pages.chromium.HERE", False)
    monkeypatch.setattr("exhibit.evidence.readers.libreoffice.find_command", lambda: "/opt/soffice")
    monkeypatch.setattr("exhibit.models.network.find_here", lambda file: Path("here"))
    monkeypatch.setattr("exhibit.models.network.find_graph_path", lambda variant: Path("/nowhere"))
    engines.missing = lambda language: ""
    _, findings = found(capsys)
    assert findings["browser"].state == findings["fonts"].state == "absent"
    assert findings["LibreOffice"] == Finding("programs", "LibreOffice", "ok", "/opt/soffice")
    assert findings["OCR"].state == "ok" and findings["OCR"].detail.startswith("English by ")
    assert findings["all-MiniLM-L6-v2"].detail == "the weights are present; the first run builds the graph"


def test_nothing_is_set_and_no_folder_is_there(browser, capsys, monkeypatch, tmp_path):
    for name in ("OPENAI_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "HF_ENDPOINT", *doctor._OFFLINE):
        monkeypatch.delenv(name, raising=False)
    for name in doctor._PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.get_token", lambda: None)
    _, findings = found(capsys)
    assert findings["proxy"].detail == "no proxy variable is set; no request was sent"
    assert findings["offline"].detail == "no" and findings["Hub"].detail == "the usual address"
    assert findings["S3"] == Finding("tokens", "S3", "absent", "AWS_ACCESS_KEY_ID and AWS_PROFILE not set")
    assert findings["Hugging Face Hub"].state == "absent"
    assert re.fullmatch(rf"{tmp_path}, \d+\.\d GB free", findings["exhibit (EXHIBIT_CACHE)"].detail)
    monkeypatch.setenv("AWS_PROFILE", "work")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    _, findings = found(capsys)
    assert findings["S3"] == Finding("tokens", "S3", "ok", "AWS_PROFILE is set")
    assert findings["proxy"].detail.startswith("HTTPS_PROXY set; ") and findings["offline"].detail == "no"


def test_fix_installs_the_named_parts_and_stops_at_the_first_failure(monkeypatch, capsys):
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
    [("browser", "exhibit.converters.pages.chromium"), ("model", "exhibit.models.embedders.legal")],
)
def test_fix_calls_the_installer_of_a_part(part, module, monkeypatch):
    asked: list[object] = []
    monkeypatch.setattr(f"{module}.main", lambda *given: asked.append(given) or 0)
    assert main(["doctor", "--fix", part]) == 0 and asked == [()]
