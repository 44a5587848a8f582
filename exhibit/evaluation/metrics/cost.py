"""Cost: the price of a reply, as the system reports it, or from its tokens and the given prices.

Prices are for a million tokens (`--price-in`, `--price-out`), in any currency. They are not combined with a cost that
the system reports.
"""

from exhibit.evaluation.metrics import Case, Options, with_options

_MILLION = 1_000_000  # prices are for this many tokens


def _score(case: Case, options: Options) -> float | None:
    """Return the cost of a reply; None where it is not reported and tokens or prices are unknown."""
    usage = case.reply.usage
    if "cost" in usage:
        return float(usage["cost"])
    if options.prices is None or not (usage.get("tokens_in") or usage.get("tokens_out")):
        return None
    price_in, price_out = options.prices
    return float((usage.get("tokens_in", 0) * price_in + usage.get("tokens_out", 0) * price_out) / _MILLION)


NAMES, measure = with_options(cost=_score)
