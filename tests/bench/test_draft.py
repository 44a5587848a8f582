"""The benchmarks of drafting choose the documents to measure, and say when none is left or a folder is taken."""

from __future__ import annotations

from argparse import Namespace

import pytest

from bench import draft, mixed_folder
from tests.training.material import NAMES, write_contracts


@pytest.mark.parametrize(
    ("flags", "chosen"),
    [
        ({}, [f"{name}.txt" for name in NAMES]),
        ({"skip": 1, "limit": 1}, ["birch.txt"]),
        ({"names": "names.tsv"}, ["cedar.txt"]),
    ],
)
def test_documents_are_chosen_by_name_and_number(flags, chosen, tmp_path):
    (tmp_path / "names.tsv").write_text("benchmark\tdocument\ncuad\tCedar.pdf\n", encoding="utf-8")
    options = {"names": None, "tuning": False, "skip": 0, "limit": None, **flags}
    options["names"] = options["names"] and tmp_path / options["names"]
    assert draft.choose_files(write_contracts(tmp_path / "bundle"), Namespace(**options)) == chosen


def test_a_bundle_of_which_no_document_is_left_is_an_error_of_one_line(tmp_path, capsys):
    bundle = write_contracts(tmp_path / "bundle")
    assert draft.main([str(bundle), "--skip", "6"]) == 1
    assert f"{bundle}: no document is left of 6; look at --names, --skip and --limit" in capsys.readouterr().err


def test_a_folder_that_is_there_already_is_not_filled_with_the_mixed_documents(tmp_path, capsys):
    assert mixed_folder.main([str(tmp_path)]) == 1
    assert f"{tmp_path}: exists already" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_the_folder_has_documents_of_four_kinds(tmp_path):
    mixed_folder.make_folder(tmp_path / "mixed", each=1)
    assert sorted(path.suffix for path in (tmp_path / "mixed").iterdir()) == [".docx", ".md", ".pdf", ".pdf"]
    mixed_folder.make_folder(tmp_path / "all")
    assert len(list((tmp_path / "all").iterdir())) == 20
