"""Bad rows, names, archives, replies and disks: counted and reported by name, without a traceback."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import zipfile
import zlib
from contextlib import closing
from email.message import EmailMessage
from pathlib import Path

import pytest

import evaluate_rag
from exhibit.converters.raw import source
from exhibit.evaluation.targets import builtin
from exhibit.evidence import Document, Span, locate
from exhibit.evidence.check import check_gold
from exhibit.hub.export import main as export_main
from exhibit.models.llms.openai import text_of
from exhibit.rag.__main__ import main as rag_main
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import SourceError, ToolkitError, describe_disk_error
from exhibit.schemas.parsing import parse_json
from exhibit.storage import atomic
from exhibit.storage.atomic import LINK, list_files, list_left_out, lock_folder, make_scratch_folder
from exhibit.storage.http_policy import Body, BodyError
from tests.rag.bundles import row, rows_of, write_bundle

# ---------------------------------------------------------------- bodies


def unpacked(data: bytes, encoding: str, *, most: int = 1 << 20) -> bytes:
    body = Body({"content-encoding": encoding}, most=most)
    out = b"".join(body.feed(data[start : start + 1000]) for start in range(0, len(data), 1000))
    body.close()
    return out


def test_bodies_are_unpacked():
    data = b"The rent is due. " * 1000
    assert unpacked(data, "") == unpacked(data, "identity") == data
    assert unpacked(gzip.compress(data, mtime=0), "gzip") == unpacked(zlib.compress(data), "deflate") == data
    assert unpacked(zlib.compress(data)[2:-4], "deflate") == data, "without its head, as some servers send it"
    assert unpacked(gzip.compress(gzip.compress(data), mtime=0), "gzip, gzip") == data


def test_a_body_that_unpacks_to_too_much_is_refused_while_it_comes():
    bomb = gzip.compress(bytes(50 << 20), 9, mtime=0)
    assert len(bomb) < 60_000
    with pytest.raises(BodyError, match="larger than 1 MB"):
        unpacked(bomb, "gzip")
    with pytest.raises(BodyError, match="larger than 1 MB"):
        unpacked(gzip.compress(bomb, 9, mtime=0), "gzip, gzip")
    with pytest.raises(BodyError, match="compressed 3 times"):
        unpacked(gzip.compress(gzip.compress(bomb), mtime=0), "gzip, gzip, gzip")


@pytest.mark.parametrize(
    ("data", "encoding", "why"),
    [
        (b"x", "br", "which the request did not accept"),
        (b"hello", "gzip", "damaged"),
        (gzip.compress(b"x" * 99, mtime=0)[:-9], "gzip", "ended too early"),
    ],
)
def test_a_body_that_cannot_be_unpacked_is_refused(data, encoding, why):
    with pytest.raises(BodyError, match=why):
        unpacked(data, encoding)


# ---------------------------------------------------------------- JSON and replies


@pytest.mark.parametrize(
    ("text", "why"),
    [("[" * 100_000, "nested too deep"), ("9" * 5000, "too long"), ("{", "not JSON"), (b"\xff[", "not UTF-8")],
)
def test_json_that_cannot_be_read_is_one_error(text, why):
    with pytest.raises(SourceError, match=f"^here: .*{why}"):
        parse_json(text, where="here", error=SourceError)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("<think>a</think> b", "b"),
        (" \n<think>a\n</think>b", "b"),
        ("a", "a"),
        ("<think>a", "<think>a"),
        ("x</think>", "x</think>"),
    ],
)
def test_a_models_thoughts_are_left_out(said, text):
    assert text_of({"choices": [{"message": {"content": said}}]}) == text


# ---------------------------------------------------------------- quotes


def test_a_form_full_of_blanks_does_not_hold_a_quote_of_blanks_and_other_words():
    form = "\n".join(f"{name} of the tenant {number}: {'_' * 60}" for number in range(700) for name in ("Name", "Date"))
    quote = "\n".join(f"Sum owed {number}:\n{'_' * 60}" for number in range(40))
    assert locate(quote, Document("form.txt", form)) == []


def test_a_word_that_is_everywhere_is_kept_at_a_bounded_number_of_places():
    found = locate("rent", Document("a.txt", "rent " * 9000))
    assert len(found) == 5000 and found[0].span == Span(0, 4)


# ---------------------------------------------------------------- archives and temporary files


def archive(path: Path, name: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, "x")
    return path


def test_an_archive_with_a_name_that_no_disk_takes_is_refused(tmp_path):
    with pytest.raises(SourceError, match="is not a valid file name"):
        source.unpack(archive(tmp_path / "a.zip", "x" * 400), tmp_path / "out")


def test_a_full_disk_while_unpacking_is_one_error(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(zipfile.ZipFile, "extract", full)
    with pytest.raises(SourceError, match="cannot be unpacked: No space left on device"):
        source.unpack(archive(tmp_path / "a.zip", "a.txt"), tmp_path / "out")


KILLED = """
import os, signal
from exhibit.storage.atomic import make_scratch_folder
with make_scratch_folder() as folder:
    (folder / "half").write_text("x")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_kill_left_among_temporary_files_is_removed_by_the_next_run(tmp_path, monkeypatch):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", KILLED], env=environment, cwd=Path(__file__).parents[2])
    assert len(list(tmp_path.glob("exhibit-*"))) == 1
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with make_scratch_folder() as mine, make_scratch_folder() as other:
        assert sorted(tmp_path.glob("exhibit-*")) == sorted([mine, other]), "one that is in use stays"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_for_a_while_is_held_before_another_process_can_see_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    locked, seen = atomic.lock_folder, []
    monkeypatch.setattr(
        atomic, "lock_folder", lambda folder, **told: (seen.append(folder.exists()), locked(folder, **told))[1]
    )
    with make_scratch_folder() as folder:
        assert seen == [False] and folder.is_dir()


