"""Answer length, in characters."""

from exhibit.evaluation.metrics import score_per_case

NAMES, measure = score_per_case(answer_length=lambda case: float(len(case.reply.answer or "")))
