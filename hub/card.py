"""A bundle on the Hub's terms: its dataset card, the tables that the card's configs name, and a page with its gold."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from exhibit.engine import Engine
from exhibit.hub._head import head, size_category
from exhibit.hub._picture import PICTURE, Example, write_example
from exhibit.hub._tables import PARQUET, Config, write_tables
from exhibit.schemas.bundle import CARD, CORPUS
from exhibit.schemas.models import HOWS, BundleInfo, Gold, Row
from exhibit.storage.upload import Out

__all__ = ["CardText", "holds_documents", "render_card", "size_category", "write_card"]


@dataclass(frozen=True)
class CardText:
    """What the card says that no file of the bundle does."""

    tags: Sequence[str] = ()
    questions: str = ""
    """How the questions came to be worded."""
    limits: str = ""
    """What a user must know before trusting a number, in Markdown."""
    annotations: Sequence[str] = ()
    """Who marked the gold, in the Hub's words: `expert-generated`, `crowdsourced` …"""
    converter: str = ""
    """What made the bundle, where the bundle has another name."""
    derived: str = ""
    """The dataset that this one extends, where it has a name of its own."""


UNDRAWN = "page that cannot be drawn for the card"


def write_card(
    bundle: BundleInfo,
    folder: Path,
    *,
    rows: Sequence[Row],
    gold: Sequence[Gold],
    engine: Engine,
    text: CardText,
    out: Out | None = None,
    texts: Path | None = None,
) -> BundleInfo:
    """Write `README.md`, `parquet/` and, where there is a page to show, `page.png` into a bundle's folder.

    `out` is told where the documents are in a store already, and where large files go as they are finished. `texts`
    is a folder with the texts that are known already. The bundle that comes back notes pages that could not be drawn.
    """
    configs = write_tables(bundle, folder, rows=rows, gold=gold, engine=engine, out=out, texts=texts)
    undrawn: list[str] = []
    example = write_example(rows, gold, folder, out=out, undrawn=undrawn.append)
    if undrawn:
        bundle = bundle.model_copy(update={"noted": {**bundle.noted, UNDRAWN: undrawn}})
    words = render_card(bundle, configs=configs, example=example, text=text)
    (folder / CARD).write_text(words, encoding="utf-8", newline="\n")
    return bundle


def holds_documents(name: str) -> bool:
    """Return whether a file of the bundle holds documents, or a page of one: what a licence may not let pass on."""
    return name == PICTURE or name.startswith((f"{CORPUS}/", f"{PARQUET}/corpus-"))


def render_card(bundle: BundleInfo, *, configs: Sequence[Config], example: Example | None, text: CardText) -> str:
    """Return the card's Markdown with its YAML head."""
    passages = sum(bundle.counts.located.values())
    template = _environment().get_template("card.md.j2")
    return template.render(
        head=head(bundle, configs, tags=text.tags, annotations=text.annotations, derived=text.derived),
        bundle=bundle,
        counts=bundle.counts,
        passages=passages,
        located=passages - bundle.counts.located.get("absent", 0),
        pages=sum(document.pages or 0 for document in bundle.documents),
        characters=sum(document.characters for document in bundle.documents),
        hows=HOWS,
        meanings=_MEANINGS,
        configs={config.name: config for config in configs},
        example=example,
        row=_json(_shortened(example.row)) if example else "",
        line=json.dumps(_shortened_line(example.line), ensure_ascii=False) if example and example.line else "",
        picture=PICTURE,
        text=text,
        command=_command(bundle, text.converter or bundle.name),
        citation=_citation(bundle),
    )


@cache
def _environment() -> Environment:
    """Return what fills the template, which is compiled once."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # Markdown, not HTML
    )
    environment.filters |= {"plain": plain, "code": code, "fence": fence, "link": link, "number": "{:,}".format}
    return environment


_MEANINGS = {
    "exact": "character for character",
    "folded": "after unifying spaces, quotes, dashes, ligatures, hyphenation and, if need be, case",
    "parts": "in pieces: at `<omitted>`, or around a page's running head or foot",
    "fuzzy": "at least 95% alike; `score` says how much",
    "section": "the source cites a heading or a number; this is the section under it (`labels.heading`)",
    "answer": "the source quotes nothing; the words of its answer stand once in the document that it names",
    "absent": "not found; kept in `train.json` and marked",
}

# ---------------------------------------------------------------- Markdown


def plain(text: object) -> str:
    """Return words as Markdown that shows them and means nothing else: no mark-up, no HTML, no table's end."""
    words = " ".join(str(text).split())
    words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    words = re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", words)
    return re.sub(r"^([-+=]|\d+[.)])", r"\\\1", words)  # no list, no heading, where it begins a line


def code(text: object) -> str:
    """Return words as inline code, whatever backticks are in them."""
    words = " ".join(str(text).split()).replace("|", "¦")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    edge = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{ticks}{edge}{words}{edge}{ticks}"


def fence(text: str, language: str) -> str:
    """Return a block of code that nothing in it can end."""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks}{language}\n{text}\n{ticks}"


def link(text: str, address: str) -> str:
    """Return a link, or only its words where there is no address to trust."""
    safe = re.fullmatch(r"https?://[^\s<>\"]+", address)
    return f"[{plain(text)}](<{address}>)" if safe else plain(text)


# ---------------------------------------------------------------- its parts


def _json(record: object) -> str:
    return json.dumps(record, ensure_ascii=False, indent=2)


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


def _citation(bundle: BundleInfo) -> str:
    """Return BibTeX for the conversion, whose version and source decide every byte of it."""
    key = re.sub(r"[^a-z0-9]+", "-", bundle.name.lower()).strip("-") or "bundle"
    title, source = (re.sub(r"[{}\\]", "", " ".join(words.split())) for words in (bundle.title, bundle.source.name))
    return (
        f"@misc{{exhibit-{key},\n"
        f"  title = {{{{{title}}}: documents and questions with located gold}},\n"
        f"  note = {{Converted from {source} by {bundle.tool.name} {bundle.tool.version}}}\n}}"
    )


def _shortened(row: Row, most: int = 300) -> dict[str, object]:
    record = row.model_dump()
    record["answer"] = _cut(row.answer, most)
    record["contexts"] = [
        {name: _cut(value, most) for name, value in context.model_dump(exclude_none=True).items()}
        for context in row.contexts[:2]
    ]
    return record


def _shortened_line(line: Gold, most: int = 300) -> dict[str, object]:
    labels = {name: _cut(value, most) if isinstance(value, str) else value for name, value in line.labels.items()}
    return {**line.model_dump(), "labels": labels}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + " …"
