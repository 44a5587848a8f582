"""Adds other documents until the corpus is N times as large: `growth:4`; without a number, twice as large.

Runs with `growth:2`, `growth:4` and so on show the metrics as a function of the corpus size.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from exhibit.converters.core.benchmark import RawDocument, Tally
from exhibit.evidence import is_readable
from exhibit.evidence.read import read_within
from exhibit.schemas.bundle import CORPUS
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.storage.atomic import list_files
from exhibit.vary.corpus import TextCorpus, with_labels
from exhibit.vary.kinds import VaryRequest

TITLE = "other documents are added until there are so many times as many: growth:2, growth:4 …"
MEASURED = ("document_hit@1", "recall@10", "answer_contained")


def vary(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:
    """Return the corpus with documents from `--others`; no question is changed."""
    given = request.argument or "2"
    times = int(given) if given.isdecimal() else 0
    if times < 2:
        raise ToolkitError(
            f"growth:{request.argument}: the factor must be a whole number of at least 2: growth:2, growth:4 …"
        )
    if request.others is None:
        raise ToolkitError("growth: no other documents are given; add --others FOLDER")
    wanted = (times - 1) * len(corpus.documents)
    documents = dict(corpus.documents)
    for document in _read_others(request.others, request.seed, tally):
        if len(documents) == len(corpus.documents) + wanted:
            break
        if document.filename in documents or document.text in {one.text for one in documents.values()}:
            tally.note("document of --others that the bundle has already", document.filename)
            continue
        documents[document.filename] = document
    added = len(documents) - len(corpus.documents)
    if added < wanted:
        raise ToolkitError(
            f"{request.others}: {added} other documents, but growth:{times} needs {wanted}; give a larger folder"
        )
    rows = tuple(with_labels(row, growth=times) for row in corpus.rows)
    return replace(corpus, documents=documents, rows=rows)


def _read_others(folder: Path, seed: int, tally: Tally) -> Iterator[RawDocument]:
    """Yield the readable documents of a folder or a bundle, in an order that the seed determines."""
    root = folder / CORPUS if (folder / CORPUS).is_dir() else folder
    if not root.is_dir():
        raise ToolkitError(f"{folder}: no such folder; give --others a folder or a bundle with documents")
    paths = sorted((path for path in list_files(root) if is_readable(path)), key=lambda path: path.name)
    random.Random(f"{seed}\0growth").shuffle(paths)
    for path in paths:
        try:
            text = read_within(path).text
        except DocumentError as error:
            tally.note("document of --others that cannot be read", f"{path.name}: {error}")
            continue
        if text.strip():
            yield RawDocument(f"{path.stem}.pdf", path.stem, text=text)
