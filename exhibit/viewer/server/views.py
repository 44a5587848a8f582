"""The request handlers of `exhibit view`: they show bundles and runs, save reviews, and start jobs."""

import hashlib
import json
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from exhibit.evidence import Span
from exhibit.evidence.read import render_within
from exhibit.evidence.show import compress_image
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.layout import TRAIN
from exhibit.schemas.review import AddedQuestion, Review, read_review
from exhibit.schemas.run import REPORT, SUMMARY
from exhibit.storage.atomic import write_whole
from exhibit.storage.cache import find_cache_folder
from exhibit.viewer.comparison import write_comparison
from exhibit.viewer.report import write_report
from exhibit.viewer.review.drafts import DraftedBundle, Reviewed
from exhibit.viewer.review.make import make_review, sheet_of
from exhibit.viewer.review.source import BY, ReviewedRun
from exhibit.viewer.server import pages, saving
from exhibit.viewer.server.jobs import Job, Jobs
from exhibit.viewer.server.library import RunLine, ServedFolders, count_journal_lines, key_of
from exhibit.viewer.server.search import TextSearch
from exhibit.viewer.trend.index import write_trend

_SAMPLE = 40  # questions of a review page
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,59}")
_UNSAFE = re.compile(r"[\x00-\x1f\x7f/\\:*?\"<>|]")
_LONGEST_NAME = 200  # bytes of an uploaded file's name
_LONGEST_BODY = 2_000_000  # bytes of a judgment or a question
_LONGEST_SEARCH = 200  # characters of a search
_WIDTH = 900  # width of a page's picture in pixels

Handler = Callable[[Request], Awaitable[Response]]