LEAVING = """
import sys
from pathlib import Path
from exhibit.evidence.read import list_folder
print(list_folder(Path(sys.argv[1]))[1].path, flush=True)
if sys.argv[2:]:
    import os
    os._exit(0)  # as a test's worker ends: nothing that waits for the end is done
"""


def test_attachments_go_with_their_program_or_with_the_next(tmp_path):
    mail = EmailMessage()
    mail["From"], mail["Subject"] = "a@example.org", "The lease"
    mail.set_content("See the lease.")
    mail.add_attachment(b"The rent is due.", maintype="text", subtype="plain", filename="lease.txt")
    (tmp_path / "mails").mkdir()
    (tmp_path / "mails" / "one.eml").write_bytes(bytes(mail))
    (tmp_path / "rooms").mkdir()
    for how, left in (["killed"], 1), ([], 0):
        command = [sys.executable, "-c", LEAVING, str(tmp_path / "mails"), *how]
        environment = {**os.environ, "TMPDIR": str(tmp_path / "rooms")}
        said = subprocess.run(command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True)
        assert Path(said.stdout.strip()).is_relative_to(tmp_path / "rooms"), said.stderr
        assert len(list((tmp_path / "rooms").glob("exhibit-*"))) == left


def test_no_place_for_temporary_files_is_one_error(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with (
        pytest.raises(ToolkitError, match="cannot be written: No such file or directory; set TMPDIR"),
        make_scratch_folder(),
    ):
        pass


def test_errors_of_a_disk_are_told_and_others_raised():
    assert describe_disk_error(OSError(errno.ENOSPC, "No space left on device", "a/b")).startswith("a/b: No space left")
    assert "removed while the command ran" in describe_disk_error(
        FileNotFoundError(errno.ENOENT, "No such file", "a/b")
    )
    assert "ulimit -n" in describe_disk_error(OSError(errno.EMFILE, "Too many open files"))
    with pytest.raises(OSError, match="odd"):
        describe_disk_error(OSError(errno.EINVAL, "odd"))


# ---------------------------------------------------------------- links and turns


@pytest.mark.parametrize("words", ["disk I/O error", "database or disk is full"])
def test_a_disk_that_ends_within_a_database_is_one_line(capsys, words):
    @guarded()
    def command() -> int:
        raise sqlite3.OperationalError(words)

    assert command() == 1
    assert capsys.readouterr().err == f"error: the disk: {words}; free some space, or choose another folder\n"


def test_a_link_out_of_a_folder_is_not_followed_but_those_of_the_hubs_cache_are(tmp_path):
    (tmp_path / "secret.txt").write_text("x")
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.txt").write_text("a")
    (corpus / "inside.txt").symlink_to("a.txt")
    (corpus / "out.txt").symlink_to("../secret.txt")
    assert [path.name for path in list_files(corpus)] == ["a.txt", "inside.txt"]
    assert [(path.name, why) for path, why in list_left_out(corpus)] == [("out.txt", LINK)]
    snapshot = tmp_path / "datasets--x" / "snapshots" / "abc"
    (tmp_path / "datasets--x" / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (tmp_path / "datasets--x" / "blobs" / "1").write_text("a")
    (snapshot / "a.txt").symlink_to("../../blobs/1")
    assert [path.name for path in list_files(snapshot)] == ["a.txt"]


def test_the_second_of_two_runs_waits_for_the_first(tmp_path):
    said, done, order = [], threading.Event(), []

    def second():
        with lock_folder(tmp_path / "i", busy="wait", say=lambda words: (said.append(words), done.set())):
            order.append("second")

    with lock_folder(tmp_path / "i", busy="taken"):
        thread = threading.Thread(target=second)
        thread.start()
        assert done.wait(60)
        order.append("first")
    thread.join(60)
    assert order == ["first", "second"]
    assert said == ["wait"]


# ---------------------------------------------------------------- rows


def table(folder: Path, *rows: dict[str, object]) -> Path:
    (folder / "questions.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="ascii")
    (folder / "a.txt").write_text("The rent is due on the first day of each month.", encoding="utf-8")
    return folder / "questions.jsonl"


def test_bad_rows_of_a_table_are_counted_and_the_good_one_is_kept(tmp_path, convert):
    good = {"question": "When is the rent due?", "answer": "first day", "document": "a.txt", "text": "first day"}
    source = table(
        tmp_path,
        {**good, "size": 10**400},
        {**good, "question": "When \ud800 is it due?"},
        {**good, "document": "a\0b.txt"},
        {**good, "document": "x" * 5000},
        {**good, "document": "../../etc/passwd"},
    )
    with source.open("a", encoding="ascii") as file:
        file.write("[" * 100_000 + "\n" + '{"question": ' + "9" * 5000 + "}\n")
    flags = ("--question", "question", "--answer", "answer", "--document", "document", "--text", "text")
    bundle = convert("table", "--source", source, *flags)
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    assert info["counts"]["questions"] == 1
    told = {reason: len(names) for reason, names in info["left_out"].items()}
    assert told["no name that a file can have"] == 2 and told["line is not JSON"] == 2
    assert told["row with half a surrogate pair, which is no character"] == 1
    (line,) = rows_of(bundle / "gold.jsonl")
    assert line["labels"].get("size") in (None, str(10**400))


def test_every_row_of_a_question_with_half_a_surrogate_pair_is_counted(tmp_path, convert):
    good = {"question": "When is the rent due?", "answer": "first day", "document": "a.txt", "text": "first day"}
    spoilt = {**good, "id": 1, "question": "When \ud800 is it due?"}
    source = table(tmp_path, {**good, "id": 0}, spoilt, {**spoilt, "text": "each month"})
    info = json.loads((convert("table", "--source", source) / "bundle.json").read_text(encoding="utf-8"))
    reason = "row with half a surrogate pair, which is no character"
    assert info["left_out"][reason] == ["line 2", "line 3"]
    assert info["account"]["rows"] == {"given": 3, "kept": 1, "left_out": {reason: 2}}
    convert("table", "--source", source, "--strict", out="strict", expect=1)


# ---------------------------------------------------------------- gold and its corpus


def evaluated(bundle: Path, tmp_path: Path, *flags: str) -> tuple[int, dict[object, dict[str, object]]]:
    arguments = ["--dataset-paths", str(bundle), "--output-dir", str(tmp_path / "results"), "--run-name", "r"]
    code = evaluate_rag.main(
        [*arguments, "--embedder", "hashing", "--llm", "none", "--report-cases", "0", "--jobs", "1", *flags]
    )
    path = tmp_path / "results" / "r" / bundle.name / "eval_results.jsonl"
    return code, {one["id"]: one for one in rows_of(path)} if path.is_file() else {}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))


def test_questions_about_a_changed_file_are_failed_not_scored(samples, tmp_path, convert, cache, capsys):
    bundle = convert("legalbenchrag", "--source", samples / "legalbenchrag")
    changed = bundle / "corpus" / rows_of(bundle / "gold.jsonl")[0]["filename"]
    changed.write_text("Other words. " + changed.read_text(encoding="utf-8"), encoding="utf-8")
    _, rows = evaluated(bundle, tmp_path)
    about = {id for id, one in rows.items() if changed.name in {gold["filename"] for gold in one["gold"]}}
    assert about and about != set(rows)
    assert {id for id, one in rows.items() if one["reply"]["error"]} == about
    assert all("not the file that bundle.json records" in rows[id]["reply"]["error"] for id in about)
    assert "1 files differ from bundle.json" in capsys.readouterr().err
    (tmp_path / "results").rename(tmp_path / "before")
    _, rows = evaluated(bundle, tmp_path, "--allow-changed-corpus")
    assert not any(one["reply"]["error"] for one in rows.values())
    report = (tmp_path / "results" / "r" / "report.html").read_text(encoding="utf-8")
    assert "allow_changed_corpus" in report and changed.name in report


def test_gold_beyond_its_document_and_gold_of_no_question_are_named(tmp_path, cache, capsys):
    bundle = write_bundle(tmp_path / "supply")
    lines = rows_of(bundle / "gold.jsonl")
    lines[0]["spans"] = [[10**30, 10**30 + 5]]
    lines.append({**lines[1], "id": 99})
    (bundle / "gold.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    _, rows = evaluated(bundle, tmp_path)
    assert [id for id, one in rows.items() if one["reply"]["error"]] == [0]
    assert "but the document has" in rows[0]["reply"]["error"]
    err = capsys.readouterr().err
    assert "1 questions have gold beyond the end" in err and "1 lines of gold.jsonl have an id that train.json" in err
    _, wrong = check_gold(bundle)
    assert any("beyond the end of the text" in line for line in wrong) and any(
        "row 99 is not in train.json" in w for w in wrong
    )


def test_a_lone_surrogate_in_a_question_is_asked_and_reported(tmp_path, cache):
    rows = [row(0, "Which \ud800 law governs?", "Norway", {"filename": "alder.txt", "text": "the law of Norway"})]
    code, found = evaluated(write_bundle(tmp_path / "supply", rows=rows, gold=False), tmp_path)
    assert code == 0 and list(found) == [0]


def test_a_results_folder_that_cannot_be_written_is_one_error(tmp_path, cache, capsys, monkeypatch):
    bundle = write_bundle(tmp_path / "supply")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "results/r/journal.jsonl")

    monkeypatch.setattr("exhibit.evaluation.scoring.Journal.add", full)
    code, _ = evaluated(bundle, tmp_path)
    assert code == 1
    assert "error: results/r/journal.jsonl: No space left on device; free some space" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["file", "parent"])
