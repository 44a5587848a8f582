"""LegalBench-RAG: the queries and gold spans of four benchmarks, over one corpus of text files.

python -m converters.legalbenchrag --source legalbenchrag/data --out datasets_out/legalbenchrag
"""

import hashlib
import random
import sys
import unicodedata
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from exhibit.converters import Benchmark, Quote, RawDocument, RawRow, Tally, read_info
from exhibit.converters.raw.source import find_one, read_json
from exhibit.converters.steps.cli import main
from exhibit.schemas.errors import SourceError

INFO = read_info(__file__)

MINI = 194
"""The number of tests of each benchmark in the published sample: the size of the smallest benchmark."""


class _Snippet(NamedTuple):
    """A gold passage as published; `span` is None if the release gives no pair of offsets for it."""

    path: str
    span: tuple[int, int] | None
    answer: str | None


_Words = dict[str, dict[_Snippet, str]]
"""For every readable file, the text at each valid span."""


class _Test(NamedTuple):
    """A test: a query and its gold passages.

    `id` numbers the tests through all benchmark files, including tests that are left out.
    """

    id: int
    benchmark: str
    name: str
    query: str
    snippets: tuple[_Snippet, ...]


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read benchmarks/*.json and the corpus, and compare the text at each span with the stored answer."""
    root = find_one(source, INFO, "benchmarks").parent
    as_pdf = vars(options)["as"] == "pdf"
    tests, sha256 = _read_benchmarks(root / "benchmarks", tally)
    files = _list_corpus(root / "corpus", tally)
    # over the whole corpus, so that neither a filter nor a limit changes a name
    names = _make_unique_names(files, ".pdf" if as_pdf else "", tally)
    if options.mini:
        tests = _choose_mini(tests, tally)
        files = _keep_used(files, tests, tally)
    if options.limit:
        files = dict(list(files.items())[: options.limit])
        tests = [test for test in tests if all(_make_key(snippet.path) in files for snippet in test.snippets)]
    words = _verify(files, tests, tally)
    return Benchmark(
        documents=[
            RawDocument(names[key], Path(names[key]).stem, None if as_pdf else path, text_path=path, source=key)
            for key, path in files.items()
            if key in words
        ],
        rows=[row for test in tests for row in _make_row(test, words, names, tally)],
        sha256=sha256,
    )


# ---------------------------------------------------------------- the benchmarks


def _read_benchmarks(folder: Path, tally: Tally) -> tuple[list[_Test], dict[str, str]]:
    """Return the valid tests of all benchmark files, in the order of the file names, and the files' checksums."""
    tests: list[_Test] = []
    sha256: dict[str, str] = {}
    first = 0
    for path in sorted(folder.glob("*.json")):
        data = path.read_bytes()
        records: list[Any] = read_json(path, data, INFO, lists="tests")["tests"]
        for index, record in enumerate(records):
            name = f"{path.stem} {index}"
            problem = _find_problem(record)
            if problem:
                tally.fault(problem, name)
            else:
                snippets = tuple(_read_snippet(item) for item in record["snippets"])
                tests.append(_Test(first + index, path.stem, name, record["query"], snippets))
        first += len(records)
        sha256[path.name] = hashlib.sha256(data).hexdigest()
    return tests, sha256


def _find_problem(record: Any) -> str:
    """Return the fault of a test record; empty if it is valid."""
    if not isinstance(record, dict) or not isinstance(record.get("query"), str) or not record["query"].strip():
        return "test without a query"
    snippets = record.get("snippets")
    if not isinstance(snippets, list) or not snippets:
        return "test without snippets"
    if not all(isinstance(item, dict) and isinstance(item.get("file_path"), str) for item in snippets):
        return "snippet without a file_path"
    return ""


def _read_snippet(item: dict[str, Any]) -> _Snippet:
    answer = item["answer"] if isinstance(item.get("answer"), str) else None
    match item.get("span"):
        case [int(start), int(end)]:
            return _Snippet(item["file_path"], (start, end), answer)
    return _Snippet(item["file_path"], None, answer)


def _choose_mini(tests: list[_Test], tally: Tally) -> list[_Test]:
    """Return the tests of the published sample, LegalBench-RAG-mini, in the source's order."""
    kept: set[int] = set()
    for benchmark in dict.fromkeys(test.benchmark for test in tests):
        group = [test for test in tests if test.benchmark == benchmark]
        if len(group) > MINI:
            # One number for all tests of a document keeps them together, so that the sample needs few documents.
            # Random(seed) gives the same numbers as random.random() after random.seed(seed).
            group.sort(key=lambda test: random.Random(test.snippets[0].path).random())
        kept.update(test.id for test in group[:MINI])
    for test in tests:
        if test.id not in kept:
            tally.leave_out("not in the published sample (--mini)", test.name)
    return [test for test in tests if test.id in kept]


# ---------------------------------------------------------------- the corpus


def _list_corpus(folder: Path, tally: Tally) -> dict[str, Path]:
    """Return the text files of the corpus, keyed by their path below corpus/, which is how `file_path` names them."""
    files: dict[str, Path] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        inside = path.relative_to(folder).as_posix()
        if path.suffix.lower() == ".txt":
            files[_make_key(inside)] = path
        else:
            tally.leave_out("file in corpus/ that is no text", inside)
    if not files:
        raise SourceError(f"{folder}: no text file in it; expected {INFO.expects}, from {INFO.url}")
    return files


def _make_key(path: str) -> str:
    """Return a path in Unicode's NFC form: some systems unpack an accented letter as two characters."""
    return unicodedata.normalize("NFC", path)


def _make_unique_names(files: dict[str, Path], ending: str, tally: Tally) -> dict[str, str]:
    """Return the file name in the bundle for each file of the corpus.

    Files with the same name get their folders as a prefix. `ending` replaces the suffix, unless it is empty.
    """
    counts = Counter(path.name for path in files.values())
    names: dict[str, str] = {}
    owner: dict[str, str] = {}
    for key, path in files.items():
        name = " - ".join(PurePosixPath(key).parts) if counts[path.name] > 1 else path.name
        names[key] = f"{name[:-4]}{ending}" if ending else name
        if counts[path.name] > 1:
            tally.note("two files of one name, told apart by their folder", f"{key} -> {names[key]}")
        if owner.setdefault(names[key], key) != key:
            raise SourceError(f"corpus/{owner[names[key]]} and corpus/{key} would both be {names[key]!r}; rename one")
    return names


def _keep_used(files: dict[str, Path], tests: Iterable[_Test], tally: Tally) -> dict[str, Path]:
    used = {_make_key(snippet.path) for test in tests for snippet in test.snippets}
    for key in sorted(files.keys() - used):
        tally.leave_out("file that the published sample does not use (--mini)", key)
    return {key: path for key, path in files.items() if key in used}


# ---------------------------------------------------------------- gold


def _verify(files: dict[str, Path], tests: Iterable[_Test], tally: Tally) -> _Words:
    """Return the text of each gold snippet with a valid span, as a mapping from file to snippet to text."""
    wanted: dict[str, set[_Snippet]] = defaultdict(set)
    for test in tests:
        for snippet in test.snippets:
            wanted[_make_key(snippet.path)].add(snippet)
    words: _Words = {}
    for key, path in files.items():
        try:
            text = path.read_bytes().decode("utf-8")  # published offsets refer to UTF-8 texts
        except UnicodeDecodeError as error:
            fault = f"{key}: not UTF-8 (byte {error.start}); convert it with iconv first"
            tally.fault("document cannot be read", fault)
            continue
        spans = {snippet: snippet.span for snippet in wanted[key] if snippet.span}
        words[key] = {s: text[start:end] for s, (start, end) in spans.items() if 0 <= start < end <= len(text)}
    return words


def _make_row(test: _Test, words: _Words, names: dict[str, str], tally: Tally) -> Iterator[RawRow]:
    """Yield the row of a test; yield nothing if one of its gold passages has no text.

    Such a test is left out, because incomplete gold would give wrong scores.
    """
    passages: list[tuple[str, Quote]] = []
    for snippet in test.snippets:
        key, place = _make_key(snippet.path), f"{test.name}: {snippet.path} {snippet.span}"
        if key not in words:
            tally.fault("test on a document that is not in corpus/ or cannot be read", place)
            return
        words_there = words[key].get(snippet)
        text = words_there if snippet.answer is None else snippet.answer
        if text is None or not text.strip():
            tally.fault("test with a snippet that says nothing", place)
            return
        if words_there != text:
            tally.fault("span whose text is not the stored answer: the answer was located instead", place)
        spans = (snippet.span,) if snippet.span and words_there == text else ()
        passages.append((text.strip(), Quote(names[key], text, spans)))
    yield RawRow(
        id=test.id,
        question=test.query,
        answer="\n".join(text for text, _ in passages),
        quotes=tuple(quote for _, quote in passages),
        labels={"benchmark": test.benchmark},
    )


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
