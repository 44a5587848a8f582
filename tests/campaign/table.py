"""The table that a campaign prints: what was tried, how many trials passed, and which failed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).parent.parent.parent / "bench" / "results" / "campaign.md"


class Result(NamedTuple):
    """The number of trials of one kind, and the failures among them."""

    what: str
    tried: int
    lost: tuple[str, ...] = ()
    """Each trial that ended otherwise than it should, in a few words."""


def as_markdown(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table, followed by up to ten failures of each kind."""
    lines = ["| what | tried | survived | lost |", "|---|---|---|---|"]
    lines += [f"| {r.what} | {r.tried:,} | {r.tried - len(r.lost):,} | {len(r.lost)} |" for r in results]
    total, lost = sum(r.tried for r in results), sum(len(r.lost) for r in results)
    lines.append(f"| all | {total:,} | {total - lost:,} | {lost} |")
    lines += [f"\nlost: {r.what}: {words}" for r in results for words in r.lost[:10]]
    return "\n".join(lines)


def together(results: Sequence[Result]) -> list[Result]:
    """Merge all kinds without a failure into one row, for a page with little room."""
    sound = [r for r in results if not r.lost]
    whole = [Result(", ".join(r.what for r in sound), sum(r.tried for r in sound))] if sound else []
    return [*whole, *(r for r in results if r.lost)]


def added(path: Path, results: Sequence[Result], seconds: float) -> tuple[list[Result], float]:
    """Add the results and the seconds to those of earlier runs in a file, write the totals back and return them."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {"seconds": 0.0, "results": []}
    total = {what: Result(what, tried, tuple(lost)) for what, tried, lost in kept["results"]}
    for one in results:
        old = total.get(one.what, Result(one.what, 0))
        total[one.what] = Result(one.what, old.tried + one.tried, (*old.lost, *one.lost))
    seconds += kept["seconds"]
    path.write_text(json.dumps({"seconds": seconds, "results": list(total.values())}), encoding="utf-8")
    return [total[what] for what in sorted(total)], seconds


def write_table(name: str, table: str, seconds: float, *, page: Path = PAGE) -> None:
    """Write a table into the campaign's page, between `<!-- name -->` and `<!-- end of name -->`."""
    text = page.read_text(encoding="utf-8")
    first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = text.partition(first)
    _, _, after = rest.partition(last)
    words = f"`make {name}`, {seconds / 60:.0f} minutes in all:\n\n{table}\n"
    page.write_text(f"{before}{first}{words}{last}{after}", encoding="utf-8")
