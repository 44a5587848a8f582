"""The one table that a campaign prints: what was tried, what survived, what was lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


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
