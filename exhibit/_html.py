"""The little HTML that a notebook draws: tables, lines and a link, with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table, the first as its head."""
    head, *body = ([escape(cell) for cell in row] for row in rows)
    top = "".join(f"<th scope='col'>{cell}</th>" for cell in head)
    lines = [f"<tr><th scope='row'>{row[0]}</th>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>" for row in body]
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def paragraphs(lines: Iterable[str]) -> str:
    """Return a paragraph a line."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def link(path: Path, label: str) -> str:
    """Return a link to a file: relative where it can be, as a notebook's server gives out its own folder alone."""
    here = Path.cwd()
    whole = path.resolve()
    address = whole.relative_to(here).as_posix() if whole.is_relative_to(here) else whole.as_uri()
    return f'<p><a href="{escape(address)}">{escape(label)}</a></p>'
