"""Questions with candidate passages and the scores that a teacher gives to them, from which students learn.

Besides the questions of the pack, there are two more kinds. A heading is used as a question that the passages below it
answer. A question is also asked about another document: nobody knows whether that document answers it, so that the
students learn only the teacher's scores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as f
from torch import Tensor

from training.measure import Ground
from training.network import Encoder, Judge, Texts
from training.pack import Ints, Pack, Random, list_rows, list_wordings

FIRST, FURTHER = 28, 8
"""The numbers of candidates of a question: the embedder's first passages, and random others of the document."""
MAX_GOLD = 6  # most candidates that are known to answer
OWN = 0.3  # the share of questions in the words of their benchmark
# least questions of a benchmark: its rows are used in several wordings until this number is reached
LEAST_QUESTIONS = 6000
MAX_WORDINGS = 10  # most wordings of one row
MIN_PASSAGES = 12  # least passages of another document about which a question is asked

TEMPERATURE = 0.05  # the temperature of the embedder's cosines

Scores = npt.NDArray[np.float32]
Losses = Iterator[Tensor]
"""The loss of each step, computed when the iterator advances."""


@dataclass
class Question:
    """A question in one wording about one document."""

    query: int
    document: int
    row: int = -1
    """The question's row in the pack; -1 if nobody knows whether the document answers."""
    gold: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The passages that are known to answer."""
    barred: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The passages that are not candidates: they contain some of the gold, or are beside it."""
    passages: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The candidates, those with gold first."""
    scores: Scores = field(default_factory=lambda: np.zeros(0, np.float32))
    """The teacher's score of each candidate: the log-odds that it answers."""


def list_questions(pack: Pack, random: Random, *, others: float, headings: float) -> list[Question]:
    """Return the questions about the documents for training.

    For each row of the pack, `others` questions about other documents and `headings` headings are added, on average.
    """
    rows = list_rows(pack)
    counts = Counter(pack.documents[row.document]["source"] for row in rows)
    own, wordings = list_wordings(pack, "own"), list_wordings(pack, "own", "train")
    asked = []
    for row in rows:
        wanted = round(LEAST_QUESTIONS / counts[pack.documents[row.document]["source"]])
        for _ in range(min(max(wanted, 1), MAX_WORDINGS) if row.kind >= 0 else 1):
            query = row.query
            if row.kind >= 0:
                query = int(random.choice((own if random.random() < OWN else wordings)[row.kind]))
            gold = random.permutation(row.answers)[:MAX_GOLD]
            asked.append(Question(query, row.document, row.number, gold, row.barred))
    sizes = np.bincount(pack.passages[:, 0], minlength=len(pack.documents))
    documents = [number for number in sorted({row.document for row in rows}) if sizes[number] >= MIN_PASSAGES]
    moved = random.integers(len(asked), size=int(others * len(rows)))
    asked += [Question(asked[at].query, int(random.choice(documents))) for at in moved if len(documents)]
    trained = np.isin(pack.passages[pack.headings[:, 1], 0], pack.documents_of("train"))
    below_headings = pack.headings[trained]
    shown = random.integers(len(below_headings), size=int(headings * len(rows)) if len(below_headings) else 0)
    for key, passage in below_headings[shown].tolist():
        document = int(pack.passages[passage, 0])
        span = pack.passages_of(document)
        below = span.start + np.flatnonzero(pack.passages[span, 4] == key)
        asked.append(Question(key, document, gold=random.permutation(below)[:MAX_GOLD]))
    return asked


