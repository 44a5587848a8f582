"""Document hit, by hand."""

from __future__ import annotations

from exhibit.evaluation.metrics import Options, document_hit
from tests.evaluation.metrics.build import apply, at, case, gold, quote


def test_by_hand():
    rows = [
        case([gold((0, 9))], [at(0, 9, "nda.pdf"), at(50, 60), at(0, 9)]),
        case([gold((0, 9)), quote("rent", "nda.pdf")], [at(0, 9, "nda.pdf")]),
        case([quote("", "lease.pdf")], [at(0, 9, "nda.pdf")] * 4),
        case([gold((0, 9))], []),
        case([quote("rent", None)], [at(0, 9)]),
        case([gold((0, 9))], [at(0, 9)], error="no reply"),
    ]
    assert apply(document_hit, rows, Options(ks=(1, 2))) == {
        "document_hit@1": [0, 1, 0, 0, None, None],
        "document_hit@2": [1, 1, 0, 0, None, None],
    }
