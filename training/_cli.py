"""The command line that all training programs share: inputs, printed figures, written files."""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch

from exhibit.schemas.errors import ToolkitError
from training.ground import Ground
from training.library import hold_out_queries
from training.measure import (
    Ask,
    compute_auroc,
    compute_library_ndcg,
    group_of,
    join_scores,
    list_asks,
    make_table,
    measure_abstention,
)
from training.network import Encoder, Judge, Texts
from training.pack import Ints, Pack, Role, is_called, load_pack
from training.scoring import embed_all, rank_passages, rerank
from training.tensors import Array, read_tensors, write_tensors

R = TypeVar("R")


def add_arguments(parser: argparse.ArgumentParser, recipe: Any) -> None:
    """Add the flags that every training has, and one flag for each hyperparameter in its recipe."""
    add_inputs(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="NAME", help="writes NAME.safetensors and NAME.json")
    parser.add_argument("--start", type=Path, metavar="FILE", help="start from these weights, which have the same rank")
    for field in dataclasses.fields(recipe):
        value = getattr(recipe, field.name)
        parser.add_argument(f"--{field.name}", type=type(value), default=value, help=f"(default: {value})")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add the flags that choose the training data, the data to measure on, the base weights and the device."""
    parser.add_argument(
        "--pack", type=Path, required=True, metavar="FILE", help="a file from python -m training.gather"
    )
    parser.add_argument("--measure", type=Path, nargs="*", default=[], metavar="FILE", help="packs to measure on")
    parser.add_argument(
        "--base", type=Path, metavar="FILE", help="the file of all-MiniLM-L6-v2's weights, if they are not installed"
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", help="cuda or cpu")
    parser.add_argument("--all", action="store_true", help="train on the documents for tuning as well")
    parser.add_argument(
        "--leave-out", nargs="*", default=[], metavar="KIND", help="train without these kinds of questions"
    )
    parser.add_argument(
        "--keep-queries",
        type=float,
        default=0.0,
        metavar="SHARE",
        help="hold out this share of the library queries, and measure on it (default: 0)",
    )
    parser.add_argument(
        "--fold", type=int, default=0, metavar="N", help="the number of the held-out share, from 0 (default: 0)"
    )


def recipe_of(options: argparse.Namespace, recipe: R) -> R:
    """Return the training recipe (hyperparameters) with the values that the command line gives."""
    names = [field.name for field in dataclasses.fields(recipe)]  # type: ignore[arg-type]
    return dataclasses.replace(recipe, **{name: getattr(options, name) for name in names})  # type: ignore[type-var]


def prepare(options: argparse.Namespace) -> tuple[Pack, dict[str, Array], torch.device]:
    """Return the pack (the file of training data), the base network's weights and the device.

    Raise an error if `--leave-out` names a kind of question that the pack does not have.
    """
    pack = load_pack(options.pack)
    unknown = [kind for kind in options.leave_out if not any(is_called(k, {kind}) for k in pack.kinds)]
    if unknown:
        raise ToolkitError(
            f"--leave-out {unknown[0]!r}: no such kind of question; there are {', '.join(pack.kinds[:5])} …"
        )
    # cuDNN makes a new plan for each batch shape, which took longer than the attention itself
    torch.backends.cuda.enable_cudnn_sdp(False)
    return pack, read_tensors(base_of(options)), torch.device(options.device)


def ground_of(pack: Pack, device: torch.device, options: argparse.Namespace) -> Ground:
    """Return the part of a pack that may be used for training, according to the flags of the command line."""
    split = ("train", "dev") if options.all else ("train",)
    return Ground(pack, device, split, frozenset(options.leave_out), _hold_out(pack, options))


def _hold_out(pack: Pack, options: argparse.Namespace) -> frozenset[int]:
    return hold_out_queries(pack, options.keep_queries, options.fold)


def base_of(options: argparse.Namespace) -> Path:
    """Return the file of the base network's weights."""
    given: Path | None = options.base
    if given is not None:
        return given
    from exhibit.models.network import MODEL, find_file  # imported here, since a machine for training may lack it

    return find_file(MODEL)


