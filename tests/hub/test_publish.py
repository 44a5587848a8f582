"""A bundle is published whole, once, or not at all; and nobody learns the token."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from exhibit.converters import acord, contractnli, cpr, cuad, maud, privacyqa
from exhibit.hub import publish
from exhibit.hub.commit import Content, compare, format_size, insert_address, load_lines, remove_address
from exhibit.hub.publish import find_refused_paths, list_warnings
from exhibit.hub.remote import TRANSPORT, Hub, HubError, RemoteFile, wait_for
from exhibit.runtime.secrets import scrub
from exhibit.schemas.models import Licence
from exhibit.storage.bundle import sha256_of
from tests.hub.bundles import CARD_TEXT, CLAUSE, files_of, large, write
from tests.hub.client import connect

REPO = "me/charters"
BIG = "corpus/aurora plan.pdf"


@pytest.fixture
def waits(hub, tmp_path, monkeypatch):
    return connect(hub, tmp_path / "home", monkeypatch, token=hub.token("me"))


@pytest.fixture
def bundle(tmp_path):
    return write(tmp_path / "charters", more={BIG: large("plan")})


def run(folder, *flags, repo=REPO):
    return publish.main([str(folder), "--repo-id", repo, *flags])


def published(hub, repo=REPO, revision="main"):
    """Return the files of a branch, without the `.gitattributes` that the Hub adds."""
    return {name: data for name, data in hub.files(repo, revision).items() if name != ".gitattributes"}


def expected(folder, repo=REPO):
    files = files_of(folder)
    return files | {"README.md": files["README.md"].replace(b'"PATH_OR_REPO"', f'"{repo}"'.encode())}


def ours(hub, repo=REPO, revision="main"):
    """Return the commits of a branch, without the Hub's initial one."""
    return hub.commits(repo, revision)[:-1]


# ---------------------------------------------------------------- what is published


def test_one_commit_holds_the_whole_bundle_and_the_lines_that_load_it_are_printed(hub, waits, bundle, capsys):
    assert run(bundle, "--message", "First release") == 0
    out = capsys.readouterr().out
    assert published(hub) == expected(bundle)
    assert [commit.title for commit in ours(hub)] == ["First release"]
    assert f"{hub.url}/datasets/{REPO}\n" in out and "CC BY 4.0 (cc-by-4.0)" in out
    assert "to send: 6 of 6 files" in out and f"new       {BIG}  (300.0 kB)" in out
    assert out.rstrip().endswith(
        'load_dataset("me/charters", "questions", split="train")\nload_dataset("me/charters", "gold", split="train")\n'
        'load_dataset("me/charters", "corpus", split="train")'
    )


def test_a_second_time_there_is_nothing_to_do(hub, waits, bundle, capsys):
    assert run(bundle) == 0
    before = len(hub.requests)
    assert run(bundle) == 0
    assert "nothing to do" in capsys.readouterr().out and len(ours(hub)) == 1
    assert {request.method for request in hub.requests[before:]} == {"GET"}


def test_only_what_changed_is_sent_and_what_is_gone_is_removed_in_the_same_commit(hub, waits, tmp_path, capsys):
    old = {BIG: large("plan"), "extra/old.bin": b"\0old", "corpus/gone.txt": b"gone"}
    assert run(write(tmp_path / "a", names=("aurora.txt", "borealis.txt"), more=old)) == 0
    hub.commit(REPO, {"NOTES.md": b"somebody's own notes", "images/theirs.png": b"\x89PNG"})
    uploads = len(hub.asked("PUT", "/upload/"))
    new = write(tmp_path / "b", names=("aurora.txt",), more={BIG: large("plan"), "extra/new.bin": b"\0new"})
    capsys.readouterr()
    assert run(new, "--dry-run") == 0
    out = capsys.readouterr().out
    for line in ("removed   corpus/borealis.txt", "removed   corpus/gone.txt", "removed   extra/old.bin",
                 "changed   train.json", "new       extra/new.bin", "unchanged 3 files"):  # fmt: skip
        assert line in out, line
    assert "NOTES" not in out and "theirs.png" not in out and ".gitattributes" not in out
    assert run(new) == 0
    left = published(hub)
    assert left.pop("NOTES.md") and left.pop("images/theirs.png") and left == expected(new)
    assert len(ours(hub)) == 3 and len(hub.asked("PUT", "/upload/")) == uploads + 1


