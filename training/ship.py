"""Makes the weights of the package from its previous weights and the additions of `training.teach`.

    python -m training.ship --before exhibit/models --taught FOLDER --pack pack.npz --share 0.5 --out FOLDER

`--share` is the weight of the new weights: 0.5 gives the mean of the weights before and after training. Each
model adds only its own file to all-MiniLM-L6-v2, so that it can be trained further without the other models.
`--only teacher` makes the file that is added to the published cross-encoder; it contains only the new additions.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from exhibit.runtime.command import guarded
from training.base import FILES
from training.gather import read_wordings
from training.hints import LEAST, count_usual
from training.network import Array, read_tensors, write_tensors
from training.pack import Pack, load_pack

PLACES = FILES | {"kinds": "weights/kinds", "teacher": "rerankers/weights/teacher", "verdicts": "weights/verdicts"}
MINILM = {
    "model": "all-MiniLM-L6-v2",
    "sha256": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
}
PUBLISHED = {
    "model": "ms-marco-MiniLM-L-12-v2, in 8 bits",
    "sha256": "1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
}


def mix(before: Mapping[str, Array], taught: Mapping[str, Array], share: float) -> dict[str, Array]:
    """Return low-rank weights with a share of the new additions; other arrays are means weighted by that share."""
    mixed: dict[str, Array] = {}
    for name, array in taught.items():
        if name.endswith(".up"):
            mixed[name] = np.concatenate([before[name], array * share], axis=1)
        elif name.endswith(".down"):
            mixed[name] = np.concatenate([before[name], array])
        else:
            mixed[name] = (1 - share) * before[name] + share * array
    return mixed


def list_documents(pack: Pack, before: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return the hashes of the documents of this and all earlier trainings, by source."""
    documents = {source: set(hashes) for source, hashes in before.items()}
    for document in pack.documents:
        if document["split"] == "train" and document["source"] in documents:
            documents[document["source"]].add(document["sha256"])
    return {source: sorted(hashes) for source, hashes in documents.items()}


def describe_kinds(pack: Pack) -> dict[str, Any]:
    """Return the record of the kinds of questions: each kind's wording, and the log-odds that a document answers it."""
    wordings = {source: read_wordings(source) for source in {kind.partition("/")[0] for kind in pack.kinds}}
    asks = [wordings[kind.partition("/")[0]][kind.partition("/")[2]]["own"][0] for kind in pack.kinds]
    usual = dict(zip(pack.kinds, count_usual(pack), strict=True))
    return {"kinds": dict(zip(pack.kinds, asks, strict=True)), "usual": usual, "least": LEAST}


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Write the weights and records of the trained models, in the same folders as in the package."""
    parser = argparse.ArgumentParser(prog="python -m training.ship", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", type=Path, required=True, metavar="DIR", help="the folder exhibit/models")
    parser.add_argument("--taught", type=Path, required=True, metavar="DIR", help="the --out of training.teach")
    parser.add_argument("--pack", type=Path, required=True, metavar="FILE", help="the pack of that training")
    parser.add_argument("--only", nargs="*", default=[*FILES, "kinds"], metavar="MODEL", help="or: teacher, verdicts")
    parser.add_argument("--share", type=float, default=1.0, help="the weight of the trained weights (default: 1)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder to write, or --before")
    options = parser.parse_args(arguments)
    pack, record = load_pack(options.pack), json.loads((options.taught / "record.json").read_text(encoding="utf-8"))
    for name in options.only:
        file = f"{PLACES[name]}.safetensors"
        before, path, old = options.before / file, options.out / file, {}
        arrays = read_tensors(options.taught / f"{name}.safetensors")
        if name not in ("teacher", "verdicts"):
            old = json.loads(before.with_suffix(".json").read_text(encoding="utf-8"))
            arrays = mix(read_tensors(before), arrays, options.share)
        path.parent.mkdir(parents=True, exist_ok=True)
        # not in 8 bits, which would change an embedder's vectors and make cached vectors useless
        eight = [key for key in arrays if name in ("reader", "teacher", "verdicts") and key.endswith((".up", ".down"))]
        write_tensors(arrays, path, eight=eight)
        about = {
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "base": PUBLISHED if name == "teacher" else MINILM,
            "torch": record["torch"],
            "taught": {key: record[key] for key in ("teacher", name, "careful", "verdict teacher") if key in record},
            "share": options.share,
            "start": {key: old[key] for key in ("sha256", "recipe", "start", "blend", "stack") if key in old},
            "gathered": pack.notes,
            "documents": list_documents(pack, old.get("documents") or {d["source"]: [] for d in pack.documents}),
        }
        about |= describe_kinds(pack) if name == "kinds" else {}
        about |= record["calibration"] if name == "teacher" else {}
        path.with_suffix(".json").write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(f"{path}: {path.stat().st_size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
