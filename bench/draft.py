"""Compares drafted gold with the experts' gold, on bundles whose gold is labelled with its clause.

python -m bench.draft datasets_out/cuad --names NOT_FOR_TRAINING.tsv --limit 20
python -m bench.draft datasets_out/cuad datasets_out/contractnli --names NOT_FOR_TRAINING.tsv --tuning \\
    --weights FOLDER --fit models/weights/confidence.json

A drafted passage is right if it overlaps a passage that the experts marked for the same clause, by at least
half of the shorter of the two. A drafted absence is right if the experts marked no passage. The flags
--tuning and --weights mean the same as in `bench.reading`. With --fit, the reader model reads the documents
for every question, and the confidence of drafts is calibrated on these questions: it is the probability
that a document answers a question.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench._table import print_table
from bench.reading import fit_logistic, use_weights
from exhibit.draft.asked import READ, Asker, SpanReader, Thresholds
from exhibit.draft.drafts import Draft
from exhibit.draft.folder import PreparationWork, open_asker
from exhibit.draft.playbook import Playbook, find_playbooks
from exhibit.engine import open_engine, track
from exhibit.evidence import Span
from exhibit.models.reader import SEVERAL, Reading
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import SourceError
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import open_bundle
from training._reading import read_material
from training.exclusion import Excluded, read_names
from training.gather import DEV, draw_dev

LABELS = {"contract": "clause", "nda": "hypothesis", "merger": "deal_point"}
"""The label in the bundle's gold that corresponds to the name of a playbook's question."""
PLAYBOOKS = {"cuad": "contract", "contractnli": "nda", "maud": "merger"}
"""The playbook whose questions correspond to a benchmark's."""
HYPOTHESES = {
    "nda-1": "marking of confidential information", "nda-2": "technical information only",
    "nda-3": "spoken information",
    "nda-4": "permitted use", "nda-5": "sharing with employees", "nda-7": "sharing with outsiders",
    "nda-8": "compelled disclosure", "nda-10": "secrecy of the talks", "nda-11": "reverse engineering",
    "nda-12": "independent development", "nda-13": "information from others", "nda-15": "no licence granted",
    "nda-16": "return or destruction", "nda-17": "copies", "nda-18": "no solicitation of staff",
    "nda-19": "survival of obligations", "nda-20": "retained copies",
}  # fmt: skip
"""The names of the playbook's questions for ContractNLI's hypotheses."""
WHAT = "playbooks' questions on documents for tuning of CUAD and ContractNLI, by weights that were trained without them"
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98)
ABSENT = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)


class By(NamedTuple):
    """The scores that one draft is based on.

    `scores` has the reader model's score for each chunk that it read, in order. `spot` is the log-odds that
    the document answers the question, computed from the vectors of its chunks (None if not computed).
    """

    scores: tuple[float, ...]
    spot: float | None


@dataclass(frozen=True)
class Judged:
    """A draft, whether it overlaps a gold passage of the experts, and whether the experts marked any passage."""

    draft: Draft
    right: bool
    answerable: bool
    by: By

    @property
    def likely(self) -> float:
        """The models' probability that the document answers the question."""
        return self.draft.confidence if self.draft.spans else 1 - self.draft.confidence


