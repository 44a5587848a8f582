"""Results in other forms: for a model's repository on the Hub, and for the database Every Eval Ever."""

import json
import re
import uuid
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.outcomes import GOOD, describe_result
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.scoring import write_json
from exhibit.hub.exports import QUESTIONS_TASK
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import ANSWERED_RIGHTLY, Estimate, RunQuestion
from exhibit.storage.atomic import write_whole

SCHEMA_VERSION = "0.3.0"  # the version of Every Eval Ever's schema whose fields are written
FORMS = ("eval-results", "every-eval-ever")


def export_results(run: RunResults, form: str, out: Path, *, model: str, dataset: str = "") -> list[Path]:
    """Write a run's results in one of FORMS for a system, OWNER/NAME; `dataset` is the repository of the bundle."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        raise ToolkitError(f"--model {model}: write OWNER/NAME, such as my-firm/contract-rag")
    write = _write_eval_results if form == "eval-results" else _write_every_eval_ever
    paths: list[Path] = []
    for name in run.datasets:
        origin = dataset or (run.config.datasets[name].origin or "").removeprefix("hf://")
        repository, _, revision = origin.partition("@")
        paths += write(run, name, out, model, repository, {"revision": revision} if revision else {})
    return paths


def _write_eval_results(
    run: RunResults, name: str, out: Path, model: str, repository: str, revision: dict[str, str]
) -> list[Path]:
    """Write `.eval_results/NAME.yaml` for a dataset, to be added to the model's repository."""
    if not repository:
        raise ToolkitError(f"{name}: name the bundle's repository on the Hub: --dataset OWNER/NAME")
    means = (run.means_of(name).get(metric) for metric in (ANSWERED_RIGHTLY, "recall@10"))
    mean = next((estimate.mean for estimate in means if estimate and estimate.mean is not None), None)
    if mean is None:
        raise ToolkitError(f"{run.name}: {name} has no judged answer and no located passage, so there is no result")
    result = {
        "dataset": {"id": repository, **revision, "task_id": QUESTIONS_TASK},
        "value": round(100 * mean, 2),
        "date": run.provenance.started[:10],
        "source": {"url": f"https://huggingface.co/datasets/{repository}", "name": "Exhibit"},
        "notes": f"{model}: {describe_result([run.tables[name]])}",
    }
    path = out / ".eval_results" / f"{name}.yaml"
    write_whole(path, yaml.safe_dump([result], sort_keys=False, allow_unicode=True))
    return [path]


def _write_every_eval_ever(
    run: RunResults, name: str, out: Path, model: str, repository: str, revision: dict[str, str]
) -> list[Path]:
    """Write `data/COLLECTION/DEVELOPER/MODEL/UUID.json` for a dataset, and a file of samples beside it."""
    developer, _, short_name = model.partition("/")
    created = str(int(datetime.now(UTC).timestamp()))
    details = {"sha256": run.data_version(name), **revision}
    source: dict[str, Any] = {"dataset_name": name, "source_type": "other", "additional_details": details}
    if repository:
        count = len(run.tables[name].ids)
        source |= {"source_type": "hf_dataset", "hf_repo": repository, "hf_split": "train", "samples_number": count}
    evaluation = f"exhibit-{name}/{model}/{created}"
    samples = [_describe_sample(row) | {"evaluation_id": evaluation, "model_id": model} for row in run.rows_of(name)]
    folder = PurePosixPath("data") / f"exhibit-{name}" / developer / short_name
    # the same run always has the same names; the validator accepts only version 4
    stem = uuid.UUID(bytes=sha256(f"{model} {name} {run.provenance.started}".encode()).digest()[:16], version=4)
    path, samples_path = folder / f"{stem}.json", folder / f"{stem}_samples.jsonl"
    origin = {"source_type": "evaluation_run", "source_organization_name": "Exhibit"}
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    means = [(metric, estimate) for metric, estimate in run.means_of(name).items() if estimate.mean is not None]
    record = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": evaluation,
        "evaluation_timestamp": run.provenance.started,
        "retrieved_timestamp": created,
        "source_metadata": {**origin, "evaluator_relationship": "first_party"},
        "eval_library": {"name": "exhibit-rag", "version": run.provenance.version or "unknown"},
        "model_info": {"name": short_name, "id": model, "developer": developer, "additional_details": unknown},
        "evaluation_results": [_describe_metric(name, metric, estimate, source) for metric, estimate in means],
        "detailed_evaluation_results": {"format": "jsonl", "file_path": str(samples_path), "total_rows": len(samples)},
    }
    write_json(out / path, record)
    write_whole(out / samples_path, "".join(f"{json.dumps(sample, ensure_ascii=False)}\n" for sample in samples))
    return [out / path, out / samples_path]


def _describe_metric(dataset: str, name: str, estimate: Estimate, source: dict[str, Any]) -> dict[str, Any]:
    metric = describe_metric(name)
    uncertainty: dict[str, Any] = {"num_samples": estimate.n}
    if estimate.ci95:
        interval = {"lower": estimate.ci95[0], "upper": estimate.ci95[1], "confidence_level": 0.95}
        uncertainty["confidence_interval"] = {**interval, "method": "bootstrap over documents"}
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
        "schema_version": SCHEMA_VERSION,
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
