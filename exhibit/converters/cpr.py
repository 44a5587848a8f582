"""UK Civil Procedure: questions whose answers cite rules, practice directions and court guides.

python -m converters.cpr --source FOLDER --out datasets_out/cpr
"""

import hashlib
import json
import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from exhibit.converters import Benchmark, Item, Quote, RawRow, Tally, read_info
from exhibit.converters.benchmark import Label
from exhibit.converters.civil_procedure.corpus import Corpus
from exhibit.converters.civil_procedure.names import RuleCitation, find_citations
from exhibit.converters.civil_procedure.parsing import read_string
from exhibit.converters.civil_procedure.resolution import METHODS, Resolution, RowEvidence
from exhibit.converters.civil_procedure.sources import RulesFile, load, make_candidates
from exhibit.converters.fetching.fetch import add_fetch_arguments as add_arguments
from exhibit.converters.fetching.fetch import read_policy
from exhibit.converters.raw.records import read_records
from exhibit.converters.raw.source import find_one, open_source
from exhibit.converters.steps.cli import add_own_flags, main
from exhibit.converters.steps.patches import SHIPPED
from exhibit.runtime.command import Parser, align_rows, guarded, rename_commands
from exhibit.schemas.errors import SourceError
from exhibit.storage.atomic import write_whole

__all__ = ["INFO", "add_arguments", "read"]

INFO = read_info(__file__)

_UNRESOLVED = "citation to review: it gives no context"
_NAMED = "citation of a whole document longer than ten pages: it counts for document metrics only"
_NOT_FOUND = "cited section is not found in the document: it counts for document metrics only"
_BRACKETS = re.compile(r"\[[^\[\]]*\]")


