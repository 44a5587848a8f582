"""Reviews of runs and of drafted bundles: sample, agreement of reviewers, corrected gold, and added questions.

Gold of a run is corrected if more reviewers call it wrong than right, and all the corrections that they propose agree.
The questions of a drafted bundle are kept, corrected or left out as its reviewers say.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal, NamedTuple

from exhibit.converters import Label, Tally
from exhibit.converters.core.build import read_asked, replace_gold, write_changed
from exhibit.converters.core.documents import NOWHERE
from exhibit.evaluation.outcomes import BAD, GOOD, GOOD_MARK, MARK
from exhibit.evaluation.placement import Documents
from exhibit.evidence import Document, fold, locate
from exhibit.runtime.command import print_note
from exhibit.schemas.bundle import INFO, TRAIN, read_info
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import IMPOSSIBLE_ANSWER, DraftInfo, Gold, Row
from exhibit.schemas.review import PATCH, Better, Correction, MarkedPassage, Patch, Review, ReviewedCase, digest_gold
from exhibit.schemas.run import Id, Outcome, RunGold, RunQuestion, RunReply
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.bundle import BundleFolder, list_corpus_files, mirror_bundle, open_bundle, sha256_of
from exhibit.viewer.page import Record
from exhibit.viewer.report import find_dataset_roots

Key = tuple[str, Id]  # a dataset and the id of a question in it
Questions = Mapping[Key, RunQuestion]
Judged = list[tuple[str, ReviewedCase]]  # the judgments of a question's gold, by reviewer
JOINT = " […] "  # the separator of the passages of an answer that is made of several
BY = ("confidence", "outcome", "dataset")
ASPECTS = {"gold": "on the gold", "answer": "on the answers"}
Judgments = Mapping[Key, str]


def group_by_question(reviews: Iterable[Review]) -> dict[Key, Judged]:
    """Return the judgments on each question's gold; a correction without a judgment means `wrong`."""
    judgments: dict[Key, Judged] = {}
    for saved in reviews:
        for case in saved.cases:
            if case.gold is None and case.better.has_correction:
                case = case.model_copy(update={"gold": "wrong"})
            if case.gold is not None:
                judgments.setdefault((case.dataset, case.id), []).append((saved.reviewer, case))
    return judgments


def place_passage(marked: MarkedPassage, document: Document | None) -> MarkedPassage | None:
    """Return a marked passage with the words that the document has at its place.

    If the document has changed there, the passage is located again; return None if it is not found.
    """
    if document is None:
        return None
    words = " ".join(document.text[start:end] for start, end in marked.spans)
    if not marked.spans or fold(words, loose=True) != fold(marked.text, loose=True):
        match = next(iter(locate(marked.text, document)), None)
        if match is None:
            return None
        spans = [(span.start, span.end) for span in match.spans]
        words = " ".join(document.text[start:end] for start, end in spans)
        marked = marked.model_copy(update={"spans": spans})
    return marked.model_copy(update={"text": words})


def join_words(passages: Iterable[MarkedPassage]) -> str:
    return JOINT.join(" ".join(passage.text.split()) for passage in passages)


class KeyedRows(Mapping[Key, RunQuestion]):
    """The questions of a run by dataset and id; each is read from disk when it is needed."""

    def __init__(self, run: RunFolder) -> None:
        self._rows = run.rows
        self._numbers = {row.key: number for number, row in enumerate(run.rows)}

    def __getitem__(self, key: Key) -> RunQuestion:
        return self._rows[self._numbers[key]]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class ReviewedRun(RunFolder):
    """A finished run, with the bundles of its questions."""

    def __init__(self, folder: Path | str, *, paths: Iterable[str] = ()) -> None:
        """Find the bundle of each dataset, in `paths` or where the run recorded it; raise an error if it is missing."""
        super().__init__(folder)
        roots = find_dataset_roots([self], given=list(paths), say=lambda _: None)
        self.bundles = {name: Path(mirror_bundle(root)) for name, root in roots.items()}
        for name, entry in self.config.datasets.items():
            if name not in self.bundles or not (self.bundles[name] / TRAIN).is_file():
                raise BundleError(f"{name}: its bundle was not found; name its folder with --dataset-paths DIR")
            if entry.train_sha256 not in (None, sha256_of(self.bundles[name] / TRAIN)):
                bundle = self.bundles[name]
                print_note(f"{bundle}: its questions differ from those of the run {self.name}; name the run's bundle")

    @cached_property
    def questions(self) -> Questions:
        return KeyedRows(self)

    def document(self, dataset: str, filename: str) -> Document | None:
        """Return a document, read only once; None if it is missing or cannot be read."""
        documents = self._documents.get(dataset)
        return documents.get(filename) if documents else None

    @cached_property
    def _documents(self) -> dict[str, Documents]:
        return {name: Documents(list_corpus_files(root)) for name, root in self.bundles.items()}


