"""Grows a large index from a small real one, by copies of its documents; no text is embedded.

A copy has the chunks and headings of its original. The words of the document's name are replaced by other
letters, in the name and in the text, and differently in each copy. The vector of a copied chunk is near the
original's: original + a fraction of (a - b), where a and b are two random vectors of the index.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import numpy.typing as npt

from bench.stores import scale_rows
from exhibit.engine import track
from exhibit.law.names import name_terms
from exhibit.models.protocols import Vectors
from exhibit.rag.config import Config
from exhibit.rag.index import Entry, Index
from exhibit.rag.lexicon import DocumentWords, read_words
from exhibit.rag.lexicon.postings import TermCounts, digest
from exhibit.rag.protocols import make_section_keys
from exhibit.rag.saved_index import open_index

_SPREAD = 0.35
"""The distance of a copy's vector from its original: about that of chunks of one contract, as in `bench.stores`."""
_NAME = re.compile(r"[A-Z][A-Za-z]{3,}")
_KNOWN = frozenset(
    """agreement amendment assignment collaboration company consulting contract corporation development distribution
    endorsement exhibit franchise group holdings hosting international joint venture license limited maintenance
    manufacturing marketing merger outsourcing plan policy privacy promotion reseller service services sponsorship
    strategic alliance supply systems transportation""".split()
)
"""Words of names that every collection shares: they are not replaced."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Original:
    """A document of the small index, with all data that are needed to add copies of it to a large index."""

    entry: Entry
    text: str
    chunks: npt.NDArray[np.int64]
    words: DocumentWords
    vectors: Vectors
    names: tuple[str, ...]
    """The words that name it, as they are written."""


def grow_index(source: Path, folder: Path, *, chunks: int, store: str) -> Path:
    """Write an index of at least `chunks` chunks, made of copies of a small index; return its folder.

    The new index has word counts for lexical search, and vectors of chunks, but none of sections or summaries.
    """
    small = open_index(source)
    config = Config.parse({**small.config.model_dump(), "store": store})
    originals = list(read_originals(small))
    all_vectors = np.concatenate([original.vectors for original in originals])
    index = Index(folder, config, embedder=small.embedder, dimensions=small.dimensions)
    draw = np.random.default_rng(1)
    turns = -(-chunks // len(small))
    for turn in track(range(turns), total=turns, label="copies", unit="copy"):
        for original in originals:
            _add(index, original, turn, _make_near(original.vectors, all_vectors, draw) if turn else original.vectors)
    index.save()
    index.close()
    return folder


def read_originals(index: Index) -> Iterator[Original]:
    """Yield the documents of an index with their chunks, their vectors and their counted words."""
    stored: Any = faiss.read_index(str(index.folder / "chunk.faiss"))
    vectors = faiss.downcast_index(stored.index).reconstruct_n(0, stored.ntotal)
    for entry in index.documents:
        rows = index.table[index.table[:, 1] == entry.number]
        text = index.read_document_text(entry.filename)
        words = read_words(
            filename=entry.filename,
            profile=entry.profile,
            text=text,
            chunks=[text[start:end] for start, end in rows[:, 2:4].tolist()],
            headings=[path for path, _, _ in entry.sections],
        )
        yield Original(entry, text, rows[:, 2:], words, vectors[rows[:, 0]], names_of(entry))


def names_of(entry: Entry) -> tuple[str, ...]:
    """Return the distinctive words in a document's file name, title and parties, without words like `agreement`."""
    written = " ".join([entry.filename, entry.profile.title, *entry.profile.parties])
    return tuple(sorted({word for word in _NAME.findall(written) if word.lower() not in _KNOWN}))


def rename_word(word: str, turn: int) -> str:
    """Return the word that replaces a word in copy number `turn`: other letters, the same length and case.

    Copy 0 is the original, so its words stay the same.
    """
    if not turn:
        return word
    number = zlib.crc32(f"{turn} {word.lower()}".encode()) | 1 << 32
    steps = (1 + (number >> 5 * at % 27) % 25 for at in range(len(word)))
    moved = [_move(letter, step) for letter, step in zip(word.lower(), steps, strict=True)]
    return "".join(new.upper() if old.isupper() else new for old, new in zip(word, moved, strict=True))


def _move(letter: str, step: int) -> str:
    return _LETTERS[(_LETTERS.index(letter) + step) % len(_LETTERS)] if letter in _LETTERS else letter


def rename(text: str, names: Sequence[str], turn: int) -> str:
    """Return the text of a document's copy number `turn`; copy 0 is the original.

    In a copy, the words in `names` are replaced by other words of equal length.
    """
    if not turn or not names:
        return text
    pattern = re.compile("|".join(sorted(map(re.escape, names), key=len, reverse=True)), re.IGNORECASE)
    return pattern.sub(lambda match: rename_word(match[0], turn), text)


def _add(index: Index, original: Original, turn: int, vectors: Vectors) -> None:
    number = index.find_next_number()
    entry = replace(original.entry, number=number)
    if turn:
        filename = f"{turn:03}/{rename(entry.filename, original.names, turn)}"
        title = rename(entry.profile.title, original.names, turn)
        parties = tuple(rename(party, original.names, turn) for party in entry.profile.parties)
        entry = replace(entry, filename=filename, profile=replace(entry.profile, title=title, parties=parties))
    keys = index.add(entry, rename(original.text, original.names, turn), original.chunks)
    words = _count_words(original, entry, turn)
    index.lexicon.add(number, words, chunks=keys, sections=make_section_keys(number, len(entry.sections)))
    index.store("chunk").add(keys, vectors)


def _count_words(original: Original, entry: Entry, turn: int) -> DocumentWords:
    """Return the word counts of copy number `turn`, computed from the counts of the original document.

    A copy differs from its original only in the words of the document's name. The hashes of these words are
    replaced, so the text of the copy need not be counted.
    """
    if not turn:
        return original.words
    swaps: dict[int, int] = {}
    for name in original.names:
        for old, new in zip(name_terms(name), name_terms(rename_word(name, turn)), strict=False):
            swaps[digest(old)] = digest(new)
    fresh = read_words(filename=entry.filename, profile=entry.profile, text="", chunks=(), headings=())
    named = original.words.names
    fields = {name: TermCounts(_swap(held.terms, swaps), held.counts) for name, held in named.fields.items()}
    fields["file"] = fresh.names.fields["file"]
    counted = [part._replace(terms=_swap(part.terms, swaps)) for part in original.words[1:]]
    return DocumentWords(named._replace(run=fresh.names.run, fields=fields), *counted)


def _swap(hashed: npt.NDArray[np.uint32], swaps: Mapping[int, int]) -> npt.NDArray[np.uint32]:
    old = np.array(sorted(swaps), np.uint32)
    if not len(old):
        return hashed
    new = np.array([swaps[number] for number in sorted(swaps)], np.uint32)
    at = np.minimum(np.searchsorted(old, hashed), len(old) - 1)
    return np.where(old[at] == hashed, new[at], hashed)


def _make_near(vectors: Vectors, others: Vectors, draw: np.random.Generator) -> Vectors:
    one, two = (draw.integers(0, len(others), len(vectors)) for _ in range(2))
    return scale_rows(vectors + _SPREAD * (others[one] - others[two]))
