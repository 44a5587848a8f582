"""A bundle's card works: `load_dataset` returns its rows, from a folder and from a Hub, streamed or not."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from exhibit.evidence import read_document
from exhibit.schemas.bundle import read_info
from tests.hub.loopback import LoopbackHub

ALWAYS = ("cuad", "legalbenchrag")
"""PDFs and texts."""
OTHERS = ("contractnli", "cpr", "maud", "privacyqa")
NAMES = [*ALWAYS, *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
"""The five benchmarks, and a corpus of text files."""
WAYS = ("local", "local streamed", "hub", "hub streamed")

CLIENT = """
import base64, json, sys
import datasets
from datasets import Pdf, load_dataset
from huggingface_hub import DatasetCard

def rows(given):
    return [{name: value for name, value in row.items() if name != "pdf"} for row in given]

def pdfs(given):
    if "pdf" not in given.features:
        return {}, {}
    pages = {row["filename"]: len(row["pdf"].pages) for row in given}
    stored = given.cast_column("pdf", Pdf(decode=False))
    return pages, {row["filename"]: base64.b64encode(row["pdf"]["bytes"]).decode() for row in stored}

def without_card(path):
    found = {}
    for config in (None, "gold", "corpus"):
        try:
            given = load_dataset(path, config)
            found[str(config)] = {split: sorted(one.features) for split, one in given.items()}
        except Exception as error:
            found[str(config)] = f"{type(error).__name__}: {error}"
    return found

out = {}
for name, path in json.loads(sys.argv[1]).items():
    for way in WAYS:
        where, streamed = path if way.startswith("local") else f"me/{name}", way.endswith("streamed")
        questions = load_dataset(where, split="train", streaming=streamed)
        gold = load_dataset(where, "gold", split="train", streaming=streamed)
        corpus = load_dataset(where, "corpus", split="train", streaming=streamed)
        pages, stored = pdfs(corpus)
        out[name, way] = {
            "questions": rows(questions), "gold": rows(gold), "corpus": rows(corpus), "pages": pages, "pdf": stored,
            "named": way != "local" or rows(load_dataset(where, "questions", split="train")) == rows(questions),
            "features": [repr(dict(one.features)) for one in (questions, gold, corpus)],
        }
    DatasetCard.load(f"{path}/README.md").validate(repo_type="dataset")
bare = {name: without_card(path) for name, path in json.loads(sys.argv[2]).items()}
print(json.dumps({"loaded": [[*key, value] for key, value in out.items()], "bare": bare}))
""".replace("WAYS", repr(WAYS))


def strip_card(bundle: Path, folder: Path, *, renamed: str = "") -> Path:
    """Copy a bundle without its card; `renamed` is a split's name with which its documents are renamed."""
    shutil.copytree(bundle, folder)
    (folder / "README.md").unlink()
    if renamed:
        for number, path in enumerate(sorted((folder / "corpus").iterdir())):
            path.rename(path.with_name(f"{renamed} {number}.pdf"))
    return folder


@pytest.fixture(scope="module")
def bundles(converted, request):
    """The bundles that the selected tests need, by name."""
    asked = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    names = [*ALWAYS, *(name for name in OTHERS if name in asked)]
    return {name: converted(name) for name in names}


