"""Label accuracy: whether the reply chooses the label that the source gives, where a system was asked for one.

`--ask-label label` puts the choices into the questions. Impossible rows count: their label says that nothing is
mentioned, and a refusal chooses it. Macro F1 and the table of confusions are in `labels.json`.
"""

from exhibit.evaluation.cases import find_chosen_label
from exhibit.evaluation.metrics import per_case

NAMES, measure = per_case(
    label_accuracy=lambda case: float(find_chosen_label(case.reply.answer or "", case.choices) == case.label)
)
