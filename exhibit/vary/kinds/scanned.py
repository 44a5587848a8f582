"""Scanned: pages are pictures, turned a little, blurred and compressed; what OCR reads of them is the new text.

Gold is located in what OCR read; a passage that OCR spoilt beyond finding leaves its question out, and is counted.
"""

import hashlib
from dataclasses import replace

from exhibit.converters.benchmark import Tally
from exhibit.vary.corpus import TextCorpus
from exhibit.vary.kinds import VaryRequest

TITLE = "pages are rendered, turned a little, blurred and compressed, and read by OCR (needs an OCR engine)"
MEASURED = ("recall@10", "answer_contained")


def vary(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:  # noqa: ARG001 - none is left out here
    """Return the corpus with every document to be scanned; every question stays as it is."""
    documents = {
        name: replace(document, scan=int(hashlib.sha256(f"{request.seed}{name}".encode()).hexdigest()[:8], 16))
        for name, document in corpus.documents.items()
    }
    return TextCorpus(documents, tuple(row.labelled(scanned=True) for row in corpus.rows))
