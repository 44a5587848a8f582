"""The questions of a run or several runs: their outcomes, the order of the list, and the data that a page loads."""

import base64
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.evaluation.metrics import STAGE_TITLES, describe_metric
from exhibit.evaluation.outcomes import GOOD
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.stages import KEPT, StageCounts
from exhibit.evaluation.statistics import number_repeats
from exhibit.evidence import subtract_spans
from exhibit.schemas.run import Outcome, RunGold, RunPassage, RunQuestion
from exhibit.viewer import drawing
from exhibit.viewer.drawing import FileSpans, Wanted, list_passage_spans
from exhibit.viewer.page import Record, as_json, cut


class Look(NamedTuple):
    meaning: str  # the meaning of an outcome or a change, in a sentence
    tone: str = ""  # the class of its colour


OUTCOMES: dict[str, Look] = {
    Outcome.INVENTED: Look("The documents do not answer this question, but the system answered it.", "bold"),
    Outcome.WRONG: Look("The reply does not give the expected answer.", "bad"),
    Outcome.WRONGLY_REFUSED: Look("The documents answer this question, but the system did not.", "shy"),
    Outcome.FAILED: Look("The system gave an error instead of a reply.", "broken"),
    Outcome.MISSED: Look("The gold is not among the first passages.", "near"),
    Outcome.NOT_JUDGED: Look("Rules cannot decide whether the reply is right; a judge or a reviewer can.", "lost"),
    Outcome.FOUND: Look("The gold is among the first passages.", "one"),
    Outcome.RIGHTLY_REFUSED: Look("The documents do not answer this question, and the system refused.", "calm"),
    Outcome.RIGHT: Look("The reply gives the expected answer.", "ok"),
}  # the outcomes of a question, the most serious first
CHANGES = {
    "lost": Look("The outcome is good in the first run, but not in another.", "bad"),
    "failed": Look("A later run gave an error, but the first did not.", "broken"),
    "worse": Look("The outcome is the same, but a later run retrieved less of the gold than the first run.", "near"),
    "another outcome": Look("The outcomes differ, but they are good in all runs or in none.", "unused"),
    "won": Look("The outcome is not good in the first run, but is good in another.", "ok"),
    "better": Look("The outcome is the same, but a later run retrieved more of the gold than the first run.", "shy"),
    "not asked by all": Look("At least one of the runs does not have this question."),
    "same": Look("The outcome is the same, and all runs retrieved the same share of the gold."),
}  # the ways in which a question changed from the first run to the others, the worst first
CASES = 50  # cases in a piece (a file of data): a page loads a piece in a few milliseconds
_MAX_TEXT_CHARS = 20_000  # most characters of a reply: a model that repeats itself must not fill the report
_MAX_PASSAGE_CHARS = 4000
# most characters in a line of the list, in which the page searches
_QUESTION_CHARS, _ANSWER_CHARS, _ERROR_CHARS = 500, 240, 300
Side = RunQuestion | None  # a question in one of the runs; None if the run does not have it


def explain_outcome(row: RunQuestion) -> list[str]:
    """Return sentences that explain a question's outcome; those of a failed question include its error message."""
    meaning = OUTCOMES[row.outcome].meaning
    if row.outcome is Outcome.FAILED:
        return [meaning, "The error:", row.reply.error or "unknown"]
    support = {True: "Its passages contain the gold.", False: "Its passages do not contain the gold.", None: ""}
    return [*filter(None, (meaning, row.reason, support[row.supported] if row.reply.answer else ""))]


def find_nearest(scores: Mapping[str, float | None], family: str, depth: int = 8) -> float | None:
    """Return the score of a metric family at the cutoff nearest to `depth`; None if there is no such score."""
    depths = [int(name.partition("@")[2]) for name in scores if name.startswith(f"{family}@")]
    return scores[f"{family}@{min(depths, key=lambda k: abs(k - depth))}"] if depths else None


def _find_change(sides: Sequence[Side]) -> str:
    """Return a question's worst change from the first run to any other run: a name in `CHANGES`."""
    first, *others = sides
    if first is None or None in others:
        return "not asked by all"
    kinds = {_compare_sides(first, other) for other in others if other is not None}
    return next(change for change in CHANGES if change in kinds)


def _compare_sides(first: RunQuestion, other: RunQuestion) -> str:
    if other.reply.error and not first.reply.error:
        return "failed"
    if first.outcome is not other.outcome:
        was, now = (row.outcome in GOOD for row in (first, other))
        return "another outcome" if was == now else "won" if now else "lost"
    recall, then = (find_nearest(row.scores, "char_recall") for row in (first, other))
    if other.reply.error or recall is None or then is None or abs(then - recall) < 1e-9:
        return "same"
    return "better" if then > recall else "worse"


@dataclass
class Tally:
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)  # the outcomes of a run by dataset
    impossible: int = 0
    stages: StageCounts = field(default_factory=StageCounts)

    def add(self, row: RunQuestion) -> None:
        self.outcomes.setdefault(row.dataset, Counter())[row.outcome] += 1
        self.impossible += row.is_impossible
        if row.outcome is not Outcome.FAILED:
            self.stages.add(row)

    @property
    def total(self) -> Counter[str]:
        return sum(self.outcomes.values(), Counter())


