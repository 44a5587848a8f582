"""What a document says of itself on its first pages, by rule: title, kind, parties, date."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from urllib.parse import unquote

from exhibit.evidence import Document
from exhibit.law.editions import read_edition
from exhibit.law.figures import MONTH
from exhibit.law.names import FORM, SHOUTED, without_ending
from exhibit.law.patterns import Patterns
from exhibit.law.structure.lines import Line, read_opening

_P = Patterns(__file__, month=MONTH, form=FORM)
_SMALL, _ABBREVIATED, _ROLES = map(_P.words, ("small", "abbreviated", "roles"))
_CAPITALS = SHOUTED | _P.words("capitals")
"""Legal forms, numbers and countries that are capitals in any case."""


def tidy(name: str) -> str:
    """Return a name on one line, in title case when the source shouts."""
    name = _P.cut.sub("", _P.spaces.sub(" ", name).strip(" ;,"))
    return title_case(name) if name.isupper() else name


def title_case(text: str) -> str:
    """Return SHOUTED words in title case; small words stay small inside."""

    def word(match: re.Match[str]) -> str:
        lower = match.group().lower()
        if lower in _SMALL and match.start():
            return lower
        letters = lower.replace(".", "")
        if letters in _CAPITALS or "." in lower[:-1] or (len(letters) > 1 and not _P.vowel.search(letters)):
            # LLC, S.p.A., NCC: initials, not words; but Ltd., Corp. and Mr. are words
            return match.group() if letters not in _ABBREVIATED else lower[:1].upper() + lower[1:]
        return lower[:1].upper() + lower[1:]

    return _P.word.sub(word, text)


# ---------------------------------------------------------------- the first page of a contract

_LINES = 40  # of a first page: the title stands above them
_NEAR = 3000
"""How far into the text is looked."""

# ---------------------------------------------------------------- the kind of document


def kind_of(text: str) -> str:
    """Return what a document calls itself, `Mutual Non-Disclosure Agreement`; empty when it does not say."""
    text = _plain(text)
    lines = [line.strip() for line in text.split("\n")[:_LINES]]
    for before, line in zip(["", *lines], lines, strict=False):
        if len(line) > 160:
            break  # the text has begun: a later "agreement" is no heading
        if _P.prose.match(line):
            continue
        heading = _P.tail.sub("", _P.tail.sub("", _P.label.sub("", line))).strip(" .:-–—_")
        if heading and " " not in heading:
            heading = f"{_P.label.sub('', before)} {heading}".strip()  # "… AND PERMITTED USE" over "AGREEMENT"
        if _P.kind.search(heading) and " " in heading and ":" not in heading:
            return _calm(heading)
    opening = _P.opening.search(text)
    if opening:
        return _calm(opening[1])
    return "Letter Agreement" if _P.letter.search(text) else ""


def _plain(text: str) -> str:
    """Return the beginning with plain spaces and no ligatures."""
    return unicodedata.normalize("NFKC", text[:_NEAR])


def _calm(heading: str) -> str:
    """Return a heading in title case when most of it shouts."""
    letters = [character.isupper() for character in heading if character.isalpha()]
    return title_case(heading) if 2 * sum(letters) > len(letters) else heading


# ---------------------------------------------------------------- the parties


def parties_of(text: str) -> list[str]:
    """Return the parties that the first page names, in its order; blanks and placeholders are nobody."""
    text = _plain(text)
    for first in _P.between.finditer(text):
        # `between A, a Delaware corporation ("A"), and B …` is one paragraph, `BETWEEN:` the head of a list
        paragraph = text.find("\n", first.end() + 60)
        listed = "\n" in text[first.start() : paragraph]
        end = first.start() + 700 if listed or paragraph < 0 else paragraph
        region = text[first.start() : end]
        body = _P.body.search(region, 12)
        region = region[: body.start()] if body else region
        again = _P.between.match(region)
        names = list(dict.fromkeys(_names(region, again, listed))) if again else []
        if names:
            return names
    return []


def _names(region: str, first: re.Match[str], listed: bool) -> Iterator[str]:
    name, at = _name(first, region, listed), first.end()
    joined = _P.joined.match(region, at)
    if joined and name and not _P.has_form.search(name) and not joined["and"].isupper():
        name, at = f"{name} and {joined['name']}", joined.end()  # "Department of Health and Mental Hygiene"
        joined = None
    if name:
        yield name
    if joined:
        at = joined.end()
        yield from filter(None, [_name(joined, region, True)])
    for match in _P.next.finditer(region, at):
        yield from filter(None, [_name(match, region, listed)])


def _name(match: re.Match[str], region: str, listed: bool) -> str:
    """Return the name at a place where a party may stand, or nothing."""
    name: str = match["name"] or ""
    forms = list(_P.has_form.finditer(name))
    if forms:
        name = name[: forms[-1].end()]  # an address may follow
    words = re.findall(r"[\w'’]+", name.lower())
    if len(name) < 3 or _P.no_name.search(name) or words[0].isdigit() or all(word in _ROLES for word in words):
        return ""
    end = match.start("name") + len(name)
    if not (forms or _P.alias.match(region, end) or (listed and _P.apart.match(region, end))):
        return ""
    name = name.removeprefix("The ").removeprefix("the ").rstrip(" ," if forms else " ,.")
    return name if len(words) < 3 and len(words[0]) < 5 else tidy(name)  # JEA and SAP AG are no shouts


# ---------------------------------------------------------------- the date


def date_of(text: str) -> str:
    """Return the first full date near the beginning, as it is written; empty when there is none."""
    date = _P.date.search(_plain(text), 0, _NEAR // 3)
    return date[0].replace(" ,", ",") if date else ""


# ---------------------------------------------------------------- the profile

_PROFILE_NEAR = 6000  # characters: two pages, in which a document says what it is and between whom
_LONGEST_TITLE = 120  # characters: what is longer is a sentence
_MARGIN = 60
"""A shorter line did not end for want of room: the next one stands by itself."""


@dataclass(frozen=True)
class Profile:
    """What a document says of itself on its first pages."""

    title: str = ""
    kind: str = ""
    """contract, nda, merger agreement, privacy policy, legislation, rules, practice direction, court guide …"""
    parties: tuple[str, ...] = ()
    date: str = ""


def read_profile(document: Document) -> Profile:
    """Return the title, kind, parties and date; what is not said is empty, but the title: there the file's name."""
    edition = read_edition(document.text)
    if edition is not None:
        return Profile(title=edition.title, kind="legislation", date=edition.dated)
    lines = read_opening(document, _PROFILE_NEAR)
    text = paragraphs(lines)
    name = file_title(document.filename)
    kind = _kind(text, document, name)
    title = title_of(text, kind, name)
    # roles apart: the Reseller of a Reseller Agreement is nobody's name
    named = parties_of(text) if kind in AGREED else ()
    parties = tuple(party for party in named if party.casefold() not in title.casefold())
    return Profile(title=title, kind=kind, parties=parties, date=own_date(text, kind))


