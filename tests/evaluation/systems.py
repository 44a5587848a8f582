"""Local imitations of real systems: each accepts documents and answers from the gold in its own format."""

from __future__ import annotations

import json
from typing import Any

from tests.evaluation.imitations import quotes
from tests.evaluation.loopback import LINES, Asked, Stream, System


def events(*data: Any, done: bool = True) -> list[str]:
    """Return the data as server-sent events, with a final `[DONE]` unless `done` is false."""
    return [f"data: {json.dumps(one)}\n\n" for one in data] + (["data: [DONE]\n\n"] if done else [])


def halves(text: str) -> tuple[str, str]:
    """Return the first and the second half of a text."""
    return text[: len(text) // 2], text[len(text) // 2 :]


# ---------------------------------------------------------------- NVIDIA's blueprint


def nvidia(system: System, asked: Asked) -> Any:
    """Reply as NVIDIA's RAG server and its ingestor do."""
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
            assert json.loads(asked.body["fields"]["data"]) == {"collection_name": "leases", "blocking": True}
            name = asked.body["name"]
            if name in system.unreadable:
                return {"message": "done", "failed_documents": [{"document_name": name, "error_message": "no text"}]}
            system.files[name] = "read"
            return {"message": "done", "failed_documents": []}
        case "GET", "/v1/documents":
            return {"documents": [{"document_name": name} for name in system.files]}
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
    """Reply as OpenAI's Responses do."""
    return _response(system, asked) if asked.path == "/v1/responses" else 404


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
    if not asked.body.get("stream"):
        return whole
    first, rest = halves(case.truth)
    pieces = [{"type": "response.created", "response": {"output": []}},
              {"type": "response.output_text.delta", "delta": first},
              {"type": "response.output_text.delta", "delta": rest},
              {"type": "response.completed", "response": whole}]  # fmt: skip
    return Stream([f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in pieces])
