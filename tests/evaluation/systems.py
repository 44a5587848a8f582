"""Local imitations of real systems: each accepts documents and answers from the gold in its own format."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from exhibit.evaluation.cases import Case
from tests.evaluation.imitations import quotes
from tests.evaluation.loopback import LINES, PLAIN, Asked, Stream, System


def events(*data: Any, done: bool = True) -> list[str]:
    """Return the data as server-sent events, with a final `[DONE]` unless `done` is false."""
    return [f"data: {json.dumps(one)}\n\n" for one in data] + (["data: [DONE]\n\n"] if done else [])


def halves(text: str) -> tuple[str, str]:
    """Return the first and the second half of a text."""
    return text[: len(text) // 2], text[len(text) // 2 :]


# ---------------------------------------------------------------- NVIDIA's blueprint


def nvidia(system: System, asked: Asked) -> Any:
    """Reply as NVIDIA's RAG server and its ingestor do."""
    if asked.path == "/v1/search":
        results = [_nvidia(*quote) for quote in quotes(system.case(asked.body["query"]))]
        return {"total_results": len(results) + 1, "results": [*results, _nvidia("alder.txt", "Payment. The price")]}
    if asked.path == "/v1/generate":
        assert asked.body["collection_names"] == ["leases"] and asked.body["enable_citations"]
        case = system.case(asked.body["messages"][-1]["content"])
        first, rest = halves(case.truth)
        results = [_nvidia(*quote) for quote in quotes(case)]
        spent = {"total_tokens": 30, "prompt_tokens": 20, "completion_tokens": 10}
        if not system.stream:
            return {**_nvidia_event(case.truth, results), "usage": spent}
        last = {**_nvidia_event("", []), "usage": spent}
        last["choices"][0]["finish_reason"] = "stop"
        return Stream(events(_nvidia_event(first, results), _nvidia_event(rest, []), last, done=False))
    return _nvidia_documents(system, asked)


def _nvidia(file: str, text: str) -> dict[str, Any]:
    metadata = {"page_number": 1, "description": text, "location": [], "content_metadata": {}}
    kind = "table" if "term" in text else "text"
    content = "aGVsbG8=" if kind == "table" else text  # a table is cut out as a picture
    return {"document_name": file, "document_type": kind, "content": content, "score": 0.5, "metadata": metadata}


def _nvidia_event(text: str, results: list[Any]) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "delta": {"content": text}}
    spent = {"total_tokens": 0, "prompt_tokens": 0, "completion_tokens": 0}
    citations = {"total_results": len(results), "results": results}
    return {"choices": [{**choice, "finish_reason": None}], "citations": citations, "usage": spent}


def _nvidia_documents(system: System, asked: Asked) -> Any:
    match asked.method, asked.path:
        case "GET", "/v1/collections":
            return {"collections": [{"collection_name": "leases"}] if system.exists else []}
        case "POST", "/v1/collection":
            system.exists = True
            return {"message": "made", "collection_name": asked.body["collection_name"]}
        case "DELETE", "/v1/collections":
            system.exists, system.files = False, {}
            return {"message": "gone", "successful": asked.body}
        case "POST", "/v1/documents":
            assert json.loads(asked.body["fields"]["data"]) == {"collection_name": "leases", "blocking": False}
            system.files[asked.body["name"]] = "waiting"
            return {"message": "started", "task_id": asked.body["name"]}
        case "GET", "/v1/status":
            name = asked.query["task_id"]
            if system.files.get(name) == "waiting":
                system.files[name] = "read"
                return {"state": "PENDING", "result": {}, "nv_ingest_status": {}}
            failed = [{"document_name": name, "error_message": "no text"}] if name in system.unreadable else []
            return {"state": "FINISHED", "result": {"failed_documents": failed}, "nv_ingest_status": {}}
        case "GET", "/v1/documents":
            there = [name for name, state in system.files.items() if state == "read" and name not in system.unreadable]
            return {"documents": [{"document_name": name} for name in there]}
    return 404


# ---------------------------------------------------------------- Azure