class Noted:
    """A wrapper around the reader model that records its scores for each question."""

    def __init__(self, reader: SpanReader) -> None:
        self.name, self.threads, self._reader = reader.name, reader.threads, reader
        self._scores: dict[str, tuple[float, ...]] = {}
        self._spots: dict[tuple[float, ...], float | None] = {}

    def read(self, question: str, passages: Sequence[str], hint: str = "") -> list[Reading]:
        """Return what the reader model finds in the passages, and record its scores."""
        readings = self._reader.read(question, passages, hint)
        self._scores[question] = (*self._scores.get(question, ()), *(one.score for one in readings))
        return readings

    def confidence(self, scores: Sequence[float], *, spot: float | None = None) -> float:
        """Return the reader model's confidence, and record `spot`.

        `spot` is the log-odds that the document answers the question, computed from the vectors of its chunks.
        """
        self._spots[tuple(scores)] = spot
        return self._reader.confidence(scores, spot=spot)

    def take_scores(self, questions: Sequence[str]) -> list[By]:
        """Return the recorded scores of a document's questions, and clear the record."""
        scores = [self._scores.pop(question, ()) for question in questions]
        taken = [By(some, self._spots.get(some) if some else None) for some in scores]
        self._spots.clear()
        return taken


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print, for each bundle and several thresholds, the precision and recall of two kinds of drafts.

    The first kind proposes an answer, and the second says that the document has no answer.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.draft", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundles", type=Path, nargs="+")
    parser.add_argument("--names", type=Path, help="only documents whose names are in this file")
    parser.add_argument("--tuning", action="store_true", help="use the documents for tuning instead")
    parser.add_argument("--weights", type=Path, metavar="FOLDER", help="weights to use instead of the shipped ones")
    parser.add_argument("--limit", type=int, help="the most documents")
    parser.add_argument(
        "--skip", type=int, default=0, help="leave out this many documents at the start, which are for tuning"
    )
    parser.add_argument("--out", type=Path, help="write every draft with its verdict as a line of JSON")
    parser.add_argument(
        "--fit",
        type=Path,
        metavar="FILE",
        help="calibrate the confidence of drafts on these questions, and write the parameters to FILE",
    )
    options = parser.parse_args(argv)
    if options.weights:
        use_weights(options.weights)
    asker: Asker = open_asker(Thresholds(sure=0.0, absent=0.0 if options.fit else None))
    asker.reader = noted = Noted(asker.reader)
    everything: list[Judged] = []
    for root in options.bundles:
        info = open_bundle(root).info
        [playbook] = find_playbooks([PLAYBOOKS[info.name if info else root.name]])
        judged = list(judge(root, options, playbook, asker, noted))
        everything += judged
        print_sure(judged)
        print_absent(judged)
        files = {one.draft.filename for one in judged}
        print(f"{sum(len(one.by.scores) for one in judged) / len(files):.0f} chunks read a document")
    if options.out:
        lines = [{**vars(one.draft), "right": one.right, "answerable": one.answerable} for one in everything]
        options.out.write_text("".join(json.dumps(line, default=list) + "\n" for line in lines), encoding="utf-8")
    if options.fit:
        fit(everything, options.fit)
    return 0


def judge(root: Path, options: argparse.Namespace, playbook: Playbook, asker: Asker, noted: Noted) -> Iterable[Judged]:
    """Draft an answer to each question of the playbook for each document; yield its comparison with the gold."""
    bundle = open_bundle(root)
    gold: dict[tuple[str, str], list[Span]] = defaultdict(list)
    label = LABELS[playbook.name]
    for line in bundle.gold:
        name = normalise_topic(str(line.labels.get(label, "")))
        for spans in (line.spans, *line.alternatives):
            gold[line.filename or "", name] += [Span(*span) for span in spans]
    names = choose_files(root, options)
    known = {name for _, name in gold}  # a clause without any gold in the release cannot be judged
    work = PreparationWork(Preparation(Config.preset("routed")))
    paths = [bundle.root / "corpus" / name for name in names]
    outcomes = open_engine("serial").map(work, paths)
    spent: Counter[str] = Counter()
    clock = time.process_time
    began = clock()
    for name, outcome in zip(names, track(outcomes, total=len(names), label="documents"), strict=True):
        prepared = outcome.unwrap().prepared
        asker.embedder.embed(list(prepared.texts), role="passage")
        indexed = clock()
        drafts = asker.ask(playbook, prepared)
        spent.update(indexed=int(1000 * (indexed - began)), asked=int(1000 * (clock() - indexed)))
        began = clock()
        for draft, by in zip(drafts, noted.take_scores([one.seeks for one in playbook.questions]), strict=True):
            asks = normalise_topic(draft.name.partition("/")[2])
            places = gold.get((name, asks), [])
            if asks in known:
                yield Judged(draft, is_hit(draft.spans, places), bool(places), by)
    each = {what: total / 1000 / max(1, len(names)) for what, total in spent.items()}
    print(f"processor time a document: {each['indexed']:.1f} s read and embedded, {each['asked']:.1f} s asked")


