"""A small results folder made from a bundle: replies that hit the gold, and replies that miss it in every way."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Request

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.outcomes import make_outcome_columns
from exhibit.evaluation.scoring import format_reply
from exhibit.evidence import Document, Span, read_document
from exhibit.schemas import IMPOSSIBLE_ANSWER
from exhibit.schemas.run import Outcome
from exhibit.storage.bundle import BundleFolder, open_bundle
from tests.browser import PATIENCE
from tests.viewer.trend_data import write, write_sums_again

WIDTH = 500
"""The characters of a passage."""
PASSAGES = 16


def make_results(folder: Path, bundles: dict[str, Path], *, limit: int = 40, turn: int = 0) -> Path:
    """Write the results of an invented run over some bundles; `turn` selects which fixed set of replies it has."""
    config: dict[str, Any] = {"preset": "sac", "embedder": "hashing", "llm": "none", "top_k": 8}
    config |= {"dataset_paths": list(bundles), "run_name": folder.name, "openai_api_key": "sk-never-shown"}
    config["datasets"] = {name: {"path": str(path), "groups": None} for name, path in bundles.items()}
    write(folder / "config.json", config)
    for name, path in bundles.items():
        bundle = open_bundle(path)
        cases = list(make_cases(bundle, limit=limit, turn=turn))
        values = measure([case for case, _ in cases])
        impossible = [case.is_impossible for case, _ in cases]
        values |= make_outcome_columns([Outcome(outcome) for _, outcome in cases], impossible)
        ingestion = {
            "files": len(bundle.files),
            "pages": 21,
            "pages_per_second": 88.4,
            "chunks": 412,
            "seconds": 0.2375,
        }
        write(folder / name / "ingestion.json", {**ingestion, "set_aside": ["scan.pdf: no text layer"]})
        read = {file: read_document(location) for file, location in bundle.files.items()}
        rows = [
            record(case, outcome, {metric: column[at] for metric, column in values.items()}, read)
            for at, (case, outcome) in enumerate(cases)
        ]
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name / "eval_results.jsonl").write_text(lines, encoding="utf-8")
    write_sums_again(folder)
    return folder


def record(case: Case, outcome: str, scores: dict[str, float | None], read: dict[str, Document]) -> dict[str, Any]:
    """Return a case in the form of `eval_results.jsonl`."""
    asked = {name: getattr(case, name) for name in ("id", "question", "truth", "is_impossible", "filename", "labels")}
    gold = [
        {
            "filename": gold.filename,
            "text": gold.text,
            "places": gold.places,
            "pages": read[gold.filename or ""].pages_of(gold.places[0][0]) if gold.places else [],
            "how": "exact" if gold.places else "absent",
        }
        for gold in case.gold
    ]
    reason = "Passage 1 is the first to touch the gold." if outcome == "not judged" else ""
    judged = {"scores": scores, "outcome": outcome, "reason": reason}
    return {**asked, "gold": gold, "reply": format_reply(case), **judged}


def make_cases(bundle: BundleFolder, *, limit: int, turn: int = 0) -> Iterator[tuple[Case, str]]:
    """Yield questions with replies of every kind and their outcomes."""
    documents = {name: read_document(path) for name, path in bundle.files.items()}
    gold: dict[int | str, list[GoldPassage]] = defaultdict(list)
    for line in bundle.gold:
        places = [line.spans, *line.alternatives] if line.spans else []
        text = documents[line.filename].text[slice(*line.spans[0])] if line.filename and line.spans else None
        found = tuple(tuple(Span(*span) for span in place) for place in places)
        if line.context is not None:
            gold[line.id].append(GoldPassage(line.filename, text, found))
    step = max(1, len(bundle.questions) // limit)
    for number, question in enumerate(bundle.questions[::step][:limit]):
        golds = tuple(gold[question.id])
        filename = next((g.filename for g in golds), None)
        kind, impossible = number + turn * (number % 3), question.is_impossible
        reply, outcome = make_reply(kind, golds, question.answer, documents, impossible)
        labels = {key: value for key, value in bundle.labels.get(question.id, {}).items() if key != "answer"}
        yield Case(question.id, question.question, question.answer, golds, impossible, filename, labels, reply), outcome


def make_reply(
    number: int, golds: tuple[GoldPassage, ...], truth: str, documents: dict[str, Document], impossible: bool
) -> tuple[Reply, str]:
    """Return a reply and its outcome; the case number decides whether it is right or how it is wrong."""
    seconds = 0.05 + number * 37 % 23 / 40
    names = list(documents)
    if impossible:
        answer = IMPOSSIBLE_ANSWER if number % 2 else "The agreement says so in its first clause [1]."
        reply = Reply(answer, passages(documents, names[number % len(names)], 0), 4, seconds=seconds)
        return reply, "rightly refused" if number % 2 else "invented"
    located = next((g for g in golds if g.places), None)
    if located is None or located.filename is None:
        return Reply(truth, passages(documents, names[0], 0), 4, seconds=seconds), "not judged"
    right, start = located.filename, located.places[0][0].start
    wrong = next((name for name in names if name != right), right)
    far = (start + len(documents[right].text) // 2) % max(1, len(documents[right].text) - WIDTH)
    cited = f"{truth} [1] This follows from the second passage too [2], see [2024] EWCA Civ 12."
    kinds = [
        (Reply(cited, passages(documents, right, start - 120), 4, seconds=seconds), "right"),
        (Reply(cited, passages(documents, wrong, start), 4, seconds=seconds), "wrong"),
        (Reply(cited, passages(documents, right, far), 4, seconds=seconds), "wrong"),
        (Reply("In good faith [2].", passages(documents, right, start - 60), 4, seconds=seconds), "not judged"),
        (Reply(IMPOSSIBLE_ANSWER, passages(documents, right, start - 300), 4, seconds=seconds), "wrongly refused"),
        (Reply(cited, passages(documents, right, start - 40), 4, seconds=seconds), "right"),
        (Reply(cited, passages(documents, right, start - 200), 4, seconds=seconds), "right"),
        (Reply(error="the server closed the connection"), "failed"),
    ]
    return kinds[number % len(kinds)]


def passages(documents: dict[str, Document], name: str, start: int) -> tuple[Passage, ...]:
    """Return a ranking: the passage at `start`, its neighbours, then passages of the next documents."""
    names = list(documents)
    found = []
    for rank in range(PASSAGES):
        document = documents[name] if rank < 5 else documents[names[(names.index(name) + rank) % len(names)]]
        first = max(0, min(start + rank * (WIDTH if rank % 2 else -WIDTH), len(document.text) - WIDTH))
        span = Span(first, min(first + WIDTH, len(document.text)))
        page, text = next(iter(document.pages_of(span)), None), document.text[span.start : span.end]
        found.append(Passage(text, document.filename, span, round(0.9 - rank / 40, 3), page))
    return tuple(found)


HOSTILE = "<img src=x onerror='window.pwned=1'></script><script>window.pwned=2</script>\u2028{{ 7*7 }}"
LAW = f"The tenant shall paint the fence each spring. {HOSTILE} The landlord shall pay for the paint.\n" * 9


def make_bundles(root: Path, cuad: Path) -> dict[str, Path]:
    """Return a bundle of PDFs and a new text bundle whose questions, answers and labels attack the page."""
    corpus = root / "leases" / "corpus"
    corpus.mkdir(parents=True)
    for name in ("first.txt", "second.txt"):
        (corpus / name).write_text(LAW, encoding="utf-8")
    quote = "The landlord shall pay for the paint."
    rows, lines = [], []
    for number in range(8):
        name = ("first.txt", "second.txt")[number // 4]
        contexts = [{"filename": name, "text": quote}]
        rows.append({"id": number, "question": f"Who pays? {HOSTILE}", "answer": HOSTILE, "contexts": contexts})
        spans = [[LAW.index(quote), LAW.index(quote) + len(quote)]]
        gold = {"id": number, "context": 0, "filename": name, "pages": [], "spans": spans, "alternatives": []}
        lines.append({**gold, "how": "exact", "score": 1.0, "labels": {"kind": HOSTILE, "parity": number % 2}})
    (root / "leases" / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    (root / "leases" / "gold.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return {"cuad": cuad, "leases": root / "leases"}


def block_of(page: Path, name: str) -> Any:
    """Return the JSON of the script element with this id."""
    found = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found
    return json.loads(found[1])


class Tab:
    """A browser tab that is reused for one page after another, since a new tab takes four times as long as a page."""

    def __init__(self, browser: Browser) -> None:
        self._page = browser.new_page(viewport={"width": 1400, "height": 900}, reduced_motion="reduce")
        self._complaints: list[str] = []
        self._allowed: tuple[str, ...] = ()
        self._page.set_default_timeout(PATIENCE)
        self._page.on("console", lambda message: self._complaints.append(message.text))
        self._page.on("pageerror", lambda error: self._complaints.append(str(error)))
        self._page.on("request", self._allow)
        self._page.on("requestfailed", lambda request: self._complaints.append(f"not there: {request.url}"))

    def open(self, url: str, complaints: list[str]) -> Page:
        """Open and return a page; add its console errors and its external requests to `complaints`."""
        self._complaints = []
        self._page.goto("about:blank")  # so that an address with only another fragment is loaded again
        home = url.partition("#")[0].rpartition("/")[0]
        self._complaints, self._allowed = complaints, (f"{home}/", "data:", "blob:")
        self._page.goto(url)
        self._page.wait_for_selector(".line .question")
        return self._page

    def _allow(self, request: Request) -> None:
        if not request.url.startswith(self._allowed):
            self._complaints.append(request.url)


def narrow(page: Page, **wanted: str) -> None:
    """Filter the list by these facets, and clear all others."""
    page.evaluate("clearFilters()")
    for facet, value in wanted.items():
        pick(page, facet, value)


def pick(page: Page, facet: str, value: str) -> None:
    """Choose a value of a facet."""
    page.select_option(f"#facet-{facet}", value)


def shown(page: Page) -> int:
    """Return the number of questions in the list, as the page states it."""
    return int(page.locator("#count").inner_text().split()[0].replace(",", ""))


def open_first(page: Page, **wanted: str) -> str:
    """Open the first question of a narrowed list and return its address."""
    narrow(page, **wanted)
    page.locator(".line").first.click()
    key = page.evaluate("keyOf(lines[indexAt(0)])")
    page.wait_for_selector(f'article.case[data-key="{key}"]')
    return str(key)