def azure(system: System, asked: Asked) -> Any:
    """Reply as the Azure chat demo and an Azure AI Search index do."""
    if asked.path == "/indexes/contracts/docs/search":
        case = system.case(asked.body["search"])
        hits = [{"content": text, "sourcepage": f"{file}#page=1", "sourcefile": file} for file, text in quotes(case)]
        return {"value": [{**hit, "@search.score": 0.03} for hit in hits]}
    if asked.path in ("/chat", "/ask", "/chat/stream"):
        case = system.case(asked.body["messages"][-1]["content"])
        texts = [f"{file}: {text}" for file, text in quotes(case)]
        steps = [{"title": "Prompt", "props": {"token_usage": {"prompt_tokens": 20, "completion_tokens": 10}}}]
        told = {"data_points": {"text": texts, "images": []}, "thoughts": steps, "followup_questions": None}
        if asked.path != "/chat/stream":
            message = {"content": case.truth, "role": "assistant"}
            return {"message": message, "context": told, "session_state": None}
        first, rest = halves(case.truth)
        pieces = [{"delta": {"role": "assistant"}, "context": told}, {"delta": {"content": first}},
                  {"delta": {"content": rest}}, {"delta": {"role": "assistant"}, "context": told}]  # fmt: skip
        return Stream([json.dumps(piece) + "\n" for piece in pieces], LINES)
    match asked.method, asked.path:
        case "GET", "/list_uploaded":
            return list(system.files)
        case "POST", "/upload":
            if asked.body["name"] in system.unreadable:
                return 400, {"message": "Error uploading file, check server logs for details.", "status": "failed"}
            system.files[asked.body["name"]] = "read"
            return {"message": "File uploaded successfully"}
        case "POST", "/delete_uploaded":
            del system.files[asked.body["filename"]]
            return {"message": "File deleted"}
    return 404


# ---------------------------------------------------------------- OpenAI


def openai(system: System, asked: Asked) -> Any:
    """Reply as OpenAI's Responses, chat completions and vector stores do."""
    if asked.path == "/v1/responses":
        return _response(system, asked)
    if asked.path == "/v1/chat/completions":
        return _completion(system, asked, lambda case: {"citations": _citations(case)})
    match asked.method, asked.path:
        case "GET", "/v1/vector_stores":
            return {"data": [{"id": "vs_1", "name": "leases"}] if system.exists else [], "has_more": False}
        case "POST", "/v1/vector_stores":
            system.exists = True
            return {"id": "vs_1", "name": asked.body["name"]}
        case "DELETE", "/v1/vector_stores/vs_1":
            system.exists = False
            return {"deleted": True}
        case "POST", "/v1/files":
            assert asked.body["fields"] == {"purpose": "assistants"}
            return {"id": f"file-{asked.body['name']}", "filename": asked.body["name"]}
        case "POST", "/v1/vector_stores/vs_1/files":
            system.files[asked.body["file_id"].removeprefix("file-")] = "waiting"
            return {"id": asked.body["file_id"], "status": "in_progress"}
        case "GET", "/v1/vector_stores/vs_1/files":
            return {"data": [_stored(system, name) for name in list(system.files)], "has_more": False}
    if asked.method == "DELETE" and asked.path.startswith("/v1/files/"):
        del system.files[asked.path.removeprefix("/v1/files/file-")]
        return {"deleted": True}
    if asked.path.startswith("/v1/files/"):
        return {"filename": asked.path.removeprefix("/v1/files/file-")}
    return 404


def _stored(system: System, name: str) -> dict[str, Any]:
    told, state = {"id": f"file-{name}", "attributes": {}, "last_error": None}, system.files[name]
    system.files[name] = "read"
    if name in system.unreadable:
        return {**told, "status": "failed", "last_error": {"code": "invalid_file", "message": "no text"}}
    return {**told, "status": "completed" if state == "read" else "in_progress"}


def _citations(case: Case) -> list[dict[str, Any]]:
    return [{"content": text, "title": file, "filepath": file} for file, text in quotes(case)]


