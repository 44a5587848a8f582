"""Drafting a bundle from a folder: gold from rules and models is located, and unsure drafts go into a separate file."""

import json
import math
import re
from dataclasses import dataclass

import numpy as np
import pytest

from exhibit.drafting import folder, playbook
from exhibit.drafting.folder import main
from exhibit.drafting.playbook import MAX_READ_CHUNKS, Asker, Playbook, complete_passage
from exhibit.evidence import Document, Span
from exhibit.law.profile import read_profile
from exhibit.law.sentences import split_sentences
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.reader import AnswerSpan, QuestionKind, Reading
from exhibit.rag.index import Entry
from exhibit.rag.ingest import Prepared
from exhibit.schemas.models import DraftInfo
from exhibit.schemas.validate import validate

CONTRACT = """SUPPLY AGREEMENT

This Supply Agreement is made on 4 May 2021 between {party} Ltd and Dune plc.

1. Definitions. “Goods” means the oak planks that are listed in the schedule to this Agreement and nothing else.

2. Governing Law. This Agreement is governed by the law of {law}, and its courts have jurisdiction over disputes.

3. Deposit. {party} Ltd pays a deposit of £12,500 before the first delivery, which is returned as section 4 says.

4. Return. The deposit is returned within thirty days of the end of this Agreement, less what is still owed by then.
"""


@dataclass
class StubReader:
    """A stub question-answering model that is confident about the governing law and uncertain about deposits."""

    name: str = "scripted"
    threads: int = 2

    def score(self, question, passages):
        words = set(re.findall(r"[a-z]+", question.lower().replace("governs it", "is governed by the agreement")))
        return [float(len(words & set(re.findall(r"[a-z]+", passage.lower())))) for passage in passages]

    def read(self, question, passages, hint=""):
        """Mark, in each passage, the sentence that shares the most words with the question."""
        readings = []
        for passage, score in zip(passages, self.score(question, passages), strict=True):
            spans = split_sentences(passage)
            shared = self.score(question, [passage[span.start : span.end] for span in spans])
            best = spans[shared.index(max(shared))]
            readings.append(Reading(score, (AnswerSpan(best.start, best.end, score),)))
        return readings

    def confidence(self, scores, *, spot=None):
        return {0: 0.01, 1: 0.02, 2: 0.05}.get(int(max(scores)), 0.95 if max(scores) >= 4 else 0.5)


@pytest.fixture
def contracts(tmp_path, monkeypatch):
    return write_contracts(tmp_path, monkeypatch)


def write_contracts(tmp_path, monkeypatch):
    """Write two contracts and replace the models by stubs.

    Return the contracts' folder, the output folder, and a list that collects the files about which questions are asked.
    """
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "contracts"
    source.mkdir()
    for party, law in (("Alder", "Norway"), ("Birch", "Ohio")):
        (source / f"{party}.txt").write_text(CONTRACT.format(party=party, law=law), encoding="utf-8")
    asked = []

    def open_asker(pipeline):
        asker = Asker(Hashing(256), StubReader(), StubReader())
        ask = asker.ask
        monkeypatch.setattr(asker, "ask", lambda *given: asked.append(given[1].entry.filename) or ask(*given))
        return asker

    monkeypatch.setattr(folder, "open_asker", open_asker)
    return source, tmp_path / "out", asked


def prepare(text, spans, texts):
    """Return a document with this text, whose chunks have these spans and texts."""
    profile = read_profile(Document("a.txt", text, ()))
    table = np.array([[*span, 0, 0] for span in spans], np.int64)
    return Prepared(Entry(-1, "a.txt", "", 0, None, profile, ""), text, (), table, texts, None, None, None)


