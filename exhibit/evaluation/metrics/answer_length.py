"""Answer length, in characters."""

from exhibit.evaluation.metrics import per_case

NAMES, measure = per_case(answer_length=lambda case: float(len(case.reply.answer or "")))
