"""Parts of converters: questions in SQuAD format, statutes and questions on them, pages, files of a folder."""

from __future__ import annotations

import hashlib
import json
import shutil
from argparse import Namespace
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from exhibit.converters import Quote, RawDocument, Tally, cuad, squad, statutes
from exhibit.converters.benchmark import Block
from exhibit.converters.civil_procedure.corpus import LONGEST_WHOLE, Corpus
from exhibit.converters.civil_procedure.layout import Layout, RuleHeading
from exhibit.converters.civil_procedure.layout_lines import SourceLine
from exhibit.converters.civil_procedure.names import read_citation, read_name
from exhibit.converters.civil_procedure.parsing import blocks_of
from exhibit.converters.civil_procedure.resolution import RowEvidence
from exhibit.converters.civil_procedure.sources import RulesFile, load
from exhibit.converters.fetching.download import FetchError, PageReply, Policy, flaw_of, is_public
from exhibit.converters.fetching.fetch import read_policy
from exhibit.converters.printing.press import PdfPrinter
from exhibit.converters.printing.text_pdf import make_printable, pdf_of
from exhibit.converters.raw.documents import Shelf, Texts, files_of, is_url, shorten_name
from exhibit.converters.raw.laws import read_law
from exhibit.converters.raw.maud_release import find_excerpts, read_cell, titles_of
from exhibit.converters.raw.titles import pair_files
from exhibit.converters.steps.build import counts_of, gold_of
from exhibit.converters.steps.cli import format_table, make_summary_rows
from exhibit.converters.steps.materialise import NOWHERE, QuotePlace, Task, make_tasks, materialise, place_of
from exhibit.engine import Limits
from exhibit.evidence import Document, locate
from exhibit.schemas.bundle import read_info as read_bundle_info
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
    with PdfPrinter(Limits()) as press:
        made = list(make_tasks(raws, {"a.txt": [quote]}, tmp_path, press=press, texts=tmp_path / "texts"))
    assert (tmp_path / "a.txt").read_bytes() == b"The rent\r\nis due."
    assert [task.printed for task in made] == [None, None]
    assert (tmp_path / "b.html").read_text(encoding="utf-8") == "<p>Due.</p>"
    assert [(task.quotes, task.path, task.text) for task in made] == [
        ((quote,), tmp_path / "a.txt", tmp_path / "texts" / "a.txt"),
        ((), tmp_path / "b.html", tmp_path / "texts" / "b.html"),
    ]  # fmt: skip
    done = materialise(made[0])
    assert done.entry.pages is None and done.places[quote].spans
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
    assert make_printable("a\r\nb\rc\x00d\u200be\ue000f") == "a\nb\nc d e f"
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
    error = FetchError("timed out", "after 3 s", fate="failed", status=504, wait=2.0, transient=True)
    assert str(error) == "timed out: after 3 s" and (error.status, error.wait, error.transient) == (504, 2.0, True)
    assert str(FetchError("gone", fate="failed")) == "gone" and not FetchError("gone", fate="failed").transient
    told = Policy()
    assert (told.per_host, told.delay, told.timeout, told.max_bytes, told.retries, told.backoff, told.pages) == (
        2, 0.5, 60.0, 100 << 20, 3, 1.0, 4
    )  # fmt: skip
    assert not (told.allow_private or told.ignore_robots or told.refetch)


def test_pages_are_printed_four_at_a_time_or_more(monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 9)
    assert read_policy(Namespace(jobs=6, delay=2.0, other=1)) == Policy(delay=2.0, pages=6)
    assert read_policy(Namespace(jobs=3)).pages == 4 and read_policy(Namespace(jobs=None)).pages == 9
    monkeypatch.setattr("os.cpu_count", lambda: None)
    assert read_policy(Namespace()).pages == 4


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
    with pytest.raises(SourceError, match="none of its 1 files can be read as a document"):
        files_of(tmp_path)
    long = "n" * 500
    assert shorten_name("short") == "short" and shorten_name(long).endswith("…") and len(shorten_name(long)) < 500


def test_passages_are_looked_for_in_all_documents(folder, tmp_path):
    texts = Texts(shelf(folder, tmp_path / "t.csv"))
    assert texts.find_holders("THE RENT is\ndue.") == ["lease.txt"] and texts.find_holders("deed") == [
        "deed.txt",
        "in/deed.txt",
    ]
    assert texts.find_holders("") == texts.find_holders("nowhere to be found") == []


# ---------------------------------------------------------------- flags of the laws


