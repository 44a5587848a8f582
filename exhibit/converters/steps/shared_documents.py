"""Keeps the documents of one bundle, so that the next bundle copies those that are identical."""

import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from exhibit.converters.benchmark import Benchmark, Quote, RawDocument, RawRow
from exhibit.converters.steps.materialise import Done


class SharedDocuments:
    """The documents of one bundle, kept so that the next bundle can copy those that are identical.

    For example, a variant of a bundle and its control have documents in common.
    """

    def __init__(self, texts: Path, corpus: Path, later: Sequence[RawRow]) -> None:
        """Prepare to reuse the documents of a first bundle in a second bundle.

        `texts` is the folder for the documents' texts, `corpus` the folder in which the first bundle's
        documents will finally be, and `later` the rows of the second bundle.
        """
        self.texts = texts
        self._corpus, self._later = corpus, _quotes_of(later)
        self._done: dict[str, tuple[RawDocument, Done]] = {}

    def quotes_of(self, benchmark: Benchmark) -> dict[str, list[Quote]]:
        """Return the quotes to locate in each document, by file name.

        They are the quotes of `benchmark` and those of the next bundle, which will reuse the located quotes.
        """
        quotes = _quotes_of(benchmark.rows)
        for name, more in self._later.items():
            quotes[name] += more
        return quotes

    def keep(self, raw: RawDocument, done: Done) -> None:
        """Store a document of the first bundle, so that `place` can reuse it."""
        self._done.setdefault(raw.filename, (raw, done))

    def place(self, raw: RawDocument, quotes: Sequence[Quote], corpus: Path) -> Done | None:
        """Copy a document of the first bundle into the next bundle's corpus and return its result.

        Return None if the first bundle has no identical document, or has not located all the quotes in it.
        """
        known, done = self._done.get(raw.filename, (None, None))
        if known != raw or done is None or not done.places.keys() >= set(quotes):
            return None
        shutil.copyfile(self._corpus / raw.filename, corpus / raw.filename)
        return done


def _quotes_of(rows: Sequence[RawRow]) -> dict[str, list[Quote]]:
    quotes: dict[str, list[Quote]] = defaultdict(list)
    for row in rows:
        for quote in (*row.quotes, *row.near_misses):
            quotes[quote.filename].append(quote)
    return quotes
