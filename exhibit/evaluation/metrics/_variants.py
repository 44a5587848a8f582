"""Read the labels of a varied bundle's questions, and the typed values of the replies."""

from typing import NamedTuple

from exhibit.evaluation.cases import Case
from exhibit.law.values import keys_of

Keys = frozenset[tuple[str, str]]


class StatedValues(NamedTuple):
    """The right and the wrong typed values of a question, and the values in its reply."""

    new: Keys
    old: Keys
    reply: Keys


def is_varied(case: Case, *kinds: str) -> bool:
    """Return whether a question belongs to a bundle that was varied in one of these ways."""
    done = str(case.labels.get("varied") or "").split("+")
    return any(one.partition(":")[0] in kinds for one in done)


def stated_values(case: Case) -> StatedValues:
    """Return the values of the labels `new` and `old`, and those in the reply."""
    new, old = (keys_of(str(case.labels.get(name) or "")) for name in ("new", "old"))
    return StatedValues(new, old - new, keys_of(case.reply.answer or ""))