@dataclass(frozen=True)
class _Entry:
    """A line of the ground truth with its resolved citations."""

    id: int
    item: Item
    question: str
    truth: str
    source_type: str
    category: str
    fields: tuple[str, ...] = ()
    """The row's other texts, which may name a court."""
    cited: tuple[tuple[RuleCitation, Resolution], ...] = ()


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read the questions and the documents, and resolve each citation of a question to a document."""
    sources, entries, hashes = _resolve_sources(source, options, tally)
    rows = [_make_row(entry) for entry in entries]
    if options.limit:
        # documents with questions first, so that a small bundle still has gold
        cited = [quote.filename for row in rows for quote in row.quotes]
        kept = list(dict.fromkeys([*cited, *(s.raw.filename for s in sources)]))[: options.limit]
        sources.sort(key=lambda source: source.raw.filename not in kept)
    return Benchmark(documents=[s.raw for s in sources], rows=rows, sha256=hashes)


def _resolve_sources(
    source: Path, options: Namespace, tally: Tally
) -> tuple[list[RulesFile], list[_Entry], dict[str, str]]:
    table = find_one(source, INFO, "ground_truth*.jsonl", "*.jsonl")
    documents: Path = options.documents or (source if source.is_dir() else table.parent)
    if documents == Path(SHIPPED) and not documents.exists():
        documents = Path(__file__).with_name("cpr_urls.txt")
    if not documents.exists():
        raise SourceError(f"{documents}: no such file or folder; --documents takes exports, PDFs, HTML or a URL list")
    sources, digest = load(documents, read_policy(options), tally, table=table)
    entries = list(_read_entries(table, tally))
    corpus = Corpus(sources)
    hashes = {table.name: hashlib.sha256(table.read_bytes()).hexdigest(), "documents": digest}
    tied = [_tie_entry(entry, corpus, tally) for entry in entries]
    for fault in corpus.faults:
        tally.note("document whose headings were not looked for to the end", fault)
    return sources, tied, hashes


# ---------------------------------------------------------------- the ground truth


def _read_entries(path: Path, tally: Tally) -> Iterator[_Entry]:
    """Yield the questions of the ground truth.

    The id of a question is the index of its line, counted without blank lines and comments. An invalid line is
    skipped but keeps its index, so that the ids of the other questions do not change.
    """
    for record in read_records(path, path.read_bytes(), tally):
        cells = record.cells
        question, truth = read_string(cells, "question"), read_string(cells, "truth")
        if not question or not truth:
            tally.fault("row without question or truth", f"{path.name}: {record.place}", item=record.item)
            continue
        others = sorted(cells.keys() - {"question", "truth", "source_type"})
        fields = tuple(filter(None, (read_string(cells, name) for name in others)))
        kind, category = read_string(cells, "source_type"), read_string(cells, "category")
        yield _Entry(record.index, record.item, question, truth, kind, category, fields)


def _tie_entry(entry: _Entry, corpus: Corpus, tally: Tally) -> _Entry:
    row = RowEvidence(entry.source_type, entry.fields, f"{entry.question}\n{_BRACKETS.sub(' ', entry.truth)}")
    cited = [pair for citation in find_citations(entry.truth) for pair in corpus.resolve_all(citation, row)]
    for citation, resolution in cited:
        place = f"row {entry.id}: [{citation.text}]"
        if resolution.source is None:
            if tally.strict:
                raise SourceError(f"{place} {resolution.reason}; fix the source, or remove --strict")
            tally.note(_UNRESOLVED, f"{place} {resolution.reason}")
        elif resolution.place is None:
            remark = _NOT_FOUND if resolution.how == "section" or citation.section else _NAMED
            tally.note(remark, f"{place} -> {resolution.source.raw.filename}")
    if not cited:
        tally.note("answer without a citation: it gives no context", f"row {entry.id}")
    return replace(entry, cited=tuple(cited))


def _make_row(entry: _Entry) -> RawRow:
    labels: dict[str, Label] = {"source_type": entry.source_type, "category": entry.category}
    review = [citation.text for citation, resolution in entry.cited if resolution.source is None]
    if review:
        labels["unresolved"] = "; ".join(review)
    quotes = [
        _quote(citation, resolution.source, resolution)
        for citation, resolution in entry.cited
        if resolution.source is not None
    ]
    return RawRow(entry.id, entry.question, entry.truth, quotes=tuple(quotes), labels=labels, items=(entry.item,))


def _quote(citation: RuleCitation, source: RulesFile, resolution: Resolution) -> Quote:
    """Return a citation as gold: the cited section with its text, or only the document if no section was located."""
    section = citation.document if resolution.how == "section" else citation.section
    said = {"citation": citation.text, "section": section, "page": citation.page, "resolved": resolution.how}
    labels = [(name, value) for name, value in said.items() if value]
    place = resolution.place
    if place is None:
        return Quote(source.raw.filename, None, labels=tuple(labels))
    labels.append(("heading", place.heading))
    return Quote(
        source.raw.filename,
        place.text,
        spans=((place.start, place.end),),
        labels=tuple(labels),
        score=resolution.score,
        section=True,
    )


# ---------------------------------------------------------------- other modes


@guarded("stopped; nothing was written")
def run(argv: list[str] | None = None) -> int:
    """Run the converter.

    With `--check`, only check the citations. With `--from-search`, write candidate ground truth from search
    exports, which a person then edits.
    """
    modes = Parser(add_help=False)
    modes.add_argument("--check", action="store_true")
    modes.add_argument("--from-search", type=Path, nargs="+")
    wanted, rest = modes.parse_known_args(argv)
    if wanted.from_search:
        return _from_search(wanted.from_search, rest)
    if wanted.check:
        return _check(rest)
    return main(sys.modules[__name__], argv)


def _check(argv: list[str]) -> int:
    """Print how each citation was resolved; return 1 if a citation is unresolved."""
    parser = Parser(prog=rename_commands("python -m converters.cpr --check"))
    parser.add_argument("--source", type=Path, required=True, metavar="DIR|FILE.jsonl")
    add_own_flags(sys.modules[__name__], parser)
    options = parser.parse_args(argv)
    with open_source(INFO, options.source) as source:
        _, entries, _ = _resolve_sources(source, options, Tally())
    lines = [("row", "how", "citation", "document")]
    for entry in entries:
        for citation, cited in entry.cited:
            target = cited.source.raw.filename if cited.source else cited.reason
            if cited.place:
                target += f": {cited.place.heading}" + (f" (page {cited.place.page})" if cited.place.page else "")
            lines.append((str(entry.id), cited.how, f"[{citation.text}]", target))
    print("\n".join(align_rows(lines, most=60)))
    counts = Counter(cited.how for entry in entries for _, cited in entry.cited)
    located = sum(1 for entry in entries for _, cited in entry.cited if cited.place)
    print(f"{counts.total()} citations: " + ", ".join(f"{counts[how]} {how}" for how in METHODS))
    print(f"{counts.total() - counts['unresolved']} resolved, {located} of them to a section")
    return 1 if counts["unresolved"] else 0


def _from_search(exports: list[Path], argv: list[str]) -> int:
    """Write proposed questions and answers for a person to edit: one line for each query in search exports.

    Raise SourceError if the output file exists, because a person may have edited it; --force replaces the file.
    """
    parser = Parser(prog=rename_commands("python -m converters.cpr --from-search EXPORT.json …"))
    parser.add_argument("--ground-truth-out", type=Path, required=True, metavar="FILE.jsonl")
    parser.add_argument("--force", action="store_true", help="replace the file")
    options = parser.parse_args(argv)
    out: Path = options.ground_truth_out
    if out.exists() and not options.force:
        raise SourceError(f"{out}: exists already; add --force to replace it, or choose another --ground-truth-out")
    lines = [json.dumps(line, ensure_ascii=False) for line in make_candidates(exports)]
    try:
        write_whole(out, "\n".join(lines) + "\n")
    except OSError as error:
        raise SourceError(f"{out}: cannot be written: {error.strerror}") from error
    print(f"{len(lines)} candidates -> {out}; read and edit each: the words are the documents', not an expert's")
    return 0


if __name__ == "__main__":
    sys.exit(run())
