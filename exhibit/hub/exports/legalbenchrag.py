"""The LegalBench-RAG format: tests with character spans, and the texts to which the spans refer."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from exhibit.hub.exports import Cut, Export, write_json
from exhibit.schemas.errors import BundleError
from exhibit.schemas.layout import fit_name
from exhibit.schemas.models import Gold


def write(export: Export, folder: Path) -> None:
    """Write a LegalBench-RAG file for each group of questions in the bundle, and the documents' texts."""
    paths = _choose_paths(export)
    texts = dict(export.documents())
    for filename, text in texts.items():
        target = folder / "corpus" / paths[filename]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
        if "\r" in text:
            note = "has carriage returns: read it without converting line ends, or the spans are shifted"
            export.noted[note].append(paths[filename])
    benchmarks: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for question in export.bundle.questions:
        if question.is_impossible:
            export.left_out["impossible question"].append(str(question.id))
            continue
        cuts = export.cut_gold(question, texts)
        if not cuts:
            export.left_out["question without a located passage"].append(str(question.id))
            continue
        merged = merge_cuts(cuts, texts)
        if len(merged) < len(cuts):
            export.noted["snippets of a test at most one character apart were merged"].append(str(question.id))
        snippets = [{"file_path": paths[c.filename], "span": [c.start, c.end], "answer": c.text} for c in merged]
        group = _group(export, export.gold[question.id][0])
        benchmarks[group].append({"query": question.question, "snippets": snippets})
    (folder / "benchmarks").mkdir()
    for name, tests in benchmarks.items():
        write_json(folder / "benchmarks" / f"{name}.json", {"tests": tests})


def merge_cuts(cuts: Iterable[Cut], texts: Mapping[str, str]) -> list[Cut]:
    """Merge the pieces of gold that are at most one character apart, as the benchmark's `sort_and_merge_spans` does."""
    merged: list[tuple[int, Cut]] = []
    for position, cut in sorted(enumerate(dict.fromkeys(cuts)), key=lambda item: item[1]):
        first, before = merged[-1] if merged else (0, None)
        if before is None or before.filename != cut.filename or cut.start > before.end + 1:
            merged.append((position, cut))
            continue
        end = max(before.end, cut.end)
        text = texts[cut.filename][before.start : end]
        merged[-1] = (min(position, first), Cut(cut.filename, before.start, end, text))
    return [cut for _, cut in sorted(merged, key=lambda item: item[0])]


def _group(export: Export, line: Gold) -> str:
    """Return the name of the benchmark that a gold line belongs to."""
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
    if len(set(paths.values())) < len(paths):
        twice = next(path for path in paths.values() if list(paths.values()).count(path) > 1)
        raise BundleError(f"two documents would have the path corpus/{twice}; rename one of them")
    return paths
