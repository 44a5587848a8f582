"""A small cost model: measured unit costs times quantities; every constant has a name and a source."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.scale.chunks import LIMIT_MS, find_crossing
from bench.scale.ingesting import PARENT

DATE = "November 2026"
"""The date of the assumed prices and machines."""
SIZES = (10**4, 10**6, 10**8)
_DAY = 86_400.0


@dataclass(frozen=True)
class Constant:
    """A number that the cost model uses, with its unit and its source."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True)
class Setting:
    """A scenario of the cost model: the machines, the command-line flags, the vector store and the indexes."""

    name: str
    machines: int
    cores: int
    gpus: int
    ram: float
    """The memory of each machine in GB."""
    flags: str
    store: str
    indexes: int = 1
    """The parts that the corpus is split into: each has its own index, which one process writes and searches."""


SETTINGS = (
    Setting("two cores", 1, 2, 0, 16, "none", "faiss"),
    Setting("one machine with an accelerator", 1, 64, 1, 256, "`--embedder cuda`", "faiss:pq"),
    Setting("a cluster", 16, 64, 8, 256, "`--engine ray:…` `--store milvus:URI` `s3://…`", "milvus"),
    Setting("a cluster, an index a machine", 16, 64, 8, 256, "the same, sixteen times", "milvus", indexes=16),
)

ASSUMED = {
    "pages a document": Constant(18, "", "mean of CUAD's contracts"),
    "chunks a document": Constant(195, "", "mean of CUAD's contracts, 500 characters at most"),
    "characters a document": Constant(51_000, "", "mean of CUAD's contracts"),
    "bytes of a PDF": Constant(193_000, "", "mean of CUAD's contracts"),
    "numbers a vector": Constant(384, "", "the default embedder"),
    "accelerator": Constant(81_938, "chunks/s", "measured, see “On an accelerator”"),
    "core": Constant(0.04, "$ an hour", f"assumed, {DATE}, not a quote"),
    "accelerator's price": Constant(4.0, "$ an hour", f"assumed, {DATE}, not a quote"),
    "storage": Constant(0.023, "$ a GB and month", f"assumed, {DATE}, not a quote"),
    "long": Constant(_DAY, "s", "what a step may take before it is said to break"),
    "disk of a machine": Constant(1000, "GB", "assumed"),
    "files in a folder": Constant(1_000_000, "", "where listing and backup become the work"),
}


def list_constants(results: Mapping[str, Any]) -> dict[str, Constant]:
    """Return the constants of the cost model by name, such as the seconds to read a page of a PDF.

    Each constant has a value, a unit and a source: measured on this machine, or assumed.
    """
    documents, last = results["documents"], results["documents"]["ingest"][-1]
    stages, chunks = last["stages"], last["chunks"]
    worker = sum(value for stage, value in stages.items() if stage not in PARENT)
    parent = sum(stages[stage] for stage in PARENT if stage != "embed")
    convert = documents["convert"]["pdf"]
    more = (convert[-1]["peak"] - convert[0]["peak"]) / max(1, convert[-1]["documents"] - convert[0]["documents"])
    here = "measured here"
    return {
        "page": Constant(documents["pdf"]["seconds"], "core s", f"{here}: a page of a PDF read"),
        "chunk, workers": Constant(worker / chunks, "core s", f"{here}: structure, profile, splitting"),
        "chunk, one process": Constant(parent / chunks, "core s", f"{here}: summary, index, store, save"),
        "chunk, cache": Constant(
            _compute_sorting(last) / chunks, "core s", f"{here}: hashing and the cache of vectors"
        ),
        "chunk, default embedder": Constant(
            documents["default_embedder"]["seconds"], "core s", f"{here}: MiniLM, 8-bit, without an accelerator"
        ),
        "chunk in memory": Constant(
            max(
                0.0,
                _compute_held(documents["ingest"]) - compute_vector_bytes(ASSUMED["numbers a vector"].value, "faiss"),
            ),
            "bytes",
            f"{here}: what a process that asks holds for a chunk beside its vector",
        ),
        "document converted": Constant(
            max(0.0, more), "bytes", f"{here}: peak of the converter, from first to last size"
        ),
        **ASSUMED,
    }


def _compute_held(points: Sequence[Mapping[str, Any]]) -> float:
    """Return the memory, in bytes per chunk, that a process needs to answer queries.

    This is the difference in peak memory between the largest and the smallest index, divided by the difference
    in the number of chunks.
    """
    first, last = points[0], points[-1]
    return float((last["query_peak"] - first["query_peak"]) / max(1, last["chunks"] - first["chunks"]))


def _compute_sorting(last: Mapping[str, Any]) -> float:
    return float(last["stages"]["embed"])


def compute_vector_bytes(numbers: float, store: str) -> float:
    """Return the bytes that a vector takes in memory: 4 per number (2 in fp16), plus its entry in the index.

    The entry is a key and, depending on the store, also a 4-bit sketch (`faiss:pq`) or a list entry (`milvus`).
    """
    extra = {"faiss": 8, "faiss:fp16": 8, "faiss:pq": 8 + numbers / 4, "milvus": 16}
    width = 2 if store == "faiss:fp16" else 4
    return width * numbers + extra[store]


