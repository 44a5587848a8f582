"""Changes the code in small places, one at a time, and lists the changes that no test notices.

    python -m bench.mutants
    python -m bench.mutants --room evidence --sample 100 --seed 7
    python -m bench.mutants --room law --file law/sentences.py

Each room's own tests run once unchanged, to learn which test calls which function; then each change of the sample is
made in a copy of the tree and the tests that call its function run until one fails.
bench/results/mutants.md is written anew, unless `--file` or `--no-page` is given.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from bench._mutants.changes import Change, changes_of
from bench._mutants.page import NOTICED, Rule, Trials, read_first, read_reasons, read_rules, reason_of, write_page
from bench._mutants.trial import Outcome, Reach, Workshop, clock
from bench._table import ROOT
from exhibit.engine import positive
from exhibit.engine.outcome import track
from exhibit.schemas.command import guarded, print_note
from exhibit.schemas.errors import ToolkitError

SEED = 75
"""Of the page: no test was written against what survived of it."""
PAGE, REASONS = ROOT / "bench" / "results" / "mutants.md", ROOT / "bench" / "mutants.toml"


@dataclass(frozen=True)
class Room:
    """Code that is changed, and the tests that must notice it."""

    code: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()
    """Code below it that is another room's."""

    def files(self) -> list[str]:
        """Return the files of its code, in order."""
        paths = [ROOT / place for place in self.code]
        files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
        names = [file.relative_to(ROOT).as_posix() for file in files]
        return [name for name in names if not name.startswith(self.without)]


_RETRIEVAL = ("rag/retrieval", "rag/lexicon", "rag/splitters", "rag/questions.py", "rag/database.py",
              "rag/stores/__init__.py")  # fmt: skip
_SCORES = ("evaluation/metrics", "evaluation/statistics.py")
_WHOLE = ("tests/test_evaluate_rag.py", "tests/test_score.py", "tests/test_python_page.py")
"""Tests of the commands and of the Python face, which pass through many rooms."""

ROOMS = {
    "converters": Room(
        ("converters",),
        ("tests/converters", "tests/viewer/test_review.py", "tests/hostile/test_sources.py",
         "tests/hostile/test_neighbours.py", "tests/hostile/test_addresses.py", "tests/law/test_systems.py",
         "tests/bench/test_citations.py"),
    ),
    "draft": Room(("draft",), ("tests/draft",)),
    "engine": Room(("engine",), ("tests/engine", "tests/hostile/test_workers.py")),
    "evaluation": Room(("evaluation",), ("tests/evaluation", *_WHOLE, "tests/test_systems.py"), without=_SCORES),
    "evidence": Room(("evidence",), ("tests/evidence",)),
    "exhibit": Room(("exhibit",), ("tests/exhibit", *_WHOLE)),
    "hub": Room(("hub",), ("tests/hub",)),
    "law": Room(("law",), ("tests/law", "tests/rag/test_question.py", "tests/evaluation/metrics/test_legal.py")),
    "metrics": Room(_SCORES, ("tests/evaluation/metrics", "tests/evaluation/test_statistics.py")),
    "models": Room(
        ("models",),
        ("tests/models", "tests/rag/test_answerers.py", "tests/rag/test_vectors.py", "tests/rag/test_assemble.py",
         "tests/rag/test_legal.py"),
    ),
    "rag": Room(("rag",), ("tests/rag",), without=_RETRIEVAL),
    "retrieval": Room(
        _RETRIEVAL,
        ("tests/rag/test_routed.py", "tests/rag/test_passages.py", "tests/rag/test_question.py",
         "tests/rag/test_words.py", "tests/rag/test_splitters.py", "tests/rag/test_pipeline.py",
         "tests/rag/test_naming.py", "tests/rag/test_extents.py", "tests/rag/test_likelihood.py",
         "tests/rag/test_cuts.py", "tests/rag/test_lexicon.py", "tests/rag/test_ranking.py",
         "tests/rag/test_references.py", "tests/evaluation/test_documents.py"),
    ),
    "schemas": Room(("schemas",), ("tests/schemas", "tests/storage")),
    "storage": Room(
        ("storage",),
        ("tests/storage", "tests/schemas/test_bundle.py", "tests/schemas/test_validate.py",
         "tests/hub/test_stream.py", "tests/test_remote.py", "tests/hostile/test_wire.py",
         "tests/hostile/test_servers.py", "tests/evaluation/test_register_client.py",
         "tests/evaluation/test_targets.py", "tests/converters/test_download.py"),
    ),
    "viewer": Room(("viewer",), ("tests/viewer", "tests/draft/test_review.py")),
}  # fmt: skip


