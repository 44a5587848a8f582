"""The results folder of a run to `report.html` and the folder of pieces that it loads when they are needed."""

from __future__ import annotations

import shutil
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from exhibit.engine import Limits, track
from exhibit.evaluation.report import shell
from exhibit.evaluation.report.binder import Binder, Catalogue, Facet
from exhibit.evaluation.report.drawing import PAGES, Drawn, Wanted, draw
from exhibit.evaluation.report.pieces import IMAGES, Inlined, write_piece
from exhibit.evaluation.report.plots import make_plots, verdict_shares
from exhibit.evaluation.report.questions import FIELDS, brief, error_kind, labels_of
from exhibit.evaluation.report.run import Record, RecordedRun, Rows, read_run, settings, tally
from exhibit.evaluation.report.sources import dataset_names, dataset_roots
from exhibit.evaluation.report.tables import breakdowns, main_table, whole_table
from exhibit.evaluation.report.wording import GOOD, VERDICTS, lead, stage_counts
from exhibit.storage.locations import keeping
from exhibit.storage.place import Kind, placed
from exhibit.storage.scratch import scratch_folder
from exhibit.storage.whole import write_whole

NAME = "report.html"
PIECES = Kind("the pieces of a page", lambda folder: (folder / "i0.js").is_file())
SINGLE_BUDGET = 30_000_000
"""Characters of pieces in a single file: what a browser opens in about a second, and a mail program still sends."""
SCRIPTS = ("build.js", "pieces.js", "case.js", "list.js", "export.js", "keys.js")
_TELLING = ("target", "preset", "embedder", "splitter", "llm", "answerer", "top_k", "k", "file_type")
"""Settings that say at a glance what was run."""


def write_report(
    folder: Path,
    *,
    datasets: Mapping[str, Path] | None = None,
    pages: int | None = PAGES,
    cases: int | None = None,
    single_file: bool = False,
    jobs: int | None = None,
    limits: Limits | None = None,
    say: Callable[[str], None] | None = None,
) -> Path:
    """Write the report of a results folder from what is on disk, a row at a time, and return its path.

    `datasets` has the bundles under the names of their folders in the results; without it they are taken from where
    the run found them. At most `pages` pages are drawn (None: all), those of `cases` questions (None: of
    all), failures first. `say` is told what is not drawn and why.
    """
    notes: list[str] = []
    roots = dataset_roots(folder, notes.append) if datasets is None else datasets
    names = list(dict.fromkeys([*dataset_names(folder), *(datasets or ())]))
    run, rows = read_run(folder, names), Rows(folder, names)
    path = folder / NAME
    path.unlink(missing_ok=True)  # pieces of this report and a page of the last would not fit each other
    with pieces_folder(folder / "report_files", single_file=single_file) as (pieces, finish):
        wanted = Wanted()
        meta = _bind(run, rows, pieces, wanted, cases=cases if pages != 0 else 0)
        with keeping():  # remote documents are fetched once
            drawn = draw_pages(wanted, roots, pieces, pages=pages, jobs=jobs, limits=limits)
        notes += [*drawn.faults, *not_drawn(drawn)]
        blocks = finish(meta, drawn)
        write_whole(path, _render(run, meta, notes, blocks, single_file=single_file))
    for note in notes:
        (say or (lambda _: None))(note)
    return path


# ---------------------------------------------------------------- the pieces


@contextmanager
def pieces_folder(out: Path, *, single_file: bool) -> Iterator[tuple[Path, Callable[[Record, Drawn], dict[str, str]]]]:
    """Yield where pieces go, and a function that returns the blocks the page itself must hold once they are there."""

    def told(meta: Record, drawn: Drawn, inlined: Inlined | None) -> dict[str, str]:
        meta |= {"documents": drawn.documents, "folder": None if inlined else out.name}
        kept = min(meta["total"], inlined.cases * meta["cases"]) if inlined else meta["total"]
        meta |= {"whole": kept, "pictures_left_out": inlined.pages_left_out if inlined else 0}
        return {"meta": shell.as_json(meta)}

    if single_file:
        with scratch_folder() as folder:

            def finish(meta: Record, drawn: Drawn) -> dict[str, str]:
                inlined = Inlined(folder, budget=SINGLE_BUDGET)
                return told(meta, drawn, inlined) | inlined.blocks

            yield folder, finish
        if PIECES.is_one(out):
            shutil.rmtree(out)
        return
    with placed(out, force=True, kind=PIECES) as folder:

        def finish(meta: Record, drawn: Drawn) -> dict[str, str]:
            # the first lines are in the page: it is drawn before anything else is loaded
            first = (folder / "i0.js").read_text(encoding="ascii").split('"')[-2]
            return told(meta, drawn, None) | {"piece-i0": first}

        yield folder, finish


