"""The tables (in Markdown) and the charts of each part of the results page `scale.md`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from bench.scale.chunks import LIMIT_MS, find_crossing, reckon
from bench.scale.documents import spread
from bench.scale.draw import Chart, Series
from bench.scale.ingesting import STAGES
from bench.scale.markdown import Results, describe_measurement, format_table
from bench.scale.memory import STORES as MEMORY_STORES
from bench.scale.memory import WHOLE, compute_growth
from bench.scale.workers import compute_parent_share, compute_serial_share, compute_speed_up, compute_steady_seconds

_MB = 1e6
_PAPER = 10_000_000
"""The number of chunks for which costs are extrapolated, not measured."""


# ---------------------------------------------------------------- documents


def write_documents(results: Results) -> str:
    """Return the tables on the number of documents: ingestion time by stage, query times, and conversion times."""
    part = results["documents"]
    points = part["ingest"]
    each = [p["seconds"] / p["documents"] for p in points]
    sizes = [f"{p['documents']:,}" for p in points]
    rows: list[list[object]] = [
        [stage, *(f"{1000 * p['stages'][stage] / p['documents']:.2f}" for p in points)] for stage in STAGES
    ]
    rows += [["**all**", *(f"**{1000 * value:.1f}**" for value in each)]]
    rows += [["chunks", *(f"{p['chunks']:,}" for p in points)]]
    rows += [["peak memory, MB", *(f"{p['peak'] / _MB:.0f}" for p in points)]]
    rows += [["index on disk, MB", *(f"{sum(p['disk'].values()) / _MB:.0f}" for p in points)]]
    embedder = part["default_embedder"]
    chunks = points[-1]["chunks"] / points[-1]["documents"]
    text = describe_measurement(results, "documents") + format_table(
        ["processor ms a document", *(f"{size} documents" for size in sizes)], rows
    )
    text += (
        f"\nTime grows with exponent **{part['exponent']:.3f}** (1 is linear); the time for a document stays within "
        f"**±{100 * part['spread']:.0f}%** from {sizes[0]} to {sizes[-1]} documents. The default embedder adds "
        f"{1000 * embedder['seconds']:.1f} processor ms a chunk ({1000 * embedder['clock']:.1f} ms by the clock, "
        f"{1 / embedder['clock']:.0f} chunks/s), so {chunks * embedder['seconds']:.2f} s for each of these documents. "
        f"A page of a PDF takes {1000 * part['pdf']['seconds']:.1f} ms to read.\n\n"
    )
    return text + _write_queries(points) + "\n" + _write_conversions(part["convert"])


def _write_queries(points: Sequence[Mapping[str, Any]]) -> str:
    presets = list(points[-1]["queries"])
    rows = [
        [f"{p['chunks']:,}", *(_format_query(p["queries"][name]) for name in presets), f"{p['query_peak'] / _MB:.0f}"]
        for p in points
    ]
    return format_table(["chunks", *(f"`{name}`, ms a query (the first)" for name in presets), "peak memory, MB"], rows)


def _format_query(times: Mapping[str, float]) -> str:
    return f"{times['median']:.1f} ({times['first']:.0f})"


def _write_conversions(convert: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    rows = []
    for kind, points in convert.items():
        steady_points = [p["seconds"] / p["documents"] for p in points[1:]]
        for p in points:
            cells = [f"{p['documents']:,}", f"{p['questions']:,}", f"{1000 * p['seconds'] / p['documents']:.1f}"]
            rows.append([kind, *cells, f"{p['clock']:.1f}", f"{p['peak'] / _MB:.0f}"])
        if len(steady_points) > 1:
            rows[-1][0] = f"{kind} (within ±{100 * spread(steady_points):.0f}% after the first)"
    return format_table(
        ["conversion of", "documents", "questions", "processor ms a document", "s by the clock", "peak MB"], rows
    )


def draw_documents(results: Results) -> dict[str, Chart]:
    """Return a chart of each ingestion stage's processor seconds by number of documents; its key is `documents`."""
    points = results["documents"]["ingest"]
    lines = [Series("all", [(p["documents"], p["seconds"]) for p in points])]
    lines += [Series(s, [(p["documents"], p["stages"][s]) for p in points]) for s in STAGES if s != "checksum"]
    cost = results["documents"]["default_embedder"]["seconds"]
    lines.append(Series("default embedder", [(p["documents"], p["chunks"] * cost) for p in points], dashed=True))
    return {"documents": Chart("Ingest by stage", "documents", "processor seconds", lines)}


# ---------------------------------------------------------------- memory


