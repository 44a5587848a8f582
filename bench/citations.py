"""Measures the resolution of citations, on citations made from the headings and names of a folder's documents.

    python -m bench.citations FOLDER

The headings come from the PDFs' own bookmarks and the names from the exports, not from the index that is measured. They
are written as in answers: after a chapter, in capitals, truncated, misspelt, with a page number that is off by one or
two.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pypdf

from bench._table import print_table
from exhibit.converters.benchmark import Tally
from exhibit.converters.civil_procedure.corpus import Corpus, Resolution, RowEvidence
from exhibit.converters.civil_procedure.names import citations, guide_courts, read_name
from exhibit.converters.civil_procedure.sources import RulesFile, load, reference_of
from exhibit.converters.fetching.fetch import Policy
from exhibit.runtime.command import guarded

_STRANGERS = (
    "Part 99",
    "CPR 99.4",
    "PD 99Z",
    "Admiralty Registry Guide, 4.2 Fees (p. 31)",
    "Ferry Act 2031, section 4",
)
"""Citations of documents that no folder has."""
_EDITORIAL = ("date", "and Counterclaim", "sic", "the defendant", "emphasis added", "insert name", "…")


@dataclass(frozen=True)
class Made:
    """A citation, the change that was made to it, and the file that it means; no file if it must not be resolved."""

    text: str
    kind: str
    row: RowEvidence
    filename: str = ""
    page: int = 0


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Print the shares of citations that are resolved, located, and resolved wrongly."""
    parser = argparse.ArgumentParser(prog="python -m bench.citations", description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="documents as converters.cpr reads them")
    parser.add_argument("--count", type=int, default=300, metavar="N", help="citations of each source (default: 300)")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args(argv)
    sources, _ = load(options.folder, Policy(), Tally())
    made = list(make(sources, count=options.count, chance=random.Random(options.seed)))
    counts = measure(Corpus(sources), made)
    rows: list[list[object]] = []
    for kind in dict.fromkeys(one.kind for one in made):
        of = counts[kind]
        rows.append([kind, *(of[name] for name in ("all", "resolved", "located", "wrong document", "wrong page"))])
    print_table("citations", ["", "all", "resolved", "located", "wrong document", "wrong page"], rows)
    return 0


def measure(corpus: Corpus, made: Sequence[Made]) -> dict[str, Counter[str]]:
    """Return, for each kind, the number of citations and of each outcome."""
    counts: dict[str, Counter[str]] = {}
    for one in made:
        of = counts.setdefault(one.kind, Counter())
        of["all"] += 1
        resolutions = [pair[1] for cited in citations(one.text) for pair in corpus.resolve_all(cited, one.row)]
        of.update(name for resolution in resolutions for name in _outcomes(one, resolution))
    return counts


def _outcomes(one: Made, resolution: Resolution) -> Iterator[str]:
    if resolution.source is None:
        return
    yield "resolved"
    if resolution.source.raw.filename != one.filename:
        yield "wrong document"
    if resolution.place is not None:
        yield "located"
        if one.page and resolution.place.page != one.page:
            yield "wrong page"


def make(sources: Sequence[RulesFile], *, count: int, chance: random.Random) -> Iterator[Made]:
    """Yield citations of headings in PDFs, of exports, of missing documents, and editors' brackets."""
    listed = [entry for source in sources if source.raw.path for entry in _bookmarks(source)]
    for source, title, above, page in chance.sample(listed, min(count, len(listed))):
        kind, text, cited = _spoil(title, above, page, chance)
        yield Made(f"It is so. [{text} (p. {cited})]", kind, _row(source, chance), source.raw.filename, page)
    exports = [source for source in sources if source.raw.path is None and reference_of(source.raw.title)]
    for source in chance.sample(exports, min(count, len(exports))):
        kind, text = _name_export(source, chance)
        yield Made(f"It is so. [{text}]", kind, RowEvidence(source.kind), source.raw.filename)
    yield from (Made(f"It is so. [{text}]", "not in the corpus", RowEvidence()) for text in _STRANGERS)
    yield from (
        Made(f'The order says "it is [{text}] so".', "an editor's bracket", RowEvidence()) for text in _EDITORIAL
    )


def _row(source: RulesFile, chance: random.Random) -> RowEvidence:
    """Return the fields of a row that may name the court: one field, another, or none."""
    courts = guide_courts(source.names)
    name = f"{next(iter(courts)).title()} Court" if courts else ""
    return chance.choice([RowEvidence(name), RowEvidence("Court Guide", (name,)), RowEvidence()])


def _bookmarks(source: RulesFile) -> Iterator[tuple[RulesFile, str, str, int]]:
    """Yield a PDF's numbered bookmarks: the heading, the heading above it, and its page in the file."""
    reader = pypdf.PdfReader(source.raw.path or "")

    def walk(items: Sequence[object], above: str) -> Iterator[tuple[RulesFile, str, str, int]]:
        last = ""
        for item in items:
            if isinstance(item, list):
                yield from walk(item, last)
            elif isinstance(item, pypdf.generic.Destination):
                last = " ".join(str(item.title).replace("\x07", " ").split())
                if read_name(last, loose=False).title and (read_name(last, loose=False).number or above):
                    parent = above if read_name(above, loose=False).title else ""
                    yield source, last, parent, (reader.get_destination_page_number(item) or 0) + 1

    yield from walk(reader.outline, "")


def _spoil(title: str, above: str, page: int, chance: random.Random) -> tuple[str, str, int]:
    whole = f"{above}, {title}" if above and not read_name(title).kind else title
    words = title.split()
    kinds = {
        "as it is": (whole, page),
        "capitals": (whole.upper(), page),
        "cut off": (f"{' '.join(words[: max(3, len(words) // 2)])} …" if len(words) > 4 else whole, page),
        "a letter missing": (_slip(whole, chance), page),
        "a page or two off": (whole, max(1, page + chance.choice([-2, -1, 1, 2]))),
        "other dashes": (whole.replace("–", "-").replace("’", "'"), page),
    }
    kind = chance.choice(list(kinds))
    return kind, *kinds[kind]


def _slip(text: str, chance: random.Random) -> str:
    places = [match.start() + 3 for match in re.finditer(r"[a-z]{6,}", text)]
    at = chance.choice(places) if places else 0
    return text[:at] + text[at + 1 :] if at else text


def _name_export(source: RulesFile, chance: random.Random) -> tuple[str, str]:
    number = reference_of(source.raw.title)
    rules = re.findall(r"\n\n([A-Z][^\n.;:]{8,90})\n\n(\d+[A-Z]?\.\d+[A-Z]?)(?=[\s(])", source.raw.text or "")
    ways = [("document's name", source.raw.title), ("document's number", number)]
    if rules:
        title, rule = chance.choice(rules)
        ways += [("rule's title", f"{number}#page={title}"), ("rule's number", f"{number}, {rule}")]
    return chance.choice(ways)


if __name__ == "__main__":
    sys.exit(main())
