"""`exhibit view`: which requests the server accepts, what it shows, and what it writes."""

import asyncio
import itertools
import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import httpx
import pytest
from starlette.testclient import TestClient

from exhibit.conversion import main as convert
from exhibit.engine import open_engine
from exhibit.schemas.bundle import read_questions
from exhibit.schemas.review import read_review
from exhibit.storage.bundle import open_bundle
from exhibit.viewer.report import main as evaluate
from exhibit.viewer.review.make import main as review
from exhibit.viewer.server.app import main as view
from exhibit.viewer.server.app import make_application, make_file_name, make_folder_name
from exhibit.viewer.server.jobs import Jobs
from exhibit.viewer.server.library import Library, count_replies, key_of
from exhibit.viewer.server.search import TextSearch
from tests.evaluation.loopback import ImitatedSystem, imitating
from tests.loopback import Request

TOKEN = "a-token-of-the-test"
HOST = "127.0.0.1:8000"
ORIGIN = {"origin": f"http://{HOST}"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, samples: Path) -> Path:
    """A folder with a bundle and two runs on it."""
    root = tmp_path_factory.mktemp("served")
    bundle, replies = root / "datasets_out" / "policies", root / "replies.jsonl"
    assert (
        convert(["privacyqa", "--source", str(samples / "privacyqa"), "--out", str(bundle), "--engine", "serial"]) == 0
    )
    rows = read_questions(bundle / "train.json")
    replies.write_text("".join(json.dumps({"id": row.id, "answer": "No."}) + "\n" for row in rows), encoding="utf-8")
    for name in ("first", "second"):
        words = [str(bundle), "--target", f"predictions:{replies}", "--output-dir", str(root / "results")]
        assert evaluate([*words, "--run-name", name]) == 0
    return root


