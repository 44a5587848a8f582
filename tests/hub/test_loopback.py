"""The Hub of the tests, asked by the real clients."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from tests.hub.conftest import RunClient
from tests.hub.loopback import LoopbackHub

PDF = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n"
NAMES = ["corpus/§ 1 & 2 #3 100% é?.pdf", "corpus/50%25 off.pdf", f"corpus/{'long ' * 40}.pdf", "corpus/sub/[x]*.pdf"]
CARD = """---
license: cc-by-4.0
configs:
- config_name: questions
  default: true
  data_files: train.json
- config_name: more
  data_files: [{split: test, path: "more/*.jsonl"}]
---
# A table
"""

PUBLISH = """
import json, os, struct, sys
from huggingface_hub import CommitOperationAdd as Add, CommitOperationCopy as Copy, CommitOperationDelete as Delete
from huggingface_hub import HfApi, HfFileSystem, hf_hub_download, snapshot_download
api, repo = HfApi(), dict(repo_id="me/x", repo_type="dataset")
files = {name: bytes.fromhex(content) for name, content in json.load(open("files.json")).items()}
assert api.create_repo(**repo, private=True).repo_id == "me/x"
api.create_repo(**repo, exist_ok=True)
first = api.create_commit(**repo, operations=[Add(*file) for file in files.items()], commit_message="All files")
tree = {one.path: one for one in api.list_repo_tree(**repo, recursive=True, expand=True)}
assert set(files) < set(tree) and tree["corpus"].last_commit.oid == first.oid
assert tree["train.json"].lfs is None and tree["big.bin"].lfs.size == len(files["big.bin"])
assert [one.path for one in api.get_paths_info(**repo, paths=[*files, "no such file"])] == list(files)
info = api.dataset_info("me/x", files_metadata=True)
assert (info.sha, info.private, info.card_data.license) == (first.oid, True, "cc-by-4.0")
assert "license:cc-by-4.0" in info.tags
assert {one.rfilename: one.size for one in info.siblings if one.rfilename in files} == {n: len(files[n]) for n in files}
folder = snapshot_download(**repo)
assert {name: open(os.path.join(folder, name), "rb").read() for name in files} == files
assert open(hf_hub_download(**repo, filename="train.json", force_download=True), "rb").read() == files["train.json"]
disk = HfFileSystem()
papers = [path.removeprefix("datasets/me/x/") for path in disk.glob("datasets/me/x/**/*.pdf")]
assert sorted(papers) == sorted(name for name in files if ".pdf" in name)
with disk.open("datasets/me/x/big.bin", block_size=1 << 14) as file:
    file.seek(70_000)
    assert file.read(99) == files["big.bin"][70_000:70_099]
api.create_tag(**repo, tag="v1.0")
api.create_branch(**repo, branch="dev/two", revision="v1.0")
changes = [Add("new.txt", b"new"), Delete("train.json"), Delete("corpus/sub/"), Copy("big.bin", "copy.bin")]
pull = api.create_commit(**repo, operations=changes, commit_message="A change", create_pr=True)
assert pull.pr_revision == "refs/pr/1"
assert api.dataset_info("me/x").sha == first.oid
refs = api.list_repo_refs(**repo, include_pull_requests=True)
assert [[one.name for one in some] for some in (refs.branches, refs.tags, refs.pull_requests)] == [
    ["dev/two", "main"], ["v1.0"], ["refs/pr/1"]]