def test_languages_and_days_that_there_are_not_are_refused(tmp_path, capsys):
    told = options_of(
        statutes, "--source", tmp_path, "--ask-in", "en,cs", "--as-of", "2020-02-29", "--from", "2019-01-01"
    )
    assert (told.ask_in, told.as_of, told.since) == ("en,cs", "2020-02-29", "2019-01-01")
    for flag, value, why in (
        ("--ask-in", "en,xx,yy", "no questions in the language xx, yy; the languages are"),
        ("--as-of", "2021-02-29", "is not a day"),
    ):  # fmt: skip
        with pytest.raises(SystemExit):
            options_of(statutes, "--source", tmp_path, flag, value)
        assert why in capsys.readouterr().err


# ---------------------------------------------------------------- which document a citation means


def rules(title: str, kind: str, *paragraphs: str, names: tuple[str, ...] = (), path: Path | None = None) -> RulesFile:
    blocks = tuple(blocks_of(title, "\n\n".join(paragraphs)))
    raw = RawDocument(f"{title}.pdf", title, path, text="\n\n".join(block.text for block in blocks))
    return RulesFile(raw, (title, *names), kind, title, () if path else blocks)


def meant(sources: list[RulesFile], cited: str, **row) -> str:
    found = Corpus(sources).resolve(read_citation(cited), RowEvidence(**row))
    return found.source.raw.title if found.source else found.reason


BOTH = [
    rules("Part 3", "CPR", "Words of it.", "---", "Striking out a case", "The court may."),
    rules("Practice Direction 3", "PD", "Words of it.", "---", "Striking out a case", "The court shall."),
]


@pytest.mark.parametrize(
    ("said", "document"),
    [
        ("CPR", "Part 3"), ("Rules", "Part 3"), ("Parts", "Part 3"), ("PD", "Practice Direction 3"),
        ("the PDs", "Practice Direction 3"), ("Practice Directions", "Practice Direction 3"),
        ("CPR and PD", "names 2 documents: Part 3.pdf, Practice Direction 3.pdf"), ("", "names 2 documents"),
        ("Court Guides and CPR", "names 2 documents"),
    ],
)  # fmt: skip
def test_of_two_documents_with_one_heading_the_kind_that_a_row_is_about_is_meant(said, document):
    assert meant(BOTH, "Striking out a case", source_type=said).startswith(document)


def test_a_document_that_is_spoken_of_is_meant_and_a_title_alone_is_not_enough():
    assert meant(BOTH, "Striking out a case", prose="Under Part 3 the court may.") == "Part 3"
    assert meant(BOTH, "Striking out a case", prose="Under Part 31 the court may.").startswith("names 2 documents")
    assert "may be in Part 3.pdf, but nothing else speaks for it" in meant(BOTH[:1], "Striking out a case")
    assert meant(BOTH[:1], "Striking out a case", source_type="CPR") == "Part 3"
    long = rules("Part 4", "CPR", "Words.", "---", "Striking out a hopeless case early", "The court may.")
    assert meant([long], "Striking out a hopeless case early") == "Part 4", "a title of more than three words"
    assert (
        meant(BOTH, "Part 3, Striking out a case") == "Part 3" and meant(BOTH, "PD 3: Striking out a case") != "Part 3"
    )


@pytest.mark.parametrize(
    ("cited", "found"),
    [("Part 36 Offers Costs", True), ("Part 36 Offers Costs Fees", False), ("Part 37 Offers", False)],
)
def test_a_number_names_a_part_where_half_of_the_words_after_it_are_its_own(cited, found):
    source = rules("Part 36 – Offers to settle", "CPR", "Words.", names=("Part 36",))
    assert (meant([source], cited) == source.raw.title) is found


def test_a_heading_is_meant_rather_than_a_paragraph_of_the_same_number():
    corpus = paged(pages=4)
    [source] = corpus.sources
    layout = corpus.read_layout(source)
    name = read_name("4.2", loose=False)
    headings = [
        RuleHeading(line.start, line.end, name, 1, titled, page=line.page, until=line.end, last_page=line.page)
        for line, titled in zip(layout.lines, (False, True, False), strict=False)
    ]
    corpus._layouts[source.raw.filename] = replace(layout, headings=headings)
    place = corpus.resolve(read_citation("The Harbour Court Guide, 4.2"), RowEvidence()).place
    assert place is not None and place.page == 2


