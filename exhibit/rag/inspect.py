"""Inspects an index: `exhibit index --inspect INDEX list|categories|sections|chunks|search|test|export`.

An index of Azure AI Search is read through its REST interface. Its rows have the fields of Azure's search-openai-demo:
`sourcefile`, `sourcepage`, `category` and `content`.

exhibit index --inspect index search --query disclosure --category "Commercial Court"
exhibit index --inspect index export --query "Part 36 offers" --out part36.json
AZURE_SEARCH_KEY=… exhibit index --inspect https://NAME.search.windows.net/indexes/INDEX categories
exhibit convert cpr --from-search part36.json --ground-truth-out questions.jsonl
"""

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from exhibit.law.names import normalise_name
from exhibit.rag.config import ASKED, add_setting_flags, choose_given_settings, describe_settings
from exhibit.rag.index import Entry, open_index
from exhibit.rag.passages import make_hits
from exhibit.rag.pipeline import Pipeline
from exhibit.rag.retrieve import make_chunk_passages
from exhibit.runtime.command import add_json, align_rows, build_parser, guarded, print_results
from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.storage.http import Deadline, HttpClient, HttpError, Retries, Secrets

TEST_QUESTIONS = ("Which law governs?", "How can it be terminated?", "What is the time limit?", "Who are the parties?")
"""Queries that almost every legal document answers; an index that finds nothing for them is broken."""
AZURE_KEY = "AZURE_SEARCH_KEY"
_AZURE_VERSION = "2024-07-01"  # the version of the REST interface, as in evaluation/targets/azure.toml
_AZURE_PAGE = 1000  # most rows of a reply
_AZURE_SECONDS = 60.0  # timeout of a request
_MAX_CELL_CHARS = 60
_ONLY_IN_JSON = {"span", "parties", "date", "characters"}  # fields that a table leaves out

_KIND = re.compile(
    r"\b(?:(?P<preamble>preamble|recitals|whereas)|(?P<definitions>definitions?|interpretation)"
    r"|(?P<obligations>obligations?)|(?P<exclusions>exclusions?|exceptions?)"
    r"|(?P<term>term|termination|duration)|(?P<miscellaneous>miscellaneous|general))\b",
    re.IGNORECASE,
)

Row = dict[str, Any]
Check = tuple[str, bool, str]  # the name of a check, whether it passed, and the observed value


def kind_of(path: str) -> str:
    match = _KIND.search(path.rpartition(" > ")[2])
    return (match.lastgroup if match else None) or ""


class Inspector:
    def __init__(self, folder: Path, overrides: Mapping[str, Any]) -> None:
        self.pipeline = Pipeline(open_index(folder, overrides=overrides).config).open(folder)
        self.index = self.pipeline.opened
        self.category = {entry.filename: _category_of(entry) for entry in self.index.documents}

    def list_entries(self, category: str | None) -> list[Entry]:
        """Return all documents, or those of a category; letter case and punctuation of `category` are ignored."""
        wanted = None if category is None else normalise_name(category)
        return [e for e in self.index.documents if wanted in (None, normalise_name(self.category[e.filename]))]

    def list_documents(self, category: str | None) -> list[Row]:
        return [
            {
                "document": entry.filename,
                "category": self.category[entry.filename],
                "pages": entry.pages,
                "sections": len(entry.sections),
                "characters": entry.characters,
                "title": entry.profile.title,
                "parties": list(entry.profile.parties),
                "date": entry.profile.date,
                "summary": entry.summary,
            }
            for entry in self.list_entries(category)
        ]

    def list_sections(self, category: str | None) -> list[Row]:
        return [
            {"document": entry.filename, "section": path, "kind": kind_of(path), "span": [start, end]}
            for entry in self.list_entries(category)
            for path, start, end in entry.sections
        ]

    def list_chunks(self, category: str | None) -> list[Row]:
        keys = self.index.chunk_keys(entry.number for entry in self.list_entries(category))
        hits = make_hits(self.index, make_chunk_passages(self.index, self.index.find_rows(keys), [0.0] * len(keys)))
        return [
            {"document": hit.document, "section": hit.section, "page": hit.page, "span": hit.span, "content": hit.text}
            for hit in hits
        ]

    def search(self, query: str, top: int, category: str | None) -> list[Row]:
        documents = None if category is None else [entry.filename for entry in self.list_entries(category)]
        [retrieved] = self.pipeline.search([query], documents=documents)
        return [
            {
                "score": round(hit.score, 4),
                "sourcefile": hit.document,
                "page": hit.page,
                "sourcepage": hit.section or hit.document,
                "category": self.category[hit.document],
                "span": list(hit.span),
                "content": hit.text,
            }
            for hit in retrieved.ranked[:top]
        ]

    def run_checks(self) -> Iterator[Check]:
        entries, chunks = self.index.documents, len(self.index)
        empty = sum(not entry.characters for entry in entries)
        yield "documents have text", not empty, f"{len(entries)} documents, {empty} empty"
        yield "chunks have vectors", chunks == len(self.index.store("chunk")), f"{chunks} chunks"
        for question in TEST_QUESTIONS:
            best = self.search(question, 1, None)
            seen = f"{best[0]['score']:.3f} {best[0]['sourcefile']}" if best else "nothing"
            yield f"search: {question}", bool(best), seen


