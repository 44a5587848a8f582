"""Lists the numbers, places and dates that can replace a value of a document."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal

from exhibit.law.values import GROUPS, Value, find_values, write_value

UNSURE_WORDING = "no rule tells how the sentence reads with another value"

_CHOICES: dict[str, tuple[int, ...]] = {
    "minute": (10, 15, 20, 30, 45, 60, 90),
    "hour": (6, 12, 24, 36, 48, 72, 96),
    "day": (3, 5, 7, 10, 14, 15, 20, 21, 25, 30, 40, 45, 60, 75, 90, 100, 120, 150, 180, 240, 270, 365),
    "week": (2, 3, 4, 6, 8, 10, 12, 16, 26),
    "month": (2, 3, 4, 5, 6, 9, 12, 15, 18, 24, 30, 36, 48, 60),
    "quarter": (2, 3, 4, 6, 8),
    "year": (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30),
}
"""Numbers that contracts use with each unit."""
_FACTORS = tuple(map(Decimal, ("0.4", "0.5", "0.6", "0.75", "0.8", "1.2", "1.25", "1.5", "2", "2.5", "3")))
"""Factors for a changed amount, which keep it plausible."""


class UnsureError(Exception):
    """Raised with the reason if no rule can change a value with certainty."""


Key = tuple[str, str]


def replace_key(value: Value, new: Decimal | str) -> Key:
    """Return the key (kind and normal form) that a value has after `new` replaces its number or place name."""
    if isinstance(new, str):
        return value.kind, new
    changed = find_values(write_value(value, new))
    return changed[0].same if changed else (value.kind, "")


def list_options(value: Value) -> Sequence[Decimal | str]:
    """Return the numbers or place names that can replace a value; the value must not be a date.

    Raise UnsureError if the value cannot be replaced safely, such as `100%` or a period of 1.5 years.
    """
    if value.kind == "place":
        return [name for name in GROUPS[value.unit] if name != value.key]
    if value.kind == "period":
        if value.number != int(value.number) or value.number < 1:
            raise UnsureError(UNSURE_WORDING)
        near = [n for n in _CHOICES[value.unit] if Decimal("0.4") <= n / value.number <= 2 or value.number == 1]
        return [Decimal(n) for n in near if n != value.number and (value.number > 1 or n <= 5)]
    return _list_percentages(value) if value.kind == "percentage" else _list_amounts(value)


def _list_percentages(value: Value) -> list[Decimal]:
    number = value.number
    if number in (0, 100) or number > 100:
        raise UnsureError(UNSURE_WORDING)  # "100%" means all, and is no figure among others
    if number != int(number):
        if "." not in value.text:
            raise UnsureError(UNSURE_WORDING)
        places = Decimal(1).scaleb(-len(value.text.rpartition(".")[2].rstrip("%) percntumPERCNTUM") or "0"))
        options = [(number * factor).quantize(places) for factor in _FACTORS]
        return [one for one in options if 0 < one < 100 and one != number]
    steps = range(2, 13) if number <= 10 else range(15, 100, 5)
    return [Decimal(n) for n in steps if n != number and (Decimal("0.3") <= n / number <= 3 or number == 1)]


def _list_amounts(value: Value) -> list[Decimal]:
    """Return candidates for a changed amount: the amount multiplied by several factors.

    A candidate may have at most one significant digit more than the amount, and has decimals only if the amount
    has decimals.
    """
    digits = len(f"{value.number.normalize():f}".rstrip("0").replace(".", "").rstrip("0")) + 1
    options = [value.number * factor for factor in _FACTORS]
    exponent = Decimal(value.number).as_tuple().exponent
    return [
        one
        for one in options
        if one and len(f"{one.normalize():f}".rstrip("0").replace(".", "")) <= digits
        and (one == int(one) or (isinstance(exponent, int) and exponent < 0))
    ]  # fmt: skip


def move_months(day: date, months: int) -> date:
    """Return a date moved by a number of months; the last day of a month stays the last day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    following = date(year + (month == 11), (month + 1) % 12 + 1, 1)
    last = date.fromordinal(following.toordinal() - 1).day
    was_last = date.fromordinal(day.toordinal() + 1).day == 1
    return date(year, month + 1, last if was_last else min(day.day, last))
