"""Replaces pages by simulated scans: pictures that are rotated a little, blurred and compressed; OCR reads them.

Gold is located in the text that OCR read; a question whose passage cannot be located there is left out and counted.
"""

from dataclasses import replace

from exhibit.converters.core.benchmark import Tally
from exhibit.vary.corpus import TextCorpus, with_labels
from exhibit.vary.kinds import VaryRequest

TITLE = "pages are rendered, turned a little, blurred and compressed, and read by OCR (needs an OCR engine)"
MEASURED = ("recall@10", "answer_contained")


def vary(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:  # noqa: ARG001 - none is left out here
    """Return the corpus with the seed of its scans; no question is changed."""
    return replace(corpus, rows=tuple(with_labels(row, scanned=True) for row in corpus.rows), scan_seed=request.seed)
