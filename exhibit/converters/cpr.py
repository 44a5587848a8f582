"""UK Civil Procedure: questions whose answers cite rules, practice directions and court guides.

exhibit convert cpr --source FOLDER --out datasets_out/cpr
"""

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from exhibit.converters import Benchmark, DatasetInfo, Label, Licence, Quote, RawRow, Tally
from exhibit.converters.civil_procedure.corpus import (
    Corpus,
    Resolution,
    RuleCitation,
    find_citations,
    load,
    read_candidates,
    read_string,
)
from exhibit.converters.core.build import SHIPPED
from exhibit.converters.core.command import main
from exhibit.converters.core.source import Release
from exhibit.converters.pages.fetch import add_fetch_arguments, read_policy
from exhibit.converters.tables.records import read_records
from exhibit.engine import run_in_worker
from exhibit.runtime.command import Parser, guarded
from exhibit.schemas.errors import SourceError
from exhibit.storage.atomic import write_whole

INFO = DatasetInfo(
    name="cpr",
    title="Civil Procedure Rules on PDFs",
    benchmark="UK Civil Procedure Rules question set (ground_truth_cpr.jsonl)",
    summary="""Questions on the civil procedure of England and Wales, answered with citations; each citation is resolved
        to the Part, practice direction or court guide that it names.""",
    expects="a .jsonl file with question and truth on each line, and documents beside it (JSON exports, PDFs)",
    licence=Licence(
        id="other",
        name="MIT (questions); Crown copyright (rules and court guides)",
        url="https://www.nationalarchives.gov.uk/doc/open-government-licence/version/3/",
        redistributable=False,
        note="The questions are under the MIT licence. Rules and practice directions are Crown copyright, usually under"
        " the Open Government Licence v3.0; a court guide may have other terms. Check them before you share documents.",
    ),
    url="https://www.justice.gov.uk/courts/procedure-rules/civil",
    version="as given",
    by_hand="""Nothing is downloaded automatically: the questions are passed with --source, and --documents shipped
        fetches the rules and practice directions from their publisher.""",
    headline="document_hit@1",
    tags=("legal", "civil procedure", "uk", "cpr"),
    accepts=(".jsonl",),
    questions="The questions and answers are the source's own; an answer keeps its citations in square brackets.",
    limits="""
        - Citations quote nothing: the gold is the section under the cited heading or number, up to the next heading of
          the same or a higher level, which may be longer than the answer.
        - A document that is cited as a whole is one section if it has at most 25,000 characters (about ten pages); a
          longer one counts for document metrics only.
        - A citation is matched by a document's name (exact), by its name without case, punctuation and abbreviation
          (normalised), or by a heading in any document (section): gold.jsonl states which.
        - A citation that names no document, or may name several, gives no context and is listed in bundle.json.
        - Answers hold for the text in the corpus, not for the law of today.""",
)


def add_arguments(parser: ArgumentParser) -> None:
    add_fetch_arguments(parser)
    documents = "a folder of JSON exports or PDFs, such a file, or a list of URLs; shipped: ours (default: the source)"
    parser.add_argument("--documents", type=Path, metavar="DIR|FILE|urls.txt", help=documents)


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    release = Release(source, INFO)
    table = release.find("ground_truth*.jsonl", "*.jsonl")
    folder: Path = options.documents or (source if source.is_dir() else table.parent)
    if folder == Path(SHIPPED) and not folder.exists():
        folder = Path(__file__).with_name("cpr_urls.txt")
    sources, digest = load(folder, read_policy(options), tally, table=table)
    rows = list(_read_rows(table, release.read(table), Corpus(sources), tally))
    documents = [source.raw for source in sources]
    if options.max_documents:  # documents with questions come first, so that a small bundle still has gold
        cited = {quote.filename for row in rows for quote in row.quotes}
        documents.sort(key=lambda raw: raw.filename not in cited)
    return Benchmark(documents, rows, {**release.sha256, "documents": digest})


def _read_rows(path: Path, data: bytes, corpus: Corpus, tally: Tally) -> Iterator[RawRow]:
    for record in read_records(path, data, tally):
        cells = record.cells
        question, truth = read_string(cells, "question"), read_string(cells, "truth")
        if not question or not truth:
            name = f"{path.name}: {record.place}"
            tally.fault("row without a question or an expected answer", name, item=record.item)
            continue
        others = sorted(cells.keys() - {"question", "truth", "source_type"})
        fields = [text for name in others if (text := read_string(cells, name))]
        kind = read_string(cells, "source_type")
        cited = [pair for citation in find_citations(truth) for pair in corpus.resolve_all(citation, kind, fields)]
        if not cited:
            tally.note("answer without a citation: the question has no context", f"question {record.index}")
        quotes = tuple(filter(None, (_quote(record.index, *pair, tally) for pair in cited)))
        labels: dict[str, Label] = {"source_type": kind, "category": read_string(cells, "category")}
        if unresolved := [citation.text for citation, resolution in cited if resolution.source is None]:
            labels["unresolved"] = "; ".join(unresolved)
        yield RawRow(record.index, question, truth, quotes=quotes, labels=labels, items=(record.item,))


def _quote(id: int, citation: RuleCitation, found: Resolution, tally: Tally) -> Quote | None:
    """Return the cited section as gold, else the whole document; None if the document of the citation is unknown."""
    name = f"question {id}: [{citation.text}]"
    if found.source is None:
        tally.note("unresolved citation, which gives the question no context", f"{name} {found.reason}", fault=True)
        return None
    section = citation.document if found.how == "section" else citation.section
    stated = {"citation": citation.text, "section": section, "page": citation.page, "resolved": found.how}
    labels = tuple((label, value) for label, value in stated.items() if value)
    filename = found.source.raw.filename
    if found.span is None:
        whole = "citation of a whole document longer than ten pages"
        what = "cited section is not found in the document" if section else whole
        tally.note(f"{what}: it counts for document metrics only", f"{name} -> {filename}")
        return Quote(filename, None, labels=labels)
    labels += (("heading", found.heading),)
    return Quote(filename, found.text, (found.span,), labels, score=found.score, section=True)


@guarded("stopped; nothing was written")
def run(argv: list[str] | None = None) -> int:
    """Run the converter; with `--from-search`, write a proposed question for each query of exported searches."""
    words = sys.argv[1:] if argv is None else argv
    if "--from-search" not in words:
        return main(sys.modules[__name__], words)
    parser = Parser(prog="exhibit convert cpr")
    parser.add_argument("--from-search", type=Path, nargs="+", required=True, metavar="EXPORT.json")
    parser.add_argument("--ground-truth-out", type=Path, required=True, metavar="FILE.jsonl")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    options = parser.parse_args(words)
    out: Path = options.ground_truth_out
    if out.exists() and not options.force:
        raise SourceError(f"{out}: exists already; add --force to replace it, or choose another --ground-truth-out")
    rows: dict[str, dict[str, str]] = {}
    for path in options.from_search:
        for row in run_in_worker(read_candidates, path):
            rows.setdefault(row["question"], row)
    if not rows:
        raise SourceError(f'{options.from_search[0]}: no search results in it; expected {{"query": …, "results": […]}}')
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values()))
    print(f"{len(rows)} proposed questions -> {out}; edit each: the words are from the documents, not from an expert")
    return 0
