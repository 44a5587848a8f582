"""Publishing makes one commit; pulling returns the checked bundle byte for byte or fails."""

import json
from pathlib import Path

import pytest
import yaml
from huggingface_hub import constants

import evaluate_rag
from exhibit.hub import publish, pull
from exhibit.hub.pull import is_repository, parse_address
from exhibit.schemas.bundle import INFO, read_info, write_info
from exhibit.schemas.errors import ServiceError
from exhibit.schemas.models import DraftInfo, Licence
from tests.hub.bundles import CARD_TEXT, files_of, large, write
from tests.rag.bundles import contents

REPO = "me/charters"
PLAN = "corpus/aurora plan.pdf"
OUTSIDE = "outside.txt"
SHELVES = {"eval.yaml", "metadata.jsonl"}


@pytest.fixture
def bundle(connected, tmp_path):
    """A bundle with a small and a large file, not yet published."""
    return write(tmp_path / "charters", more={PLAN: large("plan")})


def publish_to(folder: Path, *flags: str, repo: str = REPO) -> int:
    return publish.main([str(folder), "--repo-id", repo, *flags])


def test_published_bundle_is_pulled_byte_for_byte(connected, bundle, tmp_path, capsys):
    assert publish_to(bundle, "--tag", "v1") == 0
    out = capsys.readouterr().out
    assert f'load_dataset("{REPO}", split="train", revision="v1")' in out
    repo = connected.repos[REPO]
    assert [commit.title for commit in repo.commits.values()] == [
        "initial commit",
        "Publish charters",
    ] and not repo.private
    assert b'load_dataset("me/charters", split="train")' in connected.files(REPO)["README.md"]
    assert pull.main([f"{REPO}@v1", "--out", str(tmp_path / "back")]) == 0
    assert files_of(tmp_path / "back") == files_of(bundle)
    assert f"from hf://{REPO}@{repo.refs['main']}" in capsys.readouterr().out


def test_publish_adds_inspect_and_pdffolder_files_which_pull_ignores(connected, tmp_path, capsys):
    bundle = write(tmp_path / "charters", more={"corpus/plan.pdf": b"%PDF-1.4 a plan"})
    assert publish_to(bundle) == 0
    files = connected.files(REPO)
    described = yaml.safe_load(files["eval.yaml"])
    assert set(described) == {"name", "description", "evaluation_framework", "tasks"}
    assert [task["id"] for task in described["tasks"]] == ["questions", "reading"]
    assert {task["config"] for task in described["tasks"]} <= {
        "questions"
    } and "inspect eval" in capsys.readouterr().out
    lines = [json.loads(line) for line in files["metadata.jsonl"].splitlines()]
    assert [line["file_name"] for line in lines] == ["corpus/plan.pdf"]
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 0
    assert files_of(tmp_path / "back") == files_of(bundle)


def test_publish_with_mteb_flag_sends_passages_to_a_second_repository(connected, converted):
    bundle = converted("legalbenchrag")
    assert publish_to(bundle, "--mteb", "--i-have-the-rights") == 0
    files = connected.files(f"{REPO}-mteb")
    assert set(files) >= {"README.md", "corpus.jsonl", "queries.jsonl", "qrels.jsonl", "task.json", "task.py"}
    corpus = {json.loads(line)["id"] for line in files["corpus.jsonl"].splitlines()}
    relevant = [json.loads(line) for line in files["qrels.jsonl"].splitlines()]
    assert relevant and {row["corpus-id"] for row in relevant} <= corpus


def test_publish_of_unchanged_bundle_adds_no_commit(connected, bundle):
    assert publish_to(bundle) == 0 == publish_to(bundle)
    assert len(connected.repos[REPO].commits) == 2
    assert sum(line.startswith("PUT /upload/") for line in connected.requests) == 1


def test_publish_removes_only_deleted_documents_from_the_repository(connected, bundle, tmp_path, capsys):
    assert publish_to(bundle) == 0
    connected.commit(REPO, {"notes.txt": b"by hand"})
    later = write(tmp_path / "later", names=("aurora.txt", "borealis.txt"))
    assert publish_to(later) == 0
    assert set(connected.files(REPO)) == {*files_of(later), *SHELVES, "notes.txt"}
    assert f"removed   {PLAN}" in capsys.readouterr().out