def _category_of(entry: Entry) -> str:
    kind = entry.profile.kind or "unknown"
    court = re.match(r"(?:The )?(.{1,80}?) Guide\b", entry.profile.title) if kind == "court guide" else None
    return court[1] if court else kind


class AzureIndex:
    def __init__(self, address: str) -> None:
        key = os.environ.get(AZURE_KEY, "").strip()
        if urlsplit(address).path.strip("/").split("/")[-2:-1] != ["indexes"] or not key:
            raise ToolkitError(
                f"{address}: give the address https://NAME.search.windows.net/indexes/INDEX, and a query key of the "
                f"search service in the environment variable {AZURE_KEY}"
            )
        self._url = f"{address.rstrip('/')}/docs/search?api-version={_AZURE_VERSION}"
        self._client = HttpClient({"api-key": key}, secrets=Secrets([key]))
        self._retries = Retries(3, 1.0)

    def list_documents(self, category: str | None) -> list[Row]:
        counts = Counter(self._read_rows(category, "sourcefile", "category"))
        return [{"document": f, "category": c, "passages": n} for (f, c), n in sorted(counts.items())]

    def list_sections(self, category: str | None) -> list[Row]:
        pairs = dict.fromkeys(self._read_rows(category, "sourcefile", "sourcepage"))
        return [{"document": document, "section": section} for document, section in pairs]

    def list_chunks(self, category: str | None) -> list[Row]:
        rows = self._read_rows(category, "sourcefile", "sourcepage", "content")
        return [dict(zip(("document", "section", "content"), row, strict=True)) for row in rows]

    def search(self, query: str, top: int, category: str | None) -> list[Row]:
        """Return the best passages for a query, in the format that `converters.cpr --from-search` reads."""
        return [
            {"score": row.get("@search.rerankerScore") or row.get("@search.score")}
            | {field: row.get(field) for field in ("sourcefile", "sourcepage", "category", "content")}
            for row in self._request({"search": query, "top": top}, category)["value"]
        ]

    def run_checks(self) -> Iterator[Check]:
        documents = self.list_documents(None)
        unnamed = sum(row["passages"] for row in documents if not row["document"])
        yield "the index has documents", bool(documents), f"{len(documents)} documents"
        yield "passages name their file", not unnamed, f"{unnamed} without sourcefile"

    def _read_rows(self, category: str | None, *fields: str) -> Iterator[tuple[str, ...]]:
        """Yield these fields of all rows, or of the rows in a category; Azure lists at most about 100,000 rows."""
        start, total = 0, 1
        while start < total:
            body = {"search": "*", "select": ",".join(fields), "top": _AZURE_PAGE, "skip": start, "count": True}
            reply = self._request(body, category)
            total = int(reply.get("@odata.count") or 0)
            if not reply["value"]:
                break
            yield from (tuple(str(row.get(field) or "") for field in fields) for row in reply["value"])
            start += len(reply["value"])

    def _request(self, body: Row, category: str | None) -> Row:
        if category is not None:
            quoted = category.replace("'", "''")
            body = {**body, "filter": f"category eq '{quoted}'"}

        def post() -> bytes:
            with self._client.send("POST", self._url, body, deadline=Deadline(_AZURE_SECONDS)) as response:
                response.check()
                return response.read()

        try:
            reply = json.loads(self._retries(post))
        except HttpError as error:
            raise ServiceError(f"{self._url}: {error}; check the index's name and {AZURE_KEY}") from None
        except ValueError:
            reply = None
        if not isinstance(reply, dict) or not isinstance(reply.get("value"), list):
            raise ServiceError(f"{self._url}: the reply has no list 'value'; is this an index of Azure AI Search?")
        return reply


