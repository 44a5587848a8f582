"""A folder from other people contains symbolic links with the names that we use.

No command deletes or writes the files that the links point to.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evaluate_rag import main as evaluate
from exhibit.conversion import main as convert
from exhibit.rag.__main__ import main as rag
from exhibit.viewer.results import main as results
from tests.rag.bundles import write_bundle

pytestmark = pytest.mark.slow

NAMES = ("{}.partial", ".{}.partial", ".{}.0123456789abcdef.partial", "{}.old", ".{}.partial.lock")
"""Names that were or might be ours, of a folder that is made."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of files that must not change."""
    folder = tmp_path / "home"
    (folder / "corpus").mkdir(parents=True)
    for name in ("thesis.doc", "train.json", "manifest.json", "i0.js", "corpus/a.pdf"):
        (folder / name).write_text("mine", encoding="utf-8")
    return folder


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.rglob("*") if path.is_file()}


def prepare(parent: Path, name: str, home: Path) -> None:
    parent.mkdir(parents=True, exist_ok=True)
    for pattern in NAMES[:-1]:
        (parent / pattern.format(name)).symlink_to(home)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sent")
    flags = ["--run-name", "r", "--embedder", "hashing", "--engine", "serial", "--report-cases", "0"]
    bundle = write_bundle(folder / "supply")
    assert evaluate(["--dataset-paths", str(bundle), "--output-dir", str(folder / "results"), *flags]) == 0
    return folder / "results" / "r"


def test_a_report_and_a_comparison_delete_nothing_that_a_link_leads_to(finished, home, tmp_path):
    before = content(home)
    runs = [tmp_path / "runs" / name for name in ("one", "two")]
    for run in runs:
        shutil.copytree(finished, run)
        prepare(run, "report_files", home)
    assert results(["report", str(runs[0]), "--pages", "none"]) == 0
    prepare(tmp_path / "page", "compare_files", home)
    assert (
        results(["compare", *map(str, runs), "--out", str(tmp_path / "page" / "compare.html"), "--pages", "none"]) == 0
    )
    assert content(home) == before and (tmp_path / "page" / "compare.html").is_file()


def test_a_conversion_and_an_index_delete_nothing_that_a_link_leads_to(samples, home, tmp_path):
    before = content(home)
    prepare(tmp_path / "out", "bundle", home)
    flags = ["--source", str(samples / "squad"), "--engine", "serial"]
    assert convert(["squad", *flags, "--out", str(tmp_path / "out" / "bundle")]) == 0
    prepare(tmp_path / "out", "index", home)
    documents = str(write_bundle(tmp_path / "supply") / "corpus")
    words = [
        "index",
        documents,
        "--out",
        str(tmp_path / "out" / "index"),
        "--embedder",
        "hashing",
        "--engine",
        "serial",
    ]
    assert rag(words) == 0 and rag([*words, "--force"]) == 0
    assert content(home) == before
