"""Cost: what a reply cost in money, as the system tells, or by the prices given for its tokens.

Prices are those of a million tokens (`--price-in`, `--price-out`), in whatever currency; they are not mixed with a cost
that the system tells itself.
"""

from exhibit.evaluation.metrics import Case, Options, with_options

_MILLION = 1_000_000  # tokens that a price is for


def _score(case: Case, options: Options) -> float | None:
    """Return the cost of a reply, None where neither it nor tokens and prices are known."""
    usage = case.reply.usage
    if "cost" in usage:
        return float(usage["cost"])
    if options.prices is None or not (usage.get("tokens_in") or usage.get("tokens_out")):
        return None
    price_in, price_out = options.prices
    return float((usage.get("tokens_in", 0) * price_in + usage.get("tokens_out", 0) * price_out) / _MILLION)


NAMES, measure = with_options(cost=_score)