def test_publish_to_pull_request_leaves_main_unchanged(connected, bundle, tmp_path, capsys):
    assert publish_to(bundle) == 0
    later = write(tmp_path / "later", names=("borealis.txt",))
    assert publish_to(later, "--create-pr") == 0
    assert f"{connected.url}/datasets/{REPO}/discussions/1" in capsys.readouterr().out
    assert "corpus/borealis.txt" in connected.files(REPO, "refs/pr/1")
    assert PLAN in connected.files(REPO)
    assert publish_to(later, "--create-pr", repo="me/missing") == 1
    with pytest.raises(SystemExit):
        publish_to(later, "--create-pr", "--tag", "v1")


def test_publish_never_moves_a_tag(connected, bundle, tmp_path, capsys):
    assert publish_to(bundle, "--tag", "v1") == 0
    first = connected.repos[REPO].refs["v1"]
    later = write(tmp_path / "later", names=("borealis.txt",))
    assert publish_to(later, "--tag", "v1") == 1
    assert connected.repos[REPO].refs["v1"] == first and "the tag v1 was not set" in capsys.readouterr().err


def test_publish_with_private_flag_refuses_a_public_repository(connected, bundle, capsys):
    assert publish_to(bundle, "--private", repo="me/private") == 0 and connected.repos["me/private"].private
    assert publish_to(bundle) == 0 and publish_to(bundle, "--private") == 1
    assert "is public, so nothing was sent" in capsys.readouterr().err


def test_publish_dry_run_needs_neither_token_nor_network(connected, bundle, monkeypatch, capsys):
    monkeypatch.delenv("HF_TOKEN")
    assert publish_to(bundle, "--dry-run") == 0
    assert f"  {PLAN}\n" in capsys.readouterr().out and connected.repos == {}
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert publish_to(bundle, "--dry-run") == 0
    output = capsys.readouterr()
    assert "dry run: nothing was sent" in output.out and not output.err


@pytest.mark.parametrize(
    ("flags", "words"), [([], "is under House terms. its terms do not say"), (["--dry-run"], "add --i-have-the-rights")]
)
def test_publish_refuses_licence_without_redistribution(connected, tmp_path, capsys, flags, words):
    closed = Licence(id="other", name="House terms", redistributable=False)
    folder = write(tmp_path / "in", licence=closed)
    assert publish_to(folder, *flags) == 1 and words in capsys.readouterr().err and connected.repos == {}
    assert publish_to(folder, "--i-have-the-rights") == 0


def test_publish_refuses_unreviewed_drafts_and_broken_bundles(connected, bundle, capsys):
    info = read_info(bundle / INFO)
    write_info(info.model_copy(update={"draft": DraftInfo(sure=1)}), bundle / INFO)
    assert publish_to(bundle) == 1 and "review some with `exhibit review`" in capsys.readouterr().err
    assert publish_to(bundle, "--as-drafted") == 0
    (bundle / "corpus" / "aurora.txt").unlink()
    assert publish_to(bundle) == 1 and "no file 'aurora.txt' under corpus/" in capsys.readouterr().err


def test_publish_reports_card_rejected_by_the_hub(connected, tmp_path, capsys):
    folder = write(tmp_path / "in", card=CARD_TEXT.replace("license: cc-by-4.0\n", ""))
    assert publish_to(folder) == 1
    assert '"license" is required' in capsys.readouterr().err and len(connected.repos[REPO].commits) == 1


@pytest.mark.parametrize("repo", ["charters", "me/a/b", "me/no spaces", "me/x--y"])
def test_publish_refuses_invalid_repository_name(connected, bundle, capsys, repo):
    assert publish_to(bundle, repo=repo) == 1 and "is not the name of a repository" in capsys.readouterr().err


def test_publish_explains_missing_unknown_and_unauthorised_tokens(connected, bundle, monkeypatch, capsys):
    for token, words in (
        ("", "no token: run `hf auth login`"),
        ("hf_unknown", "a valid token is needed"),
        (connected.token("me", "read"), "the token may not do this"),
        (connected.token("somebody"), "the token may not do this"),
    ):
        monkeypatch.setenv("HF_TOKEN", token) if token else monkeypatch.delenv("HF_TOKEN")
        assert publish_to(bundle) == 1
        output = capsys.readouterr()
        assert words in output.err and (not token or token not in output.err + output.out)


