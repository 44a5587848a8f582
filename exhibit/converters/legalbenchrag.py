"""LegalBench-RAG: the queries and gold spans of four benchmarks, over one corpus of text files.

exhibit convert legalbenchrag --source legalbenchrag/data --out datasets_out/legalbenchrag
"""

import random
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, Field

from exhibit.converters import Benchmark, DatasetInfo, Licence, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.source import Release, read_records
from exhibit.converters.core.titles import choose_unique_titles
from exhibit.schemas.errors import SourceError

INFO = DatasetInfo(
    name="legalbenchrag",
    title="LegalBench-RAG as one bundle",
    benchmark="LegalBench-RAG",
    summary="""Queries on non-disclosure agreements (ContractNLI), commercial contracts (CUAD), merger agreements
        (MAUD) and privacy policies (PrivacyQA), answered by character spans; all four are searched in one corpus.""",
    expects="benchmarks/*.json and corpus/<benchmark>/*.txt",
    licence=Licence(
        id="mit",
        name="MIT",
        url="https://github.com/zeroentropy-cc/legalbenchrag/blob/main/LICENSE",
        redistributable=True,
        note="The texts have licences of their own: CC BY 4.0 for ContractNLI, CUAD and MAUD, MIT for PrivacyQA.",
    ),
    url="https://github.com/zeroentropy-cc/legalbenchrag",
    citation="""@article{pipitone2024legalbenchrag,
  title = {LegalBench-RAG: A Benchmark for Retrieval-Augmented Generation in the Legal Domain},
  author = {Pipitone, Nicholas and Alami, Ghita Houir},
  journal = {arXiv preprint arXiv:2408.10343},
  year = {2024}
}""",
    by_hand="""Nothing is downloaded: the authors share a Dropbox folder (linked in their README), and each download
        of it has a different hash. Pass the downloaded .zip with --source.""",
    groups="benchmark",
    headline="char_recall@8",
    tags=("legal", "contracts", "privacy", "legalbench-rag"),
    derived="legalbench-rag",
    questions="The queries are LegalBench-RAG's own, word for word.",
    limits="""
        - The answer of a row is the text of its gold passages: the source has no other answers and no impossible rows.
        - Corpus and spans are as published; a byte order mark is character 0.
        - `labels.benchmark` names the benchmark of a row; a mean is the mean of the means on the four benchmarks.""",
)

MINI = 194  # tests of each benchmark in the published sample: the size of the smallest benchmark


class _Snippet(BaseModel):
    file_path: str
    span: tuple[int, int] | None = None
    answer: str | None = None


class _Record(BaseModel):
    query: str = Field(pattern=r"\S")
    snippets: list[_Snippet] = Field(min_length=1)


class _Test(NamedTuple):
    id: int  # it numbers the tests of all files, including omitted tests
    benchmark: str
    name: str
    record: _Record


def add_arguments(parser: ArgumentParser) -> None:
    mini = "only LegalBench-RAG-mini: 194 tests of each benchmark, chosen by the published rule, and their files"
    parser.add_argument("--mini", action="store_true", help=mini)


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read benchmarks/*.json and the corpus, and compare the text at each span with the stored answer."""
    release = Release(source, INFO)
    root = release.find("benchmarks").parent
    tests = list(_read_tests(release, root / "benchmarks", tally))
    corpus = root / "corpus"
    paths = sorted(path for path in corpus.rglob("*") if path.is_file())
    files = {path.relative_to(corpus).as_posix(): path for path in paths if path.suffix.lower() == ".txt"}
    for path in paths:
        if path.suffix.lower() != ".txt":
            tally.leave_out("file in corpus/ that is not a text", path.relative_to(corpus).as_posix())
    if not files:
        raise SourceError(f"{corpus}: no text file in it; expected {INFO.expects}, from {INFO.url}")
    # name all files of the corpus, so that filters and limits change no name
    names = choose_unique_titles({key: [path.name, " - ".join(Path(key).parts)] for key, path in files.items()})
    for key in (key for key, path in files.items() if names[key] != path.name):
        tally.note("two files with the same name, distinguished by their folder", f"{key} -> {names[key]}")
    if options.mini:
        tests = _choose_mini(tests, tally)
        used = {snippet.file_path for test in tests for snippet in test.record.snippets}
        for key in sorted(files.keys() - used):
            tally.leave_out("file that the published sample does not use (--mini)", key)
        files = {key: path for key, path in files.items() if key in used}
    # published offsets refer to UTF-8 texts, with their BOM
    texts = {key: path.read_bytes().decode("utf-8", "replace") for key, path in files.items()}
    documents = [RawDocument(names[k], Path(names[k]).stem, files[k], text=text, source=k) for k, text in texts.items()]
    rows = [row for test in tests for row in _make_row(test, texts, names, tally)]
    return Benchmark(documents, rows, release.sha256)


def _read_tests(release: Release, folder: Path, tally: Tally) -> Iterator[_Test]:
    first = 0
    for path in sorted(folder.glob("*.json")):
        records = release.read_json(path, lists="tests")["tests"]
        for number, record in read_records(_Record, records, path.stem, tally):
            yield _Test(first + number, path.stem, f"{path.stem} {number}", record)
        first += len(records)


def _choose_mini(tests: list[_Test], tally: Tally) -> list[_Test]:
    kept: list[_Test] = []
    for _, tests_of_benchmark in groupby(tests, lambda test: test.benchmark):
        group = list(tests_of_benchmark)
        # The published rule: all tests of a document get the same number, so that the sample needs few documents.
        # Random(seed) gives the same numbers as random.random() after random.seed(seed).
        if len(group) > MINI:
            group.sort(key=lambda test: random.Random(test.record.snippets[0].file_path).random())
        kept += sorted(group[:MINI], key=lambda test: test.id)
        for test in sorted(group[MINI:], key=lambda test: test.id):
            tally.leave_out("not in the published sample (--mini)", test.name)
    return kept


def _make_row(test: _Test, texts: dict[str, str], names: dict[str, str], tally: Tally) -> Iterator[RawRow]:
    """Yield the row of a test, unless one of its passages has no text: incomplete gold would give wrong scores."""
    quotes: list[Quote] = []
    for snippet in test.record.snippets:
        key, span = snippet.file_path, snippet.span
        place = f"{test.name}: {key} {span}"
        if key not in texts:
            tally.fault("test on a document that is not in corpus/ or cannot be read", place)
            return
        start, end = span or (0, 0)
        words = texts[key][start:end] if 0 <= start < end <= len(texts[key]) else ""
        text = words if snippet.answer is None else snippet.answer
        if not text.strip():
            tally.fault("test with an empty snippet", place)
            return
        if words != text:
            tally.fault("span whose text is not the stored answer: the answer was located instead", place)
        quotes.append(Quote(names[key], text, (span,) if span and words == text else ()))
    answer = "\n".join((quote.text or "").strip() for quote in quotes)
    yield RawRow(test.id, test.record.query, answer, tuple(quotes), labels={"benchmark": test.benchmark})
