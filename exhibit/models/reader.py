"""The extractive reader: a model that finds the exact words of passages that answer a question, or none.

It is MiniLM with low-rank weights of 2.7 MB, added to those of the reranker `legal`, and three heads. The
first head gives the log-odds that a passage answers. The second gives the log-odds that the answer is yes.
The third gives, for each token, the log-odds that the token is inside the quote that answers, begins it or
ends it, and the same for the short answer in the quote. bench/results/models.md names the training data.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from exhibit.models.embedders.minilm import choose_variant
from exhibit.models.minilm_graph import SCORES, TOKENS, VERDICTS
from exhibit.models.network import Network, merge, read_lowrank, read_record
from exhibit.models.rerankers.legal import Pair, PairModel
from exhibit.models.rerankers.legal import load_network as reranker

WEIGHTS = Path(__file__).parent / "weights" / "reader.safetensors"
CALIBRATION = WEIGHTS.with_name("confidence.json")
KINDS = WEIGHTS.with_name("kinds.safetensors")
EMBEDDER = "legal-"
"""The prefix of the names of embedders whose vectors distinguish kinds of questions."""
LEAN = 1.0
"""The log-odds that are added to each token's output of the network.

Measured on CUAD's 20 documents for tuning, with weights that were not trained on them, without refusals: -1, 0, 1 and 2
give span F1 0.63, 0.70, 0.70 and 0.70 for questions in CUAD's words, and 0.49, 0.56, 0.59 and 0.57 in other words.
"""


SEVERAL = 2.0
"""The temperature of a soft maximum over the scores of several passages.

Measured on the documents for tuning, at the threshold that refuses 0.15 of the answerable questions: 0 (the best
passage alone), 1, 2 and 3 refuse 0.71, 0.73, 0.74 and 0.74 of CUAD's unanswerable questions in free words, and 0.76,
0.79, 0.83 and 0.84 of ContractNLI's in its own words.
"""
USUAL = 0.4
"""The weight of the prior log-odds of a kind of clause, beside the reader's score.

At 0, 0.2, 0.4 and 0.6, CUAD's share of refusals (see SEVERAL) is 0.74, 0.76, 0.77 and 0.77, ContractNLI's 0.83, 0.83,
0.86 and 0.83.
"""
FEW = 3
"""The number of passages whose vectors decide together whether a document answers.

On the documents for tuning, 3 passages and all passages have AUROC 0.945 and 0.938 (CUAD), 0.940 and 0.933
(ContractNLI).
"""
Also = Literal["short", "whole", "policy"]
Numbers = npt.NDArray[np.floating]


class AnswerSpan(NamedTuple):
    """A character span that answers the question, as half-open offsets in a passage.

    `sure` is the mean, over the span's tokens, of the log-odds that a token is part of the answer.
    """

    start: int
    end: int
    sure: float


class Reading(NamedTuple):
    """The output of the extractive reader (a model) for one question and one passage.

    It has the spans that answer, the short answer in these spans, and two log-odds: that the passage answers
    the question, and that the answer is yes.
    """

    score: float
    """The log-odds that the passage answers, before calibration."""
    spans: tuple[AnswerSpan, ...]
    short: AnswerSpan | None = None
    """The words inside the spans that are the short answer; None if there are no spans."""
    yes: float = 0.0
    """The log-odds that the answer to a yes-or-no question is yes."""


class QuestionKind(NamedTuple):
    """A kind of question: its wording in a benchmark, and how often documents of the training data answer it.

    `usual` is this frequency in log-odds.
    """

    asks: str = ""
    usual: float = 0.0
    number: int = -1
    """The kind's number among the known kinds; -1 = no known kind."""
    clause: bool = False
    """Whether the question asks for a kind of clause: then a document with such a clause answers yes."""


def network() -> Network:
    """Return the reader's network: the reranker's weights plus the reader's own weights and heads."""
    name = f"legal-reader-{read_record(WEIGHTS)['sha256'][:8]}"

    def merged() -> dict[str, npt.NDArray[np.float32]]:
        low = read_lowrank(WEIGHTS)
        heads = {name: array for name, array in low.items() if name.startswith(("head.", "says.", "spans."))}
        return {**merge(reranker().weights(), low, strength=1.0), **heads}

    return Network(name, f"{name}-", merged)


@lru_cache(maxsize=1)
def shared_reader() -> "Reader":
    """Return the extractive question-answering model of this process; it is loaded at the first call."""
    return Reader()


