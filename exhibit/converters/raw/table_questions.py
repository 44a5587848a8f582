"""Reads questions from the rows of a table: text, answer, cited passages and labels."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from exhibit.converters.benchmark import Item, Label, Tally
from exhibit.converters.raw.cells import (
    find_chosen_option,
    label,
    list_cell_values,
    read_cell_text,
    read_cell_words,
    read_options,
    read_refusal,
    split_values,
)
from exhibit.converters.raw.columns import Columns
from exhibit.converters.raw.gold import CitedPassage, GoldReader
from exhibit.converters.raw.records import Record
from exhibit.schemas.layout import MUST_CONTAIN, MUST_NOT_CONTAIN


@dataclass
class TableQuestion:
    """A question, read from one row of the table or from several rows with the same id."""

    id: int
    place: str
    text: str
    answer: str
    is_impossible: bool
    labels: dict[str, Label]
    passages: list[CitedPassage]
    items: list[Item]
    """The rows from which it was read."""
    quoted: bool = False
    """Whether the table quotes or cites passages for it, even if they are not found."""
    acceptable: tuple[CitedPassage, ...] = ()
    lists: dict[str, list[Any]] = field(default_factory=dict)
    """The texts that the answer must contain, and must not contain, by label."""

    @property
    def judged(self) -> bool:
        """Whether the question lists texts that its answer must contain or must not contain."""
        return any(self.lists.values())


def read_questions(records: list[Record], columns: Columns, gold: GoldReader, tally: Tally) -> Iterator[TableQuestion]:
    """Yield the questions in order; rows with the same id are one question."""
    ids = [read_cell_words(record.cells.get(columns["id"] or "")) for record in records]
    keep = all(re.fullmatch(r"\d{1,15}", name) for name in ids) and columns["id"] is not None
    grouped: dict[str, TableQuestion] = {}
    for record, name in zip(records, ids, strict=True):
        try:
            question = _read_question(record, columns, gold, int(name) if keep else record.index)
        except ValueError as error:
            tally.fault(str(error), record.place, item=record.item)
            continue
        if name and not keep:
            question.labels = {"id": name, **question.labels}
        # 7 and 007 are one number; a row without an id is a separate question
        first = grouped.setdefault(str(question.id) if keep else name or f"\0{record.place}", question)
        if first is question:
            continue
        if first.text != question.text or first.is_impossible != question.is_impossible:
            line = f"{record.place}: {name}"
            tally.fault("another question under the id of an earlier row", line, item=record.item)
            continue
        if question.answer not in ("", first.answer):
            tally.note("another answer under the same id: the first is kept", f"{record.place}: {name}")
        own = tuple((key, value) for key, value in question.labels.items() if first.labels.get(key) != value)
        first.items += question.items
        first.passages += [passage._replace(labels=own) for passage in question.passages]
    yield from grouped.values()


def _read_question(record: Record, columns: Columns, gold: GoldReader, number: int) -> TableQuestion:
    """Return the question of a row; raise a ValueError that names the missing part."""
    cells = {role: record.cells.get(name) if name else None for role, name in columns.items()}
    question = read_cell_text(cells["question"], "question")
    if not question:
        raise ValueError("the row has no question")
    refused, answerable = read_refusal(cells["impossible"]), read_refusal(cells["answerable"])
    if refused is None or (answerable is None and read_cell_words(cells["answerable"])):
        raise ValueError("the cell for impossible questions is neither yes nor no")
    used = {name.split(".")[0] for name in columns.values() if name} | {name for name in columns.values() if name}
    labels = {name: label(value) for name, value in record.cells.items() if name not in used}
    options = read_options(cells["options"])
    letter = read_cell_text(cells["answer"], "answer")
    answer = find_chosen_option(letter, options)
    if options:
        labels |= {"options": label(options), "label": answer}
    lists = {
        name: _read_words(cells[role])
        for role, name in (("must-contain", MUST_CONTAIN), ("must-not-contain", MUST_NOT_CONTAIN))
    }
    labels |= {name: label(items) for name, items in lists.items() if items}
    return TableQuestion(
        id=number,
        place=record.place,
        text=question,
        answer=answer,
        is_impossible=refused or (answerable is False and bool(read_cell_words(cells["answerable"]))),
        labels=labels,
        passages=[one for one in gold.read(record.cells, record.place) if one.grade != 0],
        items=[record.item],
        quoted=bool(list_cell_values(cells["text"]) or list_cell_values(cells["provision"])),
        acceptable=tuple(gold.read_acceptable(record.cells, record.place)),
        lists=lists,
    )


def _read_words(cell: Any) -> list[Any]:
    """Return the list of texts that an answer must contain or must not contain.

    A nested list stands for alternatives: one of its texts is enough.
    """
    items = split_values(cell, r"[;|\n]|, ")
    return [
        list_cell_values(item) if isinstance(item, list) else read_cell_text(item, "text")
        for item in items
        if read_cell_words(item)
    ]