def _response(system: System, asked: Asked) -> Any:
    assert asked.body["tools"][0]["vector_store_ids"] == ["vs_1"]
    assert asked.body["include"] == ["file_search_call.results"]
    case = system.case(asked.body["input"][-1]["content"])
    results = [{"file_id": f"file-{file}", "filename": file, "text": text, "score": 0.9} for file, text in quotes(case)]
    cited = [{"type": "file_citation", "index": 3, "file_id": "file-1", "filename": quotes(case)[0][0]}]
    said = {"type": "output_text", "text": case.truth, "annotations": cited}
    output = [{"type": "file_search_call", "status": "completed", "results": results},
              {"type": "message", "role": "assistant", "content": [said]}]  # fmt: skip
    whole = {"id": "resp_1", "output": output, "usage": {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}}
    if not asked.body["stream"]:
        return whole
    first, rest = halves(case.truth)
    pieces = [{"type": "response.created", "response": {"output": []}},
              {"type": "response.output_text.delta", "delta": first},
              {"type": "response.output_text.delta", "delta": rest},
              {"type": "response.completed", "response": whole}]  # fmt: skip
    return Stream([f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in pieces])


def _completion(system: System, asked: Asked, more: Callable[[Case], Any], where: str = "") -> Any:
    """Return a chat completion, with the passages beside the choices or, if `where` is set, in the message.

    In a stream, the message's passages are in the last event.
    """
    case = system.case(asked.body["messages"][-1]["content"])
    told, inside = (more(case), {}) if not where else ({}, more(case))
    spent = {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}
    if not asked.body["stream"]:
        message = {"role": "assistant", "content": case.truth, **inside}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": spent, **told}
    first, rest = halves(case.truth)
    deltas = [{"role": "assistant", "content": first}, {"content": rest}, {"content": None, **inside}]
    parts: list[Any] = [{"choices": [{"delta": delta, "finish_reason": None}], "usage": None} for delta in deltas]
    parts[0] |= told
    parts[-1]["choices"][0]["finish_reason"] = "stop"
    parts[-1]["usage"] = spent
    return Stream(events(*parts))


# ---------------------------------------------------------------- LangServe


def langserve(system: System, asked: Asked) -> Any:
    """Reply as a LangServe retrieval chain does."""
    case = system.case(asked.body["input"]["input"])
    context = [{"page_content": text, "metadata": {"source": f"/docs/{file}", "page": 0}, "type": "Document"}
               for file, text in quotes(case)]  # fmt: skip
    if asked.path == "/rag/invoke":
        return {
            "output": {"input": case.question, "context": context, "answer": case.truth},
            "metadata": {"run_id": "1"},
        }
    if asked.path != "/rag/stream":
        return 404
    first, rest = halves(case.truth)
    parts = [{"input": case.question}, {"context": context}, {"answer": first}, {"answer": rest}]
    told = [f"event: data\r\ndata: {json.dumps(part)}\r\n\r\n" for part in parts]
    return Stream(['event: metadata\r\ndata: {"run_id": "1"}\r\n\r\n', *told, "event: end\r\n\r\n"])


# ---------------------------------------------------------------- LlamaIndex


