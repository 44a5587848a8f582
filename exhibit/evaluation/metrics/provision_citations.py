"""Citations by provision: whether the provisions that an answer cites (`§ 535 BGB`, `Section 8.03`) contain the gold.

A provision is looked up in the documents: the sections of a contract and those of a law. It is right where its text
overlaps gold.

    citation_precision = cited provisions with gold / cited provisions found in a document
    citation_recall    = gold passages in a cited provision / located gold passages

Neither figure applies to an answer that cites no provision of the documents.
"""

from collections.abc import Sequence

from exhibit.evaluation.cases import GoldPassage, PlacedProvision
from exhibit.evaluation.metrics import Case, Options, Values

NAMES = ("citation_precision", "citation_recall")


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return `citation_precision` and `citation_recall`, each as a list with one value per case.

    A value is None if no provision that the answer cites was located, or if no gold was located.
    """
    scores = [_score_provisions(case) for case in cases]
    return {name: [score[column] for score in scores] for column, name in enumerate(NAMES)}


def _score_provisions(case: Case) -> tuple[float | None, float | None]:
    placed = [one for one in case.reply.provisions if one.filename is not None]
    golds = [gold for gold in case.gold if gold.located]
    if not placed or not golds:
        return None, None
    right = sum(any(_holds(one, gold) for gold in golds) for one in placed)
    reached = sum(any(_holds(one, gold) for one in placed) for gold in golds)
    return right / len(placed), reached / len(golds)


def _holds(cited: PlacedProvision, gold: GoldPassage) -> bool:
    """Return whether a cited provision overlaps a gold passage, at any place in the file where the gold occurs."""
    spans = [span for place in gold.places for span in place]
    shared = (start < span.end and span.start < end for start, end in cited.spans for span in spans)
    return gold.filename == cited.filename and any(shared)
