"""Finds, compares and rewrites the numbers, amounts, periods, dates, percentages and places of a text."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from exhibit.evidence import Span
from exhibit.evidence.document import unite_spans
from exhibit.law.language import LegalSystem, is_content, load_systems, make_word_pattern, stem
from exhibit.law.names import ABBREVIATED, DOTTED, INITIALS, SPELT

ValueKind = Literal["amount", "period", "date", "percentage", "place", "number"]

# ---------------------------------------------------------------- numbers in words

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_ABBREVIATED_SCALES = {"k": 10**3, "m": 10**6, "mn": 10**6, "bn": 10**9, "tn": 10**12}
_WORD_VALUES = dict(zip(_SMALL, range(20), strict=True)) | dict(zip(_TENS, range(20, 100, 10), strict=True))
_ONES = make_word_pattern(_SMALL[1:10])
_WORDS_BELOW_100 = rf"(?:(?:{'|'.join(_TENS)})(?:[\s-]\s?(?:{_ONES})\b)?|{make_word_pattern(_SMALL)})\b"
_WORDS_BELOW_1000 = rf"{_WORDS_BELOW_100}(?:\s{{1,3}}hundred\b(?:\s{{1,3}}(?:and\s{{1,3}})?{_WORDS_BELOW_100})?)?"
_SCALE_WORD = rf"\s{{1,3}}(?:{'|'.join(_SCALES)})\b"
# a pattern for a number in words, to use in a longer pattern that ignores case
NUMBER_WORDS = (
    rf"(?:(?:{_WORDS_BELOW_1000}{_SCALE_WORD}\s{{1,3}}(?:and\s{{1,3}})?){{0,3}}{_WORDS_BELOW_1000}(?:{_SCALE_WORD})?)"
)


def read_words(text: str) -> int | None:
    """Return the number that English words state, ignoring `and`; None if they are not a number."""
    words = re.findall(r"[a-z]+", text.lower())
    if not words or "and" in (words[0], words[-1]):
        return None
    total = current = 0
    for word in words:
        if word == "hundred":
            current = (current or 1) * 100
        elif word in _SCALES:
            total, current = total + (current or 1) * _SCALES[word], 0
        elif word in _WORD_VALUES:
            current += _WORD_VALUES[word]
        elif word != "and":
            return None
    return total + current


def write_words(number: int, like: str) -> str:
    """Return a number in words, in the style of `like`: 45 is `Forty-Five` if `like` is `Thirty-One`."""
    words = _spell(number, " and " if re.search(r"\band\b", like, re.IGNORECASE) else " ")
    if "-" not in like and re.search(rf"(?:{'|'.join(_TENS)})\s+\w", like, re.IGNORECASE):
        words = words.replace("-", " ")
    parts = re.findall(r"[A-Za-z]+", like)
    if like.isupper():
        return words.upper()
    if not parts or not parts[0][0].isupper():
        return words
    if " " in words or (len(parts) > 1 and all(part[0].isupper() for part in parts if part.lower() != "and")):
        return re.sub(r"(?!and\b)\b[a-z]+", lambda match: match[0].capitalize(), words)
    return words.capitalize()


def _spell(number: int, joint: str) -> str:
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, left = divmod(number, 10)
        return _TENS[tens - 2] + (f"-{_SMALL[left]}" if left else "")
    name, scale = max((pair for pair in [("hundred", 100), *_SCALES.items()] if pair[1] <= number), key=lambda p: p[1])
    count, left = divmod(number, scale)
    return f"{_spell(count, joint)} {name}" + (f"{joint if left < 100 else ' '}{_spell(left, joint)}" if left else "")


def takes_an(number: int) -> bool:
    """Return whether a number has the article `an`: eight, eleven, eighteen, eighty, eight hundred."""
    return _spell(number, " ").startswith(("eight", "eleven"))


# ---------------------------------------------------------------- dates

MONTHS = tuple("January February March April May June July August September October November December".split())
MONTH = f"(?:{'|'.join(MONTHS)})"  # a pattern for a month's name, for use in a longer pattern that determines case
SHORT_MONTHS = (*(month[:3].lower() for month in MONTHS if len(month) > 3), "sept")
"""Abbreviated names of months before a full stop and a day, `Jan. 5`; May has no abbreviation."""
_WORDS_TOO = frozenset({"may", "march", "mar"})  # months that are also words in lower case: "the parties may 5 times"


class Day(NamedTuple):
    year: int | None
    month: int
    day: int | None

    def is_within(self, other: "Day") -> bool:
        """Return whether another date has the same year, month and day, as far as this date states them."""
        return all(value is None or value == known for value, known in zip(self, other, strict=True))


@cache
def list_months() -> dict[str, int]:
    months = {
        name: number
        for system in load_systems()
        for number, name in enumerate(system.data.get("months", "").split(), start=1)
    }
    english = {name: number for number, month in enumerate(MONTHS, 1) for name in (month.lower(), month[:3].lower())}
    return months | english | {"sept": 9}


@cache
def _make_date_pattern() -> re.Pattern[str]:
    english = set(map(str.lower, MONTHS))
    long = {name for name in list_months() if name not in SHORT_MONTHS}
    month = rf"(?:{make_word_pattern(long)}|(?:{make_word_pattern(SHORT_MONTHS)})\.?)"
    first_letters = "".join(sorted({letter for name in long for letter in (name[0], name[0].upper())}))
    return re.compile(
        rf"(?<!\w)(?=[\d{first_letters}])(?:"  # reject most positions before the months are tried
        rf"(?P<month>{month})\s{{1,3}}(?P<day>\d{{1,2}})(?P<th>st|nd|rd|th)?(?!\w)"
        r"(?:(?:\s?,\s{0,3}|\s{1,3})(?P<year>\d{4})(?!\w))?"
        r"|(?P<day2>\d{1,2})(?:(?P<th2>st|nd|rd|th)?(?:\s{1,3}(?:day\s{1,3})?(?:of\s{1,3})?)"
        rf"(?P<month2>{month})(?!\w)(?:\s?,?\s{{1,3}}(?P<year2>\d{{4}})(?!\w))?"
        rf"|(?:\.|er|º|°)?\s{{1,3}}(?:de\s{{1,3}})?(?:(?P<month5>{month})\s{{1,3}}(?:de\s{{1,3}})?(?P<year5>\d{{4}})"
        rf"|(?P<month3>{make_word_pattern(long - english)}))(?!\w))"  # the full stop of `1. January 5` ends a label
        rf"|(?P<month6>{month}),?\s{{1,3}}(?P<year6>\d{{4}})(?!\w)"
        r"|(?<![./-])(?P<first>\d{1,2})(?P<mark>[/.])(?P<space>[ \xa0]?)(?P<second>\d{1,2})(?P=mark)(?P=space)"
        r"(?P<year3>\d{4}|\d\d)(?![\w/]|\.\d)"
        r"|(?<![.-])(?P<year4>\d{4})-(?P<month4>\d\d)-(?P<day4>\d\d)(?![\w-]))",
        re.IGNORECASE,
    )


def _find_dates(text: str) -> Iterator[tuple[re.Match[str], tuple[Day, ...]]]:
    """Yield each date with its readings: 1/2/2020 has two readings, the first with the month before the day."""
    for match in _make_date_pattern().finditer(text):
        if readings := tuple(_list_readings(match)):
            yield match, readings


def _list_readings(match: re.Match[str]) -> Iterator[Day]:
    stated = _find_group(match, "year")
    year = int(stated) if stated else None
    if match["first"]:
        first, second = int(match["first"]), int(match["second"])
        if len(stated) == 2:
            if match["space"]:
                return
            year = int(stated) + (2000 if int(stated) < 70 else 1900)
        day_first = match["mark"] == "." and second <= 12
        pairs = ((second, first),) if day_first else ((first, second), (second, first))
        yield from dict.fromkeys(Day(year, m, d) for m, d in pairs if 1 <= m <= 12 and 1 <= d <= 31)
        return
    name, day = _find_group(match, "month"), _find_group(match, "day")
    if name.lower() in _WORDS_TOO and name.islower() and not (day and year):
        return
    month = int(name) if name.isdigit() else list_months()[name.rstrip(".").lower()]
    if 1 <= month <= 12 and (not day or 1 <= int(day) <= 31):
        yield Day(year, month, int(day) if day else None)


def _to_date(day: Day) -> date | None:
    try:
        return date(day.year or 0, day.month, day.day or 0)
    except ValueError:
        return None


def find_dates(text: str) -> "list[Value]":
    """Return the full dates that a text names, in order; a date such as 1/2/2020 is read with the month first."""
    days = ((match, _to_date(readings[0])) for match, readings in _find_dates(text))
    return [
        Value("date", str(day), Span(*match.span()), match[0], Decimal(day.toordinal())) for match, day in days if day
    ]


def find_days(text: str) -> list[date]:
    """Return the full dates that a text names, in order; a date such as 1/2/2020 is read with the day first."""
    return list(filter(None, (_to_date(readings[-1]) for _, readings in _find_dates(text))))


def write_day(day: date, system: LegalSystem) -> str:
    months = system.data.get("months", "").split()
    name = months[day.month - 1].title() if months else ""
    pattern: str = system.data.get("date", "{year}-{month}-{day}")
    return pattern.format(day=day.day, month=day.month, Month=name, year=day.year)


# ---------------------------------------------------------------- finding values

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d{1,4})?|\d{1,12}(?:\.\d{1,4})?)"
_SCALE = rf"(?:\s{{1,3}}(?:{'|'.join(_SCALES)})|\s?(?:{make_word_pattern(_ABBREVIATED_SCALES)})\b)"
_BOTH = rf"\b{NUMBER_WORDS}\s{{0,3}}\(\s?{_DIGITS}\s?\)"  # `thirty (30)`
_NUMBER = rf"(?:{_BOTH}|(?<![\w.,$€£]){_DIGITS}|\b{NUMBER_WORDS})"
_NUMBER_PART = re.compile(rf"(?P<digits>{_DIGITS})(?P<scale>{_SCALE})?|\b{NUMBER_WORDS}", re.IGNORECASE)
_UNITS = {
    "minute": ("minute", 1), "hour": ("hour", 1), "day": ("day", 1), "week": ("day", 7), "month": ("month", 1),
    "quarter": ("month", 3), "year": ("month", 12),
}  # fmt: skip
_QUALIFIERS = dict.fromkeys(("business", "working", "trading"), "business ")
"""Words between a number and its unit that change the period; `calendar` and `consecutive` do not."""
_PERIOD = re.compile(
    rf"{_NUMBER}\s{{0,3}}-?\s{{0,3}}(?:(?P<sort>calendar|business|working|consecutive|full|clear|trading)[\s-]{{1,3}})?"
    rf"(?P<unit>{'|'.join(_UNITS)})s?(?![a-z])",
    re.IGNORECASE,
)
_SIGNS = {"$": "USD", "US$": "USD", "U.S.$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR"}
_CODES = "USD EUR GBP CHF CZK JPY PLN INR CAD AUD CNY SEK NOK DKK".split()
_SPELT_CURRENCIES = {
    "us dollars": "USD", "dollars": "USD", "dollar": "USD", "pounds sterling": "GBP", "pounds": "GBP", "euros": "EUR",
    "euro": "EUR", "swiss francs": "CHF", "francs": "CHF", "czech crowns": "CZK", "kronor": "SEK", "yen": "JPY",
    "kč": "CZK", "zł": "PLN",
}  # fmt: skip
_CURRENCIES = {
    form.lower(): code for form, code in (dict(zip(_CODES, _CODES, strict=True)) | _SIGNS | _SPELT_CURRENCIES).items()
}
_AMOUNT = re.compile(
    rf"(?:(?P<words>\b{NUMBER_WORDS})\s{{1,3}}(?:(?:U\.?S\.?\s)?dollars|euros|pounds(?:\ssterling)?)\s{{0,3}}\(\s?)?"
    rf"(?<![\w])(?P<sign>{make_word_pattern([*_SIGNS, *_CODES])})\s?{_DIGITS}{_SCALE}?(?![\d%]|,\d)(?P<close>\s?\))?"
    rf"|(?<![\w.,$€£])(?<!\d[ \xa0]){_DIGITS}(?<!\.\d{{3}}){_SCALE}?"  # `20.000 €`: `write_plain_numbers` first
    rf"\s{{0,3}}(?P<sign2>{make_word_pattern(['dollars', 'euros', 'euro', 'Kč', 'zł', '€', *_CODES])})(?!\w)",
    re.IGNORECASE,
)
_PER_CENT = r"per\s?cent(?:um)?"
_PERCENTAGE = re.compile(
    rf"\b{NUMBER_WORDS}(?:\s{{1,3}}{_PER_CENT})?\s{{0,3}}\(\s?{_DIGITS}\s?%?\s?\)(?:\s{{0,3}}(?:{_PER_CENT}|%))?"
    rf"|(?<![\w.,$€£]){_DIGITS}\s{{0,3}}(?:%|{_PER_CENT})|\b{NUMBER_WORDS}\s{{1,3}}{_PER_CENT}(?!\s{{0,3}}\()",
    re.IGNORECASE,
)
GROUPS = {
    "state": (
        "Alabama|Alaska|Arizona|Arkansas|California|Colorado|Connecticut|Delaware|Florida|Georgia|Hawaii|Idaho|"
        "Illinois|Indiana|Iowa|Kansas|Louisiana|Maine|Maryland|Michigan|Minnesota|Mississippi|Missouri|Montana|"
        "Nebraska|Nevada|New Hampshire|New Jersey|New Mexico|New York|North Carolina|North Dakota|Ohio|Oklahoma|"
        "Oregon|Rhode Island|South Carolina|South Dakota|Tennessee|Texas|Utah|Vermont|Washington|West Virginia|"
        "Wisconsin|Wyoming"
    ).split("|"),
    "commonwealth": "Kentucky|Massachusetts|Pennsylvania|Virginia".split("|"),
    "province": "Alberta|British Columbia|Manitoba|New Brunswick|Nova Scotia|Ontario|Saskatchewan".split("|"),
    "country": (
        "Austria|Australia|Belgium|Canada|China|Denmark|England|Finland|France|Germany|Hong Kong|India|Ireland|Israel|"
        "Italy|Japan|Luxembourg|New Zealand|Norway|Poland|Portugal|Scotland|Singapore|Spain|Sweden|Switzerland|Taiwan"
    ).split("|"),
}  # places by kind: in a clause on governing law, a place can be replaced by another of its kind
_PLACES = {name: group for group, names in GROUPS.items() for name in names}
_NAMES = "|".join(name.replace(" ", r"\s{1,3}") for name in sorted(_PLACES, key=len, reverse=True))
# case-sensitive, because `china` is not a place, and ignoring case would take three times as long
_PLACE = re.compile(rf"(?=[A-Z])(?<!\w)(?:{_NAMES}|{_NAMES.upper().replace(chr(92) + 'S', chr(92) + 's')})(?!\w)")
_MAX_NUMBER_WORD_CHARS = 12  # including a space: `seventeen `
_WORD_BEFORE = re.compile(rf"\b{NUMBER_WORDS}\s+$", re.IGNORECASE)


@dataclass(frozen=True)
class Value:
    """A typed value in a text; two values are equal if their `kind` and `key` are: `30 days` and `thirty (30) days`."""

    kind: ValueKind
    key: str  # one form for all spellings: `30 day`, `10 business day`, `USD 5000000`
    span: Span
    text: str
    number: Decimal = Decimal(0)
    unit: str = ""  # the unit of a period as written, the currency of an amount, or the kind of a place

    @property
    def same(self) -> tuple[str, str]:
        return self.kind, self.key


def find_values(text: str, *, numbers: bool = False) -> list[Value]:
    """Return the values of a text in order.

    Of overlapping values, the first is returned; if several have the same start, the longest of these is returned.
    """
    values = find_dates(text)
    for kind, pattern, unit in _KINDS if numbers else _KINDS[:-1]:
        for window in _list_windows(text, unit) if unit else [Span(0, len(text))]:
            read = (_read_value(kind, match) for match in pattern.finditer(text, *window))
            values += filter(None, read)
    values.sort(key=lambda value: (value.span.start, -value.span.end))
    distinct: list[Value] = []
    for value in values:
        if not distinct or value.span.start >= distinct[-1].span.end:
            distinct.append(value)
    return distinct


@cache
def keys_of(text: str) -> frozenset[tuple[str, str]]:
    return frozenset(value.same for value in find_values(text))


def _list_windows(text: str, unit: re.Pattern[str]) -> list[Span]:
    """Return the ranges around the signs or units of a kind of value, so that only these ranges are searched."""
    around = ((max(0, m.start() - _CHARS_BEFORE_UNIT), m.end() + _CHARS_AFTER_UNIT) for m in unit.finditer(text))
    return unite_spans(Span(start, min(len(text), end)) for start, end in around)


def _find_group(match: re.Match[str], name: str) -> str:
    """Return the text of the first group that matched: `name`, or `name` with a number from 2 to 6."""
    groups = match.groupdict()
    return next((groups[key] for key in (name, *(f"{name}{n}" for n in range(2, 7))) if groups.get(key)), "")


def _find_scale(part: re.Match[str]) -> int:
    return (_SCALES | _ABBREVIATED_SCALES).get((part["scale"] or "").strip().lower(), 1)


def _read_stated_number(text: str) -> Decimal | None:
    """Return the number in words, digits or both, as in `thirty (30)`; None if words and digits differ."""
    numbers = {
        Decimal(part["digits"].replace(",", "")) * _find_scale(part)
        if part["digits"]
        else Decimal(read_words(part[0]) or 0)
        for part in _NUMBER_PART.finditer(text)
    }
    return numbers.pop() if len(numbers) == 1 else None


def _read_value(kind: ValueKind, match: re.Match[str]) -> Value | None:
    number = Decimal(0) if kind == "place" else _read_stated_number(match[0])
    if number is None:
        return None
    key, unit = f"{number.normalize():f}", ""
    if kind == "amount":
        if match["words"] and not match["close"]:
            return None
        if match["close"] and not match["words"]:  # the closing bracket is not part of the amount
            match = _AMOUNT.match(match.string, match.start(), match.start("close")) or match
        unit = _CURRENCIES[(match["sign"] or match["sign2"]).lower()]
        key = f"{unit} {key}"
    elif kind == "period":
        before = match.string[max(0, match.start() - _MAX_NUMBER_WORD_CHARS) : match.start()]
        if match[0][0].isdigit() and _WORD_BEFORE.search(before):
            return None  # "sixty 60 days" is a drafting error that no rule can resolve
        unit, qualifier = match["unit"].lower(), _QUALIFIERS.get((match["sort"] or "").lower(), "")
        base, factor = _UNITS[unit]
        key = f"{(number * factor).normalize():f} {qualifier}{base}"
    elif kind == "place":
        words = " ".join(match[0].split())
        key = words if words in _PLACES else words.title()
        unit = _PLACES[key]
    elif match[0].lower() == "one" or (kind == "percentage" and not re.search(r"(?i)%|cent", match[0])):
        return None  # "one" is mostly a pronoun
    return Value(kind, key, Span(*match.span()), match[0], number, unit)


_CHARS_BEFORE_UNIT, _CHARS_AFTER_UNIT = 120, 60
"""The most characters of a number and its bracket before and after a unit or sign."""
# Each kind with the pattern of its values, and the pattern of signs or units if each of its values has one.
_KINDS: tuple[tuple[ValueKind, re.Pattern[str], re.Pattern[str] | None], ...] = (
    (
        "amount", _AMOUNT,
        re.compile(rf"[$€£¥₹]|(?<![a-z])(?:{make_word_pattern([*_CODES, *_SPELT_CURRENCIES])})", re.IGNORECASE),
    ),
    ("percentage", _PERCENTAGE, re.compile(r"%|per\s?cent", re.IGNORECASE)),
    ("period", _PERIOD, re.compile(rf"(?=[MHDWQY])(?:{'|'.join(_UNITS)})", re.IGNORECASE)),
    ("place", _PLACE, None),
    ("number", re.compile(rf"{_NUMBER}{_SCALE}?(?![\w]|\.\d)", re.IGNORECASE), None),
)  # fmt: skip

# ---------------------------------------------------------------- writing values


def write_value(value: Value, new: Decimal | str) -> str:
    """Return a value's text with another number, date or place; all other characters stay the same."""
    if isinstance(new, str):
        return new.upper() if value.text.isupper() else new
    if value.kind == "date":
        match = _make_date_pattern().fullmatch(value.text)
        return _write_date(match, date.fromordinal(int(new))) if match else value.text

    def write_part(part: re.Match[str]) -> str:
        if part["digits"] is None:
            return write_words(int(new), part[0])
        return write_digits(new / _find_scale(part), part["digits"]) + (part["scale"] or "")

    return _NUMBER_PART.sub(write_part, value.text)


