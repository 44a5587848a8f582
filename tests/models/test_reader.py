"""The extractive question-answering model: best token ranges, spans inside a passage, calibrated confidence."""

import json
import math
from itertools import product

import numpy as np
import pytest

from exhibit.models import network, reader
from exhibit.models.embedders import legal
from exhibit.models.reader import best_range, decode
from tests.rag.reference import compute_states

LAW = "12. Notices are sent by courier. 13. This Agreement is governed by the laws of the State of Delaware. 14. Costs."
RENT = "Rent is due each quarter in advance and is paid to the Landlord's account."
QUESTION = "Which law governs the contract?"


def sum_scores(tokens: np.ndarray, spans: list[tuple[int, int]]) -> float:
    return float(sum(tokens[a:b, 0].sum() + tokens[a, 1] + tokens[b - 1, 2] for a, b in spans))


def list_runs(bits: tuple[int, ...]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff([0, *bits, 0])).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_decode_finds_token_spans_with_highest_score(seed: int) -> None:
    tokens = np.random.default_rng(seed).normal(size=(7, 3)) * 2
    best = max(sum_scores(tokens, list_runs(bits)) for bits in product((0, 1), repeat=7))
    assert sum_scores(tokens, decode(tokens)) == pytest.approx(max(best, 0.0))


@pytest.mark.parametrize("seed", range(20))
def test_best_range_returns_the_highest_scoring_token_range_inside_any_quoted_span(seed: int) -> None:
    tokens = np.random.default_rng(seed).normal(size=(8, 3)) * 2
    quotes = [(1, 4), (5, 8)]
    inside = [(a, b) for low, high in quotes for a in range(low, high) for b in range(a + 1, high + 1)]
    found = best_range(tokens, quotes)
    assert found in inside and sum_scores(tokens, [found]) == pytest.approx(
        max(sum_scores(tokens, [span]) for span in inside)
    )
    assert best_range(tokens, []) is None


def test_reader_finds_short_answer_inside_answering_span() -> None:
    text = "Either party may end this Agreement by giving ninety (90) days' notice in writing to the other party."
    [read] = reader.shared_reader().read("How many days' notice ends the agreement?", [text])
    assert read.short is not None and "ninety (90) days" in text[read.short.start : read.short.end]
    assert any(span.start <= read.short.start < read.short.end <= span.end for span in read.spans)


def test_verdicts_distinguish_a_permission_from_a_prohibition() -> None:
    model, question = reader.shared_verdicts(), "May the tenant sublet without asking the landlord?"
    allowed = "The Tenant may sublet the Premises without the Landlord's consent."
    yes, no = model.score(question, [allowed, allowed.replace("may", "shall not")])
    assert yes > 0 > no


def test_reader_scores_the_answering_passage_highest() -> None:
    model = reader.shared_reader()
    law, rent = model.read(QUESTION, [LAW, RENT])
    assert law.score > rent.score
    assert "governed by the laws of the State of Delaware" in " ".join(LAW[s.start : s.end] for s in law.spans)
    assert not any("Notices" in LAW[s.start : s.end] for s in law.spans)
    assert model.confidence([law.score, rent.score]) > 0.5 > model.confidence([rent.score])
    assert model.read(QUESTION, [RENT]) == [rent] and model.read(QUESTION, []) == []


def test_question_kind_is_found_by_the_vector_of_the_question() -> None:
    embedder, kinds, model = legal.open("int8"), reader.shared_kinds(), reader.shared_reader()
    assert embedder.name.startswith(reader.EMBEDDER)
    asked = ["Whose courts and whose rules of law apply here?", "Which colour has the lid of the third box?"]
    law, lid = (kinds.of(*pair).asks for pair in zip(asked, embedder.embed(asked, role="query"), strict=True))
    assert law == "which state's or country's law governs it?" and lid == ""
    vague = "What is said of that?"
    [alone], [beside] = model.read(vague, [LAW]), model.read(vague, [LAW], law)
    assert beside.score > alone.score + 1 and model.read(law, [LAW], law) == model.read(law, [LAW])


