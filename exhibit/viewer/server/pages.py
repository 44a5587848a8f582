"""The HTML pages of `exhibit view`: all bundles and runs, one bundle, one document, one job."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.evaluation.metrics import describe_metric
from exhibit.rag.config import list_presets
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.review import AddedQuestion
from exhibit.viewer.listing import as_json
from exhibit.viewer.page import format_page, render
from exhibit.viewer.server.jobs import Job, JobState
from exhibit.viewer.server.library import JOURNAL, BundleIndex, BundleLine, QuestionLine, RunLine
from exhibit.viewer.server.search import SearchResult

LARGEST_UPLOAD = 200_000_000
"""The largest size of an uploaded document in bytes."""
_LISTED = 100  # documents and questions that a page lists: beyond that a person searches
_FILTERS = 3  # labels that filter the questions on a bundle's page
_VALUES = 60  # values of a label that fit into a menu
_LATEST = 8  # replies of a running evaluation that are shown
_ANSWER = 160  # characters of a reply in that list
_TAIL = 200_000  # bytes at the end of a journal that contain the latest replies

STATES: Mapping[JobState, str] = {
    "running": "running", "finished": "finished", "stopped": "stopped", "failed": "failed",
    "died": "ended without a word",
}  # fmt: skip


def format_frame(title: str, body: str, data: Mapping[str, Any], *, language: str, marking: bool = False) -> str:
    """Return an HTML page in the layout of the reports.

    The page's script may send requests only to this server.
    """
    return format_page(
        f"{title} – Exhibit",
        body,
        styles=["view.css"],
        scripts=["build.js", *(["marking.js"] if marking else []), "view.js"],
        data={"view": as_json(data)},
        served=True,
        language=language,
    )


def format_home(
    folders: Sequence[Path],
    bundles: Sequence[BundleLine],
    runs: Sequence[RunLine],
    jobs: Sequence[tuple[Job, JobState]],
    *,
    language: str,
) -> str:
    """Return the page of all bundles and runs."""
    body = render(
        "view.html.j2",
        language=language,
        folders=[folder.name or str(folder) for folder in folders],
        bundles=bundles,
        runs=runs,
        jobs=[one for one in jobs if one[1] == "running"],
        finished=[one for one in jobs if one[1] != "running"][:10],
        located=lambda info: describe_located(info)[1],
        value=lambda metric, mean: describe_metric(metric).in_words(mean) + describe_metric(metric).unit_behind,
        title=lambda metric: describe_metric(metric).title,
        meaning=lambda metric: describe_metric(metric).meaning,
        most_megabytes=LARGEST_UPLOAD // 1_000_000,
    )
    waiting = any(run.state == "unchecked" for run in runs)
    return format_frame("Bundles and runs", body, {"again": waiting}, language=language)


def describe_located(info: BundleInfo) -> tuple[str, str]:
    """Return a bundle's share of located gold passages as a percentage, and the counts as `90 of 100`."""
    total = sum(info.counts.located.values())
    there = total - info.counts.located.get("absent", 0)
    return (f"{100 * there / total:.1f}%" if total else "–"), f"{there:,} of {total:,}"


class DocumentLine(NamedTuple):
    """A line of the list of documents on a bundle's page: the name, and the number of its questions."""

    name: str
    questions: int