def write_digits(number: Decimal, like: str) -> str:
    """Return a number in digits, with as many decimals as `like`.

    It has commas if `like` has commas, or if `like` is too short to need them and the number is at least 10,000.
    """
    whole, _, decimals = like.partition(".")
    commas = "," in whole or (number >= 10_000 and len(whole) < len("10000"))
    return f"{number:{',' if commas else ''}.{len(decimals)}f}"


def _write_date(match: re.Match[str], day: date) -> str:
    day_first = match["first"] and (int(match["first"]) > 12 or (match["mark"] == "." and int(match["second"]) <= 12))
    order = {"first": "day", "second": "month"} if day_first else {"first": "month", "second": "day"}
    written = match[0]
    for group in sorted(filter(match.group, match.re.groupindex), key=match.start, reverse=True):
        text, name = match[group], order.get(group, group.rstrip("23456"))
        if name == "year":
            part = str(day.year)[-len(text) :]
        elif name == "month" and not text.isdigit():
            part = _write_month_like(text, day.month)
        elif name == "th":
            part = "th" if 10 <= day.day <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
        elif name in ("day", "month"):
            number = day.day if name == "day" else day.month
            part = f"{number:02d}" if text[0] == "0" or group in ("day4", "month4") else str(number)
        else:
            continue
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        written = written[:start] + part + written[end:]
    return written


