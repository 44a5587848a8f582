"""Adds amendments to each contract as separate documents, and asks the same question for different dates.

The right answer comes from the version of the clause that is in force on the date of the question; the
other versions are superseded. `amended:2` makes two amendments to each contract; by default, each contract
has one to three.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from exhibit.converters import Quote, RawDocument, RawRow, Tally
from exhibit.evidence import Span
from exhibit.law.values import MONTHS, find_dates, find_values, keys_of
from exhibit.schemas.errors import ToolkitError
from exhibit.vary.corpus import (
    NO_CLAUSE,
    Clause,
    EditedText,
    TextCorpus,
    VaryRequest,
    clauses_of,
    find_clauses,
    leave_out_others,
    replace_answer,
)
from exhibit.vary.values import UNSURE_ELSEWHERE, RowChange, ValueChanger, ValueChanges, move_months

SAME_AGAIN = "the amendment would repeat an earlier value"
MAX_AMENDMENTS = 3  # amendments to one contract
CHANGE_PROBABILITY = 0.5  # the probability that an amendment changes a clause
MONTHS_BETWEEN = (7, 16)  # months between amendments
FIRST_DAY = date(2012, 1, 1)  # the first day for amendments of a contract without a date
UNDATED_DIGIT = 9  # the last digit of the id of a question without a day
OPENING_CHARS = 3_000  # characters at the start of a contract that state its date


@dataclass(frozen=True)
class ClauseVersion:
    """One version of the clause that answers a question: as signed, or as changed by an amendment."""

    answer: str
    value: str
    passage: Quote
    start: date | None = None  # The day of its amendment; None for the contract as it was signed


@dataclass(frozen=True)
class ClauseChange:
    """The change that one amendment makes to a clause that answers a question."""

    row: RawRow
    clause: Clause
    change: RowChange
    text: str  # The clause's text after the amendment


def add_amendments(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:
    """Return the corpus with added amendments, and with questions about the amended clauses."""
    if request.argument is not None and request.argument not in ("1", "2", "3"):
        raise ToolkitError(f"amended:{request.argument}: the number of amendments must be from 1 to {MAX_AMENDMENTS}")
    documents = dict(corpus.documents)
    rows: list[RawRow] = []
    for name, document in corpus.documents.items():
        amendments, questions = _amend(document, corpus.rows_of(name), request, tally)
        for amendment in amendments:
            if amendment.filename in documents:
                raise ToolkitError(f"{amendment.filename}: the bundle has a document of that name; rename it")
            documents[amendment.filename] = amendment
        rows += questions
    leave_out_others(corpus, tally)
    return replace(corpus, documents=documents, rows=tuple(rows))


def _amend(
    document: RawDocument, rows: Sequence[RawRow], request: VaryRequest, tally: Tally
) -> tuple[list[RawDocument], list[RawRow]]:
    """Return the amendments of a contract, and the questions about the amended clauses."""
    chance = random.Random(f"{request.seed}\0{document.filename}")
    count = int(request.argument) if request.argument else chance.randint(1, MAX_AMENDMENTS)
    eligible = _choose_eligible(document, rows, tally)
    versions = {
        row.id: [ClauseVersion(row.answer, "; ".join(v.text for v in find_values(row.answer)), row.quotes[0])]
        for row, _ in eligible
    }
    stated = find_dates((document.text or "")[:OPENING_CHARS])
    day = date.fromisoformat(stated[0].key) if stated else FIRST_DAY
    amendments: list[RawDocument] = []
    for number in range(1, count + 1):
        day = move_months(day, chance.randint(*MONTHS_BETWEEN)).replace(day=chance.choice((1, 15)))
        seed = request.seed * MAX_AMENDMENTS + number
        result = ValueChanger(document, [row for row, _ in eligible], seed=seed, later=True).changes()
        possible = _list_changes(document, eligible, versions, result)
        chosen: dict[str, bool] = {}
        for change in possible:
            last_chance = number == count and len(versions[change.row.id]) == 1
            chosen.setdefault(change.clause.number, last_chance or chance.random() < CHANGE_PROBABILITY)
        changes = [change for change in possible if chosen[change.clause.number]]
        if changes:
            amendment, passages = _write_amendment(document, len(amendments) + 1, day, changes)
            amendments.append(amendment)
            for change in changes:
                passage = passages[change.clause.number]
                versions[change.row.id].append(ClauseVersion(change.change.answer, change.change.new, passage, day))
    questions: list[RawRow] = []
    for row, clause in eligible:
        if len(versions[row.id]) > 1:
            questions += _make_questions(row, clause.name, versions[row.id])
        else:
            tally.leave_out(SAME_AGAIN, f"row {row.id}")
    return amendments, questions


def _choose_eligible(document: RawDocument, rows: Sequence[RawRow], tally: Tally) -> list[tuple[RawRow, Clause]]:
    """Return the questions whose value can be changed, each with the only clause that answers it."""
    changes = ValueChanger(document, rows, seed=0, later=True).changes()
    clauses = find_clauses(document) if changes.rows else ()
    eligible = []
    for row in rows:
        row_clauses = clauses_of(row, clauses)
        if row.id in changes.left_out:
            tally.leave_out(changes.left_out[row.id], f"row {row.id}")
        elif row_clauses is None or len(row_clauses) != 1 or len(row.quotes) != 1:
            tally.leave_out(NO_CLAUSE, f"row {row.id}")
        elif _is_stated_outside(document, row, row_clauses[0], changes):
            tally.leave_out(UNSURE_ELSEWHERE, f"row {row.id}")
        else:
            eligible.append((row, row_clauses[0]))
    return eligible


def _is_stated_outside(document: RawDocument, row: RawRow, clause: Clause, changes: ValueChanges) -> bool:
    """Return whether the document also states the clause's value in text outside the clause."""
    outside = [edit for edit in changes.edits if not clause.holds(Span(edit.start, edit.end))]
    return any(keys_of(row.answer) & keys_of((document.text or "")[edit.start : edit.end]) for edit in outside)


