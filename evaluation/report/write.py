"""The results folder of a run to `report.html`."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from evaluation.metrics import about
from evaluation.report.drawing import Library
from evaluation.report.pages import Gallery
from evaluation.report.plots import make_plots, verdict_shares
from evaluation.report.records import make_records
from evaluation.report.run import Run, read_run, settings
from evaluation.report.tables import breakdowns, main_table, whole_table
from evaluation.report.wording import ANSWERED, UNJUDGED, VERDICTS, stage_counts
from storage.locations import keeping
from storage.whole import write_whole

NAME = "report.html"
_HERE = Path(__file__).parent
_SCRIPTS = ("build.js", "case.js", "list.js")
_TELLING = ("target", "preset", "embedder", "splitter", "llm", "answerer", "top_k", "k", "file_type")
"""Settings that say at a glance what was run."""


def write_report(folder: Path, *, datasets: Mapping[str, Path], cases: int = 40) -> Path:
    """Write the report of a results folder and return its path; `cases` questions, failures first, get page pictures.

    `datasets` has the bundle of each dataset under the name of its folder in the results.
    """
    run = read_run(folder, datasets)
    gallery = Gallery()
    with keeping():  # remote documents: a page is drawn in several steps, and cases share documents
        records = make_records(run, Library(datasets), gallery, cases=cases)
    text = _render(run, records, gallery.pages)
    path = folder / NAME
    write_whole(path, text)
    return path


def as_json(value: Any) -> Markup:
    """Return JSON that can stand inside a script element: nothing in it can end the element or a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    # half a surrogate pair, which a model can emit, is no UTF-8
    return Markup(text.encode("utf-8", "replace").decode("utf-8"))


def _render(run: Run, records: list[dict[str, Any]], pages: dict[str, Any]) -> str:
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    style = (_HERE / "report.css").read_text(encoding="utf-8")
    script = "\n".join((_HERE / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    verdicts = Counter(row["verdict"] for dataset in run.datasets for row in dataset.rows)
    asked = dict(settings(run.config))
    text = environment.get_template("report.html.j2").render(
        run=run,
        asked=asked,
        telling=[(name, value) for name in _TELLING if (value := asked.get(name) or asked.get(f"config.{name}"))],
        answered=verdicts[ANSWERED],
        unjudged=sum(verdicts[verdict] for verdict in UNJUDGED),
        stages=stage_counts(run),
        shares=verdict_shares(run),
        verdicts=[(verdict, meaning, verdicts[verdict]) for verdict, meaning in VERDICTS.items() if verdicts[verdict]],
        plots=make_plots(run),
        table=main_table(run),
        every=whole_table(run),
        breakdowns=breakdowns(run),
        listed=len(records),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=as_json({"cases": records, "verdicts": list(VERDICTS), "names": _names(records)}),
        pages=as_json(pages),
    )
    return text.encode("utf-8", "replace").decode("utf-8")


def _names(records: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the words for each metric that a question has, and its unit."""
    metrics = dict.fromkeys(m for record in records for m in record.get("detail", {}).get("scores", ()))
    return {m: [about(m).title, _sign(m), about(m).meaning] for m in metrics}


def _sign(metric: str) -> str:
    return "%" if about(metric).unit == "share" else about(metric).sign


def _hash(text: str) -> str:
    """Return what the page's policy allows: this text and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
