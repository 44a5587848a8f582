"""Any benchmark in the SQuAD format: contexts become documents, and the answers are located in them.

exhibit convert squad --source FILE.json --out datasets_out/squad
"""

import json
import re
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from exhibit.converters import Benchmark, DatasetInfo, Item, Label, Licence, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.source import Release, check_record
from exhibit.law.names import make_file_key
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import fit_name
from exhibit.storage.atomic import list_files

INFO = DatasetInfo(
    name="squad",
    title="Questions in SQuAD's format on PDFs",
    benchmark="a file in SQuAD's format",
    summary="Contexts as documents, questions as published, and every answer located on its page.",
    expects="a .json file in SQuAD's format: data, paragraphs, context, qas, answers with answer_start",
    licence=Licence(
        id="other",
        name="as given with the source",
        redistributable=False,
        note="The file does not state its licence; check it before you publish the bundle.",
    ),
    url="https://rajpurkar.github.io/SQuAD-explorer/",
    version="as given",
    tags=("question answering",),
    accepts=(".json",),
    questions="The questions and answers are the source's own.",
    limits="""
        - An answer that is not at its offset is located by its words, and noted.
        - Several answers to one question are one passage if their words are the same, else separate passages.""",
)

_ODD = re.compile(r"[^\w.-]+")


class _Paragraph(BaseModel):
    context: str
    qas: list[Any] = []


class _Answer(BaseModel):
    text: str | None = None
    answer_start: Any = None


class _Question(BaseModel):
    question: str = Field(pattern=r"\S")
    answers: list[_Answer] | None = None
    is_impossible: bool | None = None
    id: Any = None


def add_arguments(parser: ArgumentParser) -> None:
    what = "a folder of PDFs with the texts of the contexts, named by their titles (default: print the contexts)"
    parser.add_argument("--documents", type=Path, metavar="DIR", help=what)


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read a SQuAD file; each context becomes a document, and each of its questions becomes a row."""
    release = Release(source, INFO)
    path = release.find("*.json")
    contexts = list(_read_contexts(release.read_json(path, lists="data")["data"], tally))
    if not contexts:
        raise SourceError(f"{path}: not in SQuAD's format (no context in it); expected {INFO.expects}")
    folder: Path | None = options.documents
    pdfs = [path for path in list_files(folder) if path.suffix.lower() == ".pdf"] if folder else []
    if folder and not pdfs:
        raise SourceError(f"{folder}: no PDFs in it; give --documents a folder of PDFs")
    official = {make_file_key(pdf.name): pdf for pdf in pdfs}
    documents, records = [], []
    names = make_names([title for title, _ in contexts])
    for number, ((title, paragraph), name) in enumerate(zip(contexts, names, strict=True)):
        file = official.get(make_file_key(title))
        item = Item("files", f"context {number}: {name}")
        tally.take([item])
        raw = RawDocument(file.name if file else name, title or Path(name).stem, file, paragraph.context, items=(item,))
        documents.append(raw)
        records += [(record, raw) for record in paragraph.qas]
    ids: set[int] = set()
    rows = [row for at, (record, raw) in enumerate(records) if (row := _make_row(record, raw, at, ids, tally))]
    return Benchmark(documents, rows, release.sha256)


def is_squad(path: Path) -> bool:
    """Return whether a file has the SQuAD format: articles with paragraphs, each with a context and questions."""
    try:
        return path.suffix.lower() == ".json" and "qas" in json.loads(path.read_bytes())["data"][0]["paragraphs"][0]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return False


def _read_contexts(articles: Sequence[object], tally: Tally) -> Iterator[tuple[str, _Paragraph]]:
    for place, article in enumerate(articles):
        fields = article if isinstance(article, dict) and isinstance(article.get("paragraphs"), list) else {}
        title, paragraphs = str(fields.get("title") or ""), fields.get("paragraphs", [None])
        for at, part in enumerate(paragraphs):
            item = Item("files", f"article {place}, paragraph {at}")
            if paragraph := check_record(_Paragraph, part, item.name, tally, item=item):
                yield (f"{title} {at + 1}" if title and len(paragraphs) > 1 else title), paragraph


def make_names(titles: Sequence[str]) -> list[str]:
    """Return a file name for each context: its title or its number; equal titles also get numbers."""
    stems = [_ODD.sub("_", title.removesuffix(".pdf")).strip("_.")[:80] for title in titles]
    counts = Counter(stem.casefold() for stem in stems)
    numbers = ["" if stem and counts[stem.casefold()] == 1 else f"_{number:04}" for number, stem in enumerate(stems)]
    return [fit_name(stem or "context", f"{number}.pdf") for stem, number in zip(stems, numbers, strict=True)]


def _make_row(record: Any, document: RawDocument, count: int, ids: set[int], tally: Tally) -> RawRow | None:
    name = f"question {record.get('id', count) if isinstance(record, dict) else count}"
    item = Item("rows", f"{count}: {name}")
    tally.take([item])
    row = check_record(_Question, record, item.name, tally, item=item)
    if row is None:
        return None
    impossible = bool(row.is_impossible)
    quotes = [] if impossible else _make_quotes(row.answers or [], document, name, tally)
    if not quotes and not impossible:
        tally.fault("question that has no answer, but is not marked impossible", name, item=item)
        return None
    text = str(row.id)
    number = int(text) if text.isdecimal() and len(text) <= 15 and int(text) not in ids else count
    while number in ids:
        number += 1
    ids.add(number)
    labels: dict[str, Label] = {"source_id": text} if row.id is not None and text != str(number) else {}
    answer, filename = quotes[0].text or "" if quotes else "", document.filename
    return RawRow(number, row.question.strip(), answer, tuple(quotes), filename, impossible, labels, (item,), name)


def _make_quotes(answers: Sequence[_Answer], document: RawDocument, name: str, tally: Tally) -> list[Quote]:
    """Return one gold quote for each distinct answer text; its further offsets are alternatives."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for answer in answers:
        text, start = answer.text or "", answer.answer_start
        places = spans.setdefault(text, [])
        if isinstance(start, int) and start >= 0 and (document.text or "").startswith(text, start):
            places += [(start, start + len(text))] if (start, start + len(text)) not in places else []
        elif text.strip():
            tally.note("answer that is not at its offset: located by its words", name)
    return [
        Quote(document.filename, text, tuple(places[:1]), alternatives=tuple((span,) for span in places[1:]))
        for text, places in spans.items()
        if text.strip()
    ]