def add_candidates(
    questions: Sequence[Question], pack: Pack, passages: Tensor, queries: Tensor, random: Random
) -> None:
    """Choose each question's candidates: its gold, the passages that an embedder ranks first, and random passages."""
    by_document: dict[int, list[Question]] = defaultdict(list)
    for question in questions:
        by_document[question.document].append(question)
    for document, members in by_document.items():
        span = pack.passages_of(document)
        near = queries[[question.query for question in members]] @ passages[span].T
        best = near.topk(min(FIRST, near.shape[1])).indices.cpu().numpy() + span.start
        for question, first in zip(members, best, strict=True):
            further = np.concatenate([first, random.integers(span.start, span.stop, size=FURTHER)])
            question.passages = _unite(question.gold, further[~np.isin(further, question.barred)])


def _unite(*parts: Ints) -> Ints:
    """Return the numbers of several lists without repetitions, in the order of their first occurrence."""
    joined = np.concatenate(parts)
    _, order = np.unique(joined, return_index=True)
    return np.asarray(joined[np.sort(order)], np.int64)


def grade(teacher: Judge, texts: Texts, questions: Sequence[Question], pack: Pack) -> None:
    """Give the candidates of each question the teacher's scores."""
    device = texts.ids.device
    asked = pack.queries[[question.query for question in questions], 0]
    sizes = [len(question.passages) for question in questions]
    pairs = np.stack([np.repeat(asked, sizes), np.concatenate([q.passages for q in questions])])
    with torch.no_grad():
        scores = teacher.score(texts, *torch.from_numpy(pairs).to(device)).float().cpu().numpy()
    for question, some in zip(questions, np.split(scores, np.cumsum(sizes)[:-1]), strict=True):
        question.scores = some


# ---------------------------------------------------------------- batches for a student that reads pairs


@dataclass(frozen=True)
class Graded:
    """Questions with the same number of passages each, as tensors with a row for each question."""

    questions: list[Question]
    passages: Ints
    """The passages' numbers in the pack."""
    answers: npt.NDArray[np.bool_]
    """Whether each passage is known to answer."""
    scores: Tensor
    gold: Tensor
    """`answers` as numbers: 1 for a passage that is known to answer, else 0."""
    known: Tensor
    """1 if it is known whether the document answers the question, else 0."""


