"""Any server with OpenAI's embeddings API: `openai:MODEL`, or `openai:MODEL@256` for shorter vectors.

The server is at `OPENAI_BASE_URL`, the key in `OPENAI_API_KEY`.
"""

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from exhibit.models.embedders import to_unit
from exhibit.models.endpoint import Endpoint
from exhibit.models.protocols import Role, Vectors
from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.storage.http_policy import Deadline, HttpError, Retries

_DIMENSIONS = {"text-embedding-3-large": 3072, "text-embedding-3-small": 1536, "text-embedding-ada-002": 1536}
"""The vector lengths of known models; for these no request is needed."""
_ITEMS = 96  # texts per request: some servers of this protocol accept no more
_CHARACTERS = 300_000
"""The most characters in one request: a third of the tokens that OpenAI allows."""
_LONGEST = 24_000
"""The most characters of one text: the models accept about 8,000 tokens."""
_TOO_MUCH = frozenset({400, 413, 422})
"""HTTP statuses that may concern one text, or the number of texts: half of the batch may succeed."""


def open(argument: str | None, *, timeout: float | None = None) -> "OpenAIEmbedder":
    """Return an embedder for the model that the argument names.

    `timeout` is the number of seconds for one request, with its retries.
    """
    if not argument:
        raise ToolkitError("openai: no model is named; give one, for instance openai:text-embedding-3-large")
    model, dimensions = parse_model_name(argument)
    return OpenAIEmbedder(model, dimensions=dimensions, total=timeout)


def parse_model_name(argument: str) -> tuple[str, int | None]:
    """Return the model's name and the vector length that `MODEL@256` requests."""
    match = re.fullmatch(r"(.+)@(\d+)", argument)
    return (match[1], int(match[2])) if match else (argument, None)


class OpenAIEmbedder:
    """A client for an embedding model on a server: it sends requests in parallel and retries transient errors."""

    def __init__(
        self,
        model: str,
        *,
        dimensions: int | None = None,
        timeout: float = 60.0,
        total: float | None = None,
        retries: int = 5,
        backoff: float = 1.0,
        concurrency: int = 8,
        azure: bool = False,
        wait: Callable[[float], object] = time.sleep,
    ) -> None:
        self._model, self._asked = model, dimensions
        self._concurrency, self._total = concurrency, total
        self._retries = Retries(retries, backoff, sleep=wait)
        self._endpoint = Endpoint(timeout=total or timeout, connections=concurrency, azure=azure)
        self.name = f"{'azure' if azure else 'openai'}:{model}" + (f"@{dimensions}" if dimensions else "")
        self.dimensions = dimensions or _DIMENSIONS.get(model) or len(self._ask(["dimensions"])[0])

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002 - such servers know no roles
        """Return one normalised row per text, in order; only the beginning of a very long text is embedded."""
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        stop = threading.Event()

        def fill(batch: range) -> None:
            some = [texts[row] for row in batch]
            if not stop.is_set():
                rows = self._ask([text[:_LONGEST] if text.strip() else " " for text in some])
                vectors[batch.start : batch.stop] = to_unit(rows, some, name=self.name, dimensions=self.dimensions)

        with ThreadPoolExecutor(self._concurrency) as pool:
            try:
                list(pool.map(fill, _split_batches(texts)))
            finally:
                stop.set()  # after an error the remaining requests are cancelled
        return vectors

    def _ask(self, texts: list[str]) -> list[Any]:
        """Return the server's vector for each text; a batch that the server rejects as too large is sent in halves."""
        body: dict[str, object] = {"model": self._model, "input": texts, "encoding_format": "float"}
        if self._asked:
            body["dimensions"] = self._asked
        try:
            deadline = Deadline(self._total) if self._total else None
            reply = self._retries(lambda: self._endpoint.post("embeddings", body), deadline=deadline)
        except HttpError as fault:
            if fault.status in _TOO_MUCH and len(texts) > 1:
                half = len(texts) // 2
                return self._ask(texts[:half]) + self._ask(texts[half:])
            about = f" (text of {len(texts[0])} characters: {texts[0][:60]!r})" if fault.status in _TOO_MUCH else ""
            raise ServiceError(f"{self.name}: {fault}{about}") from None
        return _rows_of(reply, len(texts), self.name)


def _split_batches(texts: Sequence[str]) -> Iterator[range]:
    start = characters = 0
    for row, text in enumerate(texts):
        length = min(len(text), _LONGEST)
        if row > start and (row - start == _ITEMS or characters + length > _CHARACTERS):
            yield range(start, row)
            start, characters = row, 0
        characters += length
    if start < len(texts):
        yield range(start, len(texts))


def _rows_of(reply: dict[str, Any], count: int, name: str) -> list[Any]:
    """Return the vectors of a reply in the order of the texts; raise ServiceError for an invalid reply."""
    items = reply.get("data")
    if not isinstance(items, list):
        raise ServiceError(f"{name}: the reply has no list 'data'; does OPENAI_BASE_URL name an embeddings server?")
    rows: dict[int, list[float]] = {}
    for place, item in enumerate(items):
        row = item.get("embedding") if isinstance(item, dict) else None
        if not isinstance(row, list) or not row or not all(isinstance(x, (int, float)) or x is None for x in row):
            raise ServiceError(f"{name}: item {place} of the reply has no list 'embedding' of numbers")
        number = item.get("index", place)
        rows[number if isinstance(number, int) else -1] = row
    if sorted(rows, key=str) != sorted(range(count), key=str):
        raise ServiceError(
            f"{name}: the reply must have {count} vectors with the indexes 0 to {count - 1}, but its {len(items)} "
            "vectors have other indexes"
        )
    if len({len(row) for row in rows.values()}) > 1:
        raise ServiceError(f"{name}: vectors of different lengths in one reply")
    return [rows[place] for place in range(count)]
