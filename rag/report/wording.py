"""What verdicts and metrics are called, in words a reader who is no engineer can follow."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from rag.report.run import Record
from rag.report.spans import meets, placed

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


class Name(NamedTuple):
    """A metric in words."""

    title: str
    meaning: str
    lower_is_better: bool = False
    unit: str = "%"


_NAMES = {
    "char_recall": Name("Gold text retrieved", "share of the gold characters among the first k passages"),
    "char_precision": Name("Retrieved text that is gold", "share of the first k passages' characters that are gold"),
    "drm": Name("Passages from a wrong document", "share of the first k passages from a file without gold", True),
    "document_hit": Name("Right document found", "questions with a passage of the right file among the first k"),
    "recall": Name("Gold passages found", "share of gold passages of which the first k hold at least half"),
    "ndcg": Name("Ranking quality (nDCG)", "gold passages found, those ranked higher counting more"),
    "mrr": Name("First gold's rank (MRR)", "one over the rank of the first gold"),
    "map": Name("Average precision (MAP)", "precision at the rank of each gold, averaged over all golds"),
    "precision_3star": Name("Files with 3 stars or more", "share of the first five files"),
    "precision_4star": Name("Files with 4 stars or more", "share of the first five files"),
    "precision_5star": Name("Files with 5 stars", "share of the first five files"),
    "exact_match": Name("Top passage is the gold", "the first passage's words equal a gold passage's"),
    "span_f1": Name("Top passage overlap (F1)", "words that the first passage shares with gold"),
    "chunk_essential": Name("Passages that hold gold", "share of the first k passages"),
    "chunk_complementary": Name("Passages beside gold", "share of the first k passages that neighbour gold"),
    "chunk_neither": Name("Passages far from gold", "share of the first k passages", True),
    "answer_f1": Name("Answer overlap (F1)", "words that the answer shares with the expected one"),
    "answer_exact_match": Name("Answer is the expected one", "word for word"),
    "abstention_accuracy": Name("Refused when impossible", "impossible questions that were refused"),
    "false_refusal_rate": Name("Refused when answerable", "answerable questions that were refused", True),
    "any_citation": Name("Answers with a citation", "answers that cite a source at all"),
    "citations_matched": Name("Expected sources cited", "share of the sources behind the truth that are cited"),
    "citation_format_compliance": Name("Citations well formed", "valid citations among all"),
    "references_exist": Name("References that exist", "references of the answer that occur in the corpus"),
    "statute_citation_accuracy": Name("Expected rules cited", "rules and statutes of the truth that the answer gives"),
    "case_law_citation_accuracy": Name("Expected cases cited", "cases of the truth that the answer gives"),
    "legal_terminology_accuracy": Name("Terminology", "UK terms of the truth used, less for US ones"),
    "precedent_matching": Name("Sources matched by name", "how near the names cited are to those expected"),
    "precedent_matching_strict": Name("Sources matched exactly", "names that are equal"),
    "groundedness": Name("Groundedness", "a judge's mark from 1 to 5", unit="/5"),
    "relevance": Name("Relevance", "a judge's mark from 1 to 5", unit="/5"),
    "groundedness_unjudged": Name("Groundedness not judged", "answers the judge gave no mark", True),
    "relevance_unjudged": Name("Relevance not judged", "answers the judge gave no mark", True),
    "answer_length": Name("Answer length", "characters", unit="chars"),
    "latency": Name("Time to reply", "seconds a question", True, "s"),
}


def name_of(metric: str) -> Name:
    """Return a metric in words, its depth aside; one that nobody has described keeps its own name."""
    family = metric.partition("@")[0]
    return _NAMES.get(family) or Name(family.replace("_", " "), metric)


def shown(metric: str, value: Any) -> str:
    """Return a value as it is printed: shares in per cent, without the sign."""
    if value is None or not math.isfinite(value):
        return "–"
    unit = name_of(metric).unit
    if unit == "%":
        return f"{100 * value:.1f}"
    return f"{value:,.0f}" if unit == "chars" else f"{value:.2f}"


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
