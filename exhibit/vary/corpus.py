"""A bundle as text: the input and the output of each kind of variation.

A kind of variation changes texts by edits. `apply_edits` applies the edits and moves every gold span
accordingly, so that gold stays correct.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from exhibit.converters.benchmark import Block, Label, Tally
from exhibit.engine import Engine, open_engine, track
from exhibit.evidence import Span, fold
from exhibit.evidence.read import read_within
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import BundleFolder
from exhibit.storage.locations import Location

NOT_LOCATED = "its gold is not located in the parent bundle"
IMPOSSIBLE = "the question has no answer in the parent bundle"
SEVERAL = "its gold stands in several documents"
WITHOUT_GOLD = "no passage of it is quoted in the parent bundle"


class Edit(NamedTuple):
    """A replacement of a span of a text; an empty span is an insertion."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class TextDocument:
    """A document as text, with the properties that its printed PDF will have."""

    filename: str
    title: str
    text: str
    source: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    blocks: tuple[Block, ...] = ()
    """Blocks that are printed below the text in an invisible way; their words follow the text's."""
    subject: str = ""
    """The subject in the file's metadata."""
    scan: int | None = None
    """The seed of the simulated scan of its pages; None if it is printed with its text."""


@dataclass(frozen=True)
class TextPassage:
    """A gold passage as spans of its document: the occurrence that the benchmark means, and other occurrences."""

    filename: str
    spans: tuple[Span, ...]
    alternatives: tuple[tuple[Span, ...], ...] = ()

    @property
    def places(self) -> tuple[tuple[Span, ...], ...]:
        """All occurrences of the passage, each as a tuple of spans; the first is the one that the benchmark means."""
        return (self.spans, *self.alternatives)


@dataclass(frozen=True)
class TextRow:
    """A question, with its gold passages as spans in the documents' text."""

    id: int
    question: str
    answer: str
    passages: tuple[TextPassage, ...] = ()
    filename: str | None = None
    is_impossible: bool = False
    labels: Mapping[str, Label] = field(default_factory=dict)
    control: int = 0
    """The id of the parent's row that this row was made from."""
    near_misses: tuple[TextPassage, ...] = ()
    """The same clause as it read on other days."""

    def labelled(self, **labels: Label) -> "TextRow":
        """Return the row with further labels."""
        return replace(self, labels={**self.labels, **labels})

    @property
    def files(self) -> frozenset[str]:
        """The names of the documents that contain the row's gold passages."""
        return frozenset(passage.filename for passage in self.passages)


@dataclass(frozen=True)
class TextCorpus:
    """The questions and the extracted texts of a bundle's documents, for editing."""

    documents: Mapping[str, TextDocument]
    rows: tuple[TextRow, ...]

    def words(self, passage: TextPassage) -> str:
        """Return the text of a passage, with single spaces."""
        text = self.documents[passage.filename].text
        return " ".join(" ".join(text[start:end] for start, end in passage.spans).split())

    def rows_of(self, filename: str) -> list[TextRow]:
        """Return the answerable questions whose gold passages are all in this document."""
        return list(self._rows_by_file.get(filename, ()))

    @cached_property
    def _rows_by_file(self) -> dict[str, list[TextRow]]:
        rows: dict[str, list[TextRow]] = {}
        for row in self.rows:
            if len(row.files) == 1 and not row.is_impossible:
                rows.setdefault(next(iter(row.files)), []).append(row)
        return rows


def replace_answer(row: TextRow, answer: str, **labels: Label) -> TextRow:
    """Return a copy of a row with a new answer and additional labels.

    A label whose value equals the old answer is also changed to the new answer.
    """
    own = {name: answer if value == row.answer else value for name, value in row.labels.items()}
    return replace(row, answer=answer, labels={**own, **labels})


def read_corpus(bundle: BundleFolder, tally: Tally, engine: Engine | None = None) -> TextCorpus:
    """Read a bundle's documents; questions without located gold are left out and counted."""
    files = dict(sorted(bundle.files.items()))
    read = (engine or open_engine(items=len(files))).map(_read_text, files.values())
    texts = track(read, total=len(files), label="parent's documents")
    entries = {entry.filename: entry for entry in bundle.info.documents} if bundle.info else {}
    documents = {}
    for name, text in zip(files, texts, strict=True):
        entry = entries.get(name)
        printed = f"{name.rpartition('.')[0] or name}.pdf" if not name.lower().endswith(".pdf") else name
        title, labels = (entry.title, tuple(entry.labels.items())) if entry else (name, ())
        documents[name] = TextDocument(printed, title, text.unwrap(), entry.source if entry else "", labels)
    firsts: dict[str, str] = {}
    for name, document in documents.items():
        if (first := firsts.setdefault(document.filename, name)) != name:
            raise BundleError(
                f"{bundle.root}: {first} and {name} would both be printed as {document.filename}; rename one of them"
            )
    renamed = {name: document.filename for name, document in documents.items()}
    lines: dict[int, list[Gold]] = {}
    for line in bundle.gold:
        lines.setdefault(line.id, []).append(line)
    rows = []
    for question in bundle.questions:
        if not isinstance(question.id, int):
            raise BundleError(
                f"{bundle.root}: row {question.id!r}: the id is not a whole number; "
                "only rows whose id is a whole number can be varied"
            )
        mine = lines.get(question.id, [])
        passages = tuple(_make_passage(line, renamed) for line in mine if line.context is not None and line.spans)
        if not question.is_impossible and (not passages or len(passages) < len(question.contexts)):
            tally.leave_out(NOT_LOCATED if question.contexts else WITHOUT_GOLD, f"row {question.id}")
            continue
        filename = next((line.filename for line in mine if line.filename), None)
        rows.append(
            TextRow(
                question.id,
                question.question,
                question.answer,
                passages,
                renamed.get(filename or ""),
                question.is_impossible,
                dict(mine[0].labels) if mine else {},
                question.id,
            )
        )
    return TextCorpus({document.filename: document for document in documents.values()}, tuple(rows))


