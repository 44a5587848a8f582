"""The extractive reader: a model that finds, in passages, the exact words that answer a question, or finds none.

It is MiniLM with 6.3 MB of low-rank weights and three heads. The heads predict whether a passage answers, whether the
answer is yes, and for each token whether it is inside, begins or ends the quote or the short answer. A separate model
answers yes-no questions that are not in a benchmark's wording.
bench/results/models.md names the training data.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from exhibit.models.network import SCORES, TOKENS, VERDICTS, choose_variant, open_lowrank, read_lowrank, read_record
from exhibit.models.rerankers.legal import LegalReranker, Pair, PairModel

WEIGHTS = Path(__file__).parent / "weights" / "reader.safetensors"
CALIBRATION = WEIGHTS.with_name("confidence.json")
KINDS = WEIGHTS.with_name("kinds.safetensors")
YES_OR_NO = WEIGHTS.with_name("verdicts.safetensors")
EMBEDDER = "legal-"  # the prefix of the names of embedders whose vectors distinguish kinds of questions
# on CUAD's tuning documents, values of -1, 0, 1 and 2 give a span F1 of 0.63, 0.70, 0.70 and 0.70; for reworded
# questions it rises from 0.49 to 0.59
LEAN = 1.0  # the log-odds that are added to each token's output
# with 0, 1, 2 and 3, the reader refuses 0.71, 0.73, 0.74 and 0.74 of CUAD's unanswerable questions in free words
SEVERAL = 2.0  # the temperature of a soft maximum over the scores of several passages
USUAL = 0.4  # the weight of the prior log-odds of a kind of clause; with 0.2 to 0.6, results on CUAD differ by 0.01
FEW = 3  # how many passages' vectors are combined: AUROC is 0.945 on CUAD, and 0.938 with all passages
Also = Literal["short", "whole", "policy"]
Numbers = npt.NDArray[np.floating]


class AnswerSpan(NamedTuple):
    start: int
    end: int
    sure: float  # the mean, over the span's tokens, of the log-odds that a token is part of the answer


class Reading(NamedTuple):
    score: float  # the log-odds that the passage answers, before calibration
    spans: tuple[AnswerSpan, ...]
    short: AnswerSpan | None = None  # the words inside the spans that are the short answer; None if there are no spans
    yes: float = 0.0  # the log-odds that the answer is yes, for yes-no questions in a benchmark's wording


class QuestionKind(NamedTuple):
    """A kind of question: its wording in a benchmark, and the log-odds that a training document answers it."""

    asks: str = ""
    usual: float = 0.0
    number: int = -1  # the kind's number among the known kinds; -1 = no known kind
    clause: bool = False  # whether the question asks for a clause, whose existence answers yes


class Kinds:
    """Finds the kind of a question by its vector: with the kind's known wording, the reader's answers are better."""

    def __init__(self) -> None:
        arrays, record = read_lowrank(KINDS), read_record(KINDS)
        self._weight, self._bias = arrays["weight"], arrays["bias"]
        self._spots = [arrays[f"spots.{name}"] for name in ("weight", "bias", "slope", "offset")]
        each = enumerate(record["kinds"].items())
        self._kinds = [
            QuestionKind(asks, record["usual"][name], number, name.startswith("cuad/")) for number, (name, asks) in each
        ]
        self._wordings = {kind.asks.lower(): kind for kind in self._kinds}
        self._least: float = record["least"]

    def of(self, question: str, vector: npt.NDArray[np.float32]) -> QuestionKind:
        """Return the kind of a question, such as "governing law"; if no kind is likely enough, return an empty kind."""
        if (known := self._wordings.get(question.strip().lower())) is not None:
            return known
        odds = self._weight @ vector + self._bias
        likely = np.exp(odds - odds.max())
        best = int(odds.argmax())
        return self._kinds[best] if likely[best] >= self._least * likely.sum() else QuestionKind()

    def answers(self, kind: QuestionKind, passages: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return, from the passages' vectors, the log-odds that each passage answers a question of this kind."""
        weight, bias, *_ = (array[kind.number] for array in self._spots)
        odds: npt.NDArray[np.float32] = passages @ weight + bias
        return odds

    def together(self, kind: QuestionKind, odds: npt.NDArray[np.float32]) -> float:
        slope, offset = (float(array[kind.number]) for array in self._spots[2:])
        return slope * float(np.logaddexp.reduce(np.sort(odds)[-FEW:])) + offset


