"""Compares the splitter with langchain-text-splitters: the same separators on the same texts, chunk by chunk.

    python -m bench.split [--source FOLDER] [--rounds 7]

The two splitters run in turn, so that other programs slow down both alike and the ratio of their times is
reliable. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from langchain_text_splitters import RecursiveCharacterTextSplitter

from bench._table import find_corpus_folder, print_table, read_texts
from exhibit.evidence import Span
from exhibit.rag.splitters import rcts, sections
from exhibit.runtime.command import guarded

_SIZE = 500


def best_of(rounds: int, *ways: Callable[[], object]) -> list[float]:
    """Return each function's fastest run in processor seconds.

    The functions alternate, so that other programs disturb all of them alike.
    """
    best = [float("inf")] * len(ways)
    for _ in range(rounds):
        for number, way in enumerate(ways):
            started = time.process_time()
            way()
            best[number] = min(best[number], time.process_time() - started)
    return best


def measure_same(texts: Sequence[str], ours: Sequence[Sequence[Span]], theirs: Sequence[Sequence[str]]) -> float:
    """Return the share of langchain's chunks that are also chunks of this project's splitter, at the same offsets."""
    same = total = 0
    for text, spans, chunks in zip(texts, ours, theirs, strict=True):
        cuts, start = set(spans), 0
        for chunk in chunks:
            span = Span(start, start + len(chunk))  # langchain's chunks tile the text as well
            same += span in cuts and text[span.start : span.end] == chunk
            start = span.end
        total += len(chunks)
    return same / total


def compare(name: str, texts: Sequence[str], separators: Sequence[str], rounds: int) -> list[object]:
    """Measure this project's splitter and langchain's on the same texts; return a table row.

    The row has the name, the number of chunks, the seconds of each splitter, langchain's time divided by
    ours (without and with the offsets of chunks), and the share of equal chunks.
    """
    theirs = RecursiveCharacterTextSplitter(
        separators=list(separators), chunk_size=_SIZE, chunk_overlap=0, strip_whitespace=False
    )
    placing = RecursiveCharacterTextSplitter(
        separators=list(separators), chunk_size=_SIZE, chunk_overlap=0, strip_whitespace=False, add_start_index=True
    )
    us, them, placed = best_of(
        rounds,
        lambda: [rcts.split(text, size=_SIZE, separators=separators) for text in texts],
        lambda: [theirs.split_text(text) for text in texts],
        lambda: placing.create_documents(list(texts)),
    )
    ours = [rcts.split(text, size=_SIZE, separators=separators) for text in texts]
    same = measure_same(texts, ours, [theirs.split_text(text) for text in texts])
    chunks = sum(map(len, ours))
    return [name, chunks, f"{us:.3f}", f"{them:.3f}", f"{them / us:.1f}", f"{placed / us:.1f}", f"{same:.2%}"]


@guarded()
def main() -> int:
    """Compare the time and the chunks of this project's splitter and of langchain-text-splitters; print a table.

    Each splitter runs with two lists of separators. The first is LegalBench-RAG's. The second has punctuation
    only together with a following space, so that `10,000` is not split.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, help="folder of .txt files (default: LegalBench-RAG-mini)")
    parser.add_argument("--rounds", type=int, default=7, help="runs of each, of which the fastest counts (default: 7)")
    options = parser.parse_args()
    texts = read_texts(find_corpus_folder(options.source))
    rows = [
        compare("LegalBench-RAG's", texts, sections.SEPARATORS, options.rounds),
        compare("sentences", texts, sections.SENTENCES, options.rounds),
    ]
    characters = sum(map(len, texts))
    print_table(
        f"{len(texts)} texts, {characters:,} characters, chunks of {_SIZE}",
        ["separators", "chunks", "ours s", "theirs s", "times", "times, with offsets", "same chunks"],
        rows,
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
