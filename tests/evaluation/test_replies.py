"""Replies in detail: usage and cost, masked secrets, stated positions of passages; a target that a user adds."""

from __future__ import annotations

import json
import sys

import pytest

import evaluate_rag
from exhibit.evaluation import targets
from exhibit.evaluation.cases import Passage
from exhibit.evaluation.catalogue import list_settings
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.documents import Documents
from exhibit.evaluation.servers.probing import advise
from exhibit.evaluation.servers.server import find_secrets, hide
from exhibit.evaluation.servers.shapes import describe, read_passages, read_usage, recognise
from exhibit.evaluation.targets import TargetOptions, list_targets, open_target
from exhibit.evidence import Span, read_document
from exhibit.evidence.readers.pdf import find_boxes
from exhibit.storage.http_policy import Secrets
from tests.evaluation.rag_server import serving
from tests.rag.bundles import write_bundle

# ---------------------------------------------------------------- cost


@pytest.mark.parametrize(
    ("reply", "usage"),
    [
        ({"usage": {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}},
         {"tokens_in": 20.0, "tokens_out": 5.0}),
        ({"usage": {"input_tokens": 7, "output_tokens": 3, "cost": 0.002}},
         {"tokens_in": 7.0, "tokens_out": 3.0, "cost": 0.002}),
        ({"usage_metadata": {"input_tokens": 7, "output_tokens": 3}}, {"tokens_in": 7.0, "tokens_out": 3.0}),
        ({"replies": [{"meta": {"usage": {"prompt_tokens": 9}}}]}, {"tokens_in": 9.0}),
        ({"usage": {"prompt_tokens": 0, "completion_tokens": 0}}, {}),  # a default is no count
        ({"usage": {"prompt_tokens": "many"}}, {}),
        ({"usage": None}, {}),
        ([1], {}),
    ],
)  # fmt: skip
def test_usage_is_read_as_servers_write_it(reply, usage):
    assert read_usage(reply) == usage


def test_a_stream_tells_when_it_began_and_what_it_cost(tmp_path):
    [dataset], _ = load_datasets([write_bundle(tmp_path / "leases")], Selection())
    events = [{"answer": "Nor"}, {"answer": "way."}, {"usage": {"prompt_tokens": 12, "completion_tokens": 2}}]
    with serving() as server:
        server.content_type = "application/x-ndjson"
        server.reply = lambda question: "\n".join(map(json.dumps, events)).encode()
        target = open_target("http", TargetOptions(threads=1), {"url": server.url})
        [(_, reply)] = target.ask(dataset, dataset.cases[:1])
    assert reply.answer == "Norway." and reply.usage == {"tokens_in": 12.0, "tokens_out": 2.0}
    assert 0 < reply.first_token <= reply.seconds


# ---------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"error": {"message": "wrong key hunter2-hunter2"}}', "wrong key ***"),
        (b'{"detail": [{"loc": ["body"], "msg": "field required"}]}', "field required"),
        (b"<html><style>p {}</style><p>Bad &amp; ugly</p></html>", "Bad & ugly"),
        (b"Authorization: Bearer abc.def.ghi was refused", "Authorization: *** was refused"),
        (b"key sk-aaaabbbbccccdddd expired", "key *** expired"),
        ("é\x00\x07\n\n words".encode(), "é words"),
        (b"x" * 900, "x" * 299 + "…"),
        (b"", ""),
    ],
)
def test_a_server_s_words_are_short_and_hold_no_secret(body, told):
    assert Secrets(["Token hunter2-hunter2", "ab"]).words(body) == told


def test_secrets_are_known_by_where_they_stand():
    url = "https://me:pass-word@host/ask?code=q-secret&top=5000"
    assert set(find_secrets(url, [{"api_key": "k-1", "deep": {"token": "t-1"}, "top": "3"}])) == {
        "me", "pass-word", "q-secret", "5000", "k-1", "t-1",
    }  # fmt: skip
    told = {"api_key": "k", "url": url, "header": {"Authorization": "VARIABLE"}, "list": [{"password": "p"}], "n": 3}
    assert hide(told) == {
        "api_key": "***",
        "url": "https://host/ask",
        "header": {"Authorization": "VARIABLE"},
        "list": [{"password": "***"}],
        "n": 3,
    }


# ---------------------------------------------------------------- shapes


def test_what_is_like_no_shape_is_described_and_paths_are_suggested():
    reply = {
        "a-b": {"said": "the law of Norway"},
        "n": 3,
        "hits": [{"w": "by the law of Norway"}, {"w": "x"}],
        "ok": True,
    }
    assert recognise(reply) is None and recognise([1, 2]) is None and recognise("text") is None
    assert describe(reply) == "{a-b: {said: text}, n: number, hits: [2 × {w: text}], ok: true or false}"
    assert advise(reply, lambda name: None) == ('"a-b".said', "hits[].{text: w}")
    assert (
        describe({"x": {"y": {"z": {"q": {"r": 1}}}}, "e": [], "z": None}) == "{x: {y: {z: {q: {…}}}}, e: [], z: null}"
    )


def test_pages_are_counted_from_one_whoever_counts():
    names = {"a.pdf": "a.pdf"}.get
    given = [
        {"page_content": "x", "metadata": {"source": "a.pdf", "page": 0}},
        {"page_content": "x", "metadata": {"source": "a.pdf", "page": 4, "page_label": "5"}},
        {"node": {"text": "x", "metadata": {"file_name": "a.pdf", "page_label": "ii"}}},
    ]
    assert [one.told_page for one in read_passages(given, names=names, pages_from=0)] == [1, 5, None]
    assert [one.told_page for one in read_passages([{"text": "x", "page": 3}], names=names)] == [3]
    assert [one.filename for one in read_passages(given, names=names)] == ["a.pdf"] * 3


