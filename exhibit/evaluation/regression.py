"""When a change between two runs is a regression."""

from collections.abc import Mapping, Sequence

from exhibit.evaluation.metrics import about
from exhibit.evaluation.statistics import Difference, Overlap
from exhibit.schemas.errors import ToolkitError

MAX_FALL = 0.1
"""The largest fall that passes where documents are too few for an interval: of a share ten points, of the rest a tenth.

One question of ten may change its answer by chance; two rarely do.
"""


def is_regression(name: str, difference: Difference, asked: Sequence[str] = (), *, max_fall: float = MAX_FALL) -> bool:
    """Return whether a metric is worse by more than chance; one that depends on the machine only where it is asked.

    Where documents are too few for an interval, chance is unknown: then a fall by more than `max_fall` is one.
    """
    change = difference.mean
    if change is None or (not about(name).gate and name not in asked) or about(name).improves(change) is not False:
        return False
    return difference.beyond_chance if difference.ci95 else fall_size(name, difference) > max_fall


def regressions(
    differences: Mapping[str, Difference], asked: Sequence[str] = (), *, max_fall: float = MAX_FALL
) -> list[str]:
    """Return the metrics that are worse."""
    return [name for name, one in differences.items() if is_regression(name, one, asked, max_fall=max_fall)]


def in_words(differences: Mapping[str, Difference], worse: Sequence[str], *, max_fall: float = MAX_FALL) -> list[str]:
    """Return which metrics are worse, and how that is known."""
    beyond = [name for name in worse if differences[name].ci95]
    fallen = [name for name in worse if not differences[name].ci95]
    lines = [f"worse beyond chance: {', '.join(beyond)}"] if beyond else []
    few = f"worse by more than {max_fall:g}, with too few documents for an interval"
    return [*lines, f"{few}: {', '.join(fallen)}"] if fallen else lines


def check_comparable(names: Sequence[object], differences: Mapping[str, Difference], shared: Overlap) -> None:
    """Raise where two runs, named by `names`, have no question or no metric in common."""
    first, second = names
    if shared.not_comparable and not shared.asked:
        listed = ", ".join(shared.not_comparable)
        raise ToolkitError(
            f"{first} and {second} are not comparable: both have a dataset named {listed}, and none of its questions "
            "is the same in both (words, expected answer, gold and documents are compared); run both on one bundle"
        )
    if not differences:
        raise ToolkitError(f"{first} and {second} have no dataset and metric in common")


def fall_size(name: str, difference: Difference) -> float:
    """Return the size of a change: of a share its difference, of any other unit its part of the first mean."""
    change, first = abs(difference.mean or 0.0), abs(difference.first or 0.0)
    if about(name).unit == "share":
        return change
    return change / first if first else float(bool(change))
