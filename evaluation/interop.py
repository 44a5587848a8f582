"""Runs for other tools: evaltools' files beside ours, and the datasets of ragas, DeepEval and SQuAD's metric.

    from exhibit.evaluation.interop import ragas_dataset, deepeval_dataset, squad_inputs
    ragas.evaluate(ragas_dataset("results/demo"), metrics=[…])
    deepeval.evaluate(deepeval_dataset("results/demo").test_cases, metrics=[…])
    squad_v2.compute(**squad_inputs("results/demo"))     # equals a run's figures under --parity squad

Questions that failed are in none of them, except in evaltools' files, which have a row for each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from exhibit.evaluation.metrics._squad import squad_prediction, squad_words
from exhibit.evaluation.records import CONFIG, RESULTS, read_json, write_json
from exhibit.evaluation.records import read_rows as read_results
from exhibit.schemas.errors import BundleError

PARAMETERS = "evaluate_parameters.json"
_OURS = ("format", "version", "datasets", "measured", "target")


def read_rows(folder: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a run's results with the name of their dataset."""
    root = Path(folder)
    if not root.is_dir():
        raise BundleError(f"{root}: no such run")
    for name in read_json(root / CONFIG).get("datasets", {}):
        path = root / name / RESULTS
        if not path.is_file():
            raise BundleError(f"{path}: missing; the run was stopped: go on with --resume --run-name {root.name}")
        for row in read_results(path):
            yield name, row


# ---------------------------------------------------------------- evaltools


def write_evaltools(folder: Path) -> None:
    """Write the two files that evaltools' `summary` and `diff` want beside summary.json: flat rows, and parameters."""
    count = 0
    partial = folder / f"{RESULTS}.partial"
    # a row at a time: the words of all passages need not fit into memory
    with partial.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        for count, (name, row) in enumerate(read_rows(folder), 1):  # noqa: B007  (the last number is the number of rows)
            out.write(json.dumps(_flat(name, row), ensure_ascii=False) + "\n")
    partial.replace(folder / RESULTS)
    config = read_json(folder / CONFIG)
    judge = config.get("measured", {}).get("judge")
    told = {key.removeprefix("target_"): value for key, value in config.items() if key not in _OURS}
    parameters = {
        "evaluation_gpt_model": judge,
        "testdata_path": [dataset["path"] for dataset in config.get("datasets", {}).values()],
        "target_url": told.pop("url", config.get("target")),
        "target_parameters": told,
        "num_questions": count,
    }
    write_json(folder / PARAMETERS, parameters)


def _flat(dataset: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row as evaltools has it: every figure is a column, and an error stands where the answer would."""
    reply = row["reply"]
    error = reply["error"]
    context = "\n\n".join(f"{one['filename'] or '?'}: {one['text']}" for one in _passages(row))
    return {
        "question": row["question"],
        "truth": row["truth"],
        "answer": error or reply["answer"] or "",
        "context": error or context,
        "latency": -1 if error else reply["seconds"],
        "dataset": dataset,
        **{name: value for name, value in row["scores"].items() if value is not None and not error},
    }


def _passages(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the passages whose words are written; where it is known, only those that the answer was made from."""
    passages = [one for one in row["reply"]["passages"] if one.get("text")]
    return passages[: row["reply"]["selected"] or len(passages)]


# ---------------------------------------------------------------- libraries


def _answered(folder: str | Path) -> Iterator[dict[str, Any]]:
    """Yield what the libraries call a sample, under our names."""
    for dataset, row in read_rows(folder):
        if row["reply"]["error"]:
            continue
        yield {
            "id": f"{dataset}/{row['id']}",
            "question": row["question"],
            "answer": row["reply"]["answer"] or "",
            "passages": [one["text"] for one in _passages(row)],
            "truth": row["truth"],
            "gold": [gold["text"] for gold in row["gold"] if gold["text"]],
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
    for dataset, row in read_rows(folder):
        if row["reply"]["error"] or row["reply"]["answer"] is None:
            continue
        id = f"{dataset}/{row['id']}"
        golds = [] if row["is_impossible"] else [gold["text"] for gold in row["gold"] if gold["text"]] or [row["truth"]]
        texts = [text for text in golds if squad_words(text)]
        answer = squad_prediction(row["reply"]["answer"])
        predictions.append({"id": id, "prediction_text": answer, "no_answer_probability": 0.0})
        references.append({"id": id, "answers": {"text": texts, "answer_start": [0] * len(texts)}})
    return {"predictions": predictions, "references": references}