class Entry(NamedTuple):
    numbers: tuple[int | None, ...]  # the number of the question's row in each run
    values: list[str]  # the question's value for each filter of the list


class Matching:
    """The questions of a run or several runs, the worst first; questions with equal content in two runs are paired."""

    def __init__(self, runs: Sequence[RunResults]) -> None:
        self.runs = list(runs)
        self.several = len(self.runs) > 1
        self.tallies = [Tally() for _ in self.runs]
        self.entries: list[Entry] = []
        for numbers in self._match_rows():
            sides = self.read(numbers)
            for tally, row in zip(self.tallies, sides, strict=True):
                if row is not None:
                    tally.add(row)
            first = next(row for row in sides if row is not None)
            lost_at = (first.lost_at or KEPT) if first.gold_stages else ""
            values = [row.outcome if row else "" for row in sides] if self.several else [lost_at]
            kind = _find_change(sides) if self.several else first.outcome
            self.entries.append(Entry(numbers, [kind, first.dataset, *values]))  # values in the order of the filters
        order = list(CHANGES if self.several else OUTCOMES)
        self.entries.sort(key=lambda entry: order.index(entry.values[0]))

    def _match_rows(self) -> list[tuple[int | None, ...]]:
        if not self.several:
            return [(number,) for number in range(len(self.runs[0].rows))]
        # if a run has a question twice, the second pairs with the second of another run
        rows: dict[Any, list[int | None]] = {}
        for at, run in enumerate(self.runs):
            contents = ((row.dataset, run.content_of(row)) for row in run.rows)
            for number, content in enumerate(number_repeats(contents)):
                rows.setdefault(content, [None] * len(self.runs))[at] = number
        return [tuple(numbers) for numbers in rows.values()]

    def read(self, numbers: Sequence[int | None]) -> list[Side]:
        """Return a question's row in each run, read from disk."""
        return [None if at is None else run.rows[at] for run, at in zip(self.runs, numbers, strict=True)]

    def make_facets(self) -> list[Record]:
        """Return the filters of the list; each has its values in order, and the number of questions with each value."""
        kinds: list[tuple[str, str, Iterable[str]]] = [("dataset", "Benchmark", ())]
        if self.several:
            kinds.insert(0, ("change", "Change", CHANGES))
            kinds += [(f"outcome-{n}", run.name, OUTCOMES) for n, run in enumerate(self.runs, 1)]
        else:
            kinds.insert(0, ("outcome", "Outcome", OUTCOMES))
            kinds.append(("lost_at", "Gold lost", (*STAGE_TITLES, KEPT)))
        facets = []
        for at, (name, title, order) in enumerate(kinds):
            counts = Counter(entry.values[at] for entry in self.entries)
            known = [value for value in order if counts[value]]
            known += sorted(value for value in counts if value and value not in known)
            facets.append({"name": name, "title": title, "values": known, "counts": [counts[key] for key in known]})
        return facets


