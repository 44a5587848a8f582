"""Any benchmark in the SQuAD format: contexts become documents, and the answers are located in them.

python -m converters.squad --source FILE.json --out datasets_out/squad
"""

import hashlib
import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from exhibit.converters import Benchmark, DatasetInfo, Item, Label, Licence, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.command import main
from exhibit.converters.core.source import find_one
from exhibit.law.names import make_file_key
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import fit_name
from exhibit.schemas.parsing import parse_json
from exhibit.storage.atomic import list_files

INFO = DatasetInfo(
    name="squad",
    title="Questions in SQuAD's form on PDFs",
    benchmark="a file in SQuAD's form",
    summary="Contexts as documents, questions as published, and every answer located on its page.",
    expects="a .json file in SQuAD's form: data, paragraphs, context, qas, answers with answer_start",
    licence=Licence(
        id="other",
        name="as given with the source",
        redistributable=False,
        note="The file does not say under what terms it may be passed on; check them before you publish.",
    ),
    url="https://rajpurkar.github.io/SQuAD-explorer/",
    version="as given",
    citation="""@misc{squad,
  title = {A benchmark in SQuAD's form},
  note = {as given}
}""",
    tags=("question answering",),
    accepts=(".json",),
    questions="The questions and answers are the source's own.",
    limits="""
        - An answer's offset is checked against its context; where the words stand elsewhere in it, they are located
          by the words, and the row is noted.
        - Several answers to one question are further places of one passage where their words are the same, and
          passages of their own where they are not.""",
)

_ODD = re.compile(r"[^\w.-]+")
MAX_ID_DIGITS = 15
MAX_NAME_CHARS = 80


class _Context(NamedTuple):
    number: int
    title: str
    text: str
    qas: tuple[Any, ...]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flag for documents that the user has."""
    what = "PDFs that the contexts are the text of, by their titles; without it the contexts are printed"
    parser.add_argument("--documents", type=Path, metavar="DIR", help=what)


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read a SQuAD file; each context becomes a document, and each of its questions becomes a row."""
    path = find_one(source, INFO, "*.json")
    data = path.read_bytes()
    contexts = list(_read_contexts(path, data, tally))
    if not contexts:
        raise SourceError(f"{path}: not in SQuAD's form (no context in it); expected {INFO.expects}")
    official = _list_official(options.documents)
    documents: list[RawDocument] = []
    rows: list[RawRow] = []
    ids: set[int] = set()
    count = 0
    for context, name in zip(contexts, _make_names(contexts), strict=True):
        file = official.get(make_file_key(context.title))
        items = (Item("files", f"context {context.number}: {name}"),)
        tally.take(items)
        filename, title = file.name if file else name, context.title or Path(name).stem
        documents.append(RawDocument(filename, title, file, text=context.text, items=items))
        for record in context.qas:
            rows += filter(None, [_make_row(record, context, filename, count, ids, tally)])
            count += 1
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
    stems = [_ODD.sub("_", context.title.removesuffix(".pdf")).strip("_.")[:MAX_NAME_CHARS] for context in contexts]
    counts = Counter(stem.casefold() for stem in stems)
    return [
        fit_name(stem, ".pdf")
        if stem and counts[stem.casefold()] == 1
        else fit_name(stem or "context", f"_{context.number:04}.pdf")
        for stem, context in zip(stems, contexts, strict=True)
    ]


def _list_official(folder: Path | None) -> dict[str, Path]:
    if folder is None:
        return {}
    files = {make_file_key(path.name): path for path in list_files(folder) if path.suffix.lower() == ".pdf"}
    if not files:
        raise SourceError(f"{folder}: no PDFs in it; give --documents a folder of PDFs")
    return files


def _make_row(record: Any, context: _Context, filename: str, count: int, ids: set[int], tally: Tally) -> RawRow | None:
    if not isinstance(record, Mapping):
        _leave_out(tally, "rows", "question that is no object", f"question {count}")
        return None
    name = f"question {record.get('id', count)}"
    item = Item("rows", f"{count}: {name}")
    tally.take([item])
    question, answers = str(record.get("question") or "").strip(), record.get("answers") or []
    if not question:
        tally.fault("question without words", name, item=item)
        return None
    number = _choose_id(record.get("id"), count, ids)
    flags = {"true": True, "1": True, "false": False, "0": False, "none": False, "": False}
    impossible = flags.get(str(record.get("is_impossible")).lower())
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


def _choose_id(stated: Any, count: int, ids: set[int]) -> int:
    """Return the source's id if it is a number that is free, else the next free number from `count`."""
    number = int(stated) if isinstance(stated, str) and stated.isdecimal() and len(stated) <= MAX_ID_DIGITS else stated
    if not isinstance(number, int) or isinstance(number, bool) or number < 0 or number in ids:
        number = count
        while number in ids:
            number += 1
    ids.add(number)
    return number


def _make_quotes(
    answers: Sequence[Mapping[str, Any]], context: _Context, filename: str, name: str, tally: Tally
) -> tuple[Quote, ...]:
    """Return one gold quote for each different answer text; its further offsets are alternatives."""
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
        quotes.append(Quote(filename, text, tuple(known[:1]), alternatives=tuple((span,) for span in known[1:])))
    return tuple(quotes)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
