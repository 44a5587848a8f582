"""Two runs side by side: `compare.html` with the figures paired, and every question that changed with both replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine import Limits, track
from exhibit.evaluation.metrics import about, shortened
from exhibit.evaluation.records import read_tables
from exhibit.evaluation.report import shell
from exhibit.evaluation.report.binder import Binder, Catalogue, Facet
from exhibit.evaluation.report.drawing import PAGES, Wanted
from exhibit.evaluation.report.questions import brief, error_kind, labels_of, nearest
from exhibit.evaluation.report.run import Record, Rows, read_run, settings
from exhibit.evaluation.report.sources import dataset_names, dataset_roots
from exhibit.evaluation.report.wording import GOOD, VERDICTS
from exhibit.evaluation.report.write import SCRIPTS, draw_pages, not_drawn, pieces_folder, render
from exhibit.evaluation.statistics import Difference, Overlap, Table, compare, overlap
from exhibit.evaluation.terminal import not_compared
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.whole import write_whole

NAME = "compare.html"
CHANGES = {
    "lost": "The first run answered it, and the second did not.",
    "failed": "The second run gave an error, and the first did not.",
    "worse": "The same verdict, but less of the gold was retrieved.",
    "another fault": "Neither run answered it, for different reasons.",
    "won": "The first run did not answer it, and the second did.",
    "better": "The same verdict, and more of the gold was retrieved.",
    "first run only": "The second run did not ask it.",
    "second run only": "The first run did not ask it.",
    "same": "The same verdict, and as much of the gold was retrieved.",
}
"""How a question changed, the worst first, and what that means."""
FIELDS = ("id", "question", "answer_before", "answer_after", "file", "found_before", "found_after", "error")
_EQUAL = 1e-9  # what sums of the same numbers in another order differ by is less
_NOT_SETTINGS = ("run_name", "datasets", "version", "format", "output_dir", "resume")


class Pair(NamedTuple):
    """A question by the numbers of its rows in both runs, None where a run did not ask it."""

    dataset: str
    first: int | None
    second: int | None
    change: str


def write_comparison(
    before: Path,
    after: Path,
    *,
    out: Path | None = None,
    datasets: Mapping[str, Path] | None = None,
    pages: int | None = PAGES,
    single_file: bool = False,
    jobs: int | None = None,
    limits: Limits | None = None,
    say: Callable[[str], None] | None = None,
) -> Path:
    """Write the comparison of two results folders and return its path: `compare.html` in the second one's folder."""
    notes: list[str] = []
    roots = (
        datasets if datasets is not None else {**dataset_roots(before, _ignore), **dataset_roots(after, notes.append)}
    )
    path = out or after / NAME
    first, second = (Rows(folder, dataset_names(folder)) for folder in (before, after))
    figures = _figures(read_tables(before), read_tables(after), before, after)
    path.unlink(missing_ok=True)
    with pieces_folder(path.with_name(f"{path.stem}_files"), single_file=single_file) as (pieces, finish):
        wanted = Wanted()
        meta = _bind(first, second, pieces, wanted, draw=pages != 0)
        meta["runs"] = [before.resolve().name, after.resolve().name]
        drawn = draw_pages(wanted, roots, pieces, pages=pages, jobs=jobs, limits=limits)
        notes += [*drawn.faults, *not_drawn(drawn)]
        blocks = finish(meta, drawn)
        write_whole(path, _page(before, after, meta, figures, notes, blocks, single_file=single_file))
    for note in notes:
        (say or _ignore)(note)
    return path


def pair_rows(first: Rows, second: Rows, see: Callable[[str, Record | None, Record | None, str], None]) -> list[Pair]:
    """Return the questions of both runs in pairs, those that changed for the worse first; rows are read one by one."""
    places = {(name, row["id"]): number for number, (name, row) in enumerate(second.scan())}
    pairs: list[Pair] = []
    keys = []
    for number, (name, row) in enumerate(first.scan()):
        keys.append((name, row["id"]))
        pairs.append(Pair(name, number, places.pop((name, row["id"]), None), ""))
    pairs += [Pair(name, None, number, "") for (name, _), number in places.items()]
    told = []
    for pair, (one, other) in zip(pairs, read_pairs(first, second, pairs), strict=True):
        change = how_changed(one, other)
        see(pair.dataset, one, other, change)
        told.append(pair._replace(change=change))
    order = {change: rank for rank, change in enumerate(CHANGES)}
    return sorted(told, key=lambda pair: order[pair.change])


