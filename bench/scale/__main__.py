"""Measures how time and memory grow with documents, chunks and workers; estimates the cost on larger machines.

    python -m bench.scale                                    everything, about twenty minutes on two free cores
    python -m bench.scale --part memory --source FOLDER      one part, on your own documents
    python -m bench.scale --part chunks --vectors FILE --queries FILE    real vectors (`python -m bench.vectors`)
    python -m bench.scale --part chunks --rows 1000000 --stores faiss:pq      slow points, one at a time
    python -m bench.scale --part chunks --stores milvus --milvus URI --milvus-data DIR    a server on this machine
    python -m bench.scale --part flat                        memory of 1,000 and 20,000 documents: ten minutes more
    python -m bench.scale --part routed --index INDEX --questions BUNDLE    grown from a real index, real questions
    python -m bench.scale --part model                       no measurement: cost model of existing points

A point is one measurement, such as a store with a million chunks. The cost model multiplies measured unit
costs by quantities. The results page is OUT/scale.md: tables are written between its markers. Points are
stored in OUT/scale.json, and pictures in OUT/images/scale-*.svg. A part that is not measured keeps its
numbers. The command stops with an error if other programs use the machine; with `--busy` it measures
nevertheless, and the page states the load.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench._table import ROOT
from bench.scale import chunks, documents, memory, page, routed, workers
from bench.scale.process import describe_machine, describe_machine_kind, refuse_busy
from bench.scale.server import Server
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

PARTS = ("documents", "memory", "chunks", "routed", "workers", "model")
APART = ("flat",)
"""Parts that are measured only if they are named, since they take long."""
DOCS = ROOT / "bench" / "results"


def is_same_machine(known: dict[str, Any], part: str) -> bool:
    """Return whether the known results of a measurement are from a machine like this one.

    The operating system, the processor architecture and the number of cores must be the same. `part` names
    the measurement, such as `chunks`.
    """
    there = known.get("machines", {}).get(part, {})
    return all(there.get(name) == value for name, value in describe_machine_kind().items())


def measure(part: str, options: argparse.Namespace, known: dict[str, Any]) -> dict[str, Any]:
    """Measure one part of the benchmark, such as `chunks` or `memory`, and return the results as a dict."""
    if part == "chunks":
        # points of two machines in one table would look like a difference of stores
        before = known.get("chunks") if is_same_machine(known, part) else None
        if bool(options.milvus) != bool(options.milvus_data):
            raise ToolkitError("--milvus URI and --milvus-data DIR go together: give both")
        server = Server(options.milvus, options.milvus_data) if options.milvus else None
        rows = chunks.QUICK if options.quick else options.rows
        how = {"rows": rows, "stores": options.stores, "server": server, "known": before}
        return chunks.measure(options.vectors, options.queries, **how)
    if part == "documents":
        return documents.measure(options.source, limit=300 if options.quick else options.limit)
    if part == "routed":
        return routed.measure(options.index, options.questions, quick=options.quick)
    if part == "memory":
        return memory.measure(options.source, quick=options.quick)
    if part == "flat":
        return memory.measure_flatness(options.source, quick=options.quick)
    return workers.measure(options.source, quick=options.quick)


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurements that `--part` selects, then write the results page `scale.md` and its charts."""
    options = _make_parser().parse_args(arguments)
    store = options.out / "scale.json"
    results: dict[str, Any] = json.loads(store.read_text(encoding="utf-8")) if store.is_file() else {"machines": {}}
    options.out.mkdir(parents=True, exist_ok=True)
    for part in PARTS if options.part == "all" else [options.part]:
        if part == "model":
            continue  # it is computed again whenever the page is written
        where = describe_machine()
        if not options.busy:
            refuse_busy(f"--part {part}", where["busy"])
        results[part] = measure(part, options, results)
        results["machines"][part] = where
        store.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for path in page.write(results, options.out, DOCS / "scale.md"):
        print(path)
    return 0


def _make_parser() -> argparse.ArgumentParser:
    what, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale",
        description=what,
        epilog=rest,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--part", choices=[*PARTS, *APART, "all"], default="all")
    parser.add_argument("--out", type=Path, default=DOCS, metavar="DIR", help="default: bench/results")
    parser.add_argument(
        "--source", type=Path, metavar="FOLDER", help="documents to repeat (default: the samples' texts)"
    )
    parser.add_argument(
        "--index", type=Path, metavar="INDEX", help="the index that `routed` is grown from (default: of the samples)"
    )
    parser.add_argument(
        "--questions", type=Path, metavar="BUNDLE", help="the bundle with its questions (default: a few)"
    )
    parser.add_argument("--vectors", type=Path, metavar="FILE", help=".npy, or the .faiss file of an index")
    parser.add_argument("--queries", type=Path, metavar="FILE", help=".npy (default: made from the vectors)")
    parser.add_argument("--rows", type=int, nargs="+", default=(), metavar="N", help="sizes (default: 10⁴ to 10⁶)")
    parser.add_argument(
        "--stores",
        nargs="+",
        default=(),
        choices=[*chunks.STORES, *chunks.MILVUS],
        metavar="STORE",
        help="index types; the points of others stay as they are (default: all)",
    )
    parser.add_argument("--milvus", default="", metavar="URI", help="also measure chunks on this Milvus server")
    parser.add_argument(
        "--milvus-data", type=Path, metavar="DIR", help="the server's folder, as given to `milvus-server --data`"
    )
    parser.add_argument(
        "--limit", type=int, default=documents.SIZES[-1], metavar="N", help="the most documents (default: 10000)"
    )
    parser.add_argument("--busy", action="store_true", help="measure even while other programs use the machine")
    parser.add_argument("--quick", action="store_true", help="small sizes, as a test of this program")
    return parser


if __name__ == "__main__":
    sys.exit(main())