def llamaindex(system: System, asked: Asked) -> Any:
    """Reply as a LlamaIndex chat server does, in one part or as a stream."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", str(asked.body.get("id", ""))):
        return 422, {"detail": [{"type": "missing", "loc": ["body", "id"], "msg": "Field required"}]}
    case = system.case(asked.body["messages"][-1]["content"])
    nodes = [{"id": "n", "metadata": {"file_name": file, "page_label": "1"}, "score": 0.8, "text": text, "url": None}
             for file, text in quotes(case)]  # fmt: skip
    if asked.path == "/api/chat/request":
        return {"result": {"role": "assistant", "content": case.truth}, "nodes": nodes}
    if asked.path != "/api/chat":
        return 404
    first, rest = halves(case.truth)
    sources = {"type": "sources", "data": {"nodes": nodes}}
    agent = {"type": "agent", "data": {"agent": "query", "text": "searching"}}
    spent = {"finishReason": "stop", "usage": {"promptTokens": 20, "completionTokens": 10}}
    parts = [("0", ""), ("8", [agent]), ("8", [sources]), ("0", first), ("0", rest), ("d", spent)]
    return Stream([f"{kind}:{json.dumps(data)}\n" for kind, data in parts], PLAIN)


# ---------------------------------------------------------------- Hayhooks


def haystack(system: System, asked: Asked) -> Any:
    """Reply as two Haystack pipelines do: one answers questions, one accepts files."""
    if asked.path == "/v1/chat/completions":
        assert asked.body["model"] == "rag"
        return _completion(system, asked, lambda case: {})
    if asked.path == "/rag/run":
        case = system.case(asked.body["query"])
        if system.stream:
            return Stream(["".join(f"data: {half}\n\n") for half in halves(case.truth)])
        documents = [{"content": text, "meta": {"file_path": file}, "score": 0.7} for file, text in quotes(case)]
        spent = {"usage": {"prompt_tokens": 20, "completion_tokens": 10}}
        replies = [{"role": "assistant", "content": [{"text": case.truth}], "meta": spent}]
        return {"result": {"retriever": {"documents": documents}, "llm": {"replies": replies}}}
    match asked.method, asked.path:
        case "GET", "/status/files":
            return {"status": "Up!", "pipeline": "files"}
        case "POST", "/files/run":
            if asked.body["name"] in system.unreadable:
                return 500, {"error": {"message": "no text"}}
            system.files[asked.body["name"]] = "read"
            return {"result": {"written": 1}}
    return 404


# ---------------------------------------------------------------- RAGFlow


def ragflow(system: System, asked: Asked) -> Any:
    """Reply as RAGFlow's assistant, search and datasets do."""
    if asked.headers.get("Authorization") != "Bearer ragflow-planted":
        return {"code": 109, "message": "API key is invalid!"}
    if asked.path == "/api/v1/retrieval":
        assert asked.body["dataset_ids"] == ["d1"]
        chunks = [{"content": text, "document_keyword": file, "similarity": 0.7, "positions": [[1, 2, 3, 4, 5]]}
                  for file, text in quotes(system.case(asked.body["question"]))]  # fmt: skip
        return {"code": 0, "data": {"chunks": chunks, "total": len(chunks)}}
    if asked.path == "/api/v1/chats_openai/c1/chat/completions":
        assert asked.body["extra_body"] == {"reference": True}
        return _completion(system, asked, _reference, "inside")
    match asked.method, asked.path:
        case "GET", "/api/v1/datasets":
            return {"code": 0, "data": [{"id": "d1", "name": "leases"}] if system.exists else []}
        case "POST", "/api/v1/datasets":
            system.exists = True
            return {"code": 0, "data": {"id": "d1", "name": asked.body["name"]}}
        case "DELETE", "/api/v1/datasets":
            system.exists, system.files = False, {}
            return {"code": 0}
        case "POST", "/api/v1/datasets/d1/documents":
            system.files[asked.body["name"]] = "sent"
            return {"code": 0, "data": [{"id": asked.body["name"], "name": asked.body["name"], "run": "UNSTART"}]}
        case "POST", "/api/v1/datasets/d1/chunks":
            system.files.update(dict.fromkeys(asked.body["document_ids"], "waiting"))
            return {"code": 0}
        case "GET", "/api/v1/datasets/d1/documents":
            return {"code": 0, "data": {"docs": [_parsed(system, name) for name in list(system.files)]}}
    return 404, {"code": 404, "message": f"Not Found: {asked.path}"}


def _reference(case: Case) -> Any:
    chunks = {str(number): {"content": text, "document_name": file, "similarity": 0.7, "positions": [[1, 2, 3, 4, 5]]}
              for number, (file, text) in enumerate(quotes(case))}  # fmt: skip
    return {"reference": {"chunks": chunks, "doc_aggs": {}}}


def _parsed(system: System, name: str) -> dict[str, Any]:
    state = system.files[name]
    system.files[name] = "read" if state == "waiting" else state
    run = {"sent": "UNSTART", "waiting": "RUNNING", "read": "FAIL" if name in system.unreadable else "DONE"}[state]
    return {"id": name, "name": name, "run": run, "progress_msg": "no text" if run == "FAIL" else ""}