def test_twelve_files_of_a_kind_are_listed_and_the_others_counted(hub, waits, tmp_path, capsys):
    names = tuple(f"charter {number:02}.txt" for number in range(13))
    assert run(write(tmp_path / "a", names=names), "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    new = [line for line in lines if line.startswith("  new ")]
    assert len(new) == 13 and new[-1] == "  new       … and 5 more", "13 documents, and four files of the bundle's own"
    assert new[-2] == "  new       corpus/charter 09.txt  (120 bytes)"
    assert any(line.startswith("to send: 17 of 17 files, ") and " kB of " in line for line in lines)


@pytest.mark.parametrize(
    ("size", "words"),
    [(999, "999 bytes"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (1_000_000, "1.0 MB"), (25e8, "2.5 GB")],
)
def test_amounts_are_for_reading(size, words):
    assert format_size(size) == words


def test_a_content_is_known_by_its_checksum_or_by_gits_name_for_it():
    data = b"Rent is due.\n"
    digest, blob = hashlib.sha256(data).hexdigest(), hashlib.sha1(b"blob 13\0" + data).hexdigest()
    content = Content(data, 13, digest)
    assert content.is_at(RemoteFile(99, digest, None)) and not content.is_at(RemoteFile(13, "0" * 64, blob))
    assert content.is_at(RemoteFile(13, None, blob)) and not content.is_at(RemoteFile(13, None, "0" * 40))
    assert not content.is_at(RemoteFile(14, None, blob)), "a size that differs needs no look at the content"


def test_a_plan_is_carried_out_when_all_is_there_and_what_goes_is_gone():
    data = b"a"
    blob = hashlib.sha1(b"blob 1\0a").hexdigest()
    there, other = RemoteFile(1, None, blob), RemoteFile(1, None, "0" * 40)
    files = {name: Content(data, 1, hashlib.sha256(data).hexdigest()) for name in ("a", "b")}
    plan = compare(files, {"a": there, "b": other, "corpus/c": other, "d": other, "e": other}, recorded=["d"])
    assert (plan.new, plan.changed, plan.unchanged) == ((), ("b",), ("a",)) and plan.removed == ("corpus/c", "d")
    assert not plan.is_empty and plan.is_at({"a": there, "b": there, "e": other})
    for wrong in ({"a": there}, {"a": there, "b": other}, {"a": there, "b": there, "d": other}):
        assert not plan.is_at(wrong)
    gone = compare(files, {"a": there, "b": there, "d": other}, recorded=["d"])
    assert gone.sent == () and not gone.is_empty and compare(files, {"a": there, "b": there}, recorded=[]).is_empty
    assert compare(files, {}, recorded=[]).sent == ("a", "b")


def test_the_default_config_is_loaded_first():
    configs = [{"config_name": "gold"}, {"config_name": "questions", "default": True}]
    lines = load_lines({"configs": configs}, "me/x", "v1")
    assert lines == [f'load_dataset("me/x", "{name}", split="train", revision="v1")' for name in ("questions", "gold")]
    assert load_lines({}, "me/x", None) == []


def test_a_branch_is_made_and_main_stays_as_it_is(hub, waits, bundle, capsys):
    assert run(bundle, "--revision", "next") == 0
    assert published(hub, revision="next") == expected(bundle) and published(hub) == {}
    assert 'split="train", revision="next")' in capsys.readouterr().out
    assert run(bundle, "--revision", "next") == 0 and len(ours(hub, revision="next")) == 1


def test_a_tag_is_set_once_and_never_moved(hub, waits, bundle, tmp_path, capsys):
    assert run(bundle, "--tag", "v1") == 0
    assert 'load_dataset("me/charters", "gold", split="train", revision="v1")' in capsys.readouterr().out
    assert published(hub, revision="v1") == expected(bundle)
    assert run(bundle, "--tag", "v1") == 0
    assert "the tag v1 is already set on this commit" in capsys.readouterr().out
    assert run(bundle, "--tag", "v1.0") == 0 and published(hub, revision="v1.0") == expected(bundle)
    changed = write(tmp_path / "changed", names=("aurora.txt", "borealis.txt"))
    assert run(changed, "--tag", "v1") == 1
    assert "the tag v1 already exists" in capsys.readouterr().err and len(ours(hub)) == 1


def test_a_pull_request_is_opened_once(hub, waits, bundle, capsys):
    hub.create(REPO)
    assert run(bundle, "--create-pr", "--message", "Charters") == 0
    out = capsys.readouterr().out
    assert f"{hub.url}/datasets/{REPO}/discussions/1" in out and 'revision="refs/pr/1"' in out
    assert published(hub) == {} and published(hub, revision="refs/pr/1") == expected(bundle)
    assert run(bundle, "--create-pr", "--message", "Charters") == 0
    assert "a pull request with exactly this content is open" in capsys.readouterr().out
    assert len(hub.asked("POST", "/commit/")) == 1


def test_without_the_corpus_no_copy_of_a_document_is_sent(hub, waits, tmp_path, capsys):
    folder = write(
        tmp_path / "b",
        more={BIG: large("plan"), "extra/corpus-0.bin": b"\0a copy", "extra/tail.bin": b"\0", "page.png": b"\0a page"},
    )
    assert run(folder, "--no-corpus") == 0
    assert set(published(hub)) == {"README.md", "bundle.json", "extra/tail.bin", "gold.jsonl", "train.json"}
    assert b"config_name: corpus" not in published(hub)["README.md"]
    assert "train.json and gold.jsonl still quote them" in capsys.readouterr().out


def test_a_private_dataset_is_private_and_a_public_one_gets_nothing_private(hub, waits, bundle, capsys):
    assert run(bundle, "--private") == 0 and hub.repo(REPO).private
    assert run(bundle) == 0
    assert f"{REPO} is private and stays private" in capsys.readouterr().err and hub.repo(REPO).private
    hub.create("me/open")
    for flags in (["--dry-run"], []):
        assert run(bundle, "--private", *flags, repo="me/open") == 1
    assert "me/open is public, so nothing was sent" in capsys.readouterr().err
    assert published(hub, "me/open") == {} and not hub.repo("me/open").private


# ---------------------------------------------------------------- what is refused


def test_a_broken_bundle_is_refused_with_its_first_faults(hub, waits, bundle, capsys):
    (bundle / "corpus" / "aurora.txt").write_bytes(b"other words")
    (bundle / "gold.jsonl").write_text("{}\n")
    assert run(bundle) == 1
    err = capsys.readouterr().err
    assert "corpus/aurora.txt: 11 bytes, but" in err and "gold.jsonl: line 1" in err
    assert hub.requests == []


@pytest.mark.parametrize("flags", [[], ["--no-corpus"], ["--dry-run"]])
def test_a_licence_that_forbids_it_is_refused_with_the_reason(hub, waits, tmp_path, capsys, flags):
    terms = Licence(
        id="other", name="Crown terms", redistributable=False, note="Ask the registry before passing it on."
    )
    folder = write(tmp_path / "b", licence=terms)
    assert run(folder, *flags) == 1
    err = capsys.readouterr().err
    assert "is under Crown terms. Ask the registry before passing it on." in err and "--i-have-the-rights" in err
    assert (f"train.json itself quotes 1 passages ({len(CLAUSE)} characters)" in err) == ("--no-corpus" in flags)
    assert hub.requests == []
    assert run(folder, *flags, "--i-have-the-rights") == 0
    assert "under the rights that you state to have" in capsys.readouterr().out


def test_a_card_that_the_hub_refuses_creates_nothing(hub, waits, tmp_path, capsys):
    folder = write(tmp_path / "b", card=CARD_TEXT.replace("license: cc-by-4.0", "license: [no, such]"))
    hub.fault("POST", "/api/validate-yaml", status=400, body=b'{"errors": [{"message": "license is not valid"}]}')
    assert run(folder) == 1
    assert "license is not valid" in capsys.readouterr().err
    assert hub.asked("POST", "/api/repos/create") == []


@pytest.mark.parametrize("repo", ["charters", "me/a/b", "me/no spaces", "me/x--y"])
def test_an_impossible_name_is_refused(hub, waits, bundle, capsys, repo):
    assert run(bundle, repo=repo) == 1
    assert "is not a repository" in capsys.readouterr().err


def test_a_tag_of_a_pull_request_is_a_usage_error(hub, waits, bundle, capsys):
    with pytest.raises(SystemExit) as ended:
        run(bundle, "--create-pr", "--tag", "v1")
    assert ended.value.code == 2 and "set the tag after the merge" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        run(bundle, "--create-pr", "--revision", "next")
    assert ended.value.code == 2 and "--create-pr works only for main" in capsys.readouterr().err
    assert run(bundle, "--create-pr") == 1
    assert "there is no me/charters to open a pull request on" in capsys.readouterr().err


# ---------------------------------------------------------------- the token


def test_a_dry_run_needs_no_network(hub, bundle, monkeypatch, capsys):
    def unreachable(*_args, **_kwargs):
        raise TRANSPORT("no route to host")

    monkeypatch.setattr("exhibit.hub.remote.FIRST_WAIT", 0.0)
    monkeypatch.setattr("huggingface_hub.HfApi.repo_info", unreachable)
    assert run(bundle, "--dry-run") == 0
    out, err = capsys.readouterr()
    assert "to send: 6 of 6 files" in out and "dry run: nothing was sent" in out
    assert "no route to host" in err and "could not be compared" in err
    assert run(bundle) == 1  # publishing itself needs the Hub


def test_a_dry_run_needs_no_token(hub, tmp_path, monkeypatch, bundle, capsys):
    connect(hub, tmp_path / "home", monkeypatch)
    assert run(bundle, "--dry-run") == 0
    out = capsys.readouterr().out
    assert "(new, public)" in out and "it may exist" in out and "dry run: nothing was sent" in out
    hub.commit(REPO, {"train.json": (bundle / "train.json").read_bytes()})
    assert run(bundle, "--dry-run") == 0
    assert "unchanged 1 files" in capsys.readouterr().out
    assert {request.method for request in hub.requests} == {"GET"}


def test_a_token_that_is_missing_unknown_or_too_weak_is_told_apart(hub, tmp_path, monkeypatch, bundle, capsys):
    scoped = hub.token("me", role="finegrained", scopes={"me/other": ("repo.write",)})
    stranger = hub.token("stranger")
    cases = {
        None: "no token: log in with `hf auth login`, or set HF_TOKEN",
        "hf_expiredexpiredexpired": "the Hub does not know the token",
        hub.token("me", role="read"): "the token can only read",
        scoped: "the token may not do this in me/charters",
        stranger: "don't have the rights to create a dataset",
    }
    for token, words in cases.items():
        connect(hub, tmp_path / "home", monkeypatch, token=token)
        assert run(bundle) == 1
        out, err = capsys.readouterr()
        assert words in err and "https://huggingface.co/settings/tokens" in err
        assert token is None or token not in out + err
    assert hub.store.repos == {}


def test_the_token_of_the_hubs_own_store_is_used(hub, tmp_path, monkeypatch, bundle):
    connect(hub, tmp_path / "home", monkeypatch)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text(hub.token("me"))
    assert run(bundle) == 0 and published(hub) == expected(bundle)


LEAKS = [
    {},
    {"path": "/commit/", "status": 500},
    {"path": "/commit/", "status": 400},
    {"path": "/commit/", "status": 200, "body": b"[]"},  # a reply that makes the client stumble: a traceback
    {"path": "/preupload/", "status": 403},
    {"path": "/revision/", "status": 401},
]


def test_no_output_holds_the_token(hub, hub_env, tmp_path, bundle):
    """The command runs in its own process with all logging on, and the Hub repeats the token in its errors."""
    token = hub.token("me")
    echo = {
        "body": json.dumps({"error": f"Authorization: Bearer {token} was sent"}).encode(),
        "headers": {"X-Error-Message": f"bad {token}"},
        "times": None,
    }
    for number, fault in enumerate(LEAKS):
        if fault:
            hub.fault(**{**echo, **fault, "path": f"me/r{number}{fault['path']}"})
    code = (
        "import logging, sys, time; logging.basicConfig(level=1); time.sleep = lambda s: None\n"
        "from exhibit.hub import publish\n"
        f"print([publish.main([sys.argv[1], '--repo-id', f'me/r{{n}}']) for n in range({len(LEAKS)})])"
    )
    env = {**hub_env, "HF_TOKEN": token, "HF_DEBUG": "1", "HF_HUB_VERBOSITY": "debug"}
    command = [sys.executable, "-c", code, str(bundle)]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120)
    told = done.stdout + done.stderr
    assert done.stdout.endswith("[0, 1, 1, 1, 1, 1]\n"), told
    assert "Send: curl" in told and "Traceback" in told  # the logs are on, and the bug keeps its traceback
    assert token not in told and token.removeprefix("hf_") not in told
    assert token.encode() not in b"".join(published(hub, "me/r0").values())
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]


