"""What a contract's first page says by rule: the kind of document, who made it, and when.

The rules would rather find nothing than something wrong: a title with a false party misleads every reader of it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from exhibit.law.casing import tidy, title_case
from exhibit.law.companies import FORM
from exhibit.law.dates import MONTH

_LINES = 40  # of a first page: the title stands above them
_NEAR = 3000
"""How far into the text is looked."""

# ---------------------------------------------------------------- the kind of document

_KIND = re.compile(r"\b(?:agree+ments?|undertaking|deed|contract|requirements)\b", re.IGNORECASE)
_OPENING = re.compile(
    r"^[^\S\n]*+this ((?:[^\s.;:“”\"()]+ ){1,12}?(?:agreement|undertaking|deed))\b", re.IGNORECASE | re.MULTILINE
)
_LABEL = re.compile(
    r"^\W*(?:an?\s+)?(?:(?:exhibit|annex|attachment|appendix|schedule)\s+[\w()]{1,8}\s*[-–—:.]?\s+)?", re.IGNORECASE
)
"""`Exhibit (d)(5)`, `Annex III –`, and the article of `An Example of …`."""
_TAIL = re.compile(r"(?:(?<!\s)\s*[(\[].*|(?<!\s)\s+(?:between|dated|by and)\b.*|(?<=[a-z])\d+)$", re.IGNORECASE)
"""What follows the name on its line: brackets, the parties, the mark of a footnote."""
_PROSE = re.compile(r"\s*(?:this|these|in|the parties|whereas|i|we|by|our|your|please|thank|\d+)\b", re.IGNORECASE)
_LETTER = re.compile(r"^[^\S\n]*+(?:dear\b|(?:ladies and )?gentlemen\b)", re.IGNORECASE | re.MULTILINE)


def kind_of(text: str) -> str:
    """Return what a document calls itself, `Mutual Non-Disclosure Agreement`; empty when it does not say."""
    text = _plain(text)
    lines = [line.strip() for line in text.split("\n")[:_LINES]]
    for before, line in zip(["", *lines], lines, strict=False):
        if len(line) > 160:
            break  # the text has begun: a later "agreement" is no heading
        if _PROSE.match(line):
            continue
        heading = _TAIL.sub("", _TAIL.sub("", _LABEL.sub("", line))).strip(" .:-–—_")
        if heading and " " not in heading:
            heading = f"{_LABEL.sub('', before)} {heading}".strip()  # "… AND PERMITTED USE" over "AGREEMENT"
        if _KIND.search(heading) and " " in heading and ":" not in heading:
            return _calm(heading)
    opening = _OPENING.search(text)
    if opening:
        return _calm(opening[1])
    return "Letter Agreement" if _LETTER.search(text) else ""


def _plain(text: str) -> str:
    """Return the beginning with plain spaces and no ligatures."""
    return unicodedata.normalize("NFKC", text[:_NEAR])


def _calm(heading: str) -> str:
    """Return a heading in title case when most of it shouts."""
    letters = [character.isupper() for character in heading if character.isalpha()]
    return title_case(heading) if 2 * sum(letters) > len(letters) else heading


# ---------------------------------------------------------------- the parties

_WORD = r"[A-Z0-9À-Þ][\w&.'’/+-]*"
_NAME = (
    rf"(?P<name>(?:[Tt]he )?{_WORD}(?:(?: | & | (?:of|for|de|du|in|on|e|the) (?:the )?){_WORD}|,? {FORM}|"
    r" \((?i:pty|proprietary|private|pvt)\))*)"
)
_NUMBER = r"(?:\(?(?:\d\.?\d?|[ivx]{1,3}|[A-D])[.)]{1,2}\s+|\d\s+)?"
_AND = r"(?:and|AND|And)\b[\s:;,-]*"
_FIRST = re.compile(
    rf"(?:(?:\b[Bb]etween|\bBETWEEN|\b[Aa]mong|\bAMONG)(?![A-Za-z])|^\W*(?:\d\W+)?(?:PARTIES|Parties)\b)[\s:,;-]*"
    rf"{_NUMBER}(?:{_NAME})?",
    re.MULTILINE,
)
_JOINED = re.compile(rf"\s+(?P<and>{_AND}){_NAME}")
_NEXT = re.compile(
    rf"(?:[)”\",;\]_\d]\s*\b{_AND}|\)[,;]\s+(?!{_AND})|^\W*{_AND}|^(?=\(\d)){_NUMBER}{_NAME}", re.MULTILINE
)
_HAS_FORM = re.compile(rf"\b{FORM}(?=\W|$)")
_ALIAS = re.compile(r"[^“”\"()]{0,260}\([^()“”\"]{0,90}?(?:[“”\"‘'’]|the [A-Z]\w+\))")
"""`… a Delaware corporation (the "Company")`: what stands before it is a party."""
_APART = re.compile(r"\s*(?:[\n,;(]|$|(?:whose|of|having|with|located|an?|as|in)\b)")
_BODY = re.compile(
    r"\n\W{0,60}+(?:\d[.)]?\s{0,20})?(?:whereas|background|recital|introduction|interpretation|definition|table of|"
    r"preamble|now\b|operative|the parties|purpose|confiden|non.?disclosure|obligation|contents|it is|"
    r"in consideration)",
    re.IGNORECASE,
)
_NO_NAME = re.compile(
    r"\b(?:agree\w*|confidential\w*|terms|parties|party|whereas|undersigned|consideration|insert|name|individuals?)\b",
    re.IGNORECASE,
)
_ROLES = frozenset(
    "a an and the of company client customer vendor supplier contractor recipient discloser provider buyer seller "
    "visitor bidder participant distributor borrower person firm organization organisation entity corporation "
    "candidate mentor division inventor owner your you i ii iv we each this address date purpose background in on no "
    "day page part full data not its other us both represented registration number".split()
)
"""Words that name nobody by themselves."""


def parties_of(text: str) -> list[str]:
    """Return the parties that the first page names, in its order; blanks and placeholders are nobody."""
    text = _plain(text)
    for first in _FIRST.finditer(text):
        # `between A, a Delaware corporation ("A"), and B …` is one paragraph, `BETWEEN:` the head of a list
        paragraph = text.find("\n", first.end() + 60)
        listed = "\n" in text[first.start() : paragraph]
        end = first.start() + 700 if listed or paragraph < 0 else paragraph
        region = text[first.start() : end]
        body = _BODY.search(region, 12)
        region = region[: body.start()] if body else region
        again = _FIRST.match(region)
        names = list(dict.fromkeys(_names(region, again, listed))) if again else []
        if names:
            return names
    return []


def _names(region: str, first: re.Match[str], listed: bool) -> Iterator[str]:
    name, at = _name(first, region, listed), first.end()
    joined = _JOINED.match(region, at)
    if joined and name and not _HAS_FORM.search(name) and not joined["and"].isupper():
        name, at = f"{name} and {joined['name']}", joined.end()  # "Department of Health and Mental Hygiene"
        joined = None
    if name:
        yield name
    if joined:
        at = joined.end()
        yield from filter(None, [_name(joined, region, True)])
    for match in _NEXT.finditer(region, at):
        yield from filter(None, [_name(match, region, listed)])


def _name(match: re.Match[str], region: str, listed: bool) -> str:
    """Return the name at a place where a party may stand, or nothing."""
    name: str = match["name"] or ""
    forms = list(_HAS_FORM.finditer(name))
    if forms:
        name = name[: forms[-1].end()]  # an address may follow
    words = re.findall(r"[\w'’]+", name.lower())
    if len(name) < 3 or _NO_NAME.search(name) or words[0].isdigit() or all(word in _ROLES for word in words):
        return ""
    end = match.start("name") + len(name)
    if not (forms or _ALIAS.match(region, end) or (listed and _APART.match(region, end))):
        return ""
    name = name.removeprefix("The ").removeprefix("the ").rstrip(" ," if forms else " ,.")
    return name if len(words) < 3 and len(words[0]) < 5 else tidy(name)  # JEA and SAP AG are no shouts


# ---------------------------------------------------------------- the date

_DATE = re.compile(
    rf"\b{MONTH} \d{{1,2}}(?:st|nd|rd|th)? ?, ?\d{{4}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? {MONTH},? \d{{4}}\b"
)


def date_of(text: str) -> str:
    """Return the first full date near the beginning, as it is written; empty when there is none."""
    date = _DATE.search(_plain(text), 0, _NEAR // 3)
    return date[0].replace(" ,", ",") if date else ""