def read_pairs(first: Rows, second: Rows, pairs: Sequence[Pair]) -> Iterator[tuple[Record | None, Record | None]]:
    """Yield the rows of pairs, in their order."""
    ones = first.read([pair.first for pair in pairs if pair.first is not None])
    others = second.read([pair.second for pair in pairs if pair.second is not None])
    for pair in pairs:
        yield None if pair.first is None else next(ones)[1], None if pair.second is None else next(others)[1]


def how_changed(one: Record | None, other: Record | None) -> str:
    """Return how a question changed from the first run to the second: one of `CHANGES`."""
    if one is None or other is None:
        return "second run only" if one is None else "first run only"
    failed, fails = (bool(row["reply"].get("error")) for row in (one, other))
    if fails and not failed:
        return "failed"
    verdict, now = one["verdict"], other["verdict"]
    if verdict != now:
        if (verdict in GOOD) != (now in GOOD):
            return "won" if now in GOOD else "lost"
        return "another fault"
    recall, then = (nearest(row["scores"], "char_recall") for row in (one, other))
    if fails or recall is None or then is None or abs(then - recall) < _EQUAL:
        return "same"
    return "better" if then > recall else "worse"


def line_of(dataset: str, one: Record | None, other: Record | None, change: str) -> tuple[list[str], list[Any]]:
    """Return what a line of the list can be narrowed by, and what it tells: `FIELDS`."""
    told = [None if row is None else brief(row) for row in (one, other)]
    known = next(line for line in told if line is not None)
    id, question, _, file, _, _ = known
    answers = ["" if line is None else line[2] for line in told]
    scores = [None if line is None else line[4] for line in told]
    errors = dict.fromkeys(line[5] for line in told if line is not None and line[5])
    kinds = [error_kind(row) for row in (other, one) if row is not None]
    verdicts = ["" if row is None else row["verdict"] for row in (one, other)]
    values = [change, dataset, *verdicts, next((kind for kind in kinds if kind), "")]
    return values, [id, question, *answers, file, *scores, " / ".join(errors)]


def facets() -> list[Facet]:
    """Return what a comparison can be narrowed by."""
    verdicts = tuple(VERDICTS)
    return [
        Facet("change", "Change", tuple(CHANGES)),
        Facet("dataset", "Dataset"),
        Facet("before", "Verdict before", verdicts),
        Facet("after", "Verdict after", verdicts),
        Facet("error", "Error"),
    ]


def _bind(first: Rows, second: Rows, pieces: Path, wanted: Wanted, *, draw: bool) -> Record:
    catalogue = Catalogue(facets())

    def see(dataset: str, one: Record | None, other: Record | None, change: str) -> None:
        catalogue.count(line_of(dataset, one, other, change)[0], labels_of(one or other or {}))

    pairs = pair_rows(first, second, see)
    catalogue.close()
    binder = Binder(pieces, catalogue, wanted)
    seen: Counter[tuple[str, str]] = Counter()
    read = track(read_pairs(first, second, pairs), total=len(pairs), label="comparison", unit="question")
    for pair, (one, other) in zip(pairs, read, strict=True):
        rank = seen[pair.dataset, pair.change] + (pair.change == "same") * 1_000_000_000
        seen[pair.dataset, pair.change] += 1
        values, fields = line_of(pair.dataset, one, other, pair.change)
        line = catalogue.line(values, fields, labels_of(one or other or {}))
        binder.add(pair.dataset, [one, other], line, rank=rank if draw else None)
    return binder.close() | {"kind": "compare", "fields": FIELDS}


# ---------------------------------------------------------------- the figures