def test_question_kind_is_found_by_a_known_wording_rather_than_by_vector_similarity() -> None:
    kinds = reader.shared_kinds()
    asked = [kind.asks for kind in kinds._kinds]
    vectors = legal.open("int8").embed(asked, role="query")
    assert [kinds.of(f" {text.upper()}", vector).asks for text, vector in zip(asked, vectors, strict=True)] == asked
    unlike = [text for text, vector in zip(asked, vectors, strict=True) if kinds.of("", vector).asks != text]
    assert unlike, "vectors alone confuse some similar kinds"


def test_passage_vector_scores_highest_for_the_question_kind_that_the_passage_answers() -> None:
    embedder, kinds = legal.open("int8"), reader.shared_kinds()
    asked = ["Which law governs it?", "What is its cap on liability?"]
    law, cap = (kinds.of(text, vector) for text, vector in zip(asked, embedder.embed(asked, role="query"), strict=True))
    capped = "In no event shall either party's total liability exceed the fees paid in the preceding twelve months."
    passages = embedder.embed([LAW, RENT, capped], role="passage")
    assert kinds.answers(law, passages).argmax() == 0 and kinds.answers(cap, passages).argmax() == 2
    assert kinds.answers(law, passages)[0] > 0 > kinds.answers(law, passages)[1:].max()


def test_reader_confidence_depends_on_passage_scores_and_on_the_odds_from_vectors() -> None:
    model = reader.shared_reader()
    unlikely, likely = (model.confidence([0.0], spot=spot) for spot in (-3.0, 3.0))
    assert unlikely < 0.3 and likely > 0.7 and model.confidence([-6.0], spot=3.0) < likely
    assert model.confidence([], spot=-3.0) < 0.05 and model.confidence([], spot=3.0) > 0.95
    once, twice, thrice = (model.confidence([-4.0] * read, spot=1.0) for read in (1, 2, 3))
    assert once > twice > thrice, "each low-scoring passage lowers confidence"
    assert model.confidence([-4.0] * 3 + [-60.0], spot=1.0) == pytest.approx(thrice), "the fourth changes nothing"


def test_low_scoring_passages_do_not_raise_the_odds_that_a_document_has_an_answer() -> None:
    kinds = reader.shared_kinds()
    kind = reader.QuestionKind("Which law governs?", number=7)
    few = np.array([-1.0, -2.0, -3.0], np.float32)
    long = np.concatenate([np.full(200, -3.5, np.float32), few])
    assert kinds.together(kind, long) == kinds.together(kind, few) > kinds.together(kind, few - 1)
    assert kinds.together(kind, few[:1]) < kinds.together(kind, few), "passages after the best one count too"


@pytest.mark.slow
def test_reader_scores_equal_scores_computed_from_the_trained_weights() -> None:
    model = reader.Reader("fp32")
    weights = network.merge(network.OFFICIAL.weights(), network.read_lowrank(reader.WEIGHTS))
    [pair] = model.tokenise(QUESTION, [RENT])
    asked = pair.types[0].tolist().index(1)
    state = compute_states(weights, pair.ids[0].tolist(), pair.types[0].tolist())
    both = np.concatenate([state[0], state.mean(axis=0)])
    [read] = model.read(QUESTION, [RENT])
    assert read.score == pytest.approx(float(both @ weights["head.weight"][0] + weights["head.bias"][0]), abs=1e-3)
    tokens = state[asked:-1] @ weights["spans.weight"].T + weights["spans.bias"]
    assert len(read.spans) == len(decode(tokens[:, :3]))
    inside = 1 / (1 + np.exp(-(state[asked:] @ weights["spans.weight"][:1].T + weights["spans.bias"][:1])))
    quoted = np.concatenate([state[0], (inside * state[asked:]).sum(axis=0) / inside.sum()])
    assert read.yes == pytest.approx(float(quoted @ weights["says.weight"][0] + weights["says.bias"][0]), abs=1e-2)


