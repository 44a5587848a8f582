"""Citations by place: whether the provisions that an answer cites (`§ 535 BGB`, `Section 8.03`) are those of the gold.

A provision is looked up in the documents, a contract's own numbering as a law's: it is right where its text and the
gold share characters.

    citation_precision = cited provisions that hold gold / cited provisions that stand in a document
    citation_recall    = gold passages that a cited provision holds / gold passages that are located

Neither applies to an answer that cites no provision that stands in the documents.
"""

from collections.abc import Sequence

from exhibit.evaluation.cases import GoldPassage, PlacedProvision
from exhibit.evaluation.metrics import Case, Options, Values

NAMES = ("citation_precision", "citation_recall")


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return both shares, None where no provision is cited whose place is known."""
    scores = [_scores(case) for case in cases]
    return {name: [score[column] for score in scores] for column, name in enumerate(NAMES)}


def _scores(case: Case) -> tuple[float | None, float | None]:
    placed = [one for one in case.reply.provisions if one.filename is not None]
    golds = [gold for gold in case.gold if gold.located]
    if not placed or not golds:
        return None, None
    right = sum(any(_holds(one, gold) for gold in golds) for one in placed)
    reached = sum(any(_holds(one, gold) for one in placed) for gold in golds)
    return right / len(placed), reached / len(golds)


def _holds(cited: PlacedProvision, gold: GoldPassage) -> bool:
    """Return whether a provision and gold share characters, at one of the places that the gold may be at."""
    spans = [span for place in gold.places for span in place]
    shared = (start < span.end and span.start < end for start, end in cited.spans for span in spans)
    return gold.filename == cited.filename and any(shared)
