"""Drafted questions, and those that rules make from a document's text: from a sentence or a section, the gold passage.

Some questions ask for a term that the document does not define; they are labelled as impossible to answer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from exhibit.converters import Label
from exhibit.evidence import Document, Span
from exhibit.law.names import tidy
from exhibit.law.profile import Profile
from exhibit.law.sentences import split_sentences
from exhibit.law.structure.tree import Section
from exhibit.law.values import ValueKind, find_values
from exhibit.storage.cache import key_of

Status = Literal["sure", "absent", "unsure"]  # the passages answer; the document has no answer; a person must decide

_FRAMES = (
    "According to the {title}, {lower}",
    "In the {title}: {question}",
    "{question} (the {title})",
    "Regarding the {title}, {lower}",
)  # Phrases by which people name a document


@dataclass(frozen=True)
class Draft:
    """A question about one document, with the passages that are proposed as its gold."""

    filename: str
    asks: str  # The question without the document's name; `{title}` marks the position of that name
    kind: str  # The source of the question: `playbook`, `definition`, `heading`, `parties`, `value` or `llm`
    status: Status
    name: str  # The topic of the question, such as the name of the playbook's question, the term or the heading
    spans: tuple[Span, ...]  # The spans of the passages in the document's text; empty if no passage answers
    confidence: float = 1.0  # The probability that the passages answer; without passages, the probability of an absence
    labels: dict[str, Label] = field(default_factory=dict)
    words: tuple[str, ...] = ()  # The texts of the passages; empty until the drafts of a document are complete

    @property
    def key(self) -> str:
        """The draft's identity, the same in every run: a hash of its document, its source and its topic."""
        return digest(self.filename, self.kind, self.name)


def digest(*words: str) -> str:
    return key_of(*words).hex()[:16]


def pick(options: Sequence[str], *seed: str) -> str:
    """Return one of several wordings, always the same for a seed."""
    return options[int(digest(*seed), 16) % len(options)]


def word_question(draft: Draft, title: str) -> str:
    if "{title}" in draft.asks:
        return draft.asks.replace("{title}", title)
    lower = draft.asks[0].lower() + draft.asks[1:]
    return pick(_FRAMES, draft.key, "frame").format(title=title, question=draft.asks, lower=lower)


_MIN_PASSAGE_CHARS, _MAX_PASSAGE_CHARS = 60, 1500  # characters of a gold passage: from a sentence to half a page
MAX_QUESTIONS_OF_KIND = 3  # most questions of one kind about a document, so that no document dominates a metric

_DEFINED = re.compile(
    r"[“\"]([A-Z][\w&’'/ -]{1,48}?)[”\"](?:\s*\([^()\n]{1,60}\))?\s+(?:shall\s+)?(?:means?|refers? to)\b"
)
_LABEL = re.compile(
    r"^\W*(?:(?:section|clause|article|part)\s+)?(?:[\divxlc]{1,6}(?:\.\d+)*[.):]*|\(?[a-z]\)|[a-z]\.)\s+",
    re.IGNORECASE,
)
# sections about which no question is made
_NO_TERMS = frozenset({"recitals", "signature", "document", "title", "agreement"})
# terms that agreements often define; a document without the term cannot answer a question about it
_TERMS = (
    "Affiliate", "Agreed Form", "Applicable Law", "Background IP", "Base Rate", "Business Day", "Change of Control",
    "Completion Accounts", "Confidential Information", "Control", "Deliverables", "Disclosure Letter", "Encumbrance",
    "Escrow Agent", "Event of Default", "Excluded Liabilities", "Fiscal Quarter", "Force Majeure Event",
    "Good Industry Practice", "Indemnified Party", "Initial Term", "Intellectual Property Rights", "Key Personnel",
    "Knowledge", "Losses", "Material Adverse Effect", "Net Sales", "Permitted Assigns", "Personal Data",
    "Product Recall", "Reference Price", "Renewal Term", "Service Credits", "Specifications", "Subcontractor",
    "Territory", "Trade Marks", "Working Capital",
)  # fmt: skip

