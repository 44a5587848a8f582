"""Measures ingestion with one worker and with two, in processes and on Ray.

The results are the speed-up, and the share of the work that cannot run in parallel.
"""

from __future__ import annotations

import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bench.scale.corpus import CONTRACTS, documents_of, repeat
from bench.scale.ingesting import PARENT, ingest_once
from bench.scale.process import run_apart
from exhibit.engine import track

SIZE = 150
RUNNERS = (("serial", 1), ("local", 2), ("ray", 1), ("ray", 2))


def measure(source: Path | None, *, quick: bool) -> dict[str, Any]:
    """Measure the ingestion of text files and of PDFs with several engines and numbers of workers.

    In the result, `points` has a dictionary for each measurement, with its seconds, stages and peak memory.
    `size` is the number of documents in each measurement.
    """
    size = 24 if quick else SIZE
    runners = [runner for runner in RUNNERS if runner[0] != "ray" or find_spec("ray")]
    folders = {"text": source, "pdf": CONTRACTS / "full_contract_pdf"}
    wanted = [(kind, *runner) for kind in folders for runner in runners]
    points = []
    for kind, engine, jobs in track(wanted, total=len(wanted), label="workers", unit="run"):
        with tempfile.TemporaryDirectory(prefix="scale-") as name:
            paths = repeat(documents_of(folders[kind]), size, Path(name) / "corpus")
            run = run_apart(ingest_once, paths, Path(name), engine=engine, jobs=jobs)
        kept = {key: run.value[key] for key in ("seconds", "clock", "first", "documents", "chunks", "stages")}
        points.append({"kind": kind, "engine": engine, "jobs": jobs, **kept, "peak": run.peak})
    return {"size": size, "points": points}


def compute_speed_up(alone: dict[str, Any], shared: dict[str, Any]) -> float:
    """Return the speed-up by several workers: the seconds of one worker divided by the seconds of several.

    Both times begin when the first document is done, so that the start of the workers does not count.
    """
    return compute_steady_seconds(alone) / compute_steady_seconds(shared)


def compute_steady_seconds(point: dict[str, Any]) -> float:
    """Return the wall-clock seconds after the first document was done, so that starting workers does not count."""
    return float(point["clock"] - point["first"])


def compute_serial_share(faster: float, workers: int) -> float:
    """Return the serial share of the work, by Amdahl's law: 0 = all is parallel, 1 = nothing is."""
    if workers < 2:
        return 1.0
    return min(1.0, max(0.0, (workers / faster - 1) / (workers - 1)))


def compute_parent_share(stages: dict[str, float]) -> float:
    """Return the share of a serial run's time that is spent in stages which always run in one process."""
    return sum(stages.get(stage, 0.0) for stage in PARENT) / sum(stages.values())
