"""Summaries that quote a document's title, parties and subject, and a section's heading and first sentence."""

import re
from collections.abc import Sequence

from exhibit.evidence import Document
from exhibit.law.names import tidy
from exhibit.law.profile import AGREED, Profile
from exhibit.law.sentences import split_sentences
from exhibit.law.structure import cut
from exhibit.law.structure.tree import Section
from exhibit.models.llms import LLM
from exhibit.rag.config import Config
from exhibit.rag.summaries import DOCUMENT_CHARS, SECTION_CHARS, TOLERANCE, Summary

# `This Part deals with …`
_STATES = re.compile(
    r"(?i)(?:this|these|the) (?:[\w’'-]+ ){0,3}?(?:part|practice direction|guide|polic(?:y|ies)|statement|"
    r"notice|rules|act|regulations?|order|directive|schedule) (?:\w+ ){0,3}?(?:deals?|sets? out|applies|apply|"
    r"explains?|describes?|supplements?|contains?|informs?|provides?|governs?|lays? down|is intended|is about)\b"
)
_WISHES = re.compile(
    r"(?i)\b(?:desires?|wish(?:es)?|intends?) (?:to|that)\b|\bengaged in\b|\bin the business of\b|"
    r"\bcontemplates?\b"
)
_VAGUE = re.compile(
    r"(?i)representations|income tax|hereinafter|set forth (?:the|their|herein)|as follows|foregoing|"
    r"terms and conditions"
)
_PREFIX = re.compile(
    r"(?i)^(?:(?:whereas|now,? therefore|recitals?|background|witnesseth)\b[\s,:;]*(?:that\b)?\s*|"
    r"\(?[A-Za-z0-9]{1,3}[.)]\s+|[\W\d])+"
)
_LABEL = re.compile(
    r"(?i)^(?:(?:article|section|part|chapter|rule|clause|schedule|exhibit|annex|appendix)\s+)?"
    r"(?:§? ?[\d.]+[A-Z]?|[IVXL]+|[A-Z]|\(\w+\))[.:)]?(?:\s+|$)"
)
# Headings that do not distinguish a document: every document has them.
_USUAL = re.compile(
    r"(?i)(?:recitals?|whereas|background|preamble|introduction|definitions?|interpretation|miscellaneous|"
    r"general(?: provisions)?|certain definitions|scope|signatures?|in witness whereof|now,? therefore|"
    r"notices?|contents.*)\W*"
)
_WORD = re.compile(r"\w+")
_OPENING_CHARS = 12_000  # characters at the start of a document, with the recitals and the purpose
_BODY_CHARS = 1500  # characters of a section from which its summary is taken
_MAX_NAMES = 3  # most parties in a summary; if there are more, it names two and counts the others


def open(argument: str | None, *, config: Config, llm: LLM | None) -> "ExtractiveSummariser":  # noqa: ARG001
    return ExtractiveSummariser(config)


class ExtractiveSummariser:
    alone = True

    def __init__(self, config: Config) -> None:
        self._with_sections = config.layers == "all"

    def summarise(self, document: Document, root: Section, profile: Profile) -> Summary:
        """Return `Title between A and B: subject` for a document, and `heading: first sentence` for each section."""
        name = profile.title or document.filename
        title = f"{name} between {_join_names(profile.parties)}" if profile.parties else name
        if len(title) > DOCUMENT_CHARS + TOLERANCE and profile.parties:
            title = f"{cut(name, DOCUMENT_CHARS // 2)} between {_join_names(profile.parties)}"
        subject = _find_subject(document, root, name, agreed=profile.kind in AGREED)
        line = fit(f"{title}: {subject}" if subject else title, DOCUMENT_CHARS)
        leaves = [section for section in root.walk() if not section.children] if self._with_sections else []
        return Summary(line, tuple(fit(_format_line(document, leaf), SECTION_CHARS) for leaf in leaves))


def fit(text: str, characters: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= characters + TOLERANCE else cut(text, characters)


def read_section_body(document: Document, section: Section) -> str:
    text = document.text[section.span.start : min(section.span.end, section.span.start + _BODY_CHARS)]
    words = [re.escape(word) for word in _WORD.findall(section.heading)]
    spaced = r"\s+".join(re.escape(word) for word in section.heading.split())
    orders = [r"[\W_]{1,20}".join(order) for order in (words, words[1:] + words[:1], words[2:] + words[:2])]
    for order in (spaced, *orders):  # the title of a court rule is above its number
        number = re.search(rf"(?<!\w){order}(?!\w)", text) if order else None
        if number:
            return text[number.end() :].lstrip(' \t\n.:;,-–—)”"')
    return text.strip()


def _join_names(names: Sequence[str]) -> str:
    shown = list(names[:_MAX_NAMES]) if len(names) <= _MAX_NAMES else [*names[:2], f"{len(names) - 2} others"]
    return " and ".join(part for part in (", ".join(shown[:-1]), shown[-1]) if part)


def _find_subject(document: Document, root: Section, title: str, *, agreed: bool) -> str:
    opening = document.text[:_OPENING_CHARS]
    recitals = next((part.span for part in root.walk() if part.kind == "recitals"), None)
    start, end = recitals if recitals and recitals.start < _OPENING_CHARS else (0, _OPENING_CHARS // 3)
    for sentence in split_sentences(opening[start:end]) if agreed else ():
        words = _clean_sentence(opening[start + sentence.start : start + sentence.end])
        if _is_good_subject(words, title) and _WISHES.search(words) and not _VAGUE.search(words):
            return words
    for sentence in split_sentences(opening):
        words = _clean_sentence(opening[sentence.start : sentence.end])
        if _is_good_subject(words, title) and _STATES.match(words):
            return words
    return "; ".join(_list_topics(root, title))


def _clean_sentence(sentence: str) -> str:
    return _PREFIX.sub("", " ".join(sentence.split())).rstrip(" .;,")


def _is_good_subject(words: str, title: str) -> bool:
    return 30 <= len(words) <= 400 and words.casefold()[:40] not in title.casefold()


def _list_topics(root: Section, title: str) -> list[str]:
    parts = root.children
    while len([part for part in parts if part.heading]) == 1:
        parts = next(part for part in parts if part.heading).children
    names = [_LABEL.sub("", part.heading) for part in parts if part.kind not in {"title", "agreement", "signature"}]
    return [
        tidy(name)
        for name in names
        if len(name) > 3 and not _USUAL.fullmatch(name) and name.casefold() not in title.casefold()
    ]


def _format_line(document: Document, section: Section) -> str:
    body = " ".join(read_section_body(document, section).split())
    first = next(iter(split_sentences(body)), None)
    sentence = body[first.start : first.end] if first else ""
    return f"{section.heading}: {sentence}" if section.heading and sentence else section.heading or sentence
