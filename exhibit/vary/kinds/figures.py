"""Changes the values that answer questions to other values of the same type, wherever the same fact is stated.

A system that answers with the new value has read it; a system that answers with the old value has remembered it.
"""

from dataclasses import replace

from exhibit.converters.core.benchmark import Tally
from exhibit.vary.corpus import TextCorpus, apply_edits, leave_out_others, replace_answer
from exhibit.vary.kinds import VaryRequest
from exhibit.vary.values import ValueChanger

TITLE = "amounts, periods, dates, percentages and American states that answer are changed to others of the same type"
MEASURED = ("read_value", "remembered")


def vary(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:
    """Return the corpus with new values in place of the amounts, dates and places that answer questions."""
    edits, changed = {}, {}
    for name, document in corpus.documents.items():
        changes = ValueChanger(document, corpus.rows_of(name), seed=request.seed).changes()
        edits[name] = changes.edits
        changed.update(changes.rows)
        for id, reason in sorted(changes.left_out.items()):
            tally.leave_out(reason, f"row {id}")
    corpus_after = apply_edits(corpus, edits)
    rows = []
    for row in corpus_after.rows:
        if row.id in changed:
            change = changed[row.id]
            labels = {"value": change.kind, "old": change.old, "new": change.new}
            rows.append(replace_answer(row, change.answer, **labels))
    leave_out_others(corpus, tally)
    return replace(corpus_after, rows=tuple(rows))