def test_publish_completes_on_retry_after_conflict_or_server_error(connected, bundle, tmp_path, capsys):
    assert publish_to(bundle) == 0
    later = write(tmp_path / "later", names=("borealis.txt",))
    connected.fail("/commit/", 412)
    assert publish_to(later) == 1 and "somebody else has published in the meantime" in capsys.readouterr().err
    connected.fail("POST .*/preupload/", 503, times=100)
    assert publish_to(later) == 1 and "run the same command again" in capsys.readouterr().err
    connected.faults.clear()
    assert publish_to(later) == 0 and set(connected.files(REPO)) == {*files_of(later), *SHELVES}


def test_publish_from_python_returns_the_address_of_the_dataset(connected, bundle):
    made = publish.publish(bundle, REPO, private=True)
    assert made == (REPO, f"{connected.url}/datasets/{REPO}", connected.repos[REPO].refs["main"])


def test_publish_leaves_a_card_unchanged_that_pull_could_not_restore(connected, tmp_path):
    card = f'{CARD_TEXT}load_dataset("another/dataset")\n'
    folder = write(tmp_path / "charters", card=card)
    assert publish_to(folder) == 0 and connected.files(REPO)["README.md"] == card.encode()
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 0 and files_of(tmp_path / "back") == files_of(folder)


@pytest.fixture
def published(connected, bundle):
    assert publish_to(bundle, "--tag", "v1") == 0
    return bundle


NAMES = (
    "A%20B%2FC%23.txt", "É – ü 条約 🙂.txt", "two  spaces .txt", "a#b&c=d+e;f,g.txt", "[a-z]*.txt", "~tilde.txt",
    "-dash.txt", "n" * 251 + ".txt", "'single' & \"double\".txt", "percent%.txt", "résumé.txt",
)  # fmt: skip


def test_pull_returns_documents_with_unusual_names(connected, tmp_path):
    plans = {f"corpus/{name}.pdf": large(name, 12_000) for name in ("a#b?c", "条約 %41", "x||y")}
    folder = write(tmp_path / "odd", names=NAMES, more=plans)
    assert publish_to(folder) == 0 and pull.main([REPO, "--out", str(tmp_path / "back")]) == 0
    assert files_of(tmp_path / "back") == files_of(folder)


def test_pull_chooses_revision_and_default_folder(connected, published, tmp_path, monkeypatch, capsys):
    later = write(tmp_path / "later", names=("borealis.txt",))
    assert publish_to(later) == 0
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert pull.main([f"hf://{REPO}@v1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"bundle": "datasets_out/charters", "repo": f"hf://{REPO}@v1"}
    assert files_of(Path("datasets_out/charters")) == files_of(published)
    assert pull.main([REPO, "--out", "new"]) == 0 and files_of(Path("new")) == files_of(later)


def test_pull_replaces_a_folder_only_with_force(published, tmp_path, capsys):
    out = tmp_path / "back"
    assert pull.main([REPO, "--out", str(out)]) == 0
    (out / "corpus" / "aurora.txt").write_text("changed", encoding="utf-8")
    assert pull.main([REPO, "--out", str(out)]) == 1 and "--force" in capsys.readouterr().err
    assert pull.main([REPO, "--out", str(out), "--force"]) == 0 and files_of(out) == files_of(published)


def test_pull_uses_the_cache_without_a_connection(published, tmp_path, monkeypatch):
    assert pull.main([REPO, "--out", str(tmp_path / "first")]) == 0
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", "http://127.0.0.1:9/{repo_id}/{revision}/{filename}")
    assert pull.main([REPO, "--out", str(tmp_path / "second")]) == 0
    assert files_of(tmp_path / "second") == files_of(published)


@pytest.mark.parametrize(
    ("repo", "words"),
    [
        ("me/nothing", "no such dataset, or the token may not see it"),
        (f"{REPO}@v9", "no such revision"),
        ("me/other", "me/other is not a bundle: it has no bundle.json"),
        (f"{REPO}@", "no revision after the @"),
    ],
)
def test_pull_explains_missing_dataset_revision_or_bundle(connected, published, tmp_path, capsys, repo, words):
    connected.commit("me/other", {"data.csv": b"a,b"})
    assert pull.main([repo, "--out", str(tmp_path / "back")]) == 1 and words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("address", "expected"),
    [("me/x", ("me/x", None)), ("hf://me/x@v1", ("me/x", "v1")), ("hf://datasets/me/x/", ("me/x", None))],
)
def test_parse_address_reads_repository_and_revision(address, expected):
    assert parse_address(address) == expected
    assert is_repository("hf://me/x") and not is_repository("hf://datasets/me/x/folder/a.txt")


def evaluate(tmp_path, monkeypatch, path, run):
    """Return every result of a run, without times and without the location of the documents."""
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache" / run))
    flags = ["--embedder", "hashing", "--output-dir", str(tmp_path / "results"), "--run-name", run, "--threads", "1"]
    assert evaluate_rag.main(["--dataset-paths", str(path), "--report-cases", "0", *flags]) == 0
    results = contents(tmp_path / "results" / run)
    for name in ("config.json", "evaluate_parameters.json"):
        results.pop(name, None)
    return results


@pytest.mark.parametrize(
    "name",
    [f"../{OUTSIDE}", f"corpus/../../../{OUTSIDE}", f"/{OUTSIDE}", f"corpus/..\\..\\{OUTSIDE}", f"C:\\{OUTSIDE}"],
)
def test_pull_writes_no_file_outside_its_folder(connected, published, tmp_path, capsys, name):
    connected.commit(REPO, {name: b"owned"})
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) in (0, 1)
    assert "Traceback" not in capsys.readouterr().err
    written = [path for path in tmp_path.rglob(f"*{OUTSIDE}") if not path.is_relative_to(tmp_path / "home" / "hub")]
    assert written == [] and not Path(f"/{OUTSIDE}").exists()


