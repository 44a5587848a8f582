"""The doctor: what is missing is said and counts, what is optional does not, and no token is shown."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from exhibit import doctor
from exhibit.__main__ import main
from exhibit.doctor import Finding

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """A browser that is there, wherever the tests run."""
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
    assert set(doctor.GIVES) == set(project["optional-dependencies"])


def test_extras_of_a_checkout_are_not_offered_to_who_installed_the_wheel(capsys, monkeypatch, tmp_path):
    wanted = {name: [doctor.Requirement("no-such-package")] for name in ("dev", "ocr", "train")}
    monkeypatch.setattr(doctor, "requirements", lambda: {"": [], **wanted})
    assert wanted.keys() <= found(capsys)[1].keys()
    monkeypatch.setattr(doctor, "_CHECKOUT", tmp_path / "pyproject.toml")
    assert found(capsys)[1].keys() & wanted.keys() == {"ocr"}


def test_every_package_of_the_base_install_has_its_reason():
    told = (ROOT / "docs" / "parts.md").read_text(encoding="utf-8")
    names = [requirement.name for requirement in doctor.requirements()[""]]
    assert len(names) > 20 and [name for name in names if name not in told] == []
    assert all(
        requirement.name in told for requirement in doctor.requirements()["print"] if "noto" not in requirement.name
    )


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
    assert findings["Hugging Face Hub"].told == "present"
    assert findings["OpenAI-compatible server"].told == "OPENAI_API_KEY is set"
    assert "HTTPS_PROXY" in findings["proxy"].told and findings["offline"].told == "by HF_HUB_OFFLINE"
    assert findings["browser"] == Finding("programs", "browser", "ok", str(browser))
    assert findings["base"].state == "ok" and findings["fonts"].state == "ok"
    assert "made when needed" in findings["exhibit (EXHIBIT_CACHE)"].told


def test_something_needed_that_is_missing_is_exit_1(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_BROWSER", str(tmp_path / "gone"))
    code, findings = found(capsys)
    assert code == 1 and findings["browser"].state == "missing" and "EXHIBIT_BROWSER" in findings["browser"].told


def test_a_cache_that_cannot_be_written_is_missing(browser, capsys, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "file"))
    code, findings = found(capsys)
    assert code == 1 and findings["exhibit (EXHIBIT_CACHE)"].state == "missing"


def test_a_package_that_is_missing_or_old_is_named(capsys, monkeypatch):
    wanted = {"": [doctor.Requirement("no-such-package>=1"), doctor.Requirement("pydantic>=999")]}
    extras = {"ocr": [doctor.Requirement("no-such-ocr")]}
    monkeypatch.setattr(doctor, "requirements", lambda: wanted | extras)
    code, findings = found(capsys)
    assert code == 1 and findings["no-such-package"].state == "missing"
    assert ">=999 is needed" in findings["pydantic"].told
    assert findings["ocr"].state == "absent" and "exhibit-rag[ocr]" in findings["ocr"].told
