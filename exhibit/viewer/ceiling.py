"""Compare PDF parsers and chunkers on a bundle: how much gold each keeps whole, keeps in part, or loses.

    exhibit ceiling datasets_out/cuad --parser pypdf --parser pdfplumber --splitter rcts:500 --splitter sections
    exhibit ceiling datasets_out/cuad --parsed docling=parsed/ --html ceiling.html
    exhibit ceiling datasets_out/cuad --chunks chunks.jsonl

No RAG system runs: no search, reranker or model can recover gold that a parser or a chunker has lost.
"""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from exhibit.engine import add_limit_arguments, apply_limits, read_limits
from exhibit.evaluation.ceiling import (
    ALL_KINDS,
    OUTCOMES,
    Ceiling,
    CeilingRow,
    Lost,
    NamedSplitter,
    list_gold_items,
    measure_chunks,
    measure_reading,
    measure_splitter,
    read_with_files,
    read_with_parser,
)
from exhibit.evaluation.datasets import Dataset, Selection, load_datasets
from exhibit.evaluation.parsed_files import read_chunks
from exhibit.runtime.command import (
    add_json,
    align_rows,
    build_parser,
    guarded,
    parse_positive,
    print_note,
    print_results,
)
from exhibit.runtime.plugins import list_plugins
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.parsing import parse_pair
from exhibit.storage.atomic import write_whole

