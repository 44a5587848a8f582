"""Runs for other tools: evaltools' files beside ours, and the datasets of ragas, DeepEval and SQuAD's metric.

    from exhibit.evaluation.interop import ragas_dataset, deepeval_dataset, squad_inputs
    ragas.evaluate(ragas_dataset("results/demo"), metrics=[…])
    deepeval.evaluate(deepeval_dataset("results/demo").test_cases, metrics=[…])
    squad_v2.compute(**squad_inputs("results/demo"))     # equals a run's figures under --parity squad

Questions that failed are in none of them, except in evaltools' files, which have a row for each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from exhibit.evaluation.metrics._words import squad_prediction, squad_words
from exhibit.evaluation.records import write_json
from exhibit.schemas.run import RESULTS, RunPassage, RunQuestion
from exhibit.schemas.run_folder import RunFolder

PARAMETERS = "evaluate_parameters.json"
_OURS = ("format", "version", "datasets", "measured", "target")


# ---------------------------------------------------------------- evaltools


def write_evaltools(folder: Path) -> None:
    """Write the two files that evaltools' `summary` and `diff` want beside summary.json: flat rows, and parameters."""
    run, count = RunFolder(folder), 0
    partial = folder / f"{RESULTS}.partial"
    # a row at a time: the words of all passages need not fit into memory
    with partial.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        for count, row in enumerate(run.rows, 1):  # noqa: B007  (the last number is the number of rows)
            out.write(json.dumps(_flat(row), ensure_ascii=False) + "\n")
    partial.replace(folder / RESULTS)
    asked = run.config.model_dump(exclude_unset=True)
    told = {key.removeprefix("target_"): value for key, value in asked.items() if key not in _OURS}
    parameters = {
        "evaluation_gpt_model": run.config.measured.judge,
        "testdata_path": [dataset.path for dataset in run.config.datasets.values()],
        "target_url": told.pop("url", run.config.target),
        "target_parameters": told,
        "num_questions": count,
    }
    write_json(folder / PARAMETERS, parameters)


def _flat(row: RunQuestion) -> dict[str, Any]:
    """Return a row as evaltools has it: every figure is a column, and an error stands where the answer would."""
    error = row.reply.error
    context = "\n\n".join(f"{one.filename or '?'}: {one.text}" for one in _passages(row))
    return {
        "question": row.question,
        "truth": row.truth,
        "answer": error or row.reply.answer or "",
        "context": error or context,
        "latency": -1 if error else row.reply.seconds,
        "dataset": row.dataset,
        **{name: value for name, value in row.scores.items() if value is not None and not error},
    }


def _passages(row: RunQuestion) -> list[RunPassage]:
    """Return the passages whose words are written; where it is known, only those that the answer was made from."""
    passages = [one for one in row.reply.passages if one.text]
    return passages[: row.reply.selected or len(passages)]


# ---------------------------------------------------------------- libraries


def _answered(folder: str | Path) -> Iterator[dict[str, Any]]:
    """Yield what the libraries call a sample, under our names."""
    for row in RunFolder(folder).rows:
        if row.reply.error:
            continue
        yield {
            "id": f"{row.dataset}/{row.id}",
            "question": row.question,
            "answer": row.reply.answer or "",
            "passages": [one.text for one in _passages(row)],
            "truth": row.truth,
            "gold": [gold.text for gold in row.gold if gold.text],
        }


def ragas_dataset(folder: str | Path) -> Any:
    """Return a run as ragas' `EvaluationDataset`."""
    from ragas import EvaluationDataset  # an extra: not needed for anything else

    samples = [
        {
            "user_input": one["question"],
            "response": one["answer"],
            "retrieved_contexts": one["passages"],
            "reference": one["truth"],
            "reference_contexts": one["gold"],
        }
        for one in _answered(folder)
    ]
    return EvaluationDataset.from_list(samples)


def deepeval_dataset(folder: str | Path) -> Any:
    """Return a run as DeepEval's `EvaluationDataset` of test cases."""
    from deepeval.dataset import EvaluationDataset  # an extra: not needed for anything else
    from deepeval.test_case import LLMTestCase

    dataset = EvaluationDataset()
    for one in _answered(folder):
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
    """Return what SQuAD 2.0's metric takes: predictions and references, answers without citations, refusals empty."""
    predictions, references = [], []
    for row in RunFolder(folder).rows:
        if row.reply.error or row.reply.answer is None:
            continue
        id = f"{row.dataset}/{row.id}"
        golds = [] if row.is_impossible else [gold.text for gold in row.gold if gold.text] or [row.truth]
        texts = [text for text in golds if squad_words(text)]
        answer = squad_prediction(row.reply.answer)
        predictions.append({"id": id, "prediction_text": answer, "no_answer_probability": 0.0})
        references.append({"id": id, "answers": {"text": texts, "answer_start": [0] * len(texts)}})
    return {"predictions": predictions, "references": references}
