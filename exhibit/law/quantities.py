"""Figures with their units, such as `$500`, `30 days`, `5%` or `section 8`.

A figure is an amount with its currency, a quantity with its unit, a percentage, or a number with a label
such as `section`, `page` or `class`.
"""

import re
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from exhibit.law.figures import SMALL_NUMBERS, Day, find_figures, write_in_digits

_CURRENCIES = {
    "usd": r"us\s?\$|\$|\b(?:us )?dollars?\b|\busd\b", "gbp": r"£|\bpounds?(?: sterling)?\b|\bgbp\b",
    "eur": r"€|\beuros?\b|\beur\b", "czk": r"\bczk\b|\bkč|\bczech crowns?\b", "chf": r"\bchf\b|\bswiss francs?\b",
    "jpy": r"¥|\byen\b|\bjpy\b", "pln": r"\bpln\b|\bzłotych\b|\bzł\b", "inr": r"₹|\binr\b|\brupees?\b",
    "cad": r"\bcad\b",
    "aud": r"\baud\b", "cny": r"\brmb\b|\bcny\b|\byuan\b",
}  # fmt: skip
_WRITTEN = [(re.compile(pattern), f" {code} ") for code, pattern in _CURRENCIES.items()]
_WRITTEN += [
    (re.compile(r"%|\bper\s?cent\b"), " percent "),
    (re.compile(r"\bbasis points?\b|\bbps\b"), " basispoints "),
]
_DAY, _MONTH = Decimal(24), Decimal(1)
_TIMES = {
    "minute": ("hour", Decimal(1) / 60), "hour": ("hour", Decimal(1)), "day": ("hour", _DAY),
    "week": ("hour", 7 * _DAY),
    "fortnight": ("hour", 14 * _DAY), "month": ("month", _MONTH), "quarter": ("month", Decimal(3)),
    "year": ("month", Decimal(12)), "decade": ("month", Decimal(120)),
}  # fmt: skip
"""Units of time, with their factor in a common unit: 24 months are two years."""
_MEASURES = {
    "millimetre": ("metre", Decimal("0.001")), "centimetre": ("metre", Decimal("0.01")), "metre": ("metre", Decimal(1)),
    "kilometre": ("metre", Decimal(1000)), "gram": ("gram", Decimal(1)), "kilogram": ("gram", Decimal(1000)),
    "tonne": ("gram", Decimal(10**6)), "litre": ("litre", Decimal(1)), "hectolitre": ("litre", Decimal(100)),
}  # fmt: skip
_SPELLINGS = {"mm": "millimetre", "cm": "centimetre", "km": "kilometre", "kg": "kilogram", "gramme": "gram"}
_SPELLINGS |= {name.replace("tre", "ter"): name for name in _MEASURES if name.endswith("tre")}
_SPELLINGS |= {"kilogramme": "kilogram", "hl": "hectolitre"}
"""Metric units, and their other spellings; miles and pounds are not converted, as nobody does so exactly."""
UNITS = frozenset(_TIMES) | frozenset(_MEASURES) | frozenset(_SPELLINGS)
SIGNS = frozenset(_CURRENCIES) | {"percent", "basispoints", "cents"}
"""Units that are written as one word in the normalised text."""
_FRACTIONS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "tenth": 10}
_LABELS = frozenset(
    "section sections s sec clause clauses article articles art paragraph paragraphs para § page pages p pp part "
    "chapter rule "
    "footnote note fn schedule exhibit annex appendix class series tier phase level item figure table nth".split()
)
PLACES = _LABELS - frozenset("nth class series tier phase level schedule exhibit annex appendix".split())
"""Labels of places, such as sections: an answer may add them."""
_BOUNDS = [
    ("at least", r"at least|no[t]? (?:less|fewer|earlier) than|(?:a )?minimum(?: of)?|from"),
    (
        "at most",
        r"at most|up to|no[t]? (?:more|later|greater) than|no[t]? exceed\w*|(?:a )?maximum(?: of)?|within|"
        r"at the latest|until",
    ),
    ("more than", r"more than|over|above|exceeding|exceeds?|longer than|greater than|older than|in excess of|plus"),
    ("less than", r"less than|fewer than|under|below|younger than|shorter than|minus"),
]
_BEFORE = [
    (name, re.compile(rf"\b(?:{words})(?:\s(?:the|a|an|age|of|for|flights?|usd|eur|gbp|czk|chf)){{0,3}}\s*$"))
    for name, words in _BOUNDS
]
_RANGE = r"(?:\s(?!to\b|and\b)\w{1,12}){0,3}"
_LOWER_END = rf"between(?:\s\w{{1,12}})?\s[\d.]{{1,15}}{_RANGE}\sand"
_BEFORE += [
    ("at most", re.compile(rf"\b(?:{_LOWER_END}|[\d.]{{1,15}}{_RANGE}\s(?:up )?to|\d\s?[–-])(?:\s\w{{1,12}})?\s*$")),
    ("at least", re.compile(r"\bbetween(?:\s\w{1,12}){0,2}\s*$")),
]
"""The two ends of a range: "between 3 and 7", "3 to 7", "3–7"."""
_AFTER = [("at least", re.compile(rf"{_RANGE}\s(?:to|–)(?:\s(?:eur|usd|gbp|czk|chf))?\s\d|\s?[–-]\s?\d")),
          ("at least", re.compile(r"(?:\s\w{1,12}){0,3}\s(?:(?:or|and) (?:more|older|above|over)|upwards?)\b")),
          ("at most", re.compile(r"(?:\s\w{1,12}){0,3}\sor (?:fewer|less|younger|below)\b"))]  # fmt: skip
