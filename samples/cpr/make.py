"""Build documents/, a made-up rulebook in the format of a search index's exports, from texts beside this file.

Run `python -m samples.cpr.make` from the root of the repository. In rulebook.txt a line `=== id |
sourcefile | sourcepage` begins a document, and a line `*** chunk: section` begins a new chunk of it. The
exports contain typical faults of exporters on purpose: see README.md.
"""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from exhibit.converters import Block
from exhibit.converters.pages.chromium import Printer
from exhibit.converters.pages.text_pdf import pdf_of

_HERE = Path(__file__).parent
_OUT = _HERE / "documents"
_GUIDE = "03.2_AT_Harbour_Chamber_Guide_v2.pdf"
_LONGEST_ID = 100
_CSS = "body { font: 11pt/1.5 'Liberation Sans', Arial, sans-serif } .new { break-before: page } h1 { font-size: 15pt }"


def _documents() -> Iterator[list[dict[str, object]]]:
    """Yield the records of each document: one, or one per chunk."""
    for part in (_HERE / "rulebook.txt").read_text(encoding="utf-8").split("=== ")[1:]:
        head, _, text = part.partition("\n")
        name, sourcefile, sourcepage = head.split(" | ")
        name = name[:_LONGEST_ID]
        chunks = re.split(r"^\*\*\* chunk: (.*)\n", text, flags=re.MULTILINE)
        sections, texts = ["", *chunks[1::2]], chunks[::2]
        records: list[dict[str, object]] = []
        for number, (section, words) in enumerate(zip(sections, texts, strict=True), 1):
            above = f"Document: {name}\n" + (f"Section: {section}\n" if section else "")
            above += f"Part {number} of {len(texts)}\n{'=' * 50}\n"
            records.append(
                {
                    "id": f"{name}_chunk_{number:03}" if len(texts) > 1 else name,
                    "content": (above if len(texts) > 1 else "") + words.strip(),
                    "category": "Tribunal Procedure Rules",
                    "sourcepage": sourcepage,
                    "sourcefile": sourcefile,
                    "storageUrl": f"https://rules.ardmoor.example/{sourcefile.lower().replace(' ', '-')}",
                    "embedding": [],
                    "parent_id": name,
                    "updated": "2031-04-01T00:00:00Z",
                }
            )
        yield records


def _write(name: str, data: object) -> None:
    (_OUT / name).write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", newline="\n")


def _exports() -> None:
    """Write one file per `sourcefile`, and one file with all records.

    If several documents have the same `sourcefile`, only the last one is written.
    """
    flattened: list[dict[str, object]] = []
    for records in _documents():
        chunks = {"chunks": [{key: r[key] for key in ("id", "content", "updated")} for r in records]}
        _write(f"{records[0]['sourcefile']}.json", records[0] | (chunks if len(records) > 1 else {}))
        flattened += reversed(records)  # exporters return chunks in any order
    _write("all_rules_flattened.json", flattened)


def _guide() -> str:
    blocks: list[str] = []
    for page in (_HERE / "guide.txt").read_text(encoding="utf-8").split("^^^\n"):
        lines = []
        for line in filter(None, page.splitlines()):
            marks, words = re.match(r"(#*) ?(.*)", line).groups()  # type: ignore[union-attr]
            tag = f"h{len(marks)}" if marks else "p"
            lines.append(f"<{tag}>{html.escape(words)}</{tag}>")
        blocks.append(f"<div class='{'new' if blocks else ''}'>{''.join(lines)}</div>")
    title = "The Harbour Chamber Guide (Second Edition)"
    return f"<!doctype html><title>{title}</title><style>{_CSS}</style>{''.join(blocks)}"


def main() -> None:
    """Delete documents/ and write it again."""
    shutil.rmtree(_OUT, ignore_errors=True)
    _OUT.mkdir()
    _exports()
    title, *paragraphs = (_HERE / "remote.txt").read_text(encoding="utf-8").strip().split("\n\n")
    blocks = [Block("h2" if words.startswith("#") else "p", words.lstrip("# ")) for words in paragraphs]
    (_OUT / "registry-note-3.pdf").write_bytes(pdf_of([Block("h1", title), *blocks], title=title))
    with Printer() as printer:
        printer.print_html(_guide(), _OUT / _GUIDE)
    print(f"{len(list(_OUT.iterdir()))} files in {_OUT}")


if __name__ == "__main__":
    main()