_PARSERS = ("pypdf", "pypdfium2")
"""The parsers that are compared where none is named: those of every installation."""
_SHOWN = 200
"""The number of passages that a page lists for each parser and chunker; --json has all."""
_FAULTS = 5
"""The number of unread documents that are named on the terminal."""
_COLOURS = {"whole": "#2a7f62", "part": "#d9a441", "lost": "#b3423a"}
_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:62rem;padding:0 1rem;color:#222}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #ddd}
td.n{text-align:right;white-space:nowrap}summary{cursor:pointer}mark{background:#f6d9d6}
"""


def measure_dataset(
    dataset: Dataset,
    *,
    parsers: Sequence[str],
    folders: Sequence[tuple[str, Path]],
    splitters: Sequence[str],
    chunk_files: Sequence[Path],
) -> tuple[list[Ceiling], int]:
    """Measure how much gold each parser, each splitter on each parser's text, and each chunk file keeps.

    Return the measurements, and the number of gold passages that are not located and therefore not measured.
    """
    items, unlocated = list_gold_items(dataset)
    if not items:
        raise BundleError(
            f"{dataset.root}: no gold passage is located, so there is nothing to measure; choose another bundle"
        )
    cutters = [NamedSplitter.of(wanted) for wanted in splitters]
    filenames = {item.document.filename for item in items}
    readings = [read_with_parser(name, dataset, filenames) for name in parsers]
    readings += [read_with_files(name, folder, dataset.documents) for name, folder in folders]
    ceilings: list[Ceiling] = []
    cut: list[Ceiling] = []
    for reading in readings:
        ceiling, texts = measure_reading(reading, items)
        ceilings.append(ceiling)
        cut += [measure_splitter(cutter, reading, items, texts) for cutter in cutters]
    for path in chunk_files:
        chunks = read_chunks(path, dataset.documents.named)
        cut.append(measure_chunks(path.name, chunks, items, dataset.documents))
    return [*ceilings, *cut], unlocated


# ---------------------------------------------------------------- on the terminal


def format_table(ceilings: Sequence[Ceiling]) -> list[str]:
    """Return the measurements as the lines of a text table: first the parsers, then the chunkers."""
    lines: list[str] = []
    for is_chunker, title in ((False, "parser"), (True, "chunker")):
        some = [one for one in ceilings if one.is_chunker == is_chunker]
        if not some:
            continue
        head = [title, "gold", "n", "whole", "", "cut" if is_chunker else "in part", "lost", "not known"]
        rows = [[*head, "cut before a proviso" if is_chunker else "", "seconds"]]
        for ceiling in some:
            rows += [[*_format_cells(row), *_format_last_cells(ceiling, row)] for row in ceiling.rows]
        lines += [*align_rows(rows), ""]
    return lines[:-1]


def _format_cells(row: CeilingRow) -> list[str]:
    whole, ends = row.shares["whole"], row.shares["whole"].ci95
    name = row.name if row.kind == ALL_KINDS else ""
    interval = f"[{ends[0]:.3f}, {ends[1]:.3f}]" if ends else ""
    rest = [_format_figure(row.shares[one].mean) for one in OUTCOMES[1:]]
    return [name, row.kind, str(whole.n), _format_figure(whole.mean), interval, *rest, str(row.unknown)]


def _format_last_cells(ceiling: Ceiling, row: CeilingRow) -> list[str]:
    seconds = f"{ceiling.seconds:.1f}" if ceiling.seconds is not None and row.kind == ALL_KINDS else ""
    return [str(row.before_proviso) if ceiling.is_chunker else "", seconds]


def _format_figure(share: float | None) -> str:
    return "–" if share is None else f"{share:.3f}"


# ---------------------------------------------------------------- as a page


def draw_page(title: str, ceilings: Sequence[Ceiling], notes: Sequence[str]) -> str:
    """Return a self-contained HTML page with the measurements of parsers and chunkers as bars.

    Under the bars, the page lists the gold passages that each parser or chunker lost or cut.
    """
    parts = [Markup("<h1>{}</h1>").format(f"What is left of the gold: {title}"), _draw_legend()]
    parts += [Markup("<p>{}</p>").format(note) for note in notes]
    for is_chunker, heading in ((False, "Parsers"), (True, "Chunkers")):
        some = [one for one in ceilings if one.is_chunker == is_chunker]
        if some:
            parts += [Markup("<h2>{}</h2>").format(heading), _draw_bars(some)]
            parts += [_draw_details(one) for one in some if one.lost]
    head = Markup('<!doctype html><html lang="en"><meta charset="utf-8"><title>{}</title><style>{}</style>')
    return head.format(f"Ceiling: {title}", Markup(_STYLE)) + Markup("\n").join(parts) + Markup("</html>\n")


def _draw_legend() -> Markup:
    words = {"whole": "whole", "part": "in part, or cut", "lost": "lost"}
    marks = [Markup('<b style="color:{}">■</b> {}').format(_COLOURS[one], words[one]) for one in OUTCOMES]
    return Markup("<p>{}. Brackets: 95% interval of the share that is whole.</p>").format(Markup(" ").join(marks))


def _draw_bars(ceilings: Sequence[Ceiling]) -> Markup:
    rows = [Markup("<table><tr><th></th><th>gold</th><th>share</th><th>whole</th><th>n</th></tr>")]
    for row in (row for ceiling in ceilings for row in ceiling.rows):
        cells = _format_cells(row)
        rows.append(
            Markup('<tr><td>{}</td><td>{}</td><td>{}</td><td class="n">{}</td><td class="n">{}</td></tr>').format(
                cells[0], row.kind, _draw_bar(row), f"{cells[3]} {cells[4]}", cells[2]
            )
        )
    return Markup("").join([*rows, Markup("</table>")])


def _draw_bar(row: CeilingRow) -> Markup:
    rects, at = [], 0.0
    for one in OUTCOMES:
        width = 300 * (row.shares[one].mean or 0.0)
        rects.append(Markup('<rect x="{:.1f}" width="{:.1f}" height="14" fill="{}"/>').format(at, width, _COLOURS[one]))
        at += width
    label = ", ".join(f"{one} {_format_figure(row.shares[one].mean)}" for one in OUTCOMES)
    svg = Markup('<svg width="300" height="14" role="img" aria-label="{}">{}</svg>')
    return svg.format(label, Markup("").join(rects))


def _draw_details(ceiling: Ceiling) -> Markup:
    lines = [_describe_lost(one) for one in ceiling.lost[:_SHOWN]]
    more = len(ceiling.lost) - len(lines)
    tail = Markup("<p>and {} more, which --json has</p>").format(more) if more else Markup("")
    summary = f"{ceiling.name}: {len(ceiling.lost)} passages not whole"
    body = Markup("<details><summary>{}</summary><ul>{}</ul>{}</details>")
    return body.format(summary, Markup("").join(lines), tail)


def _describe_lost(one: Lost) -> Markup:
    where = f"question {one.question}, {one.filename}" + (f", page {one.pages[0]}" if one.pages else "")
    words = Markup("<li>{} ({}, {})").format(where, one.kind, one.outcome)
    if one.cut:
        words += Markup(": … {} <mark>✂</mark> {} …").format(*one.cut)
    if one.before_proviso:
        words += Markup(" <b>cut before its proviso</b>")
    if one.missing:
        words += Markup(": missing <mark>{}</mark>").format(" … ".join(one.missing))
    return words + Markup("</li>")


# ---------------------------------------------------------------- the command


def _make_notes(ceilings: Sequence[Ceiling], unlocated: int) -> Iterator[str]:
    if unlocated:
        yield f"{unlocated} gold passages are not located, and are in no figure"
    for ceiling in ceilings:
        if ceiling.faults:
            named = "; ".join(f"{name}: {why}" for name, why in list(ceiling.faults.items())[:_FAULTS])
            more = len(ceiling.faults) - _FAULTS
            yield f"{ceiling.name}: not used: {named}" + (f"; and {more} more" if more > 0 else "")


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Measure parsers and chunkers on one bundle, print the figures, and write a page if --html names a file."""
    parser = build_parser("exhibit ceiling", __doc__)
    known = ", ".join(list_plugins("exhibit.evaluation.parsers"))
    parser.add_argument("bundle", metavar="BUNDLE", help="a bundle's folder or URL")
    add = parser.add_argument
    add("--parser", action="append", default=[], metavar="NAME", help=f"a PDF library: {known}; may be repeated")
    add(
        "--parsed",
        action="append",
        default=[],
        metavar="NAME=FOLDER",
        help=(
            "texts of another parser, one file per document: text, Markdown, HTML, or JSON of Docling, MinerU, "
            "Unstructured, Marker, LlamaParse; may be repeated"
        ),
    )
    splitters = ", ".join(list_plugins("exhibit.rag.splitters"))
    what = f"a splitter and its chunk size, such as rcts:500 (the splitters are {splitters}); may be repeated"
    add("--splitter", action="append", default=[], metavar="NAME[:SIZE]", help=what)
    what = "chunks of another system, one per row: JSONL, JSON, CSV or Parquet; may be repeated"
    add("--chunks", action="append", default=[], type=Path, metavar="FILE", help=what)
    add("--limit", type=parse_positive, metavar="N", help="only the gold of the first N questions")
    add("--html", type=Path, metavar="FILE", help="write a page with the figures and the lost passages to this file")
    add_limit_arguments(parser)
    add_json(parser)
    options = parser.parse_args(argv)
    try:
        pairs = [parse_pair(one, example="docling=parsed/") for one in options.parsed]
    except ValueError as error:
        raise ToolkitError(f"--parsed: {error}") from error
    parsers = options.parser or ([] if pairs or options.chunks else list(_PARSERS))
    with apply_limits(read_limits(options)):
        (dataset,), warnings = load_datasets([options.bundle], Selection(limit=options.limit))
        ceilings, unlocated = measure_dataset(
            dataset,
            parsers=parsers,
            folders=[(name, Path(folder)) for name, folder in pairs],
            splitters=options.splitter,
            chunk_files=options.chunks,
        )
    notes = [*warnings, *_make_notes(ceilings, unlocated)]
    for note in notes:
        print_note(note)
    record = {"bundle": dataset.name, "not_located": unlocated, "ceilings": [one.as_record() for one in ceilings]}
    print_results(record, "\n".join(format_table(ceilings)), as_json=options.json)
    if options.html:
        write_whole(options.html, draw_page(dataset.name, ceilings, notes))
        print_note(f"drawn: {options.html}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