class Views:
    """The request handlers for the served folders."""

    def __init__(self, folders: Sequence[Path], *, token: str, language: str = "en") -> None:
        """Store the folders and the token: new documents and bundles go to the first folder, runs to the last."""
        self.library, self.language, self._token = ServedFolders(folders), language, token
        digest = hashlib.sha256("\0".join(map(str, self.library.folders)).encode()).hexdigest()[:16]
        self.state = find_cache_folder() / "view" / digest
        self.jobs = Jobs(self.state / "jobs")
        self.texts = TextSearch(self.state / "texts.sqlite")

    def routes(self) -> list[Route]:
        """Return all routes of the server.

        Their paths are relative to the address with the random token: `http://HOST:PORT/TOKEN/`.
        """
        get: dict[str, Handler] = {
            "/": self.show_home, "/bundle/{key}": self.bundle, "/bundle/{key}/document": self.document,
            "/bundle/{key}/sheet": self.show_sheet, "/bundle/{key}/page/{number:int}": self.show_picture,
            "/run/{key}": self.run, "/drawn/{place}/{path:path}": self.show_drawn, "/job/{key}": self.show_job,
            "/job/{key}/state": self.show_job_state, "/review/{kind}/{key}": self.review,
            "/reviews/{key}": self.show_saved,
        }  # fmt: skip
        post: dict[str, Handler] = {
            "/compare": self.compare, "/trend": self.write_trend, "/draft": self.draft, "/evaluate": self.evaluate,
            "/apply": self.apply, "/bundle/{key}/question": self.question, "/reviews/{key}": self.save,
            "/job/{key}/stop": self.stop, "/job/{key}/resume": self.resume,
        }  # fmt: skip
        routes = [Route(path, handle_errors(work), methods=["GET"]) for path, work in get.items()]
        routes += [Route(path, handle_errors(work), methods=["POST"]) for path, work in post.items()]
        return [*routes, Route("/upload/{name}/{file}", handle_errors(self.upload), methods=["PUT"])]

    # ---------------------------------------------------------------- bundles and runs

    async def show_home(self, _: Request) -> Response:
        """Return the page of all bundles and runs."""
        jobs = [(job, self.jobs.find_state(job)) for job in self.jobs.all()]
        bundles, runs = await run_in_threadpool(self.library.list_bundles), await run_in_threadpool(self.library.runs)
        return HTMLResponse(pages.format_home(self.library.folders, bundles, runs, jobs, language=self.language))

    async def bundle(self, request: Request) -> Response:
        """Return the page of one bundle."""
        key = request.path_params["key"]
        bundle = await run_in_threadpool(self.library.bundle, key)
        folder = saving.review_folder(bundle.root, is_run=False)
        given = request.query_params
        chosen = {name.removeprefix("label-"): v for name, v in given.items() if name.startswith("label-") and v}
        words = pages.require(given.get("text", ""), "the words", most=_LONGEST_SEARCH).strip()
        found = await run_in_threadpool(self.texts.find, bundle.files, words) if words else None
        text = await run_in_threadpool(
            pages.format_bundle, bundle, key, find=given.get("find", ""), chosen=chosen, words=words, found=found,
            reviews=len(saving.list_reviews(folder)), added=saving.list_added(folder), language=self.language,
        )  # fmt: skip
        return HTMLResponse(text)

    async def document(self, request: Request) -> Response:
        """Return the page of one document."""
        key, name = request.path_params["key"], request.query_params.get("name", "")
        bundle = self.library.bundle(key)
        document = await run_in_threadpool(self.library.document, key, name)
        question = request.query_params.get("question", "")
        places = bundle.gold.get(name, [])
        first = next((line.pages[0] for line in places if str(line.id) == question and line.pages), 1)
        hit = [int(request.query_params[field]) for field in ("start", "end") if field in request.query_params]
        if len(hit) == 2:
            first = next(iter(document.pages_of(Span(*hit))), 1)
        text = pages.format_document(
            bundle, key, name, question, pages=len(document.pages), first=first, hit=hit, language=self.language
        )
        return HTMLResponse(text)

    async def show_sheet(self, request: Request) -> Response:
        """Return a document page as JSON for the script with which a user marks gold.

        The JSON contains the page's words with their positions, and the spans of the document's gold.
        """
        name, number = request.query_params.get("name", ""), int(request.query_params.get("page", "0"))
        bundle = self.library.bundle(request.path_params["key"])
        document = await run_in_threadpool(self.library.document, request.path_params["key"], name)
        gold = [span for line in bundle.gold.get(name, []) for span in line.spans]
        address = f"page/{number}?name={quote(name)}"
        told = await run_in_threadpool(sheet_of, document, number, gold, address)
        return JSONResponse({**told, "gold": gold})

    async def show_picture(self, request: Request) -> Response:
        """Return the image of a document's page as the response to a request."""
        name, number = request.query_params.get("name", ""), request.path_params["number"]
        document = await run_in_threadpool(self.library.document, request.path_params["key"], name)
        if document.path is None or not 0 < number <= len(document.pages):
            raise ToolkitError(f"{name}: no page {number}")
        scale = _WIDTH / document.pages[number - 1].width
        data, kind = compress_image(await run_in_threadpool(render_within, document.path, number, scale=scale))
        return Response(data, media_type=f"image/{kind}")

    async def run(self, request: Request) -> Response:
        """Redirect to the report of a run, which this server writes itself.

        For a run that is unfinished or damaged, return a page with its state instead.
        """
        key = request.path_params["key"]
        folder = self.library.folder(key)
        line = next((line for line in self.library.runs() if line.key == key), None)
        if line is None:
            raise ToolkitError("there is no such run")
        if line.state in ("unfinished", "damaged"):
            job = next((job for job in self.jobs.all() if job.out == str(folder)), None)
            return HTMLResponse(pages.run_view(line, count_journal_lines(folder), job, language=self.language))
        # a report that came with a run from elsewhere is never served: its script could send requests to this server
        place = self._place("report", [line])
        if not (place / REPORT).is_file():
            await run_in_threadpool(write_report, folder, out=place / REPORT, language=self.language)
        return _redirect(request, f"drawn/{place.name}/{REPORT}")

    async def show_drawn(self, request: Request) -> Response:
        """Return a file that this server wrote: an HTML page about runs, one of its data files, or an image."""
        place = self.state / "drawn" / request.path_params["place"]
        path = (place / request.path_params["path"]).resolve()
        if not path.is_relative_to(self.state.resolve()) or not path.is_file():
            raise ToolkitError("there is no such page; open it again from the start page")
        return FileResponse(path)

    async def compare(self, request: Request) -> Response:
        """Write the comparison of the selected runs, and return its address."""
        keys = (await _read_body(request)).get("runs") or []
        lines = [line for key in keys for line in self.library.runs() if line.key == key]
        if len(lines) < 2:
            raise ToolkitError("select at least two runs")
        place = self._place("compare", lines)
        folders = [line.folder for line in reversed(lines)]  # the oldest first
        await run_in_threadpool(write_comparison, folders, out=place / "compare.html", language=self.language)
        return JSONResponse({"open": f"drawn/{place.name}/compare.html"})

    async def write_trend(self, _: Request) -> Response:
        """Write the page that shows all runs over time, and return the page's address as JSON."""
        runs = self.library.runs()
        if not runs:
            raise ToolkitError("there is no run yet")
        place = self._place("trend", runs)
        await run_in_threadpool(write_trend, [line.folder for line in runs], place / "index.html")
        return JSONResponse({"open": f"drawn/{place.name}/index.html"})

    def _place(self, kind: str, lines: Sequence[RunLine]) -> Path:
        """Return the folder for a page about runs, and create the folder if needed.

        The folder's name depends on the time of the runs' summaries, so a changed run leads to a new folder.
        """
        ended = [one.folder for one in lines if (one.folder / SUMMARY).is_file()]
        stamps = [(str(folder), (folder / SUMMARY).stat().st_mtime_ns) for folder in ended]
        digest = hashlib.sha256(repr((kind, self.language, stamps)).encode()).hexdigest()[:16]
        place = self.state / "drawn" / digest
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        return place

    # ---------------------------------------------------------------- reviews

    def _open_reviewed(self, key: str) -> tuple[Reviewed, Path]:
        folder = self.library.folder(key)
        if (folder / TRAIN).is_file():
            return DraftedBundle(folder), saving.review_folder(folder, is_run=False)
        roots = [str(line.folder) for line in self.library.list_bundles()]
        return ReviewedRun(folder, paths=roots), saving.review_folder(folder, is_run=True)

    async def review(self, request: Request) -> Response:
        """Write a review page and redirect to it; the page sends every judgment to this server."""
        key = request.path_params["key"]
        reviewed, _ = await run_in_threadpool(self._open_reviewed, key)
        place = self.state / "drawn" / f"review-{key}"
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        await run_in_threadpool(
            make_review, reviewed, place / "review.html", by=BY, size=_SAMPLE, seed=1, language=self.language,
            save=f"../../reviews/{key}",
        )  # fmt: skip
        return _redirect(request, f"drawn/{place.name}/review.html")

    async def show_saved(self, request: Request) -> Response:
        """Return the review that a person has saved so far; null if there is none."""
        given = request.query_params
        folder = self.library.folder(request.path_params["key"])
        place = saving.review_folder(folder, is_run=not (folder / TRAIN).is_file())
        path = saving.review_path(place, given.get("review", ""), given.get("reviewer", "").strip())
        return JSONResponse(read_review(path).model_dump() if path.is_file() else None)

    async def save(self, request: Request) -> Response:
        """Write the judgments of a request into the file of their reviewer."""
        folder = self.library.folder(request.path_params["key"])
        is_run = not (folder / TRAIN).is_file()
        given = Review.model_validate_json(await _read_bytes(request))
        about = given.model_copy(update={"cases": [], "added": []})
        place = saving.review_folder(folder, is_run=is_run)
        count = 0
        for case in given.cases:
            count = await run_in_threadpool(saving.save_case, place, about, case)
        return JSONResponse({"cases": count})

    async def question(self, request: Request) -> Response:
        """Add a question that a person wrote, with the passages marked as its gold, to that person's review file."""
        key = request.path_params["key"]
        bundle, given = self.library.bundle(key), await _read_body(request)
        reviewer = pages.require(given.pop("reviewer", None), "your name", most=80)
        question = AddedQuestion.model_validate(given, strict=False)
        named = [*(context.filename for context in question.contexts), question.filename]
        unknown = [name for name in named if name not in bundle.files]
        if unknown:
            raise ToolkitError(f"{unknown[0]}: no such document in this bundle")
        about = saving.begin_review(of="bundle", review=f"added-{key}", run=bundle.root.name, reviewer=reviewer)
        place = saving.review_folder(bundle.root, is_run=False)
        return JSONResponse({"added": await run_in_threadpool(saving.save_question, place, about, question)})

    async def apply(self, request: Request) -> Response:
        """Start a job that applies a bundle's reviews and writes the result as a new bundle."""
        root = self.library.bundle(pages.require((await _read_body(request)).get("bundle"), "the bundle")).root
        files = saving.list_reviews(saving.review_folder(root, is_run=False))
        if not files:
            raise ToolkitError("nobody has reviewed this bundle or added a question yet")
        out = _find_free(root.with_name(f"{root.name}-reviewed"))
        words = ["review", "apply", *map(str, files), "--bundle", str(root), "--out", str(out)]
        return self._start(f"Make {out.name}", words, out)

    # ---------------------------------------------------------------- long work

    async def upload(self, request: Request) -> Response:
        """Save an uploaded document, under a safe name, in a subfolder of the first served folder."""
        name, file = request.path_params["name"], request.path_params["file"]
        folder = self._find_documents(name)
        safe = _UNSAFE.sub("_", file).lstrip(".") or "document"
        if len(safe.encode()) > _LONGEST_NAME:
            raise ToolkitError(f"{safe[:40]}…: the file's name is too long")
        data = await _read_bytes(request, most=pages.LARGEST_UPLOAD)
        folder.mkdir(parents=True, exist_ok=True)
        await run_in_threadpool(write_whole, folder / safe, data)
        return JSONResponse({"file": safe})

    def _find_documents(self, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ToolkitError("the name of a bundle may have only letters, digits, dots, dashes and underscores")
        return self.library.folders[0] / f"{name}-documents"

    async def draft(self, request: Request) -> Response:
        """Start a job that drafts questions on uploaded documents, or on a folder below the first served folder."""
        given = await _read_body(request)
        name = pages.require(given.get("name"), "the bundle's name", most=60)
        source = self._find_documents(name)
        if given.get("folder"):
            source = self.library.folders[0] / pages.require(given["folder"], "the folder", most=1000)
        if not source.is_dir() or not source.resolve().is_relative_to(self.library.folders[0]):
            raise ToolkitError(
                f"{source.name}: no such folder in {self.library.folders[0].name}; upload documents first"
            )
        out = _find_free(self.library.folders[0] / name)
        return self._start(f"Draft questions: {name}", ["draft", "--source", str(source), "--out", str(out)], out)

    async def evaluate(self, request: Request) -> Response:
        """Start a job that evaluates the built-in pipeline, or a system at a URL, on a bundle."""
        given = await _read_body(request)
        bundle = self.library.bundle(pages.require(given.get("bundle"), "the bundle"))
        name = given.get("run") or f"{bundle.root.name}-run"
        if not _NAME.fullmatch(name):
            raise ToolkitError("the name of a run may have only letters, digits, dots, dashes and underscores")
        out = _find_free(self.library.folders[-1] / name)
        words = ["evaluate", str(bundle.root), "--output-dir", str(out.parent), "--run-name", out.name]
        if given.get("url"):
            words += ["--target-url", pages.require(given["url"], "the address", most=2000)]
        elif given.get("preset"):
            words += ["--preset", pages.require(given["preset"], "the preset", most=60)]
        return self._start(f"Evaluate on {bundle.root.name}: {out.name}", words, out)

    def _start(self, title: str, words: Sequence[str], out: Path) -> Response:
        job = self.jobs.start(title, words, cwd=self.library.folders[0].parent, out=out)
        return JSONResponse({"open": self._make_address(f"job/{job.key}")})

    def _make_address(self, path: str) -> str:
        return f"/{self._token}/{path}"

    async def show_job(self, request: Request) -> Response:
        """Return the page of a job."""
        job = self.jobs.get(request.path_params["key"])
        return HTMLResponse(
            pages.format_job(job, self.jobs.find_state(job), self.jobs.read_output(job), language=self.language)
        )

    async def show_job_state(self, request: Request) -> Response:
        """Return the state of a job: its output and, for an evaluation, the number of answered questions."""
        job = self.jobs.get(request.path_params["key"])
        state, out = self.jobs.find_state(job), Path(job.out)
        told: dict[str, Any] = {"state": state, "output": self.jobs.read_output(job), "done": 0, "total": 0, "far": ""}
        told |= {"latest": [], "resumable": False, "open": ""}
        if job.words[0] == "evaluate" and out.is_dir():
            told |= await run_in_threadpool(self._measure_progress, job, out)
            told["resumable"] = state not in ("running", "finished")
        if state == "finished" and self.library.is_inside(out) and out.is_dir():
            kind = "bundle" if (out / TRAIN).is_file() else "run"
            told["open"] = self._make_address(f"{kind}/{key_of(out.resolve())}")
        return JSONResponse(told)

    def _measure_progress(self, job: Job, out: Path) -> dict[str, Any]:
        done = count_journal_lines(out)
        total = len(self.library.bundle(key_of(Path(job.words[1]))).questions)
        return {"done": done, "total": total, "far": f"{done} of {total}", "latest": pages.read_latest_replies(out)}

    async def stop(self, request: Request) -> Response:
        """Stop a job as Ctrl-C does."""
        self.jobs.stop(self.jobs.get(request.path_params["key"]))
        return JSONResponse({})

    async def resume(self, request: Request) -> Response:
        """Start an evaluation again where it stopped."""
        job = self.jobs.get(request.path_params["key"])
        if job.words[0] != "evaluate" or self.jobs.find_state(job) in ("running", "finished"):
            raise ToolkitError("only an evaluation that was stopped can be resumed")
        words = [*(word for word in job.words if word != "--resume"), "--resume"]
        return self._start(job.title, words, Path(job.out))


def handle_errors(work: Handler) -> Handler:
    """Return a handler that turns expected errors into one line with status 400."""

    async def handle(request: Request) -> Response:
        try:
            return await work(request)
        except (ToolkitError, ValueError) as error:
            return PlainTextResponse(f"{str(error).splitlines()[0]}\n", status_code=400)

    return handle


async def _read_bytes(request: Request, most: int = _LONGEST_BODY) -> bytes:
    data = bytearray()
    async for block in request.stream():
        data += block
        if len(data) > most:
            raise ToolkitError(f"the upload is larger than the limit of {most // 1_000_000} MB")
    return bytes(data)


async def _read_body(request: Request) -> dict[str, Any]:
    value = json.loads(await _read_bytes(request))
    if not isinstance(value, dict):
        raise ToolkitError("the request must be a JSON object")
    return value


def _redirect(request: Request, path: str) -> Response:
    """Return a redirection (HTTP 303) to another page of this server.

    `path` is the part of the address after the server's random token.
    """
    return Response(status_code=303, headers={"location": f"{request.scope['root_path']}/{path}"})


def _find_free(path: Path) -> Path:
    """Return a path that does not exist yet, with a number at its end where the name is taken."""
    taken = (path.with_name(f"{path.name}-{number}") for number in range(2, 10_000))
    return path if not os.path.lexists(path) else next(other for other in taken if not os.path.lexists(other))