def test_a_box_is_held_against_that_of_the_words(samples):
    path = next((samples / "cuad").rglob("*AGREEMENT*.PDF"))
    document = read_document(path)
    start, end = document.pages[0].span
    span = Span(start + 10, min(end, start + 300))
    lines = [box for box in find_boxes(document, span) if box.page == 1]
    left, top = min(box.left for box in lines), min(box.top for box in lines)
    right, bottom = max(box.right for box in lines), max(box.bottom for box in lines)
    page = document.pages[0]
    documents = Documents({path.name: path})

    def overlap(told_box, told_page=1, told_size=None):
        words = document.text[span.start : span.end]
        passage = Passage(words, path.name, span, told_page=told_page, told_box=told_box, told_size=told_size)
        return documents.place(passage).box_overlap

    true = (left, top, right, bottom)
    assert overlap(true) == pytest.approx(1.0)
    assert overlap((left, top, left + (right - left) / 2, bottom)) == pytest.approx(0.5)
    assert overlap((left, top, right, top + (bottom - top) / 2)) == pytest.approx(0.5)
    assert overlap((left, top, right + (right - left), bottom + (bottom - top))) == pytest.approx(0.25)
    assert overlap((0.0, 0.0, 1.0, 1.0)) == 0.0
    wide, high = right - left, bottom - top
    assert overlap((left + wide / 2, top, right, bottom)) == pytest.approx(0.5)
    assert overlap((left, top + high / 2, right, bottom)) == pytest.approx(0.5)
    beside = (left - wide / 2, top + high / 4, left + wide / 2, bottom + high)
    assert overlap(beside) == pytest.approx(0.375 / (1.75 + 1 - 0.375))
    above = (left + wide / 4, top - high, right + wide, top + high / 2)
    assert overlap(above) == pytest.approx(0.375 / (2.625 + 1 - 0.375))
    assert overlap((right + 1, top, right + 9, bottom)) == overlap((left, bottom + 1, right, bottom + 9)) == 0.0
    shares = (left / page.width, top / page.height, right / page.width, bottom / page.height)
    assert overlap(shares, told_size=(1.0, 1.0)) == pytest.approx(1.0)
    assert overlap(true, told_page=len(document.pages) + 1) is None and overlap(None) is None
    assert overlap(true, told_page=0) is None, "pages are counted from 1"
    if len(document.pages) > 1:
        assert overlap(true, told_page=2) == 0.0, "the words are not on that page"


# ---------------------------------------------------------------- a target that somebody adds

PARROT = '''
"""Says one word whatever it is asked."""

from pydantic import BaseModel, Field

from exhibit.evaluation.cases import Reply
from exhibit.evaluation.targets import NumberedReply, count_only
from exhibit.schemas.errors import ToolkitError


class ParrotSettings(BaseModel):
    word: str = Field("pretty", description="what the parrot says")
    loud: bool = Field(False, description="in capitals")


SETTINGS = ParrotSettings


def open(argument, options, settings):
    return Parrot(options, settings)


class Parrot:
    name, exact = "parrot", False

    def __init__(self, options, settings):
        self.options, self.settings = options, settings

    def probe(self, dataset, cases):
        if not self.settings.word:
            raise ToolkitError("parrot: it is asleep")
        return ["parrot: awake"]

    def ingest(self, dataset):
        return count_only(dataset, self.options)

    def ask(self, dataset, cases):
        word = self.settings.word.upper() if self.settings.loud else self.settings.word
        yield from (NumberedReply(position, Reply(answer=word)) for position in range(len(cases)))
'''


@pytest.fixture
def parrot(tmp_path, monkeypatch):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "parrot.py").write_text(PARROT, encoding="utf-8")
    monkeypatch.setattr(targets, "__path__", [*targets.__path__, str(tmp_path / "more")])
    list_settings.cache_clear()
    yield
    list_settings.cache_clear()
    sys.modules.pop("exhibit.evaluation.targets.parrot", None)


def test_a_target_says_its_settings_and_the_catalogue_lists_them(parrot, tmp_path, capsys):
    assert "parrot" in list_targets()
    assert list_settings()["target_word"].meaning == "what the parrot says"
    bundle = write_bundle(tmp_path / "leases")
    common = [
        "--dataset-paths",
        str(bundle),
        "--target",
        "parrot",
        "--output-dir",
        str(tmp_path),
        "--report-cases",
        "0",
    ]
    assert evaluate_rag.main([*common, "--run-name", "r", "--target-word", "five years", "--target-loud"]) == 0
    assert "note: parrot: awake" in capsys.readouterr().err
    config = json.loads((tmp_path / "r" / "config.json").read_text(encoding="utf-8"))
    assert (config["target"], config["target_word"], config["target_loud"]) == ("parrot", "five years", True)
    answer = json.loads((tmp_path / "r" / "leases" / "eval_results.jsonl").read_text(encoding="utf-8").split("\n")[0])
    assert answer["reply"]["answer"] == "FIVE YEARS"
    assert evaluate_rag.main([*common, "--run-name", "s", "--target-word", ""]) == 1
    assert "error: parrot: it is asleep" in capsys.readouterr().err
    assert evaluate_rag.main([*common, "--run-name", "t", "--target-url", "http://x"]) == 1
    assert "target_url: not a setting of the target parrot; its settings are target_word" in capsys.readouterr().err
