"""Results in the forms of other places: a model's repository on the Hub, and the database Every Eval Ever."""

import json
import re
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from exhibit.evaluation.metrics import describe_metric
from exhibit.evaluation.outcomes import describe_result
from exhibit.evaluation.runs import RunResults
from exhibit.hub.shelves import QUESTIONS_TASK
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import ANSWERED_RIGHTLY, Estimate, Outcome, RunQuestion

SCHEMA_VERSION = "0.2.2"
"""The version of Every Eval Ever's schema whose fields are written."""
_ORGANIZATION = "Exhibit"
_RIGHT = {Outcome.RIGHT, Outcome.RIGHTLY_REFUSED, Outcome.FOUND}
FORMS = ("eval-results", "every-eval-ever")


def export_results(run: RunResults, form: str, out: Path, *, model: str, dataset: str = "") -> list[Path]:
    """Write a run's results in one of FORMS and return the files.

    `model` is the tested system as OWNER/NAME; `dataset` is the bundle's repository on the Hub, which a run on a
    published bundle knows by itself.
    """
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        raise ToolkitError(f"--model {model}: write OWNER/NAME, such as my-firm/contract-rag")
    write = _write_eval_results if form == "eval-results" else _write_every_eval_ever
    return list(write(run, out, model, dataset))


def _find_repository(run: RunResults, name: str, given: str) -> tuple[str, str | None]:
    """Return the repository of a dataset and its revision, as far as they are known."""
    origin = run.config.datasets[name].origin or ""
    repository, _, revision = origin.removeprefix("hf://").partition("@")
    return (given, None) if given else (repository, revision or None)


def _read_day(run: RunResults) -> str:
    return run.provenance.started[:10]


# ---------------------------------------------------------------- the Hub


def _write_eval_results(run: RunResults, out: Path, model: str, dataset: str) -> Iterator[Path]:
    """Write `.eval_results/NAME.yaml` for each dataset, to be added to the model's repository."""
    for name in run.datasets:
        repository, revision = _find_repository(run, name, dataset)
        if not repository:
            raise ToolkitError(f"{name}: name the bundle's repository on the Hub: --dataset OWNER/NAME")
        estimate = _find_headline(run, name)
        described: dict[str, Any] = {"id": repository, "task_id": QUESTIONS_TASK}
        described |= {"revision": revision} if revision else {}
        result = {
            "dataset": described,
            "value": round(100 * (estimate.mean or 0.0), 2),
            "date": _read_day(run),
            "source": {"url": f"https://huggingface.co/datasets/{repository}", "name": _ORGANIZATION},
            "notes": f"{model}: {describe_result([run.tables[name]])}",
        }
        path = out / ".eval_results" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump([result], sort_keys=False, allow_unicode=True), encoding="utf-8")
        yield path


def _find_headline(run: RunResults, name: str) -> Estimate:
    means = run.means_of(name)
    for metric in (ANSWERED_RIGHTLY, "recall@10"):
        if metric in means and means[metric].mean is not None:
            return means[metric]
    raise ToolkitError(f"{run.name}: {name} has neither judged answers nor located passages, so there is no result")


# ---------------------------------------------------------------- Every Eval Ever


def _write_every_eval_ever(run: RunResults, out: Path, model: str, dataset: str) -> Iterator[Path]:
    """Write `data/COLLECTION/DEVELOPER/MODEL/UUID.json` and its samples for each dataset."""
    developer, _, name_of_model = model.partition("/")
    created = datetime.now(UTC)
    for name in run.datasets:
        folder = out / "data" / f"exhibit-{name}" / developer / name_of_model
        folder.mkdir(parents=True, exist_ok=True)
        identity = uuid.uuid5(uuid.NAMESPACE_URL, f"{model} {name} {run.provenance.started}")
        evaluation_id = f"exhibit-{name}/{model}/{int(created.timestamp())}"
        source = _describe_source(run, name, dataset)
        record = {
            "schema_version": SCHEMA_VERSION,
            "evaluation_id": evaluation_id,
            "evaluation_timestamp": run.provenance.started,
            "retrieved_timestamp": str(int(created.timestamp())),
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
        path = folder / f"{identity}.json"
        path.write_text(json.dumps(record, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        yield path
        samples = folder / f"{identity}_samples.jsonl"
        with samples.open("w", encoding="utf-8", newline="\n") as lines:
            for row in run.rows_of(name):
                lines.write(json.dumps(_describe_sample(row, evaluation_id, model), ensure_ascii=False) + "\n")
        yield samples


def _describe_source(run: RunResults, name: str, dataset: str) -> dict[str, Any]:
    repository, revision = _find_repository(run, name, dataset)
    version = {"additional_details": {"sha256": run.data_version(name)}}
    if not repository:
        return {"dataset_name": name, "source_type": "other", **version}
    version["additional_details"] |= {"revision": revision} if revision else {}
    count = len(run.tables[name].ids)
    return {
        "dataset_name": name, "source_type": "hf_dataset", "hf_repo": repository, "hf_split": "train",
        "samples_number": count, **version,
    }  # fmt: skip


def _describe_metric(dataset: str, name: str, estimate: Estimate, source: dict[str, Any]) -> dict[str, Any]:
    metric = describe_metric(name)
    limits = {"score_type": "continuous", "min_score": 0.0, "max_score": 1.0} if metric.unit == "share" else {}
    uncertainty: dict[str, Any] = {"num_samples": estimate.n}
    if estimate.ci95:
        lower, upper = estimate.ci95
        interval = {"lower": lower, "upper": upper, "confidence_level": 0.95, "method": "bootstrap over documents"}
        uncertainty["confidence_interval"] = interval
    uncertainty |= {"standard_deviation": estimate.std} if estimate.std is not None else {}
    return {
        "evaluation_result_id": f"{dataset}:{name}",
        "evaluation_name": dataset,
        "source_data": source,
        "metric_config": {
            "evaluation_description": metric.meaning,
            "metric_id": f"exhibit.{name}",
            "metric_name": metric.title,
            "metric_unit": "proportion" if metric.unit == "share" else metric.unit,
            "lower_is_better": metric.higher_is_better is False,
            **limits,
        },
        "score_details": {"score": estimate.mean, "uncertainty": uncertainty},
    }


def _describe_sample(row: RunQuestion, evaluation_id: str, model: str) -> dict[str, Any]:
    answer = row.reply.answer or ""
    right = row.outcome in _RIGHT
    extracted = {
        "turn_idx": 0, "source": "output.raw", "extracted_value": answer, "extraction_method": "custom",
        "is_terminal": True,
    }  # fmt: skip
    return {
        "schema_version": f"instance_level_eval_{SCHEMA_VERSION}",
        "evaluation_id": evaluation_id,
        "model_id": model,
        "evaluation_name": row.dataset,
        "sample_id": str(row.id),
        "interaction_type": "single_turn",
        "input": {"raw": row.question, "reference": [row.truth] if row.truth else []},
        "output": {"raw": [answer]},
        "messages": None,
        "answer_attribution": [extracted],
        "evaluation": {"score": float(right), "is_correct": right},
        "error": row.reply.error or None,
        "metadata": {"outcome": str(row.outcome), "lost_at": str(row.lost_at or "")},
    }
