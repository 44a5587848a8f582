"""What verdicts and metrics are called, in words a reader who is no engineer can follow."""

from __future__ import annotations

from evaluation.report.run import Record
from evaluation.report.spans import meets, placed

ANSWERED = "answered"
VERDICTS = {
    "wrong document": "None of the passages the system used comes from a document that holds the answer.",
    "right document, wrong passage": "The system found the right document, but not the words that answer.",
    "retrieved but not used": "A gold passage was retrieved, but the answer was not made from it, or cites others.",
    "answered though impossible": "The documents do not answer this question, and the system answered all the same.",
    "refused though answerable": "The documents do answer this question, and the system said they do not.",
    "failed": "The system gave an error instead of a reply. It counts as a failure, not as a zero.",
    "gold not located": "The benchmark's own quotation was not found in the document, so retrieval cannot be judged.",
    ANSWERED: "A gold passage was among those read, and the question was not refused; the scores judge the words.",
}
"""Each verdict and what it means, the worst first."""


def explain(row: Record) -> str:
    """Return why a case has its verdict, with the ranks at which the right things came."""
    verdict, reply = row["verdict"], row["reply"]
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
