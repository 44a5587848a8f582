"""The HTML layout that all results pages share, and the data of questions for the script of a page."""

import base64
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from exhibit.evaluation.judgement import ANSWERED_RIGHTLY, GOOD_MARK, MARK
from exhibit.schemas.parsing import read_beside
from exhibit.schemas.run import RunGold, RunPassage, RunQuestion
from exhibit.viewer.drawing import (
    PASSAGES,
    PlacedSpans,
    Record,
    Wanted,
    find_best_place,
    find_gold_ranges,
    find_kept_ranges,
    list_piece_spans,
    mark_spans,
    meets,
)
from exhibit.viewer.funnel import describe_case_stages

_STATIC, _LANGUAGES = (Path(__file__).parent / name for name in ("static", "languages"))
_NO_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")

GROUP_MEANINGS: Mapping[str, str] = {
    "Retrieval": "Did the system find the passages that answer the question, and how much else did it bring?",
    "Stages": "How much of the answer's words is left after each step, from the file to the passages?",
    "Answers": "Is the answer right, and did the system refuse where the documents do not answer?",
    "Citations": "Does the answer name its sources, and do the named places say what it says?",
    "Cost": "How long did a reply take, and how much text did a model read and write for it?",
    "Other": "Measures of your own, and those that belong to no other group.",
}
"""The question that each group of metrics answers, in one sentence for a lawyer."""


def format_page(
    title: str,
    body: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    data: Mapping[str, str] | None = None,
    pieces: bool = False,
    served: bool = False,
    language: str = "en",
) -> str:
    """Return a complete HTML page: `body` inside the layout that all results pages share.

    `styles` are added after the shared style sheet. `scripts` run in their order at the end of the body. `data`
    are JSON blocks (made with `as_json`), which the scripts read by id. The content security policy blocks
    every other script and every request. With `pieces`, the page may also load scripts and images from its own
    folder. A page that is `served` by `exhibit view` may send requests to that server.
    """
    css = "\n".join(map(read, ["viewer.css", *styles]))
    code = translate("\n".join(map(read, scripts)), language)
    blocks = "".join(
        f'<script type="application/json" id="{escape(name)}">{text}</script>\n' for name, text in (data or {}).items()
    )
    text = (
        f'<!doctype html>\n<html lang="{escape(language)}">\n'
        '<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_make_policy(css, code, pieces, served)}">\n'
        f"<title>{escape(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n{body}\n{blocks}"
        + (f"<script>{code}</script>\n" if code else "")
        + "</body>\n</html>\n"
    )
    # a lone surrogate, which a model can produce, cannot be encoded as UTF-8
    return text.encode("utf-8", "replace").decode("utf-8")


def as_json(value: Any) -> Markup:
    """Return a value as JSON that is safe inside a script element: it cannot close the element or break a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text.encode("utf-8", "replace").decode("utf-8"))


def read(name: str) -> str:
    """Return the text of one of the viewer's static files: a style sheet, a script or a template."""
    return (_STATIC / name).read_text(encoding="utf-8")


def render(template: str, *, language: str = "en", **values: Any) -> Markup:
    """Return a filled template; all values are escaped."""
    return Markup(_make_environment(language).get_template(template).render(**values))


def list_languages() -> list[str]:
    """Return the available languages, English first."""
    return ["en", *sorted(path.stem for path in _LANGUAGES.glob("*.toml"))]


@cache
def _read_texts(language: str) -> dict[str, Any]:
    """Return the translations of a language: each English text of a template or script with its translation.

    The key `words` holds a second mapping, for the texts that the program inserts into a page.
    """
    if language == "en":
        return {"words": {}}
    return tomllib.loads((_LANGUAGES / f"{language}.toml").read_text(encoding="utf-8"))


def read_words(language: str) -> dict[str, str]:
    """Return the translations of the names and sentences that the program writes into a page."""
    return dict(_read_texts(language)["words"])


def say(language: str, text: str, **values: object) -> str:
    """Return a text in a language, filled with values; in English where there is no translation."""
    other: str = _read_texts(language)["words"].get(text, text)
    return other.format(**values) if values else other


