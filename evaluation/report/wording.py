"""What verdicts and metrics are called, in words a reader who is no engineer can follow."""

from __future__ import annotations

from collections import Counter

from exhibit.evaluation.report.run import Record, RecordedRun
from exhibit.evaluation.report.spans import meets, placed

ANSWERED = "answered"
GIVEN = "expected answer given"
GOOD = (ANSWERED, GIVEN)
"""Verdicts for the system."""
VERDICTS = {
    "wrong document": "None of the passages the system used comes from a document that holds the answer.",
    "right document, wrong passage": "The system found the right document, but not the words that answer.",
    "right text, wrong version": "The system found the right paragraph of the law, but as of another day.",
    "retrieved but not used": "A gold passage was retrieved, but the answer was not made from it, or cites others.",
    "figures that no passage has": "The answer has a number or a date that stands in none of its passages.",
    "answered though impossible": "The documents do not answer this question, and the system answered all the same.",
    "refused though answerable": "The documents do answer this question, and the system said they do not.",
    "failed": "The system gave an error instead of a reply. It counts as a failure, not as a zero.",
    "gold not located": "The benchmark's own quotation was not found in the document, so retrieval cannot be judged.",
    "right document, passage unknown": "The right document was found; the benchmark quotes no words of it to look for.",
    "cannot be judged": "Nothing tells which passage answers, or which passages the system read.",
    GIVEN: "The reply says what is expected; which passage answers is not known.",
    ANSWERED: "A gold passage was among those read, and the question was not refused; the scores judge the words.",
}
"""Each verdict and what it means, the worst first."""
UNJUDGED = ("gold not located", "right document, passage unknown", "cannot be judged")
"""Verdicts that say nothing for the system and nothing against it."""
_JUDGED_BY = {
    "retrieval": "The fault lies in retrieval.",
    "reading": "The fault lies in reading.",
    "invented": "Invented.",
}


_LEADS = {
    ANSWERED: "the right passage was found and used, or a question without an answer was refused",
    GIVEN: "the reply says what is expected",
}


def lead(verdicts: Counter[str]) -> str:
    """Return the first sentence's second half: what can be judged comes first, and what cannot is said."""
    good = [verdict for verdict in GOOD if verdicts[verdict]] or GOOD[:1]
    unjudged = sum(verdicts[verdict] for verdict in UNJUDGED)
    if unjudged == verdicts.total():
        return "for none of them can it be told whether the system was right"
    told = [f"in {verdicts[verdict]:,} {_LEADS[verdict]}" for verdict in good]
    return "; ".join([*told, *([f"in {unjudged:,} that cannot be told"] if unjudged else [])])


def stage_counts(run: RecordedRun) -> list[tuple[str, int]]:
    """Return how many failures lie in retrieval, in reading, and in invention."""
    counts = sum((dataset.stages for dataset in run.datasets), Counter[str]())
    return [(stage, counts[stage]) for stage in _JUDGED_BY if counts[stage]]


def explain(row: Record) -> str:
    """Return why a case has its verdict, with the ranks at which the right things came."""
    verdict, reply = row["verdict"], row["reply"]
    if row.get("evidence") and verdict != "failed":
        stage = _JUDGED_BY.get(row.get("stage") or "", "")
        return " ".join(part for part in (stage, VERDICTS.get(verdict, ""), row["evidence"]) if part)
    if verdict == "failed":
        return f"{VERDICTS[verdict]} The error: {reply.get('error') or 'unknown'}"
    if verdict == ANSWERED and row.get("is_impossible"):
        refused = "and the system rightly said so" if reply.get("answer") is not None else "and no answer was asked for"
        return f"The documents do not answer this question, {refused}."
    if verdict == ANSWERED and not (row.get("gold") and reply.get("passages")):
        return "The question was answered; nothing tells which passage the answer should come from, or did."
    return f"{VERDICTS.get(verdict, '')} {_ranks(row)}".strip()


def _ranks(row: Record) -> str:
    passages = row["reply"].get("passages") or ()
    if row.get("is_impossible") or not passages:
        return ""
    files = {gold.get("filename") for gold in row.get("gold") or ()}
    same = [n for n, passage in enumerate(passages, 1) if passage.get("filename") in files]
    hits = [n for at in placed(row).values() for n, span in at.passages.items() if meets(span, at.gold)]
    if not same:
        return f"None of the {len(passages)} passages retrieved is from it."
    if not any(gold.get("places") for gold in row["gold"]):
        return f"Passage {same[0]} is the first from the right document; the benchmark names no words in it."
    if not hits:
        return f"Passage {same[0]} is the first from the right document; none of {len(passages)} touches the gold."
    used = row["reply"].get("selected")
    late = used is not None and min(hits) > used
    return f"Passage {min(hits)} is the first to touch the gold{f', but only {used} were read' if late else ''}."