api.merge_pull_request(**repo, discussion_num=1)
draft = api.create_pull_request(**repo, title="Later")
assert (draft.status, draft.git_reference) == ("draft", "refs/pr/2")
api.upload_file(**repo, path_or_fileobj=b"later", path_in_repo="later.txt", revision=draft.git_reference)
events = api.get_discussion_details(**repo, discussion_num=2).events
assert [event.type for event in events] == ["comment", "commit"]
assert [one.title for one in api.get_repo_discussions(**repo)] == ["Later", "A change"]
api.change_discussion_status(**repo, discussion_num=2, new_status="open")
api.merge_pull_request(**repo, discussion_num=2)
os.makedirs("folder/deep")
open("folder/deep/a.txt", "w").write("a")
open("folder/b.bin", "wb").write(os.urandom(20_000))
up = api.upload_folder(**repo, folder_path="folder", path_in_repo="up")
assert api.upload_folder(**repo, folder_path="folder", path_in_repo="up").oid == up.oid
api.delete_file(**repo, path_in_repo="later.txt")
api.delete_tag(**repo, tag="v1.0")
api.delete_branch(**repo, branch="dev/two")
api.update_repo_settings(**repo, private=False)
print(json.dumps([one.title for one in api.list_repo_commits(**repo)]))
"""


def sample_files() -> dict[str, bytes]:
    """Return files of every kind: small ones, and large ones that pack well, by columns, or not at all."""
    numbers = b"".join((1_000_000_000 + 7 * n).to_bytes(4, "little") for n in range(30_000))
    noise = b"".join(sha256(b"%d" % n).digest() for n in range(6_000))
    rows = [{"id": n, "question": "Which clause limits liability?"} for n in range(80)]
    papers = {name: PDF + b"BT (Governing Law) Tj ET\n" * 200 + name.encode() for name in NAMES}
    small_files = {"README.md": CARD.encode(), "train.json": json.dumps(rows).encode(), "empty.txt": b""}
    return {**small_files, **papers, "big.bin": noise, "numbers.npy": numbers}


@pytest.mark.parametrize("xet", [False, True], ids=["lfs", "xet"])
def test_the_real_client_publishes_lists_and_reads(
    run_client: RunClient, hub: LoopbackHub, tmp_path: Path, xet: bool
) -> None:
    hub.multipart, hub.page = 50_000, 4
    cut = hub.fault("POST", "/v1/xorbs/", cut=True)
    files = sample_files()
    sent = {name: content.hex() for name, content in files.items()}
    (tmp_path / "files.json").write_text(json.dumps(sent), encoding="utf-8")
    told = run_client(PUBLISH, token=hub.token(), HF_HUB_DISABLE_XET="0" if xet else "1")
    titles = ["Delete later.txt with huggingface_hub", "Upload folder using huggingface_hub", "Later (#2)"]
    titles += ["A change (#1)", "All files", "initial commit"]
    assert json.loads(told) == titles == [one.title for one in hub.commits("me/x")]

    published = hub.files("me/x", hub.commits("me/x")[-2].oid)
    rules = published.pop(".gitattributes").decode()
    assert published == files
    assert "corpus/§[[:space:]]1[[:space:]]" in rules  # the Hub names what its patterns do not cover
    now = hub.files("me/x")
    assert now["copy.bin"] == files["big.bin"]
    assert "train.json" not in now and "corpus/sub/[x]*.pdf" not in now

    storage = [one for one in hub.requests if (one.headers["Host"] or "").startswith("localhost")]
    hub_tokens = [one for one in storage if (one.headers["Authorization"] or "").startswith("Bearer hf_")]
    assert storage and not hub_tokens
    assert any(one.status == 206 for one in storage)
    assert cut.hits == xet  # hf_xet tries again by itself
    assert bool(hub.asked("POST", "/v1/xorbs/")) == bool(hub.asked("POST", "/v2/shards")) == xet
    assert bool(hub.asked("POST", "/complete_multipart")) == bool(hub.asked("PUT", "/upload/")) == (not xet)
    assert [one for one in hub.asked("GET", "/tree/") if "cursor" in one.query]


LOAD = """
import json
from datasets import get_dataset_config_names, load_dataset
papers = load_dataset("me/papers", split="train").cast_column("pdf", __import__("datasets").Pdf(decode=False))
streamed = load_dataset("me/papers", split="train", streaming=True).decode(False)
print(json.dumps([
    get_dataset_config_names("me/table"),
    list(load_dataset("me/table", split="train")),
    list(load_dataset("me/table", "questions", split="train", streaming=True)),
    list(load_dataset("me/table", "more", split="test")),
    list(load_dataset("me/table", "more", split="test", streaming=True, revision="main")),
    sorted([row["title"], open(row["pdf"]["path"], "rb").read().hex()] for row in papers),
    sorted(row["title"] for row in streamed),
]))
"""


@pytest.mark.slow
def test_datasets_loads_configs_whole_and_streaming(hub: LoopbackHub, run_client: RunClient) -> None:
    rows = [{"id": n, "q": f"Wer haftet nach § {n}?", "gold": [{"file": "a b.pdf", "page": n}]} for n in range(60)]
    more = "".join(json.dumps({"n": n}) + "\n" for n in range(5)).encode()
    table = {"README.md": CARD.encode(), "train.json": json.dumps(rows).encode(), "more/50% & #1 é.jsonl": more}
    hub.commit("me/table", table)
    papers = {name.rsplit("/", 1)[-1]: PDF + name.encode() for name in NAMES[:2]}
    index = "".join(json.dumps({"file_name": name, "title": name}) + "\n" for name in papers).encode()
    hub.create("me/papers", private=True)
    hub.commit("me/papers", {"metadata.jsonl": index, **papers})

    told = json.loads(run_client(LOAD, token=hub.token()))
    names, whole, streamed, second, second_streamed, read, titles = told
    assert names == ["questions", "more"]
    assert whole == streamed == rows
    assert second == second_streamed == [{"n": n} for n in range(5)]
    assert read == sorted([name, content.hex()] for name, content in papers.items())
    assert titles == sorted(papers)
    assert hub.asked("GET", "datasets-server")


ACCESS = """
import json, sys
from huggingface_hub import CommitOperationAdd as Add, HfApi
from huggingface_hub.errors import HfHubHTTPError
tokens = json.loads(sys.stdin.read())

