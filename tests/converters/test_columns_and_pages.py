"""Columns recognised by their cells, contract titles, annotators' marks, and web pages in a fake browser."""

from __future__ import annotations

import asyncio
import json
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import pytest
from playwright.async_api import Error, TimeoutError

from exhibit.converters import RawDocument, Tally, contractnli, cuad, privacyqa
from exhibit.converters.civil_procedure.corpus import Corpus
from exhibit.converters.civil_procedure.names import read_citation
from exhibit.converters.civil_procedure.parsing import blocks_of
from exhibit.converters.civil_procedure.resolution import RowEvidence
from exhibit.converters.civil_procedure.sources import RulesFile
from exhibit.converters.fetching import page as page_module
from exhibit.converters.fetching.download import FetchError, PageReply, Policy
from exhibit.converters.fetching.page import UNFINISHED, PagePrinter
from exhibit.converters.raw.columns import choose_columns, correct_columns
from exhibit.converters.raw.documents import Shelf, Texts
from exhibit.converters.raw.records import Record
from exhibit.schemas.errors import SourceError
from exhibit.storage.http_policy import HttpError

# ---------------------------------------------------------------- columns by their cells


WORDS = "The rent of number {} is due on the first day of May."


@pytest.fixture
def texts(tmp_path: Path) -> Texts:
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(10):
        (folder / f"lease {number}.txt").write_text(WORDS.format(number), encoding="utf-8")
    return Texts(Shelf(tmp_path / "t.csv", folder, as_pdf=False, policy=Policy()))


def chosen(texts: Texts, rows: list[dict[str, object]], **named: str) -> dict[str, str | None]:
    records = [Record(at, f"row {at}", cells) for at, cells in enumerate(rows)]
    seen = list(rows[0])
    return correct_columns(choose_columns(Path("t.csv"), seen, named), named, records, texts)


def rows(column: str, files: int, **more: object) -> list[dict[str, object]]:
    return [
        {"question": f"q{n}", "answer": "a", column: f"lease {n}.txt" if n < files else f"other {n}", **more}
        for n in range(10)
    ]


@pytest.mark.parametrize(
    ("column", "files", "document"),
    [("ref", 5, "ref"), ("ref", 4, None), ("answer", 9, "answer"), ("answer", 8, None), ("ref", 10, "ref")],
)
def test_a_column_whose_cells_name_files_is_the_document(texts, column, files, document):
    found = chosen(texts, rows(column, files))
    assert found["document"] == document and found["answer"] == (None if document == "answer" else "answer")


def test_a_column_that_is_called_document_is_one_unless_another_names_more_files(texts):
    both = [{**row, "document": f"lease {n}" if n < 5 else "x"} for n, row in enumerate(rows("ref", 6))]
    assert chosen(texts, both)["document"] == "ref"
    even = [{**row, "document": f"lease {n}" if n < 6 else "x"} for n, row in enumerate(rows("ref", 6))]
    assert chosen(texts, even)["document"] == "document"
    assert chosen(texts, both, document="document")["document"] == "document", "it was named"


@pytest.mark.parametrize(
    ("quotes", "cell", "found"),
    [
        (5, WORDS, True),
        (4, WORDS, False),
        (5, "due on the first day of Ma", True),
        (5, "due on the first day of M", False),
    ],
)
def test_a_column_whose_cells_stand_in_their_document_is_the_passage(texts, quotes, cell, found):
    made = [{**row, "zzz": cell.format(n) if n < quotes else "n" * 30} for n, row in enumerate(rows("document", 10))]
    assert chosen(texts, made)["text"] == ("zzz" if found else None)
    assert chosen(texts, made, text="")["text"] is None, "none was asked for"


# ---------------------------------------------------------------- contracts


@pytest.mark.parametrize(
    ("cell", "quotes"),
    [("", []), (" ['a', ' ', 'a', 'b'] ", ["a", "b"]), ("[]", [])],
)
def test_a_cell_of_quotes_is_a_list_in_a_string(cell, quotes):
    assert cuad.quotes_of(cell) == quotes
    for wrong, why in (
        ("['a'", "is not valid Python"),
        ("[1]", "is not a list of strings"),
        ("'a'", "is not a list of strings"),
    ):
        with pytest.raises(ValueError, match=why):
            cuad.quotes_of(wrong)


