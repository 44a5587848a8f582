"""Uploading a corpus as a target file describes: paged lists, tasks, refused files, and waiting times."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.servers.ingestion import Collection, ListedFile
from exhibit.evaluation.servers.system import DocumentInterface, Step
from exhibit.evaluation.targets import TargetOptions
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http_policy import Deadline, HttpError, UnreachableError
from tests.rag.bundles import write_bundle

ADD = Step(path="/add", method="POST", file="file", id="id")


@pytest.fixture
def dataset(tmp_path):
    [dataset], _ = load_datasets([write_bundle(tmp_path / "leases")], Selection())
    return dataset


class Fetch:
    """A stub that answers requests from a table by path; a callable is called, an exception is raised."""

    def __init__(self, **replies):
        self.replies, self.asked = replies, []

    def __call__(self, path, body=None, **given):
        self.asked.append(path)
        reply = self.replies[path.strip("/").partition("?")[0]]
        reply = reply(path, body) if callable(reply) else reply
        if isinstance(reply, Exception):
            raise reply
        return reply


def collection(fetch, *, ingest="auto", retries=0, settings=None, **steps):
    options = TargetOptions(ingest=ingest, retries=retries, backoff=0.0)
    return Collection(fetch, DocumentInterface(add=ADD, **steps), "leases", options, settings or {}, "http://x")


def listed(*names, **more):
    return {"files": [{"name": name, "id": f"id of {name}", **more} for name in names]}


LIST = Step(path="/list", items="files", id="id", ready="ready", error="error")


@pytest.mark.parametrize("sizes", [(99,), (100, 0), (100, 100, 3)])
def test_numbered_pages_are_read_until_one_is_not_full(sizes):
    pages = iter(sizes)
    fetch = Fetch(list=lambda *_: listed(*(f"{len(fetch.asked)} {n}" for n in range(next(pages)))))
    held = collection(fetch, list=Step(path="/list?page={page}", items="files")).listed(Deadline(9))
    assert len(held) == sum(sizes) and fetch.asked == [f"/list?page={n}" for n in range(1, len(sizes) + 1)]


def test_pages_with_a_mark_of_the_next_are_read_until_it_comes_again():
    marks = iter(["a b", "c", "c"])
    fetch = Fetch(list=lambda *_: {**listed(f"{len(fetch.asked)}"), "next": next(marks)})
    held = collection(fetch, list=Step(path="/list?x", items="files", next="next")).listed(Deadline(9))
    assert list(held) == ["1", "2", "3"] and fetch.asked == ["/list?x", "/list?x&after=a%20b", "/list?x&after=c"]
    fetch = Fetch(list=listed("1"))
    collection(fetch, list=Step(path="/list?x", items="files", next="next")).listed(Deadline(9))
    assert len(fetch.asked) == 1


def test_a_listed_file_has_a_name_a_state_and_an_error():
    rows = [
        {"name": "a/b.pdf", "id": 7, "ready": True},
        {"name": "", "id": "c", "ready": 0, "error": "torn"},
        {"name": "d", "ready": None},
    ]
    assert collection(Fetch(list={"files": rows}), list=LIST).listed(Deadline(9)) == {
        "b.pdf": ListedFile(True, "", "7"),
        "c": ListedFile(False, "torn", "c"),
        "d": ListedFile(False, "", ""),
    }
    bare = Step(path="/list", items="files")
    assert collection(Fetch(list={"files": rows}), list=bare).listed(Deadline(9)) == {
        "b.pdf": ListedFile(), "": ListedFile(), "d": ListedFile(),
    }  # fmt: skip
    named = collection(
        Fetch(list={"files": rows[1:2]}, name={"called": "e.txt"}),
        list=LIST,
        name=Step(path="/name?id={id}", name="called"),
    )
    assert list(named.listed(Deadline(9))) == ["e.txt"]


def test_a_collection_is_found_by_its_name_and_made_where_there_is_none(dataset):
    find = Step(path="/find", items="all", name="name", id="id")
    fetch = Fetch(
        find={"all": [{"name": "other", "id": "1"}, {"name": "leases", "id": "2"}]}, list=listed(*dataset.files)
    )
    there = collection(fetch, find=find, list=Step(path="/list?of={collection_id}", items="files"))
    assert (
        there.bring_in(dataset, timeout=1).files == 3
        and "/list?of=2" in fetch.asked
        and fetch.asked.count("/find") == 1
    )
    held = []
    fetch = Fetch(
        find={"all": []},
        create={"id": "9"},
        list=lambda *_: listed(*held),
        add=lambda *_: held.append("x") or {"id": "1"},
    )
    none = collection(
        fetch,
        find=find,
        create=Step(path="/create", method="POST", id="id"),
        list=Step(path="/list?of={collection_id}", items="files"),
    )
    with pytest.raises(ToolkitError, match="none of the 3 files is ready in the system"):
        none.bring_in(dataset, timeout=0.01)
    assert fetch.asked[:2] == ["/find", "/create"] and "/list?of=9" in fetch.asked and len(held) == 3
    own = collection(Fetch(list=listed()), find=find, list=LIST, id_prefix="le")
    assert own.find(Deadline(9)) == "leases", "a name that is an id already is not looked for"


@pytest.mark.parametrize(
    ("error", "stops"),
    [
        (HttpError("no", status=401), True),
        (HttpError("no", status=403), True),
        (HttpError("no", status=407), True),
        (UnreachableError("gone"), True),
        (HttpError("no", status=400), False),
        (HttpError("no", status=413), False),
    ],
)
def test_what_would_befall_all_files_stops_and_what_befalls_one_is_told(dataset, error, stops):
    fetch = Fetch(list=listed("alder.txt", ready=True), add=error)
    there = collection(fetch, list=LIST)
    if stops:
        with pytest.raises(ToolkitError, match="leases: its documents cannot be uploaded to the system"):
            there.bring_in(dataset, timeout=1)
        assert fetch.asked.count("/add") == 1
    else:
        told = there.bring_in(dataset, timeout=1)
        assert told.files == 1 and told.set_aside == ["birch.txt: no", "cedar.txt: no"]


def test_a_task_is_waited_for_and_says_what_became_of_its_file(dataset, monkeypatch):
    waited, looks = [], {}
    monkeypatch.setattr("time.sleep", waited.append)

    def task(path, _body):
        name = path.rpartition("=")[2]
        looks[name] = looks.get(name, 0) + 1
        return {"done": looks[name] > 2, "error": "torn" if "birch" in name else ""}

    sent = iter(["alder", "birch", "cedar"])
    fetch = Fetch(add=lambda *_: {"id": next(sent)}, task=task, start={}, list=listed("alder.txt", "cedar.txt"))
    there = collection(
        fetch, list=Step(path="/list", items="files"), task=Step(path="/task?id={id}", ready="done", error="error"),
        start=Step(path="/start", method="POST"),
    )  # fmt: skip
    fetch.replies["list"] = lambda *_: listed(*(("alder.txt", "cedar.txt") if looks else ()))
    told = there.bring_in(dataset, timeout=60)
    assert told.set_aside == ["birch.txt: torn"] and told.files == 2 and waited == [0.1, 0.2]
    assert fetch.asked.count("/start") == 1 and looks == {"alder": 3, "birch": 3, "cedar": 3}


def test_pauses_double_up_to_five_seconds_and_end_with_the_time(dataset, monkeypatch):
    waited = []
    monkeypatch.setattr("time.sleep", waited.append)
    fetch = Fetch(add={}, list=lambda *_: listed(*dataset.files, ready=len(waited) > 8))
    assert collection(fetch, list=LIST).bring_in(dataset, timeout=60).set_aside == []
    assert waited == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0])
    waited.clear()
    fetch = Fetch(list=listed(*dataset.files, ready=False))
    with pytest.raises(ToolkitError, match="alder.txt: uploaded, but not ready in time"):
        collection(fetch, list=LIST).bring_in(dataset, timeout=0.05)
    assert waited == []


def test_without_a_list_what_was_sent_is_in(dataset):
    fetch = Fetch(add={"id": "1"}, start={}, attach={}, check={})
    there = collection(
        fetch, check=Step(path="/check"), attach=Step(path="/attach?{id}", method="POST"), start=Step(path="/start")
    )
    told = there.bring_in(dataset, timeout=1)
    assert (told.files, told.set_aside) == (3, []) and told.seconds is not None
    assert fetch.asked == ["/check", *(["/add", "/attach?1"] * 3), "/start", "/check"]


def test_a_dataset_without_files_has_no_file_that_failed(dataset):
    told = collection(Fetch(list=listed()), list=LIST).compare(replace(dataset, files={}))
    assert (told.files, told.set_aside) == (0, [])


def test_what_is_there_is_compared_and_nothing_is_sent(dataset):
    fetch = Fetch(list=listed("alder.txt", "cedar.txt", ready=True))
    told = collection(fetch, list=LIST).compare(dataset)
    assert told.set_aside == ["birch.txt: not among the system's documents"] and told.seconds is None
    assert fetch.asked == ["/list"] and told.pages_per_second is None


def test_documents_are_deleted_one_by_one_or_with_their_collection(dataset):
    fetch = Fetch(list=listed("alder.txt", "other.txt"), remove={}, drop={})
    each = Step(path="/remove?id={id}", method="DELETE")
    collection(fetch, list=LIST, delete_each=each).remove(dataset)
    assert fetch.asked == ["/list", "/remove?id=id%20of%20alder.txt"]
    fetch.asked.clear()
    collection(fetch, list=LIST, delete=Step(path="/drop", method="DELETE")).remove(dataset)
    assert fetch.asked == ["/drop"]
    fetch.replies["find"] = {"all": []}
    fetch.asked.clear()
    find = Step(path="/find", items="all", id="id")
    collection(fetch, list=LIST, find=find, delete=Step(path="/drop", method="DELETE")).remove(dataset)
    assert fetch.asked == ["/find"], "nothing is there to be deleted"
    with pytest.raises(ToolkitError, match="the system cannot delete documents"):
        collection(fetch, list=LIST).remove(dataset)
