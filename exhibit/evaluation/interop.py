"""Export runs to other tools: the datasets of ragas, DeepEval and SQuAD's metric.

    from exhibit.evaluation.interop import ragas_dataset, deepeval_dataset, squad_inputs
    ragas.evaluate(ragas_dataset("results/demo"), metrics=[…])
    deepeval.evaluate(deepeval_dataset("results/demo").test_cases, metrics=[…])
    squad_v2.compute(**squad_inputs("results/demo"))     # equals a run's figures under --set parity=squad

Failed questions are left out.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exhibit.evaluation.metrics.parity import make_squad_prediction, split_squad_words
from exhibit.evaluation.records import list_passages_read
from exhibit.schemas.run_folder import RunFolder


def _read_answered(folder: str | Path) -> Iterator[dict[str, Any]]:
    """Yield each question of a run that has a reply, with the fields that ragas, DeepEval and SQuAD need."""
    for row in RunFolder(folder).rows:
        if row.reply.error:
            continue
        yield {
            "id": f"{row.dataset}/{row.id}",
            "question": row.question,
            "answer": row.reply.answer or "",
            "passages": [one.text for one in list_passages_read(row)],
            "truth": row.truth,
            "gold": [gold.text for gold in row.gold if gold.text],
        }


def ragas_dataset(folder: str | Path) -> Any:
    """Return a run as ragas' `EvaluationDataset`."""
    from ragas import EvaluationDataset  # an optional dependency, needed only here

    samples = [
        {
            "user_input": one["question"],
            "response": one["answer"],
            "retrieved_contexts": one["passages"],
            "reference": one["truth"],
            "reference_contexts": one["gold"],
        }
        for one in _read_answered(folder)
    ]
    return EvaluationDataset.from_list(samples)


def deepeval_dataset(folder: str | Path) -> Any:
    """Return a run as DeepEval's `EvaluationDataset` of test cases."""
    from deepeval.dataset import EvaluationDataset  # an optional dependency, needed only here
    from deepeval.test_case import LLMTestCase

    dataset = EvaluationDataset()
    for one in _read_answered(folder):
        case = LLMTestCase(
            input=one["question"],
            actual_output=one["answer"],
            expected_output=one["truth"],
            context=one["gold"],
            retrieval_context=one["passages"],
            name=one["id"],
        )
        dataset.add_test_case(case)
    return dataset


def squad_inputs(folder: str | Path) -> dict[str, list[dict[str, Any]]]:
    """Return the inputs of SQuAD 2.0's metric: a dictionary with the lists `predictions` and `references`."""
    predictions, references = [], []
    for row in RunFolder(folder).rows:
        if row.reply.error or row.reply.answer is None:
            continue
        id = f"{row.dataset}/{row.id}"
        golds = [] if row.is_impossible else [gold.text for gold in row.gold if gold.text] or [row.truth]
        texts = [text for text in golds if split_squad_words(text)]
        answer = make_squad_prediction(row.reply.answer)
        predictions.append({"id": id, "prediction_text": answer, "no_answer_probability": 0.0})
        references.append({"id": id, "answers": {"text": texts, "answer_start": [0] * len(texts)}})
    return {"predictions": predictions, "references": references}
