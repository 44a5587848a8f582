"""Any benchmark in the SQuAD format: contexts become documents, and the answers are located in them.

A context is printed to PDF, unless the user gives a PDF for it.

python -m converters.squad --source FILE.json --out datasets_out/squad
"""

import hashlib
import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from exhibit.converters import Benchmark, Item, Quote, RawDocument, RawRow, Tally, read_info
from exhibit.converters.benchmark import Label
from exhibit.converters.raw.source import find_one
from exhibit.converters.steps.cli import main
from exhibit.law.names import make_file_key
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import fit_name
from exhibit.schemas.parsing import parse_json
from exhibit.storage.atomic import list_files

INFO = read_info(__file__)
_ODD = re.compile(r"[^\w.-]+")
_DIGITS = 16  # digits of a numeric id
_LONGEST = 80  # characters of a file's name


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read a SQuAD file; each context becomes a document, and each of its questions becomes a row."""
    path = find_one(source, INFO, "*.json")
    data = path.read_bytes()
    contexts = list(_read_contexts(path, data, tally))
    if not contexts:
        raise SourceError(f"{path}: not in SQuAD's form (no context in it); expected {INFO.expects}")
    names = _make_names(contexts)
    given = _list_given(options.documents)
    documents, rows = [], []
    numbers: set[int] = set()
    count = 0
    for context, name in zip(contexts, names, strict=True):
        official = given.get(make_file_key(context.title))
        items = (Item("files", f"context {context.number}: {name}"),)
        tally.take(items)
        documents.append(
            RawDocument(
                filename=official.name if official else name,
                title=context.title or Path(name).stem,
                path=official,
                text=context.text,
                items=items,
            )
        )
        for record in context.qas:
            row = _make_row(record, context, documents[-1].filename, count, numbers, tally)
            count += 1
            if row is not None:
                rows.append(row)
    return Benchmark(documents, rows, {path.name: hashlib.sha256(data).hexdigest()})


def is_squad(path: Path) -> bool:
    """Return whether a file has the SQuAD format: articles with paragraphs, each with a context and its questions."""
    if path.suffix.lower() != ".json":
        return False
    try:
        data = json.loads(path.read_bytes())["data"]
        return bool(data) and "qas" in data[0]["paragraphs"][0]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        return False


@dataclass(frozen=True)
class _Context:
    number: int
    title: str
    text: str
    qas: tuple[Any, ...]


def _read_contexts(path: Path, data: bytes, tally: Tally) -> Iterator[_Context]:
    """Yield the contexts in order; count and leave out a malformed one."""
    record = parse_json(data, where=path, error=SourceError)
    articles = record.get("data") if isinstance(record, dict) else None
    if not isinstance(articles, list):
        raise SourceError(f"{path}: not in SQuAD's form (no list `data`); expected {INFO.expects}")
    number = 0
    for place, article in enumerate(articles):
        paragraphs = article.get("paragraphs") if isinstance(article, dict) else None
        if not isinstance(paragraphs, list):
            _leave_out(tally, "files", "article without a list of paragraphs", f"article {place}")
            continue
        title = str(article.get("title") or "")
        for at, paragraph in enumerate(paragraphs):
            text = paragraph.get("context") if isinstance(paragraph, dict) else None
            rows = paragraph.get("qas", []) if isinstance(paragraph, dict) else None
            if not isinstance(text, str) or not isinstance(rows, list):
                reason = "paragraph without a context and a list of questions"
                _leave_out(tally, "files", reason, f"article {place}, paragraph {at}")
                continue
            part = f"{title} {at + 1}" if title and len(paragraphs) > 1 else title
            yield _Context(number, part, text, tuple(rows))
            number += 1


def _leave_out(tally: Tally, kind: Literal["files", "rows"], reason: str, name: str) -> None:
    item = Item(kind, name)
    tally.take([item])
    tally.fault(reason, name, item=item)


def _make_names(contexts: list[_Context]) -> list[str]:
    """Return a file name for each context: its title, else its number; equal titles also get their numbers."""
    stems = [_ODD.sub("_", context.title.removesuffix(".pdf")).strip("_.")[:_LONGEST] for context in contexts]
    keys = [stem.casefold() for stem in stems]
    return [
        fit_name(stem, ".pdf")
        if stem and keys.count(key) == 1
        else fit_name(stem or "context", f"_{context.number:04}.pdf")
        for stem, key, context in zip(stems, keys, contexts, strict=True)
    ]


def _list_given(folder: Path | None) -> dict[str, Path]:
    if folder is None:
        return {}
    files = {make_file_key(path.name): path for path in list_files(folder) if path.suffix.lower() == ".pdf"}
    if not files:
        raise SourceError(f"{folder}: no PDFs in it; give --documents a folder of PDFs")
    return files


def _is_impossible(value: Any) -> bool | None:
    """Return an `is_impossible` value as a boolean; a missing value is False, and an unknown value is None."""
    return {"true": True, "1": True, "false": False, "0": False, "none": False, "": False}.get(str(value).lower())


def _make_row(
    record: Any, context: _Context, filename: str, count: int, numbers: set[int], tally: Tally
) -> RawRow | None:
    if not isinstance(record, Mapping):
        _leave_out(tally, "rows", "question that is no object", f"question {count}")
        return None
    name = f"question {record.get('id', count)}"
    item = Item("rows", f"{count}: {name}")
    tally.take([item])
    question = str(record.get("question") or "").strip()
    if not question:
        tally.fault("question without words", name, item=item)
        return None
    number = record.get("id")
    number = int(number) if isinstance(number, str) and number.isdecimal() and len(number) < _DIGITS else number
    if not isinstance(number, int) or isinstance(number, bool) or number < 0 or number in numbers:
        number = count
        while number in numbers:
            number += 1
    numbers.add(number)
    impossible, answers = _is_impossible(record.get("is_impossible")), record.get("answers") or []
    if impossible is None:
        tally.fault("question whose `is_impossible` is neither true nor false", name, item=item)
        return None
    if not isinstance(answers, list) or not all(isinstance(answer, Mapping) for answer in answers):
        tally.fault("question whose answers are no list of objects", name, item=item)
        return None
    quotes = () if impossible else _make_quotes(answers, context, filename, name, tally)
    if not quotes and not impossible:
        tally.fault("question without an answer that is not marked impossible", name, item=item)
        return None
    labels: dict[str, Label] = {"source_id": str(record["id"])} if str(record.get("id", number)) != str(number) else {}
    answer = quotes[0].text or "" if quotes else ""
    return RawRow(number, question, answer, quotes, filename, impossible, labels, (item,), name)


def _make_quotes(
    answers: Sequence[Mapping[str, Any]], context: _Context, filename: str, name: str, tally: Tally
) -> tuple[Quote, ...]:
    """Return one gold quote for each different answer text; empty answers are left out.

    If an answer text has several offsets, the first offset is the quote's location, and the others are its
    alternative locations. An offset at which the context has another text is ignored, with a note in `tally`.
    """
    places: dict[str, list[tuple[int, int]]] = {}
    for answer in answers:
        text, start = str(answer.get("text") or ""), answer.get("answer_start")
        if not text.strip():
            continue
        spans = places.setdefault(text, [])
        if isinstance(start, int) and start >= 0 and context.text[start : start + len(text)] == text:
            spans.append((start, start + len(text)))
        else:
            tally.note("answer that does not stand at its offset: located by its words", name)
    quotes = []
    for text, spans in places.items():
        known = list(dict.fromkeys(spans))
        quote = Quote(filename, text, tuple(known[:1]))
        quotes.append(replace(quote, alternatives=tuple((span,) for span in known[1:])))
    return tuple(quotes)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
