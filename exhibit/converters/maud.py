"""MAUD: 152 merger agreements, with deal points quoted by lawyers for the ABA's Public Target Deal Points Study.

python -m converters.maud --source maud-main --out datasets_out/maud
"""

import sys
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from exhibit.converters import Benchmark, Quote, RawDocument, RawRow, Tally, read_info
from exhibit.converters.raw.maud_release import (
    MAE,
    Excerpt,
    Labels,
    Release,
    find_excerpts,
    make_definition_key,
    read_cell,
    read_release,
    titles_of,
)
from exhibit.converters.raw.titles import choose_unique_titles
from exhibit.converters.steps.cli import main
from exhibit.evidence import Document, fold

INFO = read_info(__file__)

QUESTIONS = INFO.asked
"""Our wording of the 25 deal points, in the order of the source's columns: an id is row x 25 + position in this
list.
"""

KNOWN_BAD = {"contract_88": "its text ends early", "contract_149": "its text is not this agreement's"}
"""Faults of the contracts that users of the release have reported."""


@dataclass(frozen=True)
class _Contract:
    """A row of main.csv and its agreement."""

    row: int
    cells: dict[str, str]
    name: str
    text: str

    @property
    def filename(self) -> str:
        return f"{self.name}.pdf"

    @property
    def deal(self) -> str:
        return _deal(self.cells)

    @cached_property
    def excerpts(self) -> dict[str, list[Excerpt]]:
        """The excerpts by deal point, with their locations in the agreement; deal points without excerpts are
        absent.
        """
        document = Document(f"{self.name}.txt", self.text)
        cells = {point: read_cell(self.cells[point]) for point in QUESTIONS}
        return {point: find_excerpts(cell, document) for point, cell in cells.items() if cell.excerpts}

    @property
    def located(self) -> int:
        return sum(excerpt.match is not None for excerpts in self.excerpts.values() for excerpt in excerpts)


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read main.csv, pair its rows with the agreements, and locate each excerpt in its agreement's text."""
    release = read_release(source, INFO, ["Filename", *QUESTIONS], tally)
    contracts = _pair(release, tally)
    # make titles unique over the whole source, so that a limit changes no title
    titles = choose_unique_titles({c.filename: list(titles_of(c.text, deal=c.deal, stem=c.name)) for c in contracts})
    kept = [c for c in contracts[: options.limit] if not _leave_wrong(c, tally)]
    return Benchmark(
        documents=[RawDocument(c.filename, titles[c.filename], text=c.text) for c in kept],
        rows=[row for c in kept for row in _make_rows(c, titles[c.filename], release.labels, tally)],
        sha256=release.sha256,
    )


# ---------------------------------------------------------------- rows and their agreements


def _deal(cells: dict[str, str]) -> str:
    """Return the name of a row's deal; if the cell has several lines, as for an amendment, they are joined by `|`."""
    return " | ".join(cells["Filename"].split("\n"))


def _pair(release: Release, tally: Tally) -> list[_Contract]:
    """Pair each row of the main table with the agreement that contains the row's MAE definition.

    MAE means material adverse effect. The numbers in the column `Filename (anon)` cannot be used, because they
    do not match the agreements' files.
    """
    labels, texts = release.labels, release.texts
    pairs: dict[str, list[_Contract]] = defaultdict(list)
    for row, cells in enumerate(release.rows):
        deal = _deal(cells)
        name = _find_owner(cells[MAE], labels, texts)
        if name is None:
            tally.fault("no agreement has the row's MAE definition, or several do", deal or f"row {row}")
        elif name not in texts:
            tally.fault("no text for the agreement", f"{deal}: {name}.txt")
        else:
            pairs[name].append(_Contract(row, cells, name, texts[name]))
    for name in sorted(texts.keys() - pairs.keys()):
        tally.leave_out("no row for the agreement", f"{name}.txt")
    return sorted((_choose_best(rows, labels, tally) for rows in pairs.values()), key=lambda contract: contract.row)


def _find_owner(definition: str, labels: Labels, texts: dict[str, str]) -> str | None:
    """Return the agreement to which a definition belongs; None if there is no such agreement or more than one.

    The label files are searched first. If they do not decide, the texts of the agreements are searched.
    """
    key = make_definition_key(definition)
    owners = labels.owners.get(key, set()) if key else set()
    if len(owners) != 1:
        parts = [fold(part, loose=True) for part in read_cell(definition).excerpts]
        owners = {name for name, text in texts.items() if parts and _has(text, parts)}
    return next(iter(owners)) if len(owners) == 1 else None


def _has(text: str, parts: list[str]) -> bool:
    folded = fold(text, loose=True)
    return all(part in folded for part in parts)


def _choose_best(rows: list[_Contract], labels: Labels, tally: Tally) -> _Contract:
    """Return the most complete row for an agreement and count its other rows as faults.

    MAUD's release has two rows for the Soliton agreement, and one of them is damaged.
    """
    if len(rows) == 1:
        return rows[0]
    best = max(rows, key=lambda c: (c.cells[MAE] in labels.verbatim, c.located, -c.row))
    for other in rows:
        if other is not best:
            tally.fault("second row for an agreement that another row has", f"{other.deal}: {other.name}.txt")
    return best


def _leave_wrong(contract: _Contract, tally: Tally) -> bool:
    """Return whether to leave out an agreement because its text contains none of the excerpts in its row.

    An agreement without excerpts is kept. If users reported the agreement as faulty, record a note; the report
    alone is no reason to leave it out.
    """
    if contract.name in KNOWN_BAD:
        tally.note("reported as bad by users of the release", f"{contract.name}.txt: {KNOWN_BAD[contract.name]}")
    if contract.located or not contract.excerpts:
        return False
    tally.fault("none of the excerpts stands in the agreement's text: it is another one's", f"{contract.name}.txt")
    return True


# ---------------------------------------------------------------- questions


def _make_rows(contract: _Contract, title: str, labels: Labels, tally: Tally) -> Iterator[RawRow]:
    for column, (point, question) in enumerate(QUESTIONS.items()):
        place = f"{contract.filename}: {point}"
        excerpts = contract.excerpts.get(point)
        if not excerpts:
            tally.leave_out("no excerpt for the deal point", place)
            continue
        if any(excerpt.others for excerpt in excerpts):
            tally.note("excerpt with several places, which the order of the others does not decide", place)
        ticked = labels.answers.get((contract.name, point), {})
        yield RawRow(
            id=contract.row * len(QUESTIONS) + column,
            question=f"Consider the {title}; {question}",
            answer=" […] ".join(" ".join(excerpt.text.split()) for excerpt in excerpts),
            quotes=tuple(_quote(contract.filename, excerpt) for excerpt in excerpts),
            filename=contract.filename,
            labels={
                "deal_point": point,
                "contract": contract.name,
                "deal": contract.deal,
                "pages": read_cell(contract.cells[point]).pages or None,
                "answers": "; ".join(f"{asked}: {answer}" for asked, answer in ticked.items()) or None,
            },
        )


def _quote(filename: str, excerpt: Excerpt) -> Quote:
    if excerpt.match is None:
        return Quote(filename, excerpt.text)
    return Quote(
        filename,
        excerpt.text,
        spans=excerpt.match.spans,
        alternatives=tuple(other.spans for other in excerpt.others),
        score=excerpt.match.score,
    )


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
