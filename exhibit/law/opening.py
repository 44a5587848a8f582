"""Reads the kind, the parties and the date of a contract from its first page, by rules."""

import re
import unicodedata
from collections.abc import Iterator

from exhibit.law.casing import calm_heading, tidy
from exhibit.law.figures import MONTH
from exhibit.law.names import FORM

_KIND = re.compile(r"(?i)\b(?:agree+ments?|undertaking|deed|contract|requirements)\b")
_OPENING = re.compile(r"(?im)^[^\S\n]*+this ((?:[^\s.;:“”\"()]+ ){1,12}?(?:agreement|undertaking|deed))\b")
# Matches `Exhibit (d)(5)`, `Annex III –`, and the article of `An Example of …`.
_LABEL = re.compile(
    r"(?i)^\W*(?:an?\s+)?(?:(?:exhibit|annex|attachment|appendix|schedule)\s+[\w()]{1,8}\s*[-–—:.]?\s+)?"
)
# The text after the title on its line: brackets, the parties, a footnote mark.
_TAIL = re.compile(r"(?i)(?:(?<!\s)\s*[(\[].*|(?<!\s)\s+(?:between|dated|by and)\b.*|(?<=[a-z])\d+)$")
_PROSE = re.compile(r"(?i)\s*(?:this|these|in|the parties|whereas|i|we|by|our|your|please|thank|\d+)\b")
_LETTER = re.compile(r"(?im)^[^\S\n]*+(?:dear\b|(?:ladies and )?gentlemen\b)")
_NAME_PART = r"[A-Z0-9À-Þ][\w&.'’/+-]*"
_NAME = (
    rf"(?P<name>(?:[Tt]he )?{_NAME_PART}(?:(?: | & | (?:of|for|de|du|in|on|e|the) (?:the )?){_NAME_PART}|"
    rf",? {FORM}|"
    r" \((?i:pty|proprietary|private|pvt)\))*)"
)
_NUMBER = r"(?:\(?(?:\d\.?\d?|[ivx]{1,3}|[A-D])[.)]{1,2}\s+|\d\s+)?"
_AND = r"(?:and|AND|And)\b[\s:;,-]*"
_BETWEEN = re.compile(
    r"(?m)(?:(?:\b[Bb]etween|\bBETWEEN|\b[Aa]mong|\bAMONG)(?![A-Za-z])|^\W*(?:\d\W+)?(?:PARTIES|"
    r"Parties)\b)[\s:,;-]*"
    rf"{_NUMBER}(?:{_NAME})?"
)
_JOINED = re.compile(rf"\s+(?P<and>{_AND}){_NAME}")
_NEXT = re.compile(rf"(?m)(?:[)”\",;\]_\d]\s*\b{_AND}|\)[,;]\s+(?!{_AND})|^\W*{_AND}|^(?=\(\d)){_NUMBER}{_NAME}")
_HAS_FORM = re.compile(rf"\b{FORM}(?=\W|$)")
# Matches `… a Delaware corporation (the "Company")`: the text before it is a party.
_ALIAS = re.compile(r"[^“”\"()]{0,260}\([^()“”\"]{0,90}?(?:[“”\"‘'’]|the [A-Z]\w+\))")
_APART = re.compile(r"\s*(?:[\n,;(]|$|(?:whose|of|having|with|located|an?|as|in)\b)")
_BODY = re.compile(
    r"(?i)\n\W{0,60}+(?:\d[.)]?\s{0,20})?(?:whereas|background|recital|introduction|interpretation|definition|"
    r"table of|"
    r"preamble|now\b|operative|the parties|purpose|confiden|non.?disclosure|obligation|contents|it is|"
    r"in consideration)"
)
_NO_NAME = re.compile(
    r"(?i)\b(?:agree\w*|confidential\w*|terms|parties|party|whereas|undersigned|consideration|insert|name|"
    r"individuals?)\b"
)
# Words that alone do not name a party.
_ROLES = frozenset(
    """
a an and the of company client customer vendor supplier contractor recipient discloser provider buyer seller visitor
bidder participant distributor borrower person firm organization organisation entity corporation candidate mentor
division inventor owner your you i ii iv we each this address date purpose background in on no day page part full data
not its other us both represented registration number
""".split()
)
_DATE = re.compile(
    rf"\b{MONTH} \d{{1,2}}(?:st|nd|rd|th)? ?, ?\d{{4}}\b|\b\d{{1,2}}(?:st|nd|rd|th)? {MONTH},? \d{{4}}\b"
)
_LINES = 40  # lines of a first page that contain the title
_NEAR = 3000
"""Characters at the start of the text that are examined."""


