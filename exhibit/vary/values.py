"""Changes the values that answer a document's questions, wherever the document states the same fact."""

import random
import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from exhibit.converters import RawDocument, RawRow
from exhibit.law.language import list_content_words
from exhibit.law.values import GROUPS, Value, find_values, takes_an, write_value
from exhibit.vary.corpus import Edit, EditedText, list_gold

_find_values = lru_cache(maxsize=4)(find_values)  # cached: a contract with amendments is read several times

Key = tuple[str, str]
UNSURE_WORDING = "no rule can put another value into the sentence"
NO_VALUE = "the answer states no amount, period, date, percentage or place"
DERIVED = "the answer states a value that its gold does not state"
IN_QUESTION = "the question states the value itself"
UNSURE_ELSEWHERE = "the same value is elsewhere, and no rule decides whether it must change too"
STAYS = "the gold would still contain the old value"

# months by which all dates of a document may move: never whole years, so that the month also changes
_SHIFTS = tuple(months for months in range(5, 32) if months % 12)
# two equal values state the same fact if at least the first share of the words around them is the same, and different
# facts if less than the second share is. Between them the question is omitted: 14 of 523 on 196 real contracts
_MIN_SHARE_SAME, _MIN_SHARE_UNSURE = 0.5, 0.3
_CONTEXT_CHARS = 70  # characters on either side of a value that show its subject: about a printed line
_SENTENCE_END = re.compile(r"[.;:]\s")
_ARTICLE = re.compile(r"\ban?\s+$", re.IGNORECASE)
_LAW_BEFORE = re.compile(
    r"\b(?:laws?|statutes|courts?|jurisdiction|state|province|commonwealth)\s+(?:of|in|for)\s+(?:the\s+)?"
    r"(?:(?:state|commonwealth|province)\s+of\s+)?$",
    re.IGNORECASE,
)
_LAW_AFTER = re.compile(r"\s+(?:state\s+)?(?:law|laws|courts?)\b", re.IGNORECASE)
_GOVERNS = re.compile(r"\b(?:govern|constru|interpret|enforc)", re.IGNORECASE)


class RowChange(NamedTuple):
    """The change of the values that answer a question: their old and new texts, and the new answer."""

    old: str
    new: str
    answer: str


