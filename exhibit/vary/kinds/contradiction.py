"""Adds a second version to each contract; the second version states another value.

The gold is the passages of both versions. With `contradiction:within`, there is no second version:
instead, a sentence that contradicts the answering clause is inserted into the same contract. A good
answer gives both values. An answer with only one value hides the contradiction.
"""

import re
from dataclasses import replace
from datetime import date
from decimal import Decimal

from exhibit.converters.benchmark import Tally
from exhibit.evidence import Span
from exhibit.law.values import Value, find_values, write_value
from exhibit.schemas.errors import ToolkitError
from exhibit.vary.clauses import NO_CLAUSE, Clause, clauses_of, find_clauses
from exhibit.vary.corpus import (
    Edit,
    EditedText,
    TextCorpus,
    TextDocument,
    TextPassage,
    TextRow,
    apply_edits,
    leave_out_others,
    replace_answer,
)
from exhibit.vary.kinds import VaryRequest
from exhibit.vary.values import RowChange, ValueChanger, ValueChanges

TITLE = "a second version of the contract states another value, or a sentence of the same contract does"
MEASURED = ("both_named", "one_silently")
NOT_ALONE = "its clause states several values of that kind, so that no short sentence can contradict one of them"
NO_PLACE = "the contract has no clause that the sentence could stand behind"
_DAY_OF = re.compile(r"\w+\s+day\s+of\b", re.IGNORECASE)
_NOUNS = {"period": "period", "amount": "amount", "percentage": "percentage", "date": "date"}