Topics = Iterator[tuple[str, tuple[Span, ...]]]  # The topics of questions, each with the passages that answer
WORDINGS = {
    "definition": (
        "What does “{name}” mean?",
        "How is the term “{name}” defined?",
        "What is the definition of “{name}” in the {{title}}?",
    ),
    "heading": (
        "What does it say under the heading “{name}”?",
        "What are the terms on {name}?",
        "What does the {{title}} provide in the part headed “{name}”?",
    ),
    "parties": ("Who are the parties?", "Between whom was it made?"),
}
VALUE_WORDINGS: dict[ValueKind, str] = {
    "amount": "What is the sum of {name} for?",
    "period": "What is the period of {name} for?",
    "date": "Why does {name} matter?",
    "percentage": "What does the figure of {name} apply to?",
}


def construct_questions(document: Document, root: Section, profile: Profile) -> list[Draft]:
    """Return questions that rules make from a document's text, at most a few of each kind."""
    filename, text = document.filename, document.text
    sentences = split_sentences(text)
    sources = (
        ("definition", _find_definitions(text, sentences)),
        ("heading", _find_headings(text, root)),
        ("parties", _find_parties(text, sentences, profile)),
        ("definition", _find_absent_terms(text)),
    )
    drafts = []
    for kind, topics in sources:
        drafts += _choose_few(_make_draft(filename, kind, name, spans) for name, spans in topics)
    # letters and notes have none of these; ask about their values
    return drafts or _choose_few(_draft_on_values(filename, text, sentences))


def _make_draft(filename: str, kind: str, name: str, spans: tuple[Span, ...]) -> Draft:
    asks = pick(WORDINGS[kind], filename, kind, name).format(name=name)
    return Draft(filename, asks, kind, "sure" if spans else "absent", name, spans)


def _choose_few(drafts: Iterable[Draft]) -> list[Draft]:
    return sorted(drafts, key=lambda draft: digest(draft.key, "few"))[:MAX_QUESTIONS_OF_KIND]


def _find_absent_terms(text: str) -> Topics:
    folded = " ".join(text.casefold().split())
    if _DEFINED.search(text):  # in a document without any definition, the absence would be too easy to recognise
        yield from ((term, ()) for term in _TERMS if term.casefold() not in folded)


def _find_definitions(text: str, sentences: list[Span]) -> Topics:
    matches = list(_DEFINED.finditer(text))
    times = Counter(match[1].casefold() for match in matches)
    for match in matches:
        span = _find_sentence(sentences, match.start())
        if span and times[match[1].casefold()] == 1 and _has_good_length(span) and match.end() <= span.end:
            yield " ".join(match[1].split()), (Span(match.start(), span.end),)


def _find_headings(text: str, root: Section) -> Topics:
    leaves = [s for s in root.walk() if s.heading and not s.children and s.kind not in _NO_TERMS]
    titles = Counter(_format_title(section.heading).casefold() for section in leaves)
    for section in leaves:
        name, span = _format_title(section.heading), section.span.trim(text)
        words = len(re.findall(r"[A-Za-z]{3,}", name))
        if 1 <= words <= 8 and len(name) < 70 and titles[name.casefold()] == 1 and _has_good_length(span):
            yield name, (span,)


def _find_parties(text: str, sentences: list[Span], profile: Profile) -> Topics:
    places = [span for name in profile.parties if (span := _find_sentence(sentences, text.find(name)))]
    if len(places) == len(profile.parties) >= 2 and all(map(_has_good_length, places)):
        yield "parties", tuple(dict.fromkeys(places))


def _draft_on_values(filename: str, text: str, sentences: list[Span]) -> Iterator[Draft]:
    """Yield a question on each amount, period, date or percentage that exactly one sentence states."""
    for value in find_values(text):
        span = _find_sentence(sentences, value.span.start)
        if span and _has_good_length(span) and value.kind in VALUE_WORDINGS and text.count(value.text) == 1:
            name = " ".join(value.text.split())
            yield Draft(filename, VALUE_WORDINGS[value.kind].format(name=name), "value", "sure", name, (span,))


def _find_sentence(spans: list[Span], at: int) -> Span | None:
    return next((span for span in spans if span.start <= at < span.end), None)


def _format_title(heading: str) -> str:
    return tidy(_LABEL.sub("", " ".join(heading.split())).strip(" .:-–—§"))


def _has_good_length(span: Span) -> bool:
    return _MIN_PASSAGE_CHARS <= span.end - span.start <= _MAX_PASSAGE_CHARS
