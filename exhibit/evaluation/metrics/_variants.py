"""Read the values before and after the alteration of a varied bundle, and the values that replies state.

A varied bundle has documents that `exhibit vary` altered. A typed value is an amount, a period, a date, a
percentage or a place (`law.values`).
"""

from typing import NamedTuple

from exhibit.evaluation.cases import Case
from exhibit.law.values import keys_of

Keys = frozenset[tuple[str, str]]


class StatedValues(NamedTuple):
    """The typed values of a question: the right ones (`new`), the wrong ones (`old`), and those in the reply."""

    new: Keys
    old: Keys
    reply: Keys


def is_varied(case: Case, *kinds: str) -> bool:
    """Return whether the question's bundle was altered in one of the given ways, such as `figures`."""
    done = str(case.labels.get("varied") or "").split("+")
    return any(one.partition(":")[0] in kinds for one in done)


def find_stated_values(case: Case) -> StatedValues:
    """Return the amounts, dates and other values in the reply and in the question's labels `new` and `old`.

    `new` has the right values, and `old` has wrong values, such as the value before a change. A value in both
    labels counts only as new.
    """
    new, old = (keys_of(str(case.labels.get(name) or "")) for name in ("new", "old"))
    return StatedValues(new, old - new, keys_of(case.reply.answer or ""))
