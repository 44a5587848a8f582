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
_LARGEST = 64 << 20
"""The most bytes of a reply: a score takes some fifty."""
_KEY = "RERANK_API_KEY"


def open(argument: str | None, *, timeout: float | None = None) -> "HttpReranker":
    """Return a client for the rerank server whose address the argument gives."""
    model, at, address = (argument or "").rpartition("@http")
    address = f"http{address}" if at else address
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host or url.username:
        raise ToolkitError(
            "http: no server is named; give http:MODEL@https://host/v1/rerank, and put the key into RERANK_API_KEY"
        )
    return HttpReranker(url, model, timeout=timeout or _TIMEOUT)


class HttpReranker:
    """A client for a server that scores passages; a failed request or a missing score raises an error."""

    def __init__(self, url: httpx.URL, model: str, *, timeout: float) -> None:
        self._url, self._timeout = url, timeout
        self._model = model
        key = os.environ.get(_KEY, "").strip()
        self._client = HttpClient({"Authorization": f"Bearer {key}"} if key else {}, secrets=Secrets([key]))
        self._where = f"{url.host}{url.path}"
        self.name = f"http:{model or self._where}"

    def score(self, question: str, passages: Sequence[str]) -> list[float]:
        """Return the server's score of each passage, in order."""
        if not passages:
            return []
        body: dict[str, Any] = {"query": question, "documents": list(passages), "top_n": len(passages)}
        if self._model:
            body["model"] = self._model
        try:
            with self._client.send(
                "POST", str(self._url), body, deadline=Deadline(self._timeout), most=_LARGEST
            ) as response:
                response.check()
                data = response.read()
        except HttpError as error:
            if error.status is not None:
                raise ServiceError(f"{self._where}: {error}; check the address and {_KEY}") from None
            raise ServiceError(f"{self._where}: no reply ({error}); is the reranker running?") from None
        return self._read(data, len(passages))

    def _read(self, data: bytes, count: int) -> list[float]:
        scores: dict[int, float] = {}
        try:
            for result in json.loads(data)["results"]:
                scores[int(result["index"])] = float(result.get("relevance_score", result.get("score")))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            raise ServiceError(
                f"{self._where}: the reply has no 'results' with an index and a score; is this a rerank server?"
            ) from None
        if sorted(scores) != list(range(count)) or not all(map(math.isfinite, scores.values())):
            raise ServiceError(
                f"{self._where}: the reply does not have exactly one score for each of the {count} passages"
            )
        return [scores[index] for index in range(count)]