# ---------------------------------------------------------------- marks of annotators


def policies(tmp_path: Path, *lines: str, head: str = "Ann1\tAnn2\tAnn3\tAnn4\tAnn5\tAnn6"):
    path = tmp_path / "policy_test_data.csv"
    columns = "Folder\tDocID\tQueryID\tSentID\tSplit\tQuery\tSegment\tAny_Relevant\t" + head
    path.write_text("\n".join([columns, *lines]) + "\n", encoding="utf-8")
    tally = Tally()
    return privacyqa.read(path, Namespace(split="all", limit=None), tally), tally


def line(sentence: object, words: str, marks: str, query: str = "q1", doc: str = "App_1", asked: str = "Sold?") -> str:
    return f"test\t{doc}\t{query}\t{sentence}\ttest\t{asked}\t{words}\tx\t" + "\t".join(
        {"R": "Relevant", "I": "Irrelevant", "-": "None"}.get(mark, mark) for mark in marks
    )


@pytest.mark.parametrize(
    ("marks", "gold"),
    [("RRRIII", True), ("RRIIII", False), ("RI----", None), ("RII---", None), ("IIIIII", False), ("R" * 6, True)],
)
def test_half_of_those_who_answered_make_a_sentence_gold(tmp_path, marks, gold):
    blank = marks.count("-")
    read, tally = policies(tmp_path, line("App_1_1", "We sell it.", marks))
    if blank > privacyqa.MOST_BLANK:
        assert read.rows == [] and sum(map(len, tally.left_out.values())) == 1
        return
    [row] = read.rows
    right = 2 * marks.count("R") >= marks.count("R") + marks.count("I") if gold is None else gold
    assert row.is_impossible is not right and len(row.quotes) == int(right) and row.id == privacyqa.TRAIN_QUESTIONS
    if right:
        told = dict(row.quotes[0].labels)
        assert (told["relevant"], told["annotators"]) == (marks.count("R"), 6 - blank)


def test_a_policy_is_set_as_its_sentences_in_the_order_of_their_numbers(tmp_path):
    read, tally = policies(
        tmp_path, line("x_10", "Last.", "RRRRRR"), line("x_9", "First.", "RRRRRR"), line("x_11", "", "IIIIII"),
        line("x_9", "Other.", "RRRRRR"), line("x_9", "First.", "IIIIII"), line("x_9", "First.", "RRRRRO", query="q2"),
    )  # fmt: skip
    [document] = read.documents
    assert document.text == "App privacy policy\n\nFirst.\nLast." and document.title == "App privacy policy"
    assert [[quote.spans for quote in row.quotes] for row in read.rows] == [[((20, 26),), ((27, 32),)], [((20, 26),)]]
    assert read.rows[0].answer == "First. Last." and [row.id for row in read.rows] == [
        privacyqa.TRAIN_QUESTIONS, privacyqa.TRAIN_QUESTIONS + 1
    ]  # fmt: skip
    assert set(tally.left_out) == {
        "sentence with other words than before under its id", "second, different marks for a sentence",
        "mark 'o' that is neither Relevant nor Irrelevant, counted as blank",
    }  # fmt: skip


def test_a_table_of_another_form_is_refused(tmp_path):
    good = line("x_1", "Words.", "RRRRRR")
    with pytest.raises(SourceError, match="no column 'Ann1' … 'Ann6'"):
        policies(tmp_path, good, head="Mark")
    with pytest.raises(SourceError, match="line 3 has 15 cells, but the header has 14"):
        policies(tmp_path, good, f"{good}\tmore")
    with pytest.raises(SourceError, match="line 2 has 7 cells"):
        policies(tmp_path, "\t".join(good.split("\t")[:7]))
    read, _ = policies(tmp_path, "\t".join(good.split("\t")[:13]))
    assert dict(read.rows[0].quotes[0].labels)["annotators"] == 5, "cells that an editor cut are blank"


# ---------------------------------------------------------------- a page in the browser


