"""The command that inspects an index: `exhibit inspect INDEX list|categories|sections|chunks|search|test|export`."""

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from exhibit.law.names import normalise_name
from exhibit.rag.azure_index import AzureIndex, is_address
from exhibit.rag.config import ASKED, add_setting_flags, choose_given_settings, describe_settings
from exhibit.rag.index import Entry
from exhibit.rag.pipeline import Pipeline
from exhibit.rag.saved_index import open_index
from exhibit.runtime.command import Parser, add_json, align_rows, guarded, rename_commands
from exhibit.storage.bundle import open_bundle

TEST_QUESTIONS = (
    "Which law governs?",
    "How can it be terminated?",
    "What is the time limit?",
    "Who are the parties?",
)
"""Queries that almost every legal document answers: an index that finds nothing for them is broken."""

_KIND = re.compile(
    r"\b(?:(?P<preamble>preamble|recitals|whereas)|(?P<definitions>definitions?|interpretation)"
    r"|(?P<obligations>obligations?)|(?P<exclusions>exclusions?|exceptions?)"
    r"|(?P<term>term|termination|duration)|(?P<miscellaneous>miscellaneous|general))\b",
    re.IGNORECASE,
)


def category_of(entry: Entry) -> str:
    """Return a document's category: the court of a court guide, else the kind of document."""
    kind = entry.profile.kind or "unknown"
    court = re.match(r"(?:The )?(.{1,80}?) Guide\b", entry.profile.title) if kind == "court guide" else None
    return court[1] if court else kind


def kind_of(path: str) -> str:
    """Return the kind of a section by its title, such as `definitions` or `term`; "" if the title names no kind.

    The title is the last heading of `path`. The kinds are the usual sections of a confidentiality agreement.
    """
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
    """Inspects one index; each method returns the rows of a table."""

    def __init__(self, folder: Path, own: Mapping[str, Any] | None = None, bundle: Path | None = None) -> None:
        self.index = open_index(folder, own=own)
        self.pipeline = Pipeline(self.index.config).open(folder)
        own_labels = read_categories(bundle) if bundle else {}
        self.category = {e.filename: own_labels.get(e.filename, category_of(e)) for e in self.index.documents}

    def list_entries(self, category: str | None) -> list[Entry]:
        """Return all documents, or those of one category; letter case and punctuation of `category` are ignored."""
        every = self.index.documents
        return [
            e
            for e in every
            if category is None or normalise_name(self.category[e.filename]) == normalise_name(category)
        ]

    def documents(self, category: str | None) -> list[dict[str, Any]]:
        """Return a dict for each document, with data from its profile and its size.

        The keys are `document` (the file name), `title`, `category`, `parties`, `date`, `pages`, `characters`,
        `sections` (a number) and `summary`.
        """
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
        """Return the sections of all documents, or of the documents of one category.

        Each section is a dictionary: `document`, `section` (the path of headings), `kind` (such as `definitions`,
        recognised by the heading; empty if unknown) and `span`.
        """
        return [
            {"document": entry.filename, "section": path, "kind": kind_of(path), "span": [start, end]}
            for entry in self.list_entries(category)
            for path, start, end in entry.sections
        ]

    def chunks(self, category: str | None) -> list[dict[str, Any]]:
        """Return the chunks of all documents, or of one category, with their text, in order."""
        keys = self.index.chunk_keys(entry.number for entry in self.list_entries(category))
        return [
            {
                "document": chunk.document,
                "section": chunk.section,
                "page": chunk.page,
                "span": list(chunk.span),
                "content": self.index.text(chunk),
            }
            for chunk in map(self.index.chunk, keys.tolist())
        ]

    def categories(self, _: str | None = None) -> list[dict[str, Any]]:
        """Return a row for each category: its name (`category`) and its number of documents (`documents`)."""
        counts = Counter(self.category.values())
        return [{"category": name, "documents": count} for name, count in sorted(counts.items())]

    def search(self, query: str, top: int, category: str | None) -> list[dict[str, Any]]:
        """Return the best passages for a query, from all documents or from one category.

        The rows have the format that `converters.cpr --from-search` reads.
        """
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
        """Run the checks of an index; return, for each check, its name, whether it passed, and the observed value."""
        empty = [entry.filename for entry in self.index.documents if not entry.characters]
        checks = [
            ("documents have text", not empty, f"{len(self.index.documents)} documents, {len(empty)} empty"),
            ("chunks have vectors", len(self.index) == len(self.index.store("chunk")), f"{len(self.index)} chunks"),
        ]
        for question in TEST_QUESTIONS:
            results = self.search(question, 1, None)
            seen = f"{results[0]['score']:.3f} {results[0]['sourcefile']}" if results else "nothing"
            checks.append((f"search: {question}", bool(results), seen))
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
    text = " ".join(
        str(", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else value).split()
    )
    return text if len(text) <= most else text[: most - 1] + "…"


def _make_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=rename_commands("exhibit inspect"),
        description=rename_commands(__doc__ or ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=rename_commands(
            "examples:\n"
            "  exhibit inspect index list --category contract\n"
            '  exhibit inspect index search --query disclosure --category "Commercial Court"\n'
            '  exhibit inspect index search --query "Part 36 offers" --top 5\n'
            '  exhibit inspect index export --query "Part 36 offers" --out part36.json\n'
            "  AZURE_SEARCH_KEY=… exhibit inspect https://NAME.search.windows.net/indexes/INDEX categories\n"
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
    """Run a subcommand of `exhibit inspect`; return 1 if a check of the subcommand `test` fails, else 0."""
    parser = _make_parser()
    options = parser.parse_args(argv)
    if options.action in {"search", "export"} and not (options.query or "").strip():
        parser.error(f"{options.action} needs --query")
    inspector: Inspector | AzureIndex
    if is_address(options.index):
        inspector = AzureIndex(options.index)
        if options.action == "sections":
            parser.error("sections: an index of Azure AI Search has no sections; use chunks instead")
    else:
        inspector = Inspector(Path(options.index), choose_given_settings(vars(options)), options.bundle)
    if options.action == "test":
        checks = inspector.test()
        print("\n".join(f"{'ok  ' if holds else 'FAIL'}  {name}: {seen}" for name, holds, seen in checks))
        return 0 if all(holds for _, holds, _ in checks) else 1
    print(_show(inspector, options), end="")
    return 0


def _show(inspector: "Inspector | AzureIndex", options: argparse.Namespace) -> str:
    action = {"list": "documents", "export": "search"}.get(options.action, options.action)
    asked = (options.query, options.top) if action == "search" else ()
    rows: list[dict[str, Any]] = getattr(inspector, action)(*asked, options.category)
    if options.action == "export":
        text = json.dumps({"query": options.query, "results": rows}, ensure_ascii=False, indent=1) + "\n"
        if options.out is None:
            return text
        options.out.write_text(text, encoding="utf-8")
        return f"{options.out}: {len(rows)} passages\n"
    shown = (
        json.dumps(rows, ensure_ascii=False, indent=1)
        if options.json
        else _format_table(rows, _COLUMNS[action].split())
    )
    return f"{shown}\n"


if __name__ == "__main__":
    sys.exit(main())