def draw_sample(rows: Questions, *, size: int, seed: int) -> list[Key]:
    """Return a random sample of questions: one in turn from each group of similar confidence, outcome and dataset."""
    strata: dict[tuple[str, ...], list[Key]] = defaultdict(list)
    for key, row in rows.items():
        confidence = row.reply.confidence
        third = "none" if confidence is None else str(min(2, int(3 * confidence)))
        strata[third, row.outcome, row.dataset].append(key)
    chance, drawn = random.Random(seed), list[Key]()
    drafts = [keys for _, keys in sorted(strata.items())]
    for keys in drafts:
        chance.shuffle(keys)
    while len(drawn) < size and any(drafts):
        drawn += [keys.pop() for keys in drafts if keys][: size - len(drawn)]
    chance.shuffle(drawn)  # without this, a reviewer could guess the outcome of the next question
    return drawn


# ---------------------------------------------------------------- what reviews say


class Agreement(NamedTuple):
    first: str  # the name of a rater
    second: str
    aspect: str
    n: int  # the number of questions that both judged
    same: int
    # Cohen's kappa; None if both raters give the same judgment to every question, so that kappa is undefined
    kappa: float | None

    def __str__(self) -> str:
        kappa = "kappa is undefined" if self.kappa is None else f"kappa {self.kappa:.2f}"
        return f"{self.first} and {self.second} {ASPECTS[self.aspect]}: {kappa}, they agree on {self.same} of {self.n}"


def collect_judgments(reviewed: Review, aspect: str) -> dict[Key, str]:
    """Return a reviewer's judgments by question: on the gold if `aspect` is `gold`, otherwise on the answers."""
    pairs = {(case.dataset, case.id): case.gold if aspect == "gold" else case.answer for case in reviewed.cases}
    return {key: value for key, value in pairs.items() if value}


def count_right(reviews: Sequence[Review]) -> list[Record]:
    """Return how often each reviewer calls the gold of a judged question right, and how often its answer."""
    shares = []
    for reviewed in reviews:
        for aspect in ASPECTS:
            counts = Counter(collect_judgments(reviewed, aspect).values())
            right, judged = counts["right"], counts["right"] + counts["wrong"]
            share = {"right": right, "judged": judged, "unclear": counts["unclear"]}
            shares += [{"reviewer": reviewed.reviewer, "aspect": aspect, **share}] if counts else []
    return shares


def compute_agreements(reviews: Sequence[Review], rows: Mapping[Key, RunQuestion]) -> list[Agreement]:
    """Return the agreement of each pair of reviewers, and of each reviewer with the run's outcomes and the judge."""
    outcomes = {key: "right" for key, row in rows.items() if row.outcome in GOOD}
    outcomes |= {key: "wrong" for key, row in rows.items() if row.outcome in BAD}
    marks = {key: mark for key, row in rows.items() if (mark := row.scores.get(MARK)) is not None}
    judge = {key: "right" if mark >= GOOD_MARK else "wrong" for key, mark in marks.items()}
    pairs = []
    for aspect in ASPECTS:
        for reviewed, other in combinations(reviews, 2):
            first, second = collect_judgments(reviewed, aspect), collect_judgments(other, aspect)
            pairs.append(_agree(reviewed.reviewer, first, other.reviewer, second, aspect))
    for reviewed in reviews:
        clear = {key: value for key, value in collect_judgments(reviewed, "answer").items() if value != "unclear"}
        pairs.append(_agree(reviewed.reviewer, clear, "the run's outcome", outcomes, "answer"))
        pairs.append(_agree(reviewed.reviewer, clear, "the judge", judge, "answer"))
    return [pair for pair in pairs if pair.n]


def _agree(first: str, judged: Judgments, second: str, others: Judgments, aspect: str) -> Agreement:
    pairs = [(judgment, others[key]) for key, judgment in judged.items() if key in others]
    return Agreement(first, second, aspect, len(pairs), sum(a == b for a, b in pairs), compute_kappa(pairs))