class Page(SimpleNamespace):
    """A fake page that makes the given requests and is then printed."""

    @property
    def context(self):
        return self

    async def route(self, pattern, answer):
        self.answer = answer

    async def goto(self, url, **given):
        self.waited.append(given["timeout"])
        for route in self.routes:
            await self.answer(route)

    async def wait_for_load_state(self, state, timeout):
        if self.late == state:
            raise TimeoutError("late")

    async def evaluate(self, script):
        self.revealed.append(script)

    async def pdf(self, **given):
        return b"%PDF /CreationDate (D:20240101000000)"

    async def content(self):
        return "<p>x</p>"


def a_page(*routes: Route, late: str = "", url: str = "http://x/a") -> Page:
    return Page(routes=routes, late=late, url=url, waited=[], revealed=[], main_frame="main")


class Route(SimpleNamespace):
    """A fake request of a page; `told` records how it was answered."""

    def __init__(self, url: str = "http://x/a", *, moves: bool = False, frame: str = "main") -> None:
        request = SimpleNamespace(
            url=url, method="GET", headers={}, post_data_buffer=None, frame=frame, is_navigation_request=lambda: moves
        )
        super().__init__(request=request, told=None)

    async def fulfill(self, **given):
        self.told = given

    async def abort(self):
        self.told = "aborted"


REPLY = PageReply("http://x/a", 200, {"content-type": "text/plain", "content-language": "de", "x": "y"}, "html", b"<p>")


def printed(page: Page, reply: PageReply = REPLY, answers: dict[str, object] | None = None, timeout: float = 8.0):
    class Downloads:
        def resource(self, asked):
            told = (answers or {})[asked.url]
            if isinstance(told, Exception):
                raise told
            return told

    return asyncio.run(PagePrinter(Downloads(), timeout=timeout, pages=1).print_page(page, reply, "http://x/a#b"))


def test_a_page_is_handed_over_with_what_changes_its_look_and_printed():
    first = Route()
    data, url, note = printed(page := a_page(first))
    assert (url, note) == ("http://x/a", "") and b"D:20000101000000" in data and page.waited == [8000.0]
    assert first.told == {
        "status": 200, "headers": {"content-language": "de", "content-type": "text/html"}, "body": b"<p>"
    }  # fmt: skip
    assert len(page.revealed) == 1
    text = PageReply("http://x/a", 200, {"content-type": "text/plain"}, "text", "ö".encode())
    printed(a_page(other := Route()), text)
    assert other.told["headers"]["content-type"] == "text/html; charset=utf-8" and "ö".encode() in other.told["body"]
    html = PageReply("http://x/a", 200, {"content-type": "application/XHTML+xml"}, "html", b"")
    printed(a_page(third := Route()), html)
    assert third.told["headers"]["content-type"] == "application/XHTML+xml"


@pytest.mark.parametrize("late", ["load", "networkidle"])
def test_a_page_that_does_not_come_to_rest_is_printed_with_a_note(late):
    assert printed(a_page(Route(), late=late))[2] == UNFINISHED


def test_what_a_page_asks_for_is_fetched_and_a_redirect_is_followed_by_a_refresh():
    answers = {
        "http://x/p.png": (200, {"a": "b"}, b"png"), "http://x/q": (302, {"location": "/z?a=1&b"}, b""),
        "http://x/r": HttpError("private"), "http://x/m": (301, {"location": "/n"}, b"moved"),
    }  # fmt: skip
    routes = [
        Route(),
        Route("http://x/p.png"),
        Route("http://x/q", moves=True),
        Route("http://x/r"),
        Route("http://x/m"),
    ]
    printed(a_page(*routes), answers=answers)
    assert routes[1].told == {"status": 200, "headers": {"a": "b"}, "body": b"png"}
    assert routes[2].told["status"] == 200 and "0;url=http://x/z?a=1&amp;b" in routes[2].told["body"]
    assert routes[3].told == "aborted" and routes[4].told["status"] == 301, "what is no page is not moved"


