"""A question with its truth and a system's reply: what every metric is computed from."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from exhibit.evidence import Span
from exhibit.law.refusals import is_refusal
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import How

Place = tuple[Span, ...]
"""Where a passage stands: several spans when it is interrupted."""


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """A passage that answers the question; any of its places will do."""

    filename: str | None
    text: str | None
    places: tuple[Place, ...] = ()
    """Empty when the source quotes no words, or they were not located."""
    pages: tuple[int, ...] = ()
    """The pages that it stands on, where the document has pages."""
    absent: bool = False
    """Whether its words were looked for in its document and are not there: no passage can be held against it."""
    how: How | None = None
    """How it was located; None where the source quotes no words."""
    ambiguous: bool = False
    """Whether it has few words that stand on many places, and nothing tells which is meant."""

    @property
    def located(self) -> bool:
        """Whether its place is known."""
        return (
            not self.ambiguous
            and self.filename is not None
            and any(span.start < span.end for place in self.places for span in place)
        )

    @property
    def worded(self) -> bool:
        """Whether passages can be held against it: its place is known, or its words are and nothing says they err."""
        return self.located or (not self.absent and not self.ambiguous and bool(self.text and self.text.strip()))


@dataclass(frozen=True)
class Passage:
    """A passage that a system retrieved, in the order of its ranking."""

    text: str = ""
    filename: str | None = None
    """The file of the corpus that it is from; None where that is not known."""
    span: Span | None = None
    score: float | None = None
    page: int | None = None
    """The page it begins on, where the document has pages."""
    told_page: int | None = None
    """The page that the system itself gives for it, right or wrong."""
    pages: tuple[int, ...] = ()
    """The pages that its words really stand on, where that is known."""
    told_box: tuple[float, ...] | None = None
    """Left, top, right and bottom that the system gives for it on that page, from the top left corner."""
    told_size: tuple[float, ...] | None = None
    """Width and height of the page that the box is measured on; None = in points."""
    box_overlap: float | None = None
    """How far that box is the one of its words: what they share over what they cover together."""
    told_filename: str | None = None
    """The name that the system gives for its file, empty where it gives none; None where that is `filename`."""
    told_provision: str = ""
    """The provision that the system names for it, `§ 535 BGB`: what has no words of its own is placed by it."""
    also_in: tuple[str, ...] = ()
    """The files that have its words, where several do and no name tells which: it is ambiguous."""
    more: tuple[Span, ...] = ()
    """Where its other pieces stand, when it is in pieces; `span` is the longest."""
    added: tuple[Span, ...] = ()
    """The ranges of its own text that no document has: a summary in front of it, a frame, a heading repeated."""
    misnamed: bool = False
    """Whether the system names another file of the corpus than the one that has its words."""
    unplaced: bool = False
    """Whether its words were looked for, and no place can be told: they stand nowhere, or everywhere."""

    @property
    def spans(self) -> tuple[Span, ...]:
        """Where its pieces stand; none where that is not known."""
        return () if self.span is None else (self.span, *self.more)

    @property
    def tells(self) -> bool:
        """Whether it is known what it holds: by its place, by its words, or as it is from elsewhere."""
        elsewhere = bool(self.told_filename) and self.filename is None
        return bool(self.span) or (bool(self.text.strip()) and (elsewhere or not self.unplaced))

    @property
    def source(self) -> str | None:
        """The file that its span counts in: its own, or, where it is ambiguous, the one with the same words as gold."""
        return self.filename or (self.also_in[0] if self.also_in and self.span else None)


class PlacedProvision(NamedTuple):
    """A provision that an answer cites: the file and the places of its text, where they are known."""

    label: str
    filename: str | None = None
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True)
class Reply:
    """What a system answered; `error` when it did not, and then nothing else counts."""

    answer: str | None = None
    passages: tuple[Passage, ...] = ()
    selected: int | None = None
    """How many of the passages the answer was made from, where that is known."""
    context: tuple[int, ...] | None = None
    """Which of the passages, counted from 1, where that is known; without it they are the first `selected`."""
    reranked: tuple[int, ...] | None = None
    """The passages, counted from 1, that the reranker kept, in its order; None where the system does not tell."""
    retrieved: tuple[Passage, ...] | None = None
    """What was retrieved before the reranker, where `passages` are what it made of them; None where they are the same.
    """
    cut_by: str = ""
    """What limits the context, where the system tells: `budget`, `number`, `threshold` or `confidence`."""
    seconds: float | None = None
    error: str = ""
    usage: dict[str, float] = field(default_factory=dict)
    """What it cost as the system tells: `tokens_in`, `tokens_out`, `cost`."""
    first_token: float | None = None
    """Seconds until the first words of a streamed answer."""
    confidence: float | None = None
    """How likely it is that an answer exists, from 0 to 1, where the system tells."""
    provisions: tuple[PlacedProvision, ...] = ()
    """The provisions that the answer cites, looked up in the documents."""

    def numbers_read(self, k: int) -> list[int]:
        """Return the numbers of the passages that the answer was made from; of the first k where it does not tell."""
        if self.context is not None:
            return [number for number in self.context if 1 <= number <= len(self.passages)]
        return list(range(1, min(k if self.selected is None else self.selected, len(self.passages)) + 1))

    def read(self, k: int) -> list[Passage]:
        """Return those passages."""
        return [self.passages[number - 1] for number in self.numbers_read(k)]


NO_REPLY = Reply()
"""What a question has before it is asked: one for all of them."""


class Turn(NamedTuple):
    """Something that was said earlier in a conversation."""

    role: str
    """`user` or `assistant`."""
    content: str


@dataclass(frozen=True, slots=True)
class Case:
    """One question of a dataset."""

    id: int | str
    question: str
    truth: str
    gold: tuple[GoldPassage, ...] = ()
    is_impossible: bool = False
    filename: str | None = None
    """The document it is about, if one is known."""
    labels: dict[str, Any] = field(default_factory=dict)
    reply: Reply = NO_REPLY
    history: tuple[Turn, ...] = ()
    """What was said before the question, where it is one of a conversation."""
    grades: dict[str, int] = field(default_factory=dict)
    """How well each file that was judged serves the question, 0 to 4; empty where the source has no grades."""
    choices: tuple[str, ...] = ()
    """The labels that the system is asked to choose from; empty where it is not."""
    label: str | None = None
    """The one that the source gives."""

    @property
    def document(self) -> str:
        """The document that it is about; one of its own where none is known."""
        return next(iter(self.ends), f"\0{self.id}")

    @property
    def ends(self) -> dict[str, int]:
        """The documents that it is about, and where the last gold in each ends."""
        ends = {self.filename: 0} if self.filename else {}
        for gold in self.gold:
            if gold.filename:
                spans = (span.end for place in gold.places for span in place)
                ends[gold.filename] = max([ends.get(gold.filename, 0), *spans])
        return ends

    @property
    def session(self) -> str | None:
        """The conversation that the question is a turn of, by the label `session`; None where it stands alone."""
        session = self.labels.get("session")
        return None if session is None else str(session)


Values = list[float | None]
"""One value a case; None where the metric does not apply, never 0."""
Metric = Callable[[Sequence[Case]], Values]


LABELS = "labels.json"
_MOST = 12
"""Choices of one question: a label with more says what a question is, and is no choice."""
_NOWHERE = re.compile(r"not ?(mentioned|found|stated)|none|unknown")
_YES, _NO = frozenset({"entailment", "yes", "true"}), frozenset({"contradiction", "no", "false"})
_ASKS_LIMIT = re.compile(r"\bnothing but\b|\bonly\b|\ball\b.*\bmust\b", re.I)
_ASKS_LEAVE = re.compile(r"\b(?:let|allow|permit)s?\b", re.I)
_LIMIT = re.compile(r"\b(?:only|solely|exclusively|marked|identified|designated|labell?ed|confirmed)\b", re.I)
_OPEN = re.compile(
    r"\bwhether or not\b|\bwithout limitation\b|\bincluding but not\b|\bneed not\b|\bregardless\b"
    r"|\b(?:any(?: and all)?|all) information\b",
    re.I,
)
_BAN = re.compile(
    r"\b(?:shall|may|must|will|agrees?|is) not\b"
    r"|\bnot (?:to )?(?:disclose|copy|retain|make|reproduce|keep|reveal|share)"
    r"|\bno copies\b|\bnor\b|\bwithout retaining\b|\ball copies\b|\bwithout\b[^.]{0,40}\bconsent\b",
    re.I,
)
_LEAVE = re.compile(
    r"\b(?:may|except|unless|other than|permitted|provided that|save|to those|who need|need to know)\b", re.I
)
_ABOUT = ("hypothesis", "deal_point")
"""Labels that a table of confusions is told apart by, where questions have one."""
_MARK = "\n\n"
"""Between a question and what it is asked for besides."""

Chosen = tuple[str, str, str]
"""What a question is about, its label, and the one that the reply chose, empty where it chose none."""


class Offer(NamedTuple):
    """What a question is asked for besides its answer."""

    choices: tuple[str, ...]
    label: str
    """The one that the source gives."""
    asked: str = ""
    """What the choice is about, where the label says."""


def offers_of(label: str, rows: Mapping[Any, Mapping[str, Any]], *, where: str) -> dict[Any, Offer]:
    """Return what each question that has a label may choose from: its values over all questions.

    A label may be several finer questions with what was ticked, as MAUD's is ("MAE applies to: Target; …"): then a
    question asks for the first of them that has several values.
    """
    labels = {id: str(row[label]) for id, row in rows.items() if row.get(label) is not None}
    finer = {
        id: [tuple(pair.split(": ", 1)) for pair in value.split("; ") if ": " in pair] for id, value in labels.items()
    }
    if not all(finer.values()) or not labels:
        finer = {id: [("", value)] for id, value in labels.items()}
    values: dict[str, set[str]] = {}
    for name, value in (pair for pairs in finer.values() for pair in pairs):
        values.setdefault(name, set()).add(value)
    offered = {}
    for id, pairs in finer.items():
        open_pairs = [pair for pair in pairs if 1 < len(values[pair[0]]) <= _MOST]
        if open_pairs:
            name, value = open_pairs[0]
            offered[id] = Offer(tuple(sorted(values[name])), value, name)
    if not offered:
        counts = ", ".join(str(len(one)) for one in values.values()) or "no"
        raise BundleError(f"{where}: --ask-label {label}: {counts} different values; 2 to {_MOST} can be chosen from")
    return offered


def with_choices(question: str, choices: Sequence[str], asked: str = "") -> str:
    """Return a question that asks for one of some labels."""
    begin = f"On {asked!r} begin" if asked else "Begin"
    return (
        f"{question}{_MARK}{begin} your reply with one of these labels: {'; '.join(choices)}." if choices else question
    )


def without_choices(case: Case) -> str:
    """Return a question as it was before a label was asked for: its words are what is searched for."""
    return case.question.partition(_MARK)[0] if case.choices else case.question


def find_chosen_label(answer: str, choices: Sequence[str]) -> str | None:
    """Return the label that a reply makes: the first that it names; a refusal is the one that says "not mentioned"."""
    text = _plain(answer)
    places = {choice: f" {text} ".find(f" {_plain(choice)} ") for choice in choices}
    named = [choice for choice in choices if places[choice] >= 0]
    if named:
        return min(named, key=lambda choice: places[choice])
    return _nothing(choices) if is_refusal(answer) else None


def choose(case: Case, passages: Sequence[str], score: Callable[[str, Sequence[str]], list[float]] | None) -> str:
    """Return the label that evidence alone makes, without a language model.

    A refusal is the label for what is not mentioned. Of yes and no, cues of the answer's own words decide
    (`contradicts`); of other labels the one that a reranker likes best or, without one, whose words stand there.
    """
    nothing, answer = _nothing(case.choices), case.reply.answer or ""
    if nothing and (is_refusal(answer) or not passages):
        return nothing
    rest = [choice for choice in case.choices if choice != nothing]
    yes, no = (next((choice for choice in rest if _plain(choice) in words), None) for words in (_YES, _NO))
    if yes and no and len(rest) == 2:
        return no if contradicts(without_choices(case), answer) else yes
    if score is not None and passages:
        best = {choice: max(score(f"{without_choices(case)} {choice}", passages)) for choice in rest}
    else:
        there = set(_plain(answer).split())
        best = {choice: len(there & set(_plain(choice).split())) / len(_plain(choice).split()) for choice in rest}
    return max(rest, key=lambda choice: best[choice])


def contradicts(question: str, evidence: str) -> bool:
    """Return whether evidence says no: no limit where a limit is asked for, or a ban where a permission is.

    On the experts' own evidence for 1,188 labels of ContractNLI's test split, which nothing was chosen on, it is right
    in 1,096; "yes" to all in 968.
    """
    if _ASKS_LIMIT.search(question):
        return bool(_OPEN.search(evidence)) or not _LIMIT.search(evidence)
    return bool(_ASKS_LEAVE.search(question) and _BAN.search(evidence) and not _LEAVE.search(evidence))


def _nothing(choices: Sequence[str]) -> str | None:
    return next((choice for choice in choices if _NOWHERE.fullmatch(_plain(choice))), None)


def _plain(text: str) -> str:
    """Return words in small letters: `NotMentioned` is `not mentioned`."""
    return " ".join(re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text))).lower()


def choices_made(cases: Iterable[Case]) -> list[Chosen]:
    """Return the label and the choice of each question that was asked for one and answered."""
    asked = (case for case in cases if case.choices and case.reply.answer is not None and not case.reply.error)
    return [
        (
            str(next((case.labels[name] for name in _ABOUT if case.labels.get(name)), "")),
            str(case.label),
            find_chosen_label(case.reply.answer or "", case.choices) or "",
        )
        for case in asked
    ]


def describe_choices(made: Sequence[Chosen]) -> dict[str, Any]:
    """Return accuracy, macro F1 and the table of confusions, by hypothesis where there are several."""
    pairs = Counter((label, choice) for _, label, choice in made)
    labels = sorted({label for _, label, _ in made})
    by: dict[str, dict[str, dict[str, int]]] = {}
    for about, label, choice in made:
        row = by.setdefault(about, {}).setdefault(label, {})
        row[choice or "none"] = row.get(choice or "none", 0) + 1
    return {
        "questions": len(made),
        "accuracy": sum(label == choice for _, label, choice in made) / len(made),
        "majority": max(Counter(label for _, label, _ in made).values()) / len(made),
        "macro_f1": sum(_f1(label, pairs) for label in labels) / len(labels),
        "confusion": by,
    }


def labels_in_words(name: str, rates: Mapping[str, Any]) -> str:
    """Return how far the labels of a dataset were right, in a line, beside what the commonest label alone gives."""
    return (
        f"{name}: {rates['questions']} labels: accuracy {rates['accuracy']:.3f}, macro F1 {rates['macro_f1']:.3f}; "
        f"always the commonest label: accuracy {rates['majority']:.3f}"
    )


def _f1(label: str, pairs: Counter[tuple[str, str]]) -> float:
    right = pairs[label, label]
    given = sum(count for (_, choice), count in pairs.items() if choice == label)
    true = sum(count for (own, _), count in pairs.items() if own == label)
    return 2 * right / (given + true) if given + true else 0.0