def test_pull_and_evaluate_ignore_files_not_listed_in_bundle_json(connected, published, tmp_path, monkeypatch):
    local = evaluate(tmp_path, monkeypatch, published, "local")
    stray = {"setup.py": b"raise SystemExit('ran')", "corpus/aaa.txt": b"This Charter is governed by no law."}
    connected.commit(REPO, {**stray, "corpus/link.txt": b"/etc/passwd"})
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 0
    assert files_of(tmp_path / "back") == files_of(published)
    assert not any(path.is_symlink() for path in (tmp_path / "back").rglob("*"))
    assert evaluate(tmp_path, monkeypatch, f"hf://{REPO}", "remote") == local


def change_info(folder: Path, change) -> bytes:
    info = json.loads((folder / INFO).read_text(encoding="utf-8"))
    change(info)
    return json.dumps(info).encode()


@pytest.mark.parametrize("name", [".git/config", "corpus/.git/hooks/x", "../charters.txt", "/etc/x", "~/.netrc", ""])
def test_pull_refuses_bundle_json_that_names_other_files(connected, published, tmp_path, capsys, name):
    entry = {"sha256": "0" * 64, "bytes": 1}
    connected.commit(REPO, {INFO: change_info(published, lambda info: info["files"].update({name: entry}))})
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 1 and not (tmp_path / "back").exists()
    assert "Traceback" not in capsys.readouterr().err


def test_pull_refuses_changed_content_and_wrong_sizes(connected, published, tmp_path, capsys):
    connected.commit(REPO, {PLAN: large("another plan")})
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 1
    assert f"{PLAN}: the content differs from the recorded size or sha256" in capsys.readouterr().err
    connected.commit(
        REPO, {PLAN: large("plan"), INFO: change_info(published, lambda info: info["files"][PLAN].update(bytes=7))}
    )
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 1 and not (tmp_path / "back").exists()
    assert f"{PLAN}: the content differs from the recorded size or sha256" in capsys.readouterr().err


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"files": ' + b"9" * 5000 + b"}", b"\xff\xfe", b"{}", b"null"])
def test_pull_refuses_malicious_bundle_json(connected, published, tmp_path, capsys, data):
    connected.commit(REPO, {INFO: data})
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 1
    assert f"{REPO} is not a bundle" in capsys.readouterr().err


def test_connect_reports_a_token_that_cannot_be_read(monkeypatch):
    def fail() -> str:
        raise OSError("Permission denied")

    monkeypatch.setattr("huggingface_hub.get_token", fail)
    with pytest.raises(ServiceError, match="the token cannot be read: Permission denied; log in again"):
        publish.connect("me/cuad-rag")
