"""Reads the names of provisions: `§ 535 Abs. 1 BGB`, `bgb-535`, `Section 8.03(b)`, `Schedule 2, para 3`."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from exhibit.law.language import load_systems
from exhibit.law.structure.labels import parse_roman
from exhibit.schemas.parsing import read_beside

_HEIGHTS = {"schedule": 0, "part": 1, "recital": 2, "article": 2, "unit": 3, "": 3}
"""The level of each unit; a unit without a level is a part of another: a paragraph, a sentence, a letter."""
_BELOW = 4  # lower than every unit
_KINDS = {"schedule": "schedule", "article": "article", "paragraph": "unit", "section": "unit", "clause": "unit"}
"""The units of this module for each kind of part in the legal systems."""
_MOST = 60
"""Most numbers of a list or a range; of a longer one only the ends are read."""
_LONGEST = 400
"""Most characters of the name of a provision."""

_NUMBER = r"(?:\d{1,4}[a-z]{0,2}(?:[.\-–]\d{1,4}[a-z]{0,2}){0,4}|[IVXLC]{1,7}|[A-Z]|[a-z]{1,2})(?!\w)[ºª°]?"
_BRACKETS = r"(?:[ ]?\([0-9A-Za-z]{1,5}\)){0,5}"
_NEXT = re.compile(r"\s?(?P<range>bis|to|through|až|–|-)\s?|\s?(?:,|und|and|or|oder|sowie|a|&|/)\s?")
_LISTED = re.compile(rf"\d{{1,4}}[a-z]{{0,2}}(?:\.\d{{1,4}}[a-z]{{0,2}}){{0,4}}(?![\w.]\w|\w){_BRACKETS}")
_GLUE = re.compile(
    r"(?:[\s,;.()\[\]:–—-]|(?<!\w)(?:of|to|in|the|des|der|zum|zur|dem|im|from|under|pursuant|i\.?V\.?m\.?|iVm|ff?\.?|und|and|"
    r"od|vom|see|vgl\.|gemäß|nach|et seq\.?)(?!\w))+"
)
_OUTWARD = re.compile(r"\s*+,?\s*+(?:of|to|in|zu|zum|zur|des|der|k|ke)\s++(?:the\s++|this\s++)?")
_SLUG = re.compile(
    r"(?P<source>[^\W\d][^\d]{0,60}?|SR \d{3}(?:\.\d+)*)[\s\-/]{1,3}"
    r"(?P<number>\d{1,4}[a-z]{0,2}(?:\.\d{1,4}[a-z]{0,2}){0,3})"
    r"(?P<below>(?:-\d{1,3}){0,2})(?P<brackets>(?:\([0-9A-Za-z]{1,5}\)){0,4})"
)
_BARE = re.compile(
    r"(?P<number>\d{1,4}[a-z]{0,2}(?:\.\d{1,4}[a-z]{0,2}){1,4})(?P<brackets>(?:\([0-9A-Za-z]{1,5}\)){0,4})"
)


_LAW = r"(?P<law>[A-ZÄÖÜ][\wÄÖÜäöü-]{0,9}[A-ZÄÖÜ]|SR \d{3}(?:\.\d{1,4})*)(?!\w)"
_LAW_AFTER = re.compile(rf"(?:,? (?:of the |of |des |der )?){_LAW}")
_LAW_BEFORE = re.compile(rf"(?<!\w){_LAW},? $")


class ProvisionStep(NamedTuple):
    """A step of the path to a provision, such as `Section 8`.

    It has the kind of unit, the word as it is written, and the number.
    """

    sort: str
    """`schedule`, `part`, `recital`, `article`, `unit`, a lower part, or empty if there is no word."""
    word: str
    number: str


_Path = tuple[ProvisionStep, ...]


class NamedProvision(NamedTuple):
    """A reference to a provision, as it is written in a text.

    `source` is the named law or document. `path` has the units from the largest to the smallest, such as
    article 3, paragraph 2.
    """

    label: str
    """The name as it is written."""
    source: str
    path: tuple[ProvisionStep, ...]

    @property
    def has_word(self) -> bool:
        """Whether a word or sign such as `§` marks the provision: true for `§ 535`, false for `535`."""
        return any(step.word for step in self.path)


@cache
def list_unit_sorts() -> dict[str, str]:
    """Return a dictionary from each word or sign for a unit to the kind of unit: `absatz` to `paragraph`.

    The words are in lower case. Longer words come first, so that a pattern tries them before shorter ones.
    """
    sorts = {word: sort for sort, words in read_beside(__file__)["units"].items() for word in words.split()}
    for system in load_systems():
        for level in system.levels:
            kind = _KINDS.get(level.kind, "part")
            sorts |= {word: kind for word in level.words if word not in sorts and len(word) > 1}
        for sort, words in system.data.get("below", {}).items():
            known = sort if sort in ("paragraph", "sentence", "point", "letter") else "point"
            sorts |= {word.lower(): known for word in words.split() if word.lower() not in sorts and len(word) > 1}
    return dict(sorted(sorts.items(), key=lambda item: (-len(item[0]), item[0])))


@cache
def _make_unit_pattern() -> re.Pattern[str]:
    words = "|".join(re.escape(word) for word in list_unit_sorts())
    return re.compile(rf"(?<![\w§])(?P<word>(?i:{words}))[ \xa0]?(?P<number>{_NUMBER})(?P<brackets>{_BRACKETS})")


def read_provisions(text: str, *, bare: bool = True) -> list[NamedProvision]:
    """Return the provisions that a short text names, in order; a list or range gives a provision for each number.

    Args:
        bare: also read `bgb-535` and `36.14`, which have no word for the unit.
    """
    if len(text) > _LONGEST:
        return []
    plain = text.replace("\xa0", " ").replace("_", " ").strip()
    named = list(_read_worded(plain))
    if named or not bare:
        return named
    match = _BARE.fullmatch(plain) or _SLUG.fullmatch(plain.replace(":", " "))
    if match is None:
        return []
    fields = match.groupdict("")
    below = [ProvisionStep("paragraph", "", number) for number in fields.get("below", "").split("-") if number]
    path = (ProvisionStep("", "", fields["number"]), *_read_brackets(fields["brackets"]), *below)
    return [NamedProvision(text.strip(), fields.get("source", "").strip(" -"), path)]


def find_cited_provisions(sentence: str) -> list[NamedProvision]:
    """Return the provisions that a sentence cites, each with its law if the law's abbreviation is beside it."""
    text = sentence.replace("\xa0", " ")
    named = []
    for one in _group_steps(text):
        after, before = _LAW_AFTER.match(text, one.end), _LAW_BEFORE.search(text[max(0, one.start - 20) : one.start])
        source = after["law"] if after else before["law"] if before else ""
        named += [NamedProvision(_write_path(path, source), source, path) for path in one.paths]
    return named


