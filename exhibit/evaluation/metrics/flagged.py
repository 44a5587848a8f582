"""Flagged for review: the share of answers that the system is less sure of than `--set flag_below=S` asks for."""

from collections.abc import Sequence

from exhibit.evaluation.metrics import Case, Options, Share, Values, score_each

NAMES = ("flagged",)


def measure(cases: Sequence[Case], options: Options, *, below: Share | None = None) -> dict[str, Values]:
    """Return 1 for a reply with too little confidence and 0 for any other; None where it tells none."""
    limit = options.flag_below if below is None else below

    def score(case: Case) -> float | None:
        sure = case.reply.confidence
        return None if limit is None or sure is None else float(sure < limit)

    return {"flagged": score_each(cases, score)}