def compute_cost(documents: int, setting: Setting, table: Mapping[str, Constant]) -> dict[str, float]:
    """Return what this many documents cost in a scenario: hours by stage, gigabytes, and dollars.

    Each key names a quantity and its unit: `embed h`, `hours`, `ram GB`, `disk GB`, `once $`, `month $` etc.
    """
    of = {name: constant.value for name, constant in table.items()}
    chunks = documents * of["chunks a document"]
    cores = setting.machines * setting.cores
    workers = documents * of["pages a document"] * of["page"] + chunks * of["chunk, workers"]
    alone = chunks * (of["chunk, one process"] + of["chunk, cache"]) / setting.indexes
    embed = (
        chunks / (of["accelerator"] * setting.gpus) if setting.gpus else chunks * of["chunk, default embedder"] / cores
    )
    # workers prepare while one process embeds: the slower of the two decides, not their sum
    hours = max(workers / cores, alone + embed) / 3600
    vectors = chunks * compute_vector_bytes(of["numbers a vector"], setting.store)
    disk = (documents * (of["bytes of a PDF"] + of["characters a document"]) + 2 * vectors) / 1e9
    machines = hours * (cores * of["core"] + setting.gpus * of["accelerator's price"])
    return {
        "chunks": chunks,
        "workers h": workers / cores / 3600,
        "one process h": alone / 3600,
        "embed h": embed / 3600,
        "hours": hours,
        "ram GB": (vectors + chunks * of["chunk in memory"]) / 1e9,
        "disk GB": disk,
        "once $": machines,
        "month $": disk * of["storage"],
    }


@dataclass(frozen=True)
class Break:
    """A limit: the problem, the number of documents from which it occurs, and the remedy."""

    what: str
    documents: float
    mend: str


def find_breaks(results: Mapping[str, Any], table: Mapping[str, Constant]) -> list[Break]:
    """Return the numbers of documents at which a resource is exhausted or a step takes too long, smallest first.

    The numbers apply to a machine with two cores and 16 GB, and to the default flags. Each number has a
    remedy.
    """
    of = {name: constant.value for name, constant in table.items()}
    laptop, per, long = SETTINGS[0], of["chunks a document"], of["long"]
    slow = find_crossing(results["chunks"]["points"], "faiss", "one ms", LIMIT_MS) or math.inf
    ram = laptop.ram * 1e9
    prepared = (of["pages a document"] * of["page"] + per * of["chunk, workers"]) / laptop.cores
    alone = per * (of["chunk, one process"] + of["chunk, cache"])
    embedded = per * of["chunk, default embedder"] / laptop.cores
    points = [
        Break(f"a query takes over {LIMIT_MS} ms beside its embedding", slow / per, "`--store faiss:pq`"),
        Break("embedding takes over a day", long / embedded, "an accelerator; `--embedder cuda`"),
        Break("reading and splitting take over a day", long / prepared, "`--engine ray:…`, more machines"),
        Break(
            f"the flat index fills {laptop.ram:.0f} GB",
            ram / (per * compute_vector_bytes(of["numbers a vector"], "faiss")),
            "`--store faiss:fp16` (half of it), `--store milvus:URI`",
        ),
        Break("the one process that hands on takes over a day", long / alone, "nothing yet but several indexes"),
        Break("the corpus fills a disk of 1 TB", of["disk of a machine"] * 1e9 / of["bytes of a PDF"], "`s3://…`"),
        Break("one folder holds a million files", of["files in a folder"], "a corpus: `s3://…`; an index: several"),
        Break(
            "what an index knows of its documents fills memory",
            _compute_room(ram, per * of["chunk in memory"]),
            "several indexes",
        ),
        Break(
            "a bundle's train and gold files fill memory",
            _compute_room(ram, of["document converted"]),
            "several bundles",
        ),
    ]
    return sorted(points, key=lambda item: item.documents)


def _compute_room(memory: float, each: float) -> float:
    return memory / each if each else math.inf


def format_hours(hours: float) -> str:
    """Return a number of hours as text in a suitable unit: `3 days`, `40 min`."""
    for unit, size in (("years", 24 * 365), ("days", 24), ("h", 1)):
        if hours >= 2 * size:
            return f"{hours / size:,.0f} {unit}"
    return f"{60 * hours:.0f} min" if hours >= 1 / 30 else f"{3600 * hours:.0f} s"


def format_figure(value: float) -> str:
    """Return a constant as text: without decimals from 100 on, else with four significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.4g}"


def make_rows(
    table: Mapping[str, Constant], sizes: Sequence[int] = SIZES
) -> list[tuple[int, Setting, dict[str, float]]]:
    """Return the estimated costs for each number of documents in each scenario (machines, store and so on)."""
    return [(size, setting, compute_cost(size, setting, table)) for size in sizes for setting in SETTINGS]
