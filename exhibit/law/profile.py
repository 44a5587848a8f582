"""Reads a document's title, kind, parties and date from its first pages, by rules."""

import re
import unicodedata
from dataclasses import dataclass, replace
from pathlib import PurePath
from urllib.parse import unquote

from exhibit.evidence import Document
from exhibit.law.names import FORM, calm_heading, tidy, without_ending
from exhibit.law.provisions import read_edition
from exhibit.law.structure.lines import read_lines
from exhibit.law.values import MONTH, Value, find_dates

_EXHIBIT = re.compile(r"(?i)^.*(?:^|[\W_])EX-?\d{1,3}(?:\.\d+)*[-_ ]+(?=\D)")
_PRIVACY = re.compile(r"(?i)\bprivacy (?:policy|statement|notice)\b")
_PERSONAL = re.compile(
    r"(?i)\b(?:personal(?:ly identifiable)? (?:information|data)|your (?:information|privacy|data)|cookies)\b"
)
_TERMS = re.compile(r"(?i)\b(?:terms (?:of (?:service|use)|and conditions)|conditions of (?:sale|use))\b")
_CONFIDENTIAL = re.compile(r"(?i)non-? ?disclosure|confidential|\bnda\b|secrecy")
_MERGER = re.compile(
    r"(?i)\bmerger\b|plan of reorgani[sz]ation|business combination|\bcombination agreement|\btransaction agreement"
)
# `Practice Direction 7 A` is 7A.
_SPACED = re.compile(r"(?i)(?<=\bdirection )(\d+) (?=[a-z]\b)")
_DIRECTION = re.compile(r"(?<=Direction )\d+[a-z]{1,2}\b")
_DAY_OF = re.compile(r"(?i)(\d)(?:st|nd|rd|th)?\s+day\s+of\s+")
_STATED = re.compile(r"(?i)\b(?:dated|as of|effective|updated|revised|modified|issued|date)\b[^.\n]{0,30}$")
_MONTHLY = re.compile(rf"\b{MONTH} (?:19|20)\d\d\b")
_AGREED = re.compile(r"(?i)\b(?:agreement|contract|deed|lease)\b")
_PART_LINE = re.compile(
    r"(?im)^(?:Document: *)?((?:pre-action )?(?:practice direction|cyfarwyddyd ymarfer|part \d).*)$"
)
_ANY_LINE = re.compile(r"(?m)^(.{3,160})$")
_GUIDE = re.compile(r"\b(?:The )?(?:(?!The\b)(?:[A-Z][\w’'-]*|&|and|of|for|the) ){1,9}Guide\b(?: (?:19|20)\d\d)?")
_LAW = re.compile(
    r"(?im)^.{0,140}\b(?:act|regulations|order|rules|code) (?:18|19|20)\d\d\b|"
    r"^.{0,40}\b(?:regulation|directive|decision) \(?(?:EU|EC|EEC)\)?.{0,100}"
)
_POLICY_LINE = re.compile(r"(?im)^.{0,50}\bprivacy (?:policy|statement|notice)\W*$")
# Patterns for the kind of a document by its first lines; the first match counts.
_KINDS: dict[str, re.Pattern[str]] = {
    "rules": re.compile(
        r"(?i)\A(?:part \d{1,3} ?[a-z]? ?[-–—:]|(?:.{0,300}\n){0,4}?.{0,20}\bcontents of this part\b|"
        r"(?:.{0,120}\n){0,3}?(?:.{0,60}\brules (?:of|19|20)|.{0,40}procedure rules))"
    ),
    "practice direction": re.compile(r"(?i)\A(?:.{0,160}\n){0,4}?.{0,40}\b(?:practice direction|cyfarwyddyd ymarfer)"),
    "court guide": re.compile(r"(?i)\A[^.;]{0,400}?\b(?:court|bench|chancery|division|tribunal)s?\s+guide\b"),
    "judgment": re.compile(
        r"(?i)\A(?:.{0,120}\n){0,6}?.{0,60}(?:\[\d{4}\] (?:EWHC|EWCA|UKSC|UKPC|UKHL)|neutral citation)"
    ),
    "legislation": re.compile(
        r"(?i)\A(?:.{0,200}\n){0,12}?.{0,120}(?:\bbe it enacted\b|\bstatutory instruments?\b|\bact (?:18|19|20)\d\d\b|"
        r"\bpublic law \d|"
        r"\b(?:regulation|directive|decision) \(?(?:EU|EC|EEC)\)?|\b(?:regulations|order) (?:19|20)\d\d\b)"
    ),
}

_PROFILE_CHARS = 6000  # characters: two pages, which state the kind of the document and its parties
_MAX_TITLE_CHARS = 120  # characters: a longer line is a sentence
_FULL_LINE_CHARS = 60  # characters of a full line: after a shorter line a new paragraph begins


@dataclass(frozen=True)
class Profile:
    title: str = ""
    kind: str = ""
    """The kind, such as contract, nda, merger agreement, privacy policy, legislation, rules, practice direction."""
    parties: tuple[str, ...] = ()
    date: str = ""