@guarded("stopped; the page is as it was")
def main(argv: Sequence[str] | None = None) -> int:
    """Try the changes of each room; print and write what survived."""
    options = _parser().parse_args(argv)
    reasons, rules = read_reasons(REASONS), read_rules(REASONS)
    trials = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        shops = [Workshop(ROOT, Path(folder) / str(number)) for number in range(options.jobs)]
        for name in options.room or ROOMS:
            trial = _try_room(name, shops, rules, options)
            trials.append(trial)
            print(f"{name}: {trial}")
            for change, outcome in trial.survivors:
                print(f"  {change.file}:{change.line}: {change.words}  [{reason_of(change, outcome, reasons)}]")
                print(f"      {change.code}")
    if not options.file and not options.no_page:
        write_page(PAGE, [trial for trial in trials if trial.outcomes], reasons, rules, read_first(REASONS))
        print(f"page: {PAGE.relative_to(ROOT)}")
    return 0


def _try_room(name: str, shops: Sequence[Workshop], rules: Sequence[Rule], options: argparse.Namespace) -> Trials:
    room = ROOMS[name]
    files = [file for file in room.files() if not options.file or file in options.file]
    if not files:
        raise ToolkitError(f"--file: none of {', '.join(options.file)} is in the room {name} ({', '.join(room.code)})")
    changes = [change for file in files for change in changes_of(file, (ROOT / file).read_text(encoding="utf-8"))]
    changes = [change for change in changes if not any(rule.covers(change) for rule in rules)]
    sample = random.Random(options.seed).sample(changes, min(options.sample, len(changes)))
    known = shops[0].reach(files, room.tests)
    deadline = clock() + options.seconds
    free: SimpleQueue[Workshop] = SimpleQueue()
    for shop in shops:
        free.put(shop)
    for shop in shops[1:]:
        shops[0].share(shop)
    try:
        with ThreadPoolExecutor(len(shops)) as pool:
            tried = pool.map(lambda change: _try(change, known, free, deadline), sample)
            outcomes = list(track(tried, total=len(sample), label=name, unit="change"))
    finally:
        for shop in shops:
            shop.close()  # the next room's tests load other modules
    done = {change: outcome for change, outcome in zip(sample, outcomes, strict=True) if outcome is not None}
    return Trials(name, len(changes), options.seed, done)


def _try(change: Change, known: Reach, free: SimpleQueue[Workshop], deadline: float) -> Outcome | None:
    """Return what became of a change, None where the time was over before its turn."""
    if clock() > deadline:
        return None
    shop = free.get()
    try:
        outcome = shop.attempt(change, known)
        if outcome not in NOTICED:
            print_note(f"{change.file}:{change.line}: {change.words}: {outcome}")
        return outcome
    finally:
        free.put(shop)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--room", action="append", choices=sorted(ROOMS), help="only this one (may be given again)")
    parser.add_argument("--file", action="append", default=[], metavar="PATH", help="only this file of the room")
    parser.add_argument("--sample", type=positive, default=60, metavar="N", help="changes a room (default: 60)")
    parser.add_argument("--seed", type=int, default=SEED, metavar="S", help=f"of the sample (default: {SEED})")
    parser.add_argument(
        "--seconds", type=positive, default=900, metavar="N", help="begin no change of a room later (default: 900)"
    )
    parser.add_argument("--jobs", type=positive, default=2, metavar="N", help="changes at a time (default: 2)")
    parser.add_argument("--no-page", action="store_true", help="leave bench/results/mutants.md as it is")
    return parser


if __name__ == "__main__":
    sys.exit(main())
