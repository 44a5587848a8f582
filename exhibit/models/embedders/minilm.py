"""all-MiniLM-L6-v2 with onnxruntime, without torch: `minilm` uses an accelerator if onnxruntime has one.

`minilm:int8` is for CPUs (8-bit integers). `minilm:fp16` is for accelerators (half precision, large batches); a CPU can
run it slowly, to search an index that was built on an accelerator. `minilm:fp32` is the reference.

exhibit prepare model    finds the weights and builds the graphs: later runs need no network
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime

from exhibit.models.embedders import to_unit
from exhibit.models.minilm_graph import TEXTS, build_graph, has_exact_signed_products
from exhibit.models.network import (
    MAX_TOKENS,
    OFFICIAL,
    VERSION,
    WIDTH,
    Network,
    WordTokenizer,
    count_processors,
    find_model_folder,
    load_tokenizer,
    read_or_make,
)
from exhibit.models.protocols import Embedder, Role, Vectors
from exhibit.runtime.command import guarded
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError

VARIANTS = ("int8", "fp16", "fp32")
_ACCELERATORS = ("CUDAExecutionProvider", "ROCMExecutionProvider")
_PROCESSOR = "CPUExecutionProvider"
_DEVICE = Path("/dev/nvidia0")
_SLAB = 2048
"""The number of texts whose tokens are in memory, for each text that runs in parallel."""
_MOST_AT_ONCE = 64
"""The most texts of one length that an accelerator runs together."""
_FEW_TOKENS = 128
"""The most tokens of texts of one length that a CPU runs together in 8-bit integers; a longer text runs alone.

8 texts of 12 tokens together take 0.54 of their time one by one, 4 of 25 tokens 0.76, 2 of 45 tokens 0.89. With more
tokens the states no longer fit into the cache of a core.
"""

Ids = npt.NDArray[np.int64]


LOCAL = True


def open(argument: str | None) -> Embedder:
    """Return the MiniLM embedder in the variant `argument`: `int8`, `fp16` or `fp32`.

    By default, it is the best variant for this machine. With ONNX Runtime, the graph is built on first use.
    """
    return open_network("minilm", argument, OFFICIAL)


def open_network(plugin: str, argument: str | None, network: Network) -> Embedder:
    """Return a network's embedder: with onnxruntime, or with PyTorch if only PyTorch can use this machine's device."""
    device = _DEVICE.exists() and find_spec("torch") is not None  # both are found without an import
    if argument is None and device and not find_accelerator(onnxruntime.get_available_providers()):
        module, _ = load_plugin("exhibit.models.embedders", "cuda")
        embedder: Embedder = module.open(plugin)
        return embedder
    return MiniLM(choose_variant("embedder", plugin, argument), network=network)


def choose_variant(what: str, plugin: str, argument: str | None) -> str:
    """Return the variant of a model to use: `int8`, `fp16` or `fp32`.

    It is the variant that `argument` names or, if that is empty, the best for this machine. Raise
    ToolkitError for an unknown variant; `what` and `plugin` are the words for the error message, such as
    `reranker` and `legal`.
    """
    variant = argument or choose_usual_variant(onnxruntime.get_available_providers())
    if variant not in VARIANTS:
        known = ", ".join(f"{plugin}:{known}" for known in VARIANTS)
        raise ToolkitError(f"no {what} '{plugin}:{variant}'; there are {plugin}, {known}")
    return variant


def choose_usual_variant(providers: Sequence[str]) -> str:
    """Return the best variant: half precision with an accelerator, else 8-bit integers."""
    return "fp16" if find_accelerator(providers) else "int8"


def find_accelerator(providers: Sequence[str]) -> str | None:
    """Return the accelerator among onnxruntime's providers; None if there is none."""
    return next((name for name in _ACCELERATORS if name in providers), None)


