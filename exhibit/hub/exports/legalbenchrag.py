"""The LegalBench-RAG format: tests with character spans, and the texts to which the spans refer."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from exhibit.hub.exports import Cut, Export, Words
from exhibit.schemas.errors import BundleError
from exhibit.schemas.layout import fit_name
from exhibit.schemas.models import Gold

_BRIDGED = 1
"""Snippets with at most this many characters between them are merged, as the benchmark's `sort_and_merge_spans`
does.
"""


def write(export: Export, folder: Path) -> None:
    """Write a LegalBench-RAG file for each group of questions in the bundle, and the documents' texts.

    Each span of a gold passage becomes a snippet. LegalBench-RAG refuses a test whose snippets overlap or
    touch, so snippets of a test that are at most one character apart are merged.
    """
    gold = export.gold()
    paths = _choose_paths(export)
    words: Words = {}
    ends: dict[str, set[int]] = defaultdict(set)
    for line in export.bundle.gold:
        ends[line.filename or ""].update(end for _, end in line.spans)
    after: dict[tuple[str, int], str] = {}
    for filename, text in export.documents(words):
        after |= {(filename, end): text[end : end + _BRIDGED] for end in ends[filename]}
        target = folder / "corpus" / paths[filename]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
        if "\r" in text:
            export.note(
                "has carriage returns: read it without converting line ends, or the spans are shifted", paths[filename]
            )
    benchmarks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for question in export.bundle.questions:
        if question.is_impossible:
            export.leave_out("impossible question", question.id)
            continue
        cuts = export.cut_gold(question, gold[question.id], words)
        if not cuts:
            export.leave_out("question without a located passage", question.id)
            continue
        apart = merge_cuts(cuts, after)
        if len(apart) < len(cuts):
            export.note("snippets of a test at most one character apart were merged", question.id)
        snippets = [{"file_path": paths[c.filename], "span": [c.start, c.end], "answer": c.text} for c in apart]
        benchmarks[_group(export, gold[question.id][0])].append({"query": question.question, "snippets": snippets})
    (folder / "benchmarks").mkdir()
    for name, tests in benchmarks.items():
        data = json.dumps({"tests": tests}, ensure_ascii=False, indent=1)
        (folder / "benchmarks" / f"{name}.json").write_text(data + "\n", encoding="utf-8", newline="\n")


def merge_cuts(cuts: Iterable[Cut], after: Mapping[tuple[str, int], str]) -> list[Cut]:
    """Return the cuts (located pieces of gold); cuts at most one character apart in a document are merged.

    LegalBench-RAG merges snippets by the same rule. A merged cut takes the first list position of its parts.
    `after` maps `(filename, end of a cut)` to the character after that cut, which fills a gap of one character.
    """
    order = list(dict.fromkeys(cuts))
    apart: list[tuple[int, Cut]] = []
    for place, cut in sorted(enumerate(order), key=lambda one: one[1]):
        before = apart[-1][1] if apart else None
        if before is None or before.filename != cut.filename or cut.start > before.end + _BRIDGED:
            apart.append((place, cut))
            continue
        gap = after[cut.filename, before.end] if cut.start > before.end else ""
        words = before.text + gap + cut.text[max(0, before.end - cut.start) :] if cut.end > before.end else before.text
        one = Cut(cut.filename, before.start, max(before.end, cut.end), words)
        apart[-1] = (min(place, apart[-1][0]), one)
    return [cut for _, cut in sorted(apart, key=lambda one: one[0])]


def _group(export: Export, line: Gold) -> str:
    """Return the name of the benchmark that a gold line belongs to.

    It is the value of the bundle's group label; without such a label, it is the bundle's name.
    """
    info = export.bundle.info
    label = line.labels.get(info.groups) if info and info.groups else None
    return str(label or export.name).replace("/", "_")


def _choose_paths(export: Export) -> dict[str, str]:
    """Return each document's path below corpus/: in the folder of the first benchmark that uses the document."""
    homes: dict[str, str] = {}
    for line in export.bundle.gold:
        if line.filename is not None:
            homes.setdefault(line.filename, _group(export, line))
    paths: dict[str, str] = {}
    for filename in sorted(export.bundle.files):
        name = filename if filename.lower().endswith(".txt") else fit_name(filename, ".txt")
        paths[filename] = f"{homes.get(filename, export.name)}/{name}"
        if len(name.encode("utf-8", "surrogatepass")) > 255:
            raise BundleError(f"{filename}: the name with .txt is longer than 255 bytes; rename the document")
    if len(set(paths.values())) < len(paths):
        twice = next(path for path in paths.values() if list(paths.values()).count(path) > 1)
        raise BundleError(f"two documents would have the path corpus/{twice}; rename one of them")
    return paths
