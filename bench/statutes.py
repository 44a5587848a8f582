"""Measures retrieval of laws, by language and by kind of question.

    python -m converters.statutes --source LAWS --out datasets_out/statutes --ask-in en
    python -m bench.statutes datasets_out/statutes

There are three figures: how often the first passage is the right § of the right law; how often, of these
cases, it is in the right version of the law; and how often the right § in the right version is among the
first eight passages. The bundle's questions name the §. The questions of `law_topics.tsv` are written by
hand in English: they describe the topic, and name only the law. Intervals are 95% intervals by a bootstrap
over laws.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bench._table import print_table
from exhibit.evaluation.cases import Case, GoldPassage
from exhibit.evaluation.datasets import Dataset, Selection, load_datasets
from exhibit.evaluation.metrics.version_accuracy import has_right_version
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.law.editions import find_units, label_key, make_law_name
from exhibit.law.language import system_of
from exhibit.law.refusals import is_refusal
from exhibit.rag.config import Config
from exhibit.runtime.command import guarded, print_note
from exhibit.storage.bundle import open_bundle
from exhibit.storage.cache import find_cache_folder

TOPICS = Path(__file__).with_name("law_topics.tsv")
TOP = 8
DRAWS = 2000


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Ask the questions of the bundle and of `law_topics.tsv`, and print how often the right § is retrieved.

    The figures are printed twice: for all laws, and for the held-out laws only.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.statutes", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--preset", default="routed")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings that replace the preset's")
    parser.add_argument("--wrong", type=Path, help="write the questions with a wrong answer, one per line")
    options = parser.parse_args(argv)
    [dataset], _ = load_datasets([options.bundle], Selection())
    cases = [*dataset.cases, *read_topics(dataset)]
    config = Config.preset(options.preset, **dict(pair.split("=", 1) for pair in options.set))
    target = open_target("builtin", TargetOptions(config=config, cache=find_cache_folder()))
    target.ingest(dataset)
    replied = [replace(case, reply=reply) for case, (_, reply) in zip(cases, target.ask(dataset, cases), strict=True)]
    print_groups(f"{options.bundle}: {options.preset} {' '.join(options.set)}, all laws", replied)
    print_groups("the laws set aside", [case for case in replied if choose_half(case) == "aside"])
    if options.wrong:
        wrong = [f"{case.labels['kind']}\t{case.question}\n" for case in replied if not score_case(case)[0]]
        options.wrong.write_text("".join(wrong), encoding="utf-8")
    return 0


def print_groups(title: str, replied: Sequence[Case]) -> None:
    """Print three retrieval figures for each question language and law language, by kind of question.

    1. How often the first passage is the right §.
    2. How often, in these cases, it is also in the right version of the law.
    3. How often the right § in the right version is among the first eight passages.
    """
    groups: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in replied:
        kind = "refused rightly" if case.is_impossible else str(case.labels["kind"])
        asked = f"{case.labels['question_language']} on {case.labels['language']}"
        for name in (kind, "all but impossible") if not case.is_impossible else (kind,):
            groups[asked, name].append(case)
    rows = [[*group, len(some), *format_figures(some)] for group, some in sorted(groups.items())]
    head = ["asked", "kind", "questions", "right § first", "right version of these", f"found among {TOP}"]
    print_table(title, head, rows)


def choose_half(case: Case) -> str:
    """Return `tuning` or `aside` (held out) for the law of a case, chosen by a hash of the law's name."""
    return "tuning" if hashlib.sha256(str(case.labels["law"]).encode()).digest()[0] % 2 else "aside"


def read_topics(dataset: Dataset) -> Iterator[Case]:
    """Yield the hand-written English questions about the bundle's laws, with gold in each law's last version.

    A question is left out, with a note, if that version does not have its §.
    """
    info = open_bundle(dataset.root).info
    last = {make_law_name(entry.title).codes[:1]: entry for entry in (info.documents if info else ())}
    for at, line in enumerate(TOPICS.read_text(encoding="utf-8").splitlines()[1:]):
        code, number, question = line.split("\t")
        entry = last.get((code,))
        if entry is None:
            continue
        document = dataset.documents.get(entry.filename)
        text = document.text if document else ""
        found = [unit for unit in find_units(text, system_of(text)) if label_key(unit.label)[1] == number]
        if not found:
            print_note(f"{code} {number} is not in {entry.filename}: the question on it is left out")
            continue
        gold = GoldPassage(entry.filename, None, ((found[0].span,),))
        labels = {"kind": "topic", "law": entry.labels["law"], "paragraph": found[0].label, "question_language": "en",
                  "language": system_of(text).language}  # fmt: skip
        yield Case(f"topic-{at}", question, "", (gold,), filename=entry.filename, labels=labels)


def score_case(case: Case) -> tuple[bool, bool | None, bool]:
    """Return three results for a case, by which the three figures are computed.

    1. Whether the first passage is the right §.
    2. Whether it is in the right version of the law; None if it is not the right §.
    3. Whether one of the first eight passages is the right § in the right version.

    For an impossible question, the first result says whether the reply is a refusal, and the others are None
    and False.
    """
    if case.is_impossible:
        return is_refusal(case.reply.answer or ""), None, False
    versions = [has_right_version(passage, case) for passage in case.reply.passages[:TOP]]
    first = versions[0] if versions else None
    return first is not None, first, True in versions


def format_figures(cases: Sequence[Case]) -> list[str]:
    """Return three shares as text, each with its confidence interval.

    The first is the share of cases whose first passage is the right §. The second is the share of these cases
    whose first passage is also in the right version. The third is the share of all cases that have the right §
    in the right version among the first eight passages. For impossible questions, the first text is the share
    of refusals, and the second and third are `–`.
    """
    columns = zip(*map(score_case, cases), strict=True)
    laws = [str(case.labels["law"]) for case in cases]
    shown = [format_interval(column, laws) for column in columns]
    return [shown[0], "–", "–"] if cases[0].is_impossible else shown


def format_interval(values: Sequence[bool | None], laws: Sequence[str]) -> str:
    """Return a mean with an interval by a bootstrap over laws, since a law's questions are not independent."""
    grouped: dict[str, list[bool]] = defaultdict(list)
    for value, law in zip(values, laws, strict=True):
        if value is not None:
            grouped[law].append(value)
    if not grouped:
        return "–"
    right, asked = (np.array([measure(some) for some in grouped.values()]) for measure in (sum, len))
    drawn = np.random.default_rng(0).integers(len(right), size=(DRAWS, len(right)))
    low, high = np.quantile(right[drawn].sum(1) / asked[drawn].sum(1), (0.025, 0.975))
    return f"{right.sum() / asked.sum():.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    sys.exit(main())