def write_memory(results: Results) -> str:
    """Return the table of peak memory by store and number of documents.

    Its last three columns show the growth: in per cent, in kB per added document, and in bytes per added chunk.
    """
    part = results["memory"]
    times = sorted({p["times"] for p in part["points"]})
    by = {(p["store"], p["times"]): p for p in part["points"]}
    rows = []
    for store in (s for s in MEMORY_STORES if (s, times[0]) in by):
        grown = compute_growth(part["points"], store) or {"ratio": math.nan, "document": math.nan, "chunk": math.nan}
        peaks = [f"{by[store, t]['peak'] / _MB:.0f}" for t in times if (store, t) in by]
        more = [f"{100 * (grown['ratio'] - 1):+.0f}%", f"{grown['document'] / 1e3:.1f}", f"{grown['chunk']:.0f}"]
        rows.append([MEMORY_STORES[store], *peaks, *more])
    counts = ", ".join(f"{by['none', t]['chunks']:,}" for t in times)
    head = ["peak MB", *(f"{t} ×" for t in times), f"1 × to {times[-1]} ×", "kB a document", "bytes a chunk"]
    return (
        describe_measurement(results, "memory")
        + format_table(head, rows)
        + (
            f"\n1 × is {part['once']} documents; {counts} chunks. The whole tree of processes is counted, "
            f"{part['jobs']} workers and the one that embeds, shared pages once.\n"
        )
    )


def write_flat(results: Results) -> str:
    """Return the table that compares the memory of a large ingestion with a small one."""
    points = results["flat"]["points"]
    grown = compute_growth(points, WHOLE) or {"ratio": math.nan, "document": math.nan}
    rows = [
        [f"{p['documents']:,}", f"{p['chunks']:,}", f"{p['peak'] / _MB:.0f}", f"{p['seconds']:.0f}"] for p in points
    ]
    return (
        describe_measurement(results, "flat")
        + format_table(["documents", "chunks", "peak MB", "s by the clock"], rows)
        + (
            f"\n{100 * (grown['ratio'] - 1):+.0f}%, {grown['document'] / 1e3:.1f} kB a document: words, three layers "
            f"of vectors in `faiss`, {results['flat']['jobs']} workers and the process that embeds.\n"
        )
    )


def draw_memory(results: Results) -> dict[str, Chart]:
    """Return a chart of the peak memory of ingestion over the number of documents, under the key `memory`.

    The chart has one line for each kind of index: with neither a word index nor vectors, with a word index
    only, and with vectors in each vector store.
    """
    points = results["memory"]["points"]
    lines = [
        Series(
            "the work" if store == "none" else store,
            [(p["documents"], p["peak"] / _MB) for p in points if p["store"] == store],
        )
        for store in MEMORY_STORES
    ]
    return {"memory": Chart("Memory of an ingest", "documents", "peak of all processes, MB", lines)}


# ---------------------------------------------------------------- chunks


def write_chunks(results: Results) -> str:
    """Return the tables on vector search: time, recall, memory and disk space, by store and number of chunks."""
    points = results["chunks"]["points"]
    names = ("one ms", "batch ms", "recall@10", "recall@64", "build s", "search MB", "disk MB")
    rows = [
        [f"{p['rows']:,}", f"`{p['store']}`", *(_format_figure(name, p.get(name)) for name in names)] for p in points
    ]
    text = describe_measurement(results, "chunks") + format_table(
        ["chunks", "store", "ms a query", "in a batch", *names[2:4], "build, s", "memory MB", "disk MB"], rows
    )
    limits = [(s, find_crossing(points, s, "one ms", LIMIT_MS)) for s in _list_stores(points)]
    words = [f"`{store}` at {round_about(limit)} chunks" for store, limit in limits if limit]
    others = [f"`{store}`" for store, limit in limits if not limit]
    text += f"\nVectors: {results['chunks']['vectors']}; k = 64; times by the clock, a batch by the processor. "
    text += f"By these points a query takes {LIMIT_MS} ms: " + (", ".join(words) or "nowhere")
    text += f"; far beyond what was measured: {', '.join(others)}.\n" if others else ".\n"
    return text + _write_ten_million(points)


def _list_stores(points: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(p["store"] for p in points))


def _write_ten_million(points: Sequence[Mapping[str, Any]]) -> str:
    """Return a table of each store's costs with ten million chunks, extrapolated from its largest measurements."""
    rows = []
    for store in _list_stores(points):
        sizes = sorted(p["rows"] for p in points if p["store"] == store)
        values = [reckon(points, store, what, _PAPER) for what in ("one ms", "search MB", "disk MB", "build s")]
        if len(sizes) >= 2 and sizes[-1] >= _PAPER // 100 and values[0]:
            cells = [f"{value:,.0f}" if value is not None else "" for value in values]
            rows.append([f"`{store}`", *cells, f"{sizes[-1]:,}"])
    head = ["10,000,000 chunks, on paper", "ms a query", "memory MB", "disk MB", "build, s", "measured up to"]
    return "\n" + format_table(head, rows) if rows else ""


