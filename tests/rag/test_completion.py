"""The rest of a sentence that a passage cuts: found in the document, read with the passage, cited and recorded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evaluation.targets.builtin import make_answered_reply
from exhibit.evidence import Span, subtract_spans
from exhibit.rag import Config, Pipeline
from exhibit.rag.answerers.reader import can_read, make_windows
from exhibit.rag.pipeline import Answered
from exhibit.rag.protocols import Chunk, Hit, Source
from exhibit.rag.retrieval.completion import WIDEST, complete_sentences
from exhibit.rag.retrieval.stages import Retrieved

DUTY = (
    "2. If the Harbour Master finds that a vessel is unsafe, the Berth Holder shall within two days move her to "
    "the outer mole, have a surveyor inspect her hull and rigging, and pay the surveyor's fee of EUR 450."
)
TEXT = f"BERTH LICENCE\n\n1. Fees are paid each April.\n\n{DUTY} The licence then rests.\n\n3. Dogs are kept on a lead."


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory) -> Pipeline:
    folder = tmp_path_factory.mktemp("berth")
    (folder / "berth.txt").write_text(TEXT, encoding="utf-8")
    pipeline = Pipeline(Config.preset("routed", embedder="hashing:64"), cache=folder / "cache")
    pipeline.index([folder / "berth.txt"], folder / "index")
    return pipeline


def hit(words: str, score: float = 1.0) -> Hit:
    start = TEXT.index(words)
    return Hit(Chunk("berth.txt", Span(start, start + len(words)), "2", 1), score, words)


def complete(pipeline: Pipeline, selected: list[Hit], ranked: list[Hit]) -> list[str]:
    return [one.text for one in complete_sentences(selected, ranked, pipeline._open_built)]


def test_the_words_before_and_after_a_passage_complete_its_sentence(pipeline):
    words = "the Berth Holder shall within two days move her to the outer mole,"
    before, after = complete(pipeline, [hit(words)], [hit(words)])
    assert f"{before}{words}{after}" == DUTY


def test_a_passage_of_whole_sentences_needs_nothing(pipeline):
    assert complete(pipeline, [hit("The licence then rests.")], []) == []


def test_a_passage_whose_words_an_amendment_changed_is_left_as_it_is(pipeline):
    cut = hit("pay the surveyor's fee of EUR 450.")
    assert complete(pipeline, [Hit(cut.chunk, 1.0, "pay the surveyor's fee of EUR 500.")], []) == []


def test_what_is_added_stays_within_one_ranked_passage(pipeline):
    first, other = (
        hit("the Berth Holder shall within two days"),
        hit("the outer mole, have a surveyor inspect her hull", 0.5),
    )
    added = complete(pipeline, [first], [first, other])
    assert other.text in added and "".join(sorted(added, key=TEXT.index)).startswith("2. If the Harbour Master")
    assert not any(first.text in one for one in added)


def test_the_reader_reads_a_passage_with_the_rest_of_its_sentence_before_its_neighbours(pipeline):
    first = hit("the Berth Holder shall within two days")
    near = hit("1. Fees are paid each April.", 0.5)
    hits = [first, near, *complete_sentences([first, near], [first, near], pipeline._open_built)]
    window, *_ = make_windows([Source(number, one) for number, one in enumerate(hits, 1)])
    assert DUTY in window.text and {source.number for source in window.sources} >= {1, 3, 4}
    at = window.text.index("EUR 450")
    [(source, span)] = window.parts(at, at + 7)
    assert source.text[slice(*span)] == "EUR 450" and source.number == 4


def testmake_windows_do_not_overlap_and_none_is_too_long():
    text = " ".join(f"Clause {n} says that the party numbered {n} bears its own costs." for n in range(40))
    spans = [Span(at, at + 100) for at in (900, 1000, 1100, 300, 400, 700)]
    hits = [Hit(Chunk("long.txt", span), 1.0, text[slice(*span)]) for span in spans]
    windows = make_windows([Source(number, one) for number, one in enumerate(hits, 1)])
    assert all(len(window.text) <= WIDEST for window in windows)
    read = [(source.number, *span) for window in windows for source, span in window.parts(0, len(window.text))]
    assert sorted({number for number, *_ in read}) == [1, 2, 3, 4, 5, 6]
    assert sum(end - start for _, start, end in read) == 600, "every passage is read once, and whole"


def test_text_that_no_ranked_passage_has_is_a_passage_behind_them_and_is_cited_by_its_rank(pipeline):
    ranked = [hit("the Berth Holder shall within two days"), hit("3. Dogs are kept on a lead.", 0.1)]
    retrieved = Retrieved("Who pays?", tuple(ranked), tuple(ranked[:1]))
    retrieved = pipeline.complete(retrieved)
    context = pipeline.context(retrieved)
    assert [source.text for source in context.sources] == [ranked[0].text, *(one.text for one in retrieved.beside)]
    answer = pipeline.answer(["Who pays the surveyor's fee?"])[0].answer
    cited = type(answer)("“pay the surveyor's fee of EUR 450.” [3]", (3,))
    reply = make_answered_reply(Answered(retrieved, context, cited), 0.1)
    assert [passage.text for passage in reply.passages[:2]] == [one.text for one in ranked]
    assert "EUR 450" in reply.passages[3].text and "[4]" in reply.answer and reply.context == (1, 3, 4)


def test_an_answer_is_a_whole_sentence_though_its_passage_is_half_of_it(pipeline):
    config = pipeline.config.model_copy(update={"passage_size": 60, "refuse_below": None})
    small = Pipeline(config, cache=pipeline._open_built.folder.parent / "cache")
    small.open(pipeline._open_built.folder)
    [answered] = small.answer(["What shall the Berth Holder do if the vessel is unsafe?"])
    assert max(len(one.text) for one in answered.retrieved.ranked) <= 60
    assert DUTY in answered.answer.quotes[0] and not answered.answer.unsupported


def test_a_question_that_the_reader_does_not_answer_has_the_passages_alone(pipeline):
    half = hit("the Berth Holder shall within two days")
    german = Retrieved("Wer zahlt die Gebühr des Gutachters, wenn das Schiff nicht sicher ist?", (half,), (half,))
    english = Retrieved("Who pays the surveyor's fee if the vessel is not safe?", (half,), (half,))
    assert not pipeline.complete(german).beside and pipeline.complete(english).beside
    assert not can_read(english.question, "court guide") and can_read(english.question, "contract")


@given(st.tuples(st.integers(0, 40), st.integers(0, 40)), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40))))
def test_what_is_subtracted_is_gone_and_the_rest_is_there(whole, taken):
    whole, taken = Span(*sorted(whole)), [Span(*sorted(one)) for one in taken]
    left = [at for part in subtract_spans([whole], taken) for at in range(*part)]
    assert left == [at for at in range(*whole) if not any(start <= at < end for start, end in taken)]