class ValueChanges:
    """The edits that change the values that answer questions about a document, and the change of each answer."""

    def __init__(self, document: RawDocument, rows: Sequence[RawRow], *, seed: int, later: bool = False) -> None:
        self.rows: dict[int, RowChange] = {}
        self.left_out: dict[int, str] = {}
        self._filename, self._text, self._seed = document.filename, document.text or "", seed
        sign = 1 if later else self._make_random("sign").choice((1, -1))  # amendments move dates only forward
        self._months = self._make_random("months").choice(_SHIFTS) * sign
        self._values = _find_values(self._text)
        self._taken = {value.same for value in self._values}
        self._new: dict[Key, Decimal | str] = {}
        self.edits = self._change(rows)

    def _make_random(self, *words: object) -> random.Random:
        return random.Random("\0".join(map(str, (self._seed, self._filename, *words))))

    def _change(self, rows: Sequence[RawRow]) -> list[Edit]:
        wanted: dict[int, set[Key]] = {}
        for row in rows:
            try:
                wanted[row.id] = self._find_targets(row)
            except UnsureError as reason:
                self.left_out[row.id] = str(reason)
        edits: dict[Key, list[Edit]] = {}
        refused: dict[Key, str] = {}
        for key in sorted({key for keys in wanted.values() for key in keys}):
            try:
                edits[key] = self._edits_of(key, [row for row in rows if key in wanted.get(row.id, ())])
            except UnsureError as reason:
                refused[key] = str(reason)
        for row in (row for row in rows if row.id in wanted):
            keys = wanted[row.id]
            reasons = [refused[key] for key in sorted(keys & refused.keys())]
            edited = {edit[:2] for key in keys - refused.keys() for edit in edits[key]}
            if any(value.same in keys and tuple(value.span) not in edited for value in self._find_held(row)):
                reasons.append(STAYS)
            if reasons:
                self.left_out[row.id] = reasons[0]
            else:
                self.rows[row.id] = self._make_row_change(row)
        used = {key for id in self.rows for key in wanted[id]}
        if any(kind == "date" for kind, _ in used):
            # all dates move together, so that their order and distances stay the same
            used |= {value.same for value in self._values if value.kind == "date"}
        return sorted({edit for key in used for edit in edits.get(key) or self._edits_of(key, [])})

    def _find_targets(self, row: RawRow) -> set[Key]:
        stated = find_values(row.answer)
        if not stated:
            raise UnsureError(NO_VALUE)
        # compare units, too: an answer of "1 year" does not occur in a gold passage that states "twelve (12) months"
        if not {(v.same, v.unit) for v in stated} <= {(v.same, v.unit) for v in self._find_held(row)}:
            raise UnsureError(DERIVED)
        keys = {value.same for value in stated}
        if keys & {value.same for value in find_values(row.question)}:
            raise UnsureError(IN_QUESTION)
        return keys

    def _find_held(self, row: RawRow) -> Iterator[Value]:
        spans = list_gold([row])
        for value in self._values:
            if any(span.start <= value.span.start and value.span.end <= span.end for span in spans):
                yield value

    def _edits_of(self, key: Key, rows: Sequence[RawRow]) -> list[Edit]:
        if key[0] == "date":
            chosen = [value for value in self._values if value.same == key]
            self._new[key] = Decimal(move_months(date.fromisoformat(key[1]), self._months).toordinal())
        else:
            chosen = self._choose_occurrences(key, rows)
            self._new[key] = self._choose_another(chosen)
        return [Edit(*value.span, write_value(value, self._new[key])) for value in chosen]

    def _choose_occurrences(self, key: Key, rows: Sequence[RawRow]) -> list[Value]:
        gold = {value for row in rows for value in self._find_held(row) if value.same == key}
        if key[0] == "place":
            # replace only states: a country also occurs as an adjective, and federal laws also apply in a province
            units = {value.unit for row in rows for value in self._find_held(row) if value.kind == "place"}
            gold = {value for value in gold if self._is_law(value)}
            if not gold or units - {"state", "commonwealth"}:
                raise UnsureError(UNSURE_WORDING)
        chosen = sorted(gold | set(self._find_elsewhere(key, gold)), key=lambda value: value.span)
        if len({value.unit for value in chosen}) > 1:
            # with one new number, "one year" and "twelve months" would become 4 years and 4 months
            raise UnsureError(UNSURE_WORDING)
        return chosen

    def _find_elsewhere(self, key: Key, gold: set[Value]) -> Iterator[Value]:
        """Yield the occurrences of a value outside the gold that state the same fact as the gold does."""
        around = [self._list_words_around(value) for value in gold]
        for value in self._values:
            if value.same != key or value in gold:
                continue
            if key[0] == "place":
                if self._is_law(value) and _GOVERNS.search(self._text[max(0, value.span.start - 150) : value.span.end]):
                    yield value
                continue
            words = self._list_words_around(value)
            share = max((len(words & other) / max(1, min(len(words), len(other))) for other in around), default=0.0)
            if share >= _MIN_SHARE_SAME:
                yield value
            elif share >= _MIN_SHARE_UNSURE:
                raise UnsureError(UNSURE_ELSEWHERE)

    def _list_words_around(self, value: Value) -> frozenset[str]:
        start, end = value.span
        before, after = self._text[max(0, start - _CONTEXT_CHARS) : start], self._text[end : end + _CONTEXT_CHARS]
        sentence = f"{_SENTENCE_END.split(before)[-1]} {_SENTENCE_END.split(after)[0]}"
        return frozenset(list_content_words(sentence))

    def _is_law(self, value: Value) -> bool:
        """Return whether the words next to a place name refer to law, courts or a state, as in `the laws of Ohio`."""
        before, after = self._text[max(0, value.span.start - 60) : value.span.start], self._text[value.span.end :][:30]
        return bool(_LAW_BEFORE.search(before) or _LAW_AFTER.match(after))

    def _choose_another(self, values: Sequence[Value]) -> Decimal | str:
        first = values[0]
        options = list_options(first)
        if any(_ARTICLE.search(self._text[max(0, v.span.start - 4) : v.span.start]) for v in values):
            vowel = takes_an(int(first.number))
            options = [new for new in options if isinstance(new, Decimal) and takes_an(int(new)) == vowel]
        options = [option for option in options if replace_key(first, option) not in self._taken]
        if not options:
            raise UnsureError(UNSURE_WORDING)
        chosen = self._make_random(first.kind, first.key).choice(options)
        self._taken.add(replace_key(first, chosen))
        return chosen

    def _make_row_change(self, row: RawRow) -> RowChange:
        values = find_values(row.answer)
        edits = [Edit(*value.span, write_value(value, self._new[value.same])) for value in values]
        old, new = ("; ".join(dict.fromkeys(texts)) for texts in ((v.text for v in values), (e.new for e in edits)))
        return RowChange(old, new, EditedText(row.answer, edits).text)