def _list_changes(
    document: RawDocument, eligible: Sequence[tuple[RawRow, Clause]],
    versions: Mapping[int, Sequence[ClauseVersion]], result: ValueChanges,
) -> list[ClauseChange]:  # fmt: skip
    """Return the changes that an amendment can make, except changes that would repeat an earlier value of a clause."""
    stay = {
        clause.number
        for row, clause in eligible
        if (change := result.rows.get(row.id))
        and any(keys_of(change.answer) & keys_of(version.answer) for version in versions[row.id])
    }
    edited = EditedText(document.text or "", result.edits)
    changes = []
    for row, clause in eligible:
        if row.id in result.rows and clause.number not in stay:
            [span] = edited.move((clause.span,))
            text = " ".join(edited.text[slice(*span)].split())
            changes.append(ClauseChange(row, clause, result.rows[row.id], text))
    return changes


def _write_amendment(
    document: RawDocument, number: int, day: date, changes: Sequence[ClauseChange]
) -> tuple[RawDocument, dict[str, Quote]]:
    """Return an amendment as a document, and the new text of each clause in it by the clause's number."""
    filename = f"{document.filename.rpartition('.')[0]} - Amendment No. {number}.pdf"
    title = document.title
    text = (
        f"AMENDMENT NO. {number}\n\nto the {title}\n\n"
        f'This Amendment No. {number} (this "Amendment") to the {title} (the "Agreement") is made and entered into '
        f'as of {write_date(day)} (the "Amendment Effective Date"). Capitalized terms used but not defined in this '
        "Amendment have the meanings given to them in the Agreement.\n\n"
    )
    passages: dict[str, Quote] = {}
    clauses = {change.clause.number: change for change in changes}
    for item, change in enumerate(clauses.values(), 1):
        name, words = change.clause.name, change.text.replace("“", "'").replace("”", "'")
        text += (
            f"{item}. Amendment of {name}. {name} of the Agreement is hereby amended and restated in its entirety to "
            'read as follows: "'
        )
        passages[change.clause.number] = Quote(filename, None, ((len(text), len(text) + len(words)),))
        text += f'{words}"\n\n'
    text += (
        f"{len(clauses) + 1}. No Other Changes. Except as expressly amended by this Amendment, the Agreement "
        "remains unchanged and in full force and effect in accordance with its terms.\n\n"
        f"{len(clauses) + 2}. Counterparts. This Amendment may be executed in counterparts, each of which is an "
        "original and all of which together are one instrument."
    )
    labels = (*document.labels, ("amends", document.filename), ("effective_from", day.isoformat()))
    return RawDocument(filename, f"Amendment No. {number} to the {title}", text=text, labels=labels), passages


def write_date(day: date) -> str:
    """Return a date as American contracts write it: `March 1, 2015`."""
    return f"{MONTHS[day.month - 1]} {day.day}, {day.year}"


def _make_questions(row: RawRow, paragraph: str, versions: Sequence[ClauseVersion]) -> list[RawRow]:
    """Return one question for each version of a clause, and one question without a day."""
    ends = [*(version.start for version in versions[1:]), None]
    dated = [(version, _choose_day(version.start, end), end) for version, end in zip(versions, ends, strict=True)]
    questions = []
    for at, (version, day, end) in enumerate([*dated, (versions[-1], None, None)]):
        others = [other for other in versions if other is not version]
        labels: dict[str, str | None] = {
            "value": find_values(row.answer)[0].kind,
            "new": version.value,
            "old": "; ".join(other.value for other in others),
            "as_of": day.isoformat() if day else None,
            "effective_from": version.start.isoformat() if version.start else None,
            "effective_to": end.isoformat() if end else None,
            "changed_by": version.passage.filename if version.start else None,
            "paragraph": paragraph,
        }
        changed = replace(
            replace_answer(row, version.answer, **{name: value for name, value in labels.items() if value is not None}),
            id=row.id * 10 + (at if day else UNDATED_DIGIT),
            question=f"As of {write_date(day)}: {row.question}" if day else row.question,
            quotes=(version.passage,),
            filename=version.passage.filename,
            near_misses=tuple(other.passage for other in others),
        )
        questions.append(changed)
    return questions


def _choose_day(start: date | None, end: date | None) -> date:
    """Return a day on which a clause's version is in force, for a question that begins `As of …`."""
    if start is None:
        assert end is not None  # only contracts with an amendment have questions here
        return move_months(end, -3)
    day = move_months(start, 3)
    return day if end is None or day < end else start + (end - start) // 2