def tried(name, do):
    api = HfApi(token=tokens[name] if name else False)
    try:
        return do(api) or "done"
    except ValueError as error:
        return str(error).splitlines()[0]
    except HfHubHTTPError as error:
        return [type(error).__name__, error.response.status_code]

def write(to, content=b"a", **more):
    add = lambda: [Add("a.txt", content)]
    return lambda api: api.create_commit(to, add(), commit_message="a", repo_type="dataset", **more).oid and "done"

def create(to):
    return lambda api: api.create_repo(to, repo_type="dataset").repo_id

secret = lambda api: api.dataset_info("me/secret").id
told = {f"read {name}": tried(name, secret) for name in ("", "mine", "reader", "other", "wrong", "narrow", "broad")}
told |= {f"write {name}": tried(name, write("me/open")) for name in ("mine", "reader", "other", "narrow", "broad", "")}
told |= {f"create {name}": tried(name, create(f"me/{name}")) for name in ("mine", "reader", "other", "narrow", "broad")}
told["create in a firm"] = tried("mine", create("firm/new"))
told["create again"] = tried("mine", create("me/mine"))
told["pull request of another"] = tried("other", write("me/open", b"c", create_pr=True))
told["no repository"] = tried("mine", lambda api: api.dataset_info("me/nothing").id)
told["no revision"] = tried("mine", lambda api: api.dataset_info("me/open", revision="v9").id)
told["no file"] = tried("mine", lambda api: api.delete_file("no.txt", "me/open", repo_type="dataset"))
told["old parent"] = tried("mine", write("me/open", b"b", parent_commit="0" * 40))
told["delete"] = tried("mine", lambda api: api.delete_repo("me/mine", repo_type="dataset"))
role = lambda api: api.whoami()["auth"]["accessToken"]["role"]
told["roles"] = [tried(name, role) for name in ("mine", "reader", "broad")]
bad = [Add("README.md", b"---\\nlicense: none of these\\n---\\n")]
told["card"] = tried("mine", lambda api: api.create_commit("me/open", bad, commit_message="a", repo_type="dataset"))
print(json.dumps(told))
"""


def test_who_may_do_what(hub: LoopbackHub, run_client: RunClient) -> None:
    hub.create("me/open")
    hub.create("me/secret", private=True)
    tokens = {
        "mine": hub.token("me", "write", orgs={"firm": "write"}),
        "reader": hub.token("me", "read"),
        "other": hub.token("another"),
        "wrong": "hf_of_nobody",
        "narrow": hub.token("me", "finegrained", scopes={"me/elsewhere": ("repo.content.read", "repo.write")}),
        "broad": hub.token("me", "finegrained"),
    }
    told = json.loads(run_client(ACCESS, stdin=json.dumps(tokens)))
    hidden, refused = ["RepositoryNotFoundError", 404], ["HfHubHTTPError", 403]
    assert told == {
        "read ": ["RepositoryNotFoundError", 401],
        "read mine": "me/secret",
        "read reader": "me/secret",
        "read other": hidden,
        "read wrong": ["HfHubHTTPError", 401],
        "read narrow": hidden,
        "read broad": "me/secret",
        "write mine": "done",
        "write reader": refused,
        "write other": refused,
        "write narrow": refused,
        "write broad": "done",
        "write ": ["HfHubHTTPError", 401],
        "create mine": "me/mine",
        "create reader": refused,
        "create other": refused,
        "create narrow": refused,
        "create broad": "me/broad",
        "create in a firm": "firm/new",
        "create again": ["HfHubHTTPError", 409],
        "pull request of another": "done",
        "no repository": hidden,
        "no revision": ["RevisionNotFoundError", 404],
        "no file": ["RemoteEntryNotFoundError", 404],
        "old parent": ["HfHubHTTPError", 412],
        "delete": "done",
        "roles": ["write", "read", "fineGrained"],
        "card": "Invalid metadata in README.md.",
    }


FAULTS = """
import json, sys, time
time.sleep = lambda seconds: None  # between its tries the client waits for a second or more
from huggingface_hub import CommitOperationAdd as Add, HfApi, hf_hub_download
api = HfApi()