def _read_text(path: Location) -> str:
    return read_within(path).text


def _make_passage(line: Gold, renamed: Mapping[str, str]) -> TextPassage:
    spans = tuple(Span(*span) for span in line.spans)
    others = tuple(tuple(Span(*span) for span in place) for place in line.alternatives)
    return TextPassage(renamed[str(line.filename)], spans, others)


def leave_out_others(corpus: TextCorpus, tally: Tally) -> None:
    """Record in `tally` that impossible questions, and questions with gold in several documents, are left out."""
    for row in corpus.rows:
        if row.is_impossible:
            tally.leave_out(IMPOSSIBLE, f"row {row.id}")
        elif len(row.files) > 1:
            tally.leave_out(SEVERAL, f"row {row.id}")


# ---------------------------------------------------------------- edits


class EditedText:
    """A text after edits, with a map from spans of the old text to spans of the new one."""

    def __init__(self, text: str, edits: Sequence[Edit]) -> None:
        self.edits = sorted(set(edits))
        for one, other in zip(self.edits, self.edits[1:], strict=False):
            if other.start < one.end:
                raise ValueError(f"two edits of one text overlap: {one} and {other}; please report this bug")
        pieces, at = [], 0
        for start, end, new in self.edits:
            pieces += [text[at:start], new]
            at = end
        self.text = "".join([*pieces, text[at:]])
        self._starts = [edit.start for edit in self.edits]
        self._ends = [edit.end for edit in self.edits]
        self._shifts = [0, *accumulate(len(new) - (end - start) for start, end, new in self.edits)]

    def span(self, span: Span) -> Span | None:
        """Return the span in the new text for a span of the old text; None if all of it was deleted.

        Text that was inserted inside the span belongs to the new span. Text that was inserted directly before or
        after it does not.
        """
        first = bisect_right(self._ends, span.start)  # the first edit that ends after the start
        start = span.start + self._shifts[first]
        if first < len(self.edits) and self.edits[first].start < span.start:
            start = self.edits[first].start + self._shifts[first]
        last = bisect_left(self._starts, span.end)  # the first edit that begins at the end or after it
        end = span.end + self._shifts[last]
        if last and self._ends[last - 1] > span.end:
            end = self._ends[last - 1] + self._shifts[last]
        return Span(start, end) if start < end else None


def apply_edits(corpus: TextCorpus, edits: Mapping[str, Sequence[Edit]]) -> TextCorpus:
    """Return the corpus after edits of its documents.

    A passage whose text was deleted completely is removed from its question. An alternative occurrence of a
    passage is kept only if its text still equals the text of the passage.
    """
    changed = {name: EditedText(corpus.documents[name].text, own) for name, own in edits.items() if own}
    documents = {
        name: replace(document, text=changed[name].text) if name in changed else document
        for name, document in corpus.documents.items()
    }
    rows = []
    for row in corpus.rows:
        passages = [_move_passage(passage, changed.get(passage.filename)) for passage in row.passages]
        near = [_move_passage(passage, changed.get(passage.filename)) for passage in row.near_misses]
        rows.append(
            replace(
                row,
                passages=tuple(passage for passage in passages if passage),
                near_misses=tuple(passage for passage in near if passage),
            )
        )
    return TextCorpus(documents, tuple(rows))


def _move_passage(passage: TextPassage, edited: EditedText | None) -> TextPassage | None:
    if edited is None:
        return passage
    moved = [tuple(filter(None, map(edited.span, place))) for place in passage.places]
    main, *others = moved
    if not main:
        return None
    words = _fold_spans(edited.text, main)
    return replace(
        passage, spans=main, alternatives=tuple(place for place in others if _fold_spans(edited.text, place) == words)
    )


def _fold_spans(text: str, spans: Sequence[Span]) -> str:
    return fold(" ".join(text[start:end] for start, end in spans), loose=True)
