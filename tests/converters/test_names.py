"""Renamed files are matched with their rows; the most reliable rule is applied first."""

from __future__ import annotations

from pathlib import Path

import pytest

from exhibit.converters.raw.titles import pair_files


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("ACME_01_02_2003-EX-10-SUPPLY AGREEMENT.PDF", "ACME_01_02_2003-EX-10-SUPPLY AGREEMENT.PDF"),
        ("ACME_01_02_2003-EX-10-SUPPLY AGREEMENT.PDF", "ACME_01_02_2003-EX-10-SUPPLY AGREEMENT.pdf"),
        ("ACME_01_02_2003-EX-10-SUPPLY AGREEMENT .PDF", "ACME_01_02_2003-EX-10-SUPPLY AGREEMENT.PDF"),
        ("A&B's - R&D AGREEMENT.PDF", "A_B_s - R_D AGREEMENT.PDF"),
        ("SOCIÉTÉ GÉNÉRALE - LEASE.PDF", "SOCIE\u0301TE\u0301 GE\u0301NE\u0301RALE - LEASE.PDF"),
        ("VERRERIES DE SAINT-ÉLOR - SUPPLY.PDF", "VERRERIES DE SAINT-_LOR - SUPPLY.PDF"),
        ("ACME_01_02_2003-EX-10-SUPPLY AGREEMENT-.pdf", "ACME_01_02_2003-EX-10-SUPPLY AGREEMENT-_Amendment.pdf"),
    ],
)
def test_a_renamed_file_is_found(name, file):
    others = [Path("UNRELATED_05_06_2007-EX-10.2-LICENSE.PDF"), Path("x/OTHER CORP - HOSTING AGREEMENT.PDF")]
    pairs = pair_files([name], [*others, Path("y") / file])
    assert pairs.files == {0: Path("y") / file} and not pairs.missing


def test_equal_names_go_first_whatever_the_order():
    long, short = Path("ACME CORPORATION - LEASE2.PDF"), Path("ACME CORPORATION - LEASE.PDF")
    assert pair_files(["ACME CORPORATION - LEASE.PDF", "ACME CORPORATION - LEASE2.PDF"], [long, short]).files == {
        0: short,
        1: long,
    }


def test_two_that_fit_equally_are_none():
    files = [Path("ACME CORPORATION OF OHIO - LEASE A.PDF"), Path("ACME CORPORATION OF OHIO - LEASE B.PDF")]
    pairs = pair_files(["ACME CORPORATION OF OHIO - LEASE"], files)
    assert pairs.files == {} and pairs.missing == [0]


@pytest.mark.parametrize(
    "name",
    ["ACME HARBOURS OF OHIO - LEASE.PDF", "ACME_HARBOURS_OF_OHIO LEASE.PDF", "ACME HARBOURS OF OHIA - LEASE.PDF"],
)
def test_two_files_of_one_name_in_different_folders_are_ambiguous(name):
    files = [Path("old/ACME HARBOURS OF OHIO - LEASE.PDF"), Path("new/ACME HARBOURS OF OHIO - LEASE.PDF")]
    pairs = pair_files([name], files)
    assert pairs.files == {} and pairs.missing == [0]


def test_a_short_name_is_never_guessed():
    assert pair_files(["LEASE.PDF"], [Path("LEASE2.PDF")]).missing == [0]


def test_a_second_row_for_the_same_file_is_told():
    pairs = pair_files(["A LEASE.PDF", "A LEASE.pdf"], [Path("A LEASE.PDF")])
    assert pairs.doubled == [1] and not pairs.missing


def test_a_pair_by_likeness_alone_is_reported():
    pairs = pair_files(["VERRERIES DE SAINT-ÉLOR - SUPPLY.PDF"], [Path("VERRERIES DE SAINT-_LOR - SUPPLY.PDF")])
    assert pairs.similar == [("VERRERIES DE SAINT-ÉLOR - SUPPLY.PDF", "VERRERIES DE SAINT-_LOR - SUPPLY.PDF")]
