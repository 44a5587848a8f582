"""CPR: citations are resolved or listed, documents are downloaded, and rows are drafted from search results."""

import json
from collections import Counter
from pathlib import Path

import pytest

from exhibit.converters import RawDocument, cpr
from exhibit.converters.civil_procedure.corpus import MAX_WHOLE_CHARS, Corpus, blocks_of, find_citations, make_source
from exhibit.evidence import read_document
from exhibit.schemas.bundle import CORPUS, INFO, TRAIN
from tests.conversion import read_source
from tests.converters.site import serve

LINE = {"question": "What is the aim?", "truth": "Justice. [Purpose of these Rules]", "source_type": "CPR"}


def write_source(folder: Path, *rows: object) -> Path:
    """Return a source with one document and these rows."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ground_truth.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    name = "Purpose of these Rules"
    record = {"id": f"Part 1 – {name}", "sourcepage": name, "content": "1.1 The aim."}
    (folder / "Part 1.json").write_text(json.dumps(record), encoding="utf-8")
    return folder


def test_cpr_document_joins_exported_chunks_in_order_without_export_headers(converted):
    text = read_document(converted("cpr") / CORPUS / "Part 9 – Hearings and Evidence.pdf").text
    places = [text.index(words) for words in ("9.1 A hearing", "9.3 The Tribunal", "Witness evidence", "9.6 A party")]
    assert places == sorted(places)
    assert not any(words in text for words in ("Document:", "Part 1 of 2", "===="))
    assert text.count("9.4 A fact") == 1


def corpus(*names: str, texts: dict[str, str] | None = None) -> Corpus:
    sources = []
    for title in names:
        blocks = tuple(blocks_of(title, (texts or {}).get(title, "Nothing.")))
        text = "\n\n".join(block.text for block in blocks)
        sources.append(make_source(RawDocument(f"{title}.pdf", title, text=text, blocks=blocks), [title], title))
    return Corpus(sources)


def resolve_citation(index: Corpus, cited: str, source_type: str = "", *fields: str):
    """Return the resolution of one citation in brackets, given the other fields of its row."""
    (citation,) = find_citations(f"It is so. [{cited}]")
    return index.resolve(citation, source_type, fields)


RULES = (
    "Part 1 – Purpose", "Part 36 – Offers to Settle", "Practice Direction 36 – Offers to Settle",
    "Practice Direction 34A – Depositions", "Commercial Court Guide FINAL 14", "The Circuit Commercial Court Guide",
)  # fmt: skip


@pytest.mark.parametrize(
    ("cited", "kind", "document", "how"),
    [
        ("Part 36", "", "Part 36 – Offers to Settle.pdf", "exact"),
        ("Offers to Settle", "CPR", "Part 36 – Offers to Settle.pdf", "exact"),
        ("Offers to Settle", "PD", "Practice Direction 36 – Offers to Settle.pdf", "exact"),
        ("Offers to Settle", "", None, None),
        ("Depositions", "CPR", "Practice Direction 34A – Depositions.pdf", "exact"),
        ("CPR Part 36", "CPR", "Part 36 – Offers to Settle.pdf", "normalised"),
        ("PART 36 - OFFERS TO SETTLE", "CPR", "Part 36 – Offers to Settle.pdf", "normalised"),
        ("Part 36 offers", "PD", "Part 36 – Offers to Settle.pdf", "normalised"),
        ("PD34A", "PD", "Practice Direction 34A – Depositions.pdf", "normalised"),
        ("Practice Direction 34 A - depositions", "PD", "Practice Direction 34A – Depositions.pdf", "normalised"),
        ("Commercial Court Guide", "Court Guide", "Commercial Court Guide FINAL 14.pdf", "normalised"),
        ("Part 1 of the Digital Markets Act 2024", "CPR", None, None),
        ("Part 99", "CPR", None, None),
        ("Chancery Guide", "Court Guide", None, None),
    ],
)
def test_resolve_citation_returns_the_cited_document_or_none(cited, kind, document, how):
    found = resolve_citation(corpus(*RULES), cited, kind)
    assert (found.source and found.source.raw.filename, found.how) == (document, how)


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


def make_guides() -> Corpus:
    return corpus(
        *PLACES,
        "Part 36 – Offers to Settle",
        texts={PLACES[0]: GUIDE, PLACES[1]: OTHER, PLACES[2]: OTHER.replace("Contact details", "Timetable"),
               "Part 36 – Offers to Settle": "---\n\nScope\n\n36.1 About offers.\n\n36.2\n\n(1) An offer is made."},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cited", "row", "document", "begins", "ends"),
    [
        ("J. Trial, J.5 Reading lists, authorities and timetable", (), 0, "J.5 Reading", "agreed."),
        ("J. TRIAL, J5 reading lists, authorities and timetable", (), 0, "J.5 Reading", "agreed."),
        ("J.5 Reading lists, authorities …", (), 0, "J.5 Reading", "agreed."),
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
def test_resolve_citation_finds_the_section_under_the_cited_heading(cited, row, document, begins, ends):
    names = (*PLACES, "Part 36 – Offers to Settle")
    found = resolve_citation(make_guides(), cited, *row)
    assert found.source is not None, found.reason
    assert found.source.raw.title == names[document]
    assert found.text.startswith(begins)
    assert found.text.endswith(ends)
    assert (found.score < 1) == ("…" in cited)


@pytest.mark.parametrize(
    ("cited", "row", "reason"),
    [
        ("J.5 Reading", (), "names 2 documents: The Patents Court Guide.pdf, The Technology"),
        ("J.6 Reading lists, authorities and timetable", ("Commercial Court",), "names no document"),
        ("J. Trial, J.7 Judgment", ("Commercial Court",), "names no document"),
        ("Appendix B: Specimen Directions, Trial (p. 38)", ("Commercial Court",), "names no document"),
        ("K.1 Enforcement of judgments abroad and at home", ("Circuit Commercial Court",), "Guide is not in it"),
        ("K.1 Enforcement of judgments abroad and at home", (), "names 3 documents"),
        ("J.5 Reading lists, authorities and timetable", ("Circuit Commercial Court",), "Guide is not in it"),
        ("Circuit Commercial Court Guide, J.4 Documents for the trial", (), "Circuit Commercial Court Guide is not in"),
        ("Scope", (), "with certainty: it is a heading in Part 36 – Offers to Settle.pdf"),
        ("CPR 99.2", (), "names no document"),
    ],
)
def test_resolve_citation_gives_reason_when_no_source_is_certain(cited, row, reason):
    found = resolve_citation(make_guides(), cited, *row)
    assert found.source is None
    assert reason in found.reason


def test_resolve_citation_of_a_whole_long_document_returns_no_span():
    text = "Word. " * (MAX_WHOLE_CHARS // 6 + 1)
    index = corpus("Part 1 – Purpose", texts={"Part 1 – Purpose": f"1.1 Short.\n\n{text}"})
    found = resolve_citation(index, "Part 1")
    assert found.source is not None
    assert found.span is None
    assert resolve_citation(index, "CPR 1.1").span is not None


def test_resolve_all_splits_a_bracket_at_semicolons_except_inside_a_heading():
    index = corpus(
        *RULES, texts={"The Circuit Commercial Court Guide": "---\n\nB.1 Listing; reading; costs\n\nB.1.1 X."}
    )
    (citation,) = find_citations("So. [Part 36; PD 34A; Part 99]")
    pairs = index.resolve_all(citation)
    assert [part.text for part, _ in pairs] == ["Part 36", "PD 34A", "Part 99"]
    assert [bool(found.source) for _, found in pairs] == [True, True, False]
    (citation,) = find_citations("So. [B.1 Listing; reading; costs]")
    assert [found.heading for _, found in index.resolve_all(citation)] == ["B.1 Listing; reading; costs"]


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
def test_find_citations_skips_editorial_brackets(truth, count):
    assert len(find_citations(truth)) == count


def test_cpr_downloads_documents_from_a_list_of_urls(tmp_path, monkeypatch, convert):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    source, listed, pages = write_source(tmp_path / "s", LINE), tmp_path / "urls.txt", tmp_path / "site"
    pages.mkdir()
    (pages / "part-1.html").write_text("<title>Part 1 - Purpose of these Rules</title><p>1.1 The aim.</p>", "utf-8")
    with serve(pages) as site:
        listed.write_text(f"# the rules\n{site.url}/part-1.html\n\n{site.url}/gone\n", encoding="utf-8")
        flags = ("--source", source / "ground_truth.jsonl", "--documents", listed)
        out = convert("cpr", *flags, "--allow-private", "--delay", "0")
    rows = json.loads((out / TRAIN).read_text(encoding="utf-8"))
    assert rows[0]["contexts"] == [{"filename": "part-1.html.pdf", "text": "1.1 The aim."}]
    info = json.loads((out / INFO).read_text(encoding="utf-8"))
    assert [entry["source"] for entry in info["documents"]] == [f"{site.url}/part-1.html"]
    assert sum(len(names) for names in info["left_out"].values()) == 1
    assert "urls" not in json.dumps(info["options"])


def test_cpr_strict_conversion_exits_with_1_if_a_citation_is_unresolved(samples, tmp_path, convert, capsys):
    bundle = convert("cpr", "--source", samples / "cpr", "--strict", expect=1)
    error = capsys.readouterr().err
    assert "[B.1 The claim (pp. 4-5)] names no document" in error and not bundle.exists()
    assert (convert("cpr", "--source", write_source(tmp_path / "s", LINE), "--strict") / TRAIN).is_file()


@pytest.mark.data
@pytest.mark.slow
def test_cpr_resolves_published_citations_or_lists_them_for_review(data):
    benchmark, tally = read_source(cpr, data / "cpr")
    assert [row.id for row in benchmark.rows] == list(range(62))
    assert len(benchmark.documents) == 237  # 232 in the flattened export, of which 20 have no file of their own
    resolved = Counter(dict(quote.labels)["resolved"] for row in benchmark.rows for quote in row.quotes)
    assert resolved == {"exact": 18, "normalised": 4, "section": 34}
    assert sum(quote.section for row in benchmark.rows for quote in row.quotes) == 51
    # the guide of the Circuit Commercial Court is not among the documents
    listed = tally.noted["unresolved citation, which gives the question no context"]
    assert [line.split(":")[0] for line in listed] == [f"question {number}" for number in range(35, 41)]


def test_cpr_from_search_flag_writes_rows_with_resolvable_citations(samples, tmp_path, capsys):
    out = tmp_path / "new" / "candidates.jsonl"
    search = str(samples / "cpr" / "search" / "ground_truth_costs.json")
    flags = ["--ground-truth-out", str(out), "--from-search", search]
    assert cpr.run(flags) == 0
    assert f"1 proposed questions -> {out}; edit each" in capsys.readouterr().out
    [row] = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert row["question"] == "When may the Tribunal order one party to pay the costs of another?"
    assert row["truth"].endswith("case. [Part 12#page=Fees and Costs] [Practice Direction 12#page=Fees And Costs]")
    assert (row["source_type"], row["category"]) == ("CPR", "Tribunal Procedure Rules")
    benchmark, _ = read_source(cpr, out, "--documents", samples / "cpr" / "documents")
    assert len(benchmark.rows[0].quotes) == 2
    assert cpr.run(flags) == 1 and "add --force to replace it" in capsys.readouterr().err
    (tmp_path / "none.json").write_text('{"note": "nothing"}', encoding="utf-8")
    assert cpr.run(["--from-search", str(tmp_path / "none.json"), "--ground-truth-out", str(out), "--force"]) == 1
    assert "no search results in it" in capsys.readouterr().err and json.loads(out.read_text(encoding="utf-8")) == row