def test_signatures_and_credentials_in_addresses_are_no_better():
    for text in (
        "PUT https://s3.example.org/a/b?X-Amz-Credential=AKIA&X-Amz-Signature=beef failed",
        "https://me:secret-beef@hub.example.org/api",
        "{'authorization': 'Bearer beef'}",
        "Authorization: Bearer beef",
        "hf_beefbeefbeefbeef",
    ):
        assert "beef" not in scrub(text)
    assert scrub("https://example.org/tree/main?recursive=True") == "https://example.org/tree/main?recursive=True"


# ---------------------------------------------------------------- what goes wrong on the way


def test_an_upload_cut_in_the_middle_goes_on(hub, waits, bundle):
    fault = hub.fault("PUT", "/upload/", cut=True)
    assert run(bundle) == 0
    assert fault.hits == 1 and waits and published(hub) == expected(bundle) and len(ours(hub)) == 1


def test_an_upload_that_stays_cut_publishes_nothing_and_is_not_sent_again_when_it_arrived(hub, waits, tmp_path, capsys):
    second = "corpus/borealis plan.pdf"
    folder = write(tmp_path / "b", more={BIG: large("plan"), second: large("second")})
    digest = sha256_of(folder / second)
    fault = hub.fault("PUT", f"/upload/{digest}", cut=True, times=None)
    assert run(folder) == 1
    err = capsys.readouterr().err
    assert "nothing was published; run the same command again (uploaded files are not sent twice)" in err
    assert published(hub) == {} and ours(hub) == [] and fault.hits > 1
    hub.faults.clear()
    before = len(hub.requests)
    assert run(folder) == 0
    assert [one.path for one in hub.requests[before:] if one.method == "PUT"] == [f"/upload/{digest}"]
    assert published(hub) == expected(folder) and len(ours(hub)) == 1


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_trouble_of_the_hub_passes(hub, waits, bundle, capsys, status):
    hub.fault("POST", "/commit/", status=status, times=2)
    assert run(bundle) == 0
    err = capsys.readouterr().err
    assert f"the Hub is in trouble ({status}: Planted fault); retrying in 1 s (1 of 4)" in err
    assert published(hub) == expected(bundle) and len(ours(hub)) == 1