class _Cited(NamedTuple):
    start: int
    end: int
    paths: list[tuple[ProvisionStep, ...]]


def _read_worded(text: str) -> Iterator[NamedProvision]:
    cited = list(_group_steps(text))
    if not cited:
        return
    before = _find_source(text[: cited[0].start])
    last = before
    sources = []
    for at, one in enumerate(cited):
        following = cited[at + 1].start if at + 1 < len(cited) else len(text)
        after = _find_source(text[one.end : following])
        if before:  # "BGB § 535, GG Art. 5": the law is named before its provision
            sources.append(last)
            last = after or last
        else:
            sources.append(after)
    for at in range(len(sources) - 2, -1, -1):  # "§ 535 und § 536 BGB": the law is named after the last provision
        sources[at] = sources[at] or sources[at + 1]
    for one, source in zip(cited, sources, strict=True):
        for path in one.paths:
            yield NamedProvision(_write_path(path, source) if len(cited) * len(one.paths) > 1 else text, source, path)


def _write_path(path: Sequence[ProvisionStep], source: str) -> str:
    steps = (f"({step.number})" if step.sort == "bracket" else f" {step.word} {step.number}" for step in path)
    return " ".join(f"{''.join(steps)} {source}".split())


def _find_source(gap: str) -> str:
    """Return the name of a law in the text beside a cited provision: `BGB` for `of the BGB`; empty if none."""
    words = _GLUE.sub(" ", f" {gap} ").strip()
    return words if re.search(r"\w", words) else ""


