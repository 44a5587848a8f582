"""Reads an index of Azure AI Search through its REST interface, for `exhibit index --inspect`.

The rows of the index have the fields of Azure's search-openai-demo: `sourcefile`, `sourcepage`, `category`
and `content`.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.storage.http import Deadline, HttpClient, HttpError, Retries, Secrets

KEY = "AZURE_SEARCH_KEY"
_VERSION = "2024-07-01"  # version of the REST interface; evaluation/targets/azure.toml uses the same one
_PAGE = 1000  # rows of a reply; Azure returns no more
_FARTHEST = 100_000  # rows that Azure can skip, at most
_SECONDS = 60.0  # for one request


def count_categories(names: Iterable[str]) -> list[dict[str, Any]]:
    return [{"category": name, "documents": count} for name, count in sorted(Counter(names).items())]


class AzureIndex:
    """An index on Azure AI Search, for `exhibit index --inspect`; each method returns the rows of a table."""

    def __init__(self, address: str) -> None:
        path = urlsplit(address).path.strip("/").split("/")
        if path[-2:-1] != ["indexes"]:
            raise ToolkitError(
                f"{address}: not an index of Azure AI Search; give https://NAME.search.windows.net/indexes/INDEX"
            )
        key = os.environ.get(KEY, "").strip()
        if not key:
            raise ToolkitError(
                f"{address}: no query key; put a query key of the search service in the environment variable {KEY}"
            )
        self._url = f"{address.rstrip('/')}/docs/search?api-version={_VERSION}"
        self._client = HttpClient({"api-key": key}, secrets=Secrets([key]))
        self._retries = Retries(3, 1.0)

    def documents(self, category: str | None) -> list[dict[str, Any]]:
        counts: Counter[tuple[str, str]] = Counter()
        for row in self._read_rows("sourcefile,category", category):
            counts[str(row.get("sourcefile") or ""), str(row.get("category") or "")] += 1
        return [{"document": f, "category": c, "passages": n} for (f, c), n in sorted(counts.items())]

    def categories(self, category: str | None = None) -> list[dict[str, Any]]:
        return count_categories(row["category"] for row in self.documents(category))

    def chunks(self, category: str | None) -> list[dict[str, Any]]:
        """Return a row for each passage of a category; None for `category` means all categories."""
        rows = self._read_rows("sourcefile,sourcepage,category,content", category)
        names = {"document": "sourcefile", "section": "sourcepage", "content": "content"}
        return [{name: row.get(field) for name, field in names.items()} for row in rows]

    def search(self, query: str, top: int, category: str | None) -> list[dict[str, Any]]:
        """Return the best passages for a query, in the format that `converters.cpr --from-search` reads."""
        fields = ("sourcefile", "sourcepage", "category", "content")
        return [
            {"score": row.get("@search.rerankerScore") or row.get("@search.score")}
            | {field: row.get(field) for field in fields}
            for row in self._request({"search": query, "top": top}, category)["value"]
        ]

    def test(self) -> list[tuple[str, bool, str]]:
        """Run the checks of the index; return `(name, whether it passed, observed value)` for each check."""
        documents = self.documents(None)
        unnamed = sum(row["passages"] for row in documents if not row["document"])
        return [
            ("documents are there", bool(documents), f"{len(documents)} documents"),
            ("passages name their file", not unnamed, f"{unnamed} without sourcefile"),
        ]

    def _read_rows(self, fields: str, category: str | None) -> Iterator[dict[str, Any]]:
        """Yield the rows of the index, or of one category; raise an error if Azure cannot list so many rows."""
        start, total = 0, 1
        while start < total:
            body = {"search": "*", "select": fields, "top": _PAGE, "skip": start, "count": True}
            reply = self._request(body, category)
            total = int(reply.get("@odata.count") or 0)
            if total > _FARTHEST:
                raise ServiceError(
                    f"{self._url}: the index has {total} rows, but Azure lists only {_FARTHEST}; "
                    "list one category with --category"
                )
            if not reply["value"]:
                break
            yield from reply["value"]
            start += len(reply["value"])

    def _request(self, body: dict[str, Any], category: str | None) -> dict[str, Any]:
        if category is not None:
            quoted = category.replace("'", "''")
            body = {**body, "filter": f"category eq '{quoted}'"}

        def post() -> bytes:
            with self._client.send("POST", self._url, body, deadline=Deadline(_SECONDS)) as response:
                response.check()
                return response.read()

        try:
            reply = json.loads(self._retries(post))
        except HttpError as error:
            raise ServiceError(f"{self._url}: {error}; check the index's name and {KEY}") from None
        except ValueError:
            reply = None
        rows = reply.get("value") if isinstance(reply, dict) else None
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ServiceError(f"{self._url}: the reply has no list 'value'; is this an index of Azure AI Search?")
        return dict(reply)
