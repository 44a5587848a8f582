"""Serves the bundles and runs of folders on a loopback address, and opens the browser.

examples:
    exhibit view                       datasets_out and results in this folder
    exhibit view matter results        other folders
    exhibit view --no-browser --port 8123

Everything stays on this machine: the address contains a random token, and no other page can use the server.
"""

import hashlib
import os
import re
import secrets
import socket
import time
import unicodedata
import webbrowser
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import uvicorn
from pydantic import BaseModel, Field
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from exhibit.evidence import ocr
from exhibit.evidence.read import render_within
from exhibit.evidence.scan import list_ocr_engines
from exhibit.evidence.show import compress_image
from exhibit.rag.config import list_presets
from exhibit.runtime.command import build_parser, guarded, print_note
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.layout import TRAIN
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.review import AddedQuestion, Review, read_review
from exhibit.schemas.run import REPORT, SUMMARY
from exhibit.storage.atomic import write_whole
from exhibit.storage.cache import find_cache_folder
from exhibit.viewer.compare import write_comparison
from exhibit.viewer.page import as_json, format_page, render
from exhibit.viewer.report import write_report
from exhibit.viewer.review.make import make_review, make_sheet
from exhibit.viewer.review.reviews import DraftedBundle, ReviewedRun
from exhibit.viewer.server import library
from exhibit.viewer.server.jobs import Jobs, find_progress
from exhibit.viewer.server.library import Library, RunLine, count_replies, key_of, list_questions
from exhibit.viewer.server.search import TextSearch
from exhibit.viewer.trend import write_trend

_SAMPLE = 40  # questions of a review page
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\:*?\"<>|]")
_MAX_FILE_NAME_BYTES = 200
_MAX_BODY_BYTES = 2_000_000  # most bytes of a judgment or a question
_MAX_UPLOAD_BYTES = 200_000_000
_MAX_SEARCH_CHARS = 200
_LISTED = 100  # most documents and questions on a page; the search finds the others
_HOME = "../../"  # the path from a page in a folder of `drawn` to the start page
_PICTURE_WIDTH = 900  # pixels
EXPECTED = (ToolkitError, ValueError, ClientDisconnect)  # malformed values of a request are ValueErrors

Body = TypeVar("Body", bound=BaseModel)


class Form(BaseModel):
    """The data that a page sends to compare runs, apply a bundle's reviews, draft questions, or start an evaluation."""

    runs: list[str] = []
    bundle: str = Field("", max_length=100)
    run: str = Field("", max_length=200)
    url: str = Field("", max_length=2000)
    preset: str = Field("", max_length=60)
    name: str = Field("", max_length=200)  # the name of the new set of documents, on which questions are drafted
    folder: str = Field("", max_length=1000)


class QuestionRequest(AddedQuestion):
    reviewer: str = Field(max_length=library.MAX_NAME_CHARS)


