"""Files of a release: choosing the right file, checking tables and JSON, and the limits of archives."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from exhibit.converters import Item, Tally
from exhibit.converters.cuad import INFO
from exhibit.converters.fetching.download import Policy
from exhibit.converters.fetching.fetch import FetchedStore, UrlLine, filename_of, make_corpus_names, report
from exhibit.converters.raw import source
from exhibit.converters.raw.source import (
    find_one,
    key_by_name,
    open_source,
    read_csv,
    read_json,
    refuse_pointer,
    unpack,
)
from exhibit.schemas.errors import SourceError


def test_the_one_file_of_a_name_is_found_at_the_top_or_further_down(tmp_path):
    (tmp_path / "deep" / "__MACOSX").mkdir(parents=True)
    for name in ("deep/a.csv", "deep/__MACOSX/a.csv", "b.csv"):
        (tmp_path / name).write_text("x", encoding="utf-8")
    assert find_one(tmp_path, INFO, "a.csv") == tmp_path / "deep" / "a.csv"
    assert find_one(tmp_path, INFO, "none.csv", "*.csv") == tmp_path / "b.csv", "the top comes first"
    assert find_one(tmp_path / "b.csv", INFO, "a.csv") == tmp_path / "b.csv"
    (tmp_path / "c.csv").write_text("x", encoding="utf-8")
    with pytest.raises(SourceError, match=r"several \*\.csv: .*b\.csv and .*c\.csv"):
        find_one(tmp_path, INFO, "*.csv")
    with pytest.raises(SourceError, match="no none in it; expected .*, from https://"):
        find_one(tmp_path, INFO, "none")


def table(text: str, *wanted: str) -> list[dict[str, str]]:
    return read_csv(Path("t.csv"), text.encode(), wanted, INFO)


def test_a_table_of_a_release_has_its_columns_and_as_many_cells_in_each_row():
    assert table("\ufeff a ,b\n1,2\n\n3,4\n", "a", "b") == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    long = "x" * 200_000
    assert table(f"a\n{long}\n")[0]["a"] == long
    for text, wanted, why in (
        ("a,b\n", (), "no rows"),
        ("a,b\n1,2\n", ("c", "d"), r"no column 'c' \(2 missing\); is this "),
        ("a,b\n1,2\n3\n", (), "record 3 has 1 fields, but the header has 2"),
        ('a,b\n"1,2\n', (), "not a CSV file in UTF-8"),
    ):
        with pytest.raises(SourceError, match=why):
            table(text, *wanted)
    with pytest.raises(SourceError, match="not a CSV file in UTF-8"):
        read_csv(Path("t.csv"), b"a\n\xff\n", (), INFO)


def test_json_of_a_release_has_its_list():
    assert read_json(Path("t.json"), b'\xef\xbb\xbf{"rows": []}', INFO, lists="rows") == {"rows": []}
    for data, why in (
        (b"{", "not JSON"),
        (b"[]", "no list under the key 'rows'"),
        (b'{"rows": 3}', "no list under the key 'rows'"),
    ):
        with pytest.raises(SourceError, match=why):
            read_json(Path("t.json"), data, INFO, lists="rows")


def test_files_of_one_name_and_pointers_are_refused():
    assert key_by_name([Path("a/x"), Path("a/x"), Path("b/y")]) == {"x": Path("a/x"), "y": Path("b/y")}
    with pytest.raises(SourceError, match="two files named 'x': a/x and b/x"):
        key_by_name([Path("a/x"), Path("b/x")])
    refuse_pointer(Path("x"), b"data", INFO)
    with pytest.raises(SourceError, match="a Git LFS pointer"):
        refuse_pointer(Path("x"), b"version https://git-lfs.github.com/spec/v1", INFO)


def packed(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        for name in names:
            file.writestr(name, b"x")
    return path


def test_names_in_an_archive_are_as_long_as_a_file_system_takes(tmp_path):
    unpack(packed(tmp_path / "a.zip", "n" * 255, "d/" + "m" * 255), tmp_path / "out")
    assert len(list((tmp_path / "out").rglob("*"))) == 3
    with pytest.raises(SourceError, match="is not a valid file name"):
        unpack(packed(tmp_path / "b.zip", "d/" + "n" * 256), tmp_path / "out")
    with pytest.raises(SourceError, match="'A' and 'a' are the same file name on many systems"):
        unpack(packed(tmp_path / "c.zip", "A", "a"), tmp_path / "out")


def test_as_many_parts_and_bytes_as_are_allowed_are_unpacked(tmp_path, monkeypatch):
    path = packed(tmp_path / "a.zip", "a", "b")
    monkeypatch.setattr(source, "MAX_FILES", 2)
    monkeypatch.setattr(source, "MAX_BYTES", 2)
    unpack(path, tmp_path / "out")
    assert sorted(one.name for one in (tmp_path / "out").iterdir()) == ["a", "b"]


def test_a_source_is_a_folder_a_file_of_its_kind_or_an_archive(tmp_path):
    with open_source(INFO, tmp_path) as folder:
        assert folder == tmp_path
    with open_source(INFO, packed(tmp_path / "a.zip", "x.txt")) as folder:
        assert [path.name for path in folder.iterdir()] == ["x.txt"]


# ---------------------------------------------------------------- what was fetched


def test_what_was_fetched_is_kept_with_its_record_and_known_while_it_is_whole(tmp_path):
    store = FetchedStore(tmp_path)
    url = "http://x/a#b"
    saved = store.save(UrlLine(url, "a#b.pdf", "pdf", status=200, note="n"), b"data")
    assert (saved.bytes, saved.path.read_bytes()) == (4, b"data")
    kept = store.load(url, "other.pdf")
    assert kept is not None and (kept.filename, kept.note, kept.status) == ("other.pdf", "n", 200)
    assert store.load("http://x/a", "a.pdf") is None
    saved.path.write_bytes(b"torn")
    assert store.load(url, "a.pdf") is None
    manifest = store.write_manifest([saved])
    assert manifest.name.startswith("manifest-") and len(manifest.read_text(encoding="utf-8").splitlines()) == 1
    assert '"path"' not in manifest.read_text(encoding="utf-8")


def test_a_name_in_the_corpus_has_255_bytes_at_the_most():
    assert (
        len(filename_of("http://x/" + "n" * 251)) == 255 and len(filename_of("http://x/" + "n" * 251 + ".PDF")) == 255
    )
    for url, why in {
        "http://x/" + "n" * 252: "would have 256 bytes",
        "http://x/": "no file name in it",
        "http://x/a#b/c": "has a '/'",
    }.items():
        with pytest.raises(SourceError, match=why):
            filename_of(url)
    assert make_corpus_names(["http://x/a", "http://x/a", "http://y/b"]) == {
        "http://x/a": "a.pdf",
        "http://y/b": "b.pdf",
    }


def test_what_gave_no_pdf_is_counted_for_each_of_its_rows():
    tally = Tally()
    rows = [Item("rows", "row 1"), Item("rows", "row 2")]
    tally.take(rows)
    pages = {
        "http://x/a": UrlLine("http://x/a", "a", "failed", reason="timed out", detail="after 9 s"),
        "http://x/b": UrlLine("http://x/b", "b", "disallowed", reason="robots"),
        "http://x/c": UrlLine("http://x/c", "c", "pdf", path=Path("c"), note="odd"),
        "http://x/d": UrlLine("http://x/d", "d", "pdf", path=Path("d")),
    }
    report(pages, tally, items={"http://x/a": rows})
    assert tally.left_out == {"timed out": ["http://x/a: after 9 s"] * 2, "robots": ["http://x/b"]}
    assert tally.noted == {"odd": ["http://x/c"]}
    report({"b": pages["http://x/b"]}, Tally(strict=True))
    with pytest.raises(SourceError, match="timed out"):
        report({"a": pages["http://x/a"]}, Tally(strict=True))


def test_a_policy_is_polite_unless_told():
    assert Policy() == Policy(False, False, 2, 0.5, 60.0, 100 << 20, 3, 1.0, False, 4)
