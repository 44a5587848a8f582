"""Citation format compliance: the share of an answer's citations that are written as asked.

`[1]`, `[1][2]` (two citations) and `[Document#page=Section]` are. `[1, 2]`, `[1-3]`, `[1]-[3]` and a bare `1, 2, 3`
after a sentence are not, and count as one each. Money, "Rules 3, 4 and 5", the year of `[2024] EWCA Civ 123` and the
paragraph in "at [45]" are no citations. `any_citation` says whether there is one.
"""

import re

from exhibit.evaluation.metrics import Case, per_case
from exhibit.law.citations import find_citations

_DOCUMENT = re.compile(
    r"\[[^\[\]\n]*[^\[\]\n\s]#page=[^\[\]\n]+\]|\[[^\[\]\n]*\w\.(?:pdf|txt|html?|docx?|json|md)\]", re.I
)
_PINPOINT = re.compile(
    r"(\[(?:1[89]|20)\d\d\][^\[\]\n]{2,40}?)(?:,?\s*(?:at|paras?\.?|paragraphs?)\s*)(?:\[\d+\](?:\s*[-–—,;&]\s*|\s+and\s+)?)+"
)
"""`[2024] EWCA Civ 123 at [45]-[48]` cites paragraphs of a judgment."""
_RANGE = re.compile(r"\[\d{1,3}\]\s*[-–—]\s*\[\d{1,3}\]")
_NUMBERS = r"\d{1,3}(?:\s{0,9},\s{0,9}\d{1,3}(?!\d)){1,99}(?:,?\s{0,9}(?:and|&)\s{0,9}\d{1,3})?"
_BARE = re.compile(
    rf"(?:(?<=[.!?…][)\"'”’ ])|(?<=[.!?…])|^)[^\S\n]{{0,9}}{_NUMBERS}[^\S\n]{{0,9}}\.?[^\S\n]{{0,9}}(?=$|\s[A-Z])",
    re.MULTILINE,
)
_LISTS = re.compile(r"^[^\S\n]*\d{1,3}[.)]\s", re.MULTILINE)


def _score(case: Case) -> float | None:
    """Return well-formed ÷ all for each answer, None where it cites nothing."""
    good, bad = count_citations(case.reply.answer or "")
    return good / (good + bad) if good + bad else None


def count_citations(text: str) -> tuple[int, int]:
    """Return how many citations are well formed, and how many are not."""
    text = _PINPOINT.sub(r"\1", text)
    documents = len(_DOCUMENT.findall(text))
    text, ranges = _RANGE.subn(" ", _DOCUMENT.sub(" ", text))
    cited = find_citations(text)
    good = sum(citation.well_formed for citation in cited)
    bare = len(_BARE.findall(_LISTS.sub("", text)))
    return documents + good, len(cited) - good + ranges + bare


NAMES, measure = per_case(citation_format_compliance=_score)
