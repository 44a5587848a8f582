"""LegalBench-RAG: the queries and gold spans of four benchmarks, over one corpus of text files.

python -m converters.legalbenchrag --source legalbenchrag/data --out datasets_out/legalbenchrag
"""

import hashlib
import random
import sys
import unicodedata
from argparse import ArgumentParser, Namespace
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from exhibit.converters import Benchmark, DatasetInfo, Licence, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.command import main
from exhibit.converters.core.source import find_one, read_json
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
        note=(
            "That covers the queries and spans; the texts keep their own licences: CC BY 4.0 for ContractNLI, "
            "CUAD and MAUD, MIT for PrivacyQA."
        ),
    ),
    url="https://github.com/zeroentropy-cc/legalbenchrag",
    citation="""@article{pipitone2024legalbenchrag,
  title = {LegalBench-RAG: A Benchmark for Retrieval-Augmented Generation in the Legal Domain},
  author = {Pipitone, Nicholas and Alami, Ghita Houir},
  journal = {arXiv preprint arXiv:2408.10343},
  year = {2024}
}""",
    by_hand="""Nothing is downloaded: the authors share a Dropbox folder (linked in their README), which is packed
        anew for each visitor, so that its bytes have no fixed hash; pass the .zip that it gives with --source.""",
    groups="benchmark",
    headline="char_recall@8",
    tags=("legal", "contracts", "privacy", "legalbench-rag"),
    derived="legalbench-rag",
    questions="The queries are LegalBench-RAG's own, word for word.",
    limits="""
        - The answer of a row is the text of its gold passages: the source has no other, and no impossible rows.
        - As text, corpus and spans are those published; a byte order mark is character 0. As PDF, the texts are
          printed anew: pages and lines are not those of the originals.
        - labels.benchmark names the group that a mean is taken over before the mean of the four.""",
)

MINI = 194  # tests of each benchmark in the published sample: the size of the smallest benchmark


class _Snippet(NamedTuple):
    """A gold passage as published; `span` is None if the release gives no pair of offsets for it."""

    path: str
    span: tuple[int, int] | None
    answer: str | None


class _Test(NamedTuple):
    """A query and its gold passages; `id` numbers the tests through all files, including those left out."""

    id: int
    benchmark: str
    name: str
    query: str
    snippets: tuple[_Snippet, ...]


_Words = dict[str, dict[_Snippet, str]]  # for every readable file, the text at each valid span


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags that only LegalBench-RAG has."""
    mini = "only LegalBench-RAG-mini: 194 tests of each benchmark by the published rule, and their files"
    parser.add_argument("--mini", action="store_true", help=mini)
    as_what = "the corpus as published, or printed with the gold carried over (default: text)"
    parser.add_argument("--as", choices=["text", "pdf"], default="text", help=as_what)


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
        used = {_make_key(snippet.path) for test in tests for snippet in test.snippets}
        for key in sorted(files.keys() - used):
            tally.leave_out("file that the published sample does not use (--mini)", key)
        files = {key: path for key, path in files.items() if key in used}
    if options.max_documents:
        files = dict(list(files.items())[: options.max_documents])
        tests = [test for test in tests if all(_make_key(snippet.path) in files for snippet in test.snippets)]
    words = _read_words(files, tests, tally)
    return Benchmark(
        documents=[
            RawDocument(names[key], Path(names[key]).stem, None if as_pdf else path, text_path=path, source=key)
            for key, path in files.items()
            if key in words
        ],
        rows=[row for test in tests for row in _make_row(test, words, names, tally)],
        sha256=sha256,
    )


def _make_key(path: str) -> str:
    """Return a path in Unicode's NFC form: some systems unpack an accented letter as two characters."""
    return unicodedata.normalize("NFC", path)


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
    if not isinstance(record, dict) or not isinstance(record.get("query"), str) or not record["query"].strip():
        return "test without a query"
    snippets = record.get("snippets")
    if not isinstance(snippets, list) or not snippets:
        return "test without snippets"
    named = all(isinstance(item, dict) and isinstance(item.get("file_path"), str) for item in snippets)
    return "" if named else "snippet without a file_path"


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


def _make_unique_names(files: dict[str, Path], ending: str, tally: Tally) -> dict[str, str]:
    """Return the name in the bundle of each file; files of the same name get their folders as a prefix."""
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


def _read_words(files: dict[str, Path], tests: Iterable[_Test], tally: Tally) -> _Words:
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
    """Yield the row of a test, unless one of its passages has no text: incomplete gold would give wrong scores."""
    quotes: list[Quote] = []
    for snippet in test.snippets:
        key, place = _make_key(snippet.path), f"{test.name}: {snippet.path} {snippet.span}"
        if key not in words:
            tally.fault("test on a document that is not in corpus/ or cannot be read", place)
            return
        there = words[key].get(snippet)
        text = there if snippet.answer is None else snippet.answer
        if text is None or not text.strip():
            tally.fault("test with a snippet that says nothing", place)
            return
        if there != text:
            tally.fault("span whose text is not the stored answer: the answer was located instead", place)
        quotes.append(Quote(names[key], text, (snippet.span,) if snippet.span and there == text else ()))
    answer = "\n".join((quote.text or "").strip() for quote in quotes)
    yield RawRow(test.id, test.query, answer, tuple(quotes), labels={"benchmark": test.benchmark})


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