def draft(source, out, *flags):
    assert main([str(source), "--out", str(out), "--engine", "serial", "--force", *flags]) == 0
    rows = json.loads((out / "train.json").read_text(encoding="utf-8"))
    gold = [json.loads(line) for line in (out / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    waiting = [json.loads(line) for line in (out / "drafts.jsonl").read_text(encoding="utf-8").splitlines()]
    return rows, gold, waiting


def test_draft_of_a_folder_writes_a_valid_bundle_with_located_gold_and_counts(contracts):
    source, out, _ = contracts
    rows, gold, waiting = draft(source, out)
    assert validate(out) == []
    assert all(line["how"] in ("exact", "folded") or line["context"] is None for line in gold)
    labels = {line["id"]: line["labels"] for line in gold}
    kinds = {labels[row["id"]]["drafted"] for row in rows}
    assert {"definition", "heading", "parties", "playbook"} <= kinds
    [law] = [r for r in rows if labels[r["id"]]["asks_for"] == "contract/governing law" and "Norway" in r["answer"]]
    assert any("governed by the law of Norway" in context["text"] for context in law["contexts"])
    assert "Supply Agreement" in law["question"]
    absent = [row for row in rows if row["is_impossible"]]
    assert absent and all(labels[row["id"]]["draft"] == "absent" for row in absent)
    assert waiting and {line["gold"][0]["labels"]["draft"] for line in waiting} == {"unsure"}
    assert not {row["id"] for row in rows} & {line["id"] for line in waiting}
    info = json.loads((out / "bundle.json").read_text(encoding="utf-8"))["draft"]
    assert info["sure"] == len(rows) and info["unsure"] == len(waiting) and info["reviewed"] == 0
    assert info["playbooks"] == ["contract"] and info["models"] == ["hashing-256", "scripted", "scripted"]
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "**drafted, 0 of " in card and "from the playbooks contract" in card


@pytest.mark.slow
def test_second_draft_asks_only_about_new_documents(contracts):
    source, out, asked = contracts
    first, _, _ = draft(source, out)
    assert asked == ["Alder.txt.pdf", "Birch.txt.pdf"]
    (source / "Cedar.txt").write_text(CONTRACT.format(party="Cedar", law="Chile"), encoding="utf-8")
    second, _, _ = draft(source, out)
    assert asked[2:] == ["Cedar.txt.pdf"]
    questions = {row["id"]: row["contexts"] for row in second}
    assert all(questions[row["id"]] == row["contexts"] for row in first)


def test_draft_reports_a_folder_without_legal_documents(tmp_path, contracts, capsys):
    empty = tmp_path / "recipes"
    empty.mkdir()
    (empty / "soup.txt").write_text("Boil the leeks. Add salt. Serve hot with bread.", encoding="utf-8")
    assert main([str(empty), "--out", str(tmp_path / "none"), "--engine", "serial"]) == 1
    assert "no question was drafted: 1 documents of these kinds: unknown" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("wrong", "judged", "message"), [(0, 0, "no person has checked"), (2, 40, "5% of the sure drafts")]
)
def test_draft_info_text_states_review_count_and_error_rate(wrong, judged, message):
    info = DraftInfo(reviewed=40, judged_sure=judged, wrong=wrong)
    assert message in info.words(200) and info.words(200).startswith("drafted, 40 of 200 reviewed by a person")


def test_asker_uses_the_search_wording_and_the_confidence_threshold_of_a_playbook():
    asked: list[str] = []

    class CertainReader(StubReader):
        def score(self, question, passages):
            asked.append(question)
            return [4.0] * len(passages)

        def confidence(self, scores, *, spot=None):
            return 0.85

    text = "The fuel is paid by the charterer."
    prepared = prepare(text, [(0, len(text))], (text,))
    book = Playbook(name="b", title="Boats", kinds=["contract"], questions=[{"name": "fuel", "ask": "Fuel?"}])
    exact = book.model_copy(update={"questions": [book.questions[0].model_copy(update={"seek": "Who pays for fuel?"})]})
    for tried, status in [(book, "sure"), (exact.model_copy(update={"sure": 0.9}), "unsure")]:
        [draft] = Asker(Hashing(64), CertainReader(), CertainReader()).ask(tried, prepared)
        assert (draft.status, draft.asks) == (status, "Fuel?")
    assert set(asked) == {"Fuel?", "Who pays for fuel?"}


@pytest.mark.parametrize(
    ("marked", "cut", "passage"),
    [
        ("not use it except", (True, True), "He shall keep it safe and not use it except for the review."),
        ("not use it", (True, False), "He shall keep it safe and not use it"),
        ("ot use it ex", (False, False), "not use it except"),
        ("for the review. The term", (False, True), "for the review. The term is one year."),
        ("It is signed.", (True, True), "It is signed."),
    ],
)
def test_complete_passage_extends_a_passage_to_whole_sentences(marked, cut, passage):
    text = "It is signed. He shall keep it safe and not use it except for the review. The term is one year. The end."
    start = text.index(marked)
    assert text[slice(*complete_passage(text, Span(start, start + len(marked)), *cut))] == passage


class StubEmbedder:
    """A stub embedder called `legal-told` that recognises one kind of question, which only chunk 7 answers."""

    name, threads = "legal-told", 1

    def __init__(self, odds: float, again: float = 0.0) -> None:
        self.vectors = np.eye(20, dtype=np.float32)
        self.odds, self.again, self.read_texts, self.hints = odds, again, [], []
        self.scores, self.spans, self.then = {}, ((0, None),), {}

    def embed(self, texts, role):
        return self.vectors[: len(texts)]

    def of(self, question, vector):
        return QuestionKind("which clause is the seventh?", number=0)

    def answers(self, kind, passages):
        return np.where(
            np.arange(len(passages)) == 7, self.odds, np.where(np.arange(len(passages)) < 2, min(self.odds, -3.0), -9.0)
        )

    def together(self, kind, odds):
        return float(odds.max())

    def read(self, question, passages, hint=""):
        read = []
        for passage in passages:
            score = self.scores.get(len(self.read_texts), 2.0)
            found = (AnswerSpan(start, end or len(passage), 1.0 - at) for at, (start, end) in enumerate(self.spans))
            read.append(Reading(score, tuple(found)))
            self.read_texts.append(passage)
            self.hints.append(hint)
        return read

    def confidence(self, scores, *, spot=None):
        if len(scores) in self.then:
            return self.then[len(scores)]
        return 1 / (1 + math.exp(-spot)) if spot is not None else 0.9

    def score(self, question, passages):
        assert len(passages) == MAX_READ_CHUNKS
        return [self.again] * len(passages)


def prepared_span(number):
    texts = [f"clause {at} of the agreement" for at in range(20)]
    start = len(" ".join(texts[:number])) + (number > 0)
    return start, start + len(texts[number])


def judge(told, monkeypatch, embedder=None, again=True, count=20, absent=0.1):
    texts = tuple(f"clause {number} of the agreement" for number in range(count))
    prepared = prepare(" ".join(texts), [prepared_span(number) for number in range(count)], texts)
    monkeypatch.setattr(playbook, "shared_kinds", lambda: told)
    embedder = embedder or told
    monkeypatch.setattr(playbook, "estimate_confidence", lambda reranker, scores: max(scores))
    chunks = embedder.embed(list(texts), role="passage")
    wordings = ["Which clause?", "And which?"]
    return Asker(embedder, told, told).judge(wordings, prepared, chunks, absent=absent, again=again)


def test_asker_reads_chunks_with_the_best_vector_scores_first(monkeypatch):
    stub = StubEmbedder(odds=4.0)
    judged = judge(stub, monkeypatch)
    assert judged.status == "sure" and judged.confidence == 0.982
    assert stub.read_texts[0].startswith("clause 7 ") and len(stub.read_texts) == MAX_READ_CHUNKS
    assert stub.read_texts[1].startswith("clause 0 "), "chunks near the question wordings are read next"
    assert stub.hints == ["which clause is the seventh?"] * MAX_READ_CHUNKS, "the hint is the wording of the kind"


@pytest.mark.parametrize(
    ("odds", "likely", "options", "expected"),
    [
        ((-1.0, -1.0), 0.5, {}, (3, "unsure", 0.5)),
        ((-1.0, -9.0), 0.5, {}, (2, "unsure", 0.5)),  # by its vector, the third chunk does not answer
        ((-9.0, -9.0), 0.5, {}, (1, "unsure", 0.5)),  # the best chunk is always read
        ((-1.0, -1.0), 0.01, {}, (1, "absent", 0.99)),
        ((-1.0, -1.0), 0.01, {"again": 0.9}, (3, "unsure", 0.5)),  # if the absence is doubtful, all chunks are read
        ((-1.0, -1.0), 0.5, {"vectors": 0.001}, (0, "absent", 0.999)),
        ((-9.0, -9.0), 0.5, {"vectors": 0.001, "absent": 0.0}, (3, "unsure", 0.5)),  # no absence is certain enough
    ],
)
def test_asker_reads_fewer_chunks_when_an_answer_is_unlikely(monkeypatch, odds, likely, options, expected):
    embedder = StubEmbedder(odds=0.0, again=options.get("again", 0.0))
    embedder.then = {0: options.get("vectors", 0.5), 1: likely}
    monkeypatch.setattr(embedder, "answers", lambda kind, passages: np.array([0.0, *odds, *[-9.0] * 17]))
    judged = judge(embedder, monkeypatch, again="again" in options, absent=options.get("absent", 0.1))
    assert (len(embedder.read_texts), judged.status, judged.confidence) == expected


def test_asker_marks_draft_as_unsure_when_the_reranker_doubts_that_an_answer_is_absent(monkeypatch):
    stub = StubEmbedder(odds=-3.0, again=0.9)
    judged = judge(stub, monkeypatch)
    assert (judged.status, judged.confidence) == ("unsure", 0.5) and stub.hints, "passages are still read"
    assert judge(StubEmbedder(odds=-3.0, again=0.9), monkeypatch, again=False).status == "absent"
    assert judge(StubEmbedder(odds=-3.0, again=0.2), monkeypatch).status == "absent"
    doubted = judge(StubEmbedder(odds=-3.0, again=0.21), monkeypatch)
    assert (doubted.status, doubted.confidence) == ("unsure", 0.21), "the lower of both confidences"


def test_asker_proposes_the_best_chunk_when_the_reader_marks_no_answer_words(monkeypatch):
    embedder = StubEmbedder(odds=0.0)
    embedder.spans = ()
    judged = judge(embedder, monkeypatch)
    [span] = judged.spans
    assert judged.status == "unsure" and span == Span(*prepared_span(7)), "the whole best chunk is proposed"


def test_asker_proposes_the_whole_chunk_when_answer_words_cross_a_running_head(monkeypatch):
    embedder = StubEmbedder(odds=2.5)
    embedder.spans = ((9, 19),)
    monkeypatch.setattr(playbook, "shared_kinds", lambda: embedder)
    head = "Page 3 of 9\n"
    text = f"the tenant pays {head}all of the rent."
    chunk = text.replace(head, "")
    prepared = prepare(text, [(0, len(text))], (chunk,))
    for words, expected in [("nt pays al", []), ("all of the", ["all of the"])]:
        embedder.spans = ((chunk.index(words), chunk.index(words) + len(words)),)
        judged = Asker(embedder, embedder, embedder).judge(["Rent?"], prepared, embedder.embed([chunk], "passage"))
        assert [text[span.start : span.end] for span in judged.spans] == (expected or [text])


def test_asker_reports_an_absent_answer_for_a_document_without_chunks(monkeypatch):
    embedder = StubEmbedder(odds=4.0)
    monkeypatch.setattr(embedder, "embed", lambda texts, role: np.empty((0, 20), np.float32))
    assert judge(embedder, monkeypatch) == ("absent", (), 1.0) and embedder.hints == []


def test_asker_limits_unsure_drafts_but_not_sure_drafts_to_3_passages(monkeypatch):
    embedder = StubEmbedder(odds=2.5)
    embedder.scores, embedder.spans = {0: 1.4, 1: 3.0, 2: 1.5}, ((9, 11),)
    second, third = judge(embedder, monkeypatch).spans
    assert second == Span(9, 11) and third.start == prepared_span(1)[0] + 9, "passages are in order of score"
    unsure = StubEmbedder(odds=0.0)
    unsure.spans = (9, 11), (12, 15)
    judged = judge(unsure, monkeypatch)
    assert judged.status == "unsure" and len(judged.spans) == 3
    embedder = StubEmbedder(odds=2.5)
    embedder.spans = unsure.spans
    assert len(judge(embedder, monkeypatch).spans) == 6, "a sure draft has all passages"
