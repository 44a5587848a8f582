"""Splits prose with clause numbers, company names and citations in square brackets into sentences and clauses."""

import re
from functools import cache
from itertools import pairwise

from exhibit.evidence import Span
from exhibit.law.language import load_systems
from exhibit.law.names import STOPPED
from exhibit.law.values import SHORT_MONTHS

# A citation as models write it: `[1]`, and the malformed `[1, 2]` and `[1-3]`; a year has four digits.
CITATION = r"\[\s*\d{1,3}(?:\s*(?:,|;|&|and|[-–—])\s*\d{1,3})*\s*\]"
_ITEM = r"(?:[-*•▪◦●–]|\(?(?:\d{1,2}|[a-z]|[ivx]{1,4})[.)])"
_PARAGRAPH = re.compile(rf"(?i)\n[^\S\n]*\n\s*|\n(?=[^\S\n]*{_ITEM}\s)")
_STOP = re.compile(rf"(?P<stop>[.!?…]+[\"'”’)]*)(?P<cites>(?:\s*{CITATION})*)")
_LAST_WORD = re.compile(r"(?<![\w.&'’/-])[\w.&'’/-]*$")
_NEXT_WORD = re.compile(r"\s*[\"'“‘„(\[]*([^\W_]+)")
# Abbreviations that never end a sentence.
_NEVER = frozenset("mr mrs ms dr prof hon messrs v vs cf e.g i.e eg ie viz al approx".split())
_STARTERS = frozenset(
    """
the this that these those it its if in on at each any all no neither either both such where when while for under upon
subject however therefore there they he she we you as a an and but or with without not is are does yes nothing section
clause article
""".split()
)
_ENUMERATOR = re.compile(r"(?i)\s*\(?(?:\d{1,2}(?:\.\d+)*|[a-z]|[ivxlc]{1,5})\)?")
_INITIALS = re.compile(r"[a-z](?:\.[a-z])*")
_CLAUSE_END = re.compile(r"[.;:!?]\s+|\n\s*\n\s*")
# Abbreviations before a number: "No. 5", "s. 33"; but "No. The term …" is an answer. Also abbreviated months.
_BEFORE_NUMBER = frozenset(
    "no nos s ss sec secs sect r rr reg regs art arts para paras par cl cls ch pt p pp vol".split()
    + "sched ex exh app rule".split()
)
# Abbreviations that can end a sentence, such as legal forms of companies: the next word decides.
_MAY_END = frozenset("bros jr sr dept assn est etc cie st".split())
_NUMBERED = _BEFORE_NUMBER.union(SHORT_MONTHS)
_MAYBE_END = STOPPED | _MAY_END
_MAX_LIST_CHARS = 600  # the most characters of a sentence together with the list that it announces


def split_sentences(text: str) -> list[Span]:
    """Return the spans of the sentences, in order; a citation after a full stop belongs to the sentence before it."""
    spans: list[Span] = []
    start = 0
    for gap in [*_PARAGRAPH.finditer(text), None]:
        end = gap.start() if gap else len(text)
        cuts = [start]
        for match in _STOP.finditer(text, start, end):
            cut = _cut(text, cuts[-1], end, match)
            if cut is not None and cut > cuts[-1]:
                cuts.append(cut)
        trimmed = (Span(*bounds).trim(text) for bounds in pairwise([*cuts, end]))
        spans += [span for span in trimmed if span.start < span.end]
        start = gap.end() if gap else end
    return spans


def extend_to_sentences(text: str, span: Span, *, widest: int) -> Span:
    room = widest - (span.end - span.start)
    if room <= 0:
        return span
    low, high = max(0, span.start - widest), min(len(text), span.end + widest)
    start, end = span
    announced = False
    for sentence in split_sentences(text[low:high]):
        first, last = low + sentence.start, low + sentence.end
        if first < span.end and span.start < last:
            start, end = min(start, first), max(end, last)
            announced = text[last - 1] == ":"
        elif announced and first >= span.end and last - start <= _MAX_LIST_CHARS:
            end = last
    before, after = span.start - start, end - span.end
    if before + after > room:
        after = min(after, max(room - before, room // 2))
        before = min(before, room - after)
    start, end = span.start - before, span.end + after
    while start < span.start and start and not text[start - 1].isspace():
        start += 1
    while end > span.end and end < len(text) and not text[end].isspace():
        end -= 1
    return Span(start, end)


def _cut(text: str, begin: int, end: int, match: re.Match[str]) -> int | None:
    """Return the end of the sentence if the punctuation in `match` ends the sentence; None if it does not."""
    cites = match["cites"]
    if match.end() < end and not cites and not text[match.end()].isspace():
        return None  # 3.5, U.S.A
    following = _NEXT_WORD.match(text, match.end(), end)
    word = following.group(1) if following else ""
    # forty characters are enough for any abbreviation; the text before may be a whole document
    near = max(begin, match.start() - 40)
    whole = bool(cites) and not word[:1].islower()  # a sentence with a citation is complete: "… Acme Inc. [1] The term"
    stop = word and not whole and match["stop"][0] == "."
    if stop and _goes_on(text[near : match.start()], word, opening=near == begin):
        return None
    if word[:1].islower() and not text.startswith((")", "."), following.end() if following else end):
        # "… two years. [2] says otherwise": the citation begins the next sentence; "… approx. five" has no citation
        return match.end("stop") if cites and cites[0].isspace() else None
    return match.end()


def _goes_on(before: str, word: str, *, opening: bool) -> bool:
    """Return whether a sentence continues after a full stop, as in `No. 5` and `Dr. Alder`."""
    if opening and _ENUMERATOR.fullmatch(before):
        return True  # "3. Term"
    last = _LAST_WORD.findall(before)[0].lower().strip("'’")
    if last in _NEVER:
        return True
    if last in _list_numbered() and (last != "no" or word[0].isdigit()):
        return word[0].isdigit() or len(word) == 1
    if last in _MAYBE_END or _INITIALS.fullmatch(last):
        return word[0].islower() or word.lower() not in _STARTERS
    return False


@cache
def _list_numbered() -> frozenset[str]:
    """Return abbreviations whose full stop does not end a sentence before a number, as in `Abs. 1`."""
    forms = (
        form for system in load_systems() for forms in system.data.get("below", {}).values() for form in forms.split()
    )
    glue = (form for system in load_systems() for form in system.refers)
    short = {form[:-1].lower() for form in (*forms, *glue) if form.endswith(".")} - _MAYBE_END
    return _NUMBERED.union(form for form in short if not _INITIALS.fullmatch(form))


def tile_clauses(text: str, start: int, end: int, *, least: int, limit: int) -> list[Span]:
    """Split a range of a text after each sentence and clause; the spans cover the range without overlaps."""
    cuts = [start]
    for match in _CLAUSE_END.finditer(text, start, end):
        cut = match.end()
        if cut - cuts[-1] >= least and end - cut >= least:
            cuts.append(cut)
    tiles = [Span(a, b) for a, b in zip(cuts, [*cuts[1:], end], strict=True) if a < b]
    return [Span(at, min(at + limit, b)) for a, b in tiles for at in range(a, b, limit)]
