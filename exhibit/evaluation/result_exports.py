"""Results in other forms: for a model's repository on the Hub, for the database Every Eval Ever, and for ragas."""

import json
import re
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.outcomes import GOOD, describe_result
from exhibit.evaluation.records import list_passages_read
from exhibit.evaluation.runs import RunResults
from exhibit.hub.shelves import QUESTIONS_TASK
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import ANSWERED_RIGHTLY, Estimate, RunQuestion
from exhibit.schemas.run_folder import RunFolder

SCHEMA_VERSION = "0.2.2"
"""The version of Every Eval Ever's schema whose fields are written."""
_ORGANIZATION = "Exhibit"
FORMS = ("eval-results", "every-eval-ever")


def export_results(run: RunResults, form: str, out: Path, *, model: str, dataset: str = "") -> list[Path]:
    """Write a run's results in one of FORMS and return the files.

    `model` is the tested system as OWNER/NAME; `dataset` is the bundle's repository on the Hub; a run on a published
    bundle needs no `dataset`.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        raise ToolkitError(f"--model {model}: write OWNER/NAME, such as my-firm/contract-rag")
    write = _write_eval_results if form == "eval-results" else _write_every_eval_ever
    paths: list[Path] = []
    for name in run.datasets:
        origin, _, revision = (run.config.datasets[name].origin or "").removeprefix("hf://").partition("@")
        repository = {"id": dataset or origin, "revision": "" if dataset else revision}
        paths += write(run, name, out, model, {key: value for key, value in repository.items() if value})
    return paths


def _write_eval_results(run: RunResults, name: str, out: Path, model: str, repository: dict[str, str]) -> list[Path]:
    """Write `.eval_results/NAME.yaml` for a dataset, to be added to the model's repository."""
    if not repository:
        raise ToolkitError(f"{name}: name the bundle's repository on the Hub: --dataset OWNER/NAME")
    means = (run.means_of(name).get(metric) for metric in (ANSWERED_RIGHTLY, "recall@10"))
    mean = next((estimate.mean for estimate in means if estimate and estimate.mean is not None), None)
    if mean is None:
        raise ToolkitError(f"{run.name}: {name} has neither judged answers nor located passages, so there is no result")
    result = {
        "dataset": {**repository, "task_id": QUESTIONS_TASK},
        "value": round(100 * mean, 2),
        "date": run.provenance.started[:10],
        "source": {"url": f"https://huggingface.co/datasets/{repository['id']}", "name": _ORGANIZATION},
        "notes": f"{model}: {describe_result([run.tables[name]])}",
    }
    path = out / ".eval_results" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump([result], sort_keys=False, allow_unicode=True), encoding="utf-8")
    return [path]


# ---------------------------------------------------------------- Every Eval Ever


def _write_every_eval_ever(run: RunResults, name: str, out: Path, model: str, repository: dict[str, str]) -> list[Path]:
    """Write `data/COLLECTION/DEVELOPER/MODEL/UUID.json` and its samples for a dataset."""
    developer, _, name_of_model = model.partition("/")
    created = str(int(datetime.now(UTC).timestamp()))
    details = {"sha256": run.data_version(name)}
    details |= {"revision": repository["revision"]} if "revision" in repository else {}
    source: dict[str, Any] = {"dataset_name": name, "source_type": "other", "additional_details": details}
    if repository:
        source |= {"source_type": "hf_dataset", "hf_repo": repository["id"], "hf_split": "train"}
        source |= {"samples_number": len(run.tables[name].ids)}
    record = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"exhibit-{name}/{model}/{created}",
        "evaluation_timestamp": run.provenance.started,
        "retrieved_timestamp": created,
        "source_metadata": {
            "source_type": "evaluation_run",
            "source_organization_name": _ORGANIZATION,
            "evaluator_relationship": "first_party",
        },
        "eval_library": {"name": "exhibit-rag", "version": run.provenance.version or "unknown"},
        "model_info": {"name": name_of_model, "id": model, "developer": developer},
        "evaluation_results": [
            _describe_metric(name, metric, estimate, source)
            for metric, estimate in run.means_of(name).items()
            if estimate.mean is not None
        ],
    }
    folder = out / "data" / f"exhibit-{name}" / developer / name_of_model
    folder.mkdir(parents=True, exist_ok=True)
    identity = uuid.uuid5(uuid.NAMESPACE_URL, f"{model} {name} {run.provenance.started}")
    path, samples = folder / f"{identity}.json", folder / f"{identity}_samples.jsonl"
    path.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    with samples.open("w", encoding="utf-8", newline="\n") as lines:
        for row in run.rows_of(name):
            sample = {**_describe_sample(row), "evaluation_id": record["evaluation_id"], "model_id": model}
            lines.write(json.dumps(sample, ensure_ascii=False) + "\n")
    return [path, samples]


def _describe_metric(dataset: str, name: str, estimate: Estimate, source: dict[str, Any]) -> dict[str, Any]:
    metric = describe_metric(name)
    uncertainty: dict[str, Any] = {"num_samples": estimate.n}
    if estimate.ci95:
        interval = {"confidence_level": 0.95, "method": "bootstrap over documents"}
        uncertainty["confidence_interval"] = {**dict(zip(("lower", "upper"), estimate.ci95, strict=True)), **interval}
    uncertainty |= {"standard_deviation": estimate.std} if estimate.std is not None else {}
    config = {
        "evaluation_description": metric.meaning,
        "metric_id": f"exhibit.{name}",
        "metric_name": metric.title,
        "metric_unit": metric.unit,
        "lower_is_better": metric.higher_is_better is False,
    }
    if metric.unit == "share":
        config |= {"metric_unit": "proportion", "score_type": "continuous", "min_score": 0.0, "max_score": 1.0}
    return {
        "evaluation_result_id": f"{dataset}:{name}",
        "evaluation_name": dataset,
        "source_data": source,
        "metric_config": config,
        "score_details": {"score": estimate.mean, "uncertainty": uncertainty},
    }


def _describe_sample(row: RunQuestion) -> dict[str, Any]:
    answer, right = row.reply.answer or "", row.outcome in GOOD
    extracted = {"turn_idx": 0, "source": "output.raw", "extracted_value": answer, "extraction_method": "custom"}
    return {
        "schema_version": f"instance_level_eval_{SCHEMA_VERSION}",
        "evaluation_name": row.dataset,
        "sample_id": str(row.id),
        "interaction_type": "single_turn",
        "input": {"raw": row.question, "reference": [row.truth] if row.truth else []},
        "output": {"raw": [answer]},
        "messages": None,
        "answer_attribution": [{**extracted, "is_terminal": True}],
        "evaluation": {"score": float(right), "is_correct": right},
        "error": row.reply.error or None,
        "metadata": {"outcome": str(row.outcome), "lost_at": str(row.lost_at or "")},
    }


# ---------------------------------------------------------------- ragas


def ragas_dataset(folder: str | Path) -> Any:
    """Return the questions of a run that have a reply as an `EvaluationDataset`, for `ragas.evaluate`."""
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
