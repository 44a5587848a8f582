"""Writes the figures of the built-in pipeline on every kind of variant into vary.md: `python -m docs.varied CUAD`.

CUAD is the folder or the archive of the release. The first contracts of it are converted, varied and evaluated, each
variant beside its control, with the default preset; a report of each kind is left in --work. What is there already,
from a run that was stopped, is used and not made again.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from datetime import date
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


class Measured(NamedTuple):
    """A kind, the metrics that tell its effect, and whether the sample for scans is used."""

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
    """Write the table of the page anew."""
    parser = Parser(prog="python -m docs.varied", description=__doc__)
    parser.add_argument("source", type=Path, metavar="CUAD")
    parser.add_argument("--documents", type=int, default=15, help="contracts that are varied (default: %(default)s)")
    parser.add_argument("--scanned", type=int, default=2, help="contracts that are scanned (default: %(default)s)")
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
        sizes: dict[bool | None, int] = {False: options.documents, True: options.scanned, None: 2 * options.documents}
        for few, count in sizes.items():
            out = work / _parent(few)
            if not out.exists():
                _run(convert, "cuad", "--source", options.source, "--out", out, "--max-documents", count)
        wanted = [one for one in KINDS if not options.kind or one.kind in options.kind]
        lines = [_measure(one, work, options.limit) for one in wanted]
    today = date.today()
    head = (
        f"The first {options.documents} contracts of CUAD, {options.scanned} for `scanned`, at most {options.limit} "
        f"questions of each bundle, default preset, seed 1; measured on {today.day} {today:%B %Y}.\n\n"
        "| kind | questions | effect | answered rightly (of those judged): variant | control |\n"
        "|---|---:|---|---:|---:|\n"
    )
    table = head + "\n".join(lines) + "\n"
    if options.kind:
        print(table)
    else:
        page = f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}"
        PAGE.write_text(page, encoding="utf-8", newline="\n")
    return 0


def _parent(few: bool | None) -> str:
    return {True: "few", False: "cuad", None: "others"}[few]


def _measure(one: Measured, work: Path, limit: int) -> str:
    """Return the line of a kind."""
    if one.few and not _has_ocr():
        return f"| `{one.kind}` | – | not measured: no OCR engine is installed | – | – |"
    name = one.kind.replace(":", "-")
    out, control = work / name, work / f"{name}-control"
    others = ["--others", work / _parent(None)] if one.kind.startswith("growth") else []
    if not control.exists():  # it is written last
        flags = ["--kind", one.kind, "--seed", 1, "--out", out, "--control", control, "--force", *others]
        _run(vary, work / _parent(one.few), *flags)
    results = work / "results" / name
    if not (results / "report.html").exists():
        flags = ["--limit", limit, "--sample-seed", 1, "--output-dir", results.parent, "--run-name", name]
        _run(evaluate, out, control, *flags, *(["--resume"] if results.exists() else []))
    run = RunResults(results)
    bundles = {dataset: run.means_of(dataset) for dataset in run.datasets}
    [varied] = [means for dataset, means in bundles.items() if not dataset.endswith("-control")]
    [plain] = [means for dataset, means in bundles.items() if dataset.endswith("-control")]
    effect = "; ".join(f"`{metric}` {_share(varied, metric)}" for metric in one.metrics)
    if one.kind == "removed":
        effect += f"; control refused {_share(plain, 'false_refusal_rate')}"
    if one.metrics[0].startswith("char_recall"):
        effect += f"; control {_share(plain, one.metrics[0])}"
    asked = max(estimate.n for estimate in varied.values())
    return f"| `{one.kind}` | {asked} | {effect} | {_judged(varied)} | {_judged(plain)} |"


def _has_ocr() -> bool:
    try:
        choose_ocr("en", "auto")
    except ToolkitError:
        return False
    return True


def _judged(means: Means) -> str:
    """Return the share of right answers among those that can be judged, with their number."""
    estimate = means.get(RIGHT)
    return "–" if estimate is None or not estimate.n else f"{_share(means, RIGHT)} of {estimate.n}"


def _share(means: Means, metric: str) -> str:
    estimate = means.get(metric)
    return "–" if estimate is None or estimate.mean is None else f"{estimate.mean:.2f}"


def _run(command: object, *flags: object) -> None:
    arguments = list(map(str, flags))
    if not callable(command) or command(arguments):
        raise ToolkitError(f"stopped: {' '.join(arguments)}")


if __name__ == "__main__":
    sys.exit(main())