def draw_pages(
    wanted: Wanted,
    roots: Mapping[str, Path],
    pieces: Path,
    *,
    pages: int | None,
    jobs: int | None = None,
    limits: Limits | None = None,
) -> Drawn:
    """Draw what cases ask to see beside the other pieces."""

    def put(number: int, content: Record) -> None:
        write_piece(pieces, f"d{number}", content)

    return draw(wanted, roots, pieces / IMAGES, put, most=pages, jobs=jobs, limits=limits)


def not_drawn(drawn: Drawn) -> list[str]:
    """Return how many pages are not drawn, where some are not."""
    if drawn.pages >= drawn.wanted:
        return []
    return [
        f"{drawn.pages:,} of the {drawn.wanted:,} pages that cases show are drawn, failures first; "
        "the others are given in words (--pages all draws them)"
    ]


# ---------------------------------------------------------------- the cases


def _bind(run: RecordedRun, rows: Rows, pieces: Path, wanted: Wanted, *, cases: int | None) -> Record:
    """Write the list and the cases, the worst verdicts first; rows are read twice, and one at a time."""
    catalogue = Catalogue(
        [Facet("dataset", "Dataset"), Facet("verdict", "Verdict", tuple(VERDICTS)), Facet("error", "Error")]
    )
    verdicts = array("B")
    ranks: list[int] = []
    seen: Counter[tuple[str, str]] = Counter()
    places = {verdict: number for number, verdict in enumerate(VERDICTS)}
    by_name = {dataset.name: dataset for dataset in run.datasets}
    for name, row in rows.scan():
        tally(run, by_name[name], row)
        catalogue.count([name, row["verdict"], error_kind(row)], labels_of(row))
        verdicts.append(places.get(row["verdict"], len(places)))
        # the first of each kind in each dataset before the second of any; what went well comes last
        ranks.append(seen[name, row["verdict"]] + (row["verdict"] in GOOD) * 1_000_000_000)
        seen[name, row["verdict"]] += 1
    catalogue.close()
    drawn = set(sorted(range(len(ranks)), key=lambda n: (ranks[n], n))[: len(ranks) if cases is None else cases])
    order = sorted(range(len(verdicts)), key=lambda number: (verdicts[number], number))
    binder = Binder(pieces, catalogue, wanted)
    read = track(rows.read(order), total=len(order), label="report", unit="question")
    for number, (name, row) in zip(order, read, strict=True):
        line = catalogue.line([name, row["verdict"], error_kind(row)], brief(row), labels_of(row))
        binder.add(name, [row], line, rank=ranks[number] if number in drawn else None)
    return binder.close() | {"kind": "report", "fields": FIELDS, "runs": [run.name]}


# ---------------------------------------------------------------- the page


def _render(run: RecordedRun, meta: Record, notes: list[str], blocks: dict[str, str], *, single_file: bool) -> str:
    verdicts = sum((dataset.verdicts for dataset in run.datasets), Counter[str]())
    asked = dict(settings(run.config))
    body = render(
        "report.html.j2",
        run=run,
        meta=meta,
        notes=notes,
        asked=asked,
        telling=[(name, value) for name in _TELLING if (value := asked.get(name) or asked.get(f"config.{name}"))],
        lead=lead(verdicts),
        stages=stage_counts(run),
        shares=verdict_shares(run),
        verdicts=[(verdict, meaning, verdicts[verdict]) for verdict, meaning in VERDICTS.items() if verdicts[verdict]],
        plots=make_plots(run),
        table=main_table(run),
        every=whole_table(run),
        breakdowns=breakdowns(run),
    )
    return shell.page(
        f"{run.name} – Exhibit report",
        body,
        style=shell.read("report.css"),
        scripts=[shell.read(name) for name in SCRIPTS],
        data=blocks,
        pieces=not single_file,
    )


def render(template: str, **values: Any) -> Markup:
    """Return a template of this folder, filled; everything in it is escaped."""
    return Markup(_environment().get_template(template).render(**values))


@cache
def _environment() -> Environment:
    # kept: to compile the templates takes longer than to fill them for a small run
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
