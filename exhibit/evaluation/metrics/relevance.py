"""Relevance: how well an answer addresses its question, marked from 1 to 5 by a language model.

The model sees only the question and the answer. Whether the answer is true is measured by another metric,
`groundedness`. A question that the documents do not answer (an impossible question) has the value None.
"""

from exhibit.evaluation.judge import fence_text, make_judged_metric, read_system_prompt
from exhibit.evaluation.metrics import Case
from exhibit.models.llms import Prompt

PROMPT_VERSION = "relevance-1"


def _make_prompt(case: Case) -> Prompt | None:
    if not case.reply.answer or case.is_impossible:
        return None
    return Prompt(
        f"{fence_text('QUESTION', case.question)}\n\n{fence_text('ANSWER', case.reply.answer)}",
        system=read_system_prompt("relevance"),
    )


NAMES, measure = make_judged_metric("relevance", _make_prompt)