def read_profile(document: Document) -> Profile:
    edition = read_edition(document.text)
    if edition is not None:
        return Profile(title=edition.title, kind="legislation", date=edition.dated)
    lines = read_lines(replace(document, text=document.text[:_PROFILE_CHARS], pages=()))
    joints = ("\n" if line.fresh or len(line.before) < _FULL_LINE_CHARS else " " for line in lines)
    text = "".join(joint + line.text for joint, line in zip(joints, lines, strict=True)).strip("\ufeff\u200b \n")
    stem = without_ending(unquote(PurePath(document.filename).name).split("||")[0])
    name = tidy(_EXHIBIT.sub("", stem).replace("_", " "))  # the name in a filing's `…_EX-10.1_Reseller Agreement.pdf`
    kind = _find_kind(text, document, name)
    title = title_of(text, kind, name)
    # without roles: the Reseller of a Reseller Agreement is not a name
    named = parties_of(text) if kind in AGREED else ()
    parties = tuple(party for party in named if party.casefold() not in title.casefold())
    return Profile(title=title, kind=kind, parties=parties, date=find_own_date(text, kind))


AGREED = frozenset({"contract", "nda", "merger agreement"})


def _find_kind(text: str, document: Document, name: str) -> str:
    called = kind_of(text)
    if _MERGER.search(called):
        return "merger agreement"
    if kind := next((kind for kind, pattern in _KINDS.items() if pattern.search(text)), ""):
        return kind
    if _CONFIDENTIAL.search(called) or (not called and _CONFIDENTIAL.search(name)):
        return "nda"
    personal = _PERSONAL.findall(document.text[: 4 * _PROFILE_CHARS])
    if _PRIVACY.search(text[:500]) or (len(personal) >= 6 and not called):
        return "privacy policy"
    if called or parties_of(text) or _AGREED.search(name):
        return "contract"
    return "terms" if _TERMS.search(text[:500]) else ""


def title_of(text: str, kind: str, name: str) -> str:
    if kind == "court guide":
        guide = _GUIDE.search(" ".join(text[:800].split()))
        return guide[0] if guide else name
    if kind == "privacy policy":
        line = _POLICY_LINE.search(text[:600])
        if line and len(line[0].split()) > 2:
            return _shorten_line(line[0]) or name
        return name if _PRIVACY.search(name) else f"{re.sub(r' ?[0-9]$', '', name)} Privacy Policy"
    if kind in _KINDS:  # `Part 36 - Offers to settle`, or the first line
        law = _LAW.search(text[:3000]) if kind == "legislation" else None
        line = law or _PART_LINE.search(text[:2000]) or _ANY_LINE.search(text)
        return (_shorten_line(line[0 if law else 1]) if line else "") or name
    if title := _find_heading(text):
        return title
    words = re.sub(r"^exhibits?\s+[\d.]+\s+", "", kind_of(text), flags=re.IGNORECASE).split()
    title = " ".join(words)
    return title if 2 <= len(words) <= 16 and len(title) <= _MAX_TITLE_CHARS and title[-1] not in ",;:" else name


def _find_heading(text: str) -> str:
    """Return the heading above the first sentence that names a document other than an agreement, such as a lease."""
    for line in _normalise_start(text).split("\n")[:_HEADING_LINES]:
        if len(line) > _MAX_TITLE_CHARS or _PROSE.match(line) or _KIND.search(line):
            break
        heading = _TAIL.sub("", _LABEL.sub("", line.strip())).strip(" .:-–—_")
        if _DOCUMENT.search(heading) and (
            heading.isupper() or heading.istitle() or not _SMALL_LETTERED.search(heading)
        ):
            return calm_heading(heading)
    return ""


def _shorten_line(line: str) -> str:
    line = _SPACED.sub(r"\1", " ".join(line.split()).strip(" .:-–—"))
    calm = _DIRECTION.sub(lambda match: match[0].upper(), calm_heading(line))
    return calm if len(calm) <= _MAX_TITLE_CHARS else calm[: calm.rfind(" ", 0, _MAX_TITLE_CHARS)].rstrip(" ,;:-–—")


def find_own_date(text: str, kind: str) -> str:
    if kind in {"practice direction", "rules"}:
        return ""  # dates in these documents are dates of other laws
    if kind in {"court guide", "judgment"}:
        month = _MONTHLY.search(text[:800])
        return date_of(text[:800]) or (month[0] if month else "")
    if first := date_of(text):
        return first
    dates = _find_english_dates(text[:4000])
    signed = [_DAY_OF.sub(r"\1 ", date.text).replace(",", "") for date in dates if _DAY_OF.search(date.text)]
    stated = [date.text for date in dates if _STATED.search(text, 0, date.span.start)]
    return tidy((signed + stated + [""])[0])


