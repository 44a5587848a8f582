"""The report of a run: an HTML page with its metrics and, for each question, the evidence."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from exhibit.engine import Limits, track
from exhibit.evaluation.command import main as evaluate
from exhibit.evaluation.datasets import find_datasets, find_lone_variants
from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.targets.predictions import describe_account
from exhibit.evaluation.text_tables import read_scale
from exhibit.runtime.command import guarded
from exhibit.schemas.bundle import CORPUS, TRAIN
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import ANSWERED_RIGHTLY, EVIDENCE, INGESTION, REPORT, Outcome
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.atomic import FolderKind, replace_folder, write_whole
from exhibit.storage.locations import is_url, keep_recent_files
from exhibit.viewer import plots
from exhibit.viewer.drawing import MAX_PAGES, Wanted, draw
from exhibit.viewer.page import Record, as_json, format_page, render
from exhibit.viewer.questions import OUTCOMES, Matching, PieceWriter, Tally, pack, write_piece

PIECES = FolderKind("the pieces of a page", lambda folder: (folder / "c0.js").is_file())
IMAGES = "pages"  # the folder of the page pictures, beside the pieces
_SCRIPTS = ("build.js", "pieces.js", "case.js", "list.js", "keys.js")

# a function that makes a page's body from its questions, script data and notes
Body = Callable[[Matching, Record, list[str]], str]


def write_report(folder: Path, *, out: Path | None = None, home: str = "", **how: Any) -> Path:
    """Write the report of a results folder and return its path; `how` are options for `write_page`."""
    run = RunResults(folder)

    def make_body(matching: Matching, meta: Record, notes: list[str]) -> str:
        return _make_body(run, matching.tallies[0], meta, notes, home)

    return write_page([run], out or folder / REPORT, f"{run.name} – Exhibit report", make_body, **how)


@guarded("stopped; continue with the same command and --resume")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `exhibit evaluate`: evaluate a system, write the report, and print a table."""
    return int(evaluate(argv, draw=write_report))


def _make_body(run: RunResults, tally: Tally, meta: Record, notes: list[str], home: str) -> str:
    each = {name: run.means_of(name) for name in run.datasets}
    columns = each if len(each) == 1 else {"": run.means, **each}
    scale, total = read_scale(), tally.total
    drafted = [f"{name}: {entry.draft}." for name, entry in run.config.datasets.items() if entry.draft]
    missing = [f"{line}." for name in run.datasets for line in run.read_file(EVIDENCE, name).lines]
    every = dict.fromkeys(name for means in columns.values() for name in means)
    several = {"All": total} if len(tally.outcomes) > 1 else {}
    labels = {name: table.labels[0] for name, table in run.tables.items() if table.labels}
    lone = [f"{line}." for line in find_lone_variants(labels)]
    ingestions = {name: run.read_file(INGESTION, name) for name in run.datasets}
    values: Record = {"home": home, "run": run, "tally": tally, "meta": meta, "notes": notes}
    values |= {"system": describe_system(run, total.total()), "opening": write_opening(run, tally)}
    values |= {"tiles": make_tiles(tally), "funnel_rows": plots.make_funnel(tally.stages, run.means)}
    values["shares"] = plots.stack_shares(several | tally.outcomes, reversed(OUTCOMES))
    values["kinds"] = [(name, OUTCOMES[name].meaning, total[name]) for name in reversed(OUTCOMES) if total[name]]
    values["groups"] = plots.group_rows(plots.make_metric_rows(columns, scale))
    values |= {"meanings": plots.MEANINGS, "every": plots.make_metric_rows(columns, scale, metrics=every)}
    values |= {"heads": [name or "All" for name in columns], "warnings": [*drafted, *lone, *missing]}
    values |= {"breakdowns": plots.make_breakdowns(run, scale), "plots": plots.make_plots(run.means)}
    values["ingestions"] = {name: read for name, read in ingestions.items() if read.files is not None}
    return render("report.html.j2", **values)


def describe_system(run: RunResults, questions: int) -> str:
    """Return the sentence that names the tested system, the number of questions, and the date."""
    settings = run.settings
    system = "The built-in pipeline" + (f", preset {settings['preset']}," if "preset" in settings else "")
    if (run.config.target or "builtin") != "builtin":
        address = settings.get("target_url")
        system = f"The system at {address}" if address else f"The target {run.config.target}"
    files = [entry.files for entry in run.config.datasets.values()]
    documents = f" about {sum(filter(None, files)):,} documents" if all(files) else ""
    *names, last = run.datasets
    datasets = f"{', '.join(names)} and {last}" if names else last
    return f"{system} was asked {questions:,} questions{documents} of {datasets} {format_start(run)}."


def format_start(run: RunResults) -> str:
    try:
        began = datetime.fromisoformat(run.provenance.started)
    except ValueError:
        return "at an unknown time"
    return f"on {began.day} {began:%B %Y} at {began:%H:%M} UTC"


def write_opening(run: RunResults, tally: Tally) -> list[str]:
    """Return the first sentences of a report: the result, its interval, and how many questions have an answer."""
    result, total = describe_result(run.tables.values()), tally.total
    estimate = run.means.get(ANSWERED_RIGHTLY)
    if estimate and estimate.ci95 and estimate.datasets == 1:
        low, high = map(describe_metric(ANSWERED_RIGHTLY).in_words, estimate.ci95)
        result += f"; 95% interval of the lower figure {low} to {high}%"
    parts = f"{total.total() - tally.impossible:,} that the documents answer"
    parts += f", {tally.impossible:,} that they do not answer" if tally.impossible else ""
    parts += f"; {total[Outcome.FAILED]:,} failed" if total[Outcome.FAILED] else ""
    account = [f"{line}." for line in describe_account(run.folder)]
    return [*account, f"{result[0].upper()}{result[1:]}.", f"Of {total.total():,} questions: {parts}."]


