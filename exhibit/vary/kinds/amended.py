"""Adds amendments to each contract as separate documents, and asks the same question for different dates.

The right answer comes from the version of the clause that is in force on the date of the question; the
other versions are superseded. `amended:2` makes two amendments to each contract; by default, each contract
has one to three.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from exhibit.converters.core.benchmark import Quote, RawDocument, RawRow, Tally
from exhibit.evidence import Span
from exhibit.law.values import MONTHS, find_values, keys_of
from exhibit.schemas.errors import ToolkitError
from exhibit.vary.clauses import NO_CLAUSE, Clause, clauses_of, find_clauses
from exhibit.vary.corpus import Edit, EditedText, TextCorpus, leave_out_others, replace_answer
from exhibit.vary.kinds import VaryRequest
from exhibit.vary.values import UNSURE_ELSEWHERE, RowChange, ValueChanger, ValueChanges, move_months

TITLE = "amendments are printed as documents of their own, each with its day; questions ask for days between"
MEASURED = ("in_force", "superseded", "version_accuracy", "provision_first")
SAME_AGAIN = "its later value would be one that it had before"
_MOST = 3  # amendments to one contract
_GAP = (7, 16)  # months between amendments
_START = date(2012, 1, 1)  # the first day for amendments of a contract without a date
_QUOTE = '"'
_TODAY = 9  # the last digit of the id of a question without a day
_OPENING = 3_000  # characters at the start of a contract that state its date
_FORMS = (
    "{name} of the Agreement is hereby deleted in its entirety and replaced with the following:",
    "{name} of the Agreement is hereby amended and restated in its entirety to read as follows:",
)


@dataclass(frozen=True)
class ClauseVersion:
    """One version of the clause that answers a question: as signed, or as changed by an amendment."""

    answer: str
    value: str
    passage: Quote
    start: date | None  # The day of its amendment; None for the contract as it was signed


@dataclass(frozen=True)
class ClauseChange:
    """The change that one amendment makes to a clause that answers a question."""

    row: RawRow
    clause: Clause
    change: RowChange
    text: str  # The clause's text after the amendment
    edits: tuple[Edit, ...]


def vary(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:
    """Return the corpus with added amendments, and with questions about the amended clauses."""
    if request.argument is not None and request.argument not in ("1", "2", "3"):
        raise ToolkitError(f"amended:{request.argument}: not a number of amendments; give 1 to {_MOST}")
    documents = dict(corpus.documents)
    rows: list[RawRow] = []
    for name, document in corpus.documents.items():
        family = _Family(document, corpus.rows_of(name), request, tally)
        for amendment in family.amendments:
            if amendment.filename in documents:
                raise ToolkitError(
                    f"{amendment.filename}: the bundle has a document of that name already; rename that document"
                )
            documents[amendment.filename] = amendment
        rows += family.rows
    leave_out_others(corpus, tally)
    return replace(corpus, documents=documents, rows=tuple(rows))


class _Family:
    """A contract, the amendments that a program generates for it, and the questions about the amended clauses."""

    def __init__(self, document: RawDocument, rows: Sequence[RawRow], request: VaryRequest, tally: Tally) -> None:
        self._document, self._tally = document, tally
        self._text = document.text or ""
        self._chance = random.Random(f"{request.seed}\0{document.filename}")
        self.amendments: list[RawDocument] = []
        self.rows: list[RawRow] = []
        count = int(request.argument) if request.argument else self._chance.randint(1, _MOST)
        eligible = self._choose_eligible(rows)
        versions = {
            row.id: [ClauseVersion(row.answer, "; ".join(v.text for v in find_values(row.answer)), row.quotes[0], None)]
            for row, _ in eligible
        }
        day = self._find_signing_day()
        for number in range(1, count + 1):
            day = move_months(day, self._chance.randint(*_GAP)).replace(day=self._chance.choice((1, 15)))
            changes = self._make_changes(eligible, versions, seed=request.seed * _MOST + number, last=number == count)
            if changes:
                self._amend(len(self.amendments) + 1, day, changes, versions)
        for row, clause in eligible:
            if len(versions[row.id]) > 1:
                self.rows += _make_questions(row, clause.name, versions[row.id])
            else:
                tally.leave_out(SAME_AGAIN, f"row {row.id}")

    def _choose_eligible(self, rows: Sequence[RawRow]) -> list[tuple[RawRow, Clause]]:
        """Return the questions whose value can be changed, each with the only clause that answers it."""
        changes = self._change_values(rows, 0)
        clauses = find_clauses(self._document) if changes.rows else ()
        eligible = []
        for row in rows:
            if row.id in changes.left_out:
                self._tally.leave_out(changes.left_out[row.id], f"row {row.id}")
                continue
            row_clauses = clauses_of(row, clauses)
            if row_clauses is None or len(row_clauses) != 1 or len(row.quotes) != 1:
                self._tally.leave_out(NO_CLAUSE, f"row {row.id}")
            elif self._stands_elsewhere(row, row_clauses[0], changes):
                self._tally.leave_out(UNSURE_ELSEWHERE, f"row {row.id}")
            else:
                eligible.append((row, row_clauses[0]))
        return eligible

    def _stands_elsewhere(self, row: RawRow, clause: Clause, changes: ValueChanges) -> bool:
        """Return whether the document also states the clause's value in text outside the clause."""
        outside = [edit for edit in changes.edits if not clause.holds(Span(edit.start, edit.end))]
        return any(keys_of(row.answer) & keys_of(self._text[edit.start : edit.end]) for edit in outside)

    def _change_values(self, rows: Sequence[RawRow], seed: int) -> ValueChanges:
        return ValueChanger(self._document, rows, seed=seed, later=True).changes()

    def _find_signing_day(self) -> date:
        days = [value.key for value in find_values(self._text[:_OPENING]) if value.kind == "date"]
        return date.fromisoformat(days[0]) if days else _START

    def _make_changes(
        self,
        eligible: Sequence[tuple[RawRow, Clause]],
        versions: dict[int, list[ClauseVersion]],
        *,
        seed: int,
        last: bool,
    ) -> list[ClauseChange]:
        """Return the changes by one amendment, each to the clause of one question."""
        result = self._change_values([row for row, _ in eligible], seed)
        changes: list[ClauseChange] = []
        # an earlier value of the clause would be no change, so the whole clause stays unchanged
        stay = {
            clause.number
            for row, clause in eligible
            if (change := result.rows.get(row.id))
            and any(keys_of(change.answer) & keys_of(version.answer) for version in versions[row.id])
        }
        chosen: dict[str, bool] = {}
        for row, clause in eligible:
            amended = len(versions[row.id]) > 1
            wanted = chosen.setdefault(clause.number, self._chance.random() < 0.5 or (last and not amended))
            change = result.rows.get(row.id)
            if not wanted or change is None or clause.number in stay:
                continue
            own = tuple(edit for edit in result.edits if clause.holds(Span(edit.start, edit.end)))
            start = clause.span.start
            moved = [edit._replace(start=edit.start - start, end=edit.end - start) for edit in own]
            text = EditedText(self._text[slice(*clause.span)], moved).text
            changes.append(ClauseChange(row, clause, change, " ".join(text.split()), own))
        return changes

    def _amend(
        self, number: int, day: date, changes: Sequence[ClauseChange], versions: dict[int, list[ClauseVersion]]
    ) -> None:
        """Add an amendment as a document, and record the new version of each question's clause."""
        filename = f"{self._document.filename.rpartition('.')[0]} - Amendment No. {number}.pdf"
        text, places = self._write_text(number, day, changes)
        labels = (*self._document.labels, ("amends", self._document.filename), ("effective_from", day.isoformat()))
        title = f"Amendment No. {number} to the {self._document.title}"
        self.amendments.append(RawDocument(filename, title, text=text, labels=labels))
        for change in changes:
            passage = Quote(filename, None, (places[change.clause.number],))
            versions[change.row.id].append(ClauseVersion(change.change.answer, change.change.new, passage, day))

    def _write_text(self, number: int, day: date, changes: Sequence[ClauseChange]) -> tuple[str, dict[str, Span]]:
        title = self._document.title
        parts = [
            f"AMENDMENT NO. {number}",
            f"to the {title}",
            f'This Amendment No. {number} (this "Amendment") to the {title} (the "Agreement") is made and entered into '
            f'as of {write_date(day)} (the "Amendment Effective Date"). Capitalized terms used but not defined in this '
            "Amendment have the meanings given to them in the Agreement.",
        ]
        places: dict[str, Span] = {}
        clauses = {change.clause.number: change for change in changes}
        for item, change in enumerate(clauses.values(), 1):
            lead = f"{item}. Amendment of {change.clause.name}. "
            gold, head = self._write_instruction(change)
            at = sum(len(part) + 2 for part in parts) + len(lead) + len(head)
            places[change.clause.number] = Span(at, at + len(gold))
            parts.append(f"{lead}{head}{gold}{_QUOTE if head else ''}")
        parts += [
            f"{len(clauses) + 1}. No Other Changes. Except as expressly amended by this Amendment, the Agreement "
            "remains unchanged and in full force and effect in accordance with its terms.",
            f"{len(clauses) + 2}. Counterparts. This Amendment may be executed in counterparts, each of which is an "
            "original and all of which together are one instrument.",
        ]
        return "\n\n".join(parts), places

    def _write_instruction(self, change: ClauseChange) -> tuple[str, str]:
        """Return the gold in the text of an amendment that changes a clause, and the text before the gold."""
        name = change.clause.name
        old = " ".join(self._text[slice(*change.clause.span)].split())
        was = " ".join(" ".join(self._text[edit.start : edit.end] for edit in change.edits).split())
        if len(change.edits) == 1 and old.count(was) == 1 and self._chance.random() < 0.5:
            place = f'The reference to "{was}" in {name} of the Agreement'
            return f'{place} is hereby deleted and replaced with "{change.edits[0].new}".', ""
        form = self._chance.choice(_FORMS).format(name=name)
        return change.text.replace("“", "'").replace("”", "'"), f'{form} "'


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
            id=row.id * 10 + (at if day else _TODAY),
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
