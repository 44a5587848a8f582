"""Document hit: whether any of the first k passages is from a file with gold.

The result is 1 if a passage is known to be from a file with gold. Otherwise it is None if the file of some
passage is unknown, and 0 if all files are known.
"""

from collections.abc import Sequence
from functools import partial

from exhibit.evaluation.metrics import KS, Case, Cutoff, Options, Values, is_wrong_file, list_gold_files, score_each

NAMES = tuple(f"document_hit@{k}" for k in KS)


def measure(cases: Sequence[Case], options: Options, *, cutoff: Cutoff | None = None) -> dict[str, Values]:
    """Return, for each k, 1 if one of the first k passages is from a file with gold, else 0."""
    depths = (cutoff,) if cutoff else options.ks
    return {f"document_hit@{k}": score_each(cases, partial(_is_hit, k=k)) for k in depths}


def _is_hit(case: Case, k: int) -> float | None:
    wrong = [is_wrong_file(passage, list_gold_files(case)) for passage in case.reply.passages[:k]]
    return 1.0 if False in wrong else None if None in wrong else 0.0
