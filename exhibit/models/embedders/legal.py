"""all-MiniLM-L6-v2 with our low-rank weights for contracts (bench/results/models.md): `legal`, `legal:fp32`"""

from exhibit.models.embedders.minilm import MiniLM
from exhibit.models.network import ADAPTER, OFFICIAL, Network, choose_variant, find_graph_path, load_graph, open_lowrank
from exhibit.runtime.command import guarded

LOCAL = True


def open(argument: str | None) -> MiniLM:
    return MiniLM(choose_variant("embedder", "legal", argument), model=open_network())


def open_network() -> Network:
    return open_lowrank("legal", ADAPTER, "-1")


@guarded()
def main() -> int:
    """Build the graphs of `legal` and `minilm`, so that later runs need no network; print the path of the former."""
    for network in (OFFICIAL, open_network()):
        load_graph("int8", network)
    MiniLM(model=open_network()).embed(["This Agreement is made between the parties."], role="passage")
    print(find_graph_path("int8", open_network()))
    return 0
