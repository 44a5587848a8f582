"""Parts of converters on their own: questions in SQuAD's form, laws and questions on them, pages, files of a folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from argparse import Namespace
from datetime import date
from pathlib import Path

import pytest

from exhibit.converters import Quote, RawDocument, Tally, cuad, squad, statutes
from exhibit.converters.benchmark import Block, Item
from exhibit.converters.fetching.download import FetchError, PageReply, Policy, flaw_of, is_public
from exhibit.converters.fetching.fetch import FetchedStore, UrlLine, corpus_names, filename_of, policy_from, report
from exhibit.converters.printing.press import Press
from exhibit.converters.printing.text_pdf import pdf_of, printable
from exhibit.converters.raw.documents import Shelf, Texts, files_of, is_url, shown
from exhibit.converters.raw.laws import read_law
from exhibit.converters.raw.titles import pair_files
from exhibit.converters.steps.build import counts_of, gold_of
from exhibit.converters.steps.materialise import NOWHERE, QuotePlace, Task, materialise, place_of, tasks
from exhibit.engine import Limits
from exhibit.evidence import Document, locate
from exhibit.schemas.errors import DocumentError, SourceError
from exhibit.schemas.models import Context, Row
from tests.conversion import options_of

# ---------------------------------------------------------------- SQuAD's form


def read_squad(folder: Path, *articles: tuple[str, list[tuple[str, list[dict[str, object]]]]], documents=None):
    data = [
        {"title": title, "paragraphs": [{"context": context, "qas": qas} for context, qas in paragraphs]}
        for title, paragraphs in articles
    ]
    (folder / "s.json").write_text(json.dumps({"data": data}), encoding="utf-8")
    tally = Tally()
    flags = ["--documents", documents] if documents else []
    return squad.read(folder / "s.json", options_of(squad, "--source", folder, *flags), tally), tally


def asked(id: object, text: str = "rent", start: object = 4, **more: object) -> dict[str, object]:
    return {"id": id, "question": f"q{id}", "answers": [{"text": text, "answer_start": start}], **more}


TEXT = "The rent is due. The rent is 500."


def test_questions_are_numbered_by_their_ids_or_by_their_place(tmp_path):
    long, longer = "1" * 15, "1" * 16
    qas = [asked("7"), asked("x"), asked(2), asked(-3), asked("7"), asked(long), asked(longer), asked(3)]
    read, _ = read_squad(tmp_path, ("Lease", [(TEXT, qas)]))
    assert [row.id for row in read.rows] == [7, 1, 2, 3, 4, int(long), 6, 8], "the next that is free, where it is taken"
    assert [row.labels.get("source_id") for row in read.rows] == [None, "x", None, "-3", "7", None, longer, "3"]
    assert read.rows[0].name == "question 7" and [item.name for item in read.rows[1].items] == ["1: question x"]
    assert list(read.sha256) == ["s.json"]


def test_a_row_without_question_or_answer_is_counted_and_never_renumbers(tmp_path):
    silent = {"id": "b", "question": " "}
    bare = {"id": "c", "question": "q", "answers": [{"text": " "}]}
    never = {"id": "d", "question": "q", "is_impossible": True, "answers": [{"text": "rent"}]}
    read, tally = read_squad(tmp_path, ("Lease", [(TEXT, [asked("a"), silent, bare, never, asked("e")])]))
    assert [(row.id, row.is_impossible, len(row.quotes)) for row in read.rows] == [
        (0, False, 1), (3, True, 0), (4, False, 1)
    ]  # fmt: skip
    assert read.rows[1].answer == "" and read.rows[0].answer == "rent"
    assert tally.left_out == {
        "question without words": ["question b"],
        "question without an answer that is not marked impossible": ["question c"],
    }


def test_an_answer_at_several_places_is_one_passage(tmp_path):
    answers = [
        {"text": "rent", "answer_start": 21}, {"text": "rent", "answer_start": 4}, {"text": "rent", "answer_start": 21},
        {"text": "due", "answer_start": 3}, {"text": "500", "answer_start": None},
    ]  # fmt: skip
    read, tally = read_squad(tmp_path, ("Lease", [(TEXT, [{"id": 1, "question": "q", "answers": answers}])]))
    places = [(quote.text, quote.spans, quote.alternatives) for quote in read.rows[0].quotes]
    assert places == [("rent", ((21, 25),), (((4, 8),),)), ("due", (), ()), ("500", (), ())]
    assert tally.noted == {"answer that does not stand at its offset: located by its words": ["question 1"] * 2}


def test_files_are_named_by_titles_that_tell_them_apart(tmp_path):
    one = [(TEXT, [])]
    read, _ = read_squad(
        tmp_path, ("A lease: of 1999.pdf", one), ("Deed", [*one, *one]), ("deed 1", one), ("", one), ("w" * 90, one)
    )
    assert [raw.filename for raw in read.documents] == [
        "A_lease_of_1999.pdf", "Deed_1_0001.pdf", "Deed_2.pdf", "deed_1_0003.pdf", "context_0004.pdf", "w" * 80 + ".pdf"
    ]  # fmt: skip
    assert [raw.title for raw in read.documents][3:5] == ["deed 1", "context_0004"]
    assert [item.name for item in read.documents[4].items] == ["context 4: context_0004.pdf"]


def test_the_publisher_s_file_is_taken_where_there_is_one(tmp_path):
    folder = tmp_path / "pdfs"
    (folder / "in").mkdir(parents=True)
    with pytest.raises(SourceError, match="no PDFs in it"):
        read_squad(tmp_path, ("Lease", [(TEXT, [])]), documents=folder)
    (folder / "in" / "LEASE.PDF").write_bytes(b"%PDF-")
    read, _ = read_squad(tmp_path, ("lease", [(TEXT, [])]), ("deed", [(TEXT, [])]), documents=folder)
    assert [(raw.filename, raw.path) for raw in read.documents] == [
        ("LEASE.PDF", folder / "in" / "LEASE.PDF"), ("deed.pdf", None)
    ]  # fmt: skip


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(("wrong", "paired"), [(1, True), (2, True), (3, False)])
def test_two_letters_of_twenty_may_be_wrong(wrong, paired):
    name = "abcdefghij" * 2
    other = "x" * wrong + name[wrong:]
    found = pair_files([f"{name}.pdf"], [Path(f"{other}.pdf")])
    assert bool(found.files) is paired and found.missing == ([] if paired else [0])


def test_of_similar_names_the_nearest_is_meant():
    name = "abcdefghij" * 3
    near, far = f"x{name[1:]}.pdf", f"xy{name[2:]}.pdf"
    found = pair_files([f"{name}.pdf"], [Path(far), Path(near)])
    assert found.files == {0: Path(near)} and found.similar == [(f"{name}.pdf", near)]
    assert pair_files([f"{name}.pdf"], [Path(near), Path(f"y{name[1:]}.pdf")]).missing == [0], "two are as near"


# ---------------------------------------------------------------- a folder of contracts without contracts


def test_a_release_without_pdfs_is_refused(samples, tmp_path):
    source = tmp_path / "CUAD_v1"
    shutil.copytree(samples / "cuad" / "CUAD_v1", source, ignore=shutil.ignore_patterns("*.pdf", "*.PDF"))
    with pytest.raises(SourceError, match="full_contract_pdf: no PDF in it"):
        cuad.read(source, options_of(cuad, "--source", source), Tally())


# ---------------------------------------------------------------- laws


def law(*units: str, country: str = "cz", head: str = "# Zákon o molech") -> str:
    return f"---\ncountry: {country}\n---\n{head}\n\n" + "\n".join(units)


def unit(number: object, words: str) -> str:
    return f"### § {number}\n\n{words}\n"


def laws(folder: Path, **editions: str):
    for name, text in editions.items():
        place, _, day = name.partition("_")
        (folder / place).mkdir(exist_ok=True)
        (folder / place / f"{day.replace('_', '-')}.md").write_text(text, encoding="utf-8")
    return lambda most: statutes.read(folder, Namespace(since=None, as_of=None, questions=most, ask_in=None), Tally())


@pytest.mark.parametrize("most", [1, 2, 3, 4, 7])
def test_so_many_questions_of_each_kind_are_asked(tmp_path, most):
    words = "Obec vede seznam všech mol a lodí v přístavu podle § {}."
    old = law(
        *(unit(n, words.format(n % 9 + 1)) for n in range(1, 10)), *(unit(n, words.format(1)) for n in range(11, 20))
    )
    new = law(*(unit(n, words.format(n % 9 + 1)) for n in range(1, 10)))
    rows = laws(tmp_path, mola_2015_01_01=old, mola_2016_01_01=new)(most).rows
    kinds = {kind: [row for row in rows if row.labels["kind"] == kind] for kind in statutes.INFO.asked}
    counts = {kind: len(made) for kind, made in kinds.items()}
    assert counts["repealed"] == counts["leads"] == counts["says"] == counts["said"] == most
    assert counts["before"] == max(1, most // 3)
    assert all(row.is_impossible and row.answer == "" for row in (*kinds["repealed"], *kinds["before"]))
    assert {row.filename for row in kinds["repealed"]} == {"mola_2016-01-01.pdf"}
    days = sorted(str(row.labels["as_of"]) for row in kinds["before"])
    expected = [date.fromordinal(date(2015, 1, 1).toordinal() - 365 * (at + 1) - 30) for at in range(len(days))]
    assert days == sorted(day.isoformat() for day in expected)
    assert all(str(row.labels["as_of"]) > "2016-01-01" for row in kinds["repealed"])
    assert len({row.id for row in rows}) == len(rows)


def test_a_version_of_one_day_is_asked_about_on_it(tmp_path):
    words = unit(1, "Obec vede seznam všech mol a lodí v přístavu.")
    read = laws(tmp_path, mola_2015_01_01=law(words), mola_2015_01_02=law(words), mola_2015_01_04=law(words))
    said = {row.filename: row.labels["as_of"] for row in read(9).rows if row.labels["kind"] == "said"}
    assert said["mola_2015-01-01.pdf"] == "2015-01-01" and said["mola_2015-01-02.pdf"] == "2015-01-03"
    assert "2015-01-04" < str(said["mola_2015-01-04.pdf"]) < "2016-12-04"


def test_sixty_words_of_a_change_are_quoted(tmp_path):
    def changed(old: str, new: str) -> str:
        folder = tmp_path / hashlib.sha256(f"{old}|{new}".encode()).hexdigest()[:8]
        folder.mkdir()
        base = "Obec vede seznam všech mol a lodí v přístavu {} a také jejich majitelů {} vždy."
        texts = [law(unit(1, base.format(*one.split("|")))) for one in (old, new)]
        rows = laws(folder, mola_2015_01_01=texts[0], mola_2016_01_01=texts[1])(3).rows
        return next(row.answer for row in rows if row.labels["kind"] == "changed")

    words = " ".join(f"a{n}" for n in range(60))
    assert f"„{words}“" in changed("x|y", f"{words}|y") and f"„{words} …“" in changed("x|y", f"{words} a60|y")
    assert changed("x|y", f"{words}|z").count("„") == 3, "there is no room for a second piece; two were taken away"
    fewer = words.rpartition(" ")[0]
    assert "„z …“" in changed("x|y", f"{fewer}|z w") and "–" in changed("|y", "x|y")


def test_headings_of_a_law_are_labels_or_words():
    text = law(
        "## I. - Allgemeines\n", "### § 1 Begriff\n\nEin Hafen.\n", "## IV Ohne Punkt\n",
        "### § 2 und so weiter\n\nX.\n",
        "### Abschnitt\n", "### § 3\n\nY.\n", country="de", head="# Hafengesetz",
    )  # fmt: skip
    read = read_law(text)
    first = read.paragraphs[0]
    assert (first.label, first.title, first.path) == ("§ 1", "Begriff", ("I",))
    assert [one.label for one in read.paragraphs] == ["§ 1", "§ 3"], "words that go on in small letters are no title"


# ---------------------------------------------------------------- documents put into the corpus


def test_a_document_without_a_file_is_written_and_its_text_kept(tmp_path):
    (tmp_path / "texts").mkdir()
    raws = [RawDocument("a.txt", "A", text="The rent\r\nis due."), RawDocument("b.html", "B", html="<p>Due.</p>")]
    quote = Quote("a.txt", "is due.")
    with Press(Limits()) as press:
        made = list(tasks(raws, {"a.txt": [quote]}, tmp_path, press=press, texts=tmp_path / "texts"))
    assert (tmp_path / "a.txt").read_bytes() == b"The rent\r\nis due." and press.printers == set()
    assert (tmp_path / "b.html").read_text(encoding="utf-8") == "<p>Due.</p>"
    assert [(task.quotes, task.path, task.text) for task in made] == [
        ((quote,), tmp_path / "a.txt", tmp_path / "texts" / "a.txt"),
        ((), tmp_path / "b.html", tmp_path / "texts" / "b.html"),
    ]  # fmt: skip
    done = materialise(made[0])
    assert done.entry.pages is None and done.places[quote].spans and done.sent is None
    assert (tmp_path / "texts" / "a.txt").read_text(encoding="utf-8").startswith("The rent")
    fault = DocumentError("torn")
    with pytest.raises(DocumentError, match="torn"):
        materialise(Task(raws[0], (), tmp_path / "a.txt", tmp_path / "a.txt", fault))


def test_places_have_pages_spans_and_alternatives():
    document = Document("a.txt", "The rent is due. The rent is due.")
    found = place_of(locate("The rent is due.", document), document)
    assert found == QuotePlace([], [(0, 16)], [[(17, 33)]], "exact", 1.0) and place_of([], document) == NOWHERE


def test_contexts_are_counted_by_how_they_were_located():
    rows = [
        Row(id=1, question="q", answer="a", is_impossible=False,
            contexts=[Context(filename="a", text="x"), Context(filename="b", text=None)]),
        Row(id=2, question="q", answer="a", is_impossible=True, contexts=[]),
    ]  # fmt: skip
    exact = QuotePlace([1], [(0, 1)], [], "exact", 1.0)
    gold = [gold_of(1, 0, "a", exact, {}), gold_of(1, 1, "b", NOWHERE, {}), gold_of(2, None, "a", NOWHERE, {})]
    counts = counts_of(rows, gold, documents=3, hows=["exact", "absent"])
    assert (counts.documents, counts.questions, counts.answerable, counts.impossible, counts.contexts) == (
        3,
        2,
        1,
        1,
        2,
    )
    assert counts.located == {"exact": 1, "absent": 0} and counts_of(rows, gold, documents=3, hows=[]).located == {
        "exact": 1
    }  # fmt: skip


# ---------------------------------------------------------------- printing


def test_what_has_nothing_to_draw_is_a_space_and_the_title_stands_in_the_file():
    assert printable("a\r\nb\rc\x00d\u200be\ue000f") == "a\nb\nc d e f"
    data = pdf_of([Block("p", "x")], title="A Lease")
    assert b"A Lease" in data and b"exhibit-rag" in data and b"/Count 1" in data
    assert b"/Count 2" in pdf_of([Block("pre", "x\fy")], title="T"), "a page ends where the filing's does"


# ---------------------------------------------------------------- pages of the web


def test_what_may_be_fetched():
    assert flaw_of("https://x.example/a") is None
    for url in ("ftp://x/a", "x", "http://", "http://x:99999/", "mailto:a@b"):
        assert flaw_of(url) == "not a web address"
    assert flaw_of("http://me:pw@x.example/a") == "a user name or password in the address"
    public = {
        "8.8.8.8": True, "10.0.0.1": False, "127.0.0.1": False, "224.0.0.1": False, "168.63.129.16": False,
        "192.0.0.1": False, "192.88.99.1": False, "2001:4860:4860::8888": True, "2001::1": False, "2002::1": False,
        "3fff::1": False, "::1": False, "fe80::1%eth0": False, "64:ff9b::808:808": True, "64:ff9b::a00:1": False,
        "4000::1": False, "ff0e::1": False,
    }  # fmt: skip
    assert {address: is_public(address) for address in public} == public


def test_a_reply_says_what_it_is():
    reply = PageReply("http://x/a/b.DOCX", 200, {"content-type": "Text/HTML; charset='latin-1'; x=1"}, "html", b"\xe9")
    assert (reply.declared, reply.text) == ("text/html", "é")
    assert PageReply("http://x/a.DOCX", 200, {}).suffix == ".docx" and PageReply("http://x/a", 200, {}).declared == ""
    error = FetchError("failed", "timed out", "after 3 s", status=504, wait=2.0, transient=True)
    assert str(error) == "timed out: after 3 s" and (error.status, error.wait, error.transient) == (504, 2.0, True)
    assert str(FetchError("failed", "gone")) == "gone" and not FetchError("failed", "gone").transient
    told = Policy()
    assert (told.per_host, told.delay, told.timeout, told.max_bytes, told.retries, told.backoff, told.pages) == (
        2, 0.5, 60.0, 100 << 20, 3, 1.0, 4
    )  # fmt: skip
    assert not (told.allow_private or told.ignore_robots or told.refetch)


def test_names_in_the_corpus_are_the_urls_own(tmp_path):
    assert filename_of("http://x/a/b.PDF") == "b.PDF" and filename_of("http://x/b#c") == "b#c.pdf"
    fits = "n" * 251
    assert filename_of(f"http://x/{fits}") == f"{fits}.pdf"
    for url, why in (
        ("http://x/", "no file name in it"), ("http://x/a#b/c", "its fragment holds a '/'"),
        (f"http://x/{fits}n", "its file name would have 256 bytes, more than the 255"),
    ):  # fmt: skip
        with pytest.raises(SourceError, match=why):
            filename_of(url)
    with pytest.raises(SourceError, match="http://x/a and http://y/a: both would be 'a.pdf'"):
        corpus_names(["http://x/a", "http://x/a", "http://y/a"])


def test_what_was_fetched_is_kept_while_it_is_whole(tmp_path):
    store = FetchedStore(tmp_path)
    line = UrlLine("http://x/a", "a.pdf", "pdf", status=200, note="ö")
    assert store.load("http://x/a", "a.pdf") is None
    saved = store.save(line, b"%PDF-1")
    assert (saved.bytes, saved.sha256) == (6, hashlib.sha256(b"%PDF-1").hexdigest()) and saved.path.is_file()
    assert store.load("http://x/a", "b.pdf") == UrlLine(
        "http://x/a", "b.pdf", "pdf", saved.path, status=200, bytes=6, sha256=saved.sha256, note="ö"
    )
    manifest = store.write_manifest([saved])
    [row] = [json.loads(text) for text in manifest.read_text(encoding="utf-8").splitlines()]
    assert row["note"] == "ö" and "path" not in row and "ö" in manifest.read_text(encoding="utf-8")
    assert store.write_manifest([saved, line]) != manifest
    saved.path.write_bytes(b"%PDF-2")
    assert store.load("http://x/a", "a.pdf") is None, "it was changed"


def test_urls_without_a_page_are_counted_for_each_row(tmp_path):
    rows = [Item("rows", "line 1"), Item("rows", "line 3")]
    tally = Tally()
    tally.take([*rows, Item("rows", "line 4")])
    fetched = {
        "u": UrlLine("u", "u.pdf", "failed", reason="gone", detail="404"),
        "v": UrlLine("v", "v.pdf", "disallowed", reason="robots"),
        "w": UrlLine("w", "w.pdf", "pdf", tmp_path, note="odd", detail="d"),
        "x": UrlLine("x", "x.pdf", "pdf", tmp_path),
    }
    report(fetched, tally, items={"u": rows, "v": [Item("rows", "line 4")]})
    assert tally.left_out == {"gone": ["u: 404", "u: 404"], "robots": ["v"]} and tally.noted == {"odd": ["w: d"]}
    strict = Tally(strict=True)
    report({"v": fetched["v"]}, strict)
    assert strict.left_out == {"robots": ["v"]}, "robots.txt is no fault"
    with pytest.raises(SourceError, match="--strict"):
        report({"u": fetched["u"]}, Tally(strict=True))


def test_pages_are_printed_four_at_a_time_or_more(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 9)
    assert policy_from(Namespace(jobs=6, delay=2.0, other=1)) == Policy(delay=2.0, pages=6)
    assert policy_from(Namespace(jobs=3)).pages == 4 and policy_from(Namespace(jobs=None)).pages == 9
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert policy_from(Namespace()).pages == 4


# ---------------------------------------------------------------- files of a folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "docs"
    (place / "in").mkdir(parents=True)
    for name, text in {
        "lease.txt": "The rent is due.", "deed.txt": "The deed is done.", "in/deed.txt": "Another deed.",
        "a-long-name-of-a-contract.txt": "The fish is fresh.", "odd.xyz": "x", "real.bin": "%PDF-1.4",
    }.items():  # fmt: skip
        (place / name).write_text(text, encoding="utf-8")
    return place


def shelf(folder: Path | None, table: Path, **more) -> Shelf:
    return Shelf(table, folder, **{"as_pdf": False, "policy": Policy(), **more})


def test_names_of_a_table_are_tied_to_files_of_the_folder(folder, tmp_path):
    tally = Tally()
    place = shelf(folder, tmp_path / "t.csv")
    names = ["lease.txt", "in/deed.txt", "LEASE", "a-long-name-of-a-contrast.txt", "gone.txt", "odd.xyz", "real.bin"]
    found = place.find(names, tally)
    assert {name: raw.path.relative_to(folder).as_posix() for name, raw in found.items()} == {
        "lease.txt": "lease.txt", "in/deed.txt": "in/deed.txt", "LEASE": "lease.txt",
        "a-long-name-of-a-contrast.txt": "a-long-name-of-a-contract.txt", "real.bin": "real.bin",
    }  # fmt: skip
    assert place.lost["gone.txt"] == ("document is not in the folder", "") and place.lost["odd.xyz"][0]
    assert found["real.bin"].filename == "real.bin.pdf", "what it is tells its first bytes"
    [note] = tally.noted["document paired with a file of a similar name"]
    assert note == "a-long-name-of-a-contrast.txt -> a-long-name-of-a-contract.txt"


def test_a_document_is_printed_where_pdfs_are_asked_for(folder, tmp_path):
    found = shelf(folder, tmp_path / "t.csv", as_pdf=True).find(["lease.txt", "real.bin"], Tally())
    lease, real = found["lease.txt"], found["real.bin"]
    assert (lease.filename, lease.path, lease.original) == ("lease.txt.pdf", None, folder / "lease.txt")
    assert (real.filename, real.path, real.original) == ("real.bin.pdf", folder / "real.bin", None)
    assert lease.title == "lease"


def test_files_that_nobody_asked_about_are_taken_or_left_out(folder, tmp_path):
    def others(*, take: bool, limited: bool = False):
        tally = Tally()
        place = shelf(folder, tmp_path / "t.csv")
        found = place.find(["lease.txt"], tally)
        return list(place.find_others(found, take=take, limited=limited, tally=tally)), tally.left_out

    taken, left = others(take=True)
    assert taken == ["a-long-name-of-a-contract.txt", "deed.txt", "real.bin"]
    assert sorted(name for names in left.values() for name in names) == ["in/deed.txt", "odd.xyz: .xyz"]
    for take, limited in ((False, False), (True, True)):
        none, left = others(take=take, limited=limited)
        assert none == [] and sum(map(len, left.values())) == 5
    assert others(take=True, limited=True)[1].keys() != others(take=False)[1].keys()


def test_without_a_folder_names_are_paths_from_the_table(folder, tmp_path):
    place = shelf(None, folder / "t.csv")
    found = place.find(["lease.txt", "in/deed.txt", "../t.txt", "gone.txt", "a\0b", "n" * 5000], Tally())
    assert list(found) == ["lease.txt", "in/deed.txt"]
    assert [place.lost[name][0].partition(";")[0] for name in ("../t.txt", "gone.txt", "a\0b", "n" * 5000)] == [
        "path leads out of the table's folder", "no such file", *["no name that a file can have"] * 2
    ]  # fmt: skip
    with pytest.raises(SourceError, match=r"deed.txt and in/deed.txt: both would be 'deed.txt'"):
        shelf(None, folder / "t.csv").find(["deed.txt", "in/deed.txt"], Tally())
    assert is_url("https://x/a") and not is_url("a/https://x")


def test_a_folder_must_hold_something_to_read(tmp_path):
    with pytest.raises(SourceError, match="no such folder; --documents takes the folder"):
        files_of(tmp_path / "none")
    (tmp_path / "a.xyz").write_text("x", encoding="utf-8")
    with pytest.raises(SourceError, match="no documents in it that can be read; 1 other files"):
        files_of(tmp_path)
    long = "n" * 500
    assert shown("short") == "short" and shown(long).endswith("…") and len(shown(long)) < 500


def test_passages_are_looked_for_in_all_documents(folder, tmp_path):
    texts = Texts(shelf(folder, tmp_path / "t.csv"))
    assert texts.holders("THE RENT is\ndue.") == ["lease.txt"] and texts.holders("deed") == ["deed.txt", "in/deed.txt"]
    assert texts.holders("") == texts.holders("nowhere to be found") == []
