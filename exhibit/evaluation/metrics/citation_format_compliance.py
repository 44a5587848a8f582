"""Citation format compliance: the share of an answer's citations that have the requested form.

Well formed are `[1]`, `[1][2]` (two citations) and `[Document#page=Section]`. Malformed are `[1, 2]`, `[1-3]`,
`[1]-[3]` and a bare `1, 2, 3` after a sentence; each counts as one. Amounts of money, "Rules 3, 4 and 5", the year of
`[2024] EWCA Civ 123` and the paragraph in "at [45]" are no citations. `any_citation` says whether there is any
citation.
"""

import re

from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.law.citations import find_citations

_DOCUMENT = re.compile(
    r"\[[^\[\]\n]*[^\[\]\n\s]#page=[^\[\]\n]+\]|\[[^\[\]\n]*\w\.(?:pdf|txt|html?|docx?|json|md)\]", re.I
)
_PINPOINT = re.compile(
    r"(\[(?:1[89]|20)\d\d\][^\[\]\n]{2,40}?)(?:,?\s*(?:at|paras?\.?|paragraphs?)\s*)(?:\[\d+\](?:\s*[-–—,;&]\s*|\s+and\s+)?)+"
)
"""The paragraphs of a judgment in a citation: `[2024] EWCA Civ 123 at [45]-[48]`."""
_RANGE = re.compile(r"\[\d{1,3}\]\s*[-–—]\s*\[\d{1,3}\]")
_NUMBERS = r"\d{1,3}(?:\s{0,9},\s{0,9}\d{1,3}(?!\d)){1,99}(?:,?\s{0,9}(?:and|&)\s{0,9}\d{1,3})?"
_BARE = re.compile(
    rf"(?:(?<=[.!?…][)\"'”’ ])|(?<=[.!?…])|^)[^\S\n]{{0,9}}{_NUMBERS}[^\S\n]{{0,9}}\.?[^\S\n]{{0,9}}(?=$|\s[A-Z])",
    re.MULTILINE,
)
_LISTS = re.compile(r"^[^\S\n]*\d{1,3}[.)]\s", re.MULTILINE)


def _score(case: Case) -> float | None:
    """Return the share of the answer's citations that are well-formed; None if the answer has no citation."""
    good, bad = count_citations(case.reply.answer or "")
    return good / (good + bad) if good + bad else None


def count_citations(text: str) -> tuple[int, int]:
    """Return the numbers of well-formed and of malformed citations."""
    text = _PINPOINT.sub(r"\1", text)
    documents = len(_DOCUMENT.findall(text))
    text, ranges = _RANGE.subn(" ", _DOCUMENT.sub(" ", text))
    cited = find_citations(text)
    good = sum(citation.well_formed for citation in cited)
    bare = len(_BARE.findall(_LISTS.sub("", text)))
    return documents + good, len(cited) - good + ranges + bare


NAMES, measure = score_per_case(citation_format_compliance=_score)
