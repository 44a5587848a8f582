"""Replies made from the gold in the formats of real systems, all of which should score 1.000."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from exhibit.evaluation.cases import Case

Shaped = dict[str, Any]


def quotes(case: Case) -> list[tuple[str, str]]:
    """Return the file and text of each gold passage of a case; an impossible case has one invented sentence."""
    held = [(gold.filename or "", gold.text) for gold in case.gold if gold.text]
    return held or [(case.filename or "", "The price is due within thirty days of the invoice.")]


def langchain(case: Case) -> Shaped:
    """Return a reply as LangChain's RetrievalQA gives it."""
    documents = [{"page_content": text, "metadata": {"source": f"/docs/{file}"}} for file, text in quotes(case)]
    return {"query": case.question, "result": case.truth, "source_documents": documents}


def langchain_chain(case: Case) -> Shaped:
    """Return a reply as a LangChain retrieval chain gives it, with the documents under `context`."""
    documents = [
        {"page_content": text, "metadata": {"source": file, "page": 0}, "type": "Document"}
        for file, text in quotes(case)
    ]
    return {"input": case.question, "context": documents, "answer": case.truth}


def llamaindex(case: Case) -> Shaped:
    """Return a reply as a LlamaIndex query engine gives it."""
    nodes = [
        {"node": {"text": text, "metadata": {"file_name": file, "page_label": "1"}}, "score": 0.8}
        for file, text in quotes(case)
    ]
    return {"question": case.question, "response": case.truth, "source_nodes": nodes}


def haystack(case: Case) -> Shaped:
    """Return a reply as a Haystack pipeline with an answer builder gives it."""
    documents = [{"content": text, "meta": {"file_path": file}, "score": 0.7} for file, text in quotes(case)]
    return {"query": case.question, "answers": [{"data": case.truth, "documents": documents}]}


def ragas(case: Case) -> Shaped:
    """Return a row of a Ragas evaluation dataset."""
    contexts = [text for _, text in quotes(case)]
    told = {"user_input": case.question, "response": case.truth, "retrieved_contexts": contexts}
    return {**told, "reference": "THE TRUTH", "reference_contexts": ["THE GOLD"]}


def evaltools(case: Case) -> Shaped:
    """Return a row of the `eval_results.jsonl` of the evaltools project."""
    context = "\n\n".join(f"{file}: {text}" for file, text in quotes(case)[:1])
    return {"question": case.question, "truth": "THE TRUTH", "answer": case.truth, "context": context, "latency": 0.4}


def nvidia_rows(case: Case) -> Shaped:
    """Return a row of the NVIDIA blueprint's own evaluation, where `answer` is the expected answer."""
    return {
        "id": case.id,
        "question": case.question,
        "answer": "THE TRUTH",
        "generated_answer": case.truth,
        "contexts": [],
        "generated_contexts": [text for _, text in quotes(case)],
        "retrieved_docs": [f"{file}_1" for file, _ in quotes(case)],
        "usage": {"total_tokens": 30, "prompt_tokens": 20, "completion_tokens": 10},
    }


def ours(case: Case) -> Shaped:
    """Return a row of predictions in this project's own format."""
    passages = [{"filename": file, "text": text} for file, text in quotes(case)]
    return {"id": case.id, "answer": case.truth, "passages": passages}


FILES: dict[str, Callable[[Case], Shaped]] = {
    "ours": ours,
    "nvidia": nvidia_rows,
    "langchain": langchain,
    "langchain chain": langchain_chain,
    "llamaindex": llamaindex,
    "haystack": haystack,
    "ragas": ragas,
    "evaltools": evaltools,
}


def write_file(path: Path, rows: Sequence[Shaped]) -> Path:
    """Write rows in the format of the file's extension: CSV, JSON lines or JSON; return the path."""
    if path.suffix == ".csv":
        out = io.StringIO()
        table = csv.DictWriter(out, fieldnames=list(rows[0]))
        table.writeheader()
        table.writerows({k: repr(v) if isinstance(v, list) else v for k, v in row.items()} for row in rows)
        text = out.getvalue()
    elif path.suffix == ".jsonl":
        text = "".join(json.dumps(row) + "\n" for row in rows)
    else:
        text = json.dumps(rows)
    path.write_text(text, encoding="utf-8")
    return path