def test_results_that_cannot_be_there_are_one_error(tmp_path, cache, capsys, target):
    (tmp_path / "file").write_text("x")
    bundle = write_bundle(tmp_path / "supply")
    out = tmp_path / "file" if target == "file" else tmp_path / "file" / "results"
    flags = ["--output-dir", str(out), "--embedder", "hashing", "--report-cases", "0"]
    assert evaluate_rag.main(["--dataset-paths", str(bundle), *flags]) == 1
    told = capsys.readouterr().err.splitlines()
    assert told[-1].startswith(f"error: {out}") and "is the path right" in told[-1]


def test_results_that_are_removed_while_questions_are_asked_are_one_error(tmp_path, cache, capsys, monkeypatch):
    bundle = write_bundle(tmp_path / "supply")
    results = tmp_path / "results" / "r"
    ask = builtin.Builtin.ask

    def remove(*arguments):
        shutil.rmtree(results)
        yield from ask(*arguments)

    monkeypatch.setattr(builtin.Builtin, "ask", remove)
    flags = ["--output-dir", str(tmp_path / "results"), "--run-name", "r", "--embedder", "hashing"]
    assert evaluate_rag.main(["--dataset-paths", str(bundle), *flags, "--report-cases", "0"]) == 1
    told = capsys.readouterr().err
    assert "error: " in told and "removed while the command ran" in told and "Traceback" not in told


