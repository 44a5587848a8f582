"""An amendment is linked to the contract that its opening or its file name names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exhibit.law.amendments import Agreement, link_families, read_amendment
from tests.law.contracts import CONTRACT, FIRST, SECOND

PARTIES = ("Quillfeather Systems, Inc.", "Marrowdale Clinics LLC")
OURS = Agreement("hosting.pdf", "Hosting Agreement", PARTIES, "March 1, 2018")
OTHERS = [
    Agreement("hosting2.pdf", "Hosting Agreement", ("Osprey Data Corp.", "Tern Ltd"), "April 3, 2016"),
    Agreement("lease.pdf", "Lease Agreement", PARTIES, "May 9, 2017"),
]


def make_agreement(filename, text):
    return Agreement(filename, "Amendment", PARTIES, "", read_amendment(text, ""))


def test_read_amendment_only_reads_documents_that_amend_another():
    assert read_amendment(CONTRACT, "Hosting Agreement") is None
    assert read_amendment(CONTRACT, "Amended and Restated Hosting Agreement") is not None
    amendment = read_amendment(FIRST, "")
    assert (str(amendment.day), amendment.contract_days) == ("2019-06-01", {"2018-03-01"})


@pytest.mark.parametrize(
    ("contracts", "expected"),
    [
        ([OURS, *OTHERS], {"amendment.pdf": "hosting.pdf"}),
        (OTHERS, {}),
        ([replace(OURS, date="June 9, 2022")], {}),
        ([OURS, replace(OURS, filename="hosting copy.pdf")], {}),
    ],
    ids=["title, parties and date", "absent", "later contract", "two equal contracts"],
)
def test_amendment_belongs_to_contract_of_its_title_parties_and_date(contracts, expected):
    assert link_families([*contracts, make_agreement("amendment.pdf", FIRST)]) == expected


@pytest.mark.parametrize(
    ("amendment", "contract", "expected"),
    [
        ("lease - Amendment No. 1.pdf", "lease.pdf", True),
        ("Lease_second_amendment.docx", "Lease.pdf", True),
        ("lease 2 - Amendment No. 1.pdf", "lease.pdf", False),
        ("leasehold amendment.pdf", "lease.pdf", False),
        ("lease - Annex.pdf", "lease.pdf", False),
    ],
)
def test_amendment_belongs_to_contract_whose_file_name_it_repeats(amendment, contract, expected):
    contracts = [Agreement(contract, "IP Agreement", (), ""), Agreement("x.pdf", "Lease", (), "")]
    assert (link_families([*contracts, make_agreement(amendment, FIRST)]) == {amendment: contract}) is expected


def test_link_families_groups_amendments_when_contract_is_absent():
    first, second = "quillfeather-one.pdf", "quillfeather-two.pdf"
    members = [make_agreement(first, FIRST), make_agreement(second, SECOND)]
    assert link_families(members) == {first: first, second: first}
    assert set(link_families([OURS, *members]).values()) == {"hosting.pdf"}