@pytest.fixture
def client(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    folders = [served / "datasets_out", served / "results"]
    app = make_application(folders, token=TOKEN)
    with TestClient(app, base_url=f"http://{HOST}/{TOKEN}/", follow_redirects=True) as one:
        yield one


@pytest.fixture
def bundle_key(served: Path) -> str:
    return key_of((served / "datasets_out" / "policies").resolve())


def test_server_returns_404_without_token(client):
    for path in ("/", "/wrong/", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/", "/../", f"//{TOKEN}/"):
        assert client.get(f"http://{HOST}{path}").status_code == 404, path
    assert "policies" in client.get("").text


def test_server_refuses_foreign_host_header_to_prevent_dns_rebinding(client):
    for host in ("evil.example", "evil.example:8000", ""):
        assert client.get("", headers={"host": host}).status_code == 400, host


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:9999", f"https://{HOST}"])
def test_server_refuses_changes_from_other_origins(client, origin):
    headers = {} if origin is None else {"origin": origin}
    assert client.post("trend", json={}, headers=headers).status_code == 403
    assert client.put("upload/mine/a.txt", content=b"x", headers=headers).status_code == 403


def test_server_refuses_cross_site_requests(client, bundle_key):
    assert client.get("", headers={"sec-fetch-site": "cross-site"}).status_code == 403


def test_server_sends_security_headers_with_every_response(client):
    for response in (client.get(""), client.get(f"http://{HOST}/wrong/")):
        assert response.headers["referrer-policy"] == "no-referrer", "the token in the URL must not be sent on"
        assert response.headers["x-content-type-options"] == "nosniff" and response.headers["x-frame-options"] == "DENY"
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', client.get("").text)
    assert policy and "default-src 'none'" in policy[1] and "unsafe" not in policy[1]


def test_view_command_reports_missing_folder(tmp_path, capsys):
    assert view([str(tmp_path / "none"), "--no-browser"]) == 1
    assert "no such folder" in capsys.readouterr().err


def test_home_lists_bundles_and_runs_with_the_headline_of_the_report(client, served):
    text, key = client.get("").text, key_of((served / "results" / "first").resolve())
    assert "policies" in text and "22 of 22" in text, "22 of 22 passages are located"
    assert text.index("second") < text.index("first<"), "the newest run is listed first"
    headline = client.get(f"run/{key}/result").text
    assert f'data-result="{key}"' in text and "answered" in headline
    keys = [key, key_of((served / "results" / "second").resolve())]
    pages = [client.get(f"run/{key}").text]
    pages.append(client.get(client.post("compare", json={"runs": keys}, headers=ORIGIN).json()["open"]).text)
    pages.append(client.get(client.post("trend", json={}, headers=ORIGIN).json()["open"]).text)
    assert all(headline in page for page in pages), "all pages show the same headline"
    assert "Outcomes of the questions" in pages[1] and "Results over time" in pages[2]
    assert client.post("compare", json={"runs": keys[:1]}, headers=ORIGIN).status_code == 400


@pytest.mark.parametrize(("missing", "words"), [("", "Scans are read by OCR."), ("gone", "Scans cannot be read yet")])
def test_home_shows_whether_ocr_is_available(missing, words, client, monkeypatch):
    engine = SimpleNamespace(missing=lambda _: missing)
    monkeypatch.setattr("exhibit.viewer.server.app.load_plugin", lambda *_: (engine, None))
    assert words in client.get("").text


def test_bundle_page_filters_questions_by_words(client, bundle_key):
    whole = client.get(f"bundle/{bundle_key}").text
    assert whole.count("document?name=") >= 19 + 4
    some = client.get(f"bundle/{bundle_key}?find=location").text
    assert 0 < some.count("&amp;question=") < 19
    assert client.get(f"bundle/{bundle_key}?find=zzzzqq").text.count("&amp;question=") == 0


def test_document_sheet_has_gold_words_and_picture_of_page(client, served, bundle_key):
    bundle = open_bundle(served / "datasets_out" / "policies")
    line = next(line for line in bundle.gold if line.spans)
    name = quote(line.filename or "")
    assert client.get(f"bundle/{bundle_key}/document?name={name}&question={line.id}").status_code == 200
    sheet = client.get(f"bundle/{bundle_key}/sheet?name={name}&page={line.pages[0]}").json()
    assert list(line.spans[0]) in sheet["gold"]
    start, end = line.spans[0]
    inside = [word[2] for word in sheet["words"] if start <= word[0] and word[1] <= end]
    assert len(inside) > 3, "the page contains the words of the gold"
    picture = client.get(f"bundle/{bundle_key}/{sheet['src']}")
    assert picture.headers["content-type"].startswith("image/") and len(picture.content) > 1000


@pytest.mark.parametrize("name", ["none.pdf", "../../../etc/passwd", "/etc/passwd", ""])
def test_server_refuses_documents_outside_bundle(client, bundle_key, name):
    for path in (f"document?name={quote(name)}", f"sheet?name={quote(name)}&page=1", f"page/1?name={quote(name)}"):
        assert client.get(f"bundle/{bundle_key}/{path}").status_code == 400, path


def test_library_lists_no_bundles_behind_links_out_of_its_folders(served, tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "link").symlink_to(served / "datasets_out", target_is_directory=True)
    assert Library([tmp_path / "inside"]).list_bundles() == []


def test_run_page_regenerates_report_instead_of_serving_stored_file(client, served):
    hostile = served / "results" / "first" / "report.html"
    hostile.write_text("<script>fetch('..')</script>HOSTILE", encoding="utf-8")
    response = client.get(f"run/{key_of((served / 'results' / 'first').resolve())}")
    assert response.status_code == 200 and "HOSTILE" not in response.text and "All bundles and runs" in response.text
    folder = re.search(r'"folder":"([^"]+)"', response.text)
    assert folder and client.get(str(response.url).replace("report.html", f"{folder[1]}/c0.js")).status_code == 200
    assert client.get(str(response.url).replace("report.html", "%2e%2e/%2e%2e/jobs")).status_code in (400, 404)


def test_run_result_is_refused_when_summary_does_not_match_rows(client, served):
    path = served / "results" / "second" / "summary.json"
    kept = path.read_text(encoding="utf-8")
    means = json.loads(kept)
    name = next(name for name, estimate in means.items() if estimate["mean"] is not None)
    means[name]["mean"] = 0.999
    path.write_text(json.dumps(means), encoding="utf-8")
    try:
        response = client.get(f"run/{key_of(path.parent.resolve())}/result")
        assert response.status_code == 400 and "does not match the rows of the run" in response.text
    finally:
        path.write_text(kept, encoding="utf-8")


def test_trend_page_includes_runs_of_all_served_folders(served, tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    other = tmp_path / "nightly"
    for name in ("first", "third"):
        shutil.copytree(served / "results" / "first", other / name)
    app = make_application([served / "results", other / "first", other / "third"], token=TOKEN)
    with TestClient(app, base_url=f"http://{HOST}/{TOKEN}/") as client:
        text = client.get(client.post("trend", json={}, headers=ORIGIN).json()["open"]).text
    row = r'<tr id="run-(\d)"><th scope="row"><span class="number">(\d)</span>\s*(?:<a [^>]*>)?([^<]+)'
    rows = re.findall(row, text)
    assert [number for number, _, _ in rows] == [shown for _, shown, _ in rows] == ["4", "3", "2", "1"]
    paths = {str((folder / "first").resolve()) for folder in (served / "results", other)}
    assert {name for _, _, name in rows} == {"second", "third", *paths}, "paths distinguish equal names"


def test_home_marks_damaged_and_unfinished_runs(client, served):
    for name, config in (("broken", "{"), ("died", (served / "results" / "first" / "config.json").read_text())):
        (served / "results" / name).mkdir()
        (served / "results" / name / "config.json").write_text(config, encoding="utf-8")
    try:
        text = client.get("").text
        assert "broken" in text and "not finished" in text and "second" in text
        page = client.get(f"run/{key_of((served / 'results' / 'died').resolve())}").text
        assert "did not finish" in page and "--resume" in page
    finally:
        for name in ("broken", "died"):
            (served / "results" / name / "config.json").unlink()
            (served / "results" / name).rmdir()


def add_question(name: str, client: TestClient, served: Path, key: str) -> httpx.Response:
    bundle = open_bundle(served / "datasets_out" / "policies")
    line = next(line for line in bundle.gold if line.spans)
    marked = {"filename": line.filename, "spans": [list(line.spans[0])], "text": words_at(client, key, line)}
    value = {"reviewer": name, "question": "What do they collect?", "contexts": [marked], "filename": line.filename}
    return client.post(f"bundle/{key}/question", json=value, headers=ORIGIN)


def words_at(client: TestClient, key: str, line) -> str:
    sheet = client.get(f"bundle/{key}/sheet?name={quote(line.filename)}&page={line.pages[0]}").json()
    start, end = line.spans[0]
    return " ".join(word[2] for word in sheet["words"] if start <= word[0] and word[1] <= end)


def test_review_apply_adds_question_of_reviewer_with_located_gold(client, served, bundle_key, tmp_path, capsys):
    reviews = served / "datasets_out" / "policies-review"
    assert add_question("Ada", client, served, bundle_key).json() == {"added": 1}
    files = sorted(map(str, reviews.glob("review-*.json")))
    out = tmp_path / "reviewed"
    assert review(["apply", *files, "--bundle", str(served / "datasets_out" / "policies"), "--out", str(out)]) == 0
    assert "1 questions added" in capsys.readouterr().out
    made = open_bundle(out)
    assert made.questions[-1].question == "What do they collect?" and len(made.questions) == 20
    gold = [line for line in made.gold if line.id == made.questions[-1].id]
    assert gold[0].spans and gold[0].labels["added_by"] == "Ada"
    for path in reviews.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    "change", [{"reviewer": ""}, {"question": " "}, {"filename": "none.pdf"}, {"more": 1}, {"contexts": "x"}]
)
def test_server_refuses_invalid_question_of_reviewer(client, bundle_key, change):
    value = {"reviewer": "Ada", "question": "What?", "contexts": []} | change
    assert client.post(f"bundle/{bundle_key}/question", json=value, headers=ORIGIN).status_code == 400


def make_review(reviewer: str, *cases: dict) -> dict:
    sample = {"size": 19, "of": 19, "seed": 1, "by": []}
    head = {"format": "exhibit-review/1", "review": "page", "of": "run", "run": "first", "sample": sample}
    return {**head, "reviewer": reviewer, "cases": list(cases)}


def test_concurrent_reviews_lose_no_judgment(client, served):
    key = key_of((served / "results" / "first").resolve())

    def judge(given: tuple[str, int]) -> int:
        name, id = given
        case = {"dataset": "policies", "id": id, "gold": "right"}
        return client.post(f"reviews/{key}", json=make_review(name, case), headers=ORIGIN).status_code

    every = [(name, id) for id in range(12) for name in ("Ada", "Ben")]
    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(judge, every)) == {200}
    files = sorted((served / "results" / "first" / "review").glob("review-*.json"))
    kept = {review.reviewer: {case.id for case in review.cases} for review in map(read_review, files)}
    assert kept == {"Ada": set(range(12)), "Ben": set(range(12))}
    again = client.get(f"reviews/{key}?review=page&reviewer=Ada").json()
    assert len(again["cases"]) == 12, "the page shows the stored judgments of the reviewer"


def test_server_refuses_invalid_or_oversized_judgment(client, served):
    key = key_of((served / "results" / "first").resolve())
    case = {"dataset": "policies", "id": 1, "gold": "maybe"}
    assert client.post(f"reviews/{key}", json=make_review("Ada", case), headers=ORIGIN).status_code == 400
    assert client.post(f"reviews/{key}", content=b"x" * 3_000_000, headers=ORIGIN).status_code == 400


@pytest.mark.parametrize(
    ("name", "folder"), [("Smith v. Jones 12/2024", "Smith-v.-Jones-12-2024"), ("../Jones", "Jones")]
)
def test_upload_accepts_a_name_with_a_slash(name, folder, client, served):
    response = client.put(f"upload/{quote(name, safe='')}/a.txt", content=b"words", headers=ORIGIN)
    assert response.status_code == 200
    assert (served / "datasets_out" / f"{folder}-documents" / "a.txt").read_bytes() == b"words"


@pytest.mark.parametrize(
    ("name", "kept"), [("a.pdf", "a.pdf"), ("..%2F..%2Fetc%2Fx.txt", None), ("a:b.txt", make_file_name("a:b.txt"))]
)
def test_upload_stores_file_under_safe_name_in_the_upload_folder(client, served, name, kept):
    response = client.put(f"upload/mine/{name}", content=b"words", headers=ORIGIN)
    folder = served / "datasets_out" / "mine-documents"
    if kept is None:
        assert response.status_code in (400, 404) or not (served.parent / "etc").exists()
    else:
        assert response.json() == {"file": kept} and (folder / kept).read_bytes() == b"words"


def test_make_file_name_gives_each_name_its_own_file_name_and_never_changes_it():
    names = ["a:b.txt", "a_b.txt", "a?b.txt", "..a_b.txt"]
    assert len({make_file_name(name) for name in names}) == len(names)
    assert make_file_name("a:b.txt") == make_file_name("a:b.txt") and make_file_name("a:b.txt").endswith(".txt")


@pytest.mark.parametrize(
    ("typed", "folder"),
    [
        ("Smith matter 12", "Smith-matter-12"),
        ("Müller & Söhne", "Muller-Sohne"),
        ("../../etc", "etc"),
        ("a" * 99, "a" * 60),
    ],
)
def test_make_folder_name_turns_any_typed_name_into_a_safe_name(typed, folder):
    assert make_folder_name(typed) == folder
    assert re.fullmatch(r"documents-[0-9a-f]{8}", make_folder_name("契約書"))


MALFORMED = [
    ("POST", "compare", b'{"runs": 5}'),
    ("POST", "compare", b"[" * 100_000),
    ("POST", "evaluate", b'{"bundle": "KEY", "run": 5}'),
    ("POST", "evaluate", b'{"bundle": {"a": 1}}'),
    ("POST", "draft", b'{"name": ["x"]}'),
    ("POST", "draft", b"\xff"),
    ("POST", "apply", b"null"),
    ("POST", "bundle/KEY/question", b"[]"),
    ("POST", "reviews/KEY", b"{}"),
    ("GET", "bundle/KEY/sheet?name=NAME&page=-5", b""),
    ("GET", "bundle/KEY/sheet?name=NAME&page=999", b""),
    ("GET", "bundle/KEY/sheet?name=NAME&page=x", b""),
    ("GET", "bundle/KEY/document?name=NAME&page=x", b""),
    ("GET", "bundle/KEY/page/999?name=NAME", b""),
    ("GET", "job/%2e%2e", b""),
    ("GET", "drawn/%2e%2e/texts.sqlite", b""),
    ("GET", "drawn/x/%00", b""),
]


def test_malformed_requests_are_refused_without_traceback(client, served, bundle_key):
    name = quote(next(iter(open_bundle(served / "datasets_out" / "policies").files)))
    client.get(f"bundle/{bundle_key}?text=location")  # make a file that can be requested
    for method, path, body in MALFORMED:
        address = path.replace("KEY", bundle_key).replace("NAME", name)
        response = client.request(method, address, content=body.replace(b"KEY", bundle_key.encode()), headers=ORIGIN)
        assert response.status_code in (400, 404) and "Traceback" not in response.text, (path, body[:20])


def test_interrupted_upload_leaves_no_file_and_no_traceback(served, tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    app, sent = make_application([served / "datasets_out"], token=TOKEN), list[dict]()
    headers = [(b"host", HOST.encode()), (b"origin", f"http://{HOST}".encode())]
    scope = {"type": "http", "method": "PUT", "path": f"/{TOKEN}/upload/cut/a.txt", "query_string": b""}
    scope |= {"headers": headers, "root_path": "", "raw_path": b"", "scheme": "http"}

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: dict) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 400 and b"ended early" in sent[1]["body"]
    assert not (served / "datasets_out" / "cut-documents").exists()


def test_text_search_marks_matches_and_links_to_the_page_of_each_match(client, served, bundle_key):
    wait(lambda: "being read for the first time" not in client.get(f"bundle/{bundle_key}?text=information").text)
    text = client.get(f"bundle/{bundle_key}?text=inform").text
    assert "<mark>information</mark>" in text, "a search matches the beginning of a word"
    link = re.search(r'href="([^"]+document[^"]+page=\d+&amp;words=inform)"', text)
    assert link and '"words":["inform"]' in client.get(f"bundle/{link[1].replace('&amp;', '&')}").text
    assert "0 documents have" in client.get(f"bundle/{bundle_key}?text=zzzqqq").text
    for words in ('"', "AND OR (", 'a"b', "*", "x" * 300):
        assert client.get(f"bundle/{bundle_key}", params={"text": words}).status_code in (200, 400), words


def test_text_search_matches_exact_phrase_and_names_unreadable_documents(tmp_path):
    (tmp_path / "a.txt").write_text("The notice period is thirty days. Governing law: England.", encoding="utf-8")
    (tmp_path / "b.txt").write_text("The period of notice is short; the law governing it is ours.", encoding="utf-8")
    (tmp_path / "c.pdf").write_bytes(b"no document")
    search = TextSearch(tmp_path / "texts.sqlite", engine=open_engine("serial"))
    files = {path.name: path for path in sorted(tmp_path.glob("*.*")) if path.suffix in (".txt", ".pdf")}
    result = search.find(files, '"notice period"', wait=60)
    assert [name for name, _ in result.documents] == ["a.txt"] and list(result.unread) == ["c.pdf"]
    assert {name for name, _ in search.find(files, "notice law").documents} == {"a.txt", "b.txt"}
    assert search.find(files, "zebra").total == 0


def test_count_replies_counts_repeated_question_once(tmp_path):
    path = tmp_path / "leases" / "journal.jsonl"
    path.parent.mkdir()
    lines = [
        json.dumps({"id": n % 3, "question": f"q{n % 3}", "reply": {"error": "" if n > 2 else "x"}}) for n in range(5)
    ]
    path.write_text("\n".join(lines) + '\n{"id": 9', encoding="utf-8")
    assert count_replies(tmp_path) == 3


@pytest.mark.parametrize("folder", ["../results", "/etc", "none"])
def test_draft_refuses_folders_outside_first_served_folder(client, folder):
    assert client.post("draft", json={"name": "x", "folder": folder}, headers=ORIGIN).status_code == 400


def wait(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_jobs_report_final_state_and_output_after_server_restart(tmp_path):
    jobs = Jobs(tmp_path / "jobs")
    fine, wrong = (jobs.start("one", words, cwd=tmp_path, out=tmp_path) for words in (["--version"], ["no-such-verb"]))
    wait(lambda: jobs.find_state(fine) != "running" and jobs.find_state(wrong) != "running")
    later = Jobs(tmp_path / "jobs")
    assert later.find_state(fine) == "finished" and "exhibit" in later.read_output(fine)
    assert later.find_state(wrong) == "failed" and "no verb" in later.read_output(wrong)
    assert {job.key for job in later.all()} == {fine.key, wrong.key}
    wait(lambda: len(jobs.all()) == 2 and not jobs._processes)  # ended processes are reaped


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signal")
def test_jobs_report_killed_process_as_ended_unexpectedly(tmp_path):
    jobs = Jobs(tmp_path / "jobs")
    place = tmp_path / "jobs" / "ab"
    place.mkdir()
    fields = {"key": "ab", "title": "t", "words": ["--version"], "cwd": str(tmp_path), "began": 1.0, "out": ""}
    (place / "job.json").write_text(json.dumps(fields), encoding="utf-8")
    assert jobs.find_state(jobs.get("ab")) == "ended unexpectedly"
    with pytest.raises(Exception, match="no job has this address"):
        jobs.get("../ab")


def test_job_state_shows_number_of_documents_before_the_first_progress_line(client, tmp_path):
    documents = tmp_path / "letters"
    documents.mkdir()
    for name in ("a.txt", "b.txt"):
        (documents / name).write_text("words", encoding="utf-8")
    [jobs] = (tmp_path / "cache" / "view").glob("*/jobs")
    (jobs / "ab").mkdir()
    words = ["draft", "--source", str(documents), "--out", str(tmp_path / "out")]
    fields = {"key": "ab", "title": "t", "words": words, "cwd": "", "began": time.time() - 9, "out": words[-1]}
    (jobs / "ab" / "job.json").write_text(json.dumps(fields), encoding="utf-8")
    state = client.get("job/ab/state").json()
    assert (state["step"], state["total"]) == ("2 documents are being read", 0) and 9 <= state["seconds"] < 60
    (jobs / "ab" / "output.txt").write_text("drafts: 1/2 docs, 3.00s/doc, 00:03 left\n", encoding="utf-8")
    state = client.get("job/ab/state").json()
    assert (state["step"], state["done"], state["total"]) == ("drafts", 1, 2)


@pytest.mark.slow
def test_evaluation_job_can_be_stopped_and_resumed(client, served, bundle_key, rag_server):
    url, go_on = rag_server
    value = {"bundle": bundle_key, "url": url, "run": "stopped"}
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as in a program that a shell starts in the background
    try:
        job = client.post("evaluate", json=value, headers=ORIGIN).json()["open"]
    finally:
        signal.signal(signal.SIGINT, before)
    wait(lambda: client.get(f"http://{HOST}{job}/state").json()["done"] >= 2)
    assert client.post(f"http://{HOST}{job}/stop", json={}, headers=ORIGIN).status_code == 200
    wait(lambda: client.get(f"http://{HOST}{job}/state").json()["state"] != "running")
    state = client.get(f"http://{HOST}{job}/state").json()
    assert state["state"] == "stopped" and state["resumable"] and 2 <= state["done"] < 19
    go_on.set()
    again = client.post(f"http://{HOST}{job}/resume", json={}, headers=ORIGIN).json()["open"]
    wait(lambda: client.get(f"http://{HOST}{again}/state").json()["state"] != "running")
    state = client.get(f"http://{HOST}{again}/state").json()
    assert state["state"] == "finished" and client.get(f"http://{HOST}{state['open']}").status_code == 200


@pytest.fixture
def rag_server() -> Iterator[tuple[str, threading.Event]]:
    """A RAG server that answers four questions, and answers further ones only when the yielded event is set."""
    go_on, asked = threading.Event(), itertools.count(1)

    def reply(_: ImitatedSystem, request: Request) -> object:
        if request.method == "POST" and next(asked) > 4:  # two questions before the run, and two questions of the run
            go_on.wait()
        return {"answer": "They collect your location.", "sources": []} if request.method == "POST" else 404

    with imitating(reply, []) as system:
        yield f"{system.url}/ask", go_on
        go_on.set()


def test_view_command_prints_address_and_ends_with_ctrl_c(tmp_path):
    command = [sys.executable, "-m", "exhibit", "view", str(tmp_path), "--no-browser"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    address = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", process.stderr.readline())
    assert address
    wait(lambda: _answers(address[0]))
    assert "No bundle yet" in httpx.get(address[0]).text
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) in (0, 130, -signal.SIGINT)


def _answers(address: str) -> bool:
    try:
        return httpx.get(address).status_code == 200
    except httpx.HTTPError:
        return False
