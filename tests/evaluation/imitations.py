"""Replies from the gold in the shapes of real systems: what each delivers should score 1.000."""

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
    """The files and words of a case's gold; a sentence of its document for one that is impossible."""
    held = [(gold.filename or "", gold.text) for gold in case.gold if gold.text]
    return held or [(case.filename or "", "The price is due within thirty days of the invoice.")]


def langchain(case: Case) -> Shaped:
    """RetrievalQA."""
    documents = [{"page_content": text, "metadata": {"source": f"/docs/{file}"}} for file, text in quotes(case)]
    return {"query": case.question, "result": case.truth, "source_documents": documents}


def langchain_chain(case: Case) -> Shaped:
    """A retrieval chain, which calls the documents its context."""
    documents = [
        {"page_content": text, "metadata": {"source": file, "page": 0}, "type": "Document"}
        for file, text in quotes(case)
    ]
    return {"input": case.question, "context": documents, "answer": case.truth}


def langserve(case: Case) -> Shaped:
    """The same behind a server."""
    return {"output": langchain_chain(case), "metadata": {"run_id": "1"}}


def llamaindex(case: Case) -> Shaped:
    """A query engine's response."""
    nodes = [
        {"node": {"text": text, "metadata": {"file_name": file, "page_label": "1"}}, "score": 0.8}
        for file, text in quotes(case)
    ]
    return {"question": case.question, "response": case.truth, "source_nodes": nodes}


def haystack(case: Case) -> Shaped:
    """A pipeline with an answer builder."""
    documents = [{"content": text, "meta": {"file_path": file}, "score": 0.7} for file, text in quotes(case)]
    return {"query": case.question, "answers": [{"data": case.truth, "documents": documents}]}


def hayhooks(case: Case) -> Shaped:
    """A pipeline behind a server: what each component gives."""
    documents = [{"content": text, "meta": {"file_path": file}} for file, text in quotes(case)]
    replies = [{"role": "assistant", "content": [{"text": case.truth}], "meta": {"usage": {"prompt_tokens": 9}}}]
    return {"retriever": {"documents": documents}, "llm": {"replies": replies}}


def ragas(case: Case) -> Shaped:
    """A row of an evaluation dataset."""
    contexts = [text for _, text in quotes(case)]
    told = {"user_input": case.question, "response": case.truth, "retrieved_contexts": contexts}
    return {**told, "reference": "THE TRUTH", "reference_contexts": ["THE GOLD"]}


def evaltools(case: Case) -> Shaped:
    """A row of eval_results.jsonl."""
    context = "\n\n".join(f"{file}: {text}" for file, text in quotes(case)[:1])
    return {"question": case.question, "truth": "THE TRUTH", "answer": case.truth, "context": context, "latency": 0.4}


def nvidia_rows(case: Case) -> Shaped:
    """A row of the blueprint's own evaluation: `answer` is the truth."""
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
    """This project's own."""
    passages = [{"filename": file, "text": text} for file, text in quotes(case)]
    return {"id": case.id, "answer": case.truth, "passages": passages}


def nvidia_stream(case: Case) -> bytes:
    """The blueprint's /generate: citations in the first event, an empty default in every later one."""
    empty = {"total_results": 0, "results": []}
    results = [
        {"content": text, "document_name": file, "score": 0.5, "metadata": {"page_number": 1}}
        for file, text in quotes(case)
    ]
    half = len(case.truth) // 2
    events = [
        _chunk(case.truth[:half], {"total_results": len(results), "results": results}),
        _chunk(case.truth[half:], empty),
        {**_chunk("", empty), "usage": {"total_tokens": 30, "prompt_tokens": 20, "completion_tokens": 10}},
    ]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n"


def _chunk(text: str, citations: Shaped) -> Shaped:
    message = {"role": "assistant", "content": text}
    usage = {"total_tokens": 0, "prompt_tokens": 0, "completion_tokens": 0}
    return {
        "choices": [{"index": 0, "message": message, "delta": {"content": ""}}],
        "citations": citations,
        "usage": usage,
    }


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
SERVERS: dict[str, Callable[[Case], Shaped | bytes]] = {
    "langchain": langchain,
    "langchain chain": langchain_chain,
    "langserve": langserve,
    "llamaindex": llamaindex,
    "haystack": haystack,
    "hayhooks": hayhooks,
    "nvidia": nvidia_stream,
}


def write_file(path: Path, rows: Sequence[Shaped]) -> Path:
    """Write rows as the file's ending says."""
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
