"""OpenAI's vector stores: files that are uploaded, then put into a store, where they are split and embedded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from exhibit.evaluation.targets._ingestion import Held
from exhibit.evaluation.targets._shapes import items_at, search
from exhibit.storage.http import Deadline

_PAGE = 100
"""The largest page that lists have."""


class _Calls(Protocol):
    def fetch(self, path: str, body: Any = None, *, deadline: Deadline, method: str = "POST") -> Any: ...

    def upload(self, path: str, files: Any, data: Any = None, *, deadline: Deadline) -> Any: ...


class VectorStore:
    """The store of a name, or of an id."""

    def __init__(self, server: _Calls, name: str) -> None:
        self._server = server
        self._name = name
        self._id = name if name.startswith("vs_") else ""

    def find(self, deadline: Deadline) -> str | None:
        """Return the store's id, None where there is none of this name."""
        if not self._id:
            stores = self._pages("/v1/vector_stores", deadline)
            self._id = next((str(search("id", store)) for store in stores if search("name", store) == self._name), "")
        return self._id or None

    def _pages(self, path: str, deadline: Deadline) -> Iterator[Any]:
        after = ""
        while True:
            told = self._server.fetch(f"{path}?limit={_PAGE}{after}", deadline=deadline, method="GET")
            yield from items_at("data", told)
            last = search("last_id", told)
            if not search("has_more", told) or not last or f"&after={last}" == after:
                return
            after = f"&after={last}"

    def _files(self, deadline: Deadline) -> Iterator[tuple[str, Any]]:
        """Yield the files with their names, which the store has only where they were given to it."""
        for file in self._pages(f"/v1/vector_stores/{self._id}/files", deadline):
            name = search("attributes.filename", file)
            if not name:
                told = self._server.fetch(f"/v1/files/{search('id', file)}", deadline=deadline, method="GET")
                name = search("filename", told) or search("id", file)
            yield str(name), file

    def listed(self, deadline: Deadline) -> Mapping[str, Held] | None:
        """Return the store's files and how far they are."""
        if self.find(deadline) is None:
            return None
        held = {}
        for name, file in self._files(deadline):
            bad = search("status", file) in ("failed", "cancelled")
            why = str(search("last_error.message", file) or "the store could not read it") if bad else ""
            held[name] = Held(ready=search("status", file) == "completed", error=why)
        return held

    def create(self, deadline: Deadline) -> None:
        """Make the store."""
        self._id = str(search("id", self._server.fetch("/v1/vector_stores", {"name": self._name}, deadline=deadline)))

    def add(self, name: str, path: Path, deadline: Deadline) -> None:
        """Upload a file and put it into the store."""
        files = {"file": (name, path.read_bytes())}
        told = self._server.upload("/v1/files", files, {"purpose": "assistants"}, deadline=deadline)
        body = {"file_id": search("id", told), "attributes": {"filename": name[:512]}}
        self._server.fetch(f"/v1/vector_stores/{self._id}/files", body, deadline=deadline)

    def start(self, deadline: Deadline) -> None:
        """Do nothing: files are read as they come."""

    def delete(self, names: list[str], deadline: Deadline) -> None:
        """Delete the store and the files that were uploaded for it."""
        if self.find(deadline) is None:
            return
        for name, file in list(self._files(deadline)):
            if name in names:
                self._server.fetch(f"/v1/files/{search('id', file)}", deadline=deadline, method="DELETE")
        self._server.fetch(f"/v1/vector_stores/{self._id}", deadline=deadline, method="DELETE")
        self._id = ""