class Views:
    """The request handlers for the served folders.

    Uploaded documents and drafted bundles are written to the first folder, runs to the last.
    """

    def __init__(self, folders: Sequence[Path], *, token: str) -> None:
        self.library, self._token = Library(folders), token
        digest = hashlib.sha256("\0".join(map(str, self.library.folders)).encode()).hexdigest()[:16]
        self.state = find_cache_folder() / "view" / digest
        self._drawn = self.state / "drawn"
        self._drawn.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.jobs = Jobs(self.state / "jobs")
        self.texts = TextSearch(self.state / "texts.sqlite")

    def make_routes(self) -> list[BaseRoute]:
        """Return all routes, relative to `http://HOST:PORT/TOKEN/`.

        Starlette runs handlers without `async` in a thread.
        """
        get = {
            "/": self.show_home, "/bundle/{key}": self.show_bundle, "/bundle/{key}/document": self.show_document,
            "/bundle/{key}/sheet": self.show_sheet, "/bundle/{key}/page/{number:int}": self.show_picture,
            "/run/{key}": self.show_run, "/run/{key}/result": self.show_result, "/job/{key}": self.show_job,
            "/job/{key}/state": self.show_job_state, "/review/{key}": self.show_review,
            "/reviews/{key}": self.show_saved,
        }  # fmt: skip
        post = {
            "/compare": self.compare, "/trend": self.draw_trend, "/draft": self.draft, "/evaluate": self.evaluate,
            "/apply": self.apply_reviews, "/job/{key}/stop": self.stop, "/job/{key}/resume": self.resume,
        }  # fmt: skip
        routes: list[BaseRoute] = [Route(path, work) for path, work in get.items()]
        routes += [Route(path, with_body(work, Form), methods=["POST"]) for path, work in post.items()]
        routes.append(Route("/bundle/{key}/question", with_body(self.add_question, QuestionRequest), methods=["POST"]))
        routes.append(Route("/reviews/{key}", with_body(self.save, Review), methods=["POST"]))
        # serve only pages that this server wrote: the report of a stranger's run could send requests to this server
        routes.append(Mount("/drawn", StaticFiles(directory=self._drawn)))
        return [*routes, Route("/upload/{name:path}/{file}", self.upload, methods=["PUT"])]

    def show_home(self, _: Request) -> Response:
        jobs = [(job, self.jobs.find_state(job)) for job in self.jobs.all()]
        values: dict[str, Any] = {"bundles": self.library.list_bundles(), "runs": self.library.list_runs()}
        values["jobs"] = [pair for pair in jobs if pair[1] == "running"]
        values["ended"] = [pair for pair in jobs if pair[1] != "running"][:10]
        values |= {"folder": self.library.folders[0], "max_megabytes": _MAX_UPLOAD_BYTES // 1_000_000}
        values["ocr"] = any(name for name in list_ocr_engines() if not load_plugin(ocr.__name__, name)[0].missing("en"))
        return _format("Bundles and runs", "view.html.j2", {}, located=count_located, **values)

    def show_bundle(self, request: Request) -> Response:
        """Return the page of a bundle; the query filters questions (`find`) or searches documents (`text`)."""
        key, query = request.path_params["key"], request.query_params
        bundle = self.library.open_bundle(key)
        words, wanted = query.get("text", "").strip(), query.get("find", "").lower().split()
        if len(words) > _MAX_SEARCH_CHARS:
            raise ToolkitError(f"a search may have at most {_MAX_SEARCH_CHARS} characters")
        found = self.texts.find(bundle.files, words) if words else None
        questions = list_questions(bundle)
        shown = [line for line in questions if all(word in line.searched for word in wanted)]
        counts, named = Counter(line.document for line in questions), {line.document for line in shown}
        names = (name for name in bundle.files if name in named or all(word in name.lower() for word in wanted))
        documents = [(name, counts[name]) for name in names]
        files = library.list_reviews(library.find_review_folder(bundle.root))
        values: dict[str, Any] = {"key": key, "bundle": bundle, "words": words, "found": found, "reviews": len(files)}
        values |= {"find": query.get("find", ""), "presets": list_presets(), "listed": _LISTED}
        values |= {"documents": documents, "questions": shown, "located": bundle.info and count_located(bundle.info)}
        values["added"] = sum(len(read_review(path).added) for path in files)
        data = {"key": key, "again": found is not None and found.read < found.of}
        return _format(bundle.root.name, "view_bundle.html.j2", data, **values)

    def show_document(self, request: Request) -> Response:
        key, query = request.path_params["key"], request.query_params
        name, question = query.get("name", ""), query.get("question", "")
        bundle, document = self.library.open_bundle(key), self.library.open_document(key, name)
        questions = list_questions(bundle)
        gold = (line for line in bundle.gold if line.filename == name and str(line.id) == question)
        first = query.get("page") or next((line.pages[0] for line in gold if line.pages), 1)
        data = {"key": key, "name": name, "pages": [page.number for page in document.pages] or [0]}
        data |= {"first": int(first), "words": query.get("words", "").lower().split()}
        values = {"questions": [line for line in questions if line.document == name], "bundle": bundle.root.name}
        selected = next((line for line in questions if str(line.id) == question), None)
        return _format(name, "view_document.html.j2", data, True, key=key, name=name, question=selected, **values)

    def show_sheet(self, request: Request) -> Response:
        """Return a page's words with their positions and the spans of gold, for the script that marks words."""
        key, name = request.path_params["key"], request.query_params.get("name", "")
        number = int(request.query_params.get("page", "0"))
        document = self.library.open_document(key, name)
        if not 0 <= number <= len(document.pages):
            raise ToolkitError(f"{name}: no page {number}")
        gold = [span for line in self.library.open_bundle(key).gold if line.filename == name for span in line.spans]
        return JSONResponse({**make_sheet(document, number, gold, f"page/{number}?name={quote(name)}"), "gold": gold})

    def show_picture(self, request: Request) -> Response:
        name, number = request.query_params.get("name", ""), request.path_params["number"]
        document = self.library.open_document(request.path_params["key"], name)
        width = document.pages[number - 1].width if 0 < number <= len(document.pages) else 0
        if document.path is None or not width:
            raise ToolkitError(f"{name}: no page {number}")
        data, kind = compress_image(render_within(document.path, number, scale=_PICTURE_WIDTH / width))
        return Response(data, media_type=f"image/{kind}")

    def show_run(self, request: Request) -> Response:
        """Redirect to the report of a run; for a run that is unfinished or damaged, return a page with its state."""
        line = next((line for line in self.library.list_runs() if line.key == request.path_params["key"]), None)
        if line is None:
            raise ToolkitError("no run has this name; it may have been moved")
        if not line.finished or line.fault:
            job = next((job for job in self.jobs.all() if job.out == str(line.folder)), None)
            return _format(line.name, "view_run.html.j2", {}, line=line, replies=count_replies(line.folder), job=job)
        folder = self._make_folder("report", [line])
        if not (folder / REPORT).is_file():
            write_report(line.folder, out=folder / REPORT, home=_HOME)
        return RedirectResponse(f"/{self._token}/drawn/{folder.name}/{REPORT}", status_code=303)

    def show_result(self, request: Request) -> Response:
        """Return a run's result in words; the first call for a run reads all its rows."""
        return PlainTextResponse(self.library.describe_run(request.path_params["key"]))

    def compare(self, _: Request, form: Form) -> Response:
        lines = [line for line in self.library.list_runs() if line.key in form.runs]
        if len(lines) < 2:
            raise ToolkitError("select at least two runs")
        folder = self._make_folder("compare", lines)
        folders = [line.folder for line in reversed(lines)]  # oldest first
        write_comparison(folders, out=folder / "compare.html", home=_HOME)
        return JSONResponse({"open": f"drawn/{folder.name}/compare.html"})

    def draw_trend(self, _: Request, _form: Form) -> Response:
        lines = self.library.list_runs()
        folder = self._make_folder("trend", lines)
        write_trend([line.folder for line in lines], folder / "index.html", home=_HOME)
        return JSONResponse({"open": f"drawn/{folder.name}/index.html"})

    def _make_folder(self, kind: str, lines: Sequence[RunLine]) -> Path:
        """Return the folder for a page about runs; if a run changes, the page gets another folder."""
        summaries = [line.folder / SUMMARY for line in lines if (line.folder / SUMMARY).is_file()]
        stamps = [(str(path), path.stat().st_mtime_ns) for path in summaries]
        folder = self._drawn / hashlib.sha256(repr((kind, stamps)).encode()).hexdigest()[:16]
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return folder

    def show_review(self, request: Request) -> Response:
        """Write a review page and redirect to it; the page sends every judgment to this server."""
        key = request.path_params["key"]
        root, folder = self.library.find_folder(key), self._drawn / f"review-{key}"
        bundles = [str(line.folder) for line in self.library.list_bundles()]
        reviewed = DraftedBundle(root) if (root / TRAIN).is_file() else ReviewedRun(root, paths=bundles)
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        make_review(reviewed, folder / "review.html", size=_SAMPLE, seed=1, save=f"../../reviews/{key}")
        return RedirectResponse(f"/{self._token}/drawn/{folder.name}/review.html", status_code=303)

    def show_saved(self, request: Request) -> Response:
        """Return the review that a person has saved so far; null if there is none."""
        query, root = request.query_params, self.library.find_folder(request.path_params["key"])
        folder = library.find_review_folder(root)
        path = library.make_review_path(folder, query.get("review", ""), query.get("reviewer", "").strip())
        return JSONResponse(read_review(path).model_dump() if path.is_file() else None)

    def save(self, request: Request, review: Review) -> Response:
        folder = library.find_review_folder(self.library.find_folder(request.path_params["key"]))
        return JSONResponse({"cases": len(library.save_review(folder, review).cases)})

    def add_question(self, request: Request, body: QuestionRequest) -> Response:
        key = request.path_params["key"]
        bundle = self.library.open_bundle(key)
        question = AddedQuestion.model_validate(body.model_dump(exclude={"reviewer"}))
        for name in [*(context.filename for context in question.contexts), question.filename]:
            if name not in bundle.files:
                raise ToolkitError(f"{name}: no such document in this bundle")
        review = library.begin_review(f"added-{key}", bundle.root.name, body.reviewer, question)
        return JSONResponse({"added": len(library.save_review(library.find_review_folder(bundle.root), review).added)})

    def apply_reviews(self, _: Request, form: Form) -> Response:
        root = self.library.open_bundle(form.bundle).root
        files = library.list_reviews(library.find_review_folder(root))
        if not files:
            raise ToolkitError("this bundle has no review and no new question yet; add one first")
        out = _find_free(root.with_name(f"{root.name}-reviewed"))
        words = ["review", "apply", *map(str, files), "--bundle", str(root), "--out", str(out)]
        return self._start(f"Make {out.name}", words, out)

    async def upload(self, request: Request) -> Response:
        """Save an uploaded document, under a safe name, in a subfolder of the first served folder."""
        folder = self.library.folders[0] / f"{make_folder_name(request.path_params['name'])}-documents"
        name = make_file_name(request.path_params["file"])
        data = await _read_bytes(request, most=_MAX_UPLOAD_BYTES)
        folder.mkdir(parents=True, exist_ok=True)
        await run_in_threadpool(write_whole, folder / name, data)
        return JSONResponse({"file": name})

    def draft(self, _: Request, form: Form) -> Response:
        """Start a job that drafts questions on uploaded documents, or on a folder below the first served folder."""
        root = self.library.folders[0]
        source = root / (form.folder or f"{make_folder_name(form.name)}-documents")
        if not source.is_dir() or not source.resolve().is_relative_to(root):
            raise ToolkitError(f"{source.name}: no such folder in {root.name}; upload documents first")
        out = _find_free(root / make_folder_name(form.name))
        return self._start(f"Draft questions: {form.name}", ["draft", "--source", str(source), "--out", str(out)], out)

    def evaluate(self, _: Request, form: Form) -> Response:
        bundle = self.library.open_bundle(form.bundle)
        out = _find_free(self.library.folders[-1] / make_folder_name(form.run or f"{bundle.root.name}-run"))
        words = ["evaluate", str(bundle.root), "--output-dir", str(out.parent), "--run-name", out.name]
        words += ["--target-url", form.url] if form.url else ["--preset", form.preset] if form.preset else []
        return self._start(f"Test on {bundle.root.name}: {out.name}", words, out)

    def _start(self, title: str, words: Sequence[str], out: Path) -> Response:
        job = self.jobs.start(title, words, cwd=self.library.folders[0].parent, out=out)
        return JSONResponse({"open": f"/{self._token}/job/{job.key}"})

    def show_job(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["key"])
        return _format(job.title, "view_job.html.j2", {"job": job.key}, job=job, state=self.jobs.find_state(job))

    def show_job_state(self, request: Request) -> Response:
        job = self.jobs.get(request.path_params["key"])
        state, output, out = self.jobs.find_state(job), self.jobs.read_output(job), Path(job.out)
        step, done, total = find_progress(output)
        fields: dict[str, Any] = {"state": state, "output": output, "resumable": False, "open": ""}
        fields["seconds"] = int(time.time() - job.began)
        if job.words[0] == "evaluate" and out.is_dir():
            total = len(self.library.open_bundle(key_of(Path(job.words[1]))).questions)
            step, done = "questions", count_replies(out)
            fields["resumable"] = state not in ("running", "finished")
        elif not total and job.words[0] == "draft":
            count = sum(path.is_file() for path in Path(job.words[2]).rglob("*"))
            step = f"{count} {'document is' if count == 1 else 'documents are'} being read"
        inside = any(out.resolve().is_relative_to(folder) for folder in self.library.folders)
        if state == "finished" and inside and out.is_dir():
            kind = "bundle" if (out / TRAIN).is_file() else "run"
            fields["open"] = f"/{self._token}/{kind}/{key_of(out.resolve())}"
        return JSONResponse({**fields, "step": step, "done": min(done, total), "total": total})

    def stop(self, request: Request, _: Form) -> Response:
        self.jobs.stop(self.jobs.get(request.path_params["key"]))
        return JSONResponse({})

    def resume(self, request: Request, _: Form) -> Response:
        job = self.jobs.get(request.path_params["key"])
        if job.words[0] != "evaluate" or self.jobs.find_state(job) in ("running", "finished"):
            raise ToolkitError("only an evaluation that was stopped can be resumed")
        words = [*(word for word in job.words if word != "--resume"), "--resume"]
        return self._start(job.title, words, Path(job.out))


def with_body(work: Callable[[Request, Body], Response], kind: type[Body]) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that reads the request's JSON, and calls a function with it in a thread."""

    async def handle(request: Request) -> Response:
        body = kind.model_validate_json(await _read_bytes(request))
        return await run_in_threadpool(work, request, body)

    return handle


def refuse(_: Request, error: Exception) -> Response:
    """Turn an expected error into a reply with status 400 and a message of one line."""
    return PlainTextResponse(f"{(str(error) or 'the upload ended early').splitlines()[0]}\n", status_code=400)


async def _read_bytes(request: Request, most: int = _MAX_BODY_BYTES) -> bytes:
    data = bytearray()
    async for block in request.stream():
        data += block
        if len(data) > most:
            raise ToolkitError(f"the upload is larger than the limit of {most // 1_000_000} MB")
    return bytes(data)


def make_folder_name(text: str) -> str:
    """Return a folder's name made from what a person typed: `Smith matter 12` becomes `Smith-matter-12`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    name = re.sub(r"[^\w.-]+", "-", plain)[:60].strip("-_.")
    if not name and not text.strip():
        raise ToolkitError("enter a name first")
    # the name has no Latin letter
    return name or f"documents-{hashlib.sha256(text.strip().encode('utf-8', 'replace')).hexdigest()[:8]}"


def make_file_name(name: str) -> str:
    """Return a safe name for an uploaded file; a changed name gets a digest, which makes it unique."""
    safe = _UNSAFE.sub("_", name).lstrip(".") or "document"
    if safe != name:
        stem, dot, ending = safe.rpartition(".")
        digest = hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:6]
        safe = f"{stem}-{digest}.{ending}" if dot else f"{ending}-{digest}"
    if len(safe.encode("utf-8", "replace")) > _MAX_FILE_NAME_BYTES:
        raise ToolkitError(f"{safe[:40]}…: the file's name is too long; rename the file")
    return safe


def _find_free(path: Path) -> Path:
    """Return a path that does not exist yet; if the name is taken, a number is added."""
    others = (path.with_name(f"{path.name}-{number}") for number in range(2, 10_000))
    return path if not os.path.lexists(path) else next(other for other in others if not os.path.lexists(other))


def _format(title: str, template: str, data: Mapping[str, Any], marking: bool = False, **values: Any) -> Response:
    """Return a page made from a template, with the data for its script."""
    scripts = ["build.js", *(["marking.js"] if marking else []), "view.js"]
    title, body, blocks = f"{title} – Exhibit", render(template, **values), {"view": as_json(data)}
    return HTMLResponse(format_page(title, body, styles=["view.css"], scripts=scripts, data=blocks, served=True))


def count_located(info: BundleInfo) -> str:
    """Return how many of a bundle's gold passages are located, such as `90 of 100`."""
    total = sum(info.counts.located.values())
    return f"{total - info.counts.located.get('absent', 0):,} of {total:,}"


# ---------------------------------------------------------------- the server

FOLDERS = ("datasets_out", "results")  # the folders that are shown by default
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",  # keep the token, which is in the address, out of requests to other sites
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}  # the headers of every response