def compute_kappa(pairs: Sequence[tuple[str, str]]) -> float | None:
    """Return Cohen's kappa; None without pairs, or if both raters give the same judgment to every question."""
    if not (n := len(pairs)):
        return None
    seen = sum(a == b for a, b in pairs) / n
    firsts, seconds = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    chance = sum(firsts[name] * seconds[name] for name in firsts) / n**2
    return None if chance == 1 else (seen - chance) / (1 - chance)


@dataclass
class Corrections:
    patches: dict[str, Patch] = field(default_factory=dict)  # the patch of each dataset
    corrected: list[Key] = field(default_factory=list)
    left: dict[str, list[Key]] = field(default_factory=lambda: defaultdict(list))  # uncorrected questions by reason


def correct(reviews: Sequence[Review], run: ReviewedRun) -> Corrections:
    """Return the corrections on which the reviewers agree, in a patch for each dataset, and what stays uncorrected."""
    result = Corrections()
    fixes: dict[str, list[Correction]] = defaultdict(list)
    judgments = group_by_question(reviews)
    for key in sorted(judgments, key=lambda key: (key[0], str(key[1]))):
        row, wrong = run.questions.get(key), [judgment for judgment in judgments[key] if judgment[1].gold == "wrong"]
        reason, better = _explain_refusal(key, row, judgments[key]), None
        if not reason:
            better, reason = _find_agreed([case.better for _, case in wrong if case.better.has_correction])
        fix = _make_correction(key, row, better, wrong, run) if row and better else None
        if fix:
            result.corrected.append(key)
            fixes[key[0]].append(fix)
        elif reason != "right":
            result.left[reason or "the marked words are not in the document"].append(key)
    about = f"Review of the run {run.name} by {', '.join(dict.fromkeys(reviewed.reviewer for reviewed in reviews))}."
    for dataset, corrections in fixes.items():
        path = run.bundles[dataset] / INFO
        name = read_info(path).name if path.is_file() else dataset
        patch = Patch(format=PATCH, dataset=name, about=about, corrections=corrections)
        result.patches[dataset] = patch
    return result


def _explain_refusal(key: Key, row: RunQuestion | None, judged: Judged) -> str:
    votes = Counter(case.gold for _, case in judged)
    if votes["wrong"] == 0:
        return "right" if votes["right"] else "unclear"
    if votes["wrong"] <= votes["right"]:
        return "the reviewers disagree"
    if row is None:
        return "not in this run"
    return "" if isinstance(key[1], int) else "its id is not a number, so no patch can name it"


def _find_agreed(proposals: Sequence[Better]) -> tuple[Better | None, str]:
    """Return the correction that the reviewers agree on, or the reason why there is none."""
    if not proposals:
        return None, "wrong, but no reviewer marked better words"
    passages = {str(sorted((c.filename, c.spans) for c in better.contexts)) for better in proposals}
    if len(passages) > 1 or len({better.is_impossible for better in proposals}) > 1:
        return None, "wrong, but the reviewers marked different words as better"
    answer = next((better.answer for better in proposals if better.answer.strip()), "")
    return proposals[0].model_copy(update={"answer": answer}), ""


def _make_correction(key: Key, row: RunQuestion, better: Better, wrong: Judged, run: ReviewedRun) -> Correction | None:
    """Return a correction for the patch; None if its words are not in the document."""
    placed = [place_passage(marked, run.document(key[0], marked.filename)) for marked in better.contexts]
    contexts = sorted(filter(None, placed), key=lambda context: (context.filename, context.spans[0]))
    if len(contexts) < len(placed):
        return None
    answer = better.answer.strip() or None
    if not answer and contexts:
        # replace an expected answer that was the text of the old gold, or a refusal
        quotes = fold("".join(gold.text or "" for gold in row.gold), loose=True)
        is_quote = fold(row.truth.replace("[…]", ""), loose=True) == quotes
        answer = join_words(contexts) if row.is_impossible or is_quote else None
    comments = dict.fromkeys(" ".join(case.comment.split()) for _, case in wrong)
    return Correction(
        id=int(key[1]), was=digest_gold((gold.filename, gold.text) for gold in row.gold), contexts=contexts,
        is_impossible=better.is_impossible, answer=answer, reviewers=[name for name, _ in wrong],
        reason="; ".join(filter(None, comments)),
    )  # fmt: skip


# ---------------------------------------------------------------- drafted bundles

_CHECKED_SHARE = 0.3  # least share of sure drafts in a sample: their error rate is shown beside every figure

Drafted = tuple[Row, list[Gold]]
# unsure: a reviewer must decide; sure: used without a review; judged: already reviewed
Status = Literal["unsure", "sure", "judged"]