def choose_files(root: Path, options: argparse.Namespace) -> list[str]:
    """Return the names of the files to measure, as the options choose them.

    By default they are all files of the bundle. With `--names` they are the listed files, and with `--tuning`
    the files for tuning. `--skip N` leaves out the first N names; `--limit N` keeps at most N of the rest.
    """
    material, excluded = read_material(root), Excluded(read_names(options.names) if options.names else ())
    if options.tuning:
        names = sorted(draw_dev(material, excluded, DEV))
    else:
        names = [name for name in sorted(material.bundle.files) if not options.names or excluded.lists(name)]
    chosen = names[options.skip :][: options.limit]
    if not chosen:
        raise SourceError(
            f"{root}: no document is left of {len(material.bundle.files)}; look at --names, --skip and --limit"
        )
    return chosen


def fit(judged: Sequence[Judged], path: Path) -> None:
    """Fit the probability that a document answers a question, and write the parameters to a JSON file.

    There is one logistic fit for each number of chunks that the reader model reads, from 0 on. Its inputs are
    the log-odds computed from the vectors of all chunks and, if chunks are read, their combined score.
    """
    known = [one for one in judged if one.by.spot is not None and len(one.by.scores) == READ]
    wanted = np.array([float(one.answerable) for one in known])
    spots = np.array([one.by.spot for one in known])
    files = {one.draft.filename for one in known}
    counts = {"documents": len(files), "questions": len(known), "answerable": int(wanted.sum()), "what": WHAT}
    told = json.loads(path.read_text(encoding="utf-8"))
    told["spotted"] = [dict(zip(("spot", "offset"), fit_logistic(spots[:, None], wanted), strict=True)) | counts]
    for count in range(1, READ + 1):
        scores = [SEVERAL * float(np.logaddexp.reduce(np.array(one.by.scores[:count]) / SEVERAL)) for one in known]
        fitted = fit_logistic(np.stack([scores, spots], axis=1), wanted)
        told["spotted"].append(dict(zip(("reader", "spot", "offset"), fitted, strict=True)))
    write_whole(path, json.dumps(told, indent=1) + "\n")


def normalise_topic(label: str) -> str:
    """Return the topic of a gold label or of a playbook's question in one normal form, to compare the two."""
    return re.sub(r"[^a-z0-9 -]", "", HYPOTHESES.get(label, label).lower().replace("&", "and"))


def is_hit(spans: Sequence[Span], gold: Sequence[Span]) -> bool:
    """Return whether a drafted span overlaps a gold span by at least half of the shorter of the two."""
    for span in spans:
        for place in gold:
            shared = min(span.end, place.end) - max(span.start, place.start)
            if shared * 2 >= min(span.end - span.start, place.end - place.start):
                return True
    return False


def format_share(part: int, whole: int) -> str:
    """Return a ratio with three decimals for a table, or `–` if the whole is 0."""
    return f"{part / whole:.3f}" if whole else "–"


def print_sure(judged: Sequence[Judged]) -> None:
    """Print, for each confidence threshold, the number of drafted answers, their precision and their recall."""
    answerable = sum(one.answerable for one in judged)
    rows = []
    for level in LEVELS:
        sure = [one for one in judged if one.draft.spans and one.likely >= level]
        right = sum(one.right for one in sure)
        rows.append(
            [f"{level:.2f}", len(sure), f"{right / max(1, len(sure)):.3f}", f"{right / max(1, answerable):.3f}"]
        )
    print_table("sure answers", ["sure from", "drafts", "right", "of the experts' gold"], rows)


def print_absent(judged: Sequence[Judged]) -> None:
    """Print, for each threshold, the number of questions drafted as absent, and their precision and recall.

    A question counts as absent if the probability of an answer is at most the threshold.
    """
    absent = sum(not one.answerable for one in judged)
    rows = []
    for level in ABSENT:
        sure = [one for one in judged if one.likely <= level]
        right = sum(not one.answerable for one in sure)
        rows.append([f"{level:.2f}", len(sure), format_share(right, len(sure)), format_share(right, absent)])
    print_table("sure absences", ["absent up to", "drafts", "absent indeed", "of the absences"], rows)


if __name__ == "__main__":
    sys.exit(main())
