"""The default embedders with PyTorch: the same vectors, from slabs of tokens; and the choice of this module."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from exhibit.models.embedders import legal, minilm
from exhibit.models.network import open_legal_network as network
from exhibit.rag import Config, Pipeline
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError

CLAUSES = [
    "Either party may terminate this Agreement upon thirty (30) days' written notice to the other party.",
    "This Agreement shall be governed by the laws of the State of Delaware.",
    "Notices.",
    "Notices!",
    "",
]


def test_without_pytorch_it_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "exhibit.models.embedders.cuda", raising=False)
    with pytest.raises(ToolkitError, match="needs PyTorch"):
        load_plugin("exhibit.models.embedders", "cuda")


@pytest.mark.parametrize("plugin", [pytest.param(minilm, marks=pytest.mark.slow), legal])
def test_pytorch_is_used_where_it_alone_can_use_the_device(plugin, tmp_path, monkeypatch):
    asked = []
    module = SimpleNamespace(open=lambda argument: asked.append(argument) or "on the device")
    monkeypatch.setattr(minilm, "load_plugin", lambda package, name: (module, None))
    device = tmp_path / "nvidia0"
    monkeypatch.setattr(minilm, "_DEVICE", device)
    monkeypatch.setattr(minilm, "find_spec", lambda name: object())
    monkeypatch.setattr(minilm, "open_session", lambda graph, device: None)  # who is sent where, not what it does there
    assert plugin.open(None).name.endswith("int8-4") and not asked  # there is no device
    device.touch()
    assert plugin.open(None) == "on the device" and asked == [plugin.__name__.rpartition(".")[2]]
    assert plugin.open("int8").name.endswith("int8-4")  # as it was asked for
    monkeypatch.setattr(minilm, "find_spec", lambda name: None)
    assert plugin.open(None).name.endswith("int8-4")  # there is no PyTorch


class Many:
    """An embedder that prefers many texts at once, and records how many it got."""

    name, dimensions = "many", 4

    def __init__(self, many: int) -> None:
        self.many, self.given = many, []

    def embed(self, texts, *, role):
        self.given.append(len(texts))
        return np.tile(np.eye(4, dtype=np.float32)[:1], (len(texts), 1))


def test_a_device_is_given_as_many_texts_at_once_as_it_likes(tmp_path, monkeypatch):
    monkeypatch.setattr("exhibit.rag.ingest._BATCH", 5)
    (tmp_path / "a.txt").write_text("".join(f"Clause number {n:02}.\n\n" for n in range(45)), encoding="utf-8")
    for many, batch in ((30, 30), (4, 5)):
        device = Many(many)
        pipeline = Pipeline(
            Config.preset("naive", chunk_size=20), cache=tmp_path / f"cache {many}", embedder=device, jobs=1
        )
        pipeline.index(tmp_path / "a.txt", tmp_path / f"index {many}")
        whole, last = divmod(sum(device.given), batch)
        assert device.given == [*[batch] * whole, last] and whole and last


@pytest.mark.extra
def test_its_vectors_are_those_of_the_reference():
    module, _ = load_plugin("exhibit.models.embedders", "cuda")
    texts = [text * repeat for repeat in (1, 9, 3) for text in CLAUSES]
    found = module.Cuda(network(), device="cpu", workers=0).embed(texts, role="passage")
    np.testing.assert_allclose(found, legal.open("fp32").embed(texts, role="passage"), atol=2e-6)


@pytest.mark.extra
def test_workers_and_slabs_change_nothing(monkeypatch):
    module, _ = load_plugin("exhibit.models.embedders", "cuda")
    texts = [f"{number}. {clause}" for number in range(9) for clause in CLAUSES]
    alone = module.Cuda(network(), device="cpu", workers=0)
    expected = alone.embed(texts, role="passage")
    assert alone.name == legal.open("fp16").name and alone.many >= 1024
    for name, number in {"FEW": 8, "PART": 5}.items():
        monkeypatch.setattr(f"exhibit.models.network.{name}", number)
    fed = module.Cuda(network(), device="cpu", workers=1, slab=12)
    try:
        np.testing.assert_allclose(fed.embed(texts, role="passage"), expected, atol=2e-6)
    finally:
        fed.feed.close()


@pytest.mark.extra
def test_without_a_device_it_says_so():
    module, _ = load_plugin("exhibit.models.embedders", "cuda")
    if module.torch.cuda.is_available():
        assert module.open("minilm").embed(CLAUSES, role="passage").shape == (len(CLAUSES), 384)
    else:
        with pytest.raises(ToolkitError, match="no NVIDIA device"):
            module.open(None)
    with pytest.raises(ToolkitError, match="cuda:legal, cuda:minilm"):
        module.open("bert")
