"""Hostile files: each is read or reported with a reason, and the documents beside it are indexed."""

from __future__ import annotations

import os
import sys
import time

import pytest

from exhibit.engine import Limits, open_engine, run_in_worker
from exhibit.evidence.read import render_within
from exhibit.evidence.readers.html import extract_text
from exhibit.rag.__main__ import main as rag_main
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation
from exhibit.schemas.errors import DocumentError, LimitError
from tests.hostile.files import FILES
from tests.hostile.work import needs, sections_of
from tests.rag.bundles import PARTIES, contract

QUICK = [one for one in FILES if not one.slow]


def write(folder, files):
    for one in files:
        (folder / one.name).write_bytes(one.make())
    return [folder / one.name for one in files]


def test_whoever_reads_them_is_done_in_time_and_says_why_not(tmp_path):
    work = Preparation(Config.preset("rcts", embedder="hashing"))
    outcomes = list(open_engine("local", jobs=2).map(work, write(tmp_path, QUICK)))
    for one, outcome in zip(QUICK, outcomes, strict=True):
        assert not isinstance(outcome.error, LimitError), one.name
        if outcome.error is not None:
            assert isinstance(outcome.error, DocumentError) and one.name in str(outcome.error), one.name
        assert one.read == (outcome.error is None), one.name
    named = {one.name: outcome.value.text for one, outcome in zip(QUICK, outcomes, strict=True) if outcome.value}
    assert named["section.html"] == named["nested.html"] == "The rent is due."
    assert named["number.html"] == "Rent \ufffd is due."


@pytest.mark.slow
def test_a_folder_with_all_of_them_is_indexed_within_the_usual_limits_and_each_is_named(tmp_path, capsys):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    write(corpus, FILES)
    for stem, (party, law) in PARTIES.items():
        (corpus / f"{stem}.txt").write_text(contract(party, law), encoding="utf-8")
    (corpus / os.fsdecode(b"caf\xe9.txt")).write_text("The rent is due.", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("The rent is secret.", encoding="utf-8")
    (corpus / "link.txt").symlink_to(tmp_path / "secret.txt")
    flags = ["--out", str(tmp_path / "index"), "--embedder", "hashing", "--jobs", "2"]
    began = time.monotonic()
    assert rag_main(["index", str(corpus), *flags]) == 0
    seconds = time.monotonic() - began
    out = capsys.readouterr().out
    print(f"{len(FILES)} hostile files: {seconds:.0f} s")
    assert seconds < 300
    assert [one.name for one in FILES if not one.read and f"{one.name}: " not in out] == []
    assert "caf\\udce9.txt: its name is not UTF-8" in out
    assert "link.txt: a link that leads out of the folder; not followed" in out
    assert rag_main(["search", str(tmp_path / "index"), "Which law governs the agreement of Birch Inc.?"]) == 0
    shown = capsys.readouterr().out
    assert "birch.txt" in shown and "secret" not in shown


def test_a_page_as_large_as_a_town_is_not_drawn(tmp_path):
    (path,) = write(tmp_path, [one for one in FILES if one.name == "huge-page.pdf"])
    with pytest.raises(DocumentError, match="page 1 is 1.44e\\+07 by 1.44e\\+07 points, which is too large to draw"):
        render_within(path, 1, scale=1.0)
    assert render_within(path, 1, scale=1e-4).size == (1440, 1440)


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("<!-- a --><p>b</p><!-- c", "b"),
        ("<!--><p>b", "b"),
        ("a < b &amp; c <3", "a < b & c <3"),
        ("<p title='>'>x</p>", "x"),
        ('<p title="a>b" c=d>x', "x"),
        ('<p title="x>y</p>', "y"),
        ("<script>if (a < b) '</p>'</script>c", "c"),
        ("<SCRIPT>x</script >c", "c"),
        ("<style>x", ""),
        ("<title>a <b> c</title>", "a <b> c"),
        ("a<br/>b<br>c", "a\nb\nc"),
        ("a</>b<?php x ?>c<!doctype html>d", "abcd"),
        ("<svg><svg>x</svg>y", "y"),
        ("end <b", "end"),
        ("<pre>a  b\n\n c </pre>", "a  b\n\nc"),
    ],
)
def test_html_is_cut_as_a_browser_cuts_it(markup, text):
    assert extract_text(markup) == text


@pytest.mark.parametrize(
    "piece", ["<!--", "<a ", '<a b="', "<a b='", "</a ", "<![x[", "<", "&", "<svg></b>", "<script>"]
)
def test_html_is_read_in_a_time_that_grows_with_its_length_alone(piece):
    """The time is measured in steps of the parser, not in seconds."""
    assert steps(piece * 4000) <= 2.5 * steps(piece * 2000) + 50


def steps(markup: str) -> int:
    count = 0

    def tally(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tally)
    try:
        extract_text(markup)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_a_worker_that_was_refused_memory_works_on():
    with pytest.raises(LimitError, match="needs more than 256 MiB of memory"):
        run_in_worker(needs, 1 << 30, limits=Limits(memory=256 << 20))
    assert run_in_worker(needs, 1 << 20) == 1 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits a process's memory")
def test_a_line_without_end_takes_memory_in_proportion():
    """A regular expression that repeats a group stores every repetition: 112 bytes for each character."""
    assert run_in_worker(sections_of, "a" * 1_000_000, limits=Limits(memory=48 << 20)) == 1
