"""Writes the built-in pipeline's figures on every kind of variant into vary.md: `python -m docs.varied CUAD`.

CUAD is the folder of the release. Its first contracts are converted, varied and evaluated with the default
preset; each variant is compared with its control. For scans the shortest contracts are used, because OCR
takes seconds per page. --work names a folder for the bundles, the runs and a report of each kind. After an
interruption, the same command uses what is already there.
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from exhibit.conversion import main as convert
from exhibit.evaluation.runs import RunResults
from exhibit.evidence.scan import choose_ocr
from exhibit.runtime.command import Parser, guarded
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import Means
from exhibit.vary.__main__ import main as vary
from exhibit.viewer.report import main as evaluate

PAGE = Path(__file__).parent / "vary.md"
BEGIN, END = "<!-- figures -->\n", "<!-- /figures -->"
RIGHT = "answered_rightly"
SHORT = 10_000  # characters, three or four pages: what is shorter is a letter or a notice
STAGES = {
    "ceiling_page": "on the page",
    "ceiling_text": "in the text",
    "ceiling_chunks": "in the chunks",
    "ceiling_retrieved": "retrieved",
    "ceiling_context": "in the context",
    "ceiling_cited": "cited",
}
"""The stages at which a gold passage can be lost."""


class Measured(NamedTuple):
    """A kind of variant, with the metrics that show its effect.

    If `few` is true, the kind is measured on a small sample of short contracts, because OCR of scans is slow.
    """

    kind: str
    metrics: tuple[str, ...]
    few: bool = False


KINDS = (
    Measured("figures", ("read_value", "remembered", "another_value")),
    Measured("removed", ("abstention_accuracy", "remembered")),
    Measured("negated", ("read_value", "remembered")),
    Measured("contradiction", ("both_named", "one_silently")),
    Measured("contradiction:within", ("both_named", "one_silently")),
    Measured("amended", ("in_force", "superseded", "version_accuracy")),
    *(Measured(f"injection:{way}", ("canary_followed",)) for way in ("visible", "footnote", "white", "name")),
    Measured("growth:2", ("char_recall@8",)),
    Measured("scanned", ("char_recall@8",), few=True),
)


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Measure every kind of variant, and write the table into vary.md; with --kind, only print it."""
    parser = Parser(prog="python -m docs.varied", description=__doc__)
    parser.add_argument("source", type=Path, metavar="CUAD")
    parser.add_argument("--documents", type=int, default=15, help="contracts that are varied (default: %(default)s)")
    parser.add_argument("--scanned", type=int, default=6, help="contracts that are scanned (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=30, help="questions of each bundle (default: %(default)s)")
    parser.add_argument("--kind", action="append", help="only this kind, without writing the page; repeat")
    parser.add_argument("--work", type=Path, help="keep bundles and runs there (default: a temporary folder)")
    options = parser.parse_args(argv)
    text = PAGE.read_text(encoding="utf-8")
    before, mark, rest = text.partition(BEGIN)
    if not mark or END not in rest:
        raise ToolkitError(f"{PAGE}: no lines {BEGIN.strip()} and {END}, between which the figures go")
    with tempfile.TemporaryDirectory() as folder:
        work = options.work or Path(folder)
        wanted = [one for one in KINDS if not options.kind or one.kind in options.kind]
        sizes: dict[bool | None, int] = {False: options.documents, True: options.scanned, None: 2 * options.documents}
        needed = {one.few for one in wanted} | {None for one in wanted if one.kind.startswith("growth")}
        for few, count in sizes.items():
            out = work / _name_parent(few)
            if few in needed and not out.exists():
                source = _write_shortest(options.source, work / "shortest", count) if few else options.source
                _run(convert, "cuad", "--source", source, "--out", out, "--max-documents", count)
        lines = _join([_measure(one, work, options.limit) for one in wanted])
        stages = _tabulate_stages(work) if any(one.few for one in wanted) and _has_ocr() else ""
    today = date.today()
    head = (
        f"The first {options.documents} contracts of CUAD, the {options.scanned} shortest for `scanned`, at most "
        f"{options.limit} questions of each bundle, default preset, seed 1; measured on {today.day} {today:%B %Y}.\n\n"
        "| kind | questions | effect | answered rightly (of those judged): variant | control |\n"
        "|---|---:|---|---:|---:|\n"
    )
    table = head + lines + "\n" + stages
    if options.kind:
        print(table)
    else:
        page = f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"
        PAGE.write_text(page, encoding="utf-8", newline="\n")
    return 0


def _name_parent(few: bool | None) -> str:
    return {True: "few", False: "cuad", None: "others"}[few]


def _write_shortest(source: Path, out: Path, count: int) -> Path:
    """Write a CUAD release of the `count` shortest contracts with 10,000 bytes or more of text; return its folder."""
    release = next(path.parent for path in sorted(source.rglob("master_clauses.csv")))
    lengths = {path.stem.strip(): path.stat().st_size for path in (release / "full_contract_txt").glob("*.txt")}
    pdfs = {path.stem.strip(): path for path in (release / "full_contract_pdf").rglob("*") if path.is_file()}
    with (release / "master_clauses.csv").open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    stems = {row[0]: Path(row[0]).stem.strip() for row in rows}
    known = [row for row in rows if stems[row[0]] in pdfs and lengths.get(stems[row[0]], 0) >= SHORT]
    chosen = sorted(known, key=lambda row: lengths[stems[row[0]]])[:count]
    folder = out / "CUAD_v1" / "full_contract_pdf"
    folder.mkdir(parents=True, exist_ok=True)
    for row in chosen:
        shutil.copy(pdfs[stems[row[0]]], folder)
    with (out / "CUAD_v1" / "master_clauses.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head, *(row for row in rows if row in chosen)])
    return out


def _tabulate_stages(work: Path) -> str:
    """Return a paragraph on the share of gold that is left after each stage, for the scanned documents.

    The share for the control, the same documents without scanning, is in brackets.
    """
    run = RunResults(work / "results" / "scanned")
    [varied] = [run.means_of(dataset) for dataset in run.datasets if not dataset.endswith("-control")]
    [plain] = [run.means_of(dataset) for dataset in run.datasets if dataset.endswith("-control")]
    left_out = json.loads((work / "scanned" / "bundle.json").read_text(encoding="utf-8"))["left_out"]
    spoilt = sum(len(names) for reason, names in left_out.items() if reason.startswith("passage not found"))
    shares = [f"{_format_share(varied, name)} {words} ({_format_share(plain, name)})" for name, words in STAGES.items()]
    return (
        f"\nOf the gold of `scanned` (of its control) there are {', '.join(shares)}. OCR spoilt the gold of {spoilt} "
        "more questions, which are left out.\n"
    )


def _join(measured: Sequence[tuple[str, str]]) -> str:
    """Return the rows of the Markdown table; consecutive kinds of variants with equal figures share one row.

    Each item of `measured` is the name of a kind, and the text of its figures.
    """
    groups = [(figures, [kind for kind, _ in group]) for figures, group in groupby(measured, key=lambda one: one[1])]
    return "\n".join(f"| {', '.join(f'`{kind}`' for kind in kinds)} {figures}" for figures, kinds in groups)


def _measure(one: Measured, work: Path, limit: int) -> tuple[str, str]:
    """Make and evaluate the variant of one kind; return the kind and its row of the Markdown table.

    The row has the number of questions, the metrics, and the shares of right answers for variant and control.
    """
    if one.few and not _has_ocr():
        return one.kind, "| – | not measured: no OCR engine is installed | – | – |"
    name = one.kind.replace(":", "-")
    out, control = work / name, work / f"{name}-control"
    others = ["--others", work / _name_parent(None)] if one.kind.startswith("growth") else []
    if not control.exists():  # it is written last
        flags = ["--kind", one.kind, "--seed", 1, "--out", out, "--control", control, "--force", *others]
        _run(vary, work / _name_parent(one.few), *flags)
    results = work / "results" / name
    if not (results / "report.html").exists():
        flags = ["--limit", limit, "--sample-seed", 1, "--output-dir", results.parent, "--run-name", name]
        _run(evaluate, out, control, *flags, *(["--resume"] if results.exists() else []))
    run = RunResults(results)
    bundles = {dataset: run.means_of(dataset) for dataset in run.datasets}
    [varied] = [means for dataset, means in bundles.items() if not dataset.endswith("-control")]
    [plain] = [means for dataset, means in bundles.items() if dataset.endswith("-control")]
    effect = "; ".join(f"`{metric}` {_format_share(varied, metric)}" for metric in one.metrics)
    if one.kind == "removed":
        effect += f"; control refused {_format_share(plain, 'false_refusal_rate')}"
    if one.metrics[0].startswith("char_recall"):
        effect += f"; control {_format_share(plain, one.metrics[0])}"
    asked = max(estimate.n for estimate in varied.values())
    return one.kind, f"| {asked} | {effect} | {_format_judged(varied)} | {_format_judged(plain)} |"


def _has_ocr() -> bool:
    try:
        choose_ocr("en", "auto")
    except ToolkitError:
        return False
    return True


def _format_judged(means: Means) -> str:
    """Return the share of right answers among the judged answers, and the number of judged answers: `0.80 of 25`."""
    estimate = means.get(RIGHT)
    return "–" if estimate is None or not estimate.n else f"{_format_share(means, RIGHT)} of {estimate.n}"


def _format_share(means: Means, metric: str) -> str:
    estimate = means.get(metric)
    return "–" if estimate is None or estimate.mean is None else f"{estimate.mean:.2f}"


def _run(command: object, *flags: object) -> None:
    arguments = list(map(str, flags))
    if not callable(command) or command(arguments):
        raise ToolkitError(f"stopped: {' '.join(arguments)}")


if __name__ == "__main__":
    sys.exit(main())