def draw_passages(question: Question, count: int, random: Random) -> Ints:
    """Return the indexes of some candidates of a question: some with gold, some with high scores, and random others."""
    gold = random.permutation(min(len(question.gold), len(question.passages)))[: max(1, count // 6)]
    likely = np.argsort(-question.scores)[: count // 3]
    others = random.permutation(len(question.passages))
    return _unite(gold, likely, others)[:count]


def make_batches(
    questions: Sequence[Question], random: Random, *, size: int, count: int, device: torch.device
) -> Iterator[Graded]:
    """Yield batches of `size` questions, each with `count` passages, in random order, without end."""
    fit = [question for question in questions if len(question.passages) >= count]
    while True:
        order = random.permutation(len(fit))
        for start in range(0, len(order) - size + 1, size) or (0,):
            some = [fit[at] for at in order[start : start + size]]
            drawn = [(question, draw_passages(question, count, random)) for question in some]
            scores = np.stack([question.scores[at] for question, at in drawn])
            gold = np.stack([at < len(question.gold) for question, at in drawn])
            yield Graded(
                some,
                np.stack([question.passages[at] for question, at in drawn]),
                gold,
                torch.from_numpy(scores).to(device),
                torch.from_numpy(gold.astype(np.float32)).to(device),
                torch.tensor([float(q.row >= 0) for q in some], device=device),
            )


@dataclass(frozen=True)
class Weights:
    """The weight of each part of a student's loss."""

    gold: float = 0.3
    """The weight of the known answers in the target order of passages; the teacher's scores have the rest."""
    truth: float = 0.5
    """The weight of the known answers in the target of each single score."""
    sure: float = 1.0
    """The weight of the loss on each score as a yes or no; the loss on the order of passages has weight 1."""
    exists: float = 0.5
    """The weight of the loss on a question's best score, which shows whether there is an answer at all."""
    doubtful: float = 0.3
    """The weight of questions whose passages are all wrong according to the teacher: their order matters little."""


def compute_taught_loss(scores: Tensor, batch: Graded, weights: Weights) -> Tensor:
    """Return the loss of a student's scores (a row per question) against the teacher's scores and the known answers."""
    answered = batch.gold.amax(1)
    order = mix_gold(f.softmax(batch.scores, dim=1), batch.gold, weights.gold)
    likely = torch.sigmoid(batch.scores.amax(1))
    worth = torch.maximum(answered, weights.doubtful + (1 - weights.doubtful) * likely)
    ordered = (-(order * f.log_softmax(scores, dim=1)).sum(1) * worth).mean()
    share = weights.truth * torch.maximum(batch.known[:, None], batch.gold)
    right = (1 - share) * torch.sigmoid(batch.scores) + share * batch.gold
    single = f.binary_cross_entropy_with_logits(scores, right)
    whole = f.binary_cross_entropy_with_logits(scores.logsumexp(1), answered, reduction="none")
    exists = (whole * batch.known).sum() / batch.known.sum().clamp(min=1)
    return ordered + weights.sure * single + weights.exists * exists


def teach_judge(judge: Judge, ground: Ground, batches: Iterator[Graded], weights: Weights) -> Losses:
    """Yield the losses of the teacher or the reranker, which read a question and a passage together."""
    for batch in batches:
        asked = ground.pack.queries[[question.query for question in batch.questions], 0]
        questions = torch.from_numpy(np.repeat(asked, batch.passages.shape[1])).to(ground.device)
        passages = torch.from_numpy(batch.passages.reshape(-1)).to(ground.device)
        scores = judge.score(ground.texts, questions, passages).view(batch.passages.shape)
        yield compute_taught_loss(scores, batch, weights)


def mix_gold(order: Tensor, gold: Tensor, share: float) -> Tensor:
    """Return probabilities of passages; known answers, if there are any, get the probability `share` in total."""
    count = gold.sum(1, keepdim=True)
    held = share * (count > 0).float()
    return (1 - held) * order + held * gold / count.clamp(min=1)


# ---------------------------------------------------------------- batches for a student that embeds


@dataclass(frozen=True)
class Page:
    """Questions about one document with all their candidates, each of which is embedded only once."""

    questions: list[Question]
    passages: Ints
    target: Scores
    """The probability that each passage (column) answers each question (row)."""
    worth: Scores
    """The weight of each question."""


def make_pages(questions: Sequence[Question], random: Random, *, size: int, gold: float) -> list[Page]:
    """Return all questions in random order, as `Page` objects with up to `size` questions about one document each.

    Passages that are not candidates of a question, because the embedder ranks them low, have probability 0.
    """
    by_document: dict[int, list[Question]] = defaultdict(list)
    for at in random.permutation(len(questions)):
        by_document[questions[at].document].append(questions[at])
    pages = []
    for members in by_document.values():
        for start in range(0, len(members), size):
            some = members[start : start + size]
            passages = np.unique(np.concatenate([question.passages for question in some]))
            target = np.zeros((len(some), len(passages)), np.float32)
            worth = np.ones(len(some), np.float32)
            for at, question in enumerate(some):
                likely = np.exp(question.scores - question.scores.max())
                likely /= likely.sum()
                if len(question.gold):
                    likely *= 1 - gold
                    likely[: len(question.gold)] += gold / len(question.gold)
                else:
                    worth[at] = 0.3 + 0.7 / (1 + np.exp(-question.scores.max()))
                target[at, np.searchsorted(passages, question.passages)] = likely
            pages.append(Page(some, passages, target, worth))
    return [pages[at] for at in random.permutation(len(pages))]


_DRAWN = {4: 4, 3: 4, 2: 3, 1: 5, 0: 8}
"""The number of clauses of each grade that are drawn with a query."""
_QUERIES = 3  # the number of queries of the library in a step
_GAIN = {4: 4.0, 3: 3.0, 2: 1.0}
"""The target weight of a clause by its grade; a clause of grade 1 or 0 has none."""


class Library:
    """The training queries of a clause library (ACORD): each query has clauses with grades from lawyers."""

    def __init__(self, pack: Pack) -> None:
        self.pack = pack
        by: dict[int, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for query, document, grade in pack.grades.tolist():
            by[query][grade].append(document)
        self.graded = {query: grades for query, grades in by.items() if any(grade >= 2 for grade in grades)}
        self.words = {query: [query] for query in self.graded}
        """Each query with its other wordings."""
        for query, other in pack.also.tolist():
            if query in self.words:
                self.words[query].append(other)

    def compute_loss(self, encoder: Encoder, texts: Texts, random: Random, merged: Mapping[str, Tensor]) -> Tensor:
        """Return the cross-entropy of the clauses' scores, as a mean over some queries."""
        pack, device, losses = self.pack, texts.ids.device, []
        for query in random.choice(list(self.graded), size=min(_QUERIES, len(self.graded)), replace=False).tolist():
            clauses: list[int] = []
            gains: list[float] = []
            for grade, graded in self.graded[query].items():
                some = random.choice(graded, size=min(_DRAWN[grade], len(graded)), replace=False).tolist()
                clauses += some
                gains += [_GAIN.get(grade, 0.0)] * len(some)
            spans = [pack.passages_of(clause) for clause in clauses]
            passages = np.concatenate([np.arange(span.start, span.stop) for span in spans])
            owners = torch.from_numpy(np.repeat(np.arange(len(spans)), [s.stop - s.start for s in spans])).to(device)
            vectors = encoder.embed(texts, torch.from_numpy(passages).to(device), merged=merged)
            text = torch.tensor([pack.queries[random.choice(self.words[query]), 0]], device=device)
            near = vectors @ encoder.embed(texts, text, merged=merged)[0]
            best = near.new_full((len(clauses),), -1.0).scatter_reduce(0, owners, near, "amax") / TEMPERATURE
            shares = torch.tensor(gains, device=device) / sum(gains)
            losses.append(-(shares * torch.log_softmax(best, dim=0)).sum())
        return torch.stack(losses).mean()


def teach_embedder(
    encoder: Encoder, ground: Ground, questions: Sequence[Question], size: int, gold: float, random: Random
) -> Losses:
    """Yield the losses of the embedder on the candidates of documents' questions and on the clauses of the library."""
    library = Library(ground.pack)
    while True:
        some: list[Page] = []
        for page in make_pages(questions, random, size=16, gold=gold):
            some.append(page)
            if sum(len(page.questions) for page in some) >= size:
                yield _compare(encoder, ground, some, library, random)
                some = []
        if some:
            yield _compare(encoder, ground, some, library, random)


def _compare(encoder: Encoder, ground: Ground, pages: Sequence[Page], library: Library, random: Random) -> Tensor:
    pack, device, merged = ground.pack, ground.device, encoder.merged()
    numbers = np.concatenate([page.passages for page in pages])
    asked = pack.queries[[question.query for page in pages for question in page.questions], 0]
    vectors = encoder.embed(ground.texts, torch.from_numpy(numbers).to(device), merged=merged)
    queries = encoder.embed(ground.texts, torch.from_numpy(asked).to(device), merged=merged)
    losses, row, column = [], 0, 0
    for page in pages:
        near = queries[row : row + len(page.questions)] @ vectors[column : column + len(page.passages)].T / TEMPERATURE
        target = torch.from_numpy(page.target).to(device)
        losses.append(-(target * f.log_softmax(near, dim=1)).sum(1) * torch.from_numpy(page.worth).to(device))
        row, column = row + len(page.questions), column + len(page.passages)
    loss = torch.cat(losses).mean()
    if library.graded:
        loss = loss + 0.5 * library.compute_loss(encoder, ground.texts, random, merged)
    return loss
