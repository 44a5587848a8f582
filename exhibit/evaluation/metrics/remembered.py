"""Variants: whether a reply states the value of the altered document, or the value from before the alteration.

Typed values are compared exactly (`law.values`), so that "thirty (30) days" equals "30 days".

- `read_value`: the reply has every new value and no old one.
- `remembered`: the reply has an old value and no new one. For a removed clause, the reply has any of the
  clause's values or, if the clause had none, its words.
- `another_value`: `read_value` and `remembered` are not 1, but the reply states a value of the same type as
  the new value.

`read_value` and `another_value` are None if the altered clause has no typed value.

For a negated clause, the yes or no at the beginning of the reply is compared. If the reply does not begin
with yes or no, the words that were negated are searched in it.
"""

import re

from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.evaluation.metrics._variants import find_stated_values, is_varied
from exhibit.law.figures import stands_in

_POLAR = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


def _has_new(case: Case) -> float | None:
    if not is_varied(case, "figures", "negated"):
        return None
    if case.labels.get("value") == "polarity":
        return _compare_polarity(case, "new", "old")
    new, old, stated = find_stated_values(case)
    return float(new <= stated and not old & stated) if new else None


def _has_old(case: Case) -> float | None:
    if not is_varied(case, "figures", "negated", "removed"):
        return None
    if case.labels.get("value") == "polarity":
        return _compare_polarity(case, "old", "new")
    new, old, stated = find_stated_values(case)
    if not old:
        words = str(case.labels.get("old") or "")
        bare = words.strip().rstrip(".").lower() in ("yes", "no", "")
        said = None if bare else stands_in(words, case.reply.answer or "")
        return None if said is None else float(said)
    return float(bool(old & stated) and not new & stated)


def _has_another(case: Case) -> float | None:
    if not is_varied(case, "figures") or case.labels.get("value") == "polarity":
        return None
    new, _, stated = find_stated_values(case)
    if not new:
        return None
    kinds = {kind for kind, _ in new}
    return float(any(kind in kinds for kind, _ in stated) and not _has_new(case) and not _has_old(case))


def _compare_polarity(case: Case, wanted: str, other: str) -> float | None:
    """Return 1 if a reply agrees with the label named `wanted`, and 0 if it does not.

    If the reply begins with yes or no, this word is compared with the label. Otherwise the reply is
    searched for the words of both labels: 1 if it has only those of `wanted`, 0 if it has only those of
    `other`, else None.
    """
    reply = case.reply.answer or ""
    said = _POLAR.match(reply)
    if said:
        return float(said[1].lower() == str(case.labels.get(wanted)).strip().rstrip(".").lower())
    plain = " ".join(reply.lower().split())
    has = {name: _has_words(str(case.labels.get(f"{name}_words") or "\0"), plain) for name in (wanted, other)}
    return float(has[wanted]) if has[wanted] != has[other] else None


def _has_words(words: str, plain: str) -> bool:
    """Return whether a text has these words as whole words: `neither party` has no `either party`."""
    return re.search(rf"(?<![\w-]){re.escape(words.lower())}(?!\w)", plain) is not None


NAMES, measure = score_per_case(read_value=_has_new, remembered=_has_old, another_value=_has_another)
