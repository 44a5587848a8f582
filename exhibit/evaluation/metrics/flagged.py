"""Flagged for review: the share of answers with a confidence below `--set flag_below=S`."""

from collections.abc import Sequence

from exhibit.evaluation.metrics import Case, Options, Share, Values, score_each

NAMES = ("flagged",)


def measure(cases: Sequence[Case], options: Options, *, below: Share | None = None) -> dict[str, Values]:
    """Return the figure `flagged` of each case: 1 if the reply's confidence is below the limit, else 0.

    The limit is `below` or, if it is None, `options.flag_below`. The figure is None if there is no limit or the
    reply has no confidence.
    """
    limit = options.flag_below if below is None else below

    def score(case: Case) -> float | None:
        sure = case.reply.confidence
        return None if limit is None or sure is None else float(sure < limit)

    return {"flagged": score_each(cases, score)}
