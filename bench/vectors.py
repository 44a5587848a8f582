"""Makes vectors from real texts: of any number of different chunks, and of questions.

    python -m bench.vectors --source FOLDER [FOLDER …] --questions BUNDLE --out vectors.npy --embedder cuda
    python -m bench.scale --part chunks --vectors vectors.npy --queries vectors.queries.npy

Texts are split at 500 characters, then again at 475, 450 and so on, until there are `--rows` different
chunks. A hundred contracts give a hundred thousand chunks. Chunks of different sizes overlap, so that a
question has many close neighbours, which is the harder case for an approximate index. Rows are in random
order, so that the first rows are a fair sample. A million chunks take a minute on an accelerator, and half
a day on two cores. Vectors are written in half precision; the vectors of the questions go into a second
file beside the first.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench._table import read_texts
from exhibit.engine import track
from exhibit.models.protocols import Embedder
from exhibit.rag.splitters import rcts
from exhibit.runtime.command import guarded
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.atomic import replace_file

SIZES = range(500, 75, -25)
"""The most characters of a chunk: from the usual size down to the shortest that still has meaning."""
_LEAST = 20
"""The least characters of a chunk: a shorter one is a number or a heading's mark."""
_PIECE = 1 << 15
"""The number of chunks per step of the progress bar."""


def choose_distinct_chunks(texts: Sequence[str], rows: int) -> tuple[list[str], int]:
    """Return `rows` different chunks in random order, and the smallest chunk size that was needed.

    The texts are split with smaller and smaller chunk sizes until there are enough different chunks.
    """
    chunks: dict[str, None] = {}
    for size in track(SIZES, total=None, label="split", unit="size"):
        for text in texts:
            chunks |= dict.fromkeys(
                words for start, end in rcts.split(text, size=size) if len(words := text[start:end].strip()) >= _LEAST
            )
        if len(chunks) >= rows:
            kept = list(chunks)[:rows]
            random.Random(1).shuffle(kept)
            return kept, size
    raise ToolkitError(
        f"{len(texts)} documents have {len(chunks)} different chunks, fewer than --rows {rows}; add documents"
    )


def embed_all(embedder: Embedder, chunks: Sequence[str]) -> npt.NDArray[np.float16]:
    """Return the vectors of the chunks in half precision, one row per chunk."""
    vectors = np.empty((len(chunks), embedder.dimensions), np.float16)
    starts = range(0, len(chunks), _PIECE)
    for at in track(starts, total=len(starts), label="embed", unit="part"):
        vectors[at : at + _PIECE] = embedder.embed(chunks[at : at + _PIECE], role="passage")
    return vectors


def read_asked(bundles: Sequence[Path]) -> list[str]:
    """Return the different questions of bundles, in random order."""
    rows = [row for bundle in bundles for row in json.loads((bundle / "train.json").read_text(encoding="utf-8"))]
    asked = list(dict.fromkeys(row["question"] for row in rows))
    random.Random(1).shuffle(asked)
    return asked


def read_description(path: Path) -> str:
    """Return the description of a file of vectors from the .json file beside it; without one, the file's name."""
    told = path.with_suffix(".json")
    return str(json.loads(told.read_text(encoding="utf-8"))["about"]) if told.is_file() else path.name


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Split the documents, embed the chunks and the questions, and write their vectors."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.vectors", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--source", type=Path, nargs="+", required=True, metavar="FOLDER", help="folders with .txt files"
    )
    parser.add_argument(
        "--questions", type=Path, nargs="+", default=[], metavar="BUNDLE", help="bundles with questions"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, metavar="N", help="(default: a million)")
    parser.add_argument(
        "--embedder", default="legal", metavar="NAME", help="the embedder, as in --embedder (default: legal)"
    )
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help="the weights of MiniLM for `cuda`, if they are not installed"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help=".npy")
    options = parser.parse_args(argv)
    module, argument = load_plugin("exhibit.models.embedders", options.embedder)
    embedder: Embedder = module.open(argument, **({"weights": options.weights} if options.weights else {}))
    texts = [text for folder in options.source for text in read_texts(folder)]
    asked = read_asked(options.questions)
    chunks, least = choose_distinct_chunks(texts, options.rows)
    words = (
        f"{len(chunks):,} different chunks of {len(texts):,} documents, split at {SIZES[0]} to {least} characters, "
        f"embedded by `{options.embedder}` ({embedder.name})"
    )
    _write(options.out, embed_all(embedder, chunks))
    if asked:
        _write(options.out.with_suffix(".queries.npy"), embedder.embed(asked, role="query").astype(np.float16))
        words += f"; {len(asked):,} questions of {', '.join(bundle.name for bundle in options.questions)}"
    options.out.with_suffix(".json").write_text(json.dumps({"about": words}) + "\n", encoding="utf-8")
    print(f"{options.out}: {words}")
    return 0


def _write(path: Path, vectors: npt.NDArray[np.float16]) -> None:
    with replace_file(path) as partial, partial.open("wb") as file:
        np.save(file, vectors)


if __name__ == "__main__":
    sys.exit(main())
