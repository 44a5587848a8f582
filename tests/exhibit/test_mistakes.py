"""Common mistakes: each gets one exact line that names the remedy, before any long work."""

from pathlib import Path

import pytest

from exhibit.__main__ import main
from tests.rag.bundles import write_bundle


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a bundle, documents without questions, an empty folder and unreadable documents."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    write_bundle(tmp_path / "datasets_out" / "leases")
    for name in ("contracts", "empty", "unreadable"):
        (tmp_path / name).mkdir()
    (tmp_path / "contracts" / "loan.txt").write_text("This is a loan.", encoding="utf-8")
    (tmp_path / "unreadable" / "a.pdf").write_bytes(b"%PDF-1.4 nothing")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            "evaluate contracts",
            "contracts: documents without questions (train.json); draft questions first: "
            "exhibit draft contracts --out datasets_out/contracts",
        ),
        ("evaluate datasets_out", "datasets_out: a folder with several bundles; name them as datasets_out/*"),
        ("evaluate datasets_out/leasse", "datasets_out/leasse: no such folder; did you mean datasets_out/leases?"),
        ("evaluate datasets_out/leases/train.json", "a file; name the bundle's folder, such as datasets_out/leases"),
        ("evaluate datasets_out/leases --metrics recal", "no metric 'recal' (did you mean recall?)"),
        ("evaluate datasets_out/leases --metrics recal@10", "no metric 'recal@10' (did you mean recall@10?)"),
        ("evaluate datasets_out/leases --set chunk_size=abc", "error: --set chunk_size=abc: Input should be a valid"),
        ("evaluate datasets_out/leases --where clause=Term", "(did you mean --where clause=term?)"),
        ("evaluate datasets_out/leases --where clause=tern", "(did you mean --where clause=term?)"),
        ("draft empty --out new", "empty: none of its 0 files can be read as a document; name a folder with documents"),
        ("draft unreadable --out new", "unreadable: none of its 1 documents can be read: a.pdf: damaged or "),
        ("check datasets_out/leases", "did you mean exhibit validate --documents?"),
        ("search contracts rent", "no index here (no manifest.json); build one: exhibit index DOCUMENTS --out con"),
        ("validate contracts/loan.txt --documents", "loan.txt: a file; name the bundle's folder, such as contracts"),
    ],
)
def test_common_mistake_prints_single_error_line_with_remedy(words, line, folder, capsys):
    assert main(words.split()) in (1, 2)
    shown = capsys.readouterr().err.splitlines()
    assert sum(row.startswith("error: ") for row in shown) == 1 and any(line in row for row in shown)


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("contracts", "contracts: documents without questions (train.json); draft questions first: exhibit draft c"),
        ("datasets_out/leases/train.json", "a file; name the bundle's folder, such as datasets_out/leases"),
    ],
)
def test_validate_prints_the_remedy_for_a_path_that_is_not_a_bundle(path, line, folder, capsys):
    assert main(["validate", path]) == 1
    shown = capsys.readouterr()
    assert line in shown.out + shown.err
