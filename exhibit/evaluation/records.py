"""Write the files of a run (rows, means, breakdowns, TREC files), and read them back as tables of values."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any
from urllib.parse import quote

from exhibit.evaluation.cases import Case, Passage
from exhibit.evaluation.metrics import Options, describe_metric, limit_gold
from exhibit.evaluation.metrics.retrieval import ranking_of
from exhibit.evaluation.outcomes import Finding, find_cited, find_support
from exhibit.evaluation.stages import GoldStages, find_first_loss
from exhibit.evaluation.statistics import Table, Values, summarise_by
from exhibit.law.refusals import is_refusal
from exhibit.schemas.run import COUNTS_FAILED, QUESTION, RESULTS, Means, RunGold, RunPassage, RunQuestion, RunReply
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.atomic import replace_file, write_whole

PREDICTIONS = "predictions.json"
"""The first ten passages of each question, in the format that score.py reads."""
PARAMETERS = "evaluate_parameters.json"
RUN, QRELS = "run.trec", "qrels.trec"
"""The rankings for `ir_measures`, `ranx` and `trec_eval`."""
_OURS = ("format", "version", "datasets", "measured", "target")
_QUOTED = 10
"""The number of passages that are written with their text."""


# ---------------------------------------------------------------- writing


def write_json(path: Path, content: Any) -> None:
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def format_row(
    case: Case, finding: Finding, stages: Sequence[GoldStages], *, notes: Sequence[str] = (), tag: str
) -> bytes:
    """Return a question's row for the results file."""
    row: dict[str, Any] = {
        "trec": format_trec(case, tag=tag),
        "id": case.id,
        "question": case.question,
        "truth": case.truth,
        "is_impossible": case.is_impossible,
        "filename": case.filename,
        "labels": case.labels,
        "gold": [{name: getattr(gold, name) for name in RunGold.model_fields} for gold in case.gold],
        "reply": format_reply(case),
        "scores": {},
        "outcome": finding.outcome,
        "reason": finding.reason,
        "supported": find_support(case),
        "lost_at": find_first_loss(stages),
        "gold_stages": stages,
        "notes": notes,
    }
    # a lone surrogate, as in damaged PDFs, becomes a question mark
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"


def format_trec(case: Case, *, tag: str) -> tuple[str, str]:
    """Return a question's lines for TREC's run and qrels files; names are percent-encoded, because they have no spaces.

    A score is derived from the rank, because the system's own scores may have ties.
    """
    known = limit_gold(case, describe_metric("ndcg").needs, Options())
    ranking = ranking_of(known) if known else None
    if ranking is None:
        return "", ""
    query, name, order = quote(str(case.id), safe=""), quote(tag, safe=""), list(enumerate(ranking.order, 1))
    run = (f"{query} Q0 {quote(unit, safe='')} {rank} {len(order) - rank + 1} {name}\n" for rank, unit in order)
    judged = (f"{query} 0 {quote(unit, safe='')} {grade}\n" for unit, grade in ranking.grades.items())
    return "".join(run), "".join(judged)


def write_rows(folder: Path, rows: Iterable[Sequence[bytes]], table: Table, *, failed: float | None = None) -> None:
    """Write the results of a dataset, one JSON object per question, with TREC files and a predictions file.

    Each question has a row for each of its replies; the first reply that is not an error is written whole.
    """
    trec: dict[str, list[str]] = {RUN: [], QRELS: []}
    predictions: list[str] = []
    with replace_file(folder / RESULTS) as partial, partial.open("wb") as out:
        for number, texts in enumerate(rows):
            replies = [json.loads(text) for text in texts]
            fields = next((reply for reply in replies if not reply["reply"]["error"]), replies[0])
            error = fields["reply"]["error"]
            fields["scores"] = {
                name: failed if error and name not in COUNTS_FAILED else column[number]
                for name, column in table.values.items()
            }
            if table.rounds:
                fields["repeats"] = list(map(_make_repeat, replies, table.rounds, repeat(number)))
            for written, lines in zip(trec.values(), fields.pop("trec"), strict=True):
                written.append(lines)
            row = QUESTION.validate_json(json.dumps(fields), strict=True)
            out.write(QUESTION.dump_json(row, exclude_unset=True) + b"\n")
            if not row.reply.error:
                passages = [passage.text or "" for passage in row.reply.passages[:_QUOTED]]
                entry = {"query": row.question, "retrieved_passages": passages}
                predictions.append(f"\n{json.dumps(entry, ensure_ascii=False)}")
    write_whole(folder / PREDICTIONS, f"[{','.join(predictions)}\n]\n" if predictions else "[]\n")
    for name, written in trec.items():
        write_whole(folder / name, "".join(written))


def _make_repeat(row: Mapping[str, Any], columns: Mapping[str, Values], number: int) -> dict[str, Any]:
    """Return one of several replies to a question, with its outcome and its scores."""
    fields = {name: row["reply"][name] for name in ("answer", "seconds", "error")}
    return {**fields, "outcome": row["outcome"], "scores": {name: column[number] for name, column in columns.items()}}


def format_reply(case: Case) -> dict[str, Any]:
    """Return a case's reply in the form for a run's files, with the text of the first and of the used passages only."""
    refused = case.reply.answer is not None and is_refusal(case.reply.answer)
    read = frozenset(case.reply.context or ())
    passages = [
        _format_passage(passage, quoted=rank < _QUOTED or rank + 1 in read)
        for rank, passage in enumerate(case.reply.passages)
    ]
    fields = {"answer": case.reply.answer, "refused": refused, "citations": find_cited(case), "passages": passages}
    # the ranks before the reranker are in the stages; the list itself would double the size of the row
    left_out = {"retrieved", "cut_by"}
    return fields | {name: value for name, value in vars(case.reply).items() if name not in {*fields, *left_out}}


