"""Writes the results page `scale.md` and its pictures.

Only the text between the page's markers is replaced; the text outside of them stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from bench.scale import blocks, model
from bench.scale.draw import Chart, Series, draw
from bench.scale.markdown import Results, fill, format_table


def write(results: Results, out: Path, template: Path) -> list[Path]:
    """Write the results page and its charts; return the paths of all written files.

    The table of each measured part replaces the text between the part's markers in the page. A page that does
    not exist yet is made from `template`.
    """
    page = out / "scale.md"
    text = (page if page.is_file() else template).read_text(encoding="utf-8")
    written = []
    for part, (block, pictures) in PARTS.items():
        if not all(needed in results for needed in _NEEDS.get(part, (part,))):
            continue
        text = fill(text, part, block(results))
        for name, chart in pictures(results).items():
            path = out / "images" / f"scale-{name}.svg"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(draw(chart), encoding="utf-8")
            written.append(path)
    page.write_text(text, encoding="utf-8")
    return [page, *written]


def write_model(results: Results) -> str:
    """Return the page's text on the cost model: its constants, its results, and its limits."""
    constants = model.list_constants(results)
    rows = [[name, model.format_figure(c.value), c.unit, c.source] for name, c in constants.items()]
    text = format_table(["constant", "value", "unit", "source"], rows) + "\n"
    rows = [
        [s.name, f"{s.machines}", f"{s.cores}", f"{s.gpus}", f"{s.ram:.0f}", f"`{s.store}`", s.flags]
        for s in model.SETTINGS
    ]
    head = ["on", "machines", "cores each", "accelerators in all", "GB each", "store", "flags"]
    text += format_table(head, rows) + "\n"
    rows = []
    for size, setting, cost in model.make_rows(constants):
        cells = [model.format_hours(cost[name]) for name in ("workers h", "one process h", "embed h", "hours")]
        gigabytes = [f"{cost[name]:,.0f}" for name in ("ram GB", "disk GB")]
        money = [f"{cost[name]:,.0f}" for name in ("once $", "month $")]
        rows.append([f"{size:,}", setting.name, *cells, *gigabytes, *money])
    head = [
        "documents",
        "on",
        "workers",
        "one process",
        "embedding",
        "**time**",
        "memory GB",
        "disk GB",
        "$ once",
        "$ a month",
    ]
    text += format_table(head, rows) + "\n"
    rows = [
        [blocks.round_about(b.documents), b.what, b.mend]
        for b in model.find_breaks(results, constants)
        if b.documents < math.inf
    ]
    return text + format_table(
        ["from about so many documents", "what breaks, on two cores with 16 GB", "what mends it"], rows
    )


def draw_model(results: Results) -> dict[str, Chart]:
    """Return a chart of the computed hours of ingestion over the number of documents.

    The chart has the key `model`, and one line for each assumed equipment, from two cores to a cluster.
    """
    constants = model.list_constants(results)
    sizes = [10**power for power in range(3, 9)]
    names = ("two cores", "one machine", "a cluster", "16 indexes")
    lines = [
        Series(name, [(size, model.compute_cost(size, setting, constants)["hours"]) for size in sizes], dashed=True)
        for name, setting in zip(names, model.SETTINGS, strict=True)
    ]
    return {"model": Chart("Ingest, reckoned", "documents", "hours", lines, (24.0, "a day"))}


Block = Callable[[Results], str]
Pictures = Callable[[Results], dict[str, Chart]]
_NEEDS = {"model": ("documents", "chunks", "memory")}
PARTS: dict[str, tuple[Block, Pictures]] = {
    "documents": (blocks.write_documents, blocks.draw_documents),
    "memory": (blocks.write_memory, blocks.draw_memory),
    "flat": (blocks.write_flat, lambda _: {}),
    "chunks": (blocks.write_chunks, blocks.draw_chunks),
    "routed": (blocks.write_routed, lambda _: {}),
    "workers": (blocks.write_workers, lambda _: {}),
    "model": (write_model, draw_model),
}
