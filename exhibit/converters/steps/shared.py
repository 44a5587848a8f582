"""Documents that two bundles have in common, a variant and its control: each is printed and read once."""

import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from exhibit.converters.benchmark import Benchmark, Quote, RawDocument, RawRow
from exhibit.converters.steps.materialise import Done


class SharedDocuments:
    """The documents of the bundle that is built first, for the one that is built next."""

    def __init__(self, texts: Path, corpus: Path, later: Sequence[RawRow]) -> None:
        """Take a folder for texts, the corpus of the first bundle when it is in place, and the rows of the next."""
        self.texts = texts
        self._corpus, self._later = corpus, _quotes_of(later)
        self._done: dict[str, tuple[RawDocument, Done]] = {}

    def quotes_of(self, benchmark: Benchmark) -> dict[str, list[Quote]]:
        """Return the quotes to be located by document: those of the benchmark, and those of the next bundle."""
        quotes = _quotes_of(benchmark.rows)
        for name, more in self._later.items():
            quotes[name] += more
        return quotes

    def keep(self, raw: RawDocument, done: Done) -> None:
        """Keep a document that is in the first bundle."""
        self._done.setdefault(raw.filename, (raw, done))

    def place(self, raw: RawDocument, quotes: Sequence[Quote], corpus: Path) -> Done | None:
        """Copy a document of the first bundle into the next one's corpus; None where the first has not the same."""
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
