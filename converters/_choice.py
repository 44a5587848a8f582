"""What the flags that all converters share leave of a benchmark: `--limit` and `--answerable-only`.

A converter may read fewer documents where `--limit` saves it work; it need not know either flag.
"""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace

from exhibit.converters._benchmark import Benchmark, RawRow, Tally

BEYOND = "beyond --limit"
IMPOSSIBLE = "no answer in the document (--answerable-only)"


def choose(benchmark: Benchmark, options: Namespace, tally: Tally) -> Benchmark:
    """Return the first documents and the questions about them; every row that is left out is counted."""
    documents = benchmark.documents[: options.limit]
    names = {document.filename for document in documents}
    for document in benchmark.documents[len(documents) :]:
        for item in document.items:
            tally.leave_out(BEYOND, item.name, item=item)
    rows = []
    for row in benchmark.rows:
        if row.is_impossible and options.answerable_only:
            _leave_out(row, IMPOSSIBLE, tally)
        elif options.limit is not None and not names >= _named(row):
            _leave_out(row, BEYOND, tally)
        else:
            rows.append(row)
    return replace(benchmark, documents=documents, rows=rows)


def _named(row: RawRow) -> set[str]:
    return {quote.filename for quote in row.quotes} | ({row.filename} if row.filename else set())


def _leave_out(row: RawRow, reason: str, tally: Tally) -> None:
    for item in row.items:
        tally.leave_out(reason, item.name, item=item)
    if not row.items:
        tally.leave_out(reason, row.place or f"row {row.id}")