class Guard(BaseHTTPMiddleware):
    """Middleware that refuses a request without the token in its path, and a request from another site's page.

    The check of the Origin header stops forms on other sites; the check of the Host header prevents DNS rebinding.
    """

    def __init__(self, app: ASGIApp, *, token: str) -> None:
        super().__init__(app)
        self._token = token

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        request.scope["root_path"] = f"/{self._token}"
        response = self._refuse(request) or await call_next(request)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def _refuse(self, request: Request) -> Response | None:
        headers, path = request.headers, request.scope["path"]
        token = path.split("/")[1] if path.startswith("/") else ""
        if not secrets.compare_digest(token.encode(), self._token.encode()):
            return PlainTextResponse("open the address that `exhibit view` printed\n", 404)
        if request.method not in ("GET", "HEAD") and headers.get("origin") != f"http://{headers.get('host')}":
            return PlainTextResponse("only a page of this server may change data\n", 403)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("a page of another site sent this request\n", 403)
        return None


def make_application(folders: Sequence[Path], *, token: str) -> Starlette:
    """Return the web application that serves the bundles and runs in these folders; every request needs the token."""
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost"], www_redirect=False)
    guards = [hosts, Middleware(Guard, token=token)]
    handlers: dict[Any, Any] = dict.fromkeys(EXPECTED, refuse)
    return Starlette(routes=Views(folders, token=token).make_routes(), middleware=guards, exception_handlers=handlers)


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    parser = build_parser("exhibit view", __doc__)
    add = parser.add_argument
    add("folders", nargs="*", type=Path, metavar="FOLDER", help=f"bundles and runs (default: {' and '.join(FOLDERS)})")
    add("--port", type=int, default=0, help="the port (default: a free port)")
    add("--token", help="the secret part of the address (default: a random one)")
    add("--no-browser", action="store_true", help="print the address without opening a browser")
    options = parser.parse_args(argv)
    folders = options.folders or [Path(name) for name in FOLDERS]
    for folder in folders:
        if not options.folders:
            folder.mkdir(exist_ok=True)
        if not folder.is_dir():
            raise ToolkitError(f"{folder}: no such folder; name a folder with bundles or runs")
    try:
        listening = socket.create_server(("127.0.0.1", options.port))
    except (OSError, OverflowError) as error:
        raise ToolkitError(f"port {options.port}: cannot be opened: {error}; choose another --port") from error
    token = options.token or secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/{token}/"
    print_note(f"{address}\nCtrl-C stops the server; work started from its pages continues")
    if not options.no_browser:
        webbrowser.open(address)
    application = make_application(folders, token=token)
    uvicorn.Server(uvicorn.Config(application, log_level="warning", server_header=False)).run(sockets=[listening])
    return 0
