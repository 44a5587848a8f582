"""Label accuracy: whether the reply chooses the label that the benchmark gives to the question.

The metric applies only if the system is asked for a label: `--ask-label label` puts the choices into the
questions. Impossible questions count: their label means that nothing is mentioned, and a refusal chooses
this label. Macro F1 and the confusion table are in `labels.json`.
"""

from exhibit.evaluation.label_choices import find_chosen_label
from exhibit.evaluation.metrics import score_per_case

NAMES, measure = score_per_case(
    label_accuracy=lambda case: float(find_chosen_label(case.reply.answer or "", case.choices) == case.label)
)
