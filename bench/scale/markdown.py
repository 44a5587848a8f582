"""Writes Markdown tables into a page, between the comments that mark where each table belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bench.scale.process import BUSY
from exhibit.schemas.errors import ToolkitError

Results = Mapping[str, Any]


def fill(text: str, part: str, block: str) -> str:
    """Return a Markdown page with `block` between the two markers of a part of the benchmark.

    The markers are `<!-- scale:PART -->` and `<!-- /scale:PART -->`; the old text between them is removed.
    """
    marked = re.compile(rf"(<!-- scale:{part} -->\n).*?(<!-- /scale:{part} -->)", re.DOTALL)
    if not marked.search(text):
        raise ToolkitError(f"the page has no markers <!-- scale:{part} --> … <!-- /scale:{part} -->; put them back")
    return marked.sub(lambda match: f"{match[1]}{block.strip()}\n{match[2]}", text)


def format_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines) + "\n"


def describe_measurement(results: Results, part: str) -> str:
    """Return a line that says how a part of the benchmark, such as `memory`, was measured.

    The line has the command, the machine, and how busy the machine was with other work before the
    measurement.
    """
    where = results["machines"][part]
    share = where.get("busy")
    quiet = where["load"] < where["cores"] / 2 if share is None else share <= BUSY
    others = f"load {where['load']:.1f} before" if share is None else f"{100 * share:.0f}% used by others before"
    command = f"`python -m bench.scale --part {part}`"
    state = "quiet" if quiet else "doing other work, too"
    return f"*{command}: {where['cores']} cores ({where['machine']}), {others}: {state}.*\n\n"
