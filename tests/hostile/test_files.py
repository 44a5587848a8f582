"""Each hostile file is read or reported with a reason, and the documents beside it are indexed."""

import os
import time

import pytest

from exhibit.engine import open_engine
from exhibit.rag.__main__ import main as rag_main
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation
from exhibit.schemas.errors import DocumentError, LimitError
from tests.hostile.files import FILES
from tests.rag.bundles import PARTIES, contract

pytestmark = pytest.mark.slow

QUICK = [one for one in FILES if not one.slow]


def write(folder, files):
    for file in files:
        (folder / file.name).write_bytes(file.make())
    return [folder / file.name for file in files]


def test_hostile_files_are_read_or_refused_within_the_time_limit(tmp_path):
    work = Preparation(Config.preset("rcts", embedder="hashing"))
    outcomes = list(open_engine("local", jobs=2).map(work, write(tmp_path, QUICK)))
    for file, outcome in zip(QUICK, outcomes, strict=True):
        assert not isinstance(outcome.error, LimitError), file.name
        if outcome.error is not None:
            assert isinstance(outcome.error, DocumentError) and file.name in str(outcome.error), file.name
        assert file.read == (outcome.error is None), file.name
    named = {file.name: outcome.value.text for file, outcome in zip(QUICK, outcomes, strict=True) if outcome.value}
    assert named["section.html"] == "The rent is due."
    assert named["number.html"] == "Rent \ufffd is due."


@pytest.mark.slow
def test_index_command_skips_and_names_unreadable_hostile_files(tmp_path, capsys):
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
    assert [file.name for file in FILES if not file.read and f"{file.name}: " not in out] == []
    assert "caf\\udce9.txt: its name is not UTF-8" in out
    assert "link.txt: a link that leads out of the folder; not followed" in out
    assert rag_main(["search", str(tmp_path / "index"), "Which law governs the agreement of Birch Inc.?"]) == 0
    shown = capsys.readouterr().out
    assert "birch.txt" in shown and "secret" not in shown
