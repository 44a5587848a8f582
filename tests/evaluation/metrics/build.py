"""Short functions that build cases for tables of values computed by hand."""

from collections.abc import Iterable, Sequence
from typing import Any

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply, Values
from exhibit.evaluation.metrics import Options, measure
from exhibit.evaluation.statistics import Table
from exhibit.evidence import Span

Ends = tuple[int, int]


def gold(*places: Ends | Sequence[Ends], file: str | None = "lease.pdf", text: str | None = None) -> GoldPassage:
    """Return a gold passage with alternative positions; each is one span or a sequence of spans."""
    spans = [[place] if isinstance(place[0], int) else place for place in places]
    return GoldPassage(file, text, tuple(tuple(Span(*ends) for ends in place) for place in spans))


def quote(text: str, file: str | None = "lease.pdf") -> GoldPassage:
    """Return a gold passage that has a text but no position."""
    return GoldPassage(file, text)


def at(start: int, end: int, file: str | None = "lease.pdf") -> Passage:
    """Return a retrieved passage with this span."""
    return Passage("x" * (end - start), file, Span(start, end))


def case(golds: Sequence[GoldPassage] = (), passages: Iterable[Passage | str] = (), **fields: Any) -> Case:
    """Return a case with its reply, of which `fields` may name fields; a passage given as a string has no position."""
    ranking = tuple(Passage(passage) if isinstance(passage, str) else passage for passage in passages)
    reply = {name: fields.pop(name) for name in Reply.__dataclass_fields__ if name in fields}
    fields = {"id": 0, "question": "What is the rent?", "truth": "", "gold": tuple(golds), **fields}
    return Case(**fields, reply=Reply(passages=ranking, **reply))


def table_of(cases: Sequence[Case], values: dict[str, Values], *, name: str = "") -> Table:
    """Return a table with the values of metrics for a list of cases."""
    failed = [bool(case.reply.error) for case in cases]
    labels, documents = [case.labels for case in cases], [case.document for case in cases]
    return Table(name, [case.id for case in cases], documents, values, failed, labels)


def apply(names: str | Sequence[str], cases: Sequence[Case], options: Options | None = None) -> dict[str, Values]:
    """Return the values of the named metrics."""
    return measure(cases, options, names=[names] if isinstance(names, str) else list(names))