class Figure(NamedTuple):
    """A metric in both runs, as it is printed."""

    metric: str
    title: str
    meaning: str
    before: str
    after: str
    change: str
    interval: str
    n: int
    told: str
    kind: str


def _figures(
    before: Sequence[Table], after: Sequence[Table], first: Path, second: Path
) -> tuple[list[tuple[str, list[Figure]]], Overlap]:
    """Return the figures over all datasets, then of each, and what was compared."""
    differences = compare(before, after)
    if not differences:
        raise ToolkitError(f"{first} and {second} have no dataset and metric in common")
    tables = [("All datasets, each counting alike" if len(before) > 1 else "", differences)]
    others = {table.name: table for table in after}
    if len(before) > 1:
        tables += [(table.name, compare([table], [others[table.name]])) for table in before if table.name in others]
    return [(title, _lines(rows)) for title, rows in tables if rows], overlap(before, after)


def _lines(differences: Mapping[str, Difference]) -> list[Figure]:
    return [
        _figure(name, differences[name])
        for name in shortened(differences, all_families=True)
        if differences[name].mean is not None
    ]


def _figure(name: str, difference: Difference) -> Figure:
    told, change = about(name), difference.mean or 0.0
    depth = name.partition("@")[2]
    title = f"{told.title}{f', first {depth}' if depth else ''}{f', {told.sign}' if told.sign else ''}"
    ends = f"{_signed(name, difference.ci95[0])} to {_signed(name, difference.ci95[1])}" if difference.ci95 else ""
    good = told.improves(change) if change else None
    if not change:
        verdict, kind = "no change", ""
    elif not difference.beyond_chance:
        verdict, kind = "within chance", ""
    else:
        verdict, kind = ("changed", "") if good is None else ("better", "better") if good else ("worse", "worse")
    values = (told.in_words(difference.first), told.in_words(difference.second), _signed(name, change))
    return Figure(name, title, told.meaning, *values, ends, difference.n, verdict, kind)


def _signed(name: str, value: float) -> str:
    words = about(name).in_words(abs(value))
    return f"{'+' if value > 0 else '−' if value < 0 else '±'}{words}"


# ---------------------------------------------------------------- the page


def _page(
    before: Path,
    after: Path,
    meta: Record,
    figures: tuple[list[tuple[str, list[Figure]]], Overlap],
    notes: list[str],
    blocks: dict[str, str],
    *,
    single_file: bool,
) -> str:
    counts = dict(zip(meta["facets"][0]["values"], meta["facets"][0]["counts"], strict=True))
    tables, shared = figures
    body = render(
        "compare.html.j2",
        runs=meta["runs"],
        meta=meta,
        notes=notes,
        tables=tables,
        shared=shared,
        left_out=not_compared(shared),
        changes=[(change, meaning, counts[change]) for change, meaning in CHANGES.items() if counts.get(change)],
        parts=_parts(counts),
        differing=_differing(before, after),
    )
    return shell.page(
        f"{meta['runs'][0]} and {meta['runs'][1]} – Exhibit comparison",
        body,
        style=shell.read("report.css"),
        scripts=[shell.read(name) for name in SCRIPTS],
        data=blocks,
        pieces=not single_file,
    )


def _parts(counts: Mapping[str, int]) -> list[Record]:
    parts, left, total = [], 0.0, sum(counts.values())
    for change in CHANGES:
        if counts.get(change):
            parts.append({"change": change, "count": counts[change], "x": left, "width": 100 * counts[change] / total})
            left += 100 * counts[change] / total
    return parts


def _differing(before: Path, after: Path) -> list[tuple[str, str, str]]:
    """Return the settings that are not the same in both runs."""
    one, other = (dict(settings(read_run(folder, []).config)) for folder in (before, after))
    names = [name for name in {**one, **other} if name.partition(".")[0] not in _NOT_SETTINGS]
    return [(n, one.get(n, "–"), other.get(n, "–")) for n in names if one.get(n) != other.get(n)]


def _ignore(_: str) -> None:
    """Say nothing."""
