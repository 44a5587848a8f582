"""Reviews of runs: the sample of questions, the agreement of reviewers, and corrected gold as patches.

Gold is corrected if more reviewers call it wrong than right, and all the corrections that they propose agree.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from exhibit.evaluation.outcomes import BAD, GOOD, GOOD_MARK, MARK
from exhibit.evaluation.placement import Documents
from exhibit.evidence import Document, fold, locate
from exhibit.runtime.command import print_note
from exhibit.schemas import review
from exhibit.schemas.bundle import INFO, TRAIN, read_info
from exhibit.schemas.errors import BundleError
from exhibit.schemas.run import Id, RunQuestion
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.bundle import list_corpus_files, mirror_bundle, sha256_of
from exhibit.viewer.page import Record
from exhibit.viewer.report import find_dataset_roots

Key = tuple[str, Id]  # a dataset and the id of a question in it
Questions = Mapping[Key, RunQuestion]
Judged = list[tuple[str, review.ReviewedCase]]  # the judgments of a question's gold, by reviewer
JOINT = " […] "  # the separator of the passages of an answer that is made of several
BY = ("confidence", "outcome", "dataset")
ASPECTS = {"gold": "on the gold", "answer": "on the answers"}
Judgments = Mapping[Key, str]


def group_by_question(reviews: Iterable[review.Review]) -> dict[Key, Judged]:
    """Return the judgments on each question's gold; a correction without a judgment counts as `wrong`."""
    judgments: dict[Key, Judged] = {}
    for saved in reviews:
        for case in saved.cases:
            if case.gold is None and case.better.has_correction:
                case = case.model_copy(update={"gold": "wrong"})
            if case.gold is not None:
                judgments.setdefault((case.dataset, case.id), []).append((saved.reviewer, case))
    return judgments


def place_passage(marked: review.MarkedPassage, document: Document | None) -> review.MarkedPassage | None:
    """Return a passage with the document's text, located again if the text has changed; None if it is missing."""
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


def join_words(passages: Iterable[review.MarkedPassage]) -> str:
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
    """Return a random sample of questions that takes from each confidence, outcome and dataset in turn."""
    strata: dict[tuple[str, ...], list[Key]] = defaultdict(list)
    for key, row in rows.items():
        confidence = row.reply.confidence
        third = "none" if confidence is None else str(min(2, int(3 * confidence)))
        strata[third, row.outcome, row.dataset].append(key)
    chance, drawn = random.Random(seed), list[Key]()
    waiting = [keys for _, keys in sorted(strata.items())]
    for keys in waiting:
        chance.shuffle(keys)
    while len(drawn) < size and any(waiting):
        drawn += [keys.pop() for keys in waiting if keys][: size - len(drawn)]
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
        return f"{self.first} and {self.second} {ASPECTS[self.aspect]}: {kappa}, they agree in {self.same} of {self.n}"


def collect_judgments(reviewed: review.Review, aspect: str) -> dict[Key, str]:
    """Return a reviewer's judgments by question: on the gold if `aspect` is `gold`, otherwise on the answers."""
    pairs = {(case.dataset, case.id): case.gold if aspect == "gold" else case.answer for case in reviewed.cases}
    return {key: value for key, value in pairs.items() if value}


def count_right(reviews: Sequence[review.Review]) -> list[Record]:
    """Return how many of the judged gold passages and of the judged answers each reviewer calls right."""
    shares = []
    for reviewed in reviews:
        for aspect in ASPECTS:
            counts = Counter(collect_judgments(reviewed, aspect).values())
            right, judged = counts["right"], counts["right"] + counts["wrong"]
            share = {"right": right, "judged": judged, "unclear": counts["unclear"]}
            shares += [{"reviewer": reviewed.reviewer, "aspect": aspect, **share}] if counts else []
    return shares


def compute_agreements(reviews: Sequence[review.Review], rows: Mapping[Key, RunQuestion]) -> list[Agreement]:
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
    patches: dict[str, review.Patch] = field(default_factory=dict)  # the patch of each dataset
    corrected: list[Key] = field(default_factory=list)
    left: dict[str, list[Key]] = field(default_factory=lambda: defaultdict(list))  # uncorrected questions by reason


def correct(reviews: Sequence[review.Review], run: ReviewedRun) -> Corrections:
    """Return the corrections of a run's gold on which the reviewers agree, and a patch for each dataset."""
    result = Corrections()
    fixes: dict[str, list[review.Correction]] = defaultdict(list)
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
        patch = review.Patch(format=review.PATCH, dataset=name, about=about, corrections=corrections)
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


def _find_agreed(proposals: Sequence[review.Better]) -> tuple[review.Better | None, str]:
    """Return the correction that the reviewers agree on, or the reason why there is none."""
    if not proposals:
        return None, "wrong, but no reviewer marked better words"
    passages = {str(sorted((c.filename, c.spans) for c in better.contexts)) for better in proposals}
    if len(passages) > 1 or len({better.is_impossible for better in proposals}) > 1:
        return None, "wrong, but the better words differ"
    answer = next((better.answer for better in proposals if better.answer.strip()), "")
    return proposals[0].model_copy(update={"answer": answer}), ""


def _make_correction(
    key: Key, row: RunQuestion, better: review.Better, wrong: Judged, run: ReviewedRun
) -> review.Correction | None:
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
    return review.Correction(
        id=int(key[1]), was=review.digest_gold((gold.filename, gold.text) for gold in row.gold), contexts=contexts,
        is_impossible=better.is_impossible, answer=answer, reviewers=[name for name, _ in wrong],
        reason="; ".join(filter(None, comments)),
    )  # fmt: skip
