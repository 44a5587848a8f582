"""all-MiniLM-L6-v2 with an adapter of our own for contracts and policies: `legal`, `legal:int8`, `legal:fp16` …

The adapter is 1.3 MB of low-rank weights that come with the package. They are added to the official ones when the
graph is built, so a text costs what it costs with `minilm`. bench/results/models.md says what they were trained on.

python -m models.embedders.legal --prepare    builds the graphs of this embedder and of `minilm`, which it is made from
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from exhibit.models.embedders._network import ADAPTER, STRENGTH, adapted
from exhibit.models.embedders._network import legal as network
from exhibit.models.embedders.minilm import VARIANTS, MiniLM, graph_path, open_network, ready_graph
from exhibit.models.protocols import Embedder
from exhibit.schemas.command import guarded

__all__ = ["ADAPTER", "STRENGTH", "adapted", "main", "network", "open"]


LOCAL = True


def open(argument: str | None) -> Embedder:
    """Return the embedder; its graph is built the first time."""
    return open_network("legal", argument, network())


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Put the models in place and print where this one is."""
    parser = argparse.ArgumentParser(prog="python -m models.embedders.legal", description=main.__doc__)
    parser.add_argument("--prepare", action="store_true", required=True, help="find the weights and build the graphs")
    parser.add_argument("--variant", choices=VARIANTS, default="int8", help="which graphs (default: int8)")
    options = parser.parse_args(arguments)
    ready_graph(options.variant)
    MiniLM(options.variant, network=network()).embed(["This Agreement is made between the parties."], role="passage")
    print(graph_path(options.variant, network()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
