"""Pages and boxes: whether the page and the box that a system reports for a passage contain its words.

    page_accuracy      = share of passages whose words are on the reported page
    gold_page_accuracy = share of passages whose reported page has gold of the question
    box_accuracy       = mean intersection over union of the reported box and the boxes of the words

Only the passages that the answer cites by number count; if it cites none, all passages count. Passages
without a reported page (for `box_accuracy`, without a box) are left out. `page_accuracy` also leaves out
passages that were not located in their file, and `gold_page_accuracy` passages from files without gold. A
figure is None if no passage is left.
"""

from exhibit.evaluation.metrics import Case, Passage, list_gold_files, score_per_case
from exhibit.law.citations import find_citations


def find_cited_passages(case: Case) -> list[Passage]:
    """Return the passages that an answer cites by number; all passages where it cites none."""
    passages = case.reply.passages
    numbers = [n for citation in find_citations(case.reply.answer or "") for n in citation.numbers]
    cited = [passages[n - 1] for n in dict.fromkeys(numbers) if 1 <= n <= len(passages)]
    return cited or list(passages)


def _score_pages(case: Case) -> float | None:
    cited = [passage for passage in find_cited_passages(case) if passage.told_page is not None and passage.pages]
    return sum(passage.told_page in passage.pages for passage in cited) / len(cited) if cited else None


def _score_gold_pages(case: Case) -> float | None:
    files = list_gold_files(case)
    pages = {(gold.filename, page) for gold in case.gold for page in gold.pages}
    if not pages:
        return None
    cited = [one for one in find_cited_passages(case) if one.told_page is not None and one.filename in files]
    return sum((one.filename, one.told_page) in pages for one in cited) / len(cited) if cited else None


def _score_boxes(case: Case) -> float | None:
    overlaps = [passage.box_overlap for passage in find_cited_passages(case) if passage.box_overlap is not None]
    return sum(overlaps) / len(overlaps) if overlaps else None


NAMES, measure = score_per_case(
    page_accuracy=_score_pages, gold_page_accuracy=_score_gold_pages, box_accuracy=_score_boxes
)
