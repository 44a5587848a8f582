"""all-MiniLM-L6-v2 with this project's adapter for contracts and policies: `legal`, `legal:int8`, `legal:fp16` …

The adapter is 1.3 MB of low-rank weights that come with the package. They are added to the official weights when the
graph is built, so a text takes the same time as with `minilm`. bench/results/models.md names the training data.

exhibit prepare model    builds the graphs of this embedder and of `minilm`, its base
"""

import sys
from collections.abc import Sequence

from exhibit.models.embedders.minilm import open_network, prepare
from exhibit.models.network import ADAPTER, OFFICIAL, STRENGTH, adapt_weights
from exhibit.models.network import open_legal_network as network
from exhibit.models.protocols import Embedder
from exhibit.runtime.command import guarded

__all__ = ["ADAPTER", "STRENGTH", "adapt_weights", "main", "network", "open"]


LOCAL = True


def open(argument: str | None) -> Embedder:
    """Return the embedder; its graph is built on first use."""
    return open_network("legal", argument, network())


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Build the ONNX graphs of this embedder and of `minilm`, and print the path of this embedder's graph."""
    return prepare("legal", [OFFICIAL, network()], arguments)


if __name__ == "__main__":
    sys.exit(main())