# ---------------------------------------------------------------- the kind of document


def kind_of(text: str) -> str:
    """Return the kind that a document's heading states, `Mutual Non-Disclosure Agreement`; empty if it states none."""
    text = _normalise_start(text)
    lines = [line.strip() for line in text.split("\n")[:_LINES]]
    for before, line in zip(["", *lines], lines, strict=False):
        if len(line) > 160:
            break  # the body has begun: a later "agreement" is not a heading
        if _PROSE.match(line):
            continue
        heading = _TAIL.sub("", _TAIL.sub("", _LABEL.sub("", line))).strip(" .:-–—_")
        if heading and " " not in heading:
            # join "… AND PERMITTED USE" with "AGREEMENT" below it
            heading = f"{_LABEL.sub('', before)} {heading}".strip()
        if _KIND.search(heading) and " " in heading and ":" not in heading:
            return calm_heading(heading)
    opening = _OPENING.search(text)
    if opening:
        return calm_heading(opening[1])
    return "Letter Agreement" if _LETTER.search(text) else ""


def _normalise_start(text: str) -> str:
    """Return the start of a text with plain spaces and without ligatures."""
    return unicodedata.normalize("NFKC", text[:_NEAR])


# ---------------------------------------------------------------- the parties


def parties_of(text: str) -> list[str]:
    """Return the parties that the first page names, in order, without blanks and placeholders."""
    text = _normalise_start(text)
    for first in _BETWEEN.finditer(text):
        # `between A, a Delaware corporation ("A"), and B …` is one paragraph; `BETWEEN:` begins a list
        paragraph = text.find("\n", first.end() + 60)
        listed = "\n" in text[first.start() : paragraph]
        end = first.start() + 700 if listed or paragraph < 0 else paragraph
        region = text[first.start() : end]
        body = _BODY.search(region, 12)
        region = region[: body.start()] if body else region
        again = _BETWEEN.match(region)
        names = list(dict.fromkeys(_find_names(region, again, listed))) if again else []
        if names:
            return names
    return []


def _find_names(region: str, first: re.Match[str], listed: bool) -> Iterator[str]:
    name, at = _name(first, region, listed), first.end()
    joined = _JOINED.match(region, at)
    if joined and name and not _HAS_FORM.search(name) and not joined["and"].isupper():
        name, at = f"{name} and {joined['name']}", joined.end()  # one name: "Department of Health and Mental Hygiene"
        joined = None
    if name:
        yield name
    if joined:
        at = joined.end()
        yield from filter(None, [_name(joined, region, True)])
    for match in _NEXT.finditer(region, at):
        yield from filter(None, [_name(match, region, listed)])


def _name(match: re.Match[str], region: str, listed: bool) -> str:
    """Return the party's name in a match; empty if the matched words are not a name.

    Args:
        region: the text in which the match was found.
        listed: whether the parties are in a list; then a name needs neither a legal form nor an alias
            after it.
    """
    name: str = match["name"] or ""
    forms = list(_HAS_FORM.finditer(name))
    if forms:
        name = name[: forms[-1].end()]  # cut an address after the legal form
    words = re.findall(r"[\w'’]+", name.lower())
    if len(name) < 3 or _NO_NAME.search(name) or words[0].isdigit() or all(word in _ROLES for word in words):
        return ""
    end = match.start("name") + len(name)
    if not (forms or _ALIAS.match(region, end) or (listed and _APART.match(region, end))):
        return ""
    name = name.removeprefix("The ").removeprefix("the ").rstrip(" ," if forms else " ,.")
    return name if len(words) < 3 and len(words[0]) < 5 else tidy(name)  # JEA and SAP AG keep their capitals


# ---------------------------------------------------------------- the date


def date_of(text: str) -> str:
    """Return the first full date near the start, as it is written; empty if there is none."""
    date = _DATE.search(_normalise_start(text), 0, _NEAR // 3)
    return date[0].replace(" ,", ",") if date else ""