@pytest.fixture(scope="module")
def client(bundles, tmp_path_factory):
    """Load all bundles in one process with the real clients, because importing these takes the most time."""
    folder = tmp_path_factory.mktemp("client")
    bare = {
        "as it is": strip_card(bundles["cuad"], folder / "bare"),
        "train": strip_card(bundles["cuad"], folder / "renamed", renamed="train"),
    }
    with LoopbackHub() as hub:
        for name, path in bundles.items():
            files = {p.relative_to(path).as_posix(): p.read_bytes() for p in path.rglob("*") if p.is_file()}
            hub.commit(f"me/{name}", files)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGING"))}
        settings = {"HF_ENDPOINT": hub.url, "HF_HOME": str(folder / "home"), "HF_HUB_DISABLE_XET": "1"}
        arguments = [json.dumps({key: str(path) for key, path in of.items()}) for of in (bundles, bare)]
        done = subprocess.run(
            [sys.executable, "-c", CLIENT, *arguments],
            env={**kept, **settings, "HF_DATASETS_DISABLE_PROGRESS_BARS": "1", "NO_PROXY": "127.0.0.1,localhost"},
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        assert hub.unknown == [] and hub.crashes == []
    found = json.loads(done.stdout)
    loaded = {(name, way): value for name, way, value in found["loaded"]}
    return SimpleNamespace(loaded=loaded, bare=found["bare"], said=done.stderr)


def sparse(record: dict) -> dict:
    """Leave out what is null: a table has every field in every row, a file only those that apply."""
    return {name: value for name, value in record.items() if value is not None}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_the_rows_are_those_of_the_bundle(bundles, client, name, way):
    loaded, path = client.loaded[name, way], bundles[name]
    questions = [{**row, "contexts": [sparse(context) for context in row["contexts"]]} for row in loaded["questions"]]
    assert questions == json.loads((path / "train.json").read_text(encoding="utf-8"))
    assert loaded["named"], "the default config is `questions`"
    lines = [json.loads(line) for line in (path / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [{**line, "labels": sparse(line["labels"])} for line in loaded["gold"]] == [
        {**line, "labels": sparse(line["labels"])} for line in lines
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_is_the_documents(bundles, client, name, way):
    loaded, info = client.loaded[name, way], read_info(bundles[name] / "bundle.json")
    assert [{k: v for k, v in row.items() if k not in {"text", "licence"}} for row in loaded["corpus"]] == [
        document.model_dump(exclude={"ocr", "labels"}) for document in info.documents
    ]
    assert {row["licence"] for row in loaded["corpus"]} == {info.licence.name}
    assert loaded["pages"] == {d.filename: d.pages for d in info.documents if d.pages}
    assert set(loaded["pdf"]) == {d.filename for d in info.documents if d.filename.lower().endswith(".pdf")}


@pytest.mark.parametrize("name", NAMES)
def test_pdfs_are_the_files_and_spans_count_in_the_text(bundles, client, name):
    loaded, corpus = client.loaded[name, "hub streamed"], bundles[name] / "corpus"
    for filename, content in loaded["pdf"].items():
        assert base64.b64decode(content) == (corpus / filename).read_bytes()
    texts = {row["filename"]: row["text"] for row in loaded["corpus"]}
    assert texts == {path.name: read_document(path).text for path in corpus.iterdir()}
    quotes = {row["id"]: [context.get("text") for context in row["contexts"]] for row in loaded["questions"]}
    for line in loaded["gold"]:
        if line["how"] == "exact":
            assert (
                "".join(texts[line["filename"]][start:end] for start, end in line["spans"])
                == (quotes[line["id"]][line["context"]])
            )


def test_the_features_are_declared(client):
    questions, gold, corpus = client.loaded["cuad", "hub"]["features"]
    assert "'id': Value('int64')" in questions and "'is_impossible': Value('bool')" in questions
    assert "'contexts': List({'filename': Value('string'), 'text': Value('string')})" in questions
    assert "'spans': List(List(Value('int64')))" in gold and "'context': Value('int64')" in gold
    assert "'labels': {'clause': Value('string')" in gold
    assert "'pdf': Pdf(" in corpus and "'pages': Value('int64')" in corpus
    assert "pdf" not in client.loaded["legalbenchrag", "hub"]["features"][2].lower()
    assert "Ignoring" not in client.said and "ignored" not in client.said, client.said


def test_without_the_card_gold_and_corpus_are_lost(client):
    found = client.bare["as it is"]
    assert found["gold"].startswith("ValueError: BuilderConfig 'gold' not found")
    assert found["corpus"].startswith("ValueError: BuilderConfig 'corpus' not found")


def test_without_the_card_documents_that_sound_like_a_split_take_the_place_of_the_questions(client):
    assert client.bare["train"]["None"] == {"train": ["pdf"]}


def test_the_configs_name_the_tables(bundles):
    for path in bundles.values():
        data = yaml.safe_load((path / "README.md").read_text(encoding="utf-8").split("---\n")[1])
        files = [config["data_files"][0]["path"] for config in data["configs"]]
        assert files == ["parquet/questions.parquet", "parquet/gold.parquet", "parquet/corpus-*.parquet"]
        recorded = read_info(path / "bundle.json").files
        assert {"parquet/questions.parquet", "parquet/gold.parquet", "parquet/corpus-00000.parquet"} <= set(recorded)
