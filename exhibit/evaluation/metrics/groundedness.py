"""Groundedness: how well the passages support an answer, marked from 1 to 5 by a language model.

A refusal claims nothing, and an answer without passages cannot be supported: both are None.
"""

from exhibit.evaluation.judge import fence_text, make_judged_metric, read_system_prompt
from exhibit.evaluation.metrics import Case
from exhibit.law.refusals import is_refusal
from exhibit.models.llms import Prompt

PROMPT_VERSION = "groundedness-1"

_LONGEST = 24_000
"""The judge reads at most this many characters of the passages, best first."""


def _make_prompt(case: Case) -> Prompt | None:
    answer = case.reply.answer
    passages = case.reply.read(len(case.reply.passages))
    if not answer or not passages or is_refusal(answer):
        return None
    sources = "\n\n".join(f"[{number}] {passage.text.strip()}" for number, passage in enumerate(passages, 1))
    return Prompt(
        f"{fence_text('SOURCES', sources[:_LONGEST])}\n\n{fence_text('ANSWER', answer)}",
        system=read_system_prompt("groundedness"),
    )


NAMES, measure = make_judged_metric("groundedness", _make_prompt)