def paragraphs(lines: list[Line]) -> str:
    """Return the lines as paragraphs, so that a sentence is not cut at the margin."""
    pieces: list[str] = []
    for line in lines:
        pieces.append("\n" if line.fresh or len(line.before) < _MARGIN else " ")
        pieces.append(line.text)
    return "".join(pieces).strip("\ufeff\u200b \n")


def file_title(filename: str) -> str:
    """Return what a file's name says: of a filing `…_EX-10.1_Reseller Agreement` the last part."""
    stem = without_ending(unquote(PurePath(filename).name).split("||")[0])
    return tidy(_P.exhibit.sub("", stem).replace("_", " "))


# ---------------------------------------------------------------- the kind

AGREED = frozenset({"contract", "nda", "merger agreement"})


def _kind(text: str, document: Document, name: str) -> str:
    """Return what sort of document it is, by its first lines, its own name, and what it speaks of."""
    called = kind_of(text)
    if _P.merger.search(called) or _P.plan.search(text[:1500]):
        return "merger agreement"
    if kind := _P.first("kinds", text):
        return kind
    if _P.confidential.search(called) or (not called and _P.confidential.search(name)):
        return "nda"
    personal = _P.personal.findall(document.text[: 4 * _PROFILE_NEAR])
    if _P.privacy.search(text[:500]) or (len(personal) >= 6 and not called):
        return "privacy policy"
    if called or parties_of(text) or _P.agreed.search(name):
        return "contract"
    if _P.terms.search(text[:500]):
        return "terms"
    return ""


# ---------------------------------------------------------------- the title


def title_of(text: str, kind: str, name: str) -> str:
    """Return the title that a document of some kind gives itself; its file's name where it gives none."""
    return _TITLES.get(kind, _contract_title)(text, name) or name


def _contract_title(text: str, name: str) -> str:
    words = re.sub(r"^exhibits?\s+[\d.]+\s+", "", kind_of(text), flags=re.IGNORECASE).split()
    title = " ".join(words)
    sound = 2 <= len(words) <= 16 and len(title) <= _LONGEST_TITLE and title[-1] not in ",;:"
    return title if sound else name


def _first_line(text: str, _: str) -> str:
    """Return the first line that names a part or a direction, `Part 36 - Offers to settle`."""
    line = _P.part_line.search(text[:2000]) or _P.any_line.search(text)
    return _shortened(line[1]) if line else ""


def _guide(text: str, _: str) -> str:
    opening = " ".join(text[:800].split())
    match = _P.guide.search(opening)
    return match[0] if match else ""


def _law(text: str, _: str) -> str:
    match = _P.law.search(text[:3000])
    return _shortened(match[0]) if match else _first_line(text, "")


def _policy(text: str, name: str) -> str:
    """Return `… Privacy Policy`: the line that says so, else the service's name, which is the file's."""
    line = _P.policy_line.search(text[:600])
    if line and len(line[0].split()) > 2 and not _P.policy_prose.match(line[0]):
        return _shortened(line[0])
    return name if _P.privacy.search(name) else f"{re.sub(r' ?[0-9]$', '', name)} Privacy Policy"


def _shortened(line: str) -> str:
    line = _P.spaced.sub(r"\1", " ".join(line.split()).strip(" .:-–—"))
    calm = _P.direction.sub(lambda match: match[0].upper(), _calm(line))
    return calm if len(calm) <= _LONGEST_TITLE else calm[: calm.rfind(" ", 0, _LONGEST_TITLE)].rstrip(" ,;:-–—")


_TITLES: dict[str, Callable[[str, str], str]] = {
    "practice direction": _first_line,
    "rules": _first_line,
    "court guide": _guide,
    "judgment": _first_line,
    "legislation": _law,
    "privacy policy": _policy,
}

# ---------------------------------------------------------------- the date


def own_date(text: str, kind: str) -> str:
    """Return the document's own date as it is written: the first full one, or the one that `dated` leads to."""
    if kind in {"practice direction", "rules"}:
        return ""  # the dates in them are those of other laws
    if kind in {"court guide", "judgment"}:
        month = _P.monthly.search(text[:800])
        return date_of(text[:800]) or (month[0] if month else "")
    day = _P.day_of.search(text[:3000])
    stated = _P.stated.search(text[:4000])
    return (
        date_of(text) or (f"{day[1]} {day[2].title()} {day[3]}" if day else "") or (tidy(stated[1]) if stated else "")
    )