class Kinds:
    """Classifies a question's vector as one of the kinds of questions on which the reader was trained.

    The reader reads an unfamiliar wording better if the training data's wording for the same kind of question
    is added (bench/results/models.md). The vector of a passage also shows which kinds of questions it answers.
    All vectors must be those of the embedder `legal`.
    """

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
        """Return the kind of a question, such as "governing law"; an empty kind if no kind is likely enough.

        If the question is a known wording of a kind, that kind is returned. Otherwise a classifier decides from
        the question's vector.
        """
        if (known := self._wordings.get(question.strip().lower())) is not None:
            return known
        odds = self._weight @ vector + self._bias
        likely = np.exp(odds - odds.max())
        best = int(odds.argmax())
        return self._kinds[best] if likely[best] >= self._least * likely.sum() else QuestionKind()

    def answers(self, kind: QuestionKind, passages: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return, for each passage, the log-odds that it answers a question of this kind, computed from its vector."""
        weight, bias, *_ = (array[kind.number] for array in self._spots)
        odds: npt.NDArray[np.float32] = passages @ weight + bias
        return odds

    def together(self, kind: QuestionKind, odds: npt.NDArray[np.float32]) -> float:
        """Return the log-odds that a document answers a question of this kind.

        `odds` has the log-odds that each passage of the document answers. Only the highest few are used, because
        the many other passages of a long document add mostly noise.
        """
        slope, offset = (float(array[kind.number]) for array in self._spots[2:])
        return slope * float(np.logaddexp.reduce(np.sort(odds)[-FEW:])) + offset


@lru_cache(maxsize=1)
def shared_kinds() -> Kinds:
    """Return the classifier that finds the kind of a question; all code of this process shares it."""
    return Kinds()


class Reader(PairModel):
    """The reader model, which finds the spans of passages that answer a question.

    Each passage is run separately and without padding, so that its result does not depend on the other
    passages. Several passages run at the same time, in threads.
    """

    def __init__(self, variant: str | None = None) -> None:
        super().__init__(network(), choose_variant("reader", "legal", variant), CALIBRATION)

    def read(self, question: str, passages: Sequence[str], hint: str = "") -> list[Reading]:
        """Return, for each passage, the log-odds that it answers the question, and the spans that answer it.

        Question and passage together are cut to 256 tokens. `hint` is the same question in the wording of the
        training data; it is empty if no such wording is known.
        """
        pairs = self.tokenise(f"{question} | {hint}" if hint and hint != question else question, passages)
        if len(pairs) < 2:
            return list(map(self._read, pairs))
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
        """Return the calibrated probability that one of the passages answers the question: a logistic function.

        Args:
            scores: the reader's scores of the passages; it may be empty if `spot` is given.
            found: a reranker's confidence for the same question; None if there is none, or if `spot` is given.
            spot: the log-odds that the document answers, from the vectors of all its passages (`Kinds.together`).
                By default they are not used.
            usual: the prior log-odds of the question's kind.
            also: the cases that apply; each case shifts the log-odds. `policy`: the document is a privacy policy.
                `short`: the passages are the whole document, and the question is short. `whole`: the passages are
                the whole document, and the question is not short.
        """
        calibration = self._calibration
        curve = calibration["alone" if found is None else "together"]
        if spot is not None:
            curve = calibration["spotted"][min(len(scores), len(calibration["spotted"]) - 1)]
        odds = curve["offset"] + curve.get("spot", 0.0) * (spot or 0.0)
        odds += sum(self._calibration[one]["offset"] for one in also)
        if scores:
            score = SEVERAL * float(np.logaddexp.reduce(np.array(scores) / SEVERAL)) + USUAL * usual
            odds += curve["reader"] * score
        if found is not None:
            sure = min(max(found, 1e-6), 1 - 1e-6)
            odds += curve["reranker"] * math.log(sure / (1 - sure))
        return 1 / (1 + math.exp(-odds))

    def _read(self, pair: Pair) -> Reading:
        scores, verdicts, tokens = self._session.run([SCORES, VERDICTS, TOKENS], {"ids": pair.ids, "types": pair.types})
        places = pair.offsets
        read = tokens[0, -1 - len(places) : -1]
        ranges = decode(read[:, :3], lean=LEAN)
        spans = tuple(_answer_span(places, one, read[:, 0]) for one in ranges)
        short = best_range(read[:, 3:], ranges)
        value = _answer_span(places, short, read[:, 3]) if short else None
        return Reading(float(scores[0, 0]), spans, value, float(verdicts[0, 0]))


def _answer_span(places: Sequence[tuple[int, int]], tokens: tuple[int, int], inside: Numbers) -> AnswerSpan:
    first, last = tokens
    return AnswerSpan(places[first][0], places[last - 1][1], float(inside[first:last].mean()))


# ---------------------------------------------------------------- from tokens to answers


def best_range(tokens: Numbers, within: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
    """Return the range of tokens with the greatest score that is inside one of the given ranges.

    The range is half-open and has at least one token; it is scored as in `decode`. Return None if no range is
    given.
    """
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
    """Return the ranges of tokens that are most likely answers: several, one, or none.

    Each row of `tokens` has three log-odds of one token: that it is `inside` an answer, `begins` an answer, or
    `ends` an answer. The score of a range is the sum of `inside` over all its tokens, plus `begins` of its
    first token, plus `ends` of its last token. The half-open ranges with the greatest total score are returned.
    `lean` is added to `inside` of every token: a positive `lean` makes answers longer.
    """
    out, within, closing = 0.0, -np.inf, -np.inf
    steps: list[tuple[bool, bool]] = []
    """Whether the best path that is outside here was inside before, and the best path that is inside here was
    outside before.
    """
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
