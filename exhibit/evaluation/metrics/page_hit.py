"""Page hit: whether any of the first k passages is on a page with gold.

It is the main retrieval metric for gold that consists of whole pages. If the gold also has passages, it
complements the passage metrics. The pages of a passage are the pages on which its words were located; the
page that the system reports is used only if the words were not located.

The result is None if the pages of the gold are unknown. It is also None if no passage is known to be on a
page with gold, but the page of some passage is unknown.
"""

from collections.abc import Sequence
from functools import partial

from exhibit.evaluation.metrics import KS, Case, Cutoff, Options, Passage, Values, is_wrong_file, score_each

NAMES = tuple(f"page_hit@{k}" for k in KS)
HEADLINE = "page_hit@8"


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return, for each k, 1 if one of the first k passages is on a page with gold, else 0."""
    depths = (cutoff,) if cutoff else options.ks
    return {f"page_hit@{k}": score_each(cases, partial(_is_hit, k=k)) for k in depths}


def _is_hit(case: Case, k: int) -> float | None:
    pages = {(gold.filename, page) for gold in case.gold for page in gold.pages if not case.is_impossible}
    if not pages:
        return None
    hits = [_is_there(passage, pages) for passage in case.reply.passages[:k]]
    return 1.0 if True in hits else None if None in hits else 0.0


def _is_there(passage: Passage, pages: set[tuple[str | None, int]]) -> bool | None:
    own = passage.pages or ((passage.page,) if passage.span and passage.page else ())
    own = own or ((passage.told_page,) if passage.told_page and passage.filename else ())
    if not own:
        files = {name for name, _ in pages if name}
        return False if is_wrong_file(passage, files) else None
    return any((passage.source, page) in pages for page in own)
