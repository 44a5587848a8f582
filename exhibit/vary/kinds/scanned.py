"""Replaces pages by simulated scans: pictures that are rotated a little, blurred and compressed; OCR reads them.

Gold is located in the text that OCR read; a question whose passage cannot be located there is left out and counted.
"""

import hashlib
from dataclasses import replace

from exhibit.converters.benchmark import Tally
from exhibit.vary.corpus import TextCorpus
from exhibit.vary.kinds import VaryRequest

TITLE = "pages are rendered, turned a little, blurred and compressed, and read by OCR (needs an OCR engine)"
MEASURED = ("recall@10", "answer_contained")


def vary(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:  # noqa: ARG001 - none is left out here
    """Return the corpus with every document marked for scanning; no question is changed."""
    documents = {
        name: replace(document, scan=int(hashlib.sha256(f"{request.seed}{name}".encode()).hexdigest()[:8], 16))
        for name, document in corpus.documents.items()
    }
    return TextCorpus(documents, tuple(row.labelled(scanned=True) for row in corpus.rows))
