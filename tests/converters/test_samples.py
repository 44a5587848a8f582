"""Each sample becomes exactly the bundle under tests/golden/, as far as its text does not depend on the printer."""

import pytest

from tests.converters.account import FIELDS, compare_golden


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("acord", FIELDS),
        ("cpr", ("id", "context", "filename", "pages", "how", "score", "labels")),
        ("cuad", ()),
        ("legalbenchrag", ()),
        ("maud", ("id", "context", "filename", "how", "score", "labels", "alternatives")),
        ("privacyqa", FIELDS),
        ("table", FIELDS),
    ],
)
def test_sample_converts_to_golden_bundle(name, fields, converted, golden):
    compare_golden(name, converted(name), golden, fields)