class Reader(PairModel):
    def __init__(self, variant: str | None = None) -> None:
        network = open_lowrank("legal-reader", WEIGHTS)
        super().__init__(network, choose_variant("reader", "legal", variant), CALIBRATION)

    def read(self, question: str, passages: Sequence[str], hint: str = "") -> list[Reading]:
        pairs = self.tokenise(f"{question} | {hint}" if hint and hint != question else question, passages)
        with ThreadPoolExecutor(self.threads) as pool:
            return list(pool.map(self._read, pairs))

    def confidence(
        self,
        scores: Sequence[float],
        *,
        found: float | None = None,
        spot: float | None = None,
        usual: float = 0.0,
        also: Sequence[Also] = (),
    ) -> float:
        calibration = self._calibration
        curve = calibration["alone" if found is None else "together"]
        if spot is not None:
            curve = calibration["spotted"][min(len(scores), len(calibration["spotted"]) - 1)]
        odds = curve["offset"] + curve.get("spot", 0.0) * (spot or 0.0)
        odds += sum(self._calibration[kind]["offset"] for kind in also)
        if scores:
            score = SEVERAL * float(np.logaddexp.reduce(np.array(scores) / SEVERAL)) + USUAL * usual
            odds += curve["reader"] * score
        if found is not None:
            sure = min(max(found, 1e-6), 1 - 1e-6)
            odds += curve["reranker"] * math.log(sure / (1 - sure))
        return 1 / (1 + math.exp(-odds))

    def _read(self, pair: Pair) -> Reading:
        scores, verdicts, tokens = self._session.run([SCORES, VERDICTS, TOKENS], {"ids": pair.ids, "types": pair.types})
        offsets = pair.offsets
        read = tokens[0, -1 - len(offsets) : -1]

        def locate(first: int, last: int, inside: Numbers) -> AnswerSpan:
            return AnswerSpan(offsets[first][0], offsets[last - 1][1], float(inside[first:last].mean()))

        ranges = decode(read[:, :3], lean=LEAN)
        short = best_range(read[:, 3:], ranges)
        value = locate(*short, read[:, 3]) if short else None
        spans = tuple(locate(*tokens, read[:, 0]) for tokens in ranges)
        return Reading(float(scores[0, 0]), spans, value, float(verdicts[0, 0]))


shared_reader = cache(Reader)
shared_kinds = cache(Kinds)


@cache
def shared_verdicts() -> LegalReranker:
    """Return the model whose score of a yes-no question and a clause is the log-odds that the answer is yes."""
    return LegalReranker("int8", open_lowrank("legal-verdicts", YES_OR_NO))


def best_range(tokens: Numbers, within: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    best: tuple[float, tuple[int, int]] | None = None
    for low, high in within:
        begun, start = -np.inf, low
        for at in range(low, high):
            inside, begins, ends = tokens[at].tolist()
            if begins >= begun:
                begun, start = begins, at
            begun += inside
            if best is None or begun + ends > best[0]:
                best = (begun + ends, (start, at + 1))
    return best[1] if best else None


def decode(tokens: Numbers, *, lean: float = 0.0) -> list[tuple[int, int]]:
    out, within, closing = 0.0, -np.inf, -np.inf
    # for each token: whether the best path that is outside a span left one there, and the best path inside entered one
    steps: list[tuple[bool, bool]] = []
    for inside, begins, ends in tokens.tolist():
        leaves, enters = closing > out, out + begins > within
        out, within = max(out, closing), max(out + begins, within) + inside + lean
        closing = within + ends
        steps.append((leaves, enters))
    spans: list[tuple[int, int]] = []
    end = len(steps) if closing > out else 0
    for at in range(len(steps) - 1, -1, -1):
        leaves, enters = steps[at]
        if end and enters:
            spans.append((at, end))
            end = 0
        elif not end and leaves:
            end = at
    return spans[::-1]
