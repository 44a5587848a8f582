"""Compares drafted gold with the experts' on a bundle whose rows say which clause they are about.

python -m bench.draft datasets_out/cuad --names NOT_FOR_TRAINING.tsv --limit 20

A drafted passage is right where it shares at least half of its characters, or half of the gold's, with a passage that
the experts marked for the same clause; an absence where they marked none.
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

from bench._table import print_table
from exhibit.draft.asked import Asker, Thresholds
from exhibit.draft.drafts import Draft
from exhibit.draft.folder import Work, open_asker
from exhibit.draft.playbook import Playbook, find_playbooks
from exhibit.engine import open_engine, track
from exhibit.evidence import Span
from exhibit.rag.config import Config
from exhibit.rag.ingest import Preparation
from exhibit.schemas.command import guarded
from exhibit.storage.bundle import open_bundle

LABELS = {"contract": "clause", "nda": "hypothesis", "merger": "deal_point"}
"""The label of the bundle's gold that names what a playbook's question asks for."""
HYPOTHESES = {
    "nda-1": "marking of confidential information", "nda-2": "technical information only",
    "nda-3": "spoken information",
    "nda-4": "permitted use", "nda-5": "sharing with employees", "nda-7": "sharing with outsiders",
    "nda-8": "compelled disclosure", "nda-10": "secrecy of the talks", "nda-11": "reverse engineering",
    "nda-12": "independent development", "nda-13": "information from others", "nda-15": "no licence granted",
    "nda-16": "return or destruction", "nda-17": "copies", "nda-18": "no solicitation of staff",
    "nda-19": "survival of obligations", "nda-20": "retained copies",
}  # fmt: skip
"""ContractNLI's hypotheses by the playbook's names."""
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
ABSENT = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3)


@dataclass(frozen=True)
class Judged:
    """A draft beside what the experts say: whether a passage of theirs is hit, and whether there is one."""

    draft: Draft
    right: bool
    answerable: bool

    @property
    def likely(self) -> float:
        """How likely the models say that the document answers."""
        return self.draft.confidence if self.draft.spans else 1 - self.draft.confidence


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print how often sure drafts are right, at each confidence."""
    parser = argparse.ArgumentParser(prog="python -m bench.draft", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--playbook", default="contract")
    parser.add_argument("--names", type=Path, help="only documents whose names stand in this file")
    parser.add_argument("--limit", type=int, help="only so many documents")
    parser.add_argument("--skip", type=int, default=0, help="leave out the first documents: those for tuning")
    parser.add_argument("--out", type=Path, help="write every draft with its verdict, a JSON object a line")
    options = parser.parse_args(argv)
    [playbook] = find_playbooks([options.playbook])
    judged = list(judge(options, playbook))
    if options.out:
        lines = [{**vars(one.draft), "right": one.right, "answerable": one.answerable} for one in judged]
        options.out.write_text("".join(json.dumps(line, default=list) + "\n" for line in lines), encoding="utf-8")
    print_sure(judged)
    print_absent(judged)
    return 0


def judge(options: argparse.Namespace, playbook: Playbook) -> Iterable[Judged]:
    """Yield every question of the playbook on every document, with its verdict."""
    bundle = open_bundle(options.bundle)
    gold: dict[tuple[str, str], list[Span]] = defaultdict(list)
    label = LABELS[playbook.name]
    for line in bundle.gold:
        name = asked_for(str(line.labels.get(label, "")))
        for spans in (line.spans, *line.alternatives):
            gold[line.filename or "", name] += [Span(*span) for span in spans]
    names = chosen_files(sorted(bundle.files), options)
    known = {name for _, name in gold}  # of what a release has no gold for nothing can be said
    asker: Asker = open_asker(Thresholds(sure=0.0))
    work = Work(Preparation(Config.preset("careful")))
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
        for draft in drafts:
            asks = asked_for(draft.name.partition("/")[2])
            places = gold.get((name, asks), [])
            if asks in known:
                yield Judged(draft, hits(draft.spans, places), bool(places))
    each = {what: total / 1000 / max(1, len(names)) for what, total in spent.items()}
    print(f"processor time a document: {each['indexed']:.1f} s read and embedded, {each['asked']:.1f} s asked")


def chosen_files(files: Sequence[str], options: argparse.Namespace) -> list[str]:
    """Return the files that stand in `--names`, but for the first ones, for tuning, and as many as are wanted."""
    lines = options.names.read_text(encoding="utf-8").splitlines() if options.names else []
    listed = {Path(line.rpartition("\t")[2]).stem.casefold() for line in lines}
    names = [name for name in files if not listed or Path(name).stem.casefold() in listed]
    return names[options.skip :][: options.limit]


def asked_for(label: str) -> str:
    """Return what a label or a playbook's question asks for, in the same words."""
    return re.sub(r"[^a-z0-9 -]", "", HYPOTHESES.get(label, label).lower().replace("&", "and"))


def hits(spans: Sequence[Span], gold: Sequence[Span]) -> bool:
    """Return whether a drafted passage shares half of itself, or half of a gold passage, with the gold."""
    for span in spans:
        for place in gold:
            shared = min(span.end, place.end) - max(span.start, place.start)
            if shared * 2 >= min(span.end - span.start, place.end - place.start):
                return True
    return False


def share(part: int, whole: int) -> str:
    """Return a share as a table shows it."""
    return f"{part / whole:.3f}" if whole else "–"


def print_sure(judged: Sequence[Judged]) -> None:
    """Print, for each level, how many answers are sure and how many of these are right."""
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
    """Print, for each level, how many absences are sure and how many of these are absent."""
    absent = sum(not one.answerable for one in judged)
    rows = []
    for level in ABSENT:
        sure = [one for one in judged if one.likely <= level]
        right = sum(not one.answerable for one in sure)
        rows.append([f"{level:.2f}", len(sure), share(right, len(sure)), share(right, absent)])
    print_table("sure absences", ["absent up to", "drafts", "absent indeed", "of the absences"], rows)


if __name__ == "__main__":
    sys.exit(main())
