"""A hand-written bundle for variations: two contracts in plain text, with gold given by its words."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from exhibit.converters import Tally
from exhibit.storage.bundle import open_bundle
from exhibit.vary.corpus import TextCorpus, read_corpus
from exhibit.vary.kinds import KINDS, VaryRequest, read_kind
from exhibit.vary.make import main
from tests.rag.bundles import write_files

LEASE = """LEASE AGREEMENT

This Lease Agreement is made as of May 3, 2017 between Orchard Row Estates, Inc., a Nevada corporation (the "Landlord"),
and Tollgate Bakery LLC (the "Tenant").

1. PREMISES

1.1 Demise. The Landlord leases to the Tenant the ground floor of 12 Mill Street.

1.2 Use. The Tenant may use the premises for a bakery.

2. TERM

2.1 Initial term. The term begins on June 1, 2017 and ends on May 31, 2022.

2.2 Renewal. The lease renews for successive terms of two (2) years each unless the Tenant gives
ninety (90) days' prior written notice.

3. RENT

3.1 Rent. The Tenant shall pay a monthly rent of Four Thousand Dollars ($4,000).

3.2 Late charge. Rent that is paid late bears a charge of six percent (6%).

4. GENERAL

4.1 Assignment. The Tenant may not assign this Lease without the Landlord's consent.

4.2 Law. This Lease is governed by the laws of the State of Oregon.

4.3 Insurance. The Tenant shall maintain a policy of fire insurance.

4.4 Entire agreement. This Lease is the entire agreement of the parties.
"""
LICENCE = """SOFTWARE LICENCE

This licence is granted on 14 March 2019 by Quillmoor Systems Ltd to Harbour Freight Partners.

1. GRANT

1.1 The Licensor grants the Licensee a right to use the Software at one site.

2. SUPPORT

2.1 The Licensor shall answer a report of a fault within twelve (12) hours.

2.2 Support costs EUR 1,500 a year.

3. END

3.1 Either party may end this licence on sixty (60) days' notice.

3.2 The Licensee shall delete all copies.
"""


@dataclass(frozen=True)
class Fact:
    """A question with the words that answer it."""

    question: str
    answer: str
    gold: str
    file: str = "lease.txt"


ROWS = (
    Fact("From what day does the lease run?", "6/1/17", "The term begins on June 1, 2017 and ends on May 31, 2022."),
    Fact("How long is each renewal?", "2 years", "The lease renews for successive terms of two (2) years each unless"),
    Fact("How much notice stops it?", "90 days", "gives\nninety (90) days' prior written notice"),
    Fact("What is the rent?", "$4,000", "The Tenant shall pay a monthly rent of Four Thousand Dollars ($4,000)."),
    Fact("What is the late charge?", "6%", "Rent that is paid late bears a charge of six percent (6%)."),
    Fact("Which law governs?", "Oregon", "This Lease is governed by the laws of the State of Oregon."),
    Fact("Does an assignment need consent?", "Yes",
          "The Tenant may not assign this Lease without the Landlord's consent."),
    Fact("Must the tenant insure?", "Yes", "The Tenant shall maintain a policy of fire insurance."),
    Fact("May the premises be a bakery?", "Yes", "The Tenant may use the premises for a bakery."),
    Fact("Who is the tenant?", "Tollgate Bakery LLC", "Tollgate Bakery LLC (the \"Tenant\")"),
    Fact("How fast are faults answered?", "12 hours",
          "The Licensor shall answer a report of a fault within twelve (12) hours.", "licence.txt"),
    Fact("What does support cost?", "EUR 1,500", "Support costs EUR 1,500 a year.", "licence.txt"),
    Fact("May a party end the licence?", "Yes", "Either party may end this licence on sixty (60) days' notice.",
          "licence.txt"),
)  # fmt: skip


def write_parent(root: Path) -> Path:
    """Write the bundle; its last row has no answer."""
    texts = {"lease.txt": LEASE, "licence.txt": LICENCE}
    rows, gold = [], []
    for id, row in enumerate(ROWS):
        start = texts[row.file].index(row.gold)
        contexts = [{"filename": row.file, "text": row.gold}]
        rows.append({"id": id, "question": row.question, "answer": row.answer, "is_impossible": False,
                     "contexts": contexts})  # fmt: skip
        spans = [[start, start + len(row.gold)]]
        gold.append({"id": id, "context": 0, "filename": row.file, "pages": [], "spans": spans,
                     "alternatives": [], "how": "exact", "labels": {"answer": row.answer}})  # fmt: skip
    last = {"id": len(ROWS), "question": "Is there a dog?", "answer": "Not found in provided documents"}
    rows.append({**last, "is_impossible": True, "contexts": []})
    gold.append({"id": len(ROWS), "context": None, "filename": "lease.txt", "pages": [], "spans": [],
                 "alternatives": [], "how": "absent", "labels": {}})  # fmt: skip
    return write_files(root, texts, rows, gold)


@pytest.fixture(scope="session")
def variants(shared_folder: Path) -> Callable[..., Path]:
    """A function that returns a variant of the bundle, with its control, made once for all tests."""
    folder = shared_folder / "variants"

    def make(kind: str, *flags: str) -> Path:
        out = folder / kind.replace(":", "-")
        with FileLock(folder.with_suffix(".lock")):
            if not folder.exists():
                write_parent(folder / "parent")
            made = out.exists() or main(
                [str(folder / "parent"), "--kind", kind, "--seed", "4", "--out", str(out), "--jobs", "1", *flags]
            )
        assert made in (True, 0)
        return out

    return make


def read_parent(root: Path) -> TextCorpus:
    """Write the bundle that the tests vary, and return its corpus as text."""
    return read_corpus(open_bundle(write_parent(root)), Tally())


def vary_corpus(corpus: TextCorpus, kind: str, *, seed: int = 3, tally: Tally | None = None) -> TextCorpus:
    """Return the corpus as this kind of variation changes it."""
    name, argument = read_kind(kind)
    return KINDS[name](corpus, VaryRequest(seed, argument), tally or Tally())