def _format_table(rows: Sequence[Row]) -> str:
    columns = [column for column in (rows[0] if rows else ()) if column not in _ONLY_IN_JSON]
    texts = [["" if row[column] is None else " ".join(str(row[column]).split()) for column in columns] for row in rows]
    cells = [
        [text if len(text) <= _MAX_CELL_CHARS else text[: _MAX_CELL_CHARS - 1] + "…" for text in row] for row in texts
    ]
    rule = ["-" * max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    return "\n".join(align_rows([columns, rule, *cells])) if rows else "nothing"


def _make_parser() -> argparse.ArgumentParser:
    parser = build_parser("exhibit index --inspect", __doc__)
    parser.add_argument("index", help="an index's folder, or https://NAME.search.windows.net/indexes/INDEX")
    parser.add_argument("action", choices=["list", "categories", "sections", "chunks", "search", "test", "export"])
    parser.add_argument("--query", help="the words to search for (search, export)")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="the number of passages (default: 5)")
    parser.add_argument("--category", help="only documents of this category, such as 'Commercial Court'")
    add_json(parser)
    parser.add_argument("--out", type=Path, help="the file that export writes (default: stdout)")
    group = parser.add_argument_group("settings, which override those of the index")
    add_setting_flags(group, but=frozenset(describe_settings()) - frozenset(ASKED))
    return parser


@guarded()
def main(argv: list[str] | None = None) -> int:
    parser = _make_parser()
    options = parser.parse_args(argv)
    action, category = options.action, options.category
    if action in {"search", "export"} and not (options.query or "").strip():
        parser.error(f"{action} needs --query")
    index: Inspector | AzureIndex
    if options.index.startswith(("https://", "http://")):
        index = AzureIndex(options.index)
    else:
        index = Inspector(Path(options.index), choose_given_settings(vars(options)))
    if action == "test":
        checks = list(index.run_checks())
        print("\n".join(f"{'ok  ' if holds else 'FAIL'}  {name}: {seen}" for name, holds, seen in checks))
        return 0 if all(holds for _, holds, _ in checks) else 1
    if action in {"search", "export"}:
        rows = index.search(options.query, options.top, category)
    elif action == "categories":
        counts = Counter(row["category"] for row in index.list_documents(category))
        rows = [{"category": name, "documents": count} for name, count in sorted(counts.items())]
    else:
        lists = {"list": index.list_documents, "sections": index.list_sections, "chunks": index.list_chunks}
        rows = lists[action](category)
    if action != "export":
        print_results(rows, _format_table(rows), as_json=options.json)
        return 0
    text = json.dumps({"query": options.query, "results": rows}, ensure_ascii=False, indent=1)
    if options.out is None:
        print(text)
    else:
        options.out.write_text(f"{text}\n", encoding="utf-8")
        print(f"{options.out}: {len(rows)} passages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