def paged(offset: int = 0, pages: int = 9) -> Corpus:
    lines, at = [], 0
    for page in range(1, pages + 1):
        text = f"Words of page {page}."
        lines.append(SourceLine(at, at + len(text), text, page))
        at += len(text) + 1
    source = rules("The Harbour Court Guide", "Court Guide", path=Path("x.pdf"))
    corpus = Corpus([source])
    corpus._layouts[source.raw.filename] = Layout("\n".join(line.text for line in lines), lines, (), offset=offset)
    return corpus


@pytest.mark.parametrize(
    ("cited", "first", "last"),
    [
        ("(p. 3)", 3, 3),
        ("(pp. 3-5)", 3, 5),
        ("(pp. 3-7)", 3, 7),
        ("(pp. 3-8)", 3, 7),
        ("(p. 9)", 9, 9),
        ("(p. 10)", 0, 0),
    ],
)
def test_cited_pages_of_a_guide_are_five_at_the_most(cited, first, last):
    place = paged().resolve(read_citation(f"The Harbour Court Guide {cited}"), RowEvidence()).place
    if not first:
        assert place is None
    else:
        assert place is not None and (place.page, place.heading) == (first, f"Words of page {first}.")
        assert place.text.endswith(f"Words of page {last}.")
    assert paged(offset=2).resolve(read_citation(f"The Harbour Court Guide {cited}"), RowEvidence()).place != place or (
        not first
    ), "printed numbers that are not the file's tell no place"


@pytest.mark.parametrize(("length", "place"), [(LONGEST_WHOLE, True), (LONGEST_WHOLE + 1, False)])
def test_a_document_of_ten_pages_is_a_place_as_a_whole(length, place):
    title = "Part 5"
    source = rules(title, "CPR", "w" * (length - len(title) - 2))
    found = Corpus([source]).resolve(read_citation(title), RowEvidence())
    assert found.source is not None and (found.place is not None) is place and found.score == 1.0


def test_several_citations_in_one_bracket_are_told_apart():
    corpus = Corpus(BOTH)

    def resolved(text: str):
        return [(one.text, found.how) for one, found in corpus.resolve_all(read_citation(text), RowEvidence())]

    assert resolved("Part 3; PD 3") == [("Part 3", "exact"), ("PD 3", resolved("PD 3")[0][1])]
    assert resolved("Part 3; nothing of it") == [("Part 3", "exact"), ("nothing of it", "unresolved")]
    assert resolved("nothing; of it") == [("nothing; of it", "unresolved")] and len(resolved("Part 3;")) == 1


# ---------------------------------------------------------------- exports


def test_documents_of_a_folder_are_loaded_each_once(tmp_path):
    long = "Part 7 " + "n" * 300
    files = {
        "a.json": [{"id": "Part 1", "content": "one"}, {"content": "nameless"}, {"id": long, "content": "long"}],
        "b.json": [{"id": "Part 1", "content": "one"}], "c.json": [{"id": "Part 1", "content": "other"}],
        "d.json": {"nothing": 1},
    }  # fmt: skip
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "note.md").write_text("a note", encoding="utf-8")
    (tmp_path / "e.json").write_text("{", encoding="utf-8")
    (tmp_path / "guide.html").write_text("<title>The Harbour Court Guide</title><p>Moor.</p>", encoding="utf-8")
    tally = Tally()
    sources, digest = load(tmp_path, Policy(), tally)
    assert [(one.raw.filename, one.kind) for one in sources] == [
        ("Part 1.pdf", "CPR"), (f"{long[:251]}.pdf", "CPR"), ("guide.pdf", "Court Guide")
    ]  # fmt: skip
    assert tally.left_out["JSON file that is no export of documents"] == ["d.json"]
    assert tally.left_out["export record without a document's name"] == ["a.json"]
    assert [name for names in tally.left_out.values() for name in names if name == "note.md"] == ["note.md"]
    assert tally.noted["document exported more than once, kept once"] == ["Part 1: a.json, b.json"]
    assert tally.noted["document exports of it differ, the first is kept"] == ["Part 1: a.json, c.json"]
    assert len(tally.noted["file name changed, as a file cannot be called that"]) == 1
    assert [item.name for item in sources[0].raw.items] == ["a.json", "b.json", "c.json"] and len(digest) == 64
    (tmp_path / "f.json").write_text(json.dumps([{"id": "PART 1", "content": "x"}]), encoding="utf-8")
    with pytest.raises(SourceError, match=r"two documents would be named 'P.* 1.pdf': a.json and f.json; remove one"):
        load(tmp_path, Policy(), Tally())
    none = tmp_path / "none"
    none.mkdir()
    with pytest.raises(SourceError, match="no document in it; expected JSON exports"):
        load(none, Policy(), Tally())
    (tmp_path / "urls.txt").write_text("# none\n\n", encoding="utf-8")
    with pytest.raises(SourceError, match="no URL in it; expected one on each line"):
        load(tmp_path / "urls.txt", Policy(), Tally())


