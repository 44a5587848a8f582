"""Imitations of real systems: files of replies, servers that accept documents, and hosted services.

Replies made from the gold should score 1.000 in every format.
"""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exhibit.evaluation.cases import Case
from tests.evaluation.loopback import LINES, ImitatedSystem, StreamedReply
from tests.loopback import Request
from tests.rag.bundles import PARTIES, contract

Shaped = dict[str, Any]


def quotes(case: Case) -> list[tuple[str, str]]:
    """Return the file and text of each gold passage of a case; an impossible case has one invented sentence."""
    held = [(gold.filename or "", gold.text) for gold in case.gold if gold.text]
    return held or [(case.filename or "", "The price is due within thirty days of the invoice.")]


def ragas(case: Case) -> Shaped:
    """Return a row of a Ragas evaluation dataset."""
    contexts = [text for _, text in quotes(case)]
    row = {"user_input": case.question, "response": case.truth, "retrieved_contexts": contexts}
    return {**row, "reference": "THE TRUTH", "reference_contexts": ["THE GOLD"]}


def evaltools(case: Case) -> Shaped:
    """Return a row of the `eval_results.jsonl` of the evaltools project."""
    context = "\n\n".join(f"{file}: {text}" for file, text in quotes(case)[:1])
    return {"question": case.question, "truth": "THE TRUTH", "answer": case.truth, "context": context, "latency": 0.4}


def nvidia_rows(case: Case) -> Shaped:
    """Return a row of the NVIDIA blueprint's own evaluation, where `answer` is the expected answer."""
    files, texts = zip(*quotes(case), strict=True)
    row = {"id": case.id, "question": case.question, "answer": "THE TRUTH", "generated_answer": case.truth}
    row |= {"contexts": [], "generated_contexts": list(texts), "retrieved_docs": [f"{file}_1" for file in files]}
    return {**row, "usage": {"total_tokens": 30, "prompt_tokens": 20, "completion_tokens": 10}}


def ours(case: Case) -> Shaped:
    """Return a row of predictions in this project's own format."""
    passages = [{"filename": file, "text": text} for file, text in quotes(case)]
    return {"id": case.id, "answer": case.truth, "passages": passages}


FILES: dict[str, Callable[[Case], Shaped]] = {
    "ours": ours,
    "nvidia": nvidia_rows,
    "ragas": ragas,
    "evaltools": evaltools,
}


def write_content(path: Path, content: object) -> Path:
    """Write a text as it is, and rows in the format of the file's suffix."""
    if isinstance(content, list) and path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(content[0]))
            table.writeheader()
            table.writerows({k: repr(v) if isinstance(v, list) else v for k, v in row.items()} for row in content)
        return path
    lines = "".join(json.dumps(row) + "\n" for row in content) if path.suffix == ".jsonl" else json.dumps(content)
    path.write_text(content if isinstance(content, str) else lines, encoding="utf-8")
    return path


def events(*data: Any, done: bool = True) -> list[str]:
    """Return the data as server-sent events, with a final `[DONE]` unless `done` is false."""
    return [f"data: {json.dumps(item)}\n\n" for item in data] + (["data: [DONE]\n\n"] if done else [])


