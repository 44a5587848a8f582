"""Gathers training data from bundles on disk into one file.

    python -m training.gather --bundles datasets_out/{cuad,contractnli,maud,lessons,acord,people} \\
      --exclude NOT_FOR_TRAINING.tsv --out pack.npz
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import numpy as np
from tokenizers import Tokenizer

from exhibit.converters import contractnli, cuad, maud
from exhibit.evidence import Span, read_document
from exhibit.law.language import list_word_runs
from exhibit.law.names import make_file_key
from exhibit.law.sentences import extend_to_sentences
from exhibit.models.network import TOKENIZER, find_file
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation, Prepared
from exhibit.rag.passages import MAX_COMPLETED_CHARS as WIDEST
from exhibit.rag.questions import understand
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import BundleError, DocumentError, SourceError, ToolkitError
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import BundleFolder, open_bundle
from training.pack import MOST_TOKENS, ROLES, Pack, Role, save_pack

NEVER = frozenset({"legalbenchrag", "privacyqa", "cpr", "ohr"})
"""Bundles for measuring retrieval: no model is trained on their documents."""
SHINGLE = 8
"""The number of consecutive words that are compared: short clauses have eight, and eight rarely recur by chance."""
MOST_SHARED = 0.5
"""A text with at least this share of its shingles in excluded documents is a repetition; boilerplate is below 0.2."""


def read_names(path: Path) -> frozenset[str]:
    """Return the names in the column `document` of a file, normalised by `make_document_key`."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    if not rows or "document" not in rows[0]:
        raise SourceError(f"{path}: no column 'document'; expected tab-separated benchmark, where, document")
    return frozenset(make_document_key(row["document"]) for row in rows)


def make_document_key(name: str) -> str:
    """Return a document's name without folder, extension, case and punctuation."""
    return make_file_key(PurePosixPath(unquote(name)).name)


def make_shingles(text: str) -> set[int]:
    """Return the hashes of all sequences of eight consecutive words in a text."""
    words = list_word_runs(text.casefold())
    starts = range(len(words) - SHINGLE + 1)
    return {zlib.crc32(" ".join(words[start : start + SHINGLE]).encode()) for start in starts}


class Excluded:
    """The documents that no model may be trained on: their names, and hashes of all their eight-word sequences."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = frozenset(names)
        self._shingles: set[int] = set()

    def lists(self, name: str) -> bool:
        """Return whether a document's name is in the list of documents that no model may be trained on."""
        return make_document_key(name) in self.names

    def learn(self, text: str) -> None:
        """Add the text of a document that must not be used for training."""
        self._shingles |= make_shingles(text)

    def repeats(self, text: str) -> bool:
        """Return whether at least half of a text's shingles are in excluded documents."""
        shingles = make_shingles(text)
        return bool(shingles) and len(shingles & self._shingles) >= MOST_SHARED * len(shingles)


FOLDER = Path(__file__).parent / "wordings"
OWN = {"cuad": cuad.QUESTIONS, "contractnli": contractnli.QUESTIONS, "maud": maud.QUESTIONS}
"""The converter's wording of each kind of question, by benchmark."""
LABELS = {"cuad": "clause", "contractnli": "hypothesis", "maud": "deal_point"}
"""The label in gold.jsonl that names the kind of a question."""


def read_wordings(source: str) -> dict[str, dict[Role, list[str]]]:
    """Return, for each kind of question, the benchmark's wording and our wordings for training and for tests."""
    wordings, own = read_texts(source), OWN[source]
    if wordings.keys() != own.keys():
        odd = sorted(wordings.keys() ^ own.keys())
        raise ToolkitError(f"{source}.jsonl: its kinds differ from those of converters.{source}: {odd[0]!r}")
    return {kind: {"own": [own[kind]], "train": uses["train"], "test": uses["test"]} for kind, uses in wordings.items()}


