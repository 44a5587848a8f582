"""A language model's draft is kept if the document contains its quote, or else counted."""

from __future__ import annotations

import json

import pytest

from exhibit.drafting.asked import Asker
from exhibit.drafting.folder import prepare_document
from exhibit.drafting.generated import Generator
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import Completion
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation
from tests.drafting.test_draft import CONTRACT, Scripted

LAW = "This Agreement is governed by the law of Norway"
KEPT = {
    "type": "fact",
    "question": "Which law governs this agreement, by its own words?",
    "quotes": [LAW],
    "answer": "Norway",
}
NEAR = {"type": "near", "question": "Is there an arbitration panel?", "quotes": [], "answer": ""}
OTHERS = [
    {**KEPT, "quotes": ["This Agreement is governed by the law of Peru"], "question": "Does Peru matter?"},
    {**KEPT, "question": "Which law governs this agreement by its own words?"},
    {"type": "poem", "question": "Why?", "quotes": []},
    {**NEAR, "question": "Which law governs this agreement, and which courts have jurisdiction over disputes?"},
]


class Model:
    """A language model with given replies."""

    name = "scripted-llm"

    def __init__(self, *replies: str) -> None:
        self.replies, self.asked = list(replies), []

    def complete(self, prompts, *, max_tokens, temperature):
        self.asked += prompts
        return [Completion(self.replies.pop(0)) for _ in prompts]


@pytest.fixture
def prepared(tmp_path):
    path = tmp_path / "Alder.txt"
    path.write_text(CONTRACT.format(party="Alder", law="Norway"), encoding="utf-8")
    prepared, _ = prepare_document(Preparation(Config.preset("routed")), path)
    return prepared


def generate(model, prepared, topic=""):
    asker = Asker(Hashing(256), Scripted(), Scripted())
    generator = Generator(model, asker, topic)
    return generator.draft(prepared), generator.dropped


def test_generator_drops_and_counts_questions_by_reason(prepared):
    reply = json.dumps({"questions": [KEPT, NEAR, *OTHERS]})
    drafts, dropped = generate(Model(f"Here you are: {reply}"), prepared)
    assert [draft.asks for draft in drafts] == [KEPT["question"], NEAR["question"]]
    [span] = drafts[0].spans
    assert prepared.text[span.start : span.end] == LAW and drafts[0].labels["type"] == "fact"
    assert drafts[1].status == "absent" and not drafts[1].spans
    assert dropped == {
        "a quote that is not in the document": 1,
        "repeats another question": 1,
        "a question without its type or quotes": 1,
        "called unanswerable, but the document answers it": 1,
    }


@pytest.mark.parametrize("reply", ["no JSON", "{}", '{"questions": 7}', "{" * 3000])
def test_generator_counts_a_reply_that_is_not_the_requested_json(reply, prepared):
    drafts, dropped = generate(Model(reply), prepared)
    assert drafts == [] and dropped == {"a reply that is not the requested JSON": 1}


def test_generator_adds_the_topic_to_the_prompt(prepared):
    model = Model(json.dumps({"questions": [KEPT]}))
    generate(model, prepared, topic="jurisdiction of courts")
    assert "Ask only about this topic: jurisdiction of courts." in model.asked[0].user