@pytest.mark.parametrize(
    ("told", "frame", "fate", "reason"),
    [
        (HttpError("private"), "main", "refused", "leads to an address that cannot be reached"),
        ((404, {}, b""), "main", "failed", "leads to a page with HTTP 404"),
        ((400, {}, b""), "main", "failed", "leads to a page with HTTP 400"),
        ((399, {}, b""), "main", "", ""),
        ((200, {}, b""), "main", "", ""),
        ((404, {}, b""), "inner", "", ""),
        (HttpError("private"), "inner", "", ""),
    ],
)
def test_a_page_that_leads_elsewhere_is_printed_where_that_is_a_page(told, frame, fate, reason):
    page = a_page(Route(), Route("http://x/q", moves=True, frame=frame))
    if not fate:
        assert printed(page, answers={"http://x/q": told})[2] == ""
        return
    with pytest.raises(FetchError) as caught:
        printed(page, answers={"http://x/q": told})
    assert (caught.value.fate, caught.value.reason, caught.value.url) == (fate, reason, "http://x/q")


def test_a_page_that_ends_at_no_web_address_is_refused():
    with pytest.raises(FetchError) as caught:
        printed(a_page(Route(), url="chrome-error://chromewebdata/"))
    assert caught.value.fate == "refused" and caught.value.detail.startswith("chrome-error:")


class Browser(SimpleNamespace):
    """A fake browser that raises the given error for each new context."""

    version = "1.2"

    def is_connected(self):
        return self.connected

    async def new_context(self, **given):
        self.asked.append(given)
        raise self.error


@pytest.mark.parametrize(
    ("error", "connected", "reason", "tried"),
    [
        (Error("Target has been closed"), True, "the browser cannot print the page", 2),
        (Error("net::ERR_ABORTED at x"), True, "the browser cannot print the page", 2),
        (Error("odd\nstack"), False, "the browser cannot print the page", 2),
        (Error("odd\nstack"), True, "the browser cannot print the page", 1),
        (TimeoutError("late"), True, "timed out", 1),
    ],
)
def test_a_page_that_ends_the_browser_is_tried_once_more(monkeypatch, error, connected, reason, tried):
    started = []

    class Running:
        async def __aenter__(self):
            started.append(Browser(error=error, connected=connected, asked=[]))
            return started[-1]

        async def __aexit__(self, *_):
            return None

    monkeypatch.setattr(page_module, "run_browser", lambda tell: Running())
    printer = PagePrinter(None, timeout=3.0, pages=1)
    assert printer.browser == ""
    with pytest.raises(FetchError) as caught:
        asyncio.run(printer.print(REPLY, "http://x/a"))
    assert caught.value.reason == reason and len(started) == tried and printer.browser == "1.2"
    details = {2: "it makes the browser crash", 1: "odd" if reason != "timed out" else "in the browser, after 3 s"}
    assert caught.value.detail == details[tried]
    [told] = started[0].asked
    assert told["accept_downloads"] is False and told["service_workers"] == "block"


# ---------------------------------------------------------------- a release of hypotheses


NDA = "Alpha may. Beta may not.   "


def nda(name: str, choice: str = "Entailment", *indexes: int, spans=((0, 10), (11, 24), (24, 27), (20, 28), (5, 5))):
    chosen_spans = list(indexes) if choice != "NotMentioned" else []
    every = {key: {"choice": choice, "spans": chosen_spans} for key in contractnli.QUESTIONS}
    made = {"file_name": name, "text": NDA, "spans": [list(span) for span in spans]}
    return {**made, "annotation_sets": [{"annotations": every}]}


def read_nda(folder: Path, split: str = "all", limit: int | None = None, **splits: list[dict[str, object]]):
    for name, documents in splits.items():
        content = {"documents": documents, "labels": {key: {} for key in contractnli.QUESTIONS}}
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    tally = Tally()
    return contractnli.read(folder, Namespace(split=split, limit=limit), tally), tally


