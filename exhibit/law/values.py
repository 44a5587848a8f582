"""The typed values of a text, with their spans: amounts, periods, dates, percentages and places.

`thirty (30) days` and `30-day` are the same period; `3/14/16` and `14 March 2016` are the same day. A value
can be replaced by another that is written in the same form: its words, its digits and its unit change
together.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Literal

from exhibit.evidence import Span
from exhibit.law.figures import MONTHS
from exhibit.law.numerals import SPELT, read_words, write_words

ValueKind = Literal["amount", "period", "date", "percentage", "place"]

_DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d{1,4})?|\d{1,12}(?:\.\d{1,4})?"
_NUMBER = (
    rf"(?:(?P<words>\b{SPELT})\s{{0,3}}\(\s?(?P<both>{_DIGITS})\s?\)|(?<![\w.,$€£])(?P<digits>{_DIGITS})"
    rf"|\b(?P<spelt>{SPELT}))"
)
_UNITS = {"minute": ("minute", 1), "hour": ("hour", 1), "day": ("day", 1), "week": ("day", 7)} | {
    "month": ("month", 1),
    "quarter": ("month", 3),
    "year": ("month", 12),
}
_PERIOD = re.compile(
    rf"{_NUMBER}(?P<gap>\s{{0,3}}-?\s{{0,3}})(?P<sort>(?:calendar|business|working|consecutive|full|clear|trading)"
    rf"[\s-]{{1,3}})?(?P<unit>{'|'.join(_UNITS)})(?P<plural>s)?(?![a-z])",
    re.IGNORECASE,
)
_CURRENCIES = {"$": "USD", "US$": "USD", "USD": "USD", "U.S.$": "USD", "€": "EUR", "EUR": "EUR", "£": "GBP"} | {
    "GBP": "GBP",
    "dollars": "USD",
    "euros": "EUR",
    "pounds": "GBP",
}
_SIGN = r"(?P<sign>U\.S\.\$|US\$|USD|EUR|GBP|[$€£])"
_SCALE = r"(?P<scale>\s{1,3}(?:thousand|million|billion))?"
_AMOUNT = re.compile(
    rf"(?:(?P<words>\b{SPELT})\s{{1,3}}(?P<unit>(?:U\.?S\.?\s)?dollars|euros|pounds(?:\ssterling)?)\s{{0,3}}\(\s?)?"
    rf"(?<![\w]){_SIGN}\s?(?P<digits>{_DIGITS}){_SCALE}(?![\d%]|,\d)(?P<close>\s?\))?"
    rf"|(?<![\w.,$€£])(?P<digits2>{_DIGITS})(?P<scale2>\s{{1,3}}(?:thousand|million|billion))?"
    r"\s{1,3}(?P<unit2>dollars|euros|USD|EUR|GBP)\b",
    re.IGNORECASE,
)
_PERCENTAGE = re.compile(
    rf"(?P<words>\b{SPELT})\s{{1,3}}(?P<unit>per\s?cent(?:um)?)\s{{0,3}}\(\s?(?P<both>{_DIGITS})\s?%\s?\)"
    rf"|(?P<words2>\b{SPELT})\s{{0,3}}\(\s?(?P<both2>{_DIGITS})\s?%?\s?\)\s{{0,3}}(?P<unit2>per\s?cent(?:um)?|%)"
    rf"|(?P<words4>\b{SPELT})\s{{0,3}}\(\s?(?P<both4>{_DIGITS})\s?%\s?\)"
    rf"|(?<![\w.,$€£])(?P<digits>{_DIGITS})\s{{0,3}}(?P<unit3>%|per\s?cent(?:um)?)"
    rf"|(?P<words3>\b{SPELT})\s{{1,3}}(?P<unit4>per\s?cent(?:um)?)(?!\s{{0,3}}\()",
    re.IGNORECASE,
)
_MONTH = "|".join(f"{month}|{month[:3]}\\.?" if month != "May" else month for month in MONTHS) + r"|Sept\.?"
_MONTH = f"{_MONTH}|{_MONTH.upper()}"
_DATE = re.compile(
    r"(?=[A-Z\d])(?:"  # the first letter decides in most places, and the months need not be tried
    rf"(?<!\w)(?P<month>{_MONTH})\s{{1,3}}(?P<day>\d{{1,2}})(?P<th>st|nd|rd|th)?(?P<comma>\s?,?)\s{{1,3}}(?P<year>\d{{4}})(?!\w)"
    rf"|(?<!\w)(?P<day2>\d{{1,2}})(?P<th2>st|nd|rd|th)?(?P<of>\s{{1,3}}(?:day\s{{1,3}})?(?:of\s{{1,3}})?)"
    rf"(?P<month2>{_MONTH})(?P<comma2>\s?,?)\s{{1,3}}(?P<year2>\d{{4}})(?!\w)"
    r"|(?<![\w./-])(?P<first>\d{1,2})(?P<mark>[/.])(?P<second>\d{1,2})(?P=mark)(?P<year3>\d{4}|\d\d)(?![\w/]|\.\d)"
    r"|(?<![\w./-])(?P<year4>\d{4})-(?P<month4>\d\d)-(?P<day4>\d\d)(?![\w-]))",
)
_STATES = (
    "Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida|Georgia|Hawaii|Idaho|Illinois|"
    "Indiana|Iowa|Kansas|Louisiana|Maine|Maryland|Michigan|Minnesota|Mississippi|Missouri|Montana|Nebraska|Nevada|"
    "New Hampshire|New Jersey|New Mexico|New York|North Carolina|North Dakota|Ohio|Oklahoma|Oregon|Rhode Island|"
    "South Carolina|South Dakota|Tennessee|Texas|Utah|Vermont|Washington|West Virginia|Wisconsin|Wyoming"
)
GROUPS = {
    "state": tuple(_STATES.split("|")),
    "commonwealth": ("Kentucky", "Massachusetts", "Pennsylvania", "Virginia"),
    "province": ("Alberta", "British Columbia", "Manitoba", "New Brunswick", "Nova Scotia", "Ontario", "Saskatchewan"),
    "country": (
        "Austria|Australia|Belgium|Canada|China|Denmark|England|Finland|France|Germany|Hong Kong|India|Ireland|Israel|"
        "Italy|Japan|Luxembourg|New Zealand|Norway|Poland|Portugal|Scotland|Singapore|Spain|Sweden|Switzerland|Taiwan"
    ).split("|"),
}
"""Places by kind; places of one kind can replace each other in a clause on governing law."""
_PLACES = {name: group for group, names in GROUPS.items() for name in names}
_NAMES = "|".join(name.replace(" ", r"\s{1,3}") for name in sorted(_PLACES, key=len, reverse=True))
_PLACE = re.compile(rf"(?=[A-Z])(?<!\w)(?:{_NAMES}|{_NAMES.upper().replace(chr(92) + 'S', chr(92) + 's')})(?!\w)")
"""The pattern for places is case-sensitive: `china` is not a place, and ignoring case would take three times as
long.
"""


_LONGEST_WORD = 12  # characters of a number in words, with a space: `seventeen `
_WORD_BEFORE = re.compile(rf"\b{SPELT}\s+$", re.IGNORECASE)


@dataclass(frozen=True)
class Value:
    """A typed value in a text, such as an amount, a date or a state, and its span in the text.

    Two values are the same if `kind` and `key` are the same: `30 days` and `thirty (30) days`.
    """

    kind: ValueKind
    key: str
    """The value in one form for all spellings: `30 day`, `USD 5000000`, `2016-03-14`, `7.5`, `Delaware`."""
    span: Span
    text: str
    number: Decimal = Decimal(0)
    unit: str = ""

    @property
    def same(self) -> tuple[str, str]:
        """The kind and the normalised form of the value; they are the same for "thirty days" and "30 days"."""
        return self.kind, self.key


def find_values(text: str) -> list[Value]:
    """Return the values of a text in order, without overlaps.

    Of overlapping values, the one that starts first is returned; if two start at the same offset, the longer
    one.
    """
    values: list[Value] = []
    for kind, pattern in _PATTERNS.items():
        for start, end in _find_windows(text, kind):
            values += filter(None, map(_READERS[kind], pattern.finditer(text, start, end)))
    values.sort(key=lambda value: (value.span.start, -value.span.end))
    kept: list[Value] = []
    for value in values:
        if not kept or value.span.start >= kept[-1].span.end:
            kept.append(value)
    return kept


def _find_windows(text: str, kind: ValueKind) -> Iterator[tuple[int, int]]:
    """Yield the ranges of a text to search for values of a kind, so that not all of the text is searched.

    Amounts, percentages and periods are searched only near words and signs such as `$`, `%` or `days`.
    """
    anchor = _ANCHORS.get(kind)
    if anchor is None:
        yield 0, len(text)
        return
    start = end = 0
    for match in anchor.finditer(text):
        if match.start() - _BEFORE > end:
            if end:
                yield start, end
            start = match.start() - _BEFORE
        end = min(len(text), match.end() + _BEHIND)
    if end:
        yield max(0, start), end


def place_group(name: str) -> str:
    """Return the kind of a place: a state, a commonwealth, a province or a country."""
    return _PLACES[name]


# ---------------------------------------------------------------- reading


def _parse_decimal(digits: str) -> Decimal:
    return Decimal(digits.replace(",", ""))


def _format_plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _find_first(match: re.Match[str], *names: str) -> str:
    return next((match[name] for name in names if match[name]), "")


def _read_stated_number(words: str, digits: str) -> Decimal | None:
    """Return the number that a text states in words, in digits or in both, as in `thirty (30)`.

    None if words and digits differ, or if neither states a number.
    """
    spelt = read_words(words) if words else None
    if digits and spelt is not None and Decimal(spelt) != _parse_decimal(digits):
        return None
    return _parse_decimal(digits) if digits else Decimal(spelt) if spelt is not None else None


def _make_value(kind: ValueKind, match: re.Match[str], key: str, number: Decimal, unit: str = "") -> Value:
    return Value(kind, key, Span(*match.span()), match[0], number, unit)


def _read_period(match: re.Match[str]) -> Value | None:
    number = _read_stated_number(_find_first(match, "words", "spelt"), _find_first(match, "both", "digits"))
    before = match.string[max(0, match.start() - _LONGEST_WORD) : match.start()]
    if number is None or (match["digits"] and _WORD_BEFORE.search(before)):
        return None  # "sixty 60 days" is a drafting error that no rule can resolve
    base, factor = _UNITS[match["unit"].lower()]
    return _make_value("period", match, f"{_format_plain(number * factor)} {base}", number, match["unit"].lower())


def _read_amount(match: re.Match[str]) -> Value | None:
    scale = _find_first(match, "scale", "scale2").strip().lower()
    number = _parse_decimal(_find_first(match, "digits", "digits2")) * {
        "": 1, "thousand": 10**3, "million": 10**6, "billion": 10**9,
    }[scale]  # fmt: skip
    if match["words"]:
        if read_words(match["words"]) != number or not match["close"]:
            return None
    elif match["close"]:  # the closing bracket does not belong to the amount
        match = _PATTERNS["amount"].match(match.string, match.start(), match.start("close")) or match
    sign = _find_first(match, "sign", "unit2").upper()
    currency = next((code for name, code in _CURRENCIES.items() if name.upper() == sign), "USD")
    return _make_value("amount", match, f"{currency} {_format_plain(number)}", number, currency)


def _read_percentage(match: re.Match[str]) -> Value | None:
    number = _read_stated_number(
        _find_first(match, "words", "words2", "words3", "words4"),
        _find_first(match, "both", "both2", "both4", "digits"),
    )
    return None if number is None else _make_value("percentage", match, _format_plain(number), number)


def _read_date(match: re.Match[str]) -> Value | None:
    if match["first"]:
        month, day = int(match["first"]), int(match["second"])
        if month > 12 or match["mark"] == ".":
            month, day = day, month
        year = int(match["year3"])
        year += (2000 if year < 70 else 1900) if year < 100 else 0
    else:
        name = _find_first(match, "month", "month2")
        month = _find_month(name) if name else int(match["month4"])
        day, year = int(_find_first(match, "day", "day2", "day4")), int(_find_first(match, "year", "year2", "year4"))
    try:
        found = date(year, month, day)
    except ValueError:
        return None
    return _make_value("date", match, found.isoformat(), Decimal(found.toordinal()))


def _find_month(name: str) -> int:
    return next(at for at, month in enumerate(MONTHS, 1) if month.lower().startswith(name[:3].lower()))


def _read_place(match: re.Match[str]) -> Value | None:
    words = " ".join(match[0].split())
    name = next(name for name in _PLACES if name.lower() == words.lower())
    return _make_value("place", match, name, Decimal(0), _PLACES[name])


_PATTERNS: dict[ValueKind, re.Pattern[str]] = {
    "amount": _AMOUNT, "percentage": _PERCENTAGE, "date": _DATE, "period": _PERIOD, "place": _PLACE,
}  # fmt: skip
_BEFORE, _BEHIND = 120, 60
"""Most characters before and after a unit or a sign that its number and bracket take."""
_ANCHORS: dict[ValueKind, re.Pattern[str]] = {
    "amount": re.compile(r"(?=[$€£UEGD])(?:[$€£]|USD|EUR|GBP|dollars|euros)", re.IGNORECASE),
    "percentage": re.compile(r"%|per\s?cent", re.IGNORECASE),
    "period": re.compile(rf"(?=[MHDWQY])(?:{'|'.join(_UNITS)})", re.IGNORECASE),
}
_READERS: dict[ValueKind, Callable[[re.Match[str]], Value | None]] = {
    "amount": _read_amount, "percentage": _read_percentage, "date": _read_date, "period": _read_period,
    "place": _read_place,
}  # fmt: skip


# ---------------------------------------------------------------- writing


def write_value(value: Value, number: Decimal | None = None, *, name: str = "", plural: bool | None = None) -> str:
    """Return a value's text with another number, date or place in it; all other characters stay the same.

    Args:
        number: the new number, or the new date as an ordinal (`date.toordinal`).
        name: the new place.
        plural: whether the unit of a period is written in the plural; if None, the unit does not change.
    """
    if value.kind == "place":
        return name.upper() if value.text.isupper() else name
    match = _PATTERNS[value.kind].fullmatch(value.text)
    if match is None or number is None:
        raise ValueError(f"the number {number} cannot be put into {value.text!r}")
    if value.kind == "date":
        return _write_date(match, date.fromordinal(int(number)))
    parts = {}
    scale = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
    for group, text in match.groupdict().items():
        if text and re.match(r"words|spelt", group):
            parts[group] = write_words(int(number), text)
        elif text and re.match(r"digits|both", group):
            factor = next((scale[s.strip().lower()] for s in (_scale_of(match),) if s), 1)
            parts[group] = write_digits(number / factor, text)
    if plural is not None and value.kind == "period":
        end = match.end("unit")
        written = _replace_parts(match, parts)
        tail = len(value.text) - end
        kept = written[: len(written) - tail]
        return kept + ("" if not plural else "S" if match["unit"].isupper() else "s")
    return _replace_parts(match, parts)


def _scale_of(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return groups.get("scale") or groups.get("scale2") or ""


def _replace_parts(match: re.Match[str], parts: dict[str, str]) -> str:
    text = match[0]
    for group in sorted(parts, key=match.start, reverse=True):
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        text = text[:start] + parts[group] + text[end:]
    return text


def write_digits(number: Decimal, like: str) -> str:
    """Return a number in digits, with as many decimals as `like`, and with commas if `like` has commas.

    If `like` has fewer than five digits, it is too short to show whether commas are used; then a number from
    10,000 gets commas.
    """
    whole, _, decimals = like.partition(".")
    commas = "," in whole or (number >= 10_000 and len(whole) < len("10000"))
    return f"{number:{',' if commas else ''}.{len(decimals)}f}"


def _write_date(match: re.Match[str], day: date) -> str:
    parts: dict[str, str] = {}
    for group, text in match.groupdict().items():
        name = group.rstrip("234")
        if not text:
            continue
        if name == "year":
            parts[group] = f"{day.year % 100:02d}" if len(text) == 2 else str(day.year)
        elif name == "month":
            parts[group] = f"{day.month:02d}" if text.isdigit() else _write_month_like(text, day.month)
        elif name == "day":
            parts[group] = f"{day.day:02d}" if len(text) == 2 and (text[0] == "0" or group == "day4") else str(day.day)
        elif name == "th":
            parts[group] = find_ordinal_ending(day.day)
    if match["first"]:
        european = int(match["first"]) > 12 or match["mark"] == "."
        numbers = (day.day, day.month) if european else (day.month, day.day)
        for group, number in zip(("first", "second"), numbers, strict=True):
            parts[group] = f"{number:02d}" if match[group][0] == "0" else str(number)
    return _replace_parts(match, parts)


def _write_month_like(text: str, month: int) -> str:
    name = MONTHS[month - 1]
    if len(text.rstrip(".")) <= 4 and text.rstrip(".").lower() not in {m.lower() for m in MONTHS}:
        name = name[:3] + ("." if text.endswith(".") and name != "May" else "")
    return name.upper() if text.isupper() else name


def find_ordinal_ending(number: int) -> str:
    """Return the suffix of an ordinal number in digits: 1st, 2nd, 3rd, 4th, 11th."""
    return "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


# ---------------------------------------------------------------- comparing


@cache
def keys_of(text: str) -> frozenset[tuple[str, str]]:
    """Return the values in a text (amounts, periods, dates and so on), each as its kind and its normal form.

    `thirty (30) days` and `30-day` have the same normal form, `30 day`.
    """
    return frozenset(value.same for value in find_values(text))


def states_any(text: str, values: Iterable[tuple[str, str]]) -> bool:
    """Return whether a text states one of the values, each a kind and a normal form: `("period", "30 day")`."""
    return not keys_of(text).isdisjoint(values)
