"""CPR: the sample becomes exactly this bundle, each citation is resolved or listed, and the other modes work."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from exhibit.converters import RawDocument, Tally, cpr
from exhibit.converters.benchmark import Block
from exhibit.converters.civil_procedure.corpus import LONGEST_WHOLE, Corpus
from exhibit.converters.civil_procedure.names import RuleCitation, find_citations
from exhibit.converters.civil_procedure.parsing import blocks_of
from exhibit.converters.civil_procedure.resolution import RowEvidence
from exhibit.converters.civil_procedure.sources import (
    NO_DOCUMENT,
    RulesFile,
    kind_of,
    load,
    reference_of,
    restore_full_name,
)
from exhibit.converters.fetching.download import flaw_of
from exhibit.converters.fetching.fetch import Policy, make_corpus_names
from exhibit.evidence import read_document
from exhibit.evidence.check import check_gold
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN
from exhibit.schemas.errors import SourceError
from exhibit.schemas.validate import validate
from tests.conversion import chosen, options_of
from tests.converters.account import account_of
from tests.evidence import files

LINE = {"question": "What is the aim?", "truth": "Justice. [Purpose of these Rules]", "source_type": "CPR"}


@pytest.fixture(scope="module")
def bundle(converted) -> Path:
    """The sample, converted once."""
    return converted("cpr")


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def written(folder: Path, *rows: object) -> Path:
    """A source with one document and these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    (folder / "ground_truth.jsonl").write_text(text, encoding="utf-8")
    record = {
        "id": "Part 1 – Purpose of these Rules",
        "sourcepage": "Purpose of these Rules",
        "content": "1.1 The aim.",
    }
    (folder / "Part 1.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def read_rows(source: Path, *flags: str, strict: bool = False):
    tally = Tally(strict=strict)
    return cpr.read(source, options_of(cpr, *flags), tally), tally


# ---------------------------------------------------------------- the sample


def test_the_sample_becomes_the_golden_bundle(bundle, golden):
    assert validate(bundle) == []
    golden("cpr/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    golden("cpr/account.json", account_of(bundle))
    kept = ("id", "context", "filename", "pages", "how", "score", "labels")
    gold = [{key: line[key] for key in kept} for line in lines_of(bundle / GOLD)]
    golden("cpr/gold.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in gold))


def test_a_cited_section_is_located_with_its_words_and_what_is_not_found_is_only_named(bundle):
    rows = json.loads((bundle / TRAIN).read_text(encoding="utf-8"))
    assert not any(row["is_impossible"] for row in rows)
    texts = {(row["id"], at): context.get("text") for row in rows for at, context in enumerate(row["contexts"])}
    found = {(line["id"], line["context"]): line for line in lines_of(bundle / GOLD) if line["context"] is not None}
    assert {key for key, text in texts.items() if text is None} == {(8, 1)}
    assert {line["how"] for key, line in found.items() if key != (8, 1)} == {"section"}
    assert found[8, 1]["spans"] == []
    witness = found[2, 0]
    text = read_document(bundle / CORPUS / witness["filename"]).text
    (start, end), *others = witness["spans"]
    assert others == []
    assert text[start:end].startswith("Witness evidence")
    assert "9.5" in text[start:end]
    assert "9.3" not in text[start:end]
    guide = found[5, 0]
    assert (guide["pages"], guide["labels"]["heading"]) == ([3], "C.2 Time estimates, reading lists and bundles")
    assert texts[5, 0].split()[-4:] == ["panel", "has", "allowed", "it."]
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    assert info["counts"]["located"]["section"] == 8


def test_the_check_reads_the_sections_again(bundle, tmp_path):
    assert check_gold(bundle) == (8, [])
    broken = tmp_path / "broken"
    shutil.copytree(bundle, broken)
    lines = lines_of(broken / GOLD)
    lines[0]["spans"] = [[lines[0]["spans"][0][0] + 5, lines[0]["spans"][0][1]]]
    del lines[1]["labels"]["heading"]
    (broken / GOLD).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    _, wrong = check_gold(broken)
    assert [line.split(": ", 2)[2].split(" ", 2)[0] for line in wrong] == ["span", "is"]
    assert "does not begin with the heading 'PART 4 - SERVICE OF DOCUMENTS'" in wrong[0]
    assert "its labels name no heading" in wrong[1]


def test_chunks_are_joined_in_order_without_the_exporters_lines(bundle):
    text = read_document(bundle / CORPUS / "Part 9 – Hearings and Evidence.pdf").text
    places = [text.index(words) for words in ("9.1 A hearing", "9.3 The Tribunal", "Witness evidence", "9.6 A party")]
    assert places == sorted(places)
    assert "Document:" not in text
    assert "Part 1 of 2" not in text
    assert "====" not in text
    assert text.count("9.4 A fact") == 1


def test_every_document_is_there_once_also_the_one_whose_own_export_was_overwritten(bundle):
    names = sorted(path.name for path in (bundle / CORPUS).iterdir())
    assert len(names) == 11
    assert sum(name.startswith("Practice Direction 7Z") for name in names) == 2
    assert "Practice Direction – Reviews and_or Appeals.pdf" in names
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    changed = info["noted"]["file name changed, as a file cannot be called that"]
    assert changed == ["Practice Direction – Reviews and/or Appeals -> Practice Direction – Reviews and_or Appeals.pdf"]
    titles = {entry["filename"]: entry["title"] for entry in info["documents"]}
    assert titles[next(name for name in names if "7ZA" in name)].endswith(
        "pilot: moorings and dues of vessels below twelve metres in the northern harbours"
    )
    assert titles["registry-note-3.pdf"] == "Remote Hearings"


def test_what_cannot_be_resolved_is_listed_with_its_row_and_reason(bundle, samples):
    info = json.loads((bundle / INFO).read_text(encoding="utf-8"))
    review = info["noted"]["citation to review: it gives no context"]
    assert [line.split(" ", 2)[:2] for line in review] == [["row", "6:"], ["row", "7:"]]
    assert "[B.1 The claim (pp. 4-5)] names no document of the corpus" in review[0]
    assert "names 2 documents: Part 12 – Fees and Costs.pdf, Practice Direction 12" in review[1]
    assert info["left_out"] == {
        "JSON file that is no export of documents": ["ground_truth_costs.json"],
        NO_DOCUMENT: ["README.md", "guide.txt", "make.py", "remote.txt", "rulebook.txt"],
    }
    account = info["account"]["files"]
    assert account["given"] == len([path for path in (samples / "cpr").rglob("*") if path.is_file()]) - 1, (
        "the table is no document"
    )
    assert account["given"] - account["kept"] == sum(account["left_out"].values()) == 6
    assert info["account"]["rows"]["kept"] == info["counts"]["questions"]
    assert len(info["noted"]["document exported more than once, kept once"]) == 8
    assert info["licence"]["redistributable"] is False
    labels = {line["id"]: line["labels"] for line in lines_of(bundle / GOLD)}
    assert labels[6]["unresolved"] == "B.1 The claim (pp. 4-5)"


def test_the_rules_are_printed_with_title_and_headings(bundle):
    text = read_document(bundle / CORPUS / "Part 4 – Service of Documents.pdf").text
    assert text.startswith("PART 4 - SERVICE OF DOCUMENTS")
    assert "---" not in text
    title = "Part 4 – Service of Documents"
    blocks = blocks_of(title, "PART 4 - SERVICE OF DOCUMENTS\n\n---\n\nWays\n\n4.1 A <b>\n\nX Y Z")
    assert blocks[1:3] == [Block("h2", "Ways"), Block("p", "4.1 A <b>")]


# ---------------------------------------------------------------- citations


def corpus(*names: str, texts: dict[str, str] | None = None) -> Corpus:
    def source(name: str) -> RulesFile:
        title, *others = name.split(" | ")
        blocks = tuple(blocks_of(title, (texts or {}).get(title, "Nothing.")))
        raw = RawDocument(f"{title}.pdf", title, text="\n\n".join(block.text for block in blocks))
        called = tuple(filter(None, (title, reference_of(title), *others)))
        return RulesFile(raw, called, kind_of(title), title, blocks)

    return Corpus([source(name) for name in names])


def resolved(index: Corpus, cited: str, source_type: str = "", *fields: str, prose: str = ""):
    """Return what one citation in brackets resolves to, given the other fields of its row."""
    (citation,) = find_citations(f"It is so. [{cited}]")
    return index.resolve(citation, RowEvidence(source_type, fields, prose))


RULES = (
    "Part 1 – Purpose",
    "Part 36 – Offers to Settle | Offers to Settle",
    "Practice Direction 36 – Offers to Settle | Offers to Settle",
    "Practice Direction 34A – Depositions | Depositions",
    "Commercial Court Guide FINAL 14",
    "The Circuit Commercial Court Guide",
)


@pytest.mark.parametrize(
    ("cited", "kind", "document", "how"),
    [
        ("Part 36", "", "Part 36 – Offers to Settle.pdf", "exact"),
        ("Offers to Settle", "CPR", "Part 36 – Offers to Settle.pdf", "exact"),
        ("Offers to Settle", "PD", "Practice Direction 36 – Offers to Settle.pdf", "exact"),
        ("Offers to Settle", "", None, "unresolved"),
        ("Depositions", "CPR", "Practice Direction 34A – Depositions.pdf", "exact"),
        ("CPR Part 36", "CPR", "Part 36 – Offers to Settle.pdf", "normalised"),
        ("PART 36 - OFFERS TO SETTLE", "CPR", "Part 36 – Offers to Settle.pdf", "normalised"),
        ("Part 36 offers", "PD", "Part 36 – Offers to Settle.pdf", "normalised"),
        ("PD34A", "PD", "Practice Direction 34A – Depositions.pdf", "normalised"),
        ("Practice Direction 34 A - depositions", "PD", "Practice Direction 34A – Depositions.pdf", "normalised"),
        ("Commercial Court Guide", "Court Guide", "Commercial Court Guide FINAL 14.pdf", "normalised"),
        ("Part 1 of the Digital Markets Act 2024", "CPR", None, "unresolved"),
        ("Part 99", "CPR", None, "unresolved"),
        ("Chancery Guide", "Court Guide", None, "unresolved"),
    ],
)
def test_a_citation_means_one_document_or_none(cited, kind, document, how):
    found = resolved(corpus(*RULES), cited, kind)
    assert (found.source.raw.filename if found.source else None, found.how) == (document, how)


GUIDE = """---

J. Trial

J.4 Documents for the trial

J.4.1 The parties agree a bundle.

---

J.5 Reading lists, authorities and timetable

J.5.1 A single reading list is filed.

J.5.2 Authorities are agreed.

---

K. After trial

---

K.1 Enforcement of judgments abroad and at home

K.1.1 Enforcement is automatic.

---

Appendix B: Form of order

The order is drawn up by the claimant."""
PLACES = ("Commercial Court Guide FINAL 14", "The Patents Court Guide", "The Technology and Construction Court Guide")
OTHER = GUIDE.replace("Reading lists, authorities and timetable", "Reading").replace("Form of order", "Contact details")


def guides() -> Corpus:
    return corpus(
        *PLACES,
        "Part 36 – Offers to Settle | Offers to Settle",
        texts={PLACES[0]: GUIDE, PLACES[1]: OTHER, PLACES[2]: OTHER.replace("Contact details", "Timetable"),
               "Part 36 – Offers to Settle": "---\n\nScope\n\n36.1 About offers.\n\n36.2\n\n(1) An offer is made."},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cited", "row", "document", "begins", "ends"),
    [
        ("J. Trial, J.5 Reading lists, authorities and timetable", (), 0, "J.5 Reading", "agreed."),
        ("J. TRIAL, J5 reading lists, authorities and timetable", (), 0, "J.5 Reading", "agreed."),
        ("J.5 Reading lists, authorities …", (), 0, "J.5 Reading", "agreed."),
        ("J.5 Readng lists, authorites and timetable", (), 0, "J.5 Reading", "agreed."),
        ("J.5 Reading", ("Patents Court",), 1, "J.5 Reading", "agreed."),
        ("J.5 Reading", ("Court Guide", "TCC"), 2, "J.5 Reading", "agreed."),
        ("K. After trial", ("TCC",), 2, "K. After trial", "automatic."),
        ("Commercial Court Guide, J.4.1", (), 0, "J.4.1 The parties", "bundle."),
        ("The Patents Court Guide#page=Appendix B: Contact details", (), 1, "Appendix B: Contact", "claimant."),
        ("Appendix B – Form of Order", (), 0, "Appendix B", "claimant."),
        ("CPR 36.2(1)", (), 3, "36.2", "made."),
        ("Part 36, rule 36.1", (), 3, "36.1 About", "offers."),
        ("Offers to Settle", ("CPR",), 3, "Part 36", "made."),
    ],
)
def test_a_citation_is_the_section_under_its_heading(cited, row, document, begins, ends):
    names = (*PLACES, "Part 36 – Offers to Settle")
    found = resolved(guides(), cited, *row)
    assert found.source is not None, found.reason
    assert found.source.raw.title == names[document]
    assert found.place is not None
    assert found.place.text.startswith(begins)
    assert found.place.text.endswith(ends)
    assert (found.score < 1) == ("…" in cited or "Readng" in cited)


@pytest.mark.parametrize(
    ("cited", "row", "reason"),
    [
        ("J.5 Reading", (), "names 2 documents: The Patents Court Guide.pdf, The Technology"),
        ("J.6 Reading lists, authorities and timetable", ("Commercial Court",), "names no document"),
        ("J. Trial, J.7 Judgment", ("Commercial Court",), "names no document"),
        ("Appendix B: Specimen Directions, Trial (p. 38)", ("Commercial Court",), "names no document"),
        ("K.1 Enforcement of judgments abroad and at home", ("Circuit Commercial Court",), "names 3 documents"),
        ("J.5 Reading lists, authorities and timetable", ("Circuit Commercial Court",), "nothing else speaks for it"),
        ("Circuit Commercial Court Guide, J.4 Documents for the trial", (), "Circuit Commercial Court Guide is not in"),
        ("Scope", (), "nothing else speaks for it"),
        ("CPR 99.2", (), "names no document"),
    ],
)
def test_what_may_be_of_another_document_is_left_to_a_person(cited, row, reason):
    found = resolved(guides(), cited, *row)
    assert found.source is None
    assert reason in found.reason


def test_an_export_is_also_called_what_its_text_begins_with(tmp_path):
    first_lines = {
        "Part 66 – Crown Claims": "PART 66 - CROWN CLAIMS",
        "Practice Direction 66A": "PRACTICE DIRECTION 66 A - CROWN CLAIMS",
    }
    for key, first in first_lines.items():
        record = {"id": key, "content": f"{first}\n\n---\n\nScope\n\n1.1 It is about the Crown."}
        (tmp_path / f"{key}.json").write_text(json.dumps(record), encoding="utf-8")
    sources, _ = load(tmp_path, Policy(), Tally())
    index = Corpus(sources)
    assert resolved(index, "Crown Claims", "PD").source.raw.title == "Practice Direction 66A"
    assert resolved(index, "Crown Claims", "CPR").source.raw.title == "Part 66 – Crown Claims"
    assert resolved(index, "Crown Claims").source is None


def test_the_answer_tells_documents_of_one_name_apart():
    index = corpus(*RULES)
    assert resolved(index, "Offers to Settle", prose="Practice Direction 36 says").source.kind == "PD"
    assert resolved(index, "Offers to Settle", prose="Part 36 says").source.kind == "CPR"
    assert resolved(index, "Offers to Settle", prose="Rule 36.2 and Part 36A say").source is None


def test_a_long_document_that_is_cited_as_a_whole_is_named_and_no_place():
    text = "Word. " * (LONGEST_WHOLE // 6 + 1)
    index = corpus("Part 1 – Purpose", texts={"Part 1 – Purpose": f"1.1 Short.\n\n{text}"})
    found = resolved(index, "Part 1")
    assert found.source is not None
    assert found.place is None
    assert resolved(index, "CPR 1.1").place is not None


def test_a_title_that_stands_in_every_chapter_is_no_place():
    text = "---\n\nChapter 1 Trial\n\n---\n\nGeneral\n\n1.1 A.\n\n---\n\nChapter 2 Costs\n\n---\n\nGeneral\n\n2.1 B."
    index = corpus("The Patents Court Guide", texts={"The Patents Court Guide": text})
    found = resolved(index, "General", "Patents Court")
    assert found.source is not None
    assert found.place is None
    assert resolved(index, "Chapter 2 Costs, General").place.text == "General\n\n2.1 B."


def test_several_citations_in_one_bracket_and_a_heading_with_a_semicolon():
    index = corpus(
        *RULES, texts={"The Circuit Commercial Court Guide": "---\n\nB.1 Listing; reading; costs\n\nB.1.1 X."}
    )
    (citation,) = find_citations("So. [Part 36; PD 34A; Part 99]")
    pairs = index.resolve_all(citation, RowEvidence())
    assert [part.text for part, _ in pairs] == ["Part 36", "PD 34A", "Part 99"]
    assert [bool(found.source) for _, found in pairs] == [True, True, False]
    (citation,) = find_citations("So. [B.1 Listing; reading; costs]")
    assert [found.place.heading for _, found in index.resolve_all(citation, RowEvidence())] == [
        "B.1 Listing; reading; costs"
    ]


@pytest.mark.parametrize(
    ("truth", "count"),
    [
        ('The order reads "the Defence [and Counterclaim] is struck out".', 0),
        ("On [date] the [Claimant] must pay [sic] the sum [emphasis added].", 0),
        ("He said that [the defendant] was late … [the order] stands.", 0),
        ("It is dated [insert date] and sealed.", 0),
        ("“Service [of the Claim Form] is” done.", 0),
        ("It ends there. [General Rules about Costs]", 1),
        ("It ends there. [general rules about costs]", 1),
        ("As [Part 36] and [J.5 Reading lists (p. 3)] say, it does. [Chancery Guide]", 3),
        ("It ends there. [The Multi-track]", 1),
        ("As [Default Judgment] says, the [Registrar] decides.", 1),
        ("See [2024] EWCA Civ 1 [1][2, 3].", 0),
    ],
)
def test_an_editors_brackets_are_no_citations(truth, count):
    assert len(find_citations(truth)) == count


def test_citations_are_read_from_an_answer_once_each():
    truth = "As held [2024] EWCA Civ 1, see [Part 36#page=Offers  to settle][1] [PART 36#page=Offers to Settle]."
    truth += " [A.1 B (pp. 1-2)]"
    assert find_citations(truth) == [
        RuleCitation("Part 36#page=Offers to settle", "Part 36", "Offers to settle"),
        RuleCitation("A.1 B (pp. 1-2)", "A.1 B", "", "1-2"),
    ]
    assert find_citations("[Part 3#page=12]") == [RuleCitation("Part 3#page=12", "Part 3", "", "12")]


@pytest.mark.parametrize(
    ("name", "section", "title"),
    [
        ("Practice Direction 53B_ Media claims", "Media claims", "Practice Direction 53B: Media claims"),
        ("PD 52A – Appeals_ General provi", "Appeals: General provisions", "PD 52A – Appeals: General provisions"),
        ("Part 57A – Business courts", "Business courts", "Part 57A – Business courts"),
        ("Practice Direction 16", "Practice Direction 16", "Practice Direction 16"),
        ("Insolvency", "Something else", "Insolvency"),
    ],
)
def test_a_name_is_what_it_was_before_the_export(name, section, title):
    assert restore_full_name(name, section) == title


# ---------------------------------------------------------------- bad input


def test_a_bad_line_is_counted_and_never_renumbers(tmp_path):
    source = written(tmp_path / "s", LINE, "", "{broken", {"question": "Only this?"}, "[]", LINE)
    benchmark, tally = read_rows(source)
    assert [row.id for row in benchmark.rows] == [0, 4]
    reasons = {reason.split(" (")[0]: len(names) for reason, names in tally.left_out.items()}
    assert reasons == {"line is not JSON": 1, "line is not a JSON object": 1, "row without question or truth": 1}
    with pytest.raises(SourceError, match="line 3: .*line is not JSON"):
        read_rows(source, strict=True)


def test_strict_stops_at_a_citation_of_nothing(tmp_path):
    source = written(tmp_path / "s", {**LINE, "truth": "Yes. [Part 99]"})
    assert read_rows(source)[0].rows[0].quotes == ()
    with pytest.raises(SourceError, match=r"row 0: \[Part 99\] names no document"):
        read_rows(source, strict=True)


def test_errors_name_what_was_expected(tmp_path):
    source = written(tmp_path / "s", LINE)
    with pytest.raises(SourceError, match="nowhere: no such file or folder; --documents takes"):
        read_rows(source, "--documents", str(tmp_path / "nowhere"))
    shutil.copy(source / "ground_truth.jsonl", source / "ground_truth_2.jsonl")
    with pytest.raises(
        SourceError, match=r"several ground_truth\*.jsonl: .*ground_truth.jsonl and .*ground_truth_2.jsonl"
    ):
        read_rows(source)
    assert len(read_rows(source / "ground_truth.jsonl")[0].rows) == 1
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"no ground_truth\*.jsonl in it; expected a .jsonl file"):
        read_rows(tmp_path / "empty")
    with pytest.raises(SourceError, match="no document in it; expected JSON exports, PDFs or HTML"):
        read_rows(source / "ground_truth.jsonl", "--documents", str(tmp_path / "empty"))


def test_two_documents_of_one_name_are_refused_and_two_that_differ_are_told(tmp_path):
    source = written(tmp_path / "s", LINE)
    other = json.loads((source / "Part 1.json").read_text(encoding="utf-8"))
    (source / "Part 1b.json").write_text(json.dumps([{**other, "content": "1.1 Another aim."}]), encoding="utf-8")
    (source / "bad.json").write_text("{", encoding="utf-8")
    benchmark, tally = read_rows(source)
    assert [document.text for document in benchmark.documents] == ["Part 1 – Purpose of these Rules\n\n1.1 The aim."]
    assert "document exports of it differ, the first is kept" in tally.noted
    assert "JSON file cannot be read" in tally.left_out
    (source / "Part 1 – purpose of these rules.html").write_text("<title>x</title>", encoding="utf-8")
    with pytest.raises(SourceError, match="two documents would be named"):
        read_rows(source)


def test_a_limit_keeps_the_documents_that_are_asked_about(samples):
    benchmark, tally = read_rows(samples / "cpr", "--max-documents", "2")
    benchmark = chosen(benchmark, tally, limit=2)
    names = {document.filename for document in benchmark.documents}
    assert names == {"Part 4 – Service of Documents.pdf", "Practice Direction 12 – Fees And Costs.pdf"}
    assert [row.id for row in benchmark.rows] == [0, 1, 6, 7, 9]


# ---------------------------------------------------------------- pages and links


def test_the_list_of_addresses_that_comes_with_it_is_sound(tmp_path, monkeypatch):
    asked: list[str] = []

    def fetch(urls, **more):
        asked.extend(urls)
        return {}

    monkeypatch.setattr("exhibit.converters.civil_procedure.sources.fetch_all", fetch)
    with pytest.raises(SourceError, match="none of its [0-9]{3} URLs gave a document"):
        read_rows(written(tmp_path / "s", LINE), "--documents", "shipped")
    assert len(make_corpus_names(asked)) == len(asked) > 200 and all(flaw_of(url) is None for url in asked)
    assert any("circuit-commercial" in url for url in asked)


def test_a_page_is_named_by_its_title_and_cited_by_its_headings(tmp_path):
    page = (
        "<!doctype html><title>Remote Hearings</title><style>p { color: red }</style><h1>Remote Hearings</h1>"
        "<h2>Joining</h2><p>A quiet room.</p><h2>If the line fails</h2><p>The hearing stops.</p>"
    )
    row = {"question": "And if the line fails?", "truth": "It stops. [Remote Hearings#page=If the line fails]"}
    source = written(tmp_path / "s", row)
    (source / "registry-note-3.html").write_text(page, encoding="utf-8")
    benchmark, _ = read_rows(source)
    [quote] = benchmark.rows[0].quotes
    [document] = [raw for raw in benchmark.documents if raw.filename == quote.filename == "registry-note-3.pdf"]
    assert document.title == "Remote Hearings" and document.html == page
    assert quote.text == "If the line fails\n\nThe hearing stops." and quote.section


@pytest.fixture
def site():
    """A loopback server that serves one rule and has no other page."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.startswith("/part-1")
            body = b"<title>Part 1 - Purpose of these Rules</title><p>1.1 The aim.</p>" if found else b""
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_documents_come_from_a_list_of_urls(site, tmp_path, monkeypatch, convert):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    url = site
    source = written(tmp_path / "s", LINE)
    listed = tmp_path / "urls.txt"
    listed.write_text(f"# the rules\n{url}/part-1\n\n{url}/gone\n", encoding="utf-8")
    flags = ("--source", source / "ground_truth.jsonl", "--documents", listed)
    out = convert("cpr", *flags, "--allow-private", "--delay", "0", "--retries", "0")
    rows = json.loads((out / TRAIN).read_text(encoding="utf-8"))
    assert rows[0]["contexts"] == [{"filename": "part-1.pdf", "text": "1.1 The aim."}]
    info = json.loads((out / INFO).read_text(encoding="utf-8"))
    assert [entry["source"] for entry in info["documents"]] == [f"{url}/part-1"]
    assert sum(len(names) for names in info["left_out"].values()) == 1
    assert "urls" not in json.dumps(info["options"])


# ---------------------------------------------------------------- the other modes


def test_check_prints_every_citation_and_fails_on_an_unresolved_one(samples, tmp_path, capsys):
    assert cpr.run(["--check", "--source", str(samples / "cpr")]) == 1
    printed = capsys.readouterr().out
    assert "11 citations: 4 exact, 4 normalised, 1 section, 2 unresolved" in printed
    assert "9 resolved, 8 of them to a section" in printed
    assert "[Service of Documents]" in printed
    assert cpr.run(["--source", str(written(tmp_path / "s", LINE)), "--check"]) == 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["Part 1.json", "ground_truth.jsonl", "s"]


def test_search_results_become_candidates_whose_citations_resolve(samples, tmp_path, capsys):
    out = tmp_path / "new" / "candidates.jsonl"
    flags = [
        "--ground-truth-out",
        str(out),
        "--from-search",
        str(samples / "cpr" / "search" / "ground_truth_costs.json"),
    ]
    assert cpr.run([*flags, str(samples / "cpr" / "documents" / "Part 9.json")]) == 0
    assert f"2 candidates -> {out}; read and edit each" in capsys.readouterr().out
    first, second = lines_of(out)
    assert first["question"] == "When may the Tribunal order one party to pay the costs of another?"
    assert first["truth"].endswith("case. [Part 12#page=Fees and Costs] [Practice Direction 12#page=Fees And Costs]")
    assert (first["source_type"], first["category"]) == ("CPR", "Tribunal Procedure Rules")
    assert second["question"] == "What does Part 9 provide?"
    assert "====" not in second["truth"]
    assert cpr.run(["--check", "--source", str(out), "--documents", str(samples / "cpr" / "documents")]) == 0
    out.write_text("edited\n", encoding="utf-8")
    assert cpr.run(flags) == 1
    assert "add --force to replace it" in capsys.readouterr().err
    assert out.read_text(encoding="utf-8") == "edited\n"
    assert cpr.run([*flags, "--force"]) == 0
    assert len(lines_of(out)) == 1


def test_search_exports_in_other_shapes(tmp_path):
    record = {"id": "Part 3 – Powers", "sourcepage": "Powers [old]", "content": "Rule 3.4 [omitted] applies."}
    several = [{"query": "q1", "results": [record]}, {"query": "q2", "value": [record]}, {"query": "q3", "results": []}]
    flat = [{**record, "query": "q4"}, {**record, "query": "q4"}]
    for name, data in (("a.json", several), ("b.json", flat), ("c.json", {"note": "nothing"})):
        (tmp_path / name).write_text(json.dumps(data), encoding="utf-8")
    out = tmp_path / "out.jsonl"
    assert (
        cpr.run(["--from-search", str(tmp_path / "a.json"), str(tmp_path / "b.json"), "--ground-truth-out", str(out)])
        == 0
    )
    assert [line["question"] for line in lines_of(out)] == ["q1", "q2", "q4"]
    assert lines_of(out)[0]["truth"] == "Rule 3.4 (omitted) applies. [Part 3#page=Powers (old)]"
    assert cpr.run(["--from-search", str(tmp_path / "c.json"), "--ground-truth-out", str(out), "--force"]) == 1
    assert len(lines_of(out)) == 3


# ---------------------------------------------------------------- real data


@pytest.mark.data
@pytest.mark.slow
def test_every_real_row_converts_and_each_citation_is_resolved_or_listed(data):
    benchmark, tally = read_rows(data / "cpr")
    assert [row.id for row in benchmark.rows] == list(range(62))
    assert len(benchmark.documents) == 237  # 232 in the flattened export, of which 20 have no file of their own
    resolved = Counter(dict(quote.labels)["resolved"] for row in benchmark.rows for quote in row.quotes)
    assert resolved == {"exact": 18, "normalised": 4, "section": 34}
    assert sum(quote.section for row in benchmark.rows for quote in row.quotes) == 51
    # the guide of the Circuit Commercial Court is not among the documents
    listed = tally.noted["citation to review: it gives no context"]
    assert [line.split(":")[0] for line in listed] == [f"row {number}" for number in range(35, 41)]


@pytest.mark.data
@pytest.mark.slow
def test_every_real_document_prints_with_all_its_words(data, convert):
    out = convert("cpr", "--source", data / "cpr")
    assert validate(out) == []
    sources, _ = load(data / "cpr" / "docs_json", Policy(), Tally())

    def letters(text: str) -> str:
        return "".join(filter(str.isalnum, text)).casefold()

    for source in sources:
        printed = letters(read_document(out / CORPUS / source.raw.filename).text)
        assert letters(source.document().text) in printed, source.raw.filename


def test_office_files_are_documents_and_every_file_is_accounted_for(tmp_path):
    source = written(tmp_path / "s", {**LINE, "truth": "Yes. [The Harbour Guide]"})
    (source.parent if source.is_file() else source).joinpath("the-harbour-guide.docx").write_bytes(
        files.docx(files.paragraph("Boats are moored at the owner's risk."))
    )
    benchmark, _ = read_rows(source)
    [guide] = [document for document in benchmark.documents if document.original is not None]
    assert guide.filename == "the-harbour-guide.docx.pdf"
    assert benchmark.rows[0].quotes[0].filename == guide.filename