_CHOICES: dict[str, tuple[int, ...]] = {
    "minute": (10, 15, 20, 30, 45, 60, 90),
    "hour": (6, 12, 24, 36, 48, 72, 96),
    "day": (3, 5, 7, 10, 14, 15, 20, 21, 25, 30, 40, 45, 60, 75, 90, 100, 120, 150, 180, 240, 270, 365),
    "week": (2, 3, 4, 6, 8, 10, 12, 16, 26),
    "month": (2, 3, 4, 5, 6, 9, 12, 15, 18, 24, 30, 36, 48, 60),
    "quarter": (2, 3, 4, 6, 8),
    "year": (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30),
}  # Numbers that contracts use with each unit
# factors for a changed amount or percentage, which keep it plausible
_FACTORS = tuple(map(Decimal, ("0.4", "0.5", "0.6", "0.75", "0.8", "1.2", "1.25", "1.5", "2", "2.5", "3")))


class UnsureError(Exception):
    """Raised with the reason if no rule can change a value with certainty."""


def replace_key(value: Value, new: Decimal | str) -> Key:
    """Return the key (kind and normal form) that a value has after `new` replaces its number or place name."""
    if isinstance(new, str):
        return value.kind, new
    changed = find_values(write_value(value, new))
    return changed[0].same if changed else (value.kind, "")


def list_options(value: Value) -> Sequence[Decimal | str]:
    """Return the numbers or place names that can replace a value; the value must not be a date."""
    number = value.number
    if value.kind == "place":
        return [name for name in GROUPS[value.unit] if name != value.key]
    if value.kind == "period":
        if number != int(number) or number <= 1:
            raise UnsureError(UNSURE_WORDING)  # "one year" would need a plural
        return [Decimal(n) for n in _CHOICES[value.unit] if Decimal("0.4") <= n / number <= 2 and n != number]
    if value.kind == "percentage" and not 0 < number < 100:
        raise UnsureError(UNSURE_WORDING)  # "100%" means all, and cannot be changed
    # an amount or a percentage: multiples without two more digits than the value
    smallest = Decimal(1).scaleb(min(0, int(number.as_tuple().exponent)))
    options = dict.fromkeys((number * factor).quantize(smallest) for factor in _FACTORS)
    digits = _count_digits(number) + 1
    fitting = [option for option in options if option and option != number and _count_digits(option) <= digits]
    return [option for option in fitting if value.kind == "amount" or option < 100]


def _count_digits(number: Decimal) -> int:
    return len(f"{number.normalize():f}".rstrip("0").replace(".", "").rstrip("0"))


def move_months(day: date, months: int) -> date:
    """Return a date moved by a number of months; the last day of a month stays the last day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    last = monthrange(year, month + 1)[1]
    was_last = day.day == monthrange(day.year, day.month)[1]
    return date(year, month + 1, last if was_last else min(day.day, last))
