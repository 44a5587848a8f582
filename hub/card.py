"""A bundle's README.md: the Hub's dataset card, rendered from `card.md.j2`."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from schemas.bundle import CARD
from schemas.models import HOWS, BundleInfo, Row

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def write_card(
    bundle: BundleInfo,
    folder: Path,
    *,
    example: Row | None,
    tags: Sequence[str] = (),
    questions: str = "",
    limits: str = "",
    converter: str = "",
) -> None:
    """Write the card of a bundle into its folder; `converter` is what made it, where the bundle has another name."""
    text = render_card(bundle, example=example, tags=tags, questions=questions, limits=limits, converter=converter)
    (folder / CARD).write_text(text, encoding="utf-8", newline="\n")


def render_card(
    bundle: BundleInfo,
    *,
    example: Row | None,
    tags: Sequence[str] = (),
    questions: str = "",
    limits: str = "",
    converter: str = "",
) -> str:
    """Return the card's Markdown with its YAML head."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown, not HTML
    )
    # JSON strings are YAML strings: quoting is never guessed
    environment.filters["yaml"] = lambda value: json.dumps(value, ensure_ascii=False)
    environment.filters["cell"] = lambda value: str(value).replace("|", "\\|").replace("\n", " ")
    return environment.get_template("card.md.j2").render(
        bundle=bundle,
        counts=bundle.counts,
        passages=sum(bundle.counts.located.values()),
        paged=any(document.pages for document in bundle.documents),
        hows=HOWS,
        size=size_category(bundle.counts.questions),
        example=json.dumps(_shortened(example), ensure_ascii=False, indent=2) if example else "",
        tags=tags,
        questions=questions,
        limits=limits,
        command=_command(bundle, converter or bundle.name),
        meanings=_MEANINGS,
    )


_MEANINGS = {
    "exact": "character for character",
    "folded": "after unifying spaces, quotes, dashes, ligatures, hyphenation and, if need be, case",
    "parts": "in pieces: at `<omitted>`, or around a page's running head or foot",
    "fuzzy": "at least 95% alike; `score` says how much",
    "absent": "not found; kept in `train.json` and marked",
}


def size_category(rows: int) -> str:
    """Return the Hub's name for a number of rows."""
    return next((name for limit, name in _SIZES if rows < limit), "1M<n<10M")


def _command(bundle: BundleInfo, converter: str) -> str:
    """Return the command that makes this bundle again."""
    flags = []
    for name, value in bundle.options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not False and value is not None:
            flags.append(f"{flag} {shlex.quote(str(value))}")
    return " ".join([f"python -m converters.{converter}", *flags, f"--out datasets_out/{bundle.name}"])


def _shortened(row: Row, most: int = 300) -> dict[str, object]:
    record = row.model_dump()
    record["contexts"] = [
        {k: v if len(v) <= most else v[:most] + " …" for k, v in context.model_dump(exclude_none=True).items()}
        for context in row.contexts[:2]
    ]
    return record