def _format_passage(passage: Passage, *, quoted: bool) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(passage, name) for name in ("filename", "span", "page", "score")}
    reported = ("also_in", "more", "added", "misnamed", "unplaced")
    row |= {name: value for name in reported if (value := getattr(passage, name))}
    row |= {"pages": passage.pages} if len(passage.pages) > 1 else {}
    row |= {"told_page": passage.told_page} if passage.told_page is not None else {}
    row |= {"told_filename": passage.told_filename} if passage.told_filename not in (None, passage.filename) else {}
    return {**row, "text": passage.text} if quoted else row


# ---------------------------------------------------------------- evaltools


def write_evaltools(folder: Path) -> None:
    """Write the two files that the tool evaltools needs for its commands `summary` and `diff`."""
    run, count = RunFolder(folder), 0
    # one row at a time: the text of all passages may not fit into memory
    with (
        replace_file(folder / RESULTS) as partial,
        partial.open("w", encoding="utf-8", errors="replace", newline="\n") as out,
    ):
        for count, row in enumerate(run.rows, 1):  # noqa: B007  (the last number is the number of rows)
            out.write(json.dumps(_flatten_row(row), ensure_ascii=False) + "\n")
    asked = run.config.model_dump(exclude_unset=True)
    options = {key.removeprefix("target_"): value for key, value in asked.items() if key not in _OURS}
    parameters = {
        "evaluation_gpt_model": run.config.measured.judge,
        "testdata_path": [dataset.path for dataset in run.config.datasets.values()],
        "target_url": options.pop("url", run.config.target),
        "target_parameters": options,
        "num_questions": count,
    }
    write_json(folder / PARAMETERS, parameters)


def _flatten_row(row: RunQuestion) -> dict[str, Any]:
    """Return a row as the tool evaltools expects it: a column per metric, and any error message in `answer`."""
    error = row.reply.error
    context = "\n\n".join(f"{passage.filename or '?'}: {passage.text}" for passage in list_passages_read(row))
    return {
        "question": row.question,
        "truth": row.truth,
        "answer": error or row.reply.answer or "",
        "context": error or context,
        "latency": -1 if error else row.reply.seconds,
        "dataset": row.dataset,
        **{name: value for name, value in row.scores.items() if value is not None and not error},
    }


def list_passages_read(row: RunQuestion) -> list[RunPassage]:
    """Return the passages with stored text that the answer used: `context`, else the first `selected`, else all."""
    passages, context = row.reply.passages, row.reply.context
    numbers = range(1, len(passages) + 1)
    read = numbers[: row.reply.selected] if context is None else context
    return [passages[number - 1] for number in read if number in numbers and passages[number - 1].text]


# ---------------------------------------------------------------- means


def make_summary_json(means: Means) -> dict[str, Any]:
    return {name: estimate.as_json() for name, estimate in means.items()}


def kinds_of(labels: Sequence[Mapping[str, Any]], *, most: int = 60) -> list[str]:
    """Return the names of the labels by which questions can be grouped."""
    names = dict.fromkeys(name for row in labels for name in row)
    seen = {name: {str(row[name]) for row in labels if row.get(name) is not None} for name in names}
    return [name for name, values in seen.items() if 1 < len(values) <= min(most, max(2, len(labels) // 2))]


def compute_breakdown(table: Table) -> dict[str, dict[str, Means]]:
    grouped = [table.groups] if table.groups and any(table.groups in labels for labels in table.labels) else []
    names = dict.fromkeys([*kinds_of(table.labels), *grouped])
    return {name: dict(summarise_by(table, name)) for name in names}


# ---------------------------------------------------------------- tables


def read_tables(folder: RunFolder) -> list[Table]:
    rows: dict[str, list[RunQuestion]] = {name: [] for name in folder.rows.names}
    contents: dict[str, list[str]] = {name: [] for name in rows}
    for row in folder.rows:
        contents[row.dataset].append(folder.content_of(row))
        failed = bool(row.reply.error)
        # a failed question has no other score, even if a score of −1 was requested
        scores = {name: None if failed and name not in COUNTS_FAILED else value for name, value in row.scores.items()}
        # the texts of all rows may not fit into memory
        left_out = {"gold": [], "gold_stages": [], "reply": RunReply(error=row.reply.error), "scores": scores}
        rows[row.dataset].append(row.model_copy(update=left_out))
    return [_make_table(name, rows[name], contents[name], folder.config.datasets[name].groups) for name in rows]


def _make_table(name: str, rows: Sequence[RunQuestion], contents: Sequence[str], groups: str | None) -> Table:
    rounds = min((len(row.repeats) for row in rows), default=0)
    return Table(
        name,
        [row.id for row in rows],
        [row.document for row in rows],
        _make_columns([row.scores for row in rows]),
        [row.failed for row in rows],
        [dict(row.labels) for row in rows],
        groups,
        contents,
        [row.outcome for row in rows],
        [_make_columns([row.repeats[number].scores for row in rows]) for number in range(rounds)],
    )


def _make_columns(rows: Sequence[Mapping[str, float | None]]) -> dict[str, list[float | None]]:
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