_KIND = re.compile(r"(?i)\b(?:agree+ments?|undertaking|deed|contract|requirements)\b")
# Matches `This Reseller Agreement`, but not `This Agreement contains the entire agreement`.
_OPENING = re.compile(
    r"(?im)^[^\S\n]*+this (?!(?:agreement|undertaking|deed|contract|lease|letter|document)\b)"
    r"((?:(?!(?:is|was|are|shall|will|may|has|contains|constitutes|sets|supersedes|represents)\b)"
    r"[^\s.;:“”\"()]+ ){1,12}?(?:agreement|undertaking|deed))\b"
)
_DOCUMENT = re.compile(
    r"(?i)\b(?:lease|power of attorney|promissory note|secured note|note|will and testament|policy|handbook|"
    r"code of conduct|(?:offer|side|engagement|comfort|employment|demand|termination) letter|letter of intent|"
    r"(?:amendment|addendum) (?:no\S* \S+ )?to \w+|guarant(?:y|ee)|mortgage|bond|bylaws|"
    r"articles of \w+|memorandum of \w+|statement of work|"
    r"terms (?:of|and) \w+|conditions of \w+|warranty|waiver|release|indemnity|notice of \w+|certificate of \w+)\b"
)
_SMALL_LETTERED = re.compile(r"\b(?!(?:a|an|and|at|by|for|from|in|of|on|or|the|to|with|no)\b)[a-z]")
_HEADING_LINES = 6
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
    rf"(?P<name>(?:[Tt]he )?{_NAME_PART}(?:(?: | & | (?:of|for|de|du|in|on|e|the) (?:the )?){_NAME_PART}|,? {FORM}|"
    r" \((?i:pty|proprietary|private|pvt)\))*)"
)
_NUMBER = r"(?:\(?(?:\d\.?\d?|[ivx]{1,3}|[A-D])[.)]{1,2}\s+|\d\s+)?"
_AND = r"(?:and|AND|And)\b[\s:;,-]*"
_BETWEEN = re.compile(
    r"(?m)(?:(?:\b[Bb]etween|\bBETWEEN|\b[Aa]mong|\bAMONG)(?![A-Za-z])|^\W*(?:\d\W+)?(?:PARTIES|Parties)\b)[\s:,;-]*"
    rf"{_NUMBER}(?:{_NAME})?"
)
_JOINED = re.compile(rf"\s+(?P<and>{_AND}){_NAME}")
_NEXT = re.compile(rf"(?m)(?:[)”\",;\]_\d]\s*\b{_AND}|\)[,;]\s+(?!{_AND})|^\W*{_AND}|^(?=\(\d)){_NUMBER}{_NAME}")
_HAS_FORM = re.compile(rf"\b{FORM}(?=\W|$)")
# Matches `… a Delaware corporation (the "Company")`: the text before it is a party.
_ALIAS = re.compile(r"[^“”\"()]{0,260}\([^()“”\"]{0,90}?(?:[“”\"‘'’]|the [A-Z]\w+\))")
_APART = re.compile(r"\s*(?:[\n,;(]|$|(?:whose|of|having|with|located|an?|as|in)\b)")
_BODY = re.compile(
    r"(?i)\n\W{0,60}+(?:\d[.)]?\s{0,20})?(?:whereas|background|recital|introduction|interpretation|definition|table of|"
    r"preamble|now\b|operative|the parties|purpose|confiden|non.?disclosure|obligation|contents|it is|in consideration)"
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
_TITLE_LINES = 40  # lines of a first page that contain the title
_OPENING_CHARS = 3000  # characters at the start of the text that are examined


def kind_of(text: str) -> str:
    """Return the kind that a document's heading states, such as `Mutual Non-Disclosure Agreement`, or an empty text."""
    text = _normalise_start(text)
    lines = [line.strip() for line in text.split("\n")[:_TITLE_LINES]]
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
    return unicodedata.normalize("NFKC", text[:_OPENING_CHARS])


def parties_of(text: str) -> list[str]:
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
        if names := _find_names(region, again, listed) if again else []:
            return names
    return []


def _find_names(region: str, first: re.Match[str], listed: bool) -> list[str]:
    names = [_name(first, region, listed)]
    joined = _JOINED.match(region, first.end())
    if joined and names[0] and not _HAS_FORM.search(names[0]) and not joined["and"].isupper():
        names = [f"{names[0]} and {joined['name']}"]  # one name: "Department of Health and Mental Hygiene"
    elif joined:
        names.append(_name(joined, region, True))
    names += [_name(match, region, listed) for match in _NEXT.finditer(region, (joined or first).end())]
    return list(dict.fromkeys(filter(None, names)))


def _name(match: re.Match[str], region: str, listed: bool) -> str:
    """Return the party's name in a match; empty if the matched words are not a name."""
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


def date_of(text: str) -> str:
    dates = (date.text for date in _find_english_dates(_normalise_start(text)[: _OPENING_CHARS // 3]))
    return next((tidy(date.replace(" ,", ",")) for date in dates if not _DAY_OF.search(date)), "")


def _find_english_dates(text: str) -> list[Value]:
    """Return the full dates with an unabbreviated English month; most abbreviated months are in references or forms."""
    return [date for date in find_dates(text) if re.search(rf"(?i){MONTH}", date.text) and "." not in date.text]