class PieceWriter:
    """Writes the details of questions in pieces, which the page loads on demand, and collects the lines of the list."""

    def __init__(self, folder: Path, matching: Matching, wanted: Wanted) -> None:
        self._folder, self._matching, self._wanted = folder, matching, wanted
        self._metrics: dict[str, None] = {}
        self._cases: list[Record] = []
        self.lines: list[Record] = []

    def add(self, rows: Sequence[Side], values: Sequence[str], *, draw: bool) -> None:
        """Add a question with its row in each run; `draw` states whether its pages are drawn."""
        first = next(row for row in rows if row is not None)
        errors = dict.fromkeys(cut(row.reply.error, _ERROR_CHARS) for row in rows if row and row.reply.error)
        recalls = [find_nearest(row.scores, "char_recall") if row and not row.reply.error else None for row in rows]
        plain = {name: value for name, value in first.labels.items() if isinstance(value, str | int | float)}
        labels = {name: cut(str(value), 200) for name, value in plain.items() if value != ""}
        line: Record = {"values": values, "id": first.id, "question": cut(first.question, _QUESTION_CHARS)}
        line |= {"file": first.filename or "", "error": " / ".join(errors), "labels": labels}
        line["found"] = [None if recall is None else round(recall, 3) for recall in recalls]
        line["answers"] = [cut(row.reply.answer or "", _ANSWER_CHARS) if row else "" for row in rows]
        self.lines.append(line)
        case: Record = {"dataset": first.dataset, "id": first.id, "labels": labels}
        case |= {"question": cut(first.question, _MAX_TEXT_CHARS), "truth": cut(first.truth, _MAX_TEXT_CHARS)}
        case |= {"impossible": first.is_impossible, "drafted": "draft" in first.labels}
        case["gold"] = [_make_gold(gold, rows) for gold in first.gold]
        case["sides"] = [None if row is None else self._make_side(row, draw) for row in rows]
        self._cases.append(case)
        if len(self._cases) == CASES:
            self._put_cases()

    def close(self) -> Record:
        """Write the questions that are not yet in a piece, and return the list's metadata for the page's script."""
        if self._cases or not self.lines:
            self._put_cases()
        abouts = {name: describe_metric(name) for name in self._metrics}
        meta: Record = {"runs": [run.name for run in self._matching.runs], "facets": self._matching.make_facets()}
        meta["tones"] = {name: look.tone for name, look in (OUTCOMES | CHANGES).items() if look.tone}
        meta |= {"total": len(self.lines), "cases": CASES, "stages": STAGE_TITLES}
        meta["metrics"] = {name: [a.title, a.report_unit.strip(), a.meaning, a.better] for name, a in abouts.items()}
        return meta

    def _put_cases(self) -> None:
        write_piece(self._folder, f"c{max(0, len(self.lines) - 1) // CASES}", self._cases)
        self._cases = []

    def _make_side(self, row: RunQuestion, draw: bool) -> Record:
        reply, spans = row.reply, drawing.group_spans(row)
        # ignore the scores of a failed question, which are -1 for other tools
        known = {} if reply.error else {name: value for name, value in row.scores.items() if value is not None}
        self._metrics |= dict.fromkeys(known)
        side: Record = {"outcome": row.outcome, "why": explain_outcome(row), "refused": reply.refused}
        side |= {"answer": cut(reply.answer or "", _MAX_TEXT_CHARS), "error": cut(reply.error, _MAX_TEXT_CHARS)}
        side |= {"seconds": reply.seconds, "confidence": reply.confidence, "selected": reply.selected}
        side |= {"retrieved": len(reply.passages), "scores": {name: round(value, 4) for name, value in known.items()}}
        side["passages"] = [_make_passage(passage, spans) for passage in reply.passages[: drawing.PASSAGES]]
        side["pages"] = self._wanted.ask(row, spans, draw=draw)
        side["stages"] = [_describe_stages(gold) for gold in row.gold_stages]
        return side


def _make_gold(gold: RunGold, rows: Sequence[Side]) -> Record:
    passages = (passage for row in rows if row is not None for passage in row.reply.passages)
    retrieved = [span for hit in passages if hit.filename == gold.filename for span in list_passage_spans(hit)]
    spans = drawing.find_best_place(gold.places, retrieved) if gold.places else []
    fields: Record = {"filename": gold.filename or "", "pages": gold.pages, "how": gold.how or ""}
    return {**fields, "text": cut(gold.text or "", _MAX_TEXT_CHARS), "spans": spans}


def _make_passage(passage: RunPassage, files: Mapping[str, FileSpans]) -> Record:
    filename, text, spans = passage.filename or "", passage.text or "", list_passage_spans(passage)
    gold = files[filename].gold if filename in files else []
    # the text of the longest piece is that of its span, unless the system gave another text
    edges = [0, *chain(*sorted(passage.added)), len(text)]
    kept = zip(edges[::2], edges[1::2], strict=True)
    passage_start = next((start for start, end in kept if spans and end - start == spans[0].end - spans[0].start), None)
    ranges = [] if passage_start is None else subtract_spans(spans[:1], subtract_spans(spans[:1], gold))
    fields: Record = {"filename": filename, "page": passage.page, "text": cut(text, _MAX_PASSAGE_CHARS)}
    fields["score"] = None if passage.score is None else round(passage.score, 4)
    fields["gold"] = any(drawing.overlaps(span, gold) for span in spans)
    fields["ranges"] = [[(passage_start or 0) + at - spans[0].start for at in part] for part in ranges]
    return {**fields, "spans": spans, "added": passage.added}


def pack(value: Any) -> str:
    """Return a value as compressed JSON in base64."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = packer.compress(as_json(value).encode("utf-8")) + packer.flush()
    return base64.b64encode(data).decode("ascii")


def write_piece(folder: Path, name: str, value: Any) -> None:
    """Write a value as a script file that passes compressed JSON to the page."""
    (folder / f"{name}.js").write_text(f'exhibitPiece("{name}","{pack(value)}")\n', encoding="ascii")


def _describe_stages(gold: Mapping[str, Any]) -> Record:
    """Return a gold passage's result at every stage, the stage that lost it, and the reason."""
    stages = [[stage, _describe_stage(stage, gold[stage])] for stage in STAGE_TITLES if stage in gold]
    fields = {"gold": gold.get("gold", 0), "lost": gold.get("lost_at"), "reason": gold.get("reason") or ""}
    return {**fields, "stages": stages}


def _describe_stage(stage: str, value: Any) -> str:
    if stage == "page":
        return "" if value else "not located"
    if stage in ("text", "chunks"):
        share = int(100 * value["share"])  # round down, so that only a complete passage is 100%
        return "whole" if share == 100 else f"{share}%"
    if stage == "answered":
        return str(value)
    rank, before = value.get("rank"), value.get("before")
    moved = f" (before: {before})" if before is not None and before != rank else ""
    return "absent" + moved if rank is None else f"rank {rank}{moved}"