def make_tiles(tally: Tally) -> list[Record]:
    """Return the figures at the top of a report, each with the number of questions that it refers to."""
    total, stages = tally.total, tally.stages
    questions, answerable = total.total(), total.total() - tally.impossible
    looked_up = total[Outcome.FOUND] + total[Outcome.MISSED]  # questions to a system that returns only passages
    by_outcome = {
        Outcome.RIGHT: ("answered correctly", answerable, "questions that the documents answer"),
        Outcome.NOT_JUDGED: ("not judged", answerable, "questions that the documents answer"),
        Outcome.WRONGLY_REFUSED: ("wrongly refused", answerable, "questions that the documents answer"),
        Outcome.RIGHTLY_REFUSED: ("rightly refused", tally.impossible, "questions that the documents do not answer"),
        Outcome.FAILED: ("failed", questions, "questions"),
        Outcome.FOUND: ("gold found", looked_up, "questions with gold"),
    }
    tiles = [(*fields, total[outcome], OUTCOMES[outcome].meaning) for outcome, fields in by_outcome.items()]
    kept = stages.questions - sum(counts.total() for counts in stages.lost.values())
    note = "No known stage loses a part of the gold."
    tiles.append(("all gold kept", stages.questions, "questions with gold", kept, note))
    silent = {"failed", "not judged"}
    silent |= {"answered correctly", "wrongly refused", "rightly refused"} if looked_up else set()
    return [
        {"words": words, "number": number, "of": of, "share": f"{100 * number / of:.0f}%", "among": among, "note": note}
        for words, of, among, number, note in tiles
        if of and (number or words not in silent)
    ]


def write_page(
    runs: Sequence[RunResults], path: Path, title: str, body: Body, *, datasets: Mapping[str, Path] | None = None,
    pages: int = MAX_PAGES, cases: int | None = None, jobs: int | None = None, limits: Limits | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:  # fmt: skip
    """Write a page about runs, with a folder of data files beside it.

    At most `pages` pages of documents are drawn, for the first `cases` questions (None: for all); questions with
    unfavourable outcomes are first. `datasets` are the bundles by name; without them, the bundles that the runs name
    are used. `say` is called with the reason for each missing page.
    """
    notes: list[str] = []
    roots = find_dataset_roots(runs, say=notes.append) if datasets is None else datasets
    path.unlink(missing_ok=True)  # the old page cannot read the new pieces
    out = path.with_name(f"{path.stem}_files")
    matching, wanted = Matching(runs), Wanted()
    with replace_folder(out, force=True, kind=PIECES) as pieces:
        writer, most = PieceWriter(pieces, matching, wanted), 0 if pages == 0 else cases
        entries = track(matching.entries, total=len(matching.entries), label="report", unit="question")
        for at, entry in enumerate(entries):
            writer.add(matching.read(entry.numbers), entry.values, draw=most is None or at < most)
        meta = writer.close()
        with keep_recent_files():  # download remote documents only once
            documents, faults = draw(
                wanted, roots, pieces / IMAGES, lambda number, data: write_piece(pieces, f"d{number}", data),
                most=pages, jobs=jobs, limits=limits,
            )  # fmt: skip
        notes += faults
        meta |= {"documents": documents, "folder": out.name}
        text, data = body(matching, meta, notes), {"meta": as_json(meta), "packed": pack(writer.lines)}
        write_whole(path, format_page(title, text, scripts=_SCRIPTS, data=data, pieces=True))
    for note in notes:
        say(note)
    return path


def make_names_unique(runs: Sequence[RunResults]) -> None:
    """If several runs have one name, rename each of them to the path of its folder."""
    names = Counter(run.name for run in runs)
    for run in runs:
        if names[run.name] > 1:
            run.name = str(run.folder.resolve())


def find_dataset_roots(
    runs: Sequence[RunFolder], *, given: Iterable[str] = (), say: Callable[[str], None]
) -> dict[str, Path]:
    """Return the bundle folder of each dataset: the given folder, or else the folder that a run recorded.

    A run may come from another machine: no URL that it recorded is opened, and only a bundle's folder is accepted.
    """
    notes, problems = list[str](), list[str]()
    folders = find_datasets(given, notes, problems) if given else {}
    if problems:
        raise ToolkitError("\n".join(problems))
    for note in notes:
        say(note)
    roots: dict[str, Path] = {}
    for run in runs:
        for name, entry in run.config.datasets.items():
            addresses = [address for address in (entry.origin, entry.path) if address]
            local_paths = [Path(address) for address in addresses if not is_url(address)]
            recorded = (path for path in local_paths if (path / TRAIN).is_file() and (path / CORPUS).is_dir())
            root = folders[name][0] if name in folders else next(recorded, None)
            if root is not None:
                roots.setdefault(name, root)
            elif name not in roots:
                named = addresses[0] if addresses else "its folder"
                gone = f"{named}: {'not on this machine' if is_url(named) else 'no such folder'}"
                say(f"{name}: the pages of its documents are not drawn: {gone}; name its folder with --dataset-paths")
    return roots