def _group_steps(text: str) -> Iterator[_Cited]:
    """Yield the provisions that a text cites; `§ 535 Abs. 1` and `para 3 of Schedule 2` are one provision each."""
    open_: _Cited | None = None
    for match in _make_unit_pattern().finditer(text):
        if open_ is not None and match.start() < open_.end:
            continue
        sort = list_unit_sorts()[match["word"].lower()]
        if match["number"].islower() and match["number"].isalpha() and sort not in ("letter", "point"):
            continue  # "Section a" has no number
        numbers, end = _read_numbers(text, match, below=sort not in _HEIGHTS)
        paths = [(ProvisionStep(sort, match["word"], number), *inside) for number, inside in numbers]
        gap = text[open_.end : match.start()] if open_ is not None else ""
        if open_ is not None and len(open_.paths) == 1 and _goes_on(open_.paths[0][-1], sort, gap):
            outer = open_.paths[0]
            open_ = _Cited(open_.start, end, [tuple(sorted([*outer, *path], key=_rank_height)) for path in paths])
            continue
        if open_ is not None:
            yield open_
        open_ = _Cited(match.start(), end, paths)
    if open_ is not None:
        yield open_


def _rank_height(step: ProvisionStep) -> int:
    return _HEIGHTS.get(step.sort, _BELOW)


def _goes_on(last: ProvisionStep, sort: str, gap: str) -> bool:
    """Return whether a unit belongs to the citation before it.

    It belongs if it is a part of the last unit (`§ 535 Abs. 1`) or contains that unit (`para 3 of Schedule 2`).
    """
    if not _GLUE.fullmatch(gap or " "):
        return False
    inner, outer = _HEIGHTS.get(sort, _BELOW), _rank_height(last)
    if _OUTWARD.fullmatch(gap):
        return inner < outer
    return (inner > outer or inner == _BELOW) and ";" not in gap and "und" not in gap and "and" not in gap


def _read_numbers(text: str, match: re.Match[str], *, below: bool) -> tuple[list[tuple[str, _Path]], int]:
    """Return the numbers after a word such as `Section` in a citation, and the offset of their end.

    Each number comes with the path in brackets after it: in `Sections 3(a) and 5`, 3 has the path (a). Several
    numbers are read after a plural word or, with `below`, also after a singular word (`Abs. 1, 3`).
    """
    word, number, end = match["word"].lower(), match["number"], match.end()
    plural = word == "§§" or word in ("ss.", "arts.", "artt.") or (word.endswith("s") and word not in ("abs", "ss"))
    if plural and (ends := re.fullmatch(r"(\d+)[-–](\d+)", number)):
        return [(str(one), ()) for one in _list_range(int(ends[1]), int(ends[2]))], end
    plural = plural or below  # also for a list such as "Abs. 1, 3"
    numbers = [(number.rstrip("ºª°"), _read_brackets(match["brackets"]))]
    while plural and (mark := _NEXT.match(text, end)) and (more := _LISTED.match(text, mark.end())):
        digits, _, brackets = more[0].partition("(")
        last = numbers[-1][0]
        if mark["range"] and last.isdigit() and digits.isdigit():
            numbers += [(str(one), ()) for one in _list_range(int(last), int(digits))[1:-1]]
        numbers.append((digits.strip(), _read_brackets(f"({brackets}" if brackets else "")))
        end = more.end()
    return numbers, end


def _list_range(low: int, high: int) -> list[int]:
    return list(range(low, high + 1)) if 0 < high - low < _MOST else [low, high]


def _read_brackets(brackets: str) -> tuple[ProvisionStep, ...]:
    return tuple(ProvisionStep("bracket", "", part) for part in re.findall(r"\(([^()]+)\)", brackets))


def list_number_forms(number: str) -> frozenset[str]:
    """Return the equivalent forms of a number: `ix` and `9` for `IX`, `8.03` and `8.3` for `8.03`."""
    plain = number.casefold().strip(" .()º°ª:-–—")
    forms = {plain, re.sub(r"(?<=\.)0+(?=\d)", "", plain)}
    if number.strip(" .()").isupper() and (value := parse_roman(plain)):
        forms.add(str(value))
    return frozenset(forms)
