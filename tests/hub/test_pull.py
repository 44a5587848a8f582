"""Pulling a bundle: checked, byte for byte as published, complete or not at all; the evaluator can read it."""

from __future__ import annotations

import json

import pytest
from huggingface_hub import constants
from huggingface_hub._local_folder import _validate_relative_filename
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evaluate_rag
from exhibit.conversion import main as convert
from exhibit.hub import publish, pull
from exhibit.hub.publish import find_refused_paths
from exhibit.hub.pull import parse_address
from exhibit.hub.remote import Hub
from exhibit.schemas.bundle import INFO, read_info, write_info
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.validate import validate
from tests.conftest import SAMPLES
from tests.hub.bundles import files_of, large, write
from tests.hub.client import connect
from tests.rag.bundles import contents

REPO = "me/charters"
PLAN = "corpus/aurora plan.pdf"


@pytest.fixture
def waits(hub, tmp_path, monkeypatch):
    return connect(hub, tmp_path / "home", monkeypatch, token=hub.token("me"))


@pytest.fixture
def bundle(hub, waits, tmp_path):
    """A bundle that is published."""
    folder = write(tmp_path / "charters", more={PLAN: large("plan")})
    assert publish.main([str(folder), "--repo-id", REPO, "--tag", "v1"]) == 0
    return folder


# ---------------------------------------------------------------- there and back


def test_what_was_published_comes_back_byte_for_byte(hub, bundle, tmp_path, capsys):
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 0
    assert files_of(tmp_path / "back") == files_of(bundle) and validate(tmp_path / "back") == []
    assert f"from hf://{REPO}@{hub.commits(REPO)[0].oid}" in capsys.readouterr().out


