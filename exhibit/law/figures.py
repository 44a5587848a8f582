"""Reads the numbers and dates of a text, and decides whether a text states an expected answer."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from typing import NamedTuple

from exhibit.law.language import LegalSystem, is_content, load_systems, make_word_pattern, stem
from exhibit.law.names import ABBREVIATED, DOTTED, INITIALS, SPELT

MONTHS = tuple("January February March April May June July August September October November December".split())
MONTH = f"(?:{'|'.join(MONTHS)})"
"""A pattern for a month's name, to use in a longer pattern that decides about case."""
SHORT_MONTHS = (*(month[:3].lower() for month in MONTHS if len(month) > 3), "sept")
"""Abbreviated names of months before a full stop and a day, `Jan. 5`; May has no abbreviation."""
_MONTHS = [month.lower() for month in MONTHS]
_MONTH = rf"(?P<month>{'|'.join(f'{month}|{month[:3]}' for month in _MONTHS)}|sept)\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_ISO_DATE = re.compile(rf"(?i)\b{_YEAR}-(?P<m>\d\d)-(?P<day>\d\d)\b")
_DAY_MONTH = re.compile(rf"(?i)\b{_DAY}\s+(?:day\s+of\s+|of\s+)?{_MONTH}(?:,?\s+{_YEAR})?\b")
_MONTH_DAY = re.compile(rf"(?i)\b{_MONTH}\s+{_DAY}\b(?:,?\s+{_YEAR}\b)?")
_MONTH_YEAR = re.compile(rf"(?i)\b{_MONTH},?\s+{_YEAR}\b")
_NUMERIC_DATE = re.compile(r"(?i)\b(?P<first>\d{1,2})(?P<mark>[/.])(?P<second>\d{1,2})(?P=mark)(?P<year>\d{4}|\d\d)\b")
_SPACED_DATE = re.compile(r"(?i)\b(?P<first>\d{1,2})\. (?P<second>\d{1,2})\. (?P<year>\d{4})\b")
# Numbers with a point or a space as thousands separator that have no other reading: `1.500,50`, `2.500.000`.
_EUROPEAN = re.compile(r"(?<![\w.,])\d{1,3}(?:(?:[.\xa0 ]\d{3})+,\d{1,2}|(?:\.\d{3}){2,})(?![\w.,]*\d)")
# A space as thousands separator, which is certain only beside a currency: `EUR 250 000`.
_SPACED = re.compile(
    r"(?i)(?:(?:[€$£]|\b(?:eur|usd|gbp|czk|chf|pln|sek|nok|dkk))\s?\d{1,3}(?: \d{3})+(?![\w.,]*\d)"
    r"|(?<![\w.,])(?<!\d )\d{1,3}(?: \d{3})+(?=\s?(?:[€$£]|kč|zł|(?:eur|euros?|usd|gbp|czk|chf|pln|sek|nok|dkk)\b)))"
)
# A Swiss mark of thousands: `250'000`.
_APOSTROPHE = re.compile(r"(?<=\d)['’](?=\d{3})")
# The letter O that a scanner read for a zero: `25O,OOO`.
_SCANNED = re.compile(r"(?<!\w)\d(?=[\d,.]{0,20}O)[\dO]*(?:[.,][\dO]{3})*(?!\w)")
_NUMBER = re.compile(
    r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+)((?:\.\d+)*)(?:(?:st|nd|rd|th)\b)?(?:\s?(thousand|million|mn|billion|"
    r"bn|trillion|tn|m|k)\b)?"
)
_UNIT_WORDS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen
""".split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SMALL = (
    rf"(?:(?:{make_word_pattern(_TENS)})(?:[\s-](?:one|two|three|four|five|six|seven|eight|nine))?"
    rf"|{make_word_pattern(_UNIT_WORDS)})"
)
_SPELT = re.compile(
    rf"\b{_SMALL}(?:\s+hundred(?:\s+(?:and\s+)?{_SMALL})?)?(?:\s+(?:thousand|million|billion|trillion))?\b"
)
_TOKEN = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+")
# matches l.l.c.
_DOTTED = re.compile(r"\b[a-z]\.(?:[a-z]\.)+")
_ANSWER_UNITS = frozenset(map(stem, "day week month year hour minute percent".split()))
# Words between a number and its unit.
_UNIT_KINDS = frozenset(map(stem, "calendar business working clear consecutive full".split()))
_NOT = frozenset("not no never neither nor none cannot without".split())
# One word for each currency and for per cent, in all their spellings.
_WRITTEN: dict[str, re.Pattern[str]] = {
    "usd": re.compile(r"us\s?\$|\$|\b(?:us )?dollars?\b"),
    "gbp": re.compile(r"£|\bpounds?(?: sterling)?\b"),
    "eur": re.compile(r"€|\beuros?\b"),
    "percent": re.compile(r"%|\bper\s?cent\b"),
}
_DATES = (_ISO_DATE, _DAY_MONTH, _MONTH_DAY, _MONTH_YEAR, _NUMERIC_DATE, _SPACED_DATE)
_SCALES = {"thousand": 10**3, "k": 10**3, "million": 10**6, "mn": 10**6, "m": 10**6, "billion": 10**9, "bn": 10**9}
_SCALES |= {"trillion": 10**12, "tn": 10**12}
SMALL_NUMBERS = {word: value for value, word in enumerate(_UNIT_WORDS)}
"""The values of the words from zero to nineteen."""
_VALUES = dict(SMALL_NUMBERS)
_VALUES |= {word: 10 * value for value, word in enumerate(_TENS, 2)}


class Day(NamedTuple):
    """A date; a part that the text does not state is None."""

    year: int | None
    month: int | None
    day: int | None

    def is_within(self, other: "Day") -> bool:
        """Return whether this date agrees with the other date, which may be more exact.

        Each part (year, month, day) that this date states must be the same in the other date. `May 2020` agrees
        with `5 May 2020`, but `5 May 2020` does not agree with `May 2020`.
        """
        return all(mine is None or mine == its for mine, its in zip(self, other, strict=True))


@dataclass(frozen=True)
class Figures:
    """The numbers and dates of a text."""

    numbers: frozenset[str]
    """Every number, including those inside dates."""
    loose: frozenset[str]
    """Numbers outside dates; the word `one` is a pronoun, not a number."""
    dates: tuple[frozenset[Day], ...]
    """Each date with its possible readings: 1/2/2020 has two."""
    rest: str = ""
    """The text without its dates, in lower case."""


def find_figures(text: str) -> Figures:
    """Return the numbers and dates of a text."""
    normal = _APOSTROPHE.sub("", unicodedata.normalize("NFKC", text))
    normal = _SCANNED.sub(lambda match: match[0].replace("O", "0"), normal)
    plain = _EUROPEAN.sub(lambda match: re.sub(r"[.\s]", "", match[0]).replace(",", "."), normal)
    plain = _SPACED.sub(lambda match: re.sub(r"(?<=\d) (?=\d)", "", match[0]), plain)
    rest = plain
    dates = []

    def blank(match: re.Match[str]) -> str:
        readings = frozenset(_list_readings(match))
        if not readings:
            return match.group()
        dates.append(readings)
        return "\0" * len(match.group())

    for pattern in (*_DATES, _make_date_pattern()):
        rest = pattern.sub(blank, rest)
    plain, rest = plain.lower(), rest.lower()
    loose = {
        *map(_write_digit, _NUMBER.finditer(rest)),
        *(_write_value(m) for m in _SPELT.finditer(rest) if m[0] != "one"),
    }
    numbers = {*map(_write_digit, _NUMBER.finditer(plain)), *map(_write_value, _SPELT.finditer(plain))}
    return Figures(frozenset(numbers), frozenset(loose), tuple(dates), rest.replace("\0", " "))


def has_missing_figures(claim: Figures, evidence: Figures) -> bool:
    """Return whether the claim has a number or a date that the evidence lacks."""
    if claim.loose - evidence.numbers:
        return True
    known = [day for readings in evidence.dates for day in readings]
    return any(not any(day.is_within(other) for day in readings for other in known) for readings in claim.dates)


def _list_readings(match: re.Match[str]) -> Iterator[Day]:
    parts = match.groupdict()
    year = int(parts["year"]) if parts.get("year") else None
    if parts.get("first"):
        year = year + (2000 if year < 70 else 1900) if year is not None and year < 100 else year
        first, second = int(parts["first"]), int(parts["second"])
        yield from (Day(year, m, d) for m, d in {(first, second), (second, first)} if m <= 12 and 1 <= d <= 31 and m)
        return
    if (parts.get("month") or "").islower():
        return  # not a date: "the parties may 5 times"
    name = parts.get("foreign")
    month = int(parts["m"]) if parts.get("m") else list_months()[name.lower()] if name else _find_month(parts["month"])
    day = int(parts["day"]) if parts.get("day") else None
    if 1 <= month <= 12 and (day is None or 1 <= day <= 31):
        yield Day(year, month, day)


@cache
def _make_date_pattern() -> re.Pattern[str]:
    """Return the pattern for dates with a month's name in a legal system's language, such as `1. července 2018`."""
    names = sorted(set(list_months()) - set(_MONTHS), key=len, reverse=True)
    return re.compile(
        rf"\b(?P<day>\d{{1,2}})(?:\.|er|º|°)?\s+(?:de\s+)?(?P<foreign>{'|'.join(names)})(?:\s+(?:de\s+)?{_YEAR})?\b",
        re.IGNORECASE,
    )


def _find_month(name: str) -> int:
    return next(number for number, month in enumerate(_MONTHS, 1) if month.startswith(name[:3].lower()))


def write_in_digits(plain: str) -> str:
    """Return a lower-case text with every number in plain digits: 30 for `thirty`, 1500000 for `1.5 million`."""
    return _NUMBER.sub(lambda match: f"{_write_digit(match)} ", _SPELT.sub(_write_value, plain))


def _write_digit(match: re.Match[str]) -> str:
    whole, fraction, scale = match.groups()
    whole = whole.replace(",", "").lstrip("0") or "0"
    if set(fraction) <= {".", "0"}:  # 5.00 is 5; but section 5.10 is not section 5.1
        fraction = ""
    if scale and fraction.count(".") <= 1:
        return f"{(Decimal(whole + fraction) * _SCALES[scale]).normalize():f}"
    return whole + fraction


def _write_value(match: re.Match[str]) -> str:
    total = current = 0
    for word in re.findall(r"[a-z]+", match.group()):
        if word == "hundred":
            current *= 100
        elif word in _SCALES:
            total, current = total + current * _SCALES[word], 0
        elif word in _VALUES:
            current += _VALUES[word]
    return str(total + current)


# ---------------------------------------------------------------- expected answers

_CURRENCIES = frozenset({"usd", "gbp", "eur"})
_FORMS = frozenset(form.replace(".", "").lower() for form in (*ABBREVIATED, *SPELT, *INITIALS, *DOTTED))
_POLAR = frozenset({"yes", "no"})


@dataclass(frozen=True)
class _Said:
    """The words, numbers and dates of a text in normal form, so that two texts can be compared."""

    tokens: tuple[str, ...]
    """Every word and number in order."""
    terms: frozenset[str]
    """Numbers, and the stems of content words; company names without their legal form."""
    measures: frozenset[tuple[str, str]]
    """Numbers with their unit of time or per cent."""
    dates: tuple[frozenset[Day], ...]


def stands_in(expected: str, text: str) -> bool | None:
    """Return whether a text states an expected answer; None if that cannot be decided.

    It cannot be decided if the answer has no words, or is a bare yes or no and the text begins with neither.
    "thirty (30) days" equals "30 days", and 5 January 2024 equals 2024-01-05. A negative answer is not in a
    text without negation. The result is an estimate, not a proof.
    """
    wanted, given = _read_statement(expected), _read_statement(text)
    if not wanted.tokens and not wanted.dates:
        return None
    if wanted.tokens[:1] and wanted.tokens[0] in _POLAR:
        yes_or_no = given.tokens[0] if given.tokens[:1] and given.tokens[0] in _POLAR else None
        if yes_or_no not in (None, wanted.tokens[0]):
            return False
        if not wanted.terms:
            return None if yes_or_no is None else True
    if not wanted.terms and not wanted.dates:
        return f" {' '.join(wanted.tokens)} " in f" {' '.join(given.tokens)} "
    return _has_parts(wanted, given)


def _has_parts(wanted: _Said, given: _Said) -> bool:
    currencies = given.terms & _CURRENCIES
    terms = wanted.terms if currencies else wanted.terms - _CURRENCIES
    denied = not _NOT.intersection(wanted.tokens) or bool(_NOT.intersection(given.tokens))
    known = [day for readings in given.dates for day in readings]
    dated = all(any(day.is_within(other) for day in readings for other in known) for readings in wanted.dates)
    return denied and dated and terms <= given.terms and wanted.measures <= given.measures


@lru_cache(maxsize=4096)  # an answer is compared with every passage, and a passage serves many questions
def _read_statement(text: str) -> _Said:
    stated = find_figures(text)
    plain = write_in_digits(stated.rest)
    for word, pattern in _WRITTEN.items():
        plain = pattern.sub(f" {word} ", plain)
    plain = _DOTTED.sub(lambda match: match.group().replace(".", "") + " ", plain)
    found = _TOKEN.findall(plain)
    # thirty (30) is one number
    tokens = [token for at, token in enumerate(found) if not (at and token[0].isdigit() and token == found[at - 1])]
    words = [token if token[0].isdigit() else stem(token) for token in tokens]
    kept = [
        word
        for token, word in zip(tokens, words, strict=True)
        if token[0].isdigit() or (is_content(token) and token not in _FORMS)
    ]
    return _Said(tuple(tokens), frozenset(kept), frozenset(_find_measures(words)), stated.dates)


def _find_measures(words: list[str]) -> list[tuple[str, str]]:
    pairs = []
    for at, word in enumerate(words):
        following = words[at + 1 : at + 3]
        if word[0].isdigit() and following:
            unit = following[1] if following[0] in _UNIT_KINDS and len(following) > 1 else following[0]
            pairs += [(word, unit)] if unit in _ANSWER_UNITS else []
    return pairs


_ISO = r"(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})"
_NUMERIC = r"(?P<d2>\d{1,2})[./][ \xa0]?(?P<m2>\d{1,2})[./][ \xa0]?(?P<y2>\d{4})"


@cache
def list_months() -> dict[str, int]:
    """Return the number of each month by its lower-case name, in the languages of all legal systems."""
    return {
        name: number
        for system in load_systems()
        for number, name in enumerate(system.data.get("months", "").split(), start=1)
    }


@cache
def _make_number_pattern() -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, list_months()), key=len, reverse=True))
    worded = rf"(?P<d3>\d{{1,2}})(?:st|nd|rd|th|er|º|°|\.)?[ \xa0]+(?:de[ \xa0]+|of[ \xa0]+)?(?P<n3>{names})"
    american = rf"(?P<n4>{names})[ \xa0]+(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?,[ \xa0]+(?P<y4>\d{{4}})"
    year = r",?[ \xa0]+(?:de[ \xa0]+)?(?P<y3>\d{4})(?!\w)"
    return re.compile(
        rf"(?<![\w.]){_ISO}(?!\w)|(?<![\w.]){_NUMERIC}(?!\w)|(?<!\w){worded}{year}|(?<!\w){american}",
        re.IGNORECASE,
    )


def find_days(text: str) -> list[date]:
    """Return the full dates that a text names, in order; impossible dates are left out."""
    days = []
    for match in _make_number_pattern().finditer(text):
        parts = {name: value for name, value in match.groupdict().items() if value}
        month = next((int(parts[key]) for key in ("m", "m2") if key in parts), 0)
        month = month or list_months()[next(parts[key] for key in ("n3", "n4") if key in parts).lower()]
        year, day = (next(int(value) for name, value in parts.items() if name[0] == key) for key in "yd")
        try:
            days.append(date(year, month, day))
        except ValueError:
            continue
    return days


def write_day(day: date, system: LegalSystem) -> str:
    """Return a day as a law of this system writes it."""
    months = system.data.get("months", "").split()
    name = months[day.month - 1].title() if months else ""
    pattern: str = system.data.get("date", "{year}-{month}-{day}")
    return pattern.format(day=day.day, month=day.month, Month=name, year=day.year)