# ---------------------------------------------------------------- the table that ends a conversion


def summary(converted_info, **counts):
    changed = converted_info.counts.model_copy(update=counts)
    return dict(make_summary_rows(converted_info.model_copy(update={"counts": changed}), 1.25))


def test_a_conversion_ends_with_what_was_made_and_left_out(converted):
    made = read_bundle_info(converted("squad") / "bundle.json")
    some = {"exact": 1998, "folded": 1, "absent": 1}
    rows = summary(made, documents=1234, questions=3000, answerable=2000, impossible=1000, contexts=2003, located=some)
    assert rows["documents"] == "1,234" and rows["  answerable"] == "2,000" and rows["time"] == "1.2 s"
    assert rows["files named without words"] == "3" and rows["gold passages"] == "2,000"
    assert rows["  located"] == "1,999  (99.95%)" and rows["    exact"] == "1,998" and rows["  not located"] == "1"
    none = summary(made, questions=0, contexts=0, located={})
    assert "  answerable" not in none and "gold passages" not in none and "files named without words" not in none
    left = made.model_copy(update={"left_out": {"odd": ["a", "b"]}, "noted": {"seen": ["c"]}})
    told = format_table(left, "out", 0.0)
    assert "left out: odd" in told and told.startswith(f"{made.title} -> out\n") and told.endswith("README.md")
    assert (
        dict(make_summary_rows(left, 0.0))["left out: odd"] == "2"
        and dict(make_summary_rows(left, 0.0))["noted: seen"] == "1"
    )
    account = made.account["rows"]
    given = f"{account.given:,}  = {account.kept:,} kept + {account.given - account.kept:,} left out"
    assert dict(make_summary_rows(left, 0.0))["rows given"] == given


# ---------------------------------------------------------------- merger agreements


@pytest.mark.parametrize(
    ("cell", "excerpts", "pages"),
    [
        ("The words. (Page 12)", ("The words.",), "Page 12"),
        ("One. (pages 3-4) <omitted> Two. (Page 5)", ("One.", "Two."), "pages 3-4; Page 5"),
        ("n/a", (), ""), (" - ", (), ""), ("Same. <omitted> Same.", ("Same.",), ""), ("(Page 12)", (), "Page 12"),
        ("See (Section 3)", ("See (Section 3)",), ""),
    ],
)  # fmt: skip
def test_a_cell_has_excerpts_and_the_pages_they_stand_on(cell, excerpts, pages):
    read = read_cell(cell)
    assert (read.excerpts, read.pages) == (excerpts, pages)


DEAL = "Heading one. First words stand here. Heading one. Second words stand here. Third words stand here."


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("Heading one. <omitted> Second words stand here.",
         [("Heading one.", 37, None), ("Second words stand here.", 50, 74)]),
        ("Heading one.", [("Heading one.", 0, None)]),
        ("First words stand here. <omitted> Third words stand here.",
         [("First words stand here.", 13, 36), ("Third words stand here.", 75, 98)]),
        ("Nobody said this at all. <omitted> First words stand here.",
         [("Nobody said this at all.", None, None), ("First words stand here.", 13, 36)]),
    ],
)  # fmt: skip
def test_of_several_places_the_order_of_the_excerpts_decides(cell, found):
    document = Document("a.txt", DEAL)
    excerpts = [
        (one.text, one.match and one.match.span.start, one.span and one.span.end)
        for one in find_excerpts(read_cell(cell), document)
    ]
    assert excerpts == found


TITLE = (
    "AGREEMENT AND PLAN OF MERGER\n\nby and among\n\n{}\n\nDated as of MAY 3, 2020\n\n"
    "Text of Oak Holdings, Inc. and so."
)