def translate(source: str, language: str) -> str:
    """Return a template or a script with its texts translated into a language.

    A text is replaced only as a whole, between quotation marks, backquotes or tags.
    """
    for english, other in _read_texts(language).items():
        for first, last in ('""', "``", "><") if english != "words" else ():
            source = source.replace(f"{first}{english}{last}", f"{first}{other}{last}")
    return source


def escape_markdown(text: object) -> Markup:
    """Return a text with its Markdown characters escaped, because names and questions are untrusted input."""
    return Markup(_MARKDOWN.sub(r"\\\1", " ".join(str(text).split())))


@cache
def _make_environment(language: str) -> Environment:
    # cached: to compile the templates takes longer than to fill them for a small run
    environment = Environment(
        loader=FunctionLoader(lambda name: translate(read(name), language)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": escape_markdown, "t": lambda text: say(language, str(text))}
    environment.filters["fill"] = lambda text, *values: text.format(*values)
    environment.filters["xml"] = lambda text: _NO_XML.sub("\ufffd", text)  # characters that XML does not allow
    return environment


def _make_policy(css: str, code: str, pieces: bool, served: bool) -> str:
    # `file:` is the equivalent of 'self' for a page that is opened by double click
    beside = " 'self' file:" if pieces else ""
    script = f"'{_hash_text(code)}'{beside}" if code else "'none'"
    asked, form = ("connect-src 'self'; ", "'self'") if served else ("", "'none'")
    beside = beside or (" 'self'" if served else "")
    return (
        f"default-src 'none'; {asked}img-src data:{beside}; style-src '{_hash_text(css)}'; script-src {script}; "
        f"base-uri 'none'; form-action {form}"
    )


def _hash_text(text: str) -> str:
    """Return the hash by which a content security policy allows exactly this script or style sheet."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


GOOD_VERDICTS = ("answered", "expected answer given")
ANOTHER = "right answer, another passage"
_DOUBTFUL = ("failed", "invented figures")
"""Outcomes that count as faults even where the answer is right."""


class OutcomeLook(NamedTuple):
    """The meaning of an outcome, and its colour."""

    meaning: str
    tone: str = ""
    good: bool = False
    judged: bool = True
    """Whether the outcome is a judgement of the system."""


_WORDS = read_beside(__file__, "static/outcomes.toml")
OUTCOMES: dict[str, OutcomeLook] = {name: OutcomeLook(**fields) for name, fields in _WORDS["outcomes"].items()}
"""The outcomes of a question, the most serious first."""
CHANGES: dict[str, OutcomeLook] = {name: OutcomeLook(**fields) for name, fields in _WORDS["changes"].items()}
"""The ways in which a question changed from the first run to the others, the worst first."""


def is_right(row: RunQuestion) -> bool | None:
    """Return whether the answer is right; None if this is unknown.

    It is unknown for an answer that was not judged, for a failed reply, and for a question that the documents
    do not answer.
    """
    if row.is_impossible or row.reply.error:
        return None
    if ANSWERED_RIGHTLY in row.scores:  # absent where the run measured only some metrics
        value = row.scores[ANSWERED_RIGHTLY]
        return None if value is None else value == 1
    if row.reply.refused or row.verdict == "expected answer given":
        return not row.reply.refused
    mark, label = row.scores.get(MARK), row.scores.get("label_accuracy")
    if mark is not None:
        return mark >= GOOD_MARK
    return None if label is None else bool(label)


def find_outcome(row: RunQuestion) -> str:
    """Return the outcome of a question: one of `OUTCOMES`.

    A right answer that was found in a passage other than the gold is not a fault, unless it contains invented
    figures. If the system refuses a question that the documents answer, the outcome is `wrongly refused`,
    whatever was retrieved.
    """
    right = is_right(row)
    if row.scores.get("false_refusal_rate") and not row.reply.error:
        return "wrongly refused"
    if row.verdict not in GOOD_VERDICTS:
        name = _WORDS["verdicts"].get(row.verdict, row.verdict)
        name = name if name in OUTCOMES else "cannot be judged"
        return ANOTHER if right and name not in _DOUBTFUL else name
    if row.is_impossible:
        return "rightly refused"
    if right is None:
        return "right passage used"
    return "answered rightly" if right else "right passage, another answer"


def explain_outcome(row: RunQuestion) -> list[str]:
    """Return sentences that explain a question's outcome.

    The last sentence states the facts on which the verdict is based or, for a failed reply, the error message.
    """
    name = find_outcome(row)
    if name == "failed":
        return [OUTCOMES[name].meaning, "The error:", row.reply.error or "unknown"]
    return [*filter(None, (_WORDS["stages"].get(row.stage or ""), OUTCOMES[name].meaning, row.evidence))]


_LONGEST = 20_000
"""A longer text of a reply is cut: a model that repeats itself must not fill the report."""
_LONGEST_PASSAGE = 4000  # characters: two pages; passages are shorter
_QUESTION, _ANSWER, _ERROR = 500, 240, 300
"""The numbers of characters of a question, an answer and an error in a line of the list, which the search reads."""


def number_value(numbers: dict[str, int], value: str) -> int:
    """Return the number of a value; a new value gets the next number."""
    return numbers.setdefault(value, len(numbers))


class Cases:
    """The details of several questions (cases), which a page loads as one data file.

    A text that several cases share is stored once.
    """

    def __init__(self, metrics: dict[str, int], wanted: Wanted) -> None:
        """Start without cases.

        `metrics` maps each metric to its number, and `wanted` gives each document its number; both are shared by
        the whole report.
        """
        self.cases: list[Record] = []
        self._texts: dict[str, int] = {}
        self._files: dict[int, str] = {}
        self._metrics = metrics
        self._wanted = wanted

    def add(self, rows: Sequence[RunQuestion | None], *, rank: int | None) -> None:
        """Add a question with its row in each run; a row is None if the run did not ask the question.

        With a rank, the question's pages are registered for drawing.
        """
        first = next(row for row in rows if row is not None)
        self.cases.append(
            {
                "dataset": first.dataset,
                "id": first.id,
                "question": cut(first.question, _LONGEST),
                "truth": cut(first.truth, _LONGEST),
                "impossible": first.is_impossible,
                "labels": labels_of(first),
                "gold": [self._make_gold(first.dataset, gold, rows) for gold in first.gold],
                "sides": [None if row is None else self._make_side(row, rank) for row in rows],
            }
        )

    def as_json(self) -> Record:
        """Return the cases, their shared texts and their file names as data for the page's script."""
        return {"texts": list(self._texts), "files": self._files, "cases": self.cases}

    def _make_side(self, row: RunQuestion, rank: int | None) -> Record:
        reply, at = row.reply, mark_spans(row)
        return {
            "verdict": find_outcome(row),
            "why": explain_outcome(row),
            "answer": cut(reply.answer or "", _LONGEST),
            "refused": reply.refused,
            "error": cut(reply.error, _LONGEST),
            "seconds": reply.seconds,
            "confidence": reply.confidence,
            "selected": reply.selected,
            "retrieved": len(reply.passages),
            # a failed question has no score, even where -1 was written for other tools
            "scores": [] if reply.error else self._flatten_scores(row.scores),
            "passages": [self._make_passage(row.dataset, one, at) for one in reply.passages[:PASSAGES]],
            "pages": self._wanted.ask(row, at, rank=rank),
            "stages": describe_case_stages(row.gold_stages),
        }

    def _flatten_scores(self, scores: Mapping[str, float | None]) -> list[Any]:
        """Return the known scores as a flat list: metric number, value, metric number, value …"""
        known = {name: value for name, value in scores.items() if value is not None}
        return [one for name, value in known.items() for one in (number_value(self._metrics, name), round(value, 4))]

    def _make_gold(self, dataset: str, gold: RunGold, rows: Sequence[RunQuestion | None]) -> Record:
        passages = (passage for row in rows if row is not None for passage in row.reply.passages)
        retrieved = [span for one in passages if one.filename == gold.filename for span in list_piece_spans(one)]
        return {
            "file": self._number_file(dataset, gold.filename or ""),
            "pages": gold.pages,
            "how": gold.how or "",
            "text": number_value(self._texts, cut(gold.text or "", _LONGEST)),
            "spans": find_best_place(gold.places, retrieved) if gold.places else [],
        }

    def _make_passage(self, dataset: str, passage: RunPassage, at: Mapping[str, PlacedSpans]) -> Record:
        filename, text = passage.filename or "", passage.text or ""
        spans = list_piece_spans(passage)
        gold = at[filename].gold if filename in at else []
        # the text of the longest piece is that of its span, unless the system gave another text
        kept = find_kept_ranges(passage.added, len(text))
        own = next((start for start, end in kept if spans and end - start == spans[0].end - spans[0].start), None)
        return {
            "file": self._number_file(dataset, filename),
            "page": passage.page,
            "score": None if passage.score is None else round(passage.score, 4),
            "text": number_value(self._texts, cut(text, _LONGEST_PASSAGE)),
            "gold": any(meets(span, gold) for span in spans),
            "ranges": [] if own is None else [(own + a, own + b) for a, b in find_gold_ranges(spans[0], gold)],
            "spans": spans,
            "added": passage.added,
        }

    def _number_file(self, dataset: str, filename: str) -> int:
        """Return the number of a document; -1 if `filename` is empty."""
        if not filename:
            return -1
        number = self._wanted.number(dataset, filename)
        self._files[number] = filename
        return number


def fields_of(runs: Sequence[str]) -> list[str]:
    """Return the names of the fields in a line of the list, without its facets and labels."""
    names = [""] if len(runs) == 1 else [f": {run}" for run in runs]
    return [
        "id",
        "question",
        "file",
        "error",
        *(f"found{name}" for name in names),
        *(f"answer{name}" for name in names),
    ]


def make_brief(rows: Sequence[RunQuestion | None]) -> list[Any]:
    """Return a question's line of the list: the values of the fields that `fields_of` names, in that order."""
    known = [row for row in rows if row is not None]
    errors = dict.fromkeys(cut(row.reply.error, _ERROR) for row in known if row.reply.error)
    return [
        known[0].id,
        cut(known[0].question, _QUESTION),
        known[0].filename or "",
        " / ".join(errors),
        *(None if row is None else find_gold_recall(row) for row in rows),
        *("" if row is None else cut(row.reply.answer or "", _ANSWER) for row in rows),
    ]


def find_gold_recall(row: RunQuestion) -> float | None:
    """Return the character recall of the gold at the cutoff nearest to 8; None if unknown or if the reply failed."""
    recall = None if row.reply.error else find_nearest(row.scores, "char_recall")
    return None if recall is None else round(recall, 3)


def labels_of(row: RunQuestion) -> dict[str, str]:
    """Return a question's labels whose value is a text or a number; a text is cut to 200 characters."""
    return {key: cut(str(value), 200) for key, value in row.labels.items() if _is_plain(value)}


def find_error_kind(rows: Sequence[RunQuestion | None]) -> str:
    """Return a failed reply's error, shortened and with digits masked, to group errors; empty if no reply failed."""
    error = next((row.reply.error for row in reversed(rows) if row is not None and row.reply.error), "")
    return cut(re.sub(r"\d+", "…", " ".join(error.split())[:200]), 90)


def find_nearest(scores: Mapping[str, float | None], family: str, depth: int = 8) -> float | None:
    """Return the score of a metric family at the cutoff nearest to `depth`; None if there is no such score."""
    depths = [int(name.partition("@")[2]) for name in scores if name.startswith(f"{family}@")]
    return scores[f"{family}@{min(depths, key=lambda k: abs(k - depth))}"] if depths else None


def cut(text: str, longest: int) -> str:
    """Return a text cut to `longest` characters; an ellipsis marks the cut."""
    return text if len(text) <= longest else f"{text[:longest]} …"


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and value != ""