def test_a_run_killed_between_summary_and_report_is_found_by_resume(tmp_path, cache, monkeypatch):
    bundle = write_bundle(tmp_path / "supply")

    def killed(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("exhibit.viewer.report.write_report", killed)
        assert evaluated(bundle, tmp_path)[0] == 130
    assert (tmp_path / "results" / "r" / "summary.json").is_file()
    flags = ["--dataset-paths", str(bundle), "--output-dir", str(tmp_path / "results"), "--embedder", "hashing"]
    flags += ["--llm", "none"]
    assert evaluate_rag.main([*flags, "--report-cases", "0", "--jobs", "1", "--resume"]) == 0
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["r"]
    assert (tmp_path / "results" / "r" / "report.html").is_file()


# ---------------------------------------------------------------- indexes from elsewhere


@pytest.fixture(scope="module")
def sound_index(tmp_path_factory):
    """A small index; tests work on copies of it."""
    folder = tmp_path_factory.mktemp("index")
    bundle = write_bundle(folder / "supply")
    flags = ["--out", str(folder / "index"), "--embedder", "hashing", "--jobs", "1"]
    assert rag_main(["index", str(bundle / "corpus"), *flags]) == 0
    return folder / "index"


def changed(*statements: str):
    """Return a function that runs SQL statements on a database, as an attacker would change an index."""

    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database, database:
            for statement in statements:
                database.execute(statement)

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("manifest.json", lambda path: path.write_bytes(b"[" * 100_000)),
        ("manifest.json", lambda path: path.write_text(path.read_text().replace('"config"', '"no config"'))),
        ("chunk.faiss", lambda path: path.write_bytes(b"null")),
        ("index.sqlite", lambda path: path.write_bytes(b"[" * 100_000)),
        ("index.sqlite", changed("UPDATE documents SET chunks = x'00'")),
        ("index.sqlite", changed("UPDATE documents SET chunks = 'text', first = 7")),
        ("index.sqlite", changed("UPDATE documents SET record = '[' || record")),
        ("index.sqlite", changed("UPDATE documents SET number = number + 1000000")),
        ("index.sqlite", changed("UPDATE postings SET owners = x'00ff'")),
        ("index.sqlite", changed("UPDATE lengths SET keys = x'0000'")),
        ("index.sqlite", changed("UPDATE names SET kind = x'ff', run = 7, number = -number")),
        ("index.sqlite", changed("UPDATE texts SET text = x'ff'")),
        ("index.sqlite", changed("DROP TABLE texts", "CREATE VIEW texts AS SELECT 0 AS number, 'x' AS text")),
        ("index.sqlite", changed("CREATE TRIGGER t AFTER DELETE ON texts BEGIN SELECT 1; END")),
    ],
)
def test_an_index_that_somebody_wrote_by_hand_is_one_error(sound_index, tmp_path, capsys, name, change):
    """The checksums are right, since an attacker who changes a file can also compute its checksum."""
    folder = Path(shutil.copytree(sound_index, tmp_path / "index"))
    change(folder / name)
    if name.endswith(".sqlite"):
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        manifest["sha256"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert rag_main(["search", str(folder), "Which law governs?"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ") and "build" in err and "Traceback" not in err


def test_half_a_surrogate_pair_is_one_error_of_an_export(tmp_path, capsys):
    rows = [row(0, "Which \ud800 law?", "Norway", {"filename": "alder.txt", "text": "the law of Norway"})]
    bundle = write_bundle(tmp_path / "supply", rows=rows, gold=False)
    assert export_main([str(bundle), "--to", "beir", "--out", str(tmp_path / "out")]) == 1
    assert "lone surrogate" in capsys.readouterr().err and not (tmp_path / "out").exists()
