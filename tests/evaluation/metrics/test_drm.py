"""Document-level retrieval mismatch, by hand."""

from __future__ import annotations

from exhibit.evaluation.metrics import Options, drm
from exhibit.evaluation.ranking import pool_mismatches, total_mismatches
from exhibit.evaluation.statistics import compute_macro_mean
from tests.evaluation.metrics.build import apply, at, case, gold, quote

OPTIONS = Options(ks=(1, 2, 4))
LEASE = gold((0, 9))


def ranking(files):
    return [at(0, 9, f"{file}.pdf") for file in files.split()]


ROWS = [
    case([LEASE], ranking("lease nda nda lease")),
    case([LEASE], ranking("nda lease")),
    case([LEASE, quote("rent", "nda.pdf")], ranking("lease nda will will")),
    case([quote("", "lease.pdf")], [at(0, 9), "words from nowhere"]),
    case([LEASE], []),
    case([quote("rent", None)], ranking("lease")),
    case([LEASE], ranking("lease"), error="no reply"),
]


def test_by_hand():
    assert apply(drm, ROWS, OPTIONS) == {
        "drm@1": [0, 1, 0, 0, None, None, None],
        "drm@2": [0.5, 0.5, 0, 0, None, None, None],
        "drm@4": [0.5, 0.5, 0.5, 0, None, None, None],
    }


def test_pooled_counts_passages_and_macro_documents():
    assert pool_mismatches(total_mismatches(ROWS, OPTIONS)) == {"drm@1": 1 / 4, "drm@2": 2 / 7, "drm@4": 5 / 11}
    assert pool_mismatches(total_mismatches([], OPTIONS))["drm@1"] is None
    assert compute_macro_mean(apply(drm, ROWS[:3], OPTIONS)["drm@1"], ["lease", "lease", "nda"]) == 0.25
