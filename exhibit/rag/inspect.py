"""Inspects an index: `exhibit index --inspect INDEX list|categories|sections|chunks|search|test|export`."""

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from exhibit.law.names import normalise_name
from exhibit.rag.azure_index import AzureIndex, count_categories
from exhibit.rag.config import ASKED, add_setting_flags, choose_given_settings, describe_settings
from exhibit.rag.index import Entry, open_index
from exhibit.rag.pipeline import Pipeline
from exhibit.runtime.command import Parser, add_json, align_rows, guarded, rename_commands
from exhibit.storage.bundle import open_bundle

TEST_QUESTIONS = ("Which law governs?", "How can it be terminated?", "What is the time limit?", "Who are the parties?")
"""Queries that almost every legal document answers: an index that finds nothing for them is broken."""

_KIND = re.compile(
    r"\b(?:(?P<preamble>preamble|recitals|whereas)|(?P<definitions>definitions?|interpretation)"
    r"|(?P<obligations>obligations?)|(?P<exclusions>exclusions?|exceptions?)"
    r"|(?P<term>term|termination|duration)|(?P<miscellaneous>miscellaneous|general))\b",
    re.IGNORECASE,
)


def category_of(entry: Entry) -> str:
    kind = entry.profile.kind or "unknown"
    court = re.match(r"(?:The )?(.{1,80}?) Guide\b", entry.profile.title) if kind == "court guide" else None
    return court[1] if court else kind


def kind_of(path: str) -> str:
    """Return the kind of a section by its title, such as `definitions` or `term`; "" if the title names no kind."""
    match = _KIND.search(path.rpartition(" > ")[2])
    return (match.lastgroup if match else None) or ""


