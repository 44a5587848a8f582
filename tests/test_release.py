"""The files of a release exist, state the same version, and their workflows run the Makefile's targets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from exhibit.schemas import __version__

ROOT = Path(__file__).parent.parent
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path | str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_targets_of_the_makefile_and_nothing_else(path):
    workflow = yaml.safe_load(read(path))
    assert workflow["name"] == path.stem and workflow[True], "YAML reads `on` as true"
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    ran = [step["run"] for step in steps if "run" in step]
    for command in ran:
        assert command.startswith("make ") and set(command.split()[1:]) <= TARGETS, command
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step["uses"]) for step in steps if "uses" in step)
    for name, job in workflow["jobs"].items():
        assert set(job.get("needs", "").split()) <= set(workflow["jobs"]), name
        assert job["runs-on"].startswith(("ubuntu", "${{ matrix."))


def test_every_system_and_version_that_is_promised_is_checked():
    jobs = yaml.safe_load(read(".github/workflows/check.yml"))["jobs"]
    promised = re.findall(r"Python :: (3\.\d+)", read("pyproject.toml"))
    assert jobs["linux"]["strategy"]["matrix"]["python"] == promised == ["3.11", "3.12", "3.13"]
    assert {"macos-latest", "windows-latest"} == set(jobs["portable"]["strategy"]["matrix"]["system"])
    publish = yaml.safe_load(read(".github/workflows/publish.yml"))
    assert publish[True]["push"]["tags"] == ["v*"]
    assert publish["jobs"]["index"]["permissions"] == {"id-token": "write"}, "trusted publishing: no token"


def test_the_version_stands_in_one_place_and_the_papers_agree():
    assert tomllib.loads(read("pyproject.toml"))["project"]["dynamic"] == ["version"]
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == __version__ and citation["cff-version"] == "1.2.0" and citation["authors"]
    sections = re.findall(r"^## (.+)$", read("CHANGELOG.md"), re.MULTILINE)
    released = f"{__version__} ({citation['date-released']})"
    if sections[0] == "Unreleased":  # the version that is being prepared
        assert f"What will be {__version__}: " in read("CHANGELOG.md")
    else:
        assert sections[0] == released
    assert all(re.fullmatch(r"Unreleased|\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", section) for section in sections)


def test_no_page_promises_a_package_that_no_index_has():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "bench" / "results").glob("*.md")]
    assert [page.name for page in pages if re.search(r"pip install exhibit-rag\b(?!\[)", read(page))] == []
    start = re.findall(r"```bash\n(.*?)```", read("README.md"), re.DOTALL)[0]
    assert [line.split("#")[0].strip() for line in start.splitlines()] == ["make demo", "make test"]


def test_forms_and_hooks_can_be_read():
    for form in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")):
        told = yaml.safe_load(read(form))
        assert form.stem == "config" or {"name", "description", "body"} <= set(told)
    hooks = yaml.safe_load(read(".pre-commit-config.yaml"))["repos"][0]["hooks"]
    assert all(hook["entry"].startswith(".venv/bin/python -m ") for hook in hooks)
    for name in ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", ".github/pull_request_template.md"):
        assert len(read(name).split()) > 30
