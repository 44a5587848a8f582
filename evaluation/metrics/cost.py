"""Cost: what a reply cost in money, as the system tells, or by the prices given for its tokens.

Prices are those of a million tokens (`--price-in`, `--price-out`), in whatever currency; they are not mixed with a cost
that the system tells itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from exhibit.evaluation.metrics import About, Case, Options, Values, each

NAMES = ("cost",)
ABOUT = {
    "cost": About(
        "Cost of a reply",
        "money a question, as the system tells or by the prices given",
        "Cost",
        unit="currency",
        better="less",
        needs=("usage",),
        gate=False,  # prices change, and a dearer answer may be a better one
    )
}
_MILLION = 1_000_000  # tokens that a price is for


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return the cost of each reply, None where neither it nor tokens and prices are known."""

    def score(case: Case) -> float | None:
        usage = case.reply.usage
        if "cost" in usage:
            return float(usage["cost"])
        if options.prices is None or not (usage.get("tokens_in") or usage.get("tokens_out")):
            return None
        price_in, price_out = options.prices
        return float((usage.get("tokens_in", 0) * price_in + usage.get("tokens_out", 0) * price_out) / _MILLION)

    return {"cost": each(cases, score)}
