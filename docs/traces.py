"""Writes the trace of one search in the sample contracts into docs/retrieval.md: `python -m docs.traces`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from exhibit.rag import Config, Pipeline
from exhibit.rag.retrieval.stages import Retrieved
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "retrieval.md"
CONTRACTS = ROOT / "samples" / "cuad" / "CUAD_v1" / "full_contract_txt"
QUESTION = "Under Harrowgate's distributor agreement with Pellworth, which law governs?"
BEGIN, END = "<!-- trace -->\n", "<!-- /trace -->"
DIGITS = {"documents": 2, "passages": 1}
"""Of a passage's scores one: the 8-bit embedder's cosines differ in the third digit between processors."""


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Search the sample contracts, and write the steps of the search as JSON into docs/retrieval.md."""
    argparse.ArgumentParser(prog="python -m docs.traces", description=__doc__).parse_args(argv)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(fill(text, format_block(ask(QUESTION))), encoding="utf-8")
    print(f"page: {PAGE}")
    return 0


def ask(question: str, **settings: Any) -> Retrieved:
    """Index the sample contracts and search them, as the two commands in docs/retrieval.md do; return the result."""
    with tempfile.TemporaryDirectory(prefix="traces-") as name:
        pipeline = Pipeline(Config.preset("routed", **settings))
        pipeline.index(CONTRACTS, Path(name) / "index")
        [retrieved] = pipeline.search([question])
    return retrieved


def format_block(retrieved: Retrieved) -> str:
    """Return Markdown with the trace of a search as JSON, and with its first passage as a quotation."""
    words = " ".join(retrieved.selected[0].text.split())
    quoted = textwrap.fill(words, width=118, initial_indent="> ", subsequent_indent="> ", break_on_hyphens=False)
    return f"```json\n{format_trace(shorten(retrieved.trace))}\n```\n\nThe first passage:\n\n{quoted}\n"


def shorten(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace with only its two best documents and passages, and with rounded numbers.

    Numbers have only the digits that are the same on every processor.
    """
    documents, passages = trace["documents"], trace["passages"]
    best = [{k: v for k, v in row.items() if k != "row"} for row in passages["best"][:2]]
    short = {
        "query": trace["query"],
        "documents": {**documents, "likeliest": dict(list(documents["likeliest"].items())[:2])},
        "passages": {**passages, "best": best},
    }
    return {stage: _round_numbers(content, DIGITS.get(stage, 0)) for stage, content in short.items()}


def format_trace(trace: dict[str, Any]) -> str:
    """Return the trace of a retrieval as JSON, with each document and each passage on its own line."""
    rows = []
    for stage, content in trace.items():
        lists = {name: value for name, value in content.items() if name in ("likeliest", "best")}
        head = json.dumps({n: v for n, v in content.items() if n not in lists}, ensure_ascii=False)[1:-1]
        for name, value in lists.items():
            items = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()] if isinstance(value, dict) else []
            opened, closed = ("{", "}") if items else ("[", "]")
            lines = ",\n   ".join(items or [json.dumps(row) for row in value])
            head += f', "{name}": {opened}\n   {lines}{closed}'
        rows.append(f' "{stage}": {{{head}}}')
    return "{" + ",\n".join(rows)[1:] + "}"


def fill(text: str, content: str) -> str:
    """Return the text of a page, with `content` in place of everything between its begin and end markers."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ToolkitError(f"{PAGE}: no lines {BEGIN.strip()} and {END} to write between; put them where it belongs")
    return f"{before}{begin}{content}{end}{after}"


def _round_numbers(value: Any, digits: int) -> Any:
    if isinstance(value, float):
        return round(value, digits)
    if isinstance(value, dict):
        return {name: _round_numbers(inner, digits) for name, inner in value.items()}
    return [_round_numbers(inner, digits) for inner in value] if isinstance(value, list | tuple) else value


if __name__ == "__main__":
    sys.exit(main())