def _format_figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if name.startswith("recall") else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def round_about(value: float) -> str:
    """Return a large number rounded to two significant digits."""
    return f"{float(f'{value:.2g}'):,.0f}"


def _shorten(store: str) -> str:
    """Return a store's name in a short form, as a label beside its line in a chart: `milvus IVF`."""
    return store.replace("?index=", " ").removesuffix("_FLAT")


def draw_chunks(results: Results) -> dict[str, Chart]:
    """Return the charts of search time, recall and memory, keyed `query`, `recall` and `index-memory`.

    The horizontal axis of each chart is the number of chunks, and each store is one line.
    """
    points = results["chunks"]["points"]

    def lines(what: str) -> list[Series]:
        stores = _list_stores(points)
        return [
            Series(_shorten(s), [(p["rows"], p[what]) for p in points if p["store"] == s and what in p]) for s in stores
        ]

    limit = (float(LIMIT_MS), f"{LIMIT_MS} ms")
    return {
        "query": Chart("A query, without its embedding", "chunks", "ms, one query", lines("one ms"), limit),
        "recall": Chart("What is found of the nearest 64", "chunks", "recall@64", lines("recall@64"), linear=True),
        "index-memory": Chart("Memory of a process that searches", "chunks", "MB", lines("search MB")),
    }


# ---------------------------------------------------------------- routed


def write_routed(results: Results) -> str:
    """Return the table of the time and memory of whole queries with the preset `routed`.

    Each index has two rows: one for questions with the document's name, and one for questions without it.
    """
    part = results["routed"]
    rows = []
    for p in part["points"]:
        for kind in ("named", "unnamed"):
            asked = p[kind]
            times = [f"{asked[name]:.1f}" for name in ("clock", "clock 90%", "processor")]
            held = [f"{p[name] / _MB:,.0f}" for name in ("peak", "own")] if kind == "named" else ["", ""]
            recall = f"{p['recall']:.4f}" if kind == "unnamed" else ""
            rows.append([f"{p['chunks']:,}", f"`{p['store']}`", kind, *times, recall, *held])
    head = ["chunks", "store", "questions", "ms, median", "ms, nine of ten", "processor ms", "recall@256", "MB", "own"]
    sizes = ", ".join(f"{p['documents']:,}" for p in part["points"])
    return (
        describe_measurement(results, "routed")
        + format_table(head, rows)
        + (
            f"\n{sizes} documents, grown from {part['from']}; {part['points'][0]['named']['questions']} questions of "
            "each kind, one at a time. MB is the most that the process held, pages of mapped files in it; *own* what "
            "is not mapped, the model in it.\n"
        )
    )


# ---------------------------------------------------------------- workers


def write_workers(results: Results) -> str:
    """Return a table of ingestion times by number of workers.

    It shows how many times faster the work is than in one process, and which share of the work stays serial.
    """
    rows = []
    for p in results["workers"]["points"]:
        alone = next(q for q in results["workers"]["points"] if q["kind"] == p["kind"] and q["engine"] == "serial")
        faster = compute_speed_up(alone, p)
        share = f"{100 * compute_serial_share(faster, p['jobs']):.0f}%" if p["jobs"] > 1 else ""
        cells = [
            f"{p['clock']:.1f}",
            f"{p['first']:.1f}",
            f"{compute_steady_seconds(p):.1f}",
            f"{faster:.2f}",
            share,
            f"{p['peak'] / _MB:.0f}",
        ]
        rows.append([p["kind"], f"`{p['engine']}`", p["jobs"], *cells])
    head = [
        "documents",
        "engine",
        "workers",
        "s",
        "until the first",
        "s after it",
        "times as fast",
        "serial share",
        "peak MB",
    ]
    alone = {
        p["kind"]: compute_parent_share(p["stages"]) for p in results["workers"]["points"] if p["engine"] == "serial"
    }
    words = ", ".join(
        f"{100 * share:.0f}% ({kind}): at most {1 / share:.1f} times as fast" for kind, share in alone.items()
    )
    return (
        describe_measurement(results, "workers")
        + format_table(head, rows)
        + (
            f"\n{results['workers']['size']} documents each. By processor time, what stays in the one process "
            f"(summary, embedding with hashed words, index, store) is {words}, however many workers there are.\n"
        )
    )