def vary(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:
    """Return the corpus with contradictions: second versions of contracts, or added sentences in contracts.

    A question is left out, and counted, if no rule can change its value safely.
    """
    if request.argument not in (None, "versions", "within"):
        raise ToolkitError(
            f"contradiction:{request.argument}: no such form; there are contradiction and contradiction:within"
        )
    documents: dict[str, TextDocument] = dict(corpus.documents)
    edits: dict[str, list[Edit]] = {}
    after: dict[int, TextRow] = {}
    inside = request.argument == "within"
    for name, document in corpus.documents.items():
        changes = ValueChanger(document, corpus.rows_of(name), seed=request.seed).changes()
        for id, reason in sorted(changes.left_out.items()):
            tally.leave_out(reason, f"row {id}")
        if not changes.rows:
            continue
        rows = [row for row in corpus.rows_of(name) if row.id in changes.rows]
        if inside:
            edits[name], found = _insert_contradictions(document, rows, changes, tally)
            after |= found
            continue
        second = _make_second_version(document, changes, documents)
        documents[second.filename] = second
        moved = EditedText(document.text, changes.edits)
        after |= {row.id: _ask_both(row, changes.rows[row.id], moved, name, second.filename) for row in rows}
    leave_out_others(corpus, tally)
    if inside:
        return _with_sentences(corpus, edits, after)
    return TextCorpus(documents, tuple(after[row.id] for row in corpus.rows if row.id in after))


def describe_disagreement(old: str, first: str, new: str, second: str) -> str:
    """Return the expected answer about two documents that state different values.

    `old` is the value in the document `first`, and `new` is the value in the document `second`. The answer
    has the form `The documents disagree: A according to X, B according to Y.`
    """
    return f"The documents disagree: {old} according to {first}, {new} according to {second}."


def _make_second_version(document: TextDocument, changes: ValueChanges, taken: dict[str, TextDocument]) -> TextDocument:
    stem = document.filename.rpartition(".")[0]
    name = f"{stem} (second version).pdf"
    if name in taken:
        raise ToolkitError(f"{name}: the bundle has a document of that name already; rename that document")
    text = EditedText(document.text, changes.edits).text
    return replace(document, filename=name, title=f"{document.title} (second version)", text=text)


def _ask_both(row: TextRow, change: RowChange, moved: EditedText, first: str, second: str) -> TextRow:
    others = []
    for passage in row.passages:
        spans = tuple(filter(None, map(moved.span, passage.spans)))
        others.append(TextPassage(second, spans))
    answer = describe_disagreement(row.answer, first, change.answer, second)
    labels = {"value": change.kind, "old": change.old, "new": change.new, "other_document": second}
    return replace(replace_answer(row, answer, **labels), passages=(*row.passages, *others))


# ---------------------------------------------------------------- within one contract


def _insert_contradictions(
    document: TextDocument, rows: list[TextRow], changes: ValueChanges, tally: Tally
) -> tuple[list[Edit], dict[int, TextRow]]:
    """Return the edits that insert the contradicting sentences, and the questions with their new answers, by id."""
    clauses = find_clauses(document.filename, document.text)
    edits, after = [], {}
    for row in rows:
        change, own = changes.rows[row.id], clauses_of(row, clauses)
        if own is None or len(own) != 1 or change.kind not in _NOUNS:
            tally.leave_out(NO_CLAUSE, f"row {row.id}")
            continue
        values = [value for value in find_values(document.text[slice(*own[0].span)]) if value.kind == change.kind]
        if len(values) != 1 or "; " in change.new:  # "renewed for 5 years after an initial term of 5 years"
            tally.leave_out(NOT_ALONE, f"row {row.id}")
            continue
        place = _find_last_place(clauses, own[0])
        if place is None:
            tally.leave_out(NO_PLACE, f"row {row.id}")
            continue
        new = _write_alone(values[0], change)
        sentence = f" For the avoidance of doubt, the {_NOUNS[change.kind]} stated in {own[0].name} is {new}."
        edits.append(Edit(place, place, sentence))
        answer = f"The contract disagrees with itself: {row.answer} in one place, {change.answer} in another."
        labels = {"value": change.kind, "old": change.old, "new": change.new, "sentence": sentence.strip()}
        after[row.id] = replace_answer(row, answer, **labels)
    return _merge_insertions(edits), after


def _write_alone(value: Value, change: RowChange) -> str:
    """Return the new value as text that can follow `is` in a sentence.

    The form of the old value is kept where it fits; `3-year` does not fit and is written as `3 years`.
    """
    [new] = find_values(change.new)
    if value.kind == "date":
        written = write_value(value, Decimal(date.fromisoformat(new.key).toordinal()))
        return f"the {written}" if _DAY_OF.match(written) else written
    if value.kind != "period":
        return write_value(value, new.number)
    return change.new if "-" in value.text else write_value(value, new.number, plural=new.number != 1)


def _find_last_place(clauses: tuple[Clause, ...], own: Clause) -> int | None:
    """Return the offset at which a contradicting sentence is inserted; None if there is no other clause.

    The offset is the end of the last clause other than `own`, the clause that the sentence contradicts.
    """
    others = [clause for clause in clauses if clause != own]
    return others[-1].span.end if others else None


def _merge_insertions(edits: list[Edit]) -> list[Edit]:
    """Merge the insertions at the same offset into one edit, because their order would be undefined."""
    places: dict[int, str] = {}
    for start, _, new in edits:
        if new not in places.get(start, ""):
            places[start] = places.get(start, "") + new
    return [Edit(start, start, new) for start, new in sorted(places.items())]


def _with_sentences(corpus: TextCorpus, edits: dict[str, list[Edit]], after: dict[int, TextRow]) -> TextCorpus:
    """Return the corpus with the contradicting sentences inserted.

    The sentence that contradicts the answer to a question becomes an additional gold passage of that question.
    """
    rows = tuple(after[row.id] for row in corpus.rows if row.id in after)
    changed = apply_edits(replace(corpus, rows=rows), edits)
    with_both = []
    for row in changed.rows:
        name = next(iter(row.files))
        sentence = str(row.labels["sentence"])
        at = changed.documents[name].text.rindex(sentence)
        labels = {key: value for key, value in row.labels.items() if key != "sentence"}
        second = TextPassage(name, (Span(at, at + len(sentence)),))
        with_both.append(replace(row, passages=(*row.passages, second), labels=labels))
    return replace(changed, rows=tuple(with_both))