def test_evidence_is_cut_out_of_the_text_and_what_is_no_span_is_counted(tmp_path):
    read, tally = read_nda(tmp_path, train=[nda("a.pdf", "Contradiction", 1, 0, 1, 2, 3, 4, 5, -1)])
    first = read.rows[0]
    assert [(quote.text, quote.spans, quote.labels) for quote in first.quotes] == [
        ("Beta may not.", ((11, 24),), (("span", 1),)), ("Alpha may.", ((0, 10),), (("span", 0),))
    ]  # fmt: skip
    assert (first.answer, first.is_impossible, first.labels["label"]) == ("No", False, "Contradiction")
    key = next(iter(contractnli.QUESTIONS))
    assert tally.left_out["blank evidence"][0] == f"a.pdf: {key}: span 2"
    assert tally.left_out["evidence that is no span of the document"][:4] == [
        f"a.pdf: {key}: span {n}" for n in (3, 4, 5, -1)
    ]  # fmt: skip
    assert tally.noted["no raw/ folder in the source, so texts are printed"] == [tmp_path.name]


def test_ids_count_through_the_whole_release(tmp_path):
    asked = len(contractnli.QUESTIONS)
    read, tally = read_nda(tmp_path, dev=[nda("b", "NotMentioned")], train=[nda("a"), {"odd": 1}, nda("a")])
    ids = [row.id for row in read.rows]
    assert ids[:asked] == list(range(asked)) and ids[asked:] == [423 * asked + n for n in range(asked)]
    assert read.rows[asked].is_impossible and read.rows[asked].answer == "" and read.rows[asked].quotes == ()
    assert [(quote.filename, quote.text) for quote in read.rows[0].quotes] == [("a.pdf", None)], "no evidence is given"
    assert set(tally.left_out) == {
        "document that is not in the release's form", "second document of one file name"
    }  # fmt: skip
    assert tally.noted["split that the source does not have"] == ["test.json"]
    only, _ = read_nda(tmp_path, split="dev")
    assert [row.id for row in only.rows] == ids[asked:] and list(only.sha256) == ["train.json", "dev.json"]
    first, _ = read_nda(tmp_path, limit=1)
    assert len(first.documents) == 1 and len(first.rows) == asked
    with pytest.raises(SourceError, match="no test.json in it"):
        read_nda(tmp_path, split="test")


@pytest.mark.parametrize(("length", "fits"), [(255, True), (256, False)])
def test_a_file_s_name_has_255_bytes(tmp_path, length, fits):
    read, tally = read_nda(tmp_path, train=[nda("n" * (length - 4) + ".PDF")])
    assert bool(read.documents) is fits and ("file name that is too long for a file" in tally.left_out) is not fits


# ---------------------------------------------------------------- courts that a row names


def guide(court: str) -> RulesFile:
    title = f"The {court} Guide"
    blocks = tuple(blocks_of(title, "Words of it.\n\n---\n\nReading lists\n\nA list is filed."))
    raw = RawDocument(f"{title}.pdf", title, text="\n\n".join(block.text for block in blocks))
    return RulesFile(raw, (title,), "Court Guide", title, blocks)


GUIDES = [guide("Harbour Court"), guide("Mill Court")]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (RowEvidence(), "names 2 documents"),
        (RowEvidence(fields=("Harbour Court",)), "The Harbour Court Guide"),
        (RowEvidence(prose="In the Mill Court a list is filed."), "The Mill Court Guide"),
        (RowEvidence(fields=("Harbour Court",), prose="In the Mill Court."), "names 2 documents"),
        (RowEvidence(fields=("Orchard Court",)), "names 2 documents"),
        (RowEvidence("Court Guide", ("Mill Court",)), "The Mill Court Guide"),
    ],
)
def test_the_court_that_a_row_names_tells_whose_guide_is_meant(row, found):
    told = Corpus(GUIDES).resolve(read_citation("Reading lists"), row)
    assert (told.source.raw.title if told.source else told.reason).startswith(found)
    alone = Corpus(GUIDES[:1]).resolve(read_citation("Reading lists"), RowEvidence("Court Guide", ("Orchard Court",)))
    assert alone.source is None, "the row is about a court whose guide is not here"
    right = Corpus(GUIDES[:1]).resolve(read_citation("Reading lists"), RowEvidence("Court Guide"))
    assert right.source is GUIDES[0] and right.how == "section"
    strange = Corpus(GUIDES).resolve(read_citation("Orchard Court Guide, Reading lists"), RowEvidence())
    assert strange.reason == "names no document of the corpus: Orchard Court Guide is not in it"
