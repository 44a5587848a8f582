"""Export a run to ragas.

from exhibit.evaluation.interop import ragas_dataset
ragas.evaluate(ragas_dataset("results/demo"), metrics=[…])
"""

from pathlib import Path
from typing import Any

from exhibit.evaluation.records import list_passages_read
from exhibit.schemas.run_folder import RunFolder


def ragas_dataset(folder: str | Path) -> Any:
    """Return the questions of a run that have a reply as ragas' `EvaluationDataset`."""
    from ragas import EvaluationDataset  # an optional dependency, needed only here

    samples = [
        {
            "user_input": row.question,
            "response": row.reply.answer or "",
            "retrieved_contexts": [passage.text for passage in list_passages_read(row)],
            "reference": row.truth,
            "reference_contexts": [gold.text for gold in row.gold if gold.text],
        }
        for row in RunFolder(folder).rows
        if not row.reply.error
    ]
    return EvaluationDataset.from_list(samples)
