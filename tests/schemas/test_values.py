"""Small functions and properties of the models, each against values that were computed by hand."""

from __future__ import annotations

import errno

import pytest

from exhibit.schemas.errors import describe_disk_error
from exhibit.schemas.layout import fit_name
from exhibit.schemas.models import compute_wilson
from exhibit.schemas.review import AddedQuestion, MarkedPassage
from exhibit.schemas.run import Outcome, RunQuestion, RunReply


@pytest.mark.parametrize(
    ("part", "whole", "interval"),
    [
        (2, 40, (0.01382, 0.16504)),
        (5, 10, (0.23659, 0.76341)),
        (0, 10, (0.0, 0.27754)),  # the upper end is z² / (10 + z²)
        (10, 10, (0.72246, 1.0)),
    ],
)
def test_compute_wilson_gives_the_interval_of_a_proportion(part, whole, interval):
    assert compute_wilson(part, whole) == pytest.approx(interval, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "ending", "fitted"),
    [
        ("lease", ".pdf", "lease.pdf"),
        ("a" * 251, ".pdf", "a" * 251 + ".pdf"),  # 255 bytes, the longest name
        ("a" * 300, "", "a" * 239 + "9835fa6bf4e20a9b"),  # the digests are from sha256sum
        ("a" * 300, ".pdf", "a" * 235 + "9835fa6bf4e20a9b.pdf"),
        ("é" * 200, "", "é" * 119 + "df20b2aa6262e99e"),  # 239 bytes would end inside the 120th letter
    ],
)
def test_fit_name_cuts_names_above_255_bytes_and_adds_a_digest(name, ending, fitted):
    assert fit_name(name, ending) == fitted


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "full"), "the disk: full; free some space, or choose another folder"),
        (PermissionError(errno.EACCES, "denied", "/x"), "/x: denied; free some space, or choose another folder"),
        (
            FileNotFoundError(errno.ENOENT, "No usable temporary directory found"),
            "the disk: No usable temporary directory found; free some space, or choose another folder",
        ),
        (
            FileNotFoundError(errno.ENOENT, "missing", "a\udcff"),
            "a\\udcff: missing; is the path right, or was it removed while the command ran? Then run the command again",
        ),
        (OSError(errno.EMFILE, "too many", "/x"), "/x: too many; raise the limit (ulimit -n), or use fewer --jobs"),
    ],
)
def test_describe_disk_error_names_the_path_and_the_remedy(error, message):
    assert describe_disk_error(error) == message


def test_describe_disk_error_raises_an_error_that_is_not_of_the_disk():
    with pytest.raises(BrokenPipeError):
        describe_disk_error(BrokenPipeError(errno.EPIPE, "broken pipe"))


def test_added_question_without_passages_is_impossible():
    passage = MarkedPassage(filename="lease.pdf", spans=[(0, 4)], text="rent")
    assert AddedQuestion(question="Who pays?").is_impossible
    assert not AddedQuestion(question="Who pays?", contexts=[passage]).is_impossible


@pytest.mark.parametrize(("filename", "document"), [("lease.pdf", "lease.pdf"), (None, "\0q-7"), ("", "\0q-7")])
def test_run_question_without_file_name_counts_as_a_separate_document(filename, document):
    reply = RunReply(error="")
    question = RunQuestion(
        id="q-7", question="Who pays?", truth="the tenant", filename=filename, reply=reply, outcome=Outcome.RIGHT
    )
    assert question.document == document
