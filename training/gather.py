"""Gathers training data from bundles on disk into one file.

python -m training.gather --bundles datasets_out/{cuad,contractnli,maud,acord} --exclude FILE --out pack.npz
python -m training.gather --bundles datasets_out/legalbenchrag --measure --out mini.npz
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from exhibit.evidence import Span, read_document
from exhibit.law.sentences import extend_to_sentences
from exhibit.models.network import TOKENIZER, find_file
from exhibit.rag.ingest import Prepared
from exhibit.rag.retrieval.completion import WIDEST
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError
from training._reading import Asked, Material, Reader, hash_words, read_material
from training.exclusion import NEVER, Excluded, make_document_key, read_names
from training.pack import MOST_TOKENS, ROLES, Pack, Role, save_pack
from training.questions import read_queries, read_wordings

DEV = 0.12
"""The share of each source's documents that are for tuning: they are measured on, and not trained on."""
_LEAST_DEV = 3
"""The least number of documents of a source for tuning."""
_HEADING = range(2, 13)
"""The numbers of words of a useful heading: a shorter one is a bare number, a longer one a sentence."""


_VERDICTS = {"Yes": 1, "No": 0}
_LONGEST_SHORT = 0.8
"""The greatest share of its gold that a short answer may have; a longer one is the gold itself."""


def find_short(answer: str, gold: Sequence[Span], text: str) -> list[Span]:
    """Return the first span in the gold that matches a short answer, as a list of one span.

    White space and case may differ. The list is empty if no gold span contains the answer, or if the answer is
    more than 80% of the gold span.
    """
    words = r"\s+".join(re.escape(word) for word in answer.split())
    for start, end in gold if words else ():
        found = re.compile(words, re.IGNORECASE).search(text, start, end)
        if found and len(found[0]) <= _LONGEST_SHORT * (end - start):
            return [Span(*found.span())]
    return []