def read_texts(source: str) -> dict[str, dict[str, list[str]]]:
    """Return the texts of a source's file by kind and by use (`train` or `test`)."""
    path = FOLDER / f"{source}.jsonl"
    texts: dict[str, dict[str, list[str]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        row = json.loads(line)
        texts.setdefault(row["kind"], defaultdict(list))[row["use"]].append(row["text"])
    return texts


@dataclass(frozen=True)
class Asked:
    """A question of a bundle about one of its documents."""

    kind: str
    """The kind of the question as `source/kind`; empty if it has none."""
    asks: str
    """The words that the pipeline embeds: the question without the document's name."""
    impossible: bool
    gold: tuple[Span, ...]
    answer: str
    """The expected answer in its source's words."""


@dataclass
class Material:
    """The training data from a bundle: questions about its documents, and search queries for clauses."""

    source: str
    bundle: BundleFolder
    asked: dict[str, list[Asked]] = field(default_factory=lambda: defaultdict(list))
    """The questions about each document, by file name."""
    graded: list[tuple[str, dict[str, int]]] = field(default_factory=list)
    """A query for a clause library (ACORD), with the grade of each clause that lawyers judged for it."""
    skipped: Counter[str] = field(default_factory=Counter)


def read_material(root: Path) -> Material:
    """Read the questions of a bundle; `gather` reads its documents."""
    bundle = open_bundle(root)
    if bundle.info is None:
        raise BundleError(f"{root}: no bundle.json; training needs a converter's bundle with its gold")
    material = Material(bundle.info.name, bundle)
    lines: dict[int | str, list[Gold]] = defaultdict(list)
    for line in bundle.gold:
        lines[line.id].append(line)
    for question in bundle.questions:
        own = lines[question.id]
        grades = next((line.labels["grades"] for line in own if line.labels.get("grades")), None)
        if isinstance(grades, str):
            material.graded.append((question.question, json.loads(grades)))
            continue
        files = {line.filename for line in own if line.filename}
        spans = tuple(Span(*span) for line in own for span in line.spans)
        if len(files) != 1:
            material.skipped["question about no document, or about several"] += 1
        elif not question.is_impossible and not spans:
            material.skipped["answer that is not located"] += 1
        else:
            label = own[0].labels.get(LABELS.get(material.source, ""))
            kind = f"{material.source}/{label}" if label else ""
            asks = understand(question.question).asks
            asked = Asked(kind, asks, question.is_impossible, spans, question.answer)
            material.asked[files.pop()].append(asked)
    return material


def hash_words(text: str) -> str:
    """Return the sha256 of a document's words; white space between them does not matter."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()


DEV = 0.12
"""The share of each source's documents that are for tuning: they are used for measurements, and not for training."""
_LEAST_DEV = 3  # least documents of a source for tuning
_HEADING = range(2, 13)
"""The numbers of words of a useful heading: a shorter one is a bare number, a longer one a sentence."""
_VERDICTS = {"Yes": 1, "No": 0}
_LONGEST_SHORT = 0.8
"""The greatest share of its gold that a short answer may have; a longer one is the gold itself."""


def find_short(answer: str, gold: Sequence[Span], text: str) -> list[Span]:
    """Return a list with the first span in the gold that matches a short answer; the list is empty if none matches."""
    words = r"\s+".join(re.escape(word) for word in answer.split())
    for start, end in gold if words else ():
        match = re.compile(words, re.IGNORECASE).search(text, start, end)
        if match and len(match[0]) <= _LONGEST_SHORT * (end - start):
            return [Span(*match.span())]
    return []


_COLUMNS = {
    "passages": 5, "queries": 3, "rows": 4, "gold": 3, "positives": 3, "headings": 2, "grades": 3, "also": 2,
    "short": 3, "says": 2, "sentences": 2, "places": 2,
}  # fmt: skip


class _Tables:
    """The tables of training data while they are filled from bundles; a `Pack` is made from them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.documents: list[dict[str, Any]] = []
        self.kinds: list[str] = []
        self.lines: dict[str, list[tuple[int, ...]]] = {name: [] for name in _COLUMNS}
        self._passages: list[str] = []
        self._first = 0  # passage of the document that was added last
        self._queries: dict[tuple[str, int, int], int] = {}

    def query(self, text: str, kind: int, role: Role) -> int:
        """Return the row number of a query, which is added if it is new."""
        return self._queries.setdefault((text, kind, ROLES.index(role)), len(self._queries))

    def kind(self, name: str) -> int:
        """Return a kind's index in `kinds`, and add the kind if it is new; return -1 for an empty name."""
        if name and name not in self.kinds:
            source, _, kind = name.partition("/")
            for role, wordings in read_wordings(source)[kind].items():
                for words in wordings:
                    self.query(words, len(self.kinds), role)
            self.kinds.append(name)
        return self.kinds.index(name) if name else -1

    def add_document(self, source: str, prepared: Prepared, split: str, *, headings: bool) -> int:
        """Add a document with its passages; return its number."""
        number, self._first = len(self.documents), len(self._passages)
        about = {"name": prepared.entry.filename, "source": source, "sha256": hash_words(prepared.text), "split": split}
        self.documents.append(about)
        shown = [path.split(" > ")[-1] for path, _, _ in prepared.entry.sections]
        for (start, end, _, section), text in zip(prepared.chunks.tolist(), prepared.texts, strict=True):
            heading = shown[section] if 0 <= section < len(shown) else ""
            key = self.query(heading, -1, "heading") if headings and len(heading.split()) in _HEADING else -1
            # skip a passage that is little more than its heading: its words alone would find it
            if key >= 0 and len(text.strip()) > 2 * len(heading):
                self.lines["headings"].append((key, len(self._passages)))
            self.lines["passages"].append((number, start, end, section, key))
            self.lines["sentences"].append(extend_to_sentences(prepared.text, Span(start, end), widest=WIDEST))
            self._passages.append(text)
        return number

    def add_row(self, document: int, text: str, asked: Asked) -> None:
        """Add a question about the document that was added last, and the passages that contain its gold."""
        kind = self.kind(asked.kind)
        query = -1 if kind >= 0 else self.query(asked.asks, -1, "asked")
        row = len(self.lines["rows"])
        self.lines["rows"].append((document, kind, query, int(asked.impossible)))
        self.lines["gold"] += [(row, *span) for span in asked.gold]
        for at in range(self._first, len(self._passages)):
            _, start, end, *_ = self.lines["passages"][at]
            count = sum(max(0, min(end, span.end) - max(start, span.start)) for span in asked.gold)
            self.lines["positives"] += [(row, at, count)] if count else []
        # not CUAD, whose answerable questions all have the answer yes; not known kinds, whose answers are clauses
        if asked.answer in _VERDICTS and not asked.kind.startswith("cuad/"):
            self.lines["says"].append((row, _VERDICTS[asked.answer]))
        elif kind < 0:
            self.lines["short"] += [(row, *span) for span in find_short(asked.answer, asked.gold, text)]

    def pack(self, notes: dict[str, Any]) -> Pack:
        """Return all collected documents, passages and questions as a pack, with their texts as token ids."""
        count = len(self._passages)
        texts = [*self._passages, *(text for text, _, _ in self._queries)]
        self.lines["queries"] = [(count + at, kind, role) for at, (_, kind, role) in enumerate(self._queries)]
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        encoded = self._tokenizer.encode_batch(clean, add_special_tokens=False)
        ids = [encoding.ids[:MOST_TOKENS] for encoding in encoded]
        self.lines["places"] = [place for e in encoded[:count] for place in e.offsets[:MOST_TOKENS]]
        tables = {name: np.array(self.lines[name], np.int64).reshape(-1, width) for name, width in _COLUMNS.items()}
        return Pack(
            self.documents,
            self.kinds,
            tokens=np.concatenate([np.array(tokens, np.uint16) for tokens in ids]),
            ends=np.cumsum([len(tokens) for tokens in ids], dtype=np.int64),
            notes=notes,
            **tables,
        )


# ---------------------------------------------------------------- gathering


def gather(roots: Sequence[Path], *, excluded: Excluded, dev: float = DEV) -> Pack:
    """Return a pack: the documents and questions of the bundles as token ids."""
    materials = [read_material(root) for root in roots]
    for material in materials:
        if material.source in NEVER:
            raise ToolkitError(f"{material.bundle.root}: {material.source} must not be used for training; remove it")
        for name, path in material.bundle.files.items():
            if excluded.lists(name):
                excluded.learn(read_document(path).text)
    tokenizer = Tokenizer.from_file(str(find_file(TOKENIZER)))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tables = _Tables(tokenizer)
    # passages as the pipeline splits them, without the lexicon, which training does not need
    prepare = Preparation(Config.preset("routed", method="dense", lexicon=False))
    skipped: Counter[str] = Counter()
    # a contract is for tuning in every bundle, or in none
    tuning = frozenset().union(*(draw_dev(m, excluded, dev) for m in materials if not m.graded))
    for material in materials:
        skipped.update({f"{material.source}: {why}": count for why, count in material.skipped.items()})
        numbers: dict[str, int] = {}
        for name in sorted(material.bundle.files):
            if excluded.lists(name):
                skipped[f"{material.source}: document on the list"] += 1
                continue
            try:
                prepared = prepare(material.bundle.files[name])
            except DocumentError:
                skipped[f"{material.source}: document without text"] += 1
                continue
            if excluded.repeats(prepared.text):
                skipped[f"{material.source}: document that repeats one on the list"] += 1
                continue
            split = "dev" if make_document_key(name) in tuning else "train"
            numbers[name] = tables.add_document(material.source, prepared, split, headings=not material.graded)
            for question in material.asked[name]:
                tables.add_row(numbers[name], prepared.text, question)
        skipped.update(_add_grades(material, numbers, tables))
    return tables.pack({"skipped": dict(skipped), "excluded": len(excluded.names), "dev": dev})


def _add_grades(material: Material, numbers: Mapping[str, int], tables: _Tables) -> Counter[str]:
    """Add the grades that lawyers gave to contract clauses for each search query (dataset ACORD)."""
    skipped: Counter[str] = Counter()
    others = read_texts(material.source) if material.graded else {}
    for text, grades in material.graded:
        query = tables.query(text, -1, "library")
        for words in others.get(text, {}).get("train", ()):
            tables.lines["also"].append((query, tables.query(words, -1, "library")))
        tables.lines["grades"] += [(query, numbers[name], grade) for name, grade in grades.items() if name in numbers]
        skipped[f"{material.source}: grade of a clause that is left out"] += len(grades.keys() - numbers.keys())
    return +skipped


def draw_dev(material: Material, excluded: Excluded, share: float) -> frozenset[str]:
    """Return the keys of the documents that are used for tuning and not for training."""
    # hash the part that all spellings of a name have in common
    keys = sorted(
        (make_document_key(name) for name in material.bundle.files if not excluded.lists(name)),
        key=lambda key: hashlib.sha256(key.encode()).digest(),
    )
    return frozenset(keys[: max(round(share * len(keys)), _LEAST_DEV)] if share else ())


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line: collect training data from bundles in one file, and print its counts."""
    parser = argparse.ArgumentParser(prog="python -m training.gather", description=__doc__.partition("\n")[0])
    parser.add_argument("--bundles", nargs="+", type=Path, required=True, metavar="DIR", help="converters' bundles")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the pack (.npz)")
    parser.add_argument("--exclude", type=Path, metavar="FILE", help="documents that are not trained on (TSV)")
    parser.add_argument("--dev", type=float, default=DEV, help=f"share of documents for tuning (default: {DEV})")
    options = parser.parse_args(arguments)
    excluded = Excluded(read_names(options.exclude) if options.exclude else ())
    pack = gather(options.bundles, excluded=excluded, dev=options.dev)
    save_pack(pack, options.out)
    sources = Counter((document["source"], document["split"]) for document in pack.documents)
    for (source, split), count in sources.items():
        print(f"{source}, {split}: {count} documents")
    print(f"{len(pack.rows)} questions, {len(pack.passages)} passages, {len(pack.queries)} queries in all")
    for why, count in sorted(pack.notes["skipped"].items()):
        print(f"left out: {why}: {count}")
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
