"""A language model's draft is used if the document contains its quote; otherwise it is counted as discarded."""

import json

import numpy as np
import pytest

from exhibit.drafting.folder import prepare_document
from exhibit.drafting.generated import Generator
from exhibit.drafting.playbook import Asker
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import Completion
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation
from tests.drafting.test_draft import CONTRACT, StubReader

LAW = "This Agreement is governed by the law of Norway"
QUESTION = "Which law governs this agreement, by its own words?"
KEPT = {"type": "fact", "question": QUESTION, "quotes": [LAW], "answer": "Norway"}
NEAR = {"type": "near", "question": "Is there an arbitration panel?", "quotes": [], "answer": ""}
OTHERS = [
    {**KEPT, "quotes": ["This Agreement is governed by the law of Peru"], "question": "Does Peru matter?"},
    {**KEPT, "question": "Which law governs this agreement by its own words?"},
    {"type": "poem", "question": "Why?", "quotes": []},
    {**NEAR, "question": "Which law governs this agreement, and which courts have jurisdiction over disputes?"},
]


class StubLlm:
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
    asker = Asker(Hashing(256), StubReader(), StubReader())
    generator = Generator(model, asker, topic)
    return generator.draft(prepared), generator.dropped


def test_generator_drops_and_counts_questions_by_reason(prepared):
    reply = json.dumps({"questions": [KEPT, NEAR, *OTHERS]})
    drafts, dropped = generate(StubLlm(f"Here you are: {reply}"), prepared)
    assert [draft.asks for draft in drafts] == [KEPT["question"], NEAR["question"]]
    [span] = drafts[0].spans
    assert prepared.text[span.start : span.end] == LAW and drafts[0].labels["type"] == "fact"
    assert drafts[1].status == "absent" and not drafts[1].spans
    assert dropped == {
        "a quote that is not in the document": 1,
        "repeats another question": 1,
        "called unanswerable, but the document answers it": 1,
    }


@pytest.mark.parametrize("reply", ["no JSON", "{}", '{"questions": 7}', '{"questions": [7]}', "{" * 3000])
def test_generator_counts_a_reply_that_is_not_the_requested_json(reply, prepared):
    drafts, dropped = generate(StubLlm(reply), prepared)
    assert drafts == [] and dropped == {"a reply that is not the requested JSON": 1}


def test_generator_adds_the_topic_to_the_prompt(prepared):
    model = StubLlm(json.dumps({"questions": [KEPT]}))
    generate(model, prepared, topic="jurisdiction of courts")
    assert "Ask only about this topic: jurisdiction of courts." in model.asked[0].user


def list_shown_texts(model: StubLlm) -> list[str]:
    return [
        prompt.user.partition("<document>\n")[2].partition("\n</document>")[0]
        for prompt in model.asked
        if "<document>" in prompt.user
    ]


@pytest.mark.parametrize(("length", "windows"), [(100, 1), (99_999, 3)])
def test_generator_shows_the_model_up_to_3_parts_of_a_document(prepared, length, windows):
    text = ("word " * (length // 5 + 1))[:length]
    long = prepared.__class__(**{**vars(prepared), "text": text})
    model = StubLlm(*(["no json"] * 3))
    _, dropped = generate(model, long)
    parts = list_shown_texts(model)
    assert len(parts) == windows and all(len(part) <= 2400 for part in parts) and text.startswith(parts[0])
    assert dropped["a reply that is not the requested JSON"] == windows


def prepare_text(prepared, text, *starts):
    """Return a document with this text, and with a chunk of a hundred characters at each of these offsets."""
    table = np.array([[at, at + 100, 0, 0] for at in starts], np.int64).reshape(-1, 4)
    chunks = tuple(text[at : at + 100] for at in starts)
    return prepared.__class__(**{**vars(prepared), "text": text, "chunks": table, "texts": chunks})


def test_generator_shows_parts_nearest_to_the_topic_first_and_with_the_text_before_them(prepared):
    text = "".join(f"{number:04d}" for number in range(2500)).replace("1250", "rent")
    topical = prepare_text(prepared, text, 100, 4990)
    model = StubLlm(*(["no json"] * 3))
    generate(model, topical, topic=topical.texts[1])
    assert list_shown_texts(model) == [text[4190:6590], text[:2400]], (
        "the nearest part comes first, with preceding text"
    )
    without = StubLlm("no json")
    generate(without, prepare_text(prepared, "short"), topic="rent")
    assert list_shown_texts(without) == ["short"], "without chunks, the beginning of the document is shown"


def test_generator_counts_a_model_failure_and_continues_with_the_next_part(prepared):
    model = StubLlm(*[json.dumps({"questions": [KEPT]})] * 2)
    complete = model.complete

    def failing(prompts, **options):
        first, *others = complete(prompts, **options)
        return [first if not others else Completion("", error="busy"), *others]

    model.complete = failing
    drafts, dropped = generate(model, prepare_text(prepared, f"{LAW}. {'word ' * 960}", 0))
    assert len(drafts) == 1 and dropped == {"the language model failed": 1}


@pytest.mark.parametrize(
    "broken",
    [
        7, {**KEPT, "quotes": "a string"}, {**KEPT, "quotes": [7]}, {**KEPT, "question": 7}, {**KEPT, "question": " "},
        {**KEPT, "type": "poem"}, {"type": "fact"},
    ],
)  # fmt: skip
def test_generator_skips_a_malformed_question_and_uses_the_other_questions(prepared, broken):
    drafts, dropped = generate(StubLlm(json.dumps({"questions": [broken, KEPT]})), prepared)
    assert [draft.asks for draft in drafts] == [KEPT["question"]] and dropped == {}


def test_generator_drops_a_question_with_a_quote_missing_from_the_document(prepared):
    term = "The deposit is returned within thirty days"
    quotes = [{**KEPT, "quotes": given} for given in ([LAW, " ", term, LAW], [LAW, "never written here at all"], [" "])]
    [both], dropped = generate(StubLlm(json.dumps({"questions": quotes})), prepared)
    assert [prepared.text[span.start : span.end] for span in both.spans] == [LAW, term]
    assert dropped == {"a quote that is not in the document": 2}
    spaced = {**KEPT, "question": "Which  law\ngoverns it?"}
    [draft], _ = generate(StubLlm(json.dumps({"questions": [spaced]})), prepared)
    assert draft.asks == "Which law governs it?" and draft.kind == "llm"


@pytest.mark.parametrize(("likely", "status"), [(0.9, "sure"), (0.5, "unsure")])
def test_generator_marks_a_draft_as_sure_above_a_confidence_threshold(prepared, likely, status):
    reader = StubReader()
    reader.confidence = lambda scores, *, spot=None: likely
    model = StubLlm(json.dumps({"questions": [KEPT]}))
    [draft] = Generator(model, Asker(Hashing(64), reader, reader)).draft(prepared)
    assert (draft.status, draft.confidence) == (status, likely)
