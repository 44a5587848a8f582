"""Relevance: how far an answer answers its question, from 1 to 5, judged by a language model.

The judge sees question and answer only: whether it is true is for `groundedness`. Impossible rows are None.
"""

from __future__ import annotations

from exhibit.evaluation.metrics import Case, read_about
from exhibit.evaluation.metrics._judge import REPLY, fenced, judged
from exhibit.models.llms import Prompt

PROMPT_VERSION = "relevance-1"

_SYSTEM = f"""You judge whether an answer answers the legal question that was put. Judge only how fully and directly \
it does so; whether it is true is not your concern.
5: it answers the whole question directly, with nothing beside the point.
4: it answers the question; a small part is missing or beside the point.
3: it answers part of the question, or the answer has to be searched for.
2: it is on the subject, but hardly answers the question.
1: it does not answer the question, or declines to.
{REPLY}"""


def _prompt(case: Case) -> Prompt | None:
    if not case.reply.answer or case.is_impossible:
        return None
    return Prompt(f"{fenced('QUESTION', case.question)}\n\n{fenced('ANSWER', case.reply.answer)}", system=_SYSTEM)


ABOUT = read_about(__file__)
NAMES, measure = judged("relevance", _prompt)
