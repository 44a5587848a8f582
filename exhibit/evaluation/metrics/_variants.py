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
    """Return whether a question's bundle was varied in one of the given ways (`kinds`)."""
    done = str(case.labels.get("varied") or "").split("+")
    return any(one.partition(":")[0] in kinds for one in done)


def find_stated_values(case: Case) -> StatedValues:
    """Return the typed values in the labels `new` and `old`, and those in the reply; `old` omits values of `new`."""
    new, old = (keys_of(str(case.labels.get(name) or "")) for name in ("new", "old"))
    return StatedValues(new, old - new, keys_of(case.reply.answer or ""))