def halves(text: str) -> tuple[str, str]:
    """Return the first and the second half of a text."""
    return text[: len(text) // 2], text[len(text) // 2 :]


def nvidia(system: ImitatedSystem, request: Request) -> Any:
    """Reply like NVIDIA's RAG server and its ingestor."""
    if request.path == "/v1/generate":
        assert request.body["collection_names"] == ["leases"] and request.body["enable_citations"]
        case = system.case(request.body["messages"][-1]["content"])
        first, rest = halves(case.truth)
        results = [_nvidia(*quote) for quote in quotes(case)]
        spent = {"total_tokens": 30, "prompt_tokens": 20, "completion_tokens": 10}
        if not system.stream:
            return {**_nvidia_event(case.truth, results), "usage": spent}
        last = {**_nvidia_event("", []), "usage": spent}
        last["choices"][0]["finish_reason"] = "stop"
        return StreamedReply(events(_nvidia_event(first, results), _nvidia_event(rest, []), last, done=False))
    return _nvidia_documents(system, request)


def _nvidia(file: str, text: str) -> dict[str, Any]:
    metadata = {"page_number": 1, "description": text, "location": [], "content_metadata": {}}
    kind = "table" if "term" in text else "text"
    content = "aGVsbG8=" if kind == "table" else text  # a table is returned as a picture
    return {"document_name": file, "document_type": kind, "content": content, "score": 0.5, "metadata": metadata}


def _nvidia_event(text: str, results: list[Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "delta": {"content": text}}
    spent = {"total_tokens": 0, "prompt_tokens": 0, "completion_tokens": 0}
    citations = {"total_results": len(results), "results": results}
    return {"choices": [{**choice, "finish_reason": None}], "citations": citations, "usage": spent}


def _nvidia_documents(system: ImitatedSystem, request: Request) -> Any:
    match request.method, request.path:
        case "GET", "/v1/collections":
            return {"collections": [{"collection_name": "leases"}] if system.exists else []}
        case "POST", "/v1/collection":
            system.exists = True
            return {"message": "made", "collection_name": request.body["collection_name"]}
        case "DELETE", "/v1/collections":
            system.exists, system.files = False, {}
            return {"message": "gone", "successful": request.body}
        case "POST", "/v1/documents":
            assert json.loads(request.body["fields"]["data"]) == {"collection_name": "leases", "blocking": True}
            name = request.body["name"]
            if name in system.unreadable:
                return {"message": "done", "failed_documents": [{"document_name": name, "error_message": "no text"}]}
            system.files[name] = "read"
            return {"message": "done", "failed_documents": []}
        case "GET", "/v1/documents":
            return {"documents": [{"document_name": name} for name in system.files]}
    return 404


def azure(system: ImitatedSystem, request: Request) -> Any:
    """Reply like the Azure chat demo and an Azure AI Search index."""
    if request.path == "/indexes/contracts/docs/search":
        case = system.case(request.body["search"])
        hits = [{"content": text, "sourcepage": f"{file}#page=1", "sourcefile": file} for file, text in quotes(case)]
        return {"value": [{**hit, "@search.score": 0.03} for hit in hits]}
    if request.path in ("/chat", "/ask", "/chat/stream"):
        case = system.case(request.body["messages"][-1]["content"])
        texts = [f"{file}: {text}" for file, text in quotes(case)]
        steps = [{"title": "Prompt", "props": {"token_usage": {"prompt_tokens": 20, "completion_tokens": 10}}}]
        context = {"data_points": {"text": texts, "images": []}, "thoughts": steps, "followup_questions": None}
        if request.path != "/chat/stream":
            message = {"content": case.truth, "role": "assistant"}
            return {"message": message, "context": context, "session_state": None}
        first, rest = halves(case.truth)
        pieces = [{"delta": {"role": "assistant"}, "context": context}, {"delta": {"content": first}},
                  {"delta": {"content": rest}}, {"delta": {"role": "assistant"}, "context": context}]  # fmt: skip
        return StreamedReply([json.dumps(piece) + "\n" for piece in pieces], LINES)
    match request.method, request.path:
        case "GET", "/list_uploaded":
            return list(system.files)
        case "POST", "/upload":
            if request.body["name"] in system.unreadable:
                return 400, {"message": "Error uploading file, check server logs for details.", "status": "failed"}
            system.files[request.body["name"]] = "read"
            return {"message": "File uploaded successfully"}
        case "POST", "/delete_uploaded":
            del system.files[request.body["filename"]]
            return {"message": "File deleted"}
    return 404


def openai(system: ImitatedSystem, request: Request) -> Any:
    """Reply like OpenAI's Responses API."""
    return _response(system, request) if request.path == "/v1/responses" else 404


def _response(system: ImitatedSystem, request: Request) -> Any:
    assert request.body["tools"][0]["vector_store_ids"] == ["vs_1"]
    assert request.body["include"] == ["file_search_call.results"]
    case = system.case(request.body["input"][-1]["content"])
    results = [{"file_id": f"file-{file}", "filename": file, "text": text, "score": 0.9} for file, text in quotes(case)]
    cited = [{"type": "file_citation", "index": 3, "file_id": "file-1", "filename": quotes(case)[0][0]}]
    said = {"type": "output_text", "text": case.truth, "annotations": cited}
    output = [{"type": "file_search_call", "status": "completed", "results": results},
              {"type": "message", "role": "assistant", "content": [said]}]  # fmt: skip
    whole = {"id": "resp_1", "output": output, "usage": {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}}
    if not request.body.get("stream"):
        return whole
    first, rest = halves(case.truth)
    pieces = [{"type": "response.created", "response": {"output": []}},
              {"type": "response.output_text.delta", "delta": first},
              {"type": "response.output_text.delta", "delta": rest},
              {"type": "response.completed", "response": whole}]  # fmt: skip
    return StreamedReply([f"event: {piece['type']}\ndata: {json.dumps(piece)}\n\n" for piece in pieces])


KEY = "query-key-5b1e"
CATEGORIES = {"alder.txt": "King's Bench Division", "birch.txt": "Commercial Court", "cedar.txt": "Commercial Court"}
ROWS = [
    {"sourcefile": file, "sourcepage": f"{file}#page=1", "content": part, "category": CATEGORIES[file]}
    for file, (party, law) in zip(CATEGORIES, PARTIES.values(), strict=True)
    for part in contract(party, law).split("\n\n")
]
INDEX = "guides"
MOST = 4
"""The most rows of a reply: a service may return fewer rows than requested."""
WIDTH = 3072
"""The dimensions of text-embedding-3-large."""


def reply_as_azure(_: ImitatedSystem, request: Request) -> object:
    """Reply like the REST interface of a search service, and like a deployment of Azure OpenAI."""
    if request.path.endswith("/chat/completions"):
        words = re.findall(r"governed by the law of (\w+)", request.body["messages"][-1]["content"])
        text = (
            f"This Agreement is governed by the law of {words[0]} [1]." if words else "Not found in provided documents"
        )
        usage = {"prompt_tokens": 40, "completion_tokens": 9}
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage}
    if request.headers.get("api-key") != KEY or request.query.get("api-version") != "2024-07-01":
        return 403, {"error": {"code": "", "message": "Access denied due to invalid key"}}
    if request.path != f"/indexes/{INDEX}/docs/search":
        return 404, {"error": {"code": "", "message": "The index was not found"}}
    wanted = re.fullmatch(r"category eq '(.*)'", request.body.get("filter", "category eq ''"))
    name = wanted[1].replace("''", "'") if wanted else ""
    rows = [row for row in ROWS if name in ("", row["category"])]
    if request.body["search"] != "*":
        words = set(re.findall(r"\w{3,}", request.body["search"].lower()))
        score = {
            id(row): len(words & set(re.findall(r"\w{3,}", f"{row['sourcefile']} {row['content']}".lower())))
            for row in rows
        }
        rows = sorted(rows, key=lambda row: -score[id(row)])
    skip, top = request.body.get("skip", 0), request.body["top"]
    chosen = request.body.get("select", "sourcefile,sourcepage,category,content").split(",")
    value = [
        {"@search.score": 1.0, **{field: row[field] for field in chosen}} for row in rows[skip : skip + min(top, MOST)]
    ]
    return {"@odata.count": len(rows), "value": value}


def reply_as_openai(_: ImitatedSystem, request: Request) -> object:
    """Reply like OpenAI: with vectors of each text's letter counts, or with a fixed text."""
    if request.path.endswith("/embeddings"):
        rows = [[1.0 + text.count(chr(97 + place % 26)) for place in range(WIDTH)] for text in request.body["input"]]
        return {"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]}
    words = "A supply agreement." if request.body["model"] == "gpt-4o-mini" else "The law of Ohio governs [1]."
    return {"choices": [{"message": {"content": words}, "finish_reason": "stop"}], "usage": {}}
