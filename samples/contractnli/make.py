"""Build contract-nli, six made-up agreements in the format of ContractNLI's release, from contracts/.

Run `python -m samples.contractnli.make` from the root of the repository. A source file has three parts,
separated by `---`. The first has `name: value` lines. The second is the text, in which each line is a span,
and `¦` ends a span within a line. The third has the annotations:

    nda-N: choice | first words of a span | …

After these words, ` #2` means the second span that begins with them; `blank` means a span of white space.
The files in raw/ are written by hand, except for the PDF, which is printed here.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

from exhibit.converters.contractnli import QUESTIONS, SPLITS
from exhibit.converters.pages.chromium import Printer

_HERE = Path(__file__).parent
_OUT = _HERE / "contract-nli"
_PRINTED = "Marlowe%20Quay%20Mutual%20NDA.pdf"
_CSS = "@page { size: A5 } body { font: 10pt/1.4 'Liberation Sans', Arial, sans-serif } p { margin: 0 0 .7em }"
_FOOTER = (
    "<div style='font-size: 7px; width: 100%; text-align: center'>"
    "Marlowe Quay Robotics / Tern &amp; Gable, page <span class='pageNumber'></span></div>"
)
_SPAN = re.compile(r"[^¦\n]+")


def main() -> None:
    """Write the three JSON files and print the PDF."""
    sources = [_read(path) for path in sorted((_HERE / "contracts").glob("*.txt"))]
    labels = {key: {"short_description": key, "hypothesis": f"Stands for {key} of the release."} for key in QUESTIONS}
    for split in SPLITS:
        documents = [document for chosen, document in sources if chosen == split]
        text = json.dumps({"documents": documents, "labels": labels}, ensure_ascii=False, indent=1)
        (_OUT / f"{split}.json").write_text(text + "\n", encoding="utf-8")
    printed = next(document for _, document in sources if document["file_name"] == _PRINTED)
    with Printer() as printer:
        printer.print_html(_page(printed["text"]), _OUT / "raw" / _PRINTED, footer=_FOOTER)


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    head, body, notes = path.read_text(encoding="utf-8").split("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    spans, marks = [], 0
    for match in _SPAN.finditer(body):
        # as in the release, a span may include the space before it and the space after it
        start, end = match.start() - marks, match.end() - marks
        marks += body[match.end() : match.end() + 1] == "¦"
        spans.append([start, end])
    text = body.replace("¦", "")
    document = {
        "id": int(path.name[:2]),
        "file_name": fields["file_name"],
        "text": text,
        "spans": spans,
        "annotation_sets": [{"annotations": _annotations(text, spans, notes)}],
        "document_type": fields["document_type"],
        "url": fields["url"],
    }
    return fields["split"], document


def _annotations(text: str, spans: list[list[int]], notes: str) -> dict[str, Any]:
    words = [text[start:end].strip().lstrip("\uf0b7 ") for start, end in spans]
    annotations: dict[str, Any] = {key: {"choice": "NotMentioned", "spans": []} for key in QUESTIONS}
    for line in notes.splitlines():
        head, *evidence = line.split(" | ")
        key, choice = head.split(": ")
        annotations[key] = {"choice": choice, "spans": [_place(words, begin) for begin in evidence]}
    return annotations


def _place(words: list[str], begin: str) -> int:
    begin, second, _ = begin.partition(" #2")
    places = [index for index, span in enumerate(words) if (span.startswith(begin) if begin != "blank" else not span)]
    return places[1 if second else 0]


def _page(text: str) -> str:
    """Return the HTML of the official PDF: it has curly quotes, and a first line that the source's text lacks."""
    curly = re.sub(r'"([^"\n]*)"', r"“\1”", text)
    lines = ["Form LGL-7, rev. 3", *curly.split("\n")]
    return f"<meta charset='utf-8'><style>{_CSS}</style>" + "".join(f"<p>{html.escape(line)}</p>" for line in lines)


if __name__ == "__main__":
    main()