def test_without_out_it_goes_where_evaluations_look_and_json_says_where(hub, bundle, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    capsys.readouterr()
    assert pull.main([f"hf://{REPO}@v1", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out) == {"bundle": "datasets_out/charters", "repo": f"hf://{REPO}@v1"}
    assert files_of(tmp_path / "datasets_out" / "charters") == files_of(bundle)
    assert "1 questions, 2 documents; all checksums match" in told.err, "what is said is no result"
    assert "two revisions, v1 and main" in refused(capsys, f"{REPO}@v1", "--revision", "main")


def test_a_tag_brings_back_what_it_stands_on(hub, bundle, tmp_path):
    later = write(tmp_path / "later", names=("aurora.txt", "borealis.txt"))
    assert publish.main([str(later), "--repo-id", REPO]) == 0
    assert pull.main([f"hf://{REPO}@v1", "--out", str(tmp_path / "old")]) == 0
    assert files_of(tmp_path / "old") == files_of(bundle)
    assert pull.main([REPO, "--revision", "main", "--out", str(tmp_path / "new")]) == 0
    assert files_of(tmp_path / "new") == files_of(later)


NAMES = (
    "A%20B%2FC%23.txt", "É – ü 条約 🙂.txt", "two  spaces .txt", "a#b&c=d+e;f,g.txt", "a||b:c.txt", "what?*<>\".txt",
    "[a-z]*.txt", "~tilde.txt", "-dash.txt", "CON.txt", "ends with a dot.", "n" * 251 + ".txt", "back\\slash.txt",
    "'single' & \"double\".txt", "percent%.txt", "résumé.txt",
)  # fmt: skip


def test_odd_names_survive(hub, waits, tmp_path, capsys):
    plans = {f"corpus/{name}.pdf": large(name, 2_000) for name in ("a#b?c", "条約 %41", "x||y")}
    folder = write(tmp_path / "odd", names=NAMES, more=plans)
    assert publish.main([str(folder), "--repo-id", "me/odd"]) == 0
    assert pull.main(["me/odd", "--out", str(tmp_path / "back")]) == 0
    assert files_of(tmp_path / "back") == files_of(folder)
    assert capsys.readouterr().err.count("not a valid file name on Windows") >= 4


@pytest.mark.parametrize("name", ["\\", "C:x", "a\\..\\b"])
def test_a_name_that_no_client_downloads_is_refused_before_it_is_sent(hub, waits, tmp_path, capsys, name):
    folder = write(tmp_path / "in", names=(name + ".txt",))
    assert publish.main([str(folder), "--repo-id", "me/odd"]) == 1
    assert "clients refuse to download it: rename it" in capsys.readouterr().err
    with pytest.raises(ValueError, match="Invalid filename"):  # as the client says
        _validate_relative_filename(f"corpus/{name}.txt")


@given(name=st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=40))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_survives(hub, waits, tmp_path_factory, name):
    where = tmp_path_factory.mktemp("any")
    if name in {".", ".."}:
        name += "x"
    folder = write(where / "in", names=(name + ".txt",))
    refused = bool(find_refused_paths([f"corpus/{name}.txt"]))
    assert publish.main([str(folder), "--repo-id", "me/any"]) == int(refused)
    if refused:
        return
    assert pull.main(["me/any", "--out", str(where / "out")]) == 0
    assert files_of(where / "out") == files_of(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cuad", "contractnli", "maud", "privacyqa", "cpr", "acord"])
def test_every_sample_survives_and_is_measured_alike(hub, waits, tmp_path, monkeypatch, name):
    folder = tmp_path / "made" / name
    arguments = ["--source", str(SAMPLES / name), "--out", str(folder), "--jobs", "1"]
    assert convert([name, *arguments]) == 0
    assert publish.main([str(folder), "--repo-id", f"me/{name}", "--i-have-the-rights"]) == 0
    assert pull.main([f"me/{name}", "--out", str(tmp_path / "back" / name)]) == 0
    assert files_of(tmp_path / "back" / name) == files_of(folder)
    local = evaluated(tmp_path, monkeypatch, folder, "local")
    assert evaluated(tmp_path, monkeypatch, f"hf://me/{name}", "remote") == local
    assert evaluated(tmp_path, monkeypatch, tmp_path / "back" / name, "back") == local


# ---------------------------------------------------------------- the evaluator


def evaluated(tmp_path, monkeypatch, path, run, expect=0):
    """Return every result of a run, without times and without the location of the documents."""
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache" / run))
    flags = ["--embedder", "hashing", "--output-dir", str(tmp_path / "results"), "--run-name", run, "--threads", "1"]
    assert evaluate_rag.main(["--dataset-paths", str(path), "--report-cases", "0", *flags]) == expect
    found = contents(tmp_path / "results" / run)
    config = found.pop("config.json", {"datasets": {}})
    found.pop("evaluate_parameters.json", None)  # for evaltools: where the documents were, too
    assert all(told["questions"] for told in config["datasets"].values())
    return found


def test_the_evaluator_reads_from_the_hub_and_finds_the_same(hub, bundle, tmp_path, monkeypatch):
    local = evaluated(tmp_path, monkeypatch, bundle, "local")
    assert local["charters/summary.json"]["char_recall@64"]["mean"] == 1.0
    assert evaluated(tmp_path, monkeypatch, f"hf://datasets/{REPO}@v1", "remote") == local
    config = json.loads((tmp_path / "results" / "remote" / "config.json").read_text())
    assert config["datasets"]["charters"]["origin"] == f"hf://{REPO}@{hub.commits(REPO)[0].oid}"
    assert (
        "origin" not in json.loads((tmp_path / "results" / "local" / "config.json").read_text())["datasets"]["charters"]
    )


def test_the_evaluator_says_what_is_wrong_with_an_address(hub, waits, tmp_path, monkeypatch, capsys):
    evaluated(tmp_path, monkeypatch, "hf://me/nothing", "r", expect=1)
    assert "error: looking at me/nothing: there is no dataset me/nothing" in capsys.readouterr().err


def test_what_is_in_the_cache_needs_no_hub(hub, bundle, tmp_path, monkeypatch, capsys):
    assert pull.main([REPO, "--out", str(tmp_path / "a")]) == 0
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    capsys.readouterr()
    assert pull.main([REPO, "--out", str(tmp_path / "b")]) == 0
    assert files_of(tmp_path / "b") == files_of(bundle)
    assert "from the cache, which may not be the newest" in capsys.readouterr().err
    assert pull.main(["me/other", "--out", str(tmp_path / "c")]) == 1
    assert "switched off by HF_HUB_OFFLINE" in capsys.readouterr().err


# ---------------------------------------------------------------- what goes wrong


def test_a_download_that_is_cut_goes_on(hub, bundle, tmp_path):
    fault = hub.fault("GET", "^/store/", cut=True, after_bytes=100_000)
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 0
    assert fault.hits == 1 and files_of(tmp_path / "back") == files_of(bundle)


def test_trouble_of_the_hub_passes(hub, bundle, tmp_path, capsys):
    hub.fault("GET", f"/api/datasets/{REPO}/revision", status=503, times=2)
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 0
    assert "retrying" in capsys.readouterr().err and files_of(tmp_path / "back") == files_of(bundle)


def refused(capsys, *arguments):
    assert pull.main(list(map(str, arguments))) == 1
    return capsys.readouterr().err


def test_what_is_not_there_is_told(hub, bundle, tmp_path, monkeypatch, capsys):
    out = tmp_path / "back"
    assert "there is no dataset me/nothing that this token may see" in refused(capsys, "me/nothing", "--out", out)
    assert "has no such revision" in refused(capsys, f"{REPO}@v9", "--out", out)
    hub.create("me/secret", private=True)
    connect(hub, tmp_path / "home", monkeypatch)
    assert "if it is private, `hf auth login`" in refused(capsys, "me/secret", "--out", out)
    assert "no revision after the @" in refused(capsys, f"{REPO}@", "--out", out)
    assert "give only one" in refused(capsys, f"{REPO}@v1", "--revision", "v1", "--out", out)
    assert not out.exists()


def test_another_dataset_is_no_bundle(hub, waits, tmp_path, capsys):
    hub.commit("me/rows", {"data.csv": b"a,b\n1,2\n"})
    assert "me/rows is not a bundle: it has no bundle.json" in refused(capsys, "me/rows", "--out", tmp_path / "back")
    hub.commit("me/rows", {"bundle.json": b"{}"})
    assert "me/rows is not a bundle: format: Field required" in refused(capsys, "me/rows", "--out", tmp_path / "back")


def test_content_that_is_not_as_recorded_is_refused(hub, bundle, tmp_path, capsys):
    hub.commit(REPO, {PLAN: large("another plan"), "gold.jsonl": None, "README.md": b"---\n---\nedited"})
    err = refused(capsys, REPO, "--out", tmp_path / "back")
    assert "3 files are wrong" in err and f"{PLAN}: the content differs from the sha256 in bundle.json" in err
    assert "gold.jsonl: listed in bundle.json, but missing" in err and "was it edited on the Hub?" in err
    assert not (tmp_path / "back").exists() and not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("name", ["../outside.txt", "corpus/../../outside.txt", "/etc/outside.txt"])
def test_a_path_that_leaves_the_folder_is_refused(hub, bundle, tmp_path, capsys, name):
    told = json.loads((bundle / INFO).read_text())
    told["files"][name] = {"sha256": "0" * 64, "bytes": 1}
    hub.commit(REPO, {INFO: json.dumps(told).encode()})
    assert "must be a relative path inside the bundle" in refused(capsys, REPO, "--out", tmp_path / "back")
    assert not list(tmp_path.rglob("outside.txt"))


def test_a_bundle_that_contradicts_itself_is_not_placed(hub, bundle, tmp_path, capsys):
    info = read_info(bundle / INFO)
    counts = info.counts.model_copy(update={"questions": 99})
    write_info(info.model_copy(update={"counts": counts}), tmp_path / "told.json")
    hub.commit(REPO, {INFO: (tmp_path / "told.json").read_bytes()})
    err = refused(capsys, REPO, "--out", tmp_path / "back")
    assert "99, but train.json has 1" in err and not (tmp_path / "back").exists()


def test_a_bundle_without_its_documents_says_how_to_make_it(hub, waits, tmp_path, capsys):
    folder = write(tmp_path / "charters")
    assert publish.main([str(folder), "--repo-id", REPO, "--no-corpus"]) == 0
    err = refused(capsys, REPO, "--out", tmp_path / "back")
    assert "was published without its documents" in err and "python -m converters.charters" in err


def test_a_folder_that_is_there_is_replaced_only_when_told(hub, bundle, tmp_path, capsys):
    out = write(tmp_path / "back", names=("other.txt",))
    before = len(hub.requests)
    assert "exists already; add --force" in refused(capsys, REPO, "--out", out)
    asked = [request.path for request in hub.requests[before:] if "/resolve/" in request.path]
    assert {path.rpartition("/")[2] for path in asked} == {"bundle.json"}  # said before anything large is downloaded
    assert pull.main([REPO, "--out", str(out), "--force"]) == 0 and files_of(out) == files_of(bundle)


def test_a_folder_that_holds_just_this_is_left_alone(hub, bundle, tmp_path, capsys):
    assert pull.main([REPO, "--out", str(bundle)]) == 0
    assert "byte for byte; nothing was changed" in capsys.readouterr().out
    next(iter((bundle / "corpus").iterdir())).write_bytes(b"other")
    assert "exists already; add --force" in refused(capsys, REPO, "--out", bundle)


def test_a_branch_that_keeps_moving_is_left_after_three_turns(hub, bundle, tmp_path, monkeypatch, capsys):
    look, seen = Hub.commit_of, []

    def moving(remote, revision):
        seen.append(look(remote, revision))
        if len(seen) % 4:
            hub.commit(REPO, {"NOTES.md": f"{len(seen)}".encode()})
        return seen[-1]

    monkeypatch.setattr(Hub, "commit_of", moving)
    assert "the branch changed during each download" in refused(capsys, REPO, "--out", tmp_path / "back")
    assert len(seen) == 3 and not (tmp_path / "back").exists()
    seen.append(seen[-1])
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 1, "two more that move, and one that stays"
    seen[:] = seen[:2]
    assert pull.main([REPO, "--out", str(tmp_path / "back")]) == 0 and len(seen) == 4


def test_ten_files_that_are_wrong_are_listed(hub, bundle, tmp_path, capsys):
    info = read_info(bundle / INFO)
    entry = next(iter(info.files.values()))
    for number in (10, 11):
        files = {f"extra/{letter}": entry for letter in "abcdefghijk"[:number]}
        write_info(info.model_copy(update={"files": {**info.files, **files}}), tmp_path / "told.json")
        hub.commit(REPO, {INFO: (tmp_path / "told.json").read_bytes()})
        err = refused(capsys, REPO, "--out", tmp_path / "back")
        assert f"{number} files are wrong" in err and err.count("but missing") == 10


def test_a_copy_under_another_name_comes_back_as_well(hub, bundle, tmp_path):
    hub.commit("you/copy", {name: data for name, data in hub.files(REPO).items() if name != ".gitattributes"})
    assert pull.main(["you/copy", "--out", str(tmp_path / "back")]) == 0
    assert files_of(tmp_path / "back") == files_of(bundle)


def test_addresses():
    assert parse_address("me/x") == parse_address("hf://me/x") == parse_address("hf://datasets/me/x/") == ("me/x", None)
    assert parse_address("hf://me/x@refs/pr/1") == ("me/x", "refs/pr/1")
    with pytest.raises(ToolkitError):
        parse_address("me/x@")


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as ended:
        pull.main(["--help"])
    told = capsys.readouterr().out
    assert ended.value.code == 0 and "exhibit pull me/cuad-rag --out datasets_out/cuad" in told