def read_categories(bundle: Path) -> dict[str, str]:
    """Return each file's category: the most frequent one in the labels of the bundle's questions about that file."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in open_bundle(bundle).gold:
        if line.filename and line.labels.get("category"):
            counts[line.filename][str(line.labels["category"])] += 1
    return {name: count.most_common(1)[0][0] for name, count in counts.items()}


class Inspector:
    def __init__(self, folder: Path, own: Mapping[str, Any], bundle: Path | None) -> None:
        self.index = open_index(folder, own=own)
        self.pipeline = Pipeline(self.index.config).open(folder)
        labels = read_categories(bundle) if bundle else {}
        self.category = {e.filename: labels.get(e.filename, category_of(e)) for e in self.index.documents}

    def list_entries(self, category: str | None) -> list[Entry]:
        """Return the documents; letter case and punctuation of `category` are ignored."""
        wanted = None if category is None else normalise_name(category)
        return [e for e in self.index.documents if wanted in (None, normalise_name(self.category[e.filename]))]

    def documents(self, category: str | None) -> list[dict[str, Any]]:
        return [
            {
                "document": entry.filename,
                "title": entry.profile.title,
                "category": self.category[entry.filename],
                "parties": list(entry.profile.parties),
                "date": entry.profile.date,
                "pages": entry.pages,
                "characters": entry.characters,
                "sections": len(entry.sections),
                "summary": entry.summary,
            }
            for entry in self.list_entries(category)
        ]

    def sections(self, category: str | None) -> list[dict[str, Any]]:
        return [
            {"document": entry.filename, "section": path, "kind": kind_of(path), "span": [start, end]}
            for entry in self.list_entries(category)
            for path, start, end in entry.sections
        ]

    def chunks(self, category: str | None) -> list[dict[str, Any]]:
        keys = self.index.chunk_keys(entry.number for entry in self.list_entries(category))
        return [
            {
                "document": chunk.document,
                "section": chunk.section,
                "page": chunk.page,
                "span": list(chunk.span),
                "content": self.index.read_document_text(chunk.document)[slice(*chunk.span)],
            }
            for chunk in map(self.index.chunk, keys.tolist())
        ]

    def categories(self, _: str | None = None) -> list[dict[str, Any]]:
        return count_categories(self.category.values())

    def search(self, query: str, top: int, category: str | None) -> list[dict[str, Any]]:
        documents = None if category is None else [entry.filename for entry in self.list_entries(category)]
        [retrieved] = self.pipeline.search([query], documents=documents)
        return [
            {
                "sourcefile": hit.chunk.document,
                "sourcepage": hit.chunk.section or hit.chunk.document,
                "page": hit.chunk.page,
                "category": self.category[hit.chunk.document],
                "score": round(hit.score, 4),
                "span": list(hit.chunk.span),
                "content": hit.text,
            }
            for hit in retrieved.ranked[:top]
        ]

    def test(self) -> list[tuple[str, bool, str]]:
        """Return, for each check of the index, its name, whether it passed, and the observed value."""
        entries, chunks = self.index.documents, len(self.index)
        empty = sum(not entry.characters for entry in entries)
        checks = [
            ("documents have text", not empty, f"{len(entries)} documents, {empty} empty"),
            ("chunks have vectors", chunks == len(self.index.store("chunk")), f"{chunks} chunks"),
        ]
        for question in TEST_QUESTIONS:
            best = self.search(question, 1, None)
            seen = f"{best[0]['score']:.3f} {best[0]['sourcefile']}" if best else "nothing"
            checks.append((f"search: {question}", bool(best), seen))
        return checks


_COLUMNS = {
    "documents": "document category pages sections passages title summary",
    "categories": "category documents",
    "sections": "document section kind span",
    "chunks": "document section page content",
    "search": "score sourcefile page sourcepage content",
}
"""The columns of a table, by the method that returns its rows."""


def _format_table(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    columns = [column for column in columns if not rows or column in rows[0]]
    cells = [[_format_cell(row[column]) for column in columns] for row in rows]
    rule = ["-" * max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    return "\n".join(align_rows([columns, rule, *cells]))


def _format_cell(value: object, most: int = 60) -> str:
    words = ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)
    text = " ".join(words.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=rename_commands("exhibit index --inspect"),
        description=rename_commands(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=rename_commands(
            "examples:\n"
            '  exhibit index --inspect index search --query disclosure --category "Commercial Court"\n'
            '  exhibit index --inspect index export --query "Part 36 offers" --out part36.json\n'
            "  AZURE_SEARCH_KEY=… exhibit index --inspect https://NAME.search.windows.net/indexes/INDEX categories\n"
            "  python -m converters.cpr --from-search part36.json --ground-truth-out questions.jsonl"
        ),
    )
    parser.add_argument("index", help="an index's folder, or https://NAME.search.windows.net/indexes/INDEX")
    parser.add_argument("action", choices=["list", "categories", "sections", "chunks", "search", "test", "export"])
    parser.add_argument("--query", help="what to search for (search, export)")
    parser.add_argument("--top", type=int, default=5, metavar="N", help="how many passages (default 5)")
    parser.add_argument("--category", help="only documents of this category, such as 'Commercial Court'")
    parser.add_argument("--bundle", type=Path, help="take categories from the labels of this bundle's questions")
    add_json(parser)
    parser.add_argument("--out", type=Path, help="where export writes (default: stdout)")
    group = parser.add_argument_group("settings, which overrule those that the index was built with")
    add_setting_flags(group, but=frozenset(describe_settings()) - frozenset(ASKED))
    return parser


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Run a subcommand of `exhibit index --inspect`; return 1 if a check of the subcommand `test` fails, else 0."""
    parser = _make_parser()
    options = parser.parse_args(argv)
    if options.action in {"search", "export"} and not (options.query or "").strip():
        parser.error(f"{options.action} needs --query")
    inspector: Inspector | AzureIndex
    if options.index.startswith(("https://", "http://")):
        if options.action == "sections":
            parser.error("sections: an index of Azure AI Search has no sections; use chunks instead")
        inspector = AzureIndex(options.index)
    else:
        inspector = Inspector(Path(options.index), choose_given_settings(vars(options)), options.bundle)
    if options.action == "test":
        checks = inspector.test()
        print("\n".join(f"{'ok  ' if holds else 'FAIL'}  {name}: {seen}" for name, holds, seen in checks))
        return 0 if all(holds for _, holds, _ in checks) else 1
    method = {"list": "documents", "export": "search"}.get(options.action, options.action)
    query = (options.query, options.top) if method == "search" else ()
    rows: list[dict[str, Any]] = getattr(inspector, method)(*query, options.category)
    if options.action == "export":
        text = json.dumps({"query": options.query, "results": rows}, ensure_ascii=False, indent=1)
        if options.out is None:
            print(text)
        else:
            options.out.write_text(f"{text}\n", encoding="utf-8")
            print(f"{options.out}: {len(rows)} passages")
    elif options.json:
        print(json.dumps(rows, ensure_ascii=False, indent=1))
    else:
        print(_format_table(rows, _COLUMNS[method].split()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