def test_waits_double_and_a_bug_is_no_trouble_of_the_hub(hub, waits):
    said: list[str] = []
    remote = Hub(REPO, say=said.append)
    hub.fault("GET", "/api/datasets", status=503, times=9)
    with pytest.raises(HubError) as caught:
        remote.commit_of("main")
    assert waits == [1.0, 2.0, 4.0, 8.0] and len(said) == 4 and said[-1].endswith("retrying in 8 s (4 of 4)")
    assert caught.value.status == 503 and caught.value.missing is False
    with pytest.raises(ZeroDivisionError):
        remote.ask(lambda: 1 // 0, doing="counting")
    assert len(waits) == 4 and HubError("no").missing is False


def test_how_long_is_waited_is_the_hubs_to_say():
    def refused(**headers):
        error = OSError("refused")
        error.response = SimpleNamespace(headers={name.replace("_", "-"): value for name, value in headers.items()})
        return error

    assert [wait_for(OSError("cut"), tries) for tries in (1, 2, 3)] == [1.0, 2.0, 4.0]
    assert wait_for(refused(retry_after="17"), 3) == 17.0
    assert wait_for(refused(ratelimit='"api";r=0;t=45'), 3) == 45.0
    assert wait_for(refused(ratelimit='"api";r=9;t=45'), 3) == 4.0, "there are requests left"


@pytest.mark.parametrize(
    ("status", "missing", "token", "seen"),
    [(404, True, True, True), (401, False, False, True), (401, False, True, False), (403, False, False, False)],
)
def test_a_repository_that_may_not_be_seen_is_none(hub, tmp_path, monkeypatch, status, missing, token, seen):
    connect(hub, tmp_path / "home", monkeypatch, token=hub.token("me") if token else None)
    remote = Hub(REPO, say=print)

    def refuse(_revision):
        raise HubError("no", status=status, missing=missing)

    monkeypatch.setattr(remote, "commit_of", refuse)
    if seen:
        assert remote.read_state("main") is None
    else:
        with pytest.raises(HubError):
            remote.read_state("main")


def test_a_token_that_cannot_be_asked_about_is_left_to_the_hub(hub, waits):
    remote = Hub(REPO, say=lambda _: None)
    assert remote.check_writer() == "me"
    hub.fault("GET", "whoami", status=429, times=None)
    assert remote.check_writer() is None
    hub.faults.clear()
    hub.fault("GET", "whoami", status=500, times=None)
    with pytest.raises(HubError):
        remote.check_writer()


def test_from_python_it_is_published_and_told_where(hub, waits, bundle, capsys):
    done = publish.publish(bundle, REPO, tag="v1")
    assert done == publish.Published(REPO, f"{hub.url}/datasets/{REPO}", ours(hub)[0].oid)
    assert published(hub, revision="v1") == expected(bundle) and not hub.repo(REPO).private
    dry = publish.publish(str(bundle), "me/other", dry_run=True)
    assert dry == publish.Published("me/other", f"{hub.url}/datasets/me/other")


def test_trouble_that_does_not_pass_publishes_nothing_and_the_second_try_completes(hub, waits, bundle, capsys):
    hub.fault("POST", "/commit/", status=500, times=None)
    assert run(bundle) == 1
    assert "run the same command again: it first checks whether the commit arrived" in capsys.readouterr().err
    assert published(hub) == {} and len(hub.asked("POST", "/commit/")) == 5 and sum(waits) == 15
    hub.faults.clear()
    assert run(bundle) == 0 and published(hub) == expected(bundle) and len(ours(hub)) == 1


def test_the_hub_is_given_the_time_it_asks_for(hub, waits, bundle, capsys):
    hub.fault("POST", "/commit/", status=429, headers={"Retry-After": "17"})
    assert run(bundle) == 0
    assert 17.0 in waits and "too many requests (429); retrying in 17 s" in capsys.readouterr().err
    assert len(ours(hub)) == 1


def test_a_wait_of_hours_is_left_to_the_user(hub, waits, bundle, capsys):
    hub.fault("POST", "/commit/", status=429, headers={"Retry-After": "7200"}, times=None)
    assert run(bundle) == 1
    assert waits == [] and "too many requests" in capsys.readouterr().err and ours(hub) == []


def test_a_conflict_is_told_and_the_second_try_builds_on_it(hub, waits, bundle, monkeypatch, capsys):
    hub.create(REPO)
    send = publish.send
    theirs = iter([{"theirs.md": b"meanwhile"}])

    def late(remote, letter):
        for files in theirs:
            hub.commit(REPO, files)
        return send(remote, letter)

    monkeypatch.setattr(publish, "send", late)
    assert run(bundle) == 1
    assert "me/charters (main): another user has published the commit" in capsys.readouterr().err
    assert published(hub) == {"theirs.md": b"meanwhile"}
    assert run(bundle) == 0
    assert published(hub) == expected(bundle) | {"theirs.md": b"meanwhile"} and len(ours(hub)) == 2


def test_a_commit_whose_reply_is_lost_is_found_and_not_made_twice(hub, waits, bundle):
    fault = hub.fault("POST", "/commit/", lost_reply=True)
    assert run(bundle, "--tag", "v1") == 0
    assert fault.hits == 1 and len(hub.asked("POST", "/commit/")) == 1
    assert len(ours(hub)) == 1 and published(hub, revision="v1") == expected(bundle)


def test_a_lost_reply_is_found_even_under_somebody_elses_commit(hub, waits, bundle, monkeypatch):
    hub.create(REPO)
    hub.fault("POST", "/commit/", lost_reply=True)
    find = publish.Hub.commit_of
    asked = []

    def meanwhile(self, revision):
        if hub.asked("POST", "/commit/") and not asked:
            asked.append(hub.commit(REPO, {"theirs.md": b"on top"}))
        return find(self, revision)

    monkeypatch.setattr(publish.Hub, "commit_of", meanwhile)
    assert run(bundle) == 0
    assert asked and len(ours(hub)) == 2 and published(hub) == expected(bundle) | {"theirs.md": b"on top"}


def test_a_lost_reply_with_no_way_to_ask_is_said_to_be_unclear(hub, waits, bundle, monkeypatch, capsys):
    hub.create(REPO)
    hub.fault("POST", "/commit/", lost_reply=True)
    find = publish.Hub.commit_of

    def away(self, revision):
        if hub.asked("POST", "/commit/"):
            raise HubError("the Hub is in trouble")
        return find(self, revision)

    with monkeypatch.context() as patched:
        patched.setattr(publish.Hub, "commit_of", away)
        assert run(bundle) == 1
    err = capsys.readouterr().err
    assert "it first checks whether the commit arrived" in err and "nothing was published" not in err
    assert run(bundle) == 0
    assert "nothing to do" in capsys.readouterr().out and len(ours(hub)) == 1


@pytest.mark.parametrize("path", ["/api/repos/create", "/branch/", "/tag/"])
def test_lost_replies_elsewhere_do_no_harm(hub, waits, bundle, path):
    fault = hub.fault("POST", path, lost_reply=True)
    assert run(bundle, "--revision", "next", "--tag", "v1") == 0
    assert (
        fault.hits == 1 and published(hub, revision="v1") == expected(bundle) and len(ours(hub, revision="next")) == 1
    )


def test_a_pull_request_whose_reply_is_lost_is_found(hub, waits, bundle, capsys):
    hub.create(REPO)
    hub.fault("POST", "/commit/", lost_reply=True)
    assert run(bundle, "--create-pr") == 0
    assert 'revision="refs/pr/1"' in capsys.readouterr().out and len(hub.asked("POST", "/commit/")) == 1


def test_a_tag_that_fails_says_that_the_commit_is_there(hub, waits, bundle, capsys):
    hub.fault("POST", "/tag/", status=403)
    assert run(bundle, "--tag", "v1") == 1
    assert "but without the tag" in capsys.readouterr().err and published(hub) == expected(bundle)
    assert run(bundle, "--tag", "v1") == 0
    assert published(hub, revision="v1") == expected(bundle) and len(ours(hub)) == 1


def test_a_gitignore_in_the_repository_is_no_way_to_half_publish(hub, waits, bundle, capsys):
    hub.create(REPO)
    told = [{"path": n, "uploadMode": "regular", "shouldIgnore": n == "gold.jsonl"} for n in expected(bundle)]
    hub.fault("POST", "/preupload/", status=200, body=json.dumps({"files": told}).encode())
    assert run(bundle) == 1
    assert ".gitignore in the repository excludes 1 files, such as gold.jsonl" in capsys.readouterr().err
    assert published(hub) == {} and hub.asked("POST", "/commit/") == []


# ---------------------------------------------------------------- names and cards

WINDOWS = {
    "plain name (2).pdf": None,
    "A%20B%2FC.pdf": None,
    "É – ü 条約.pdf": None,
    "a#b&c.pdf": None,
    "a||b.pdf": "not a valid file name on Windows",
    "a:b.pdf": "not a valid file name on Windows",
    "what?.pdf": "not a valid file name on Windows",
    "CON.pdf": "not a valid file name on Windows",
    "com1": "not a valid file name on Windows",
    "COMMON.pdf": None,
    "ends with a dot.": "not a valid file name on Windows",
    "n" * 230 + ".pdf": "not a valid file name on Windows",
}


@pytest.mark.parametrize(("name", "words"), WINDOWS.items())
def test_names_that_windows_cannot_hold_are_told(name, words):
    found = list_warnings([f"corpus/{name}"])
    assert (len(found) == 1 and words in found[0]) if words else found == []


def test_a_path_has_two_hundred_characters_on_windows():
    assert list_warnings(["n" * 200]) == [] and len(list_warnings(["n" * 201])) == 1


def test_ten_odd_names_are_listed_and_the_others_counted(hub, waits, tmp_path, capsys):
    for number, more in ((10, None), (11, "… and 1 more names"), (12, "… and 2 more names")):
        names = tuple(f"a|{letter}.txt" for letter in "abcdefghijkl"[:number])
        assert run(write(tmp_path / str(number), names=names), "--dry-run") == 0
        err = capsys.readouterr().err
        assert (
            err.count("not a valid file name on Windows") == 10
            and ("more names" in err) == bool(more)
            and (more or "") in err
        )


def test_names_that_lead_out_of_a_folder_are_refused_and_counted(hub, waits, tmp_path, capsys):
    ways = ["a/../b", "C:x", "\\b", "a\\..\\b"]
    assert find_refused_paths(["a/b", "a..b", "..a", *ways]) == sorted(ways)
    folder = write(tmp_path / "odd", names=("C:x", "C:y", "z.txt"))
    assert run(folder, "--dry-run") == 1
    assert "corpus/C:x and 1 more: the path may lead out" in capsys.readouterr().err
    assert run(write(tmp_path / "one", names=("C:x", "z.txt")), "--dry-run") == 1
    assert "corpus/C:x: the path may lead out" in capsys.readouterr().err


def test_names_that_differ_in_case_alone_are_told(hub, waits, tmp_path, capsys):
    assert list_warnings(["corpus/a.pdf", "corpus/b.pdf"]) == []
    folder = write(tmp_path / "b", names=("Aurora.txt", "aurora.txt", "a|b.txt"))
    assert run(folder, "--dry-run") == 0
    err = capsys.readouterr().err
    assert "note: corpus/Aurora.txt and corpus/aurora.txt: the same file on a system that ignores case" in err
    assert "note: corpus/a|b.txt: not a valid file name on Windows" in err


def test_a_cards_name_for_the_repository_can_be_undone(tmp_path):
    card = CARD_TEXT.encode()
    digest = sha256_of(write(tmp_path / "b") / "README.md")
    named = insert_address(card, REPO)
    assert b"PATH_OR_REPO" not in named and remove_address(named, digest) == card
    assert remove_address(card, digest) == card and remove_address(named + b"!", digest) is None
    both = card + b'see also "me/charters"\n'
    assert insert_address(both, REPO) == both  # could not be told apart when it comes back


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as ended:
        publish.main(["--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0 and "--repo-id me/cuad-rag --dry-run" in told and "hf auth login" in told
    assert "--token" not in told


def test_the_licences_of_the_converters_are_as_their_sources_say():
    modules = (acord, contractnli, cpr, cuad, maud, privacyqa)
    allowed = {module.INFO.name: module.INFO.licence.redistributable for module in modules}
    closed = {"contractnli": False, "cpr": False}
    assert allowed == {**closed, "acord": True, "cuad": True, "maud": True, "privacyqa": True}
