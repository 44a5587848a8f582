"""Analyse a finished run: what was asked, and the scores by kind of question."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from exhibit.evaluation import statistics
from exhibit.evaluation.records import kinds_of, read_tables
from exhibit.evaluation.score_table import Table
from exhibit.evaluation.stages import GOLD_STAGES
from exhibit.evaluation.text_tables import ALL, NARROW, choose_metrics, table_of
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run_folder import RunFolder

SOURCE_TYPE = "source_type"
"""The label that `--all` compares by: the kind of legal source that a question is about."""
_MOST_KINDS = 20
"""A label with more values than this identifies single questions and does not sort them into kinds."""
_SHOWN_IDS = 10


def format_analysis(folder: Path, *, metrics: Sequence[str] = (), width: int = NARROW) -> list[str]:
    """Return a finished run as lines of text."""
    run = RunFolder(folder)
    tables = read_tables(run)
    columns = {table.name: statistics.summarise(table) for table in tables}
    columns |= {ALL: statistics.summarise_run(tables)} if len(tables) > 1 else {}
    names = choose_metrics({name: one for means in columns.values() for name, one in means.items()}, metrics)
    asked = sum(len(table.ids) for table in tables)
    failed = sum(table.errors for table in tables)
    lines = [f"{folder.name}: {asked} questions of {_count(len(tables), 'dataset')}, {failed} failed"]
    lines += ["", "WHAT WAS ASKED", *format_distribution([labels for table in tables for labels in table.labels])]
    lines += ["", "IN ALL", *table_of(columns, names, width=width).splitlines()]
    for label in find_question_kinds([labels for table in tables for labels in table.labels]):
        lines += ["", f"BY {label.upper()}", *format_comparison(tables, label, metrics=metrics, width=width)]
    outcomes = Counter(row.outcome for row in run.rows).most_common()
    lines += ["", "WHAT BECAME OF THE QUESTIONS", *(f"  {outcome:<28} {count:>6}" for outcome, count in outcomes)]
    lost = Counter(row.lost_at for row in run.rows if row.gold_stages)
    if lost:
        shown = [(stage or "nowhere", lost[stage]) for stage in (*GOLD_STAGES, None) if lost[stage]]
        lines += ["", "WHERE THE GOLD IS LOST", *(f"  {stage:<28} {count:>6}" for stage, count in shown)]
    return lines + _format_flagged(tables)


def format_distribution(labels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return lines with the number of questions for each value of each label that groups questions."""
    lines = [f"questions: {len(labels)}"]
    for label in find_question_kinds(labels):
        counts = Counter(_format_value(row, label) for row in labels)
        lines.append(f"{label}:")
        width = max(map(len, counts))
        lines += [
            f"  {value:<{width}}  {count:>6}  {100 * count / len(labels):5.1f}%"
            for value, count in sorted(counts.items())
        ]
    return lines


def format_comparison(
    tables: Sequence[Table], label: str, *, metrics: Sequence[str] = (), width: int = NARROW
) -> list[str]:
    """Return the lines of a table of mean scores, with one column for each value of a label."""
    having = [table for table in tables if any(labels.get(label) is not None for labels in table.labels)]
    if not having:
        seen = ", ".join(dict.fromkeys(name for table in tables for labels in table.labels for name in labels))
        raise ToolkitError(f"no question has a label {label!r}; the labels are {seen or 'none'}")
    columns: dict[str, Mapping[str, statistics.Estimate]] = {}
    for table in having:
        sizes = Counter(_format_value(labels, label) for labels in table.labels)
        for value, means in statistics.summarise_by(table, label).items():
            name = value or _WITHOUT
            head = f"{table.name}: {name}" if len(having) > 1 else name
            columns[f"{head} ({_count(sizes[name], 'question')})"] = means
        if len(having) == 1:
            columns[f"{ALL} ({_count(len(table.ids), 'question')})"] = statistics.summarise(table)
    names = choose_metrics({name: one for means in columns.values() for name, one in means.items()}, metrics)
    measured = [name for name in names if any(m.get(name) and m[name].mean is not None for m in columns.values())]
    return table_of(columns, measured, width=width).splitlines()


_WITHOUT = "none"


def find_question_kinds(labels: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of the labels by which questions can be grouped; `source_type` comes first."""
    return sorted(kinds_of(labels, most=_MOST_KINDS), key=lambda name: name != SOURCE_TYPE)


def format_flags(tables: Sequence[Table], below: float) -> list[str]:
    """Return lines with the number and the ids of the answers that are flagged for review."""
    flags = [value for table in tables for value in table.values.get("flagged", ()) if value is not None]
    if not flags:
        return [f"flag_below {below:g}: no reply has a confidence, so nothing is flagged"]
    lines = [f"{sum(map(bool, flags))} of {len(flags)} answers have a confidence below {below:g}: flagged for review"]
    return lines + [f"  {name}: {', '.join(ids)}" for name, ids in _find_flags(tables) if ids]


def _format_flagged(tables: Sequence[Table]) -> list[str]:
    if not any(value is not None for table in tables for value in table.values.get("flagged", ())):
        return []
    return ["", "FLAGGED FOR REVIEW", *(f"{name}: {', '.join(ids) or 'none'}" for name, ids in _find_flags(tables))]


def _find_flags(tables: Iterable[Table]) -> Iterator[tuple[str, list[str]]]:
    for table in tables:
        flags = table.values.get("flagged", ())
        ids = [str(id) for id, flag in zip(table.ids, flags, strict=False) if flag]
        yield (
            table.name,
            [*ids[:_SHOWN_IDS], *([f"… and {len(ids) - _SHOWN_IDS} more"] if len(ids) > _SHOWN_IDS else [])],
        )


def _format_value(labels: Mapping[str, Any], label: str) -> str:
    value = labels.get(label)
    return _WITHOUT if value is None else str(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