def format_bundle(
    bundle: BundleIndex,
    key: str,
    *,
    find: str,
    chosen: Mapping[str, str],
    words: str,
    found: SearchResult | None,
    reviews: int,
    added: Sequence[tuple[str, AddedQuestion]],
    language: str,
) -> str:
    """Return the page of one bundle: its description, its documents and its questions.

    `find` and `chosen` (label values) filter the questions and documents. `found` is the result of a full-text
    search for `words`.
    """
    lines, asked = bundle.questions, find.lower().split()
    shown = [
        line for line in lines
        if all(str(line.labels.get(name)) == value for name, value in chosen.items())
        and (not asked or all(word in _join_searched(line) for word in asked))
    ]  # fmt: skip
    counts = Counter(line.document for line in lines)
    named = {line.document for line in shown}
    documents = [
        DocumentLine(name, counts[name]) for name in bundle.files
        if (not asked and not chosen) or name in named or all(word in name.lower() for word in asked)
    ]  # fmt: skip
    share, of = describe_located(bundle.info) if bundle.info else ("–", "")
    body = render(
        "view_bundle.html.j2",
        language=language,
        name=bundle.root.name,
        key=key,
        info=bundle.info,
        drafted=bool(bundle.info and bundle.info.draft),
        documents=list(bundle.files),
        total=len(lines),
        located_share=share,
        located_of=of,
        presets=list_presets(),
        reviews=reviews,
        added=added,
        find=find,
        words=words,
        found=found,
        labels=_make_menus(line.labels for line in lines),
        chosen=chosen,
        shown_documents=documents[:_LISTED],
        more_documents=max(0, len(documents) - _LISTED),
        questions=shown[:_LISTED],
        more_questions=max(0, len(shown) - _LISTED),
    )
    reading = found is not None and found.read < found.of
    return format_frame(bundle.root.name, body, {"key": key, "again": reading}, language=language)


def _join_searched(line: QuestionLine) -> str:
    """Return the searchable text of a question: its words, its document's name and its labels."""
    return " ".join([line.question, line.document, *map(str, line.labels.values())]).lower()


def _make_menus(labels: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return up to three labels, with their values, by which the questions can be filtered."""
    values: dict[str, set[str]] = {}
    for row in labels:
        for name, value in row.items():
            if value is not None and len(values.setdefault(name, set())) <= _VALUES:
                values[name].add(str(value))
    menus = {name: sorted(seen) for name, seen in values.items() if 1 < len(seen) <= _VALUES}
    return dict(list(menus.items())[:_FILTERS])


def format_document(
    bundle: BundleIndex,
    key: str,
    name: str,
    question: str,
    *,
    pages: int,
    first: int,
    hit: Sequence[int] = (),
    language: str,
) -> str:
    """Return the HTML page of one document: the document's pages, its questions, and a form for a new question."""
    mine = [line for line in bundle.questions if line.document == name]
    asked = next((one for one in bundle.questions if str(one.id) == question), None)
    body = render(
        "view_document.html.j2", language=language, key=key, bundle=bundle.root.name, name=name, questions=mine,
        question=asked,
    )  # fmt: skip
    numbers = list(range(1, pages + 1)) or [0]
    data = {"key": key, "name": name, "pages": numbers, "first": first, "hits": [hit] if hit else []}
    return format_frame(name, body, data, language=language, marking=True)


def format_job(job: Job, state: JobState, output: str, *, language: str) -> str:
    """Return the page of a job."""
    body = render("view_job.html.j2", language=language, job=job, state=STATES[state], output=output)
    return format_frame(job.title, body, {"job": job.key, "states": STATES}, language=language)


def run_view(line: RunLine, answered: int, job: Job | None, *, language: str) -> str:
    """Return the HTML page of a run that has no report, because it is running, was stopped or is damaged."""
    body = render("view_run.html.j2", language=language, line=line, answered=answered, job=job)
    return format_frame(line.name, body, {}, language=language)


def read_latest_replies(folder: Path) -> list[dict[str, str]]:
    """Return the last replies of a running evaluation, newest first: each question and the start of its answer."""
    lines: list[bytes] = []
    for path in folder.glob(f"*/{JOURNAL}"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                start = file.seek(max(0, path.stat().st_size - _TAIL))
                # the last line may be incomplete, and so may the first, unless it is the first of the journal
                lines += file.read().split(b"\n")[1 if start else 0 : -1][-_LATEST:]
    replies = []
    for line in lines[-_LATEST:]:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        reply = record.get("reply") or {}
        answer = reply.get("error") or reply.get("answer") or ""
        replies.append({"question": str(record.get("question", "")), "answer": str(answer)[:_ANSWER]})
    return replies[::-1]


def require(value: Any, name: str, *, most: int = 20_000) -> str:
    """Return a text field of a browser's request.

    Raise an error that names the field (`name`) if it is missing or has more than `most` characters.
    """
    if not isinstance(value, str) or len(value) > most:
        raise ToolkitError(f"{name}: is missing, or has more than {most} characters")
    return value