CLAUSES = {
    "The Tenant shall not assign this Lease without the prior written consent of the Landlord.": {
        "May the tenant assign the lease freely?": False,
        "Is the landlord's written consent needed for an assignment?": True,
    },
    "Either party may terminate this Agreement at any time upon sixty (60) days' written notice.": {
        "Can either party end the agreement without a reason?": True,
        "Must notice of termination be in writing?": True,
    },
    "The licence granted under this Agreement is non-exclusive.": {"Is the licence exclusive?": False},
    "All travel expenses shall be borne by the Supplier.": {"Does the supplier pay for travel?": True},
    "Nothing in this Agreement obliges the Distributor to buy a minimum quantity.": {
        "Must the distributor buy a minimum quantity?": False
    },
    "Fees that have been paid are not refundable.": {"Are paid fees refundable?": False},
    "This Agreement renews for successive terms of one year unless a party objects.": {
        "Does the agreement renew automatically?": True
    },
    "The Contractor is not permitted to disclose the Client's data to third parties.": {
        "May the contractor share the client's data with others?": False
    },
    "The Landlord shall keep the roof and the outer walls in good repair at its own cost.": {
        "Does the tenant have to repair the roof?": False,
        "Must the landlord maintain the outside walls?": True,
    },
    "The Supplier may raise its prices once a year by no more than three per cent.": {
        "Can the supplier increase the prices?": True,
        "Is a price rise of ten per cent allowed?": False,
    },
    "Neither party is liable for a delay that is caused by war, flood or strike.": {
        "Does a party have to pay for delays caused by a flood?": False
    },
    "The Employee shall not work for a competitor for twelve months after the end of the employment.": {
        "Is there a ban on working for competitors after the employment ends?": True,
        "Can the employee join a competitor right away?": False,
    },
    "This Agreement is governed by the laws of Norway.": {"Is the contract subject to Norwegian law?": True},
    "All inventions made under this Agreement belong to the Client.": {
        "Does the client own the inventions?": True,
        "Does the contractor keep the inventions?": False,
    },
}


def test_verdicts_answer_yes_no_questions_from_a_clause() -> None:
    model = reader.shared_verdicts()
    right = [
        (model.score(question, [clause])[0] > 0) == yes
        for clause, questions in CLAUSES.items()
        for question, yes in questions.items()
    ]
    assert len(right) == 20 and sum(right) >= 13, right


def test_reader_confidence_follows_calibrated_logistic_model() -> None:
    model, calibration = reader.shared_reader(), json.loads(reader.CALIBRATION.read_text(encoding="utf-8"))

    def odds(*given: object, **more: object) -> float:
        share = model.confidence(*given, **more)
        return math.log(share / (1 - share))

    alone, together = calibration["alone"], calibration["together"]
    assert odds([0.0]) == pytest.approx(alone["offset"])
    assert odds([1.0]) - odds([0.0]) == pytest.approx(alone["reader"])
    assert odds([0.0, 0.0]) - odds([0.0]) == pytest.approx(alone["reader"] * 2 * math.log(2))
    assert odds([0.0], usual=3.0) - odds([0.0]) == pytest.approx(alone["reader"] * 0.4 * 3)
    cases = calibration["short"]["offset"] + calibration["policy"]["offset"]
    assert odds([0.0], also=["short", "policy"]) - odds([0.0]) == pytest.approx(cases)
    assert odds([0.0], found=0.75) == pytest.approx(together["offset"] + together["reranker"] * math.log(3))
    assert odds([0.0], found=0.5) == pytest.approx(together["offset"])
    assert odds([0.0], found=0.0) == odds([0.0], found=1e-6) and odds([0.0], found=1.0) == odds([0.0], found=1 - 1e-6)