def start_of(options: argparse.Namespace) -> dict[str, Array]:
    """Return the weights of `--start`, from which a training continues; empty without that flag."""
    return read_tensors(options.start) if options.start else {}


# ---------------------------------------------------------------- figures


def sets_of(pack: Pack, options: argparse.Namespace) -> list[tuple[str, Pack, Role, str | None]]:
    """Return the sets of questions on which a trained model is measured.

    Each set is a tuple: a title for the table, the pack with the questions, the role of the questions to use
    (such as `test`: wordings that were not used for training), and the split of the documents to use (such as
    `dev`; None means all documents).
    """
    sets: list[tuple[str, Pack, Role, str | None]] = [
        ("dev, words trained on", pack, "train", "dev"),
        ("dev, words not trained on", pack, "test", "dev"),
    ]
    if list_asks(pack, role="asked", split="dev"):
        sets.append(("dev, questions of no kind", pack, "asked", "dev"))
    for path in options.measure:
        other = load_pack(path)
        sets += [
            (f"{path.stem}, {role}", other, role, None) for role in ("asked", "test") if list_asks(other, role=role)
        ]
    return sets


def report_embedder(
    encoder: Encoder, pack: Pack, options: argparse.Namespace, *, strength: float, leave_out: frozenset[str]
) -> None:
    """Print the retrieval figures of the network before and after training."""
    device = torch.device(options.device)
    for name, measured, role, split in sets_of(pack, options):
        texts = Texts(measured.tokens, measured.ends, device)
        wanted = [ask for ask in list_asks(measured, role=role, split=split) if not ask.impossible]
        for label, scale in (("MiniLM", 0.0), (f"adapter at {strength:g}", strength)):
            vectors = embed_all(encoder, texts, measured, strength=scale)
            ranked = [order for order, _ in rank_passages(measured, wanted, *vectors)]
            show(f"{name}: {label}", make_table(measured, wanted, ranked))
            left = [at for at, ask in enumerate(wanted) if _is_left_out(measured, ask, leave_out)]
            if left:
                missed, ranks = [wanted[n] for n in left], [ranked[n] for n in left]
                show(f"{name}, kinds left out: {label}", make_table(measured, missed, ranks))
                show(f"{name}, each kind left out: {label}", _measure_by_kind(measured, missed, ranks))


def report_reranker(
    judge: Judge, adapted: Mapping[str, Array], pack: Pack, options: argparse.Namespace, *, leave_out: frozenset[str]
) -> None:
    """Print two kinds of figures: reranking the embedder's best passages, and detecting impossible questions."""
    device = torch.device(options.device)
    encoder = Encoder(adapted, rank=1, seed=0).to(device)
    for name, measured, role, split in sets_of(pack, options):
        texts = Texts(measured.tokens, measured.ends, device)
        wanted = [
            a
            for a in list_asks(measured, role=role, split=split)
            if not leave_out or _is_left_out(measured, a, leave_out)
        ]
        if not wanted:
            continue
        orders = list(rank_passages(measured, wanted, *embed_all(encoder, texts, measured)))
        ranked = [order for order, _ in orders]
        scores = rerank(judge, texts, measured, wanted, ranked)
        show(f"{name}: embedder", make_table(measured, wanted, ranked))
        for dense in (0.0, 0.5, 1.0):
            moved = []
            for (order, near), judged in zip(orders, scores, strict=True):
                head = join_scores(near[: len(judged)], judged, dense=dense)
                moved.append(np.concatenate([order[: len(head)][np.argsort(-head, kind="stable")], order[len(head) :]]))
            show(f"{name}: reranked, dense x {dense:g}", make_table(measured, wanted, moved))
        for source in sorted({group_of(measured, ask) for ask in wanted}):
            here = [(a, s.max()) for a, s in zip(wanted, scores, strict=True) if group_of(measured, a) == source]
            yes, no = [s for a, s in here if not a.impossible], [s for a, s in here if a.impossible]
            area = compute_auroc(yes, no)
            if area is not None:
                right, false = measure_abstention(yes, no)
                print(f"{name}: {source}: AUROC {area:.3f}; right abstentions {right:.2f}, false refusals {false:.2f}")