class DraftedBundle:
    """A drafted bundle with the interface of a run, so that the review page can show its questions and documents."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name, self.bundle = folder, folder.name, open_bundle(folder)
        if self.bundle.info is None or self.bundle.info.draft is None:
            advice = "evaluate it, then review the run: exhibit review make results/RUN"
            raise BundleError(f"{folder}: not a bundle made by exhibit draft; {advice}")
        self.info, self.draft = self.bundle.info, self.bundle.info.draft
        self._documents = Documents(self.bundle.files)

    @cached_property
    def rows(self) -> dict[int, Drafted]:
        """All rows by id, each with its gold: first the rows of train.json, then those of drafts.jsonl."""
        used, drafts = read_asked(self.bundle)
        return {row.id: (row, gold) for row, gold in (*used, *drafts)}

    @cached_property
    def questions(self) -> Questions:
        """The drafted questions, by bundle name and id, in the form of a run's questions but without replies."""
        return {(self.name, id): self._make_question(row, gold) for id, (row, gold) in self.rows.items()}

    def _make_question(self, row: Row, gold: Sequence[Gold]) -> RunQuestion:
        labels, quoted = _get_labels(gold), [line for line in gold if line.context is not None]
        confidence = labels.get("confidence")
        quotes = [
            RunGold(filename=line.filename, pages=line.pages, text=row.contexts[line.context or 0].text,
                    places=[line.spans] if line.spans else [])
            for line in quoted
        ]  # fmt: skip
        reply = RunReply(error="", confidence=float(confidence) if isinstance(confidence, int | float) else None)
        return RunQuestion(
            dataset=self.name, id=row.id, question=row.question, truth=row.answer, is_impossible=row.is_impossible,
            filename=gold[0].filename if gold else None, labels=dict(labels), gold=quotes, reply=reply,
            outcome=Outcome.NOT_JUDGED,
        )  # fmt: skip

    def document(self, _: str, filename: str) -> Document | None:
        """Return a document, read only once; None if it is missing or cannot be read."""
        return self._documents.get(filename)

    def choose_worth_judging(self, size: int) -> list[Key]:
        """Return up to `size` drafts: unsure drafts, least certain first, then sure (or judged) drafts as a check."""
        order: dict[Status, list[RunQuestion]] = {"unsure": [], "sure": [], "judged": []}
        for row in self.questions.values():
            order[find_status(row.labels)].append(row)
        unsure, checks = order["unsure"], order["sure"] if order["sure"] or order["unsure"] else order["judged"]
        unsure.sort(key=lambda row: (abs((row.reply.confidence or 0.0) - 0.5), row.id))
        # a pseudorandom order that is the same on every machine
        checks.sort(key=lambda row: (int(row.id) * 2654435761 % (1 << 32), row.id))
        count = min(len(checks), max(size - len(unsure), round(size * _CHECKED_SHARE)))
        return [row.key for row in (*unsure[: size - count], *checks[:count])]


def _get_labels(gold: Sequence[Gold]) -> dict[str, Label]:
    return gold[0].labels if gold else {}


def find_status(labels: dict[str, Any]) -> Status:
    if labels.get("draft") == "unsure":
        return "unsure"  # also if a reviewer judged it, but must judge it again
    return "judged" if labels.get("draft") == "judged" or "added_by" in labels else "sure"


def apply_reviews(
    reviews: Sequence[Review], drafted: DraftedBundle, out: Path, *, force: bool = False
) -> tuple[DraftInfo, int]:
    """Write a drafted bundle with the judgments applied; return its counts, and how many rows must be judged again."""
    judgments, reopened = _collect_judged(reviews, drafted)
    questions, drafts, tally = list[Drafted](), list[Drafted](), Tally()
    counts: Counter[str] = Counter()
    for id, (row, gold) in drafted.rows.items():
        judged, status = judgments.get(id), find_status(_get_labels(gold))
        counts["before"] += status == "judged"
        if judged is not None:
            settled = _settle(row, gold, judged, drafted)
            if settled is None:
                tally.leave_out("called wrong by a reviewer", f"row {id}: {row.question}")
            questions += [settled] if settled else []
            counts["reviewed"] += settled is not None
            counts["judged"] += status == "sure"
            counts["wrong"] += status == "sure" and not _is_right(judged)
        elif id not in reopened and status != "unsure":
            counts["reviewed"] += status == "judged"
            questions.append((row, gold))
        else:
            drafts.append((row, _add_labels(gold, {"draft": "unsure"})))
    added = make_added_rows(reviews, drafted.bundle, first=max(drafted.rows, default=-1) + 1)
    before = drafted.draft
    update = {"reviewed": before.reviewed - counts["before"] + counts["reviewed"] + len(added)}
    update |= {"judged_sure": before.judged_sure + counts["judged"], "wrong": before.wrong + counts["wrong"]}
    about = drafted.info.model_copy(update={"draft": before.model_copy(update=update)})
    written = write_changed(drafted.bundle, about, [*questions, *added], drafts, tally, out, force=force)
    return written.draft or before, len(reopened)


