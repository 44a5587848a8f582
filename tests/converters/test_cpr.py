"""CPR: the sample becomes this very bundle; each citation is resolved or listed; the other modes do what they say."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from converters import cpr
from converters._benchmark import RawDocument, Tally
from converters._cli import main
from converters._cpr.citations import Citation, Corpus, citations
from converters._cpr.documents import NO_DOCUMENT, Source, full_name, kind_of, load, reference_of
from converters._cpr.pages import page_of
from converters._web.fetch import Policy
from evidence import read_document
from schemas.bundle import CORPUS, GOLD, INFO, TRAIN
from schemas.errors import SourceError
from schemas.validate import validate
from tests.evidence import files

LINE = {"question": "What is the aim?", "truth": "Justice. [Purpose of these Rules]", "source_type": "CPR"}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory, samples) -> Path:
    """The sample, converted once."""
    out = tmp_path_factory.mktemp("cpr") / "bundle"
    assert main(cpr, ["--source", str(samples / "cpr"), "--out", str(out), "--jobs", "1"]) == 0
    return out


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
    parser = cpr.ArgumentParser()
    cpr.add_arguments(parser)
    parser.add_argument("--limit", type=int)
    return cpr.read(source, parser.parse_args(list(flags)), tally), tally


# ---------------------------------------------------------------- the sample


def test_the_sample_becomes_the_golden_bundle(bundle, golden):
    assert validate(bundle) == []
    golden("cpr/train.json", (bundle / TRAIN).read_text(encoding="utf-8"))
    kept = ("id", "context", "filename", "how", "labels")
    gold = [{key: line[key] for key in kept} for line in lines_of(bundle / GOLD)]
    golden("cpr/gold.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in gold))


def test_a_context_is_a_file_without_words_and_nothing_is_claimed_to_be_located(bundle):
    rows = json.loads((bundle / TRAIN).read_text(encoding="utf-8"))
    contexts = [context for row in rows for context in row["contexts"]]
    assert len(contexts) == 9
    assert all(context.keys() == {"filename"} for context in contexts)
    assert {line["how"] for line in lines_of(bundle / GOLD)} == {"absent"}
    assert not any(row["is_impossible"] for row in rows)


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
    markup = page_of(
        "Part 4 – Service of Documents", "PART 4 - SERVICE OF DOCUMENTS\n\n---\n\nWays\n\n4.1 A <b>\n\nX Y Z"
    )
    assert "<h1>PART 4 - SERVICE OF DOCUMENTS</h1><h2>Ways</h2><p>4.1 A &lt;b&gt;</p><p>X Y Z</p>" in markup


# ---------------------------------------------------------------- citations


def corpus(*names: str, courts: tuple[str, ...] = (), text: str = "") -> Corpus:
    def source(name: str) -> Source:
        title, *others = name.split(" | ")
        raw = RawDocument(f"{title}.pdf", title, text=text)
        return Source(raw, tuple(filter(None, (title, reference_of(title), *others))), kind_of(title), title)

    return Corpus([source(name) for name in names], courts)


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
    index = corpus(*RULES, courts=("Commercial Court", "Circuit Commercial Court"))
    found = index.resolve(Citation(cited, cited), source_type=kind, category="")
    assert (found.source.raw.filename if found.source else None, found.how) == (document, how)


@pytest.mark.parametrize(
    ("cited", "category", "document"),
    [
        (
            "J. Trial, J.5 Reading lists, authorities and timetable",
            "Commercial Court",
            "Commercial Court Guide FINAL 14.pdf",
        ),
        ("J.5 Reading lists", "Circuit Commercial Court", "The Circuit Commercial Court Guide.pdf"),
        ("J. Trial, J.6 Skeletons", "Commercial Court", None),
        ("J.5 Reading lists", "Patents Court", None),
    ],
)
def test_a_heading_is_looked_for_in_the_guide_of_the_rows_own_court(cited, category, document):
    text = "J.  Trial\nJ.4 Other things\nJ.5 Reading\nlists, authorities and timetable"
    index = corpus(*RULES, courts=("Commercial Court", "Circuit Commercial Court"), text=text)
    found = index.resolve(Citation(cited, cited), source_type="Court Guide", category=category)
    assert (found.source.raw.filename if found.source else None) == document
    assert found.how == ("section" if document else "unresolved")


def test_citations_are_read_from_an_answer_once_each():
    truth = "As held [2024] EWCA Civ 1, see [Part 36#page=Offers  to settle][1] [PART 36#page=Offers to Settle]."
    truth += " [A.1 B (pp. 1-2)]"
    assert citations(truth) == [
        Citation("Part 36#page=Offers to settle", "Part 36", "Offers to settle"),
        Citation("A.1 B (pp. 1-2)", "A.1 B", "", "1-2"),
    ]
    assert citations("[Part 3#page=12]") == [Citation("Part 3#page=12", "Part 3", "", "12")]


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
    assert full_name(name, section) == title


# ---------------------------------------------------------------- bad input


def test_a_bad_line_is_counted_and_never_renumbers(tmp_path):
    source = written(tmp_path / "s", LINE, "", "{broken", {"question": "Only this?"}, "[]", LINE)
    benchmark, tally = read_rows(source)
    assert [row.id for row in benchmark.rows] == [0, 4]
    reasons = {reason.split(" (")[0]: len(names) for reason, names in tally.left_out.items()}
    assert reasons == {"line is not JSON": 1, "row without question or truth": 2}, reasons
    with pytest.raises(SourceError, match="row 1: line is not JSON"):
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
    with pytest.raises(SourceError, match="several tables: ground_truth.jsonl and ground_truth_2.jsonl"):
        read_rows(source)
    assert len(read_rows(source / "ground_truth.jsonl")[0].rows) == 1
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"no \.jsonl file in it"):
        read_rows(tmp_path / "empty")
    with pytest.raises(SourceError, match="no document in it; expected JSON exports, PDFs or HTML"):
        read_rows(source / "ground_truth.jsonl", "--documents", str(tmp_path / "empty"))


def test_two_documents_of_one_name_are_refused_and_two_that_differ_are_told(tmp_path):
    source = written(tmp_path / "s", LINE)
    other = json.loads((source / "Part 1.json").read_text(encoding="utf-8"))
    (source / "Part 1b.json").write_text(json.dumps([{**other, "content": "1.1 Another aim."}]), encoding="utf-8")
    (source / "bad.json").write_text("{", encoding="utf-8")
    benchmark, tally = read_rows(source)
    assert [document.text for document in benchmark.documents] == ["1.1 The aim."]
    assert "document exports of it differ, the first is kept" in tally.noted
    assert "JSON file cannot be read" in tally.left_out
    (source / "Part 1 – purpose of these rules.html").write_text("<title>x</title>", encoding="utf-8")
    with pytest.raises(SourceError, match="two documents would be named"):
        read_rows(source)


def test_a_limit_keeps_the_documents_that_are_asked_about(samples):
    benchmark, _ = read_rows(samples / "cpr", "--limit", "2")
    names = {document.filename for document in benchmark.documents}
    assert names == {"Part 4 – Service of Documents.pdf", "Practice Direction 12 – Fees And Costs.pdf"}
    assert [row.id for row in benchmark.rows] == [0, 1, 6, 7, 9]


# ---------------------------------------------------------------- pages and links


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
    assert rows[0]["contexts"] == [{"filename": "part-1.pdf"}]
    info = json.loads((out / INFO).read_text(encoding="utf-8"))
    assert [entry["source"] for entry in info["documents"]] == [f"{url}/part-1"]
    assert sum(len(names) for names in info["left_out"].values()) == 1
    assert "urls" not in json.dumps(info["options"])


# ---------------------------------------------------------------- the other modes


def test_check_prints_every_citation_and_fails_on_an_unresolved_one(samples, tmp_path, capsys):
    assert cpr.run(["--check", "--source", str(samples / "cpr")]) == 1
    printed = capsys.readouterr().out
    assert "11 citations: 4 exact, 4 normalised, 1 section, 2 unresolved" in printed
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
        assert letters(source.text()) in printed, source.raw.filename


def test_office_files_are_documents_and_every_file_is_accounted_for(tmp_path):
    source = written(tmp_path / "s", {**LINE, "truth": "Yes. [The Harbour Guide]"})
    (source.parent if source.is_file() else source).joinpath("the-harbour-guide.docx").write_bytes(
        files.docx(files.paragraph("Boats are moored at the owner's risk."))
    )
    benchmark, _ = read_rows(source)
    [guide] = [document for document in benchmark.documents if document.original is not None]
    assert guide.filename == "the-harbour-guide.docx.pdf"
    assert benchmark.rows[0].quotes[0].filename == guide.filename