def report_library(encoder: Encoder, pack: Pack, ground: Ground, *, strength: float) -> None:
    """Print nDCG@5 and nDCG@10 of clause search on ACORD, for the embedder before and after training.

    Only queries that were not used in training are measured; without such queries, print nothing.
    """
    queries = sorted(ground.kept_back)
    if not queries:
        return
    for label, scale in (("MiniLM", 0.0), (f"adapter at {strength:g}", strength)):
        passages, asked = embed_all(encoder, ground.texts, pack, strength=scale)
        near = (asked[queries] @ passages.T).double().cpu().numpy()
        five, ten = compute_library_ndcg(pack, near, queries)
        print(f"{len(queries)} queries on clauses, not trained on: {label}: nDCG@5 {five:.1f}, @10 {ten:.1f}")


def show(title: str, rows: Mapping[str, list[float]]) -> None:
    """Print a title, then a line of precision and recall for each group of questions."""
    print(title)
    for group, (count, *figures) in rows.items():
        print(f"  {group:14} n {int(count):5}  P@1 {figures[0]:5.1f}  R@8 {figures[1]:5.1f}  R@64 {figures[2]:5.1f}")


def _is_left_out(pack: Pack, ask: Ask, leave_out: frozenset[str]) -> bool:
    return ask.kind >= 0 and is_called(pack.kinds[ask.kind], leave_out)


def _measure_by_kind(pack: Pack, wanted: Sequence[Ask], ranked: Sequence[Ints]) -> dict[str, list[float]]:
    """Return `{kind of question: [number of its questions, mean of each metric in percent, …]}`."""
    rows = {}
    for kind in sorted({ask.kind for ask in wanted}):
        here = [at for at, ask in enumerate(wanted) if ask.kind == kind]
        figures = make_table(pack, [wanted[n] for n in here], [ranked[n] for n in here])
        if figures:
            rows[pack.kinds[kind]] = figures["all"]
    return rows


# ---------------------------------------------------------------- output files


def describe_weights(
    pack: Pack, recipe: Any, ground: Ground, options: argparse.Namespace, **more: Any
) -> dict[str, Any]:
    """Return the record for the file beside the weights: recipe, versions, and the hashes of all training documents."""
    documents: dict[str, list[str]] = {}
    for document in pack.documents:
        if document["split"] in ground.split:
            documents.setdefault(document["source"], []).append(document["sha256"])
    return {
        "base": {"model": "all-MiniLM-L6-v2", "sha256": digest(base_of(options))},
        "recipe": dataclasses.asdict(recipe),
        "torch": torch.__version__,
        "start": origin_of(options.start) if options.start else None,
        "left_out": sorted(options.leave_out),
        "queries_kept_back": len(ground.kept_back),
        **more,
        "kinds": pack.kinds,
        "gathered": pack.notes,
        "documents": {source: sorted(hashes) for source, hashes in documents.items()},
    }


def origin_of(weights: Path) -> dict[str, Any]:
    """Return a description of the weights from which a training run starts, for the record of the new weights.

    The key `sha256` has the checksum of the file. The keys `recipe`, `blend` (the weights that were averaged)
    and `start` (the weights from which the file was trained) are copied from the JSON file
    beside it, if it has them.
    """
    record = weights.with_suffix(".json")
    told = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    return {"sha256": digest(weights), **{key: told[key] for key in ("recipe", "blend", "start") if told.get(key)}}


def digest(path: Path) -> str:
    """Return a file's sha256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write(arrays: Mapping[str, Array], out: Path, told: Mapping[str, Any], *, eight: bool = False) -> None:
    """Write weights as `OUT.safetensors` in half precision, and a description of them as `OUT.json`.

    The description has the sha256 of the weights and the fields of `told`. If `eight` is true, the low-rank
    weights are written in 8 bits.
    """
    weights, record = out.with_suffix(".safetensors"), out.with_suffix(".json")
    write_tensors(arrays, weights, about={"format": "exhibit-lowrank/1"}, eight=eight)
    told = {"sha256": digest(weights), **told}
    record.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    print(f"{weights}: {weights.stat().st_size:,} bytes; {record}")