class MiniLM:
    """An embedder that runs texts without padding, so that a vector never depends on the other texts of a batch.

    On a CPU each thread runs one text, or a few short texts of equal length; an accelerator runs many texts of
    equal length.
    """

    dimensions = WIDTH
    languages = frozenset({"en"})

    def __init__(
        self,
        variant: str = "int8",
        *,
        network: Network = OFFICIAL,
        threads: int | None = None,
        at_once: int | None = None,
    ) -> None:
        # the 8-bit graph is for processors only
        device = None if variant == "int8" else find_accelerator(onnxruntime.get_available_providers())
        self.at_once = at_once or (_MOST_AT_ONCE if device else 1)
        self._tokens = _FEW_TOKENS if variant == "int8" else 0
        self.name = f"{network.name}-{variant}-{VERSION}"
        self.threads = threads or count_processors()
        self._tokenizer = WordTokenizer(load_tokenizer(), longest=MAX_TOKENS)
        self._session = open_session(load_graph(variant, network), device)

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002 - trained without prompts
        """Return one normalised row per text, in order; tokens after the first 256 are ignored."""
        vectors = np.empty((len(texts), WIDTH), np.float32)
        with ThreadPoolExecutor(self.threads) as pool:
            slab = _SLAB * self.at_once
            for start in range(0, len(texts), slab):
                ids = self.tokenise(texts[start : start + slab])
                batches = group_by_length(ids, self.at_once, self._tokens)
                joined = (np.concatenate([ids[row] for row in rows]) for rows in batches)
                for rows, batch_vectors in zip(batches, pool.map(self.run, joined), strict=True):
                    vectors[start + np.array(rows)] = batch_vectors
        return to_unit(vectors, texts, name=self.name)

    def tokenise(self, texts: Sequence[str]) -> list[Ids]:
        """Return each text's token ids as an array with one row."""
        return [np.array([ids], np.int64) for ids in self._tokenizer(texts)]

    def run(self, ids: Ids) -> Vectors:
        """Return the vectors of texts that have the same number of tokens."""
        vectors: Vectors = self._session.run(None, {"ids": ids})[0]
        return vectors


def group_by_length(ids: Sequence[Ids], most: int, tokens: int = 0) -> list[list[int]]:
    """Return the texts' positions in `ids`, in groups of texts with the same number of tokens.

    The longest texts come first, so that no long text runs last. A group has at most `most` texts. It may
    have more if all its texts together have at most `tokens` tokens.
    """
    order = sorted(range(len(ids)), key=lambda row: -ids[row].shape[1])
    batches: list[list[int]] = []
    for row in order:
        last, length = batches[-1] if batches else [], ids[row].shape[1]
        if last and len(last) < max(most, tokens // length) and ids[last[0]].shape[1] == length:
            last.append(row)
        else:
            batches.append([row])
    return batches


def open_session(graph: bytes, device: str | None) -> onnxruntime.InferenceSession:
    """Return an onnxruntime session for a graph, on the CPU or on the accelerator that `device` names."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1  # texts run in parallel; splitting one text over threads is slower
    options.enable_mem_pattern = False  # onnxruntime would keep a memory plan for each length forever
    options.log_severity_level = 3
    slower = [] if device else ["BiasGeluFusion"]  # on a CPU, a sum and then Gelu are faster, with the same result
    providers = [device, _PROCESSOR] if device else [_PROCESSOR]
    session = onnxruntime.InferenceSession(graph, options, providers, disabled_optimizers=slower)
    vars(session).pop("_model_bytes", None)  # 59 MB that are never read again
    return session


# ---------------------------------------------------------------- the cache of graphs


def load_graph(variant: str, network: Network = OFFICIAL) -> bytes:
    """Return the embedder's ONNX graph from the cache; build it if it is missing or its checksum is wrong."""

    def build() -> bytes:
        samples = [encoding.ids for encoding in load_tokenizer().encode_batch_fast(list(TEXTS))]
        model = build_graph(network.weights(), precision=variant, samples=samples, signed=takes_signed(variant))
        return bytes(model.SerializeToString())

    return read_or_make(find_graph_path(variant, network), build)


def find_graph_path(variant: str, network: Network = OFFICIAL) -> Path:
    """Return the path of the embedder's ONNX graph in the cache; the file may not exist yet.

    An int8 graph has one path for signed weights and another for unsigned weights (see `takes_signed`).
    """
    weights = ("-signed" if takes_signed(variant) else "-unsigned") if variant == "int8" else ""
    return find_model_folder() / f"{network.graph}{variant}{weights}-{VERSION}.onnx"


@lru_cache
def takes_signed(variant: str) -> bool:
    """Return whether the int8 graph has signed weights on this processor; False for other variants.

    The vectors are the same with signed and unsigned weights.
    """
    return variant == "int8" and has_exact_signed_products()


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Build the embedder's ONNX graph in the cache, and print the path of the graph."""
    return prepare("minilm", [OFFICIAL], arguments)


def prepare(plugin: str, networks: Sequence[Network], arguments: Sequence[str] | None) -> int:
    """Run the command that builds the graphs (ONNX files) of the given networks, and return its exit status.

    `arguments` is the command line. The last graph is tested on one sentence, and its path is printed.
    """
    parser = argparse.ArgumentParser(prog=f"python -m exhibit.models.embedders.{plugin}", description=main.__doc__)
    parser.add_argument("--prepare", action="store_true", required=True, help="find the weights and build the graphs")
    parser.add_argument("--variant", choices=VARIANTS, default="int8", help="which graphs (default: int8)")
    variant = parser.parse_args(arguments).variant
    for network in networks:
        load_graph(variant, network)
    MiniLM(variant, network=networks[-1]).embed(["This Agreement is made between the parties."], role="passage")
    print(find_graph_path(variant, networks[-1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
