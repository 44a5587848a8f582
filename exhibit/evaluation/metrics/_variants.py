"""What a question of a varied bundle says of itself in its labels, and the typed values of its reply."""

from typing import NamedTuple

from exhibit.evaluation.cases import Case
from exhibit.law.values import keys_of

Keys = frozenset[tuple[str, str]]


class StatedValues(NamedTuple):
    """The typed values that are right for a question, those that are not, and those of its reply."""

    new: Keys
    old: Keys
    reply: Keys


def is_varied(case: Case, *kinds: str) -> bool:
    """Return whether a question is of a bundle that was varied in one of some ways."""
    done = str(case.labels.get("varied") or "").split("+")
    return any(one.partition(":")[0] in kinds for one in done)


def stated_values(case: Case) -> StatedValues:
    """Return the values of the labels `new` and `old`, and those that the reply states."""
    new, old = (keys_of(str(case.labels.get(name) or "")) for name in ("new", "old"))
    return StatedValues(new, old - new, keys_of(case.reply.answer or ""))
