"""The one table that a campaign prints: what was tried, what survived, what was lost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parent.parent.parent / "bench" / "results" / "campaign.md"


class Result(NamedTuple):
    """What became of one kind of trial."""

    what: str
    tried: int
    lost: tuple[str, ...] = ()
    """Each trial that ended otherwise than it should, in a few words."""


def as_markdown(results: Sequence[Result]) -> str:
    """Return the table, and below it what was lost."""
    lines = ["| what | tried | survived | lost |", "|---|---|---|---|"]
    lines += [f"| {r.what} | {r.tried:,} | {r.tried - len(r.lost):,} | {len(r.lost)} |" for r in results]
    total, lost = sum(r.tried for r in results), sum(len(r.lost) for r in results)
    lines.append(f"| all | {total:,} | {total - lost:,} | {lost} |")
    lines += [f"\nlost: {r.what}: {words}" for r in results for words in r.lost[:10]]
    return "\n".join(lines)


def together(results: Sequence[Result]) -> list[Result]:
    """Return all kinds of which nothing was lost as one, for a page that has no room for each."""
    sound = [r for r in results if not r.lost]
    whole = [Result(", ".join(r.what for r in sound), sum(r.tried for r in sound))] if sound else []
    return [*whole, *(r for r in results if r.lost)]


def added(path: Path, results: Sequence[Result], seconds: float) -> tuple[list[Result], float]:
    """Return the results with those of earlier runs that a file keeps, and all their seconds; keep them there."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"seconds": 0.0, "results": []}
    total = {what: Result(what, tried, tuple(lost)) for what, tried, lost in kept["results"]}
    for one in results:
        old = total.get(one.what, Result(one.what, 0))
        total[one.what] = Result(one.what, old.tried + one.tried, (*old.lost, *one.lost))
    seconds += kept["seconds"]
    path.write_text(json.dumps({"seconds": seconds, "results": list(total.values())}), encoding="utf-8")
    return [total[what] for what in sorted(total)], seconds


def write_table(name: str, table: str, seconds: float, *, page: Path = PAGE) -> None:
    """Put a table into bench/results/campaign.md, between the marks of its name."""
    text = page.read_text(encoding="utf-8")
    first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = text.partition(first)
    _, _, after = rest.partition(last)
    words = f"`make {name}`, {seconds / 60:.0f} minutes in all:\n\n{table}\n"
    page.write_text(f"{before}{first}{words}{last}{after}", encoding="utf-8")
