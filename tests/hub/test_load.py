"""A bundle's card works: `load_dataset` returns its rows, from a folder and from a Hub, streamed or not."""

import base64
import json
import subprocess
import sys

import pytest

from exhibit.evidence import read_document
from exhibit.schemas.bundle import read_info
from tests.hub.conftest import make_hub_env
from tests.hub.loopback import LoopbackHub

NAMES = ("cuad", "legalbenchrag")
"""A sample with PDFs and a sample with texts."""
WAYS = ("local", "hub", "hub streamed")

CLIENT = """
import base64, json, sys
from datasets import Pdf, load_dataset

def rows(given):
    return [{name: value for name, value in row.items() if name != "pdf"} for row in given]

def pdfs(given):
    if "pdf" not in given.features:
        return {}
    stored = given.cast_column("pdf", Pdf(decode=False))
    return {row["filename"]: base64.b64encode(row["pdf"]["bytes"]).decode() for row in stored}

out = []
for name, path in json.loads(sys.argv[1]).items():
    for way in WAYS:
        where, streamed = path if way == "local" else f"me/{name}", way.endswith("streamed")
        tables = [load_dataset(where, config, split="train", streaming=streamed) for config in (None, "gold", "corpus")]
        features = [repr(dict(one.features)) for one in tables]
        out.append([name, way, [rows(tables[0]), rows(tables[1]), rows(tables[2].remove_columns(
            [c for c in tables[2].features if c == "pdf"]))], pdfs(tables[2]), features])
print(json.dumps(out))
""".replace("WAYS", repr(WAYS))


@pytest.fixture(scope="module")
def bundles(converted):
    return {name: converted(name) for name in NAMES}


@pytest.fixture(scope="module")
def loaded(bundles, tmp_path_factory):
    """Load all bundles in one process with the real clients, because importing these takes the most time."""
    folder = tmp_path_factory.mktemp("client")
    with LoopbackHub.running() as hub:
        for name, path in bundles.items():
            files = {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}
            hub.commit(f"me/{name}", files)
        env = make_hub_env(hub, folder / "home")
        paths = json.dumps({name: str(path) for name, path in bundles.items()})
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, paths], env=env, cwd=folder, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert hub.unknown == []
    return {(name, way): (*tables, pdfs, features) for name, way, tables, pdfs, features in json.loads(done.stdout)}


def sparse(record: dict) -> dict:
    """Leave out null values: a table has every field in every row, but a file has only the fields that apply."""
    return {name: value for name, value in record.items() if value is not None}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_load_dataset_returns_questions_gold_and_documents_of_bundle(bundles, loaded, name, way):
    (questions, gold, corpus, pdfs, _), path = loaded[name, way], bundles[name]
    questions = [{**row, "contexts": [sparse(context) for context in row["contexts"]]} for row in questions]
    assert questions == json.loads((path / "train.json").read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in (path / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    for line in [*gold, *lines]:
        line["labels"] = sparse(line["labels"])
    assert gold == lines
    info = read_info(path / "bundle.json")
    assert [row["filename"] for row in corpus] == [document.filename for document in info.documents]
    assert {row["filename"]: row["text"] for row in corpus} == {
        document.filename: read_document(path / "corpus" / document.filename).text for document in info.documents
    }
    assert {file: base64.b64decode(data) for file, data in pdfs.items()} == {
        file.name: file.read_bytes() for file in (path / "corpus").iterdir() if file.suffix.lower() == ".pdf"
    }


def test_load_dataset_features_have_declared_types(loaded):
    questions, gold, corpus = loaded["cuad", "hub"][4]
    assert "'id': Value('int64')" in questions
    assert "'contexts': List({'filename': Value('string'), 'text': Value('string')})" in questions
    assert "'spans': List(List(Value('int64')))" in gold and "'labels': {'clause': Value('string')" in gold
    assert "'pdf': Pdf(" in corpus and "pdf" not in loaded["legalbenchrag", "hub"][4][2].lower()
