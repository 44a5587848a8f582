"""Amended contracts: whether a reply states the value in force on the question's date, or another value.

- `in_force`: the reply has every value that the clause has on the question's date, and no value of another
  date.
- `superseded`: the reply has a value of another date (replaced before the question's date, or introduced
  after it) and no value that is in force.

Values are amounts, dates, periods and so on; `thirty days` equals `30 days`. Both figures are None if the
clause has no such value on the question's date.
"""

from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.evaluation.metrics._variants import find_stated_values, is_varied


def _is_in_force(case: Case) -> float | None:
    if not is_varied(case, "amended"):
        return None
    now, other, stated = find_stated_values(case)
    return float(now <= stated and not other & stated) if now else None


def _is_superseded(case: Case) -> float | None:
    if not is_varied(case, "amended"):
        return None
    now, other, stated = find_stated_values(case)
    return float(bool(other & stated) and not now & stated) if now else None


NAMES, measure = score_per_case(in_force=_is_in_force, superseded=_is_superseded)