def publish():
    files = [Add("a.txt", b"a"), Add("b.bin", b"\\0" * 70_000)]
    try:
        return api.create_commit("me/x", files, commit_message="Publish", repo_type="dataset").oid
    except Exception as error:
        return type(error).__name__

told = [publish(), publish(), publish()]
told.append(len(open(hf_hub_download("me/x", "b.bin", repo_type="dataset"), "rb").read()))
print(json.dumps(told))
"""


def test_faults_on_demand(hub: LoopbackHub, run_client: RunClient) -> None:
    hub.create("me/x")
    cut = hub.fault("PUT", r"/upload/", cut=True, after_bytes=1000)
    limited = hub.fault("POST", r"/preupload/", status=429, headers={"Retry-After": "0"})
    failed = hub.fault("POST", r"/commit/", status=500)
    lost = hub.fault("POST", r"/commit/", lost_reply=True)
    torn = hub.fault("GET", r"/store/", cut=True, after_bytes=20_000)
    first, second, third, size = json.loads(run_client(FAULTS, token=hub.token()))
    assert [fault.hits for fault in (cut, limited, failed, lost, torn)] == [1] * 5
    assert (first, second in ("ReadError", "RemoteProtocolError")) == ("HfHubHTTPError", True)
    assert third == hub.commits("me/x")[0].oid  # the commit whose reply was lost was made, and is not made twice
    assert [one.title for one in hub.commits("me/x")] == ["Publish", "initial commit"]
    assert [one.size for one in hub.asked("PUT")] == [1000, 70_000]  # the client tries again by itself
    assert [one.status for one in hub.asked("POST", "/commit/")] == [500, 0]
    assert (size, len(hub.asked("GET", "/store/"))) == (70_000, 2)
