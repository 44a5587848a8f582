"""A rerank server: `http:MODEL@URL` or `http:URL`; its key, if it needs one, is in RERANK_API_KEY.

The request is the common one, `{"model", "query", "documents"}`, and the reply is
`{"results": [{"index", "relevance_score"}]}`.
"""

import json
import math
import os
from collections.abc import Sequence
from typing import Any

import httpx

from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.storage.http import Deadline, HttpClient, HttpError, Secrets

_TIMEOUT = 60.0  # seconds for one question's passages
_MAX_BYTES = 64 << 20  # of a reply: a score takes some fifty
_KEY = "RERANK_API_KEY"


def open(argument: str | None, *, timeout: float | None = None) -> "HttpReranker":
    model, at, address = (argument or "").rpartition("@http")
    try:
        url = httpx.URL(f"http{address}" if at else address)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.username:
        raise ToolkitError(
            "http: no server is named; give http:MODEL@https://host/v1/rerank, and put the key into RERANK_API_KEY"
        )
    return HttpReranker(url, model, timeout=timeout or _TIMEOUT)


class HttpReranker:
    def __init__(self, url: httpx.URL, model: str, *, timeout: float) -> None:
        self._url, self._model, self._timeout = url, model, timeout
        key = os.environ.get(_KEY, "").strip()
        self._client = HttpClient({"Authorization": f"Bearer {key}"} if key else {}, secrets=Secrets([key]))
        self._where = f"{url.host}{url.path}"
        self.name = f"http:{model or self._where}"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        if not passages:
            return []
        body: dict[str, Any] = {"query": question, "documents": list(passages), "top_n": len(passages)}
        if self._model:
            body["model"] = self._model
        deadline = Deadline(self._timeout)
        try:
            with self._client.send("POST", str(self._url), body, deadline=deadline, most=_MAX_BYTES) as response:
                response.check()
                data = response.read()
        except HttpError as error:
            hint = f"is the reranker running, and are the address and {_KEY} right?"
            raise ServiceError(f"{self._where}: {error}; {hint}") from None
        try:
            results = json.loads(data)["results"]
            scores = {int(row["index"]): float(row.get("relevance_score", row.get("score"))) for row in results}
            ordered = [scores[index] for index in range(len(passages))]
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
            ordered = []
        if not ordered or not all(map(math.isfinite, ordered)):
            raise ServiceError(
                f"{self._where}: the reply has no 'results' with an index and a score for each of the {len(passages)} "
                "passages; is this a rerank server?"
            )
        return ordered
