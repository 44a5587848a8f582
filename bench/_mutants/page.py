"""bench/results/mutants.md: what share of the changes is noticed, and what is not, with a reason each."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from bench._mutants.changes import Change
from bench._mutants.trial import Outcome

NOTICED: tuple[Outcome, ...] = ("noticed", "too slow")
HEAD = """# Changes that tests notice

`make mutants` changes the code in one small place at a time (a comparison, `and` for `or`, a number, a statement left
out, a return without its value), runs the tests that call the changed function, and lists the changes that no test
notices. It tries a sample, the same one every time for a seed. `python -m bench.mutants --room evidence --sample 100`
tries more of one room. Reasons for changes that may stay are in `bench/mutants.toml`.

Each share below was measured on a seed that no test had been written against. Tests for what survived are written
afterwards, so that a later run takes a seed above those of the page. With sixty changes a room, a share may be off by
eight points; with thirty, by thirteen. A share counts the changes for which the time sufficed. A
room that is not listed has not been measured yet.
"""
_RULES = "what is not tried"
_ROOM = re.compile(r"^## (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Trials:
    """What became of a room's changes."""

    room: str
    possible: int
    seed: int
    outcomes: Mapping[Change, Outcome]

    @property
    def survivors(self) -> list[tuple[Change, Outcome]]:
        """The changes that no test noticed, in reading order."""
        return sorted((change, outcome) for change, outcome in self.outcomes.items() if outcome not in NOTICED)

    @property
    def share(self) -> float:
        """The share that was noticed."""
        return 1 - len(self.survivors) / len(self.outcomes) if self.outcomes else 0.0

    def __str__(self) -> str:
        tried, noticed = len(self.outcomes), len(self.outcomes) - len(self.survivors)
        return f"{noticed} of {tried} changes noticed ({self.share:.0%}); {self.possible:,} possible, seed {self.seed}"


def read_reasons(path: Path) -> dict[tuple[str, str, str], str]:
    """Return why changes may stay, by file, line of code and change: line numbers move."""
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("accepted", [])
    return {(entry["file"], entry["code"], entry["change"]): entry["reason"] for entry in entries}


@dataclass(frozen=True)
class Rule:
    """Changes that are not tried, because they alter no result: those of lines that begin so, in files of a pattern."""

    file: str
    code: str
    reason: str

    def covers(self, change: Change) -> bool:
        """Return whether a change is one of them."""
        return fnmatch(change.file, self.file) and change.code.startswith(self.code)


def read_rules(path: Path) -> list[Rule]:
    """Return what is not tried."""
    return [Rule(**entry) for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("untried", [])]


def read_first(path: Path) -> dict[str, str]:
    """Return what a room's first measurement found, before any test was written for what survived of it."""
    return {
        room: str(words) for room, words in tomllib.loads(path.read_text(encoding="utf-8")).get("first", {}).items()
    }


def reason_of(change: Change, outcome: Outcome, reasons: Mapping[tuple[str, str, str], str]) -> str:
    """Return why a change may stay, or what is known of it."""
    known = reasons.get((change.file, change.code, change.words))
    return known or ("no test runs this function" if outcome == "no test runs it" else "a test is missing")


def write_page(
    path: Path,
    trials: Sequence[Trials],
    reasons: Mapping[tuple[str, str, str], str],
    rules: Sequence[Rule] = (),
    first: Mapping[str, str] | None = None,
) -> None:
    """Write the rooms that were tried, and what never is; other rooms keep what an earlier run said of them."""
    before = _ROOM.split(path.read_text(encoding="utf-8"))[1:] if path.is_file() else []
    sections = {name: text.strip() for name, text in zip(before[::2], before[1::2], strict=True)}
    sections |= {trial.room: _section(trial, reasons, (first or {}).get(trial.room)) for trial in trials}
    sections.pop(_RULES, None)
    rooms = [f"## {room}\n\n{sections[room]}\n" for room in sorted(sections)]
    rows = [f"| {rule.file} | `{_cell(rule.code)}` | {_cell(rule.reason)} |" for rule in rules]
    if rows:
        table = "\n".join(["| files | lines that begin | why |", "|---|---|---|", *rows])
        rooms.append(f"## {_RULES}\n\n{table}\n")
    path.write_text("\n".join([HEAD, *rooms]), encoding="utf-8")


def _section(trial: Trials, reasons: Mapping[tuple[str, str, str], str], first: str | None) -> str:
    share = f"{trial}." + (f" When it was first measured: {first}." if first else "")
    if not trial.survivors:
        return share
    rows = [
        f"| {change.file}:{change.line} | {_cell(change.words)} | {_cell(reason_of(change, outcome, reasons))} |"
        for change, outcome in trial.survivors
    ]
    return "\n".join([share, "", "| where | change | why it is not noticed |", "|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
