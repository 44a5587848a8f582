"""Cost: the time, the money and the length of a reply."""

from functools import partial

from exhibit.evaluation import metrics
from exhibit.evaluation.metrics import Case, Options

# not a gate: the time also depends on other work of the machine, and a more expensive answer may be better
metric = partial(metrics.metric, group="Cost", higher_is_better=False, gate=False)
_MILLION = 1_000_000  # prices are for this many tokens


@metric("Time to reply", "seconds from the question to the last word of the reply", unit="seconds")
def latency(case: Case) -> float | None:
    return case.reply.seconds


@metric("Cost of a reply", "cost of a question, reported by the system or computed from your prices", unit="currency")
def cost(case: Case, options: Options) -> float | None:
    usage = case.reply.usage
    if "cost" in usage:
        return float(usage["cost"])
    if options.prices is None or not (usage.get("tokens_in") or usage.get("tokens_out")):
        return None
    price_in, price_out = options.prices
    return float((usage.get("tokens_in", 0) * price_in + usage.get("tokens_out", 0) * price_out) / _MILLION)


@metrics.metric(
    "Answer length", "number of characters in an answer", group="Cost", unit="characters", higher_is_better=None,
    needs=("answer",), short=False,
)  # fmt: skip
def answer_length(case: Case) -> float:
    return float(len(case.reply.answer or ""))
