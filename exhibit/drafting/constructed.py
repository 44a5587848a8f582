"""Makes questions from a document's own text by rules, without a language model.

Each question is made from a sentence or a section, which is its gold passage. Some questions ask for a term that the
document does not define; they are labelled as impossible to answer.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from exhibit.drafting.drafts import Draft, digest, pick
from exhibit.evidence import Document, Span
from exhibit.law.names import tidy
from exhibit.law.profile import Profile
from exhibit.law.sentences import split_sentences
from exhibit.law.structure.tree import Section
from exhibit.law.values import find_values

_SHORTEST, _LONGEST = 60, 1500  # characters of a gold passage: from a sentence to half a page
MOST = 3  # most questions of one kind about a document, so that no document dominates a metric

_DEFINED = re.compile(
    r"[“\"]([A-Z][\w&’'/ -]{1,48}?)[”\"](?:\s*\([^()\n]{1,60}\))?\s+(?:shall\s+)?(?:means?|refers? to)\b"
)
_CITED = re.compile(r"\b(?:Section|Clause|Article|Paragraph|section|clause|paragraph) (\d{1,3}(?:\.\d{1,3}){0,3})\b")
_NUMBERED = re.compile(
    r"^\W*(?:(?:section|clause|article|paragraph)\s+)?(\d{1,3}(?:\.\d{1,3}){0,3})\.?(?=\s|$)", re.IGNORECASE
)
_LABEL = re.compile(
    r"^\W*(?:(?:section|clause|article|part)\s+)?(?:[\divxlc]{1,6}(?:\.\d+)*[.):]*|\(?[a-z]\)|[a-z]\.)\s+",
    re.IGNORECASE,
)
_NO_TERMS = frozenset({"recitals", "signature", "document", "title", "agreement"})
"""Headings about which no question is made."""

_TERMS = (
    "Affiliate", "Agreed Form", "Applicable Law", "Background IP", "Base Rate", "Business Day", "Change of Control",
    "Completion Accounts", "Confidential Information", "Control", "Deliverables", "Disclosure Letter", "Encumbrance",
    "Escrow Agent", "Event of Default", "Excluded Liabilities", "Fiscal Quarter", "Force Majeure Event",
    "Good Industry Practice", "Indemnified Party", "Initial Term", "Intellectual Property Rights", "Key Personnel",
    "Knowledge", "Losses", "Material Adverse Effect", "Net Sales", "Permitted Assigns", "Personal Data",
    "Product Recall", "Reference Price", "Renewal Term", "Service Credits", "Specifications", "Subcontractor",
    "Territory", "Trade Marks", "Working Capital",
)  # fmt: skip
"""Terms that agreements often define; a document without the term cannot answer a question about it."""

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
    "reference": (
        "What does section {name} say, to which another section refers?",
        "What is laid down in section {name}, to which another section refers?",
    ),
    "value": ("What does it say about {name}?", "What does the {{title}} say about {name}?"),
}


def construct_questions(document: Document, root: Section, profile: Profile) -> list[Draft]:
    """Return questions made by rule from a document's text, at most a few of each kind."""
    text = document.text
    spans = split_sentences(text)
    drafts = [
        *_choose_few(_draft_definitions(document.filename, text, spans)),
        *_choose_few(_draft_headings(document.filename, text, root)),
        *_choose_few(_draft_references(document.filename, text, root)),
        *_draft_parties(document.filename, text, spans, profile),
        *_choose_few(_draft_absent_terms(document.filename, text)),
    ]
    # letters and notes have no headings
    return drafts or _choose_few(_draft_values(document.filename, text, spans))


def _draft_absent_terms(filename: str, text: str) -> Iterator[Draft]:
    """Yield questions without an answer, about terms that contracts often define but this document lacks."""
    folded = " ".join(text.casefold().split())
    if _DEFINED.search(text):  # without definitions in the document, the absence would be too easy to recognise
        for term in _TERMS:
            if term.casefold() not in folded:
                yield _draft(filename, "definition", term, (), absent=True)


def _draft(filename: str, kind: str, name: str, spans: tuple[Span, ...], *, absent: bool = False) -> Draft:
    asks = pick(WORDINGS[kind], filename, kind, name).format(name=name)
    return Draft(filename, asks, kind, "absent" if absent else "sure", name, spans)


def _choose_few(drafts: Iterable[Draft]) -> list[Draft]:
    return sorted(drafts, key=lambda draft: digest(draft.key, "few"))[:MOST]


def _draft_definitions(filename: str, text: str, spans: list[Span]) -> Iterator[Draft]:
    matches = list(_DEFINED.finditer(text))
    times = Counter(match[1].casefold() for match in matches)
    for match in matches:
        name = " ".join(match[1].split())
        span = _find_sentence(spans, match.start())
        if span and times[match[1].casefold()] == 1 and _has_good_length(span) and match.end() <= span.end:
            yield _draft(filename, "definition", name, (Span(match.start(), span.end),))


def _draft_headings(filename: str, text: str, root: Section) -> Iterator[Draft]:
    leaves = [s for s in root.walk() if s.heading and not s.children and s.kind not in _NO_TERMS]
    titles = Counter(_format_title(section.heading).casefold() for section in leaves)
    for section in leaves:
        name, span = _format_title(section.heading), section.span.trim(text)
        words = len(re.findall(r"[A-Za-z]{3,}", name))
        if 1 <= words <= 8 and len(name) < 70 and titles[name.casefold()] == 1 and _has_good_length(span):
            yield _draft(filename, "heading", name, (span,))


def _draft_references(filename: str, text: str, root: Section) -> Iterator[Draft]:
    """Yield a question for each section that another section refers to by its number."""
    numbered = [(label[1], section) for section in root.walk() if (label := _NUMBERED.match(section.heading))]
    counts = Counter(number for number, _ in numbered)
    sections = dict(numbered)
    for number in dict.fromkeys(match[1] for match in _CITED.finditer(text)):
        if counts[number] == 1 and _has_good_length(span := sections[number].span.trim(text)):
            yield _draft(filename, "reference", number, (span,))


def _draft_parties(filename: str, text: str, spans: list[Span], profile: Profile) -> list[Draft]:
    places = [span for name in profile.parties if (span := _find_sentence(spans, text.find(name)))]
    whole = len(places) == len(profile.parties) >= 2 and all(map(_has_good_length, places))
    return [_draft(filename, "parties", "parties", tuple(dict.fromkeys(places)))] if whole else []


def _draft_values(filename: str, text: str, spans: list[Span]) -> Iterator[Draft]:
    """Yield a question for each date, amount and period that only one sentence states."""
    for value in find_values(text):
        span = _find_sentence(spans, value.span.start)
        if span and _has_good_length(span) and value.kind != "place" and text.count(value.text) == 1:
            yield _draft(filename, "value", " ".join(value.text.split()), (span,))


def _find_sentence(spans: list[Span], at: int) -> Span | None:
    return next((span for span in spans if span.start <= at < span.end), None)


def _format_title(heading: str) -> str:
    return tidy(_LABEL.sub("", " ".join(heading.split())).strip(" .:-–—§"))


def _has_good_length(span: Span) -> bool:
    return _SHORTEST <= span.end - span.start <= _LONGEST