def _write_month_like(text: str, month: int) -> str:
    name = MONTHS[month - 1]
    if text.rstrip(".").lower() in SHORT_MONTHS:
        name = name[:3] + ("." if text.endswith(".") and name != "May" else "")
    return name.upper() if text.isupper() else name.lower() if text.islower() else name


# ---------------------------------------------------------------- comparing texts

# Numbers whose point or space can only be a thousands separator: `1.500,50`, `2.500.000`.
_EUROPEAN = re.compile(r"(?<![\w.,])\d{1,3}(?:(?:[.\xa0 ]\d{3})+,\d{1,2}|(?:\.\d{3}){2,})(?![\w.,]*\d)")
# A space or point that is certainly a thousands separator only beside a currency: `EUR 250 000`, `20.000 €`.
_SPACED = re.compile(
    r"(?i)(?:(?:[€$£]|\b(?:eur|usd|gbp|czk|chf|pln|sek|nok|dkk))\s?\d{1,3}(?: \d{3})+(?![\w.,]*\d)"
    r"|(?<![\w.,])(?<!\d )\d{1,3}(?:[ .]\d{3})+(?=\s?(?:[€$£]|kč|zł|(?:eur|euros?|usd|gbp|czk|chf|pln|sek|nok|dkk)\b)))"
)
_APOSTROPHE = re.compile(r"(?<=\d)['’](?=\d{3})")  # Swiss: `250'000`
_SCANNED = re.compile(r"(?<!\w)\d(?=[\d,.]{0,20}O)[\dO]*(?:[.,][\dO]{3})*(?!\w)")
"""A number in which a scanner read the letter O for a zero: `25O,OOO`."""
_FIGURE = re.compile(
    r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+)((?:\.\d+)*)(?:(?:st|nd|rd|th)\b)?(?:\s?(thousand|million|mn|billion|"
    rf"bn|trillion|tn|m|k)\b)?|\b{NUMBER_WORDS}"
)


def write_plain_numbers(text: str) -> str:
    """Return a text in NFKC whose numbers have only a decimal point: `2500000` for `2.500.000`."""
    text = _APOSTROPHE.sub("", unicodedata.normalize("NFKC", text))
    text = _SCANNED.sub(lambda match: match[0].replace("O", "0"), text)
    text = _EUROPEAN.sub(lambda match: re.sub(r"[.\s]", "", match[0]).replace(",", "."), text)
    return _SPACED.sub(lambda match: re.sub(r"(?<=\d)[ .](?=\d)", "", match[0]), text)


_SPELT_AMOUNT = re.compile(
    rf"(?i)(?P<number>\b{NUMBER_WORDS}|\b(?<![,.])\d[\d,.]*(?:\s(?:thousand|million|billion))?)\s+(?P<unit>{'|'.join(_SPELT_CURRENCIES)})\b(?!\s+cents?\b)"
)
_DOLLARS = {"HK": "HKD", "A": "AUD", "C": "CAD", "NZ": "NZD", "S": "SGD", "R": "BRL"}
_DOLLAR_SIGN = re.compile(rf"(?<!\w)({'|'.join(_DOLLARS)})\$\s?(?=\d)")


def write_plain_amounts(text: str) -> str:
    """Return a text with plain numbers and with currency codes: `GBP 1000000` for `one million pounds`."""
    text = write_plain_numbers(_DOLLAR_SIGN.sub(lambda match: f"{_DOLLARS[match[1]]} ", text))
    return _SPELT_AMOUNT.sub(_write_amount, text)


def _write_amount(match: re.Match[str]) -> str:
    number = read_words(match["number"])
    before = match.string[max(0, match.start() - 9) : match.start()]
    if before.rstrip().lower().endswith("half"):  # "one and a half million euros"
        return match[0]
    return f"{match['number'] if number is None else number} {_SPELT_CURRENCIES[match['unit'].lower()]}"


def _write_figure(match: re.Match[str]) -> str:
    """Return a number in plain digits: 30 for `thirty`, 1500000 for `1.5 million`."""
    whole, fraction, scale = match.groups()
    if whole is None:
        return str(read_words(match[0]))
    whole = whole.replace(",", "").lstrip("0") or "0"
    if set(fraction) <= {".", "0"}:  # 5.00 is 5; but section 5.10 is not section 5.1
        fraction = ""
    if scale and fraction.count(".") <= 1:
        return f"{(Decimal(whole + fraction) * (_SCALES | _ABBREVIATED_SCALES)[scale]).normalize():f}"
    return whole + fraction


_TOKEN = re.compile(r"\d+(?:\.\d+)*|[^\W\d_]+")
_DOTTED = re.compile(r"\b[a-z]\.(?:[a-z]\.)+")  # l.l.c.
_MEASURE = re.compile(
    r"(?<![\d.])(?P<number>\d[\d.]*) (?:(?:(?P<business>business|working)|calendar|clear|consecutive|full) )?"
    r"(?P<unit>(?:day|week|month|year|hour|minute)(?=s?\b|ly\b)|percent\b)"
)
_DENIALS = frozenset("not no never neither nor none cannot without".split())
# The normal form of each currency and of per cent, for all spellings.
_WRITTEN: dict[str, re.Pattern[str]] = {
    "usd": re.compile(r"us\s?\$|\$|\b(?:us )?dollars?\b"),
    "gbp": re.compile(r"£|\bpounds?(?: sterling)?\b"),
    "eur": re.compile(r"€|\beuros?\b"),
    "percent": re.compile(r"%|\bper\s?cent\b"),
}
_COMPANY_FORMS = frozenset(form.replace(".", "").lower() for form in (*ABBREVIATED, *SPELT, *INITIALS, *DOTTED))
_YES_NO = frozenset({"yes", "no"})


@dataclass(frozen=True)
class Statement:
    """The words, numbers and dates of a text in normal form, so that two texts can be compared."""

    tokens: tuple[str, ...]  # every word and number outside dates, in order
    terms: frozenset[str]  # numbers, and the stems of content words; company names without their legal form
    measures: frozenset[tuple[str, str]]  # numbers with a unit; `business day` and `day` are different units
    dates: tuple[frozenset[Day], ...]  # each date's readings: 1/2/2020 has two, `May 2020` has no day
    numbers: frozenset[str]  # every number, including those inside dates
    loose: frozenset[str]  # numbers outside dates; the word `one` is a pronoun, not a number


@lru_cache(maxsize=4096)  # cached, because the same answers and passages are compared many times
def read_statement(text: str) -> Statement:
    plain = write_plain_numbers(text)
    dates, pieces, end = [], [], 0
    for match, readings in _find_dates(plain):
        dates.append(frozenset(readings))
        pieces += [plain[end : match.start()], " " * len(match[0])]
        end = match.end()
    undated = "".join([*pieces, plain[end:]]).lower()
    loose = {_write_figure(match) for match in _FIGURE.finditer(undated) if match[0] != "one"}
    numbers = map(_write_figure, _FIGURE.finditer(plain.lower()))
    words = _FIGURE.sub(lambda match: _write_figure(match) + " " * (match[1] is not None), undated)
    for word, pattern in _WRITTEN.items():
        words = pattern.sub(f" {word} ", words)
    words = _DOTTED.sub(lambda match: match.group().replace(".", "") + " ", words)
    found = _TOKEN.findall(words)
    # thirty (30) is one number
    tokens = [token for at, token in enumerate(found) if not (at and token[0].isdigit() and token == found[at - 1])]
    content = (token for token in tokens if is_content(token) and token not in _COMPANY_FORMS)
    terms = frozenset([*map(stem, content), *(token for token in tokens if token[0].isdigit())])
    measures = frozenset(
        (match["number"], f"business {match['unit']}" if match["business"] else match["unit"])
        for match in _MEASURE.finditer(" ".join(tokens))
    )
    return Statement(tuple(tokens), terms, measures, tuple(dates), frozenset(numbers), frozenset(loose))


def _has_dates(wanted: Statement, stated: Statement) -> bool:
    known = [day for readings in stated.dates for day in readings]
    return all(any(day.is_within(other) for day in readings for other in known) for readings in wanted.dates)


def has_missing_figures(claim: str, evidence: str) -> bool:
    """Return whether the evidence lacks a number or date of a claim, or states a number of the claim in another unit.

    Only units with the same last word are compared: evidence with `10 days` does not support `10 business days`.
    """
    wanted = read_statement(claim)
    # half of all claims have no figures: skip the slow reading of the evidence
    if not wanted.loose and not wanted.dates:
        return False
    stated = read_statement(evidence)
    if wanted.loose - stated.numbers or not _has_dates(wanted, stated):
        return True
    known = {(number, unit.split()[-1]) for number, unit in stated.measures}
    return any((number, unit.split()[-1]) in known for number, unit in wanted.measures - stated.measures)


def states_answer(expected: str, text: str) -> bool | None:
    """Return whether a text states an expected answer, by its words, numbers and dates; None if undecided."""
    wanted, stated = read_statement(expected), read_statement(text)
    if not wanted.tokens and not wanted.dates:
        return None
    if wanted.tokens[:1] and wanted.tokens[0] in _YES_NO:
        yes_or_no = stated.tokens[0] if stated.tokens[:1] and stated.tokens[0] in _YES_NO else None
        if yes_or_no not in (None, wanted.tokens[0]):
            return False
        if not wanted.terms:
            return None if yes_or_no is None else True
    if not wanted.terms and not wanted.dates:
        return f" {' '.join(wanted.tokens)} " in f" {' '.join(stated.tokens)} "
    currencies = frozenset({"usd", "gbp", "eur"})
    terms = wanted.terms if stated.terms & currencies else wanted.terms - currencies
    if _DENIALS.intersection(wanted.tokens) and not _DENIALS.intersection(stated.tokens):
        return False
    return _has_dates(wanted, stated) and terms <= stated.terms and wanted.measures <= stated.measures