class _Tables:
    """The tables of training data while they are filled from bundles; a `Pack` is made from them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.documents: list[dict[str, Any]] = []
        self.kinds: list[str] = []
        self.passages: list[tuple[int, int, int, int, int]] = []
        self.passage_texts: list[str] = []
        self.sentences: list[Span] = []
        self.queries: list[tuple[int, int, int]] = []
        self.query_texts: list[str] = []
        self.rows: list[tuple[int, int, int, int]] = []
        self.gold: list[tuple[int, int, int]] = []
        self.positives: list[tuple[int, int, int]] = []
        self.headings: list[tuple[int, int]] = []
        self.grades: list[tuple[int, int, int]] = []
        self.also: list[tuple[int, int]] = []
        self.short: list[tuple[int, int, int]] = []
        self.says: list[tuple[int, int]] = []
        self._known: dict[tuple[str, int, int], int] = {}

    def query(self, text: str, kind: int, role: Role) -> int:
        """Return the row number of a query, which is added if it is new.

        A query is new if its text was not added before with the same kind of question and the same role.
        """
        key = (text, kind, ROLES.index(role))
        if key not in self._known:
            self._known[key] = len(self.queries)
            self.queries.append((len(self.query_texts), kind, ROLES.index(role)))
            self.query_texts.append(text)
        return self._known[key]

    def kind(self, name: str) -> int:
        """Return the index of a kind of question in `kinds`; return -1 for an empty name.

        A kind that is not yet in the list is appended, and all its wordings are added as queries.
        """
        if not name:
            return -1
        if name not in self.kinds:
            self.kinds.append(name)
            source, _, kind = name.partition("/")
            wordings = read_wordings(source)[kind]
            number = len(self.kinds) - 1
            self.query(wordings.own, number, "own")
            for words in wordings.train:
                self.query(words, number, "train")
            for words in wordings.test:
                self.query(words, number, "test")
        return self.kinds.index(name)

    def add_document(self, source: str, prepared: Prepared, split: str, *, headings: bool) -> int:
        """Add a document with its passages; return its number.

        With `headings`, each heading is added as a question about the passages under it.
        """
        number = len(self.documents)
        about = {"name": prepared.entry.filename, "source": source, "sha256": hash_words(prepared.text), "split": split}
        self.documents.append(about)
        shown = [path.split(" > ")[-1] for path, _, _ in prepared.entry.sections]
        for (start, end, _, section), text in zip(prepared.chunks.tolist(), prepared.texts, strict=True):
            heading = shown[section] if 0 <= section < len(shown) else ""
            key = self.query(heading, -1, "heading") if headings and len(heading.split()) in _HEADING else -1
            # the passage with the heading itself would be found by its words alone
            if key >= 0 and len(text.strip()) > 2 * len(heading):
                self.headings.append((key, len(self.passages)))
            self.passages.append((number, start, end, section, key))
            self.passage_texts.append(text)
            self.sentences.append(extend_to_sentences(prepared.text, Span(start, end), widest=WIDEST))
        return number

    def add_rows(self, document: int, text: str, asked: Sequence[Asked]) -> None:
        """Add the questions about a document.

        If the first question is labelled with a benchmark, that benchmark becomes the document's group.
        """
        if asked and asked[0].group:
            self.documents[document]["group"] = asked[0].group
        for one in asked:
            self.add_row(document, text, one)

    def add_row(self, document: int, text: str, asked: Asked) -> None:
        """Add a question about a document, and the passages that contain its gold."""
        kind = self.kind(asked.kind)
        query = -1 if kind >= 0 else self.query(asked.asks, -1, "asked")
        row = len(self.rows)
        self.rows.append((document, kind, query, int(asked.impossible)))
        shared: Counter[int] = Counter()
        at = len(self.passages)
        while at and self.passages[at - 1][0] >= document:
            at -= 1
            owner, start, end, *_ = self.passages[at]
            if owner == document:
                shared[at] += sum(max(0, min(end, span.end) - max(start, span.start)) for span in asked.gold)
        self.gold += [(row, *span) for span in asked.gold]
        if asked.answer in _VERDICTS and not asked.kind.startswith(
            "cuad/"
        ):  # every answerable question of CUAD has the answer yes
            self.says.append((row, _VERDICTS[asked.answer]))
        elif kind < 0:  # the answers of known kinds are clauses, not short answers
            self.short += [(row, *span) for span in find_short(asked.answer, asked.gold, text)]
        self.positives += [(row, at, count) for at, count in sorted(shared.items()) if count]

    def pack(self, purpose: Any, notes: dict[str, Any]) -> Pack:
        """Return all collected documents, passages and questions as a pack, with their texts as token ids."""
        texts = [*self.passage_texts, *self.query_texts]
        clean = [text.encode("utf-8", "replace").decode() for text in texts]
        encoded = self._tokenizer.encode_batch(clean, add_special_tokens=False)
        ids = [encoding.ids[:MOST_TOKENS] for encoding in encoded]
        places = [place for e in encoded[: len(self.passage_texts)] for place in e.offsets[:MOST_TOKENS]]
        queries = np.array(self.queries, np.int64).reshape(-1, 3)
        queries[:, 0] += len(self.passage_texts)
        return Pack(
            purpose,
            self.documents,
            self.kinds,
            passages=np.array(self.passages, np.int64).reshape(-1, 5),
            queries=queries,
            rows=np.array(self.rows, np.int64).reshape(-1, 4),
            gold=np.array(self.gold, np.int64).reshape(-1, 3),
            positives=np.array(self.positives, np.int64).reshape(-1, 3),
            headings=np.array(self.headings, np.int64).reshape(-1, 2),
            grades=np.array(self.grades, np.int64).reshape(-1, 3),
            also=np.array(self.also, np.int64).reshape(-1, 2),
            short=np.array(self.short, np.int64).reshape(-1, 3),
            says=np.array(self.says, np.int64).reshape(-1, 2),
            sentences=np.array(self.sentences, np.int64).reshape(-1, 2),
            places=np.array(places, np.int64).reshape(-1, 2),
            tokens=np.concatenate([np.array(one, np.uint16) for one in ids]) if ids else np.zeros(0, np.uint16),
            ends=np.cumsum([len(one) for one in ids], dtype=np.int64),
            notes=notes,
        )


# ---------------------------------------------------------------- gathering


def gather(
    roots: Sequence[Path],
    *,
    excluded: Excluded,
    measure: bool = False,
    dev: float = DEV,
    tuned: Excluded | None = None,
) -> Pack:
    """Return a pack: the documents and questions of the bundles as token ids, for training or for measuring.

    For training, the pack has all documents except those in `excluded`. For measuring (`measure`), the pack has
    only the documents in `excluded`, or all documents if `excluded` is empty. Documents for tuning are chosen
    by a hash of their names; the documents in `tuned` are for tuning, too.
    """
    materials = [read_material(root) for root in roots]
    for material in materials:
        if not measure and material.source in NEVER:
            raise ToolkitError(
                f"{material.bundle.root}: {material.source} is never trained on; remove it, or add --measure"
            )
    tokenizer = Tokenizer.from_file(str(find_file(TOKENIZER)))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tables, reader = _Tables(tokenizer), Reader()
    skipped: Counter[str] = Counter()
    if not measure:
        _learn_excluded(materials, excluded)
    for material in materials:
        skipped.update({f"{material.source}: {why}": count for why, count in material.skipped.items()})
        tuning = frozenset() if measure or material.graded else draw_dev(material, excluded, dev)
        numbers: dict[str, int] = {}
        asked: dict[str, list[Asked]] = defaultdict(list)
        for one in material.asked:
            asked[one.filename].append(one)
        for name in sorted(material.bundle.files):
            if measure and excluded.names and not excluded.lists(name):
                continue
            prepared, flaw = _prepare(material, name, reader, excluded, measure=measure)
            if prepared is None:
                skipped[f"{material.source}: {flaw}"] += 1
                continue
            split = "dev" if name in tuning or (tuned and tuned.lists(name)) else "train"
            headings = not measure and not material.graded
            numbers[name] = tables.add_document(material.source, prepared, split, headings=headings)
            tables.add_rows(numbers[name], prepared.text, asked[name])
        skipped.update(_add_grades(material, numbers, tables))
    notes = {"skipped": dict(skipped), "excluded": len(excluded.names), "dev": dev}
    return tables.pack("measuring" if measure else "training", notes)


def _prepare(
    material: Material, name: str, reader: Reader, excluded: Excluded, *, measure: bool
) -> tuple[Prepared | None, str]:
    """Return a document split into passages; or None and the reason why it is left out."""
    if not measure and excluded.lists(name):
        return None, "document on the list"
    prepared = reader.read(material.bundle, name)
    if prepared is None:
        return None, "document without text"
    if not measure and excluded.repeats(prepared.text):
        return None, "document that repeats one on the list"
    return prepared, ""


def _add_grades(material: Material, numbers: Mapping[str, int], tables: _Tables) -> Counter[str]:
    """Add the grades that lawyers gave to contract clauses for each search query (dataset ACORD).

    Return a count of the grades that were skipped, because the training data does not contain their clause.
    """
    skipped: Counter[str] = Counter()
    others = read_queries(material.source) if material.graded else {}
    for graded in material.graded:
        query = tables.query(graded.text, -1, "library")
        tables.also += [(query, tables.query(words, -1, "library")) for words in others.get(graded.text, ())]
        for name, grade in graded.grades.items():
            if name in numbers:
                tables.grades.append((query, numbers[name], grade))
            else:
                skipped[f"{material.source}: grade of a clause that is left out"] += 1
    return skipped


def _learn_excluded(materials: Sequence[Material], excluded: Excluded) -> None:
    for material in materials:
        for name, path in material.bundle.files.items():
            if excluded.lists(name):
                excluded.learn(read_document(path).text)


def draw_dev(material: Material, excluded: Excluded, share: float) -> frozenset[str]:
    """Return the names of the documents that are used for tuning and not for training.

    `share` is their share of all documents that are not excluded; at least three are chosen, but none if
    `share` is 0. They are chosen by a hash of the name, so that the choice is the same on every machine.
    """
    names = [name for name in material.bundle.files if not excluded.lists(name)]
    # the hash is of the part that all spellings of a name share: a contract is for tuning in every bundle, or in none
    names.sort(key=lambda name: hashlib.sha256(make_document_key(name).encode()).digest())
    return frozenset(names[: max(round(share * len(names)), _LEAST_DEV)] if share else ())


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line: collect training data from bundles in one file, and print its counts."""
    parser = argparse.ArgumentParser(prog="python -m training.gather", description=__doc__.partition("\n")[0])
    parser.add_argument("--bundles", nargs="+", type=Path, required=True, metavar="DIR", help="converters' bundles")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the pack (.npz)")
    parser.add_argument("--exclude", type=Path, metavar="FILE", help="documents that are not trained on (TSV)")
    parser.add_argument(
        "--measure", action="store_true", help="gather for measuring; with --exclude, only the documents that it lists"
    )
    parser.add_argument("--dev", type=float, default=DEV, help=f"share of documents for tuning (default: {DEV})")
    parser.add_argument("--tune", type=Path, metavar="FILE", help="further documents for tuning (TSV)")
    options = parser.parse_args(arguments)
    tuned = Excluded(read_names(options.tune)) if options.tune else None
    excluded = Excluded(read_names(options.exclude) if options.exclude else ())
    pack = gather(options.bundles, excluded=excluded, measure=options.measure, dev=options.dev, tuned=tuned)
    save_pack(pack, options.out)
    for line in describe(pack):
        print(line)
    print(f"{options.out}: {options.out.stat().st_size / 1e6:.1f} MB")
    return 0


def describe(pack: Pack) -> list[str]:
    """Return lines with the size of the training data: documents, passages and questions by source and split.

    Further lines count kinds of questions, queries, grades and tokens, and what was left out.
    """
    lines = []
    for source in dict.fromkeys(document["source"] for document in pack.documents):
        for split in ("train", "dev"):
            wanted = [d["source"] == source and d["split"] == split for d in pack.documents]
            if any(wanted):
                here = np.array(wanted)[pack.rows[:, 0]] if len(pack.rows) else np.zeros(0, bool)
                impossible = pack.rows[here, 3].sum()
                passages = int(np.array(wanted)[pack.passages[:, 0]].sum())
                lines.append(
                    f"{source:12} {split:6} {sum(wanted):5} documents {passages:7} passages "
                    f"{int(here.sum()):6} questions, {int(impossible)} impossible"
                )
    lines.append(f"{len(pack.kinds)} kinds, {len(pack.queries)} queries, {len(pack.headings)} headings' passages")
    lines.append(f"{len(pack.grades)} grades, {len(pack.tokens)} tokens")
    lines += [f"left out: {why}: {count}" for why, count in sorted(pack.notes["skipped"].items())]
    return lines


if __name__ == "__main__":
    sys.exit(main())