_NEAR = 40
"""Characters before a number that may contain its bound: "not less than the sum of" has 24."""
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)*(?![\w])")
_TOKEN = re.compile(r"[^\W\d_]+|§|\d+(?:\.\d+)*")
KINDS = {
    "business": "business",
    "working": "business",
    "calendar": "",
    "clear": "",
    "consecutive": "",
    "full": "",
    "further": "",
}
_A_UNIT = re.compile(
    r"(?<!end )(?<!beginning )(?<!start )(?<!expiry )(?<!day )(?<!close )"
    r"\b(within|for|in|of|after|than|giving|with|on|from|to|about) an? "
    r"(?=(?:minute|hour|day|week|month|quarter|year|decade|fortnight)s?\b)"
)
_ONCE = [
    (re.compile(r"\bonce\b"), "1 times"),
    (re.compile(r"\btwice\b"), "2 times"),
    (re.compile(r"\b(?:one )?dozen\b"), "12"),
]
_ONE_OF = re.compile(r"\b(?:a|1) (third|quarter|fourth|fifth|sixth|tenth)\b(?= of\b)")
_SCALED_HALF = re.compile(rf"\b({'|'.join(SMALL_NUMBERS)}|\d{{1,4}}) and a half (thousand|million|billion)\b")
_FRACTION = re.compile(r"\b(\d+)[\s-](third|quarter|fourth|fifth|sixth|tenth)s\b(?!\s\d)")
_AND_HALF = re.compile(r"\b(\d+) and (?:a|1) half\b")
_NTH = re.compile(r"\b(\d{1,3})(?:st|nd|rd|th)\b(?=\s(?:day|week|month|year))")
_CENTS = re.compile(r"\b(\d{1,12}) (usd|eur) and (\d\d?) cents?\b")
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))?\s?([ap])\.?\s?m\b\.?")
_SPELT_ON = re.compile(r"(?<![\w.])(\d{1,12}0{6}) (\d{4,6})(?![\w.])")
"""The digits of `three million five hundred thousand` before they are added."""
_ORDINAL = re.compile(
    r"\b(?:(twen|thir|for|fif|six|seven|eigh|nine)tieth|(first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|"
    r"eleventh|twelfth|thirteenth|fourteenth|fifteenth))(?=\s(?:day|week|month|year))"
)
_ORDINALS = {
    word: number
    for number, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth "
        "fourteenth fifteenth".split(),
        1,
    )
}


class Quantity(NamedTuple):
    """A figure with its unit."""

    kind: str
    """`money`, `percent`, `time`, `measure`, `label`, or `count`."""
    value: Decimal | str
    unit: str = ""
    """The currency, the unit of time with its kind of days, or the label."""
    bound: str = ""
    """`at least`, `at most`, `more than`, `less than`, or empty."""
    written: str = ""
    """The figure's digits as in the normalised text."""

    @property
    def is_place(self) -> bool:
        """Whether the figure is the number of a section, a page or a similar part of a document.

        A reply may contain such a reference even if the expected answer does not.
        """
        return self.kind == "label" and self.unit in PLACES

    @property
    def dimension(self) -> tuple[str, str]:
        """The dimension of a figure: its kind and, if the kind is `label` or `measure`, its unit.

        Only figures of the same dimension are comparable.
        """
        return self.kind, self.unit if self.kind in ("label", "measure") else ""

    def equals(self, other: "Quantity", scale: Decimal = Decimal(1)) -> bool:
        """Return whether two figures are equal.

        With `scale` 10**6, 5 also equals 5,000,000: one of the two may be written in millions.
        """
        if self.kind != other.kind and "count" not in (self.kind, other.kind):
            return False
        if self.kind == other.kind and self.unit != other.unit and self.unit and other.unit:
            return False
        if isinstance(self.value, str) or isinstance(other.value, str):
            return self.value == other.value
        return self.value == other.value or self.value * scale == other.value or self.value == other.value * scale

    def contradicts_bound(self, other: "Quantity") -> bool:
        """Return whether one figure is a lower and the other an upper bound."""
        sides = [
            {"at least": 1, "more than": 1, "at most": -1, "less than": -1}.get(one.bound, 0) for one in (self, other)
        ]
        return sides[0] * sides[1] < 0


class Stated(NamedTuple):
    """The figures of a text, its dates, and the text without its dates in a normal form (`plain`).

    The normal form is in lower case, with number words as digits: `Thirty days` becomes `30 days`.
    """

    quantities: tuple[Quantity, ...]
    dates: tuple[frozenset[Day], ...]
    plain: str