def _settle(row: Row, gold: list[Gold], judged: Judged, drafted: DraftedBundle) -> Drafted | None:
    """Return a judged row: with its own gold if most reviewers call it right, otherwise with the first correction.

    Return None if the row is wrong and no reviewer has proposed a correction. A question that a reviewer worded anew
    gets the new wording.
    """
    who: dict[str, Any] = {"draft": "judged", "judged_by": ", ".join(name for name, _ in judged)}
    reworded = next((words for _, case in judged if (words := case.better.question.strip())), row.question)
    row = row.model_copy(update={"question": reworded})
    if _is_right(judged):
        return row, _add_labels(gold, who)
    better = next((c.better for _, c in judged if c.gold == "wrong" and c.better.has_correction), None)
    if better is None:
        return None
    answer = better.answer.strip() or join_words(better.contexts)
    return replace_gold(row, gold, better.contexts, answer, {**_get_labels(gold), **who}, drafted.bundle)


def _add_labels(gold: Sequence[Gold], labels: dict[str, Any]) -> list[Gold]:
    return [line.model_copy(update={"labels": {**line.labels, **labels}}) for line in gold]


def _is_right(judged: Judged) -> bool:
    return sum(1 if case.gold == "right" else -1 for _, case in judged) > 0


def _collect_judged(reviews: Sequence[Review], drafted: DraftedBundle) -> tuple[dict[int, Judged], set[int]]:
    """Return the judgments of each row, without unclear judgments, and the ids of the rows to be judged again.

    A row must be judged again if no judgment is about the text that is now proposed, or if the marked words no
    longer exist.
    """
    clear, reopened = dict[int, Judged](), set[int]()
    for (_, id), judged in group_by_question(reviews).items():
        if id not in drafted.rows:
            continue
        row, gold = drafted.rows[int(id)]
        now = digest_gold((context.filename, context.text) for context in row.contexts)
        current = [(name, case) for name, case in judged if case.was in (None, now)]
        if find_status(_get_labels(gold)) == "judged":
            judged = current  # ignore judgments of the text before an earlier review was applied
        valid = [(name, placed) for name, case in current if (placed := _place_case(case, drafted))]
        reopened |= {int(id)} if judged and not valid else set()
        clear[int(id)] = [judgment for judgment in valid if judgment[1].gold != "unclear"]
    return {id: judged for id, judged in clear.items() if judged}, reopened


def _place_case(case: ReviewedCase, drafted: DraftedBundle) -> ReviewedCase | None:
    """Return a judgment with its passages located in the current documents; None if a passage is not found."""
    marked = case.better.contexts
    contexts = [passage for c in marked if (passage := place_passage(c, drafted.document("", c.filename)))]
    if len(contexts) < len(marked):
        return None
    return case.model_copy(update={"better": case.better.model_copy(update={"contexts": contexts})})


def make_added_rows(reviews: Sequence[Review], bundle: BundleFolder, *, first: int) -> list[Drafted]:
    """Return the questions that reviewers added, with their gold, numbered from `first`."""
    rows = list[Drafted]()
    for reviewer, added in ((review.reviewer, added) for review in reviews for added in review.added):
        if added.filename is not None and added.filename not in bundle.files:
            where = f"its document {added.filename} is not in {bundle.root}; is this the right bundle?"
            raise BundleError(f"the added question {added.question!r}: {where}")
        number = first + len(rows)
        labels: dict[str, Label] = {"added_by": reviewer, **({"comment": added.comment} if added.comment else {})}
        answer = added.answer.strip() or join_words(added.contexts)
        fields: dict[str, Any] = {"id": number, "question": added.question, "is_impossible": added.is_impossible}
        row = Row(**fields, answer=answer or IMPOSSIBLE_ANSWER, contexts=[])
        nowhere = [NOWHERE.make_gold(number, None, added.filename, labels)]
        rows.append(replace_gold(row, nowhere, added.contexts, answer, labels, bundle))
    return rows
