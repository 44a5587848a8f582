"""Removes the clause that answers a question; its number stays, followed by `[Intentionally omitted.]`.

A system that reads the document refuses to answer. A system that still gives the removed answer remembers
the answer, for example from its training data.
"""

import random
from dataclasses import replace

from exhibit.converters.core.benchmark import RawDocument, RawRow, Tally
from exhibit.evidence import fold
from exhibit.law.values import find_values, keys_of
from exhibit.schemas import IMPOSSIBLE_ANSWER
from exhibit.vary.clauses import NO_CLAUSE, Clause, clauses_of, find_clauses
from exhibit.vary.corpus import Edit, EditedText, TextCorpus, apply_edits, leave_out_others, replace_answer
from exhibit.vary.kinds import VaryRequest

TITLE = "the clause that answers is removed, and a note replaces it after its number"
MEASURED = ("abstention_accuracy", "remembered")
OMITTED = "[Intentionally omitted.]"  # the words with which American contracts replace a removed clause
KEPT = "its clause stays, so that the document remains a contract"
ELSEWHERE = "the document still contains the removed answer elsewhere"
_SHARE = 3  # at most one clause in three is removed
_WORDS = 20  # least characters of an answer that would not occur elsewhere by chance


def vary(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:
    """Return the corpus without some of the clauses that answer questions."""
    edits: dict[str, list[Edit]] = {}
    removed: set[int] = set()
    for name, document in corpus.documents.items():
        rows = corpus.rows_of(name)
        chosen, clauses = _choose(document, rows, request.seed, tally)
        edits[name] = [Edit(*clause.span, f"{_label(document, clause)} {OMITTED}") for clause in clauses]
        left = EditedText(document.text or "", edits[name]).text
        for row in chosen:
            if _stands_in(row.answer, left):
                tally.leave_out(ELSEWHERE, f"row {row.id}")
            else:
                removed.add(row.id)
    leave_out_others(corpus, tally)
    rows_after = [_make_impossible(row) for row in corpus.rows if row.id in removed]
    return replace(apply_edits(replace(corpus, rows=()), edits), rows=tuple(rows_after))


def _choose(document: RawDocument, rows: list[RawRow], seed: int, tally: Tally) -> tuple[list[RawRow], list[Clause]]:
    """Choose the clauses to remove from a document; return the questions that lose their answer, and the clauses."""
    clauses = find_clauses(document)
    most = max(1, len(clauses) // _SHARE)
    held = {row.id: clauses_of(row, clauses) for row in rows}
    order = sorted(id for id, clause in held.items() if clause is not None)
    random.Random(f"{seed}\0{document.filename}").shuffle(order)
    gone: list[Clause] = []
    for id in order:
        more = [clause for clause in held[id] or () if clause not in gone]
        if len(gone) + len(more) <= most:
            gone += more
    chosen = []
    for row in rows:
        own = held[row.id]
        if own is not None and all(clause in gone for clause in own):
            chosen.append(row)
        else:
            tally.leave_out(NO_CLAUSE if own is None else KEPT, f"row {row.id}")
    return chosen, gone


def _label(document: RawDocument, clause: Clause) -> str:
    words = (document.text or "")[clause.span.start : clause.body.start].split()
    count = 2 if words and words[0][:1].isalpha() else 1
    return " ".join(words[:count]) or clause.number


def _stands_in(answer: str, text: str) -> bool:
    keys = keys_of(answer)
    if keys:
        # places are named for many reasons, but other kinds of values rarely occur twice
        return bool({key for key in keys if key[0] != "place"} & {value.same for value in find_values(text)})
    words = fold(answer, loose=True)
    return len(words) >= _WORDS and words in fold(text, loose=True)


def _make_impossible(row: RawRow) -> RawRow:
    values = find_values(row.answer)
    label = {"value": values[0].kind} if values else {}
    answered = replace_answer(row, IMPOSSIBLE_ANSWER, old=row.answer, **label)
    return replace(answered, quotes=(), is_impossible=True, filename=row.files[0])