def find_quantities(text: str) -> Stated:
    """Return the figures of a text, each with its unit, and the dates of the text.

    `thirty (30) days` is one figure, 30 days, and `two million dollars` is also one figure.
    """
    found = find_figures(text)
    plain = _write_digits(found.rest)
    tokens = list(_TOKEN.finditer(plain))
    read: list[Quantity] = []
    for number, token in enumerate(tokens):
        words = [one[0] for one in tokens[max(0, number - 2) : number]]
        following = [one[0] for one in tokens[number + 1 : number + 5]]
        if token[0][0].isdigit():
            if words and token[0] == words[-1]:
                continue  # the repetition in "thirty (30)"
            read.append(_make_quantity(token, words, following, plain))
        elif len(token[0]) == 1 and words and words[-1] in _LABELS - PLACES and token[0] != "s":
            read.append(Quantity("label", token[0], words[-1], written=token[0]))
    return Stated(tuple(read), found.dates, plain)


def _write_digits(rest: str) -> str:
    rest = _SCALED_HALF.sub(lambda match: f"{SMALL_NUMBERS.get(match[1], match[1])}.5 {match[2]}", rest)
    plain = _A_UNIT.sub(r"\1 1 ", _CLOCK.sub(_write_hours, rest.replace("\xa0", " ")))
    plain = _ORDINAL.sub(lambda match: f"nth {_ORDINALS.get(match[0], match[0])}", plain)
    plain = _NTH.sub(r"nth \1", plain)
    for pattern, words in _ONCE:
        plain = pattern.sub(words, plain)
    plain = write_in_digits(plain)
    plain = _AND_HALF.sub(lambda match: f"{match[1]}.5", " ".join(plain.split()))
    plain = _SPELT_ON.sub(lambda match: str(int(match[1]) + int(match[2])), plain)
    plain = _FRACTION.sub(lambda match: f"{100 * int(match[1]) / _FRACTIONS[match[2]]:g} percent", plain)
    plain = _ONE_OF.sub(lambda match: f"{100 / _FRACTIONS[match[1]]:g} percent", plain)
    plain = re.sub(r"\bhalf (?:a|1) year\b|\bhalf-year\b(?= from| after)", "6 months", plain)
    for pattern, words in _WRITTEN:
        plain = pattern.sub(words, plain)
    return _CENTS.sub(lambda match: f"{match[2]} {match[1]}.{int(match[3]):02}", " ".join(plain.split()))


def _write_hours(match: re.Match[str]) -> str:
    """Return a time of day on the 24-hour clock: `3.30 p.m.` becomes `15:30`."""
    return f"{int(match[1]) % 12 + (12 if match[3] == 'p' else 0)}:{match[2] or '00'}"


def _make_quantity(token: re.Match[str], before: list[str], after: list[str], plain: str) -> Quantity:
    """Return a number as label, money, percentage, time, measure or count, depending on the words around it."""
    digits, value = token[0], _parse_value(token[0])
    bound = _bound(plain, token.start(), token.end())
    if before and before[-1] in _LABELS:
        return Quantity("label", digits, before[-1], written=digits)
    near = [word for word in (*before[-1:], *after[:1]) if word in _CURRENCIES]
    if near:
        cents = after[1:2] in (["cent"], ["cents"])
        amount = value / 100 if cents and isinstance(value, Decimal) else value
        return Quantity("money", amount, near[0], bound, digits)
    if after[:1] == ["basispoints"] and isinstance(value, Decimal):
        return Quantity("percent", value / 100, "", bound, digits)
    if after[:1] == ["percent"] or after[:1] == ["percentage"]:
        return Quantity("percent", value, "points" if after[:1] == ["percentage"] else "", bound, digits)
    kinds = [KINDS[word] for word in after[:2] if word in KINDS]
    rest = [word for word in after if word not in KINDS and not word.isdigit()]
    unit = rest[0].removesuffix("s") if rest else ""
    if unit in _TIMES and isinstance(value, Decimal) and rest[1:2] != ["old"]:
        family, size = _TIMES[unit]
        business = "business " if "business" in kinds else ""
        return Quantity("time", value * size, f"{business}{family}", bound, digits)
    unit = _SPELLINGS.get(unit, unit)
    if unit in _MEASURES and isinstance(value, Decimal):
        family, size = _MEASURES[unit]
        return Quantity("measure", value * size, family, bound, digits)
    return Quantity("count", value, "", bound, digits)


def _parse_value(digits: str) -> Decimal | str:
    try:
        return Decimal(digits).normalize()
    except InvalidOperation:  # 9.2.1 is the number of a section
        return digits


def _bound(plain: str, start: int, end: int) -> str:
    near = plain[max(0, start - _NEAR) : start]
    for name, pattern in _BEFORE:
        if pattern.search(near):
            return name
    for name, pattern in _AFTER:
        if pattern.match(plain[end : end + _NEAR]):
            return name
    return ""