@pytest.mark.parametrize(
    ("parties", "title"),
    [
        (
            "OAK HOLDINGS, INC.\n\nand\n\nElm Ltd.",
            "Agreement and Plan of Merger between Oak Holdings, Inc. and Elm Ltd.",
        ),
        ("Oak\n\nElm\n\nBirch", "Agreement and Plan of Merger among Oak, Elm and Birch"),
        ("Oak\n\nElm\n\nBirch\n\nOak Merger Sub", "Agreement and Plan of Merger among Oak, Elm and Birch"),
        ("Oak\n\nElm\n\nOak Merger Sub", "Agreement and Plan of Merger among Oak, Elm and Oak Merger Sub"),
        ("Oak and Elm", "Agreement and Plan of Merger between Oak and Elm"),
        ("O" * 81 + "\n\nElm", "Agreement and Plan of Merger between Target and Buyer"),
        ("Oak", "Agreement and Plan of Merger between Target and Buyer"),
    ],
)
def test_an_agreement_is_called_by_its_parties_and_its_date(parties, title):
    plain, dated, named = titles_of(TITLE.format(parties), deal="Target_Buyer.pdf", stem="contract_1")
    assert plain == title and dated == f"{title} dated May 3, 2020" and named == f"{dated} (contract_1)"


def test_an_agreement_without_a_first_page_is_called_by_its_deal():
    assert list(titles_of("No title.", deal="The_big_deal.pdf | amended", stem="c")) == [
        "Merger Agreement of The big deal", "Merger Agreement of The big deal (c)"
    ]  # fmt: skip
    far = "x" * 2990 + " AGREEMENT AND PLAN OF MERGER"
    assert next(iter(titles_of(far, deal="A_B", stem="c"))) == "Merger Agreement between A and B"


# ---------------------------------------------------------------- evidence against evidence


@pytest.mark.parametrize(
    ("row", "document"),
    [
        ({"source_type": "CPR", "fields": ("Harbour Court",)}, "The Harbour Court Guide"),
        ({"fields": ("Harbour Court",), "prose": "Part 3 says so."}, "names 2 documents"),
        ({"prose": "Part 3 says so in the Harbour Court."}, "names 2 documents"),
        ({"source_type": "CPR", "prose": "It is so in the Harbour Court."}, "names 2 documents"),
        ({"source_type": "CPR", "prose": "Part 3 says so in the Harbour Court."}, "Part 3"),
        ({"fields": ("Harbour Court",)}, "The Harbour Court Guide"),
    ],
)
def test_two_kinds_of_evidence_outweigh_one_and_one_is_weighed_against_another(row, document):
    harbour = rules("The Harbour Court Guide", "Court Guide", "Words.", "---", "Striking out a case", "It may.")
    assert meant([BOTH[0], harbour], "Striking out a case", **row).startswith(document)


def nested(title: str, kind: str, above: str, below: str) -> tuple[RulesFile, Layout]:
    """A document with one heading below another."""
    lines, at = [], 0
    for text in (above, below, "Words of it."):
        lines.append(SourceLine(at, at + len(text), text, 1))
        at += len(text) + 1
    headings = [
        RuleHeading(line.start, line.end, read_name(line.text, loose=False), level, page=1, until=at, last_page=1)
        for level, line in enumerate(lines[:2], 1)
    ]
    source = rules(title, kind)
    return source, Layout("\n".join(line.text for line in lines), lines, headings)


def test_a_heading_above_that_agrees_speaks_for_a_section():
    costs, other = nested("Part 3", "CPR", "Fees", "Costs"), nested("Part 4", "PD", "Dues", "Costs")

    def resolved(cited: str, **row) -> str:
        corpus = Corpus([costs[0], other[0]])
        for source, layout in (costs, other):
            corpus._layouts[source.raw.filename] = layout
        found = corpus.resolve(read_citation(cited), RowEvidence(**row))
        return found.source.raw.title if found.source else found.reason

    assert resolved("Fees, Costs") == "Part 3", "enough, with nothing else that speaks for it"
    assert resolved("Costs").startswith("names 2 documents")
    assert resolved("Dues, Costs", source_type="PD") == "Part 4"


def test_a_document_s_whole_name_is_weighed_against_a_section_of_another():
    whole = rules("Costs", "", "Words of it.")
    harbour = rules("The Harbour Court Guide", "Court Guide", "Words.", "---", "Costs", "They are paid.")
    assert meant([whole, harbour], "Costs") == "Costs"
    assert meant([whole, harbour], "Costs", fields=("Harbour Court",)).startswith("names 2 documents")
    title = "Striking out a hopeless case early"
    long = rules("Part 4", "CPR", "Words.", "---", title, "The court may.")
    assert meant([rules(title, "", "Words of it."), long], title) == title, "a name is more than a long title"
