"""Refreshing gold reports changed web pages and affected questions, and writes no file."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from exhibit.converters import web
from exhibit.converters.pages.fetch import Policy
from exhibit.converters.web import CHANGED, list_changes
from exhibit.evidence import read_document
from tests.converters.site import Site, serve
from tests.evidence import files
from tests.hub.bundles import files_of
from tests.rag.bundles import gold_line, row

FLAGS = ("--allow-private", "--delay", "0")
FEE = "The fee for an appeal is forty pounds."
TIME = "An appeal is made within ten days of the order."


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    root = tmp_path / "site"
    root.mkdir()
    (root / "fees.pdf").write_bytes(files.pdf(f"{FEE} Cheques are not taken."))
    (root / "time.pdf").write_bytes(files.pdf(TIME))
    (root / "seal.pdf").write_bytes(files.pdf("The seal is kept by the clerk."))
    with serve(root) as running:
        yield running


@pytest.fixture
def bundle(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A corpus fetched from the site, with three questions."""
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    (tmp_path / "urls.txt").write_text("".join(f"{site.url}/{n}.pdf\n" for n in ("fees", "time", "seal")), "utf-8")
    folder = tmp_path / "bundle"
    assert web.run(["--source", str(tmp_path / "urls.txt"), "--out", str(folder), *FLAGS, "--jobs", "1"]) == 0
    asked = [("fees.pdf", FEE), ("time.pdf", TIME), ("fees.pdf", "Cheques are not taken.")]
    rows, gold = [], []
    for id, (name, quote) in enumerate(asked):
        start = read_document(folder / "corpus" / name).text.index(quote)
        rows.append(row(id, "?", quote, {"filename": name, "text": quote}, is_impossible=False))
        gold.append({**gold_line(id, 0, name, [[start, start + len(quote)]], {}), "pages": [1]})
    (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    (folder / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in gold), encoding="utf-8")
    return folder


def test_refresh_reports_questions_of_changed_and_missing_pages(site, bundle, tmp_path, capsys):
    capsys.readouterr()
    assert web.run(["--refresh", str(bundle), *FLAGS]) == 0
    assert capsys.readouterr().out == ("3 pages: 3 unchanged, 0 changed, 0 gone\n")
    (site.root / "fees.pdf").write_bytes(
        files.pdf("The fee for an appeal is fifty-five pounds. Cheques are not taken.")
    )
    (site.root / "time.pdf").unlink()
    before = files_of(tmp_path)
    assert web.run([f"--refresh={bundle}", *FLAGS]) == CHANGED == 4
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"changed: fees.pdf ({site.url}/fees.pdf)",
        f"  - {FEE}",
        "  + The fee for an appeal is fifty-five pounds.",
        f"  question 0: its gold is no longer on the page: {FEE}",
        f"gone: time.pdf ({site.url}/time.pdf)",
        "  HTTP 404 not found",
        f"  question 1: its gold is no longer on the page: {TIME}",
        "3 pages: 1 unchanged, 1 changed, 1 gone",
    ]
    assert files_of(tmp_path) == before, "--refresh must write no file"


def test_refresh_reports_an_unreachable_page_as_unknown(bundle, monkeypatch, capsys):
    monkeypatch.setattr("exhibit.converters.pages.fetch.read_policy", lambda options: Policy(delay=0, retries=0))
    assert web.run(["--refresh", str(bundle)]) == 1  # without --allow-private, no request is sent to this machine
    out = capsys.readouterr().out
    assert out.count("unknown: ") == 3 and "0 gone, 3 could not be fetched" in out


@pytest.mark.parametrize(
    ("old", "new", "changes"),
    [
        ("One day. Two days.", "One day.\nTwo\ndays.", []),
        ("The first rule. The second rule.", "The second rule. The first rule.", []),
        ("The fee is 40 pounds.", "The fee is 55 pounds.", ["- The fee is 40 pounds.", "+ The fee is 55 pounds."]),
    ],
)
def test_list_changes_returns_removed_and_added_sentences(old, new, changes):
    assert list(list_changes(old, new)) == changes
