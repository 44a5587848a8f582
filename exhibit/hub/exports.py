"""Exports a bundle to the formats of other tools.

examples:
  exhibit export datasets_out/cuad --to squad --out out/cuad-squad
  exhibit export datasets_out/cuad --to legalbenchrag --out out/cuad-lbr
"""

import csv
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from exhibit.evidence.read import read_within
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.runtime.plugins import load_plugin, points_of
from exhibit.schemas import __version__
from exhibit.schemas.bundle import CARD, CORPUS, GOLD, INFO, Question
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.layout import fit_name
from exhibit.schemas.models import IMPOSSIBLE_ANSWER, BundleInfo, DocumentEntry, Gold
from exhibit.storage.atomic import FolderKind, replace_folder
from exhibit.storage.bundle import BundleFolder, mirror_bundle, open_bundle, sha256_of
from exhibit.storage.locations import Location, parse_location

Cut = tuple[str, int, int]  # a located piece of a gold passage: its file, start and end


@dataclass(frozen=True)
class Export:
    """A bundle during its export to another format, with the items left out and the notes so far."""

    bundle: BundleFolder
    # the items that the format cannot express, by reason
    left_out: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    noted: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # the items of each remark

    @property
    def name(self) -> str:
        return self.bundle.info.name if self.bundle.info else self.bundle.root.resolve().name

    @cached_property
    def _entries(self) -> dict[str, DocumentEntry]:
        return {entry.filename: entry for entry in self.bundle.info.documents} if self.bundle.info else {}

    def title_of(self, filename: str) -> str:
        """Return a document's title, or its file name without the suffix."""
        entry = self._entries.get(filename)
        return (entry.title if entry else "") or Path(filename).stem

    def documents(self) -> Iterator[tuple[str, str]]:
        """Yield each document's name and the text to which its gold offsets refer, one at a time."""
        for filename, path in sorted(self.bundle.files.items()):
            # UTF-8 cannot encode a lone surrogate
            text = read_within(path).text.encode("utf-8", "replace").decode("utf-8")
            recorded = self._entries[filename].characters if filename in self._entries else len(text)
            if recorded != len(text):
                advice = "the documents have changed since the gold was located: convert the bundle again"
                raise BundleError(f"{path}: has {len(text)} characters, but bundle.json says {recorded}; {advice}")
            yield filename, text

    @cached_property
    def gold(self) -> dict[int | str, list[Gold]]:
        """The lines of gold.jsonl by question id; raise if there are questions but no lines."""
        if self.bundle.questions and not self.bundle.gold:
            path = self.bundle.root / GOLD
            raise BundleError(f"{path}: missing or empty; this format needs the locations of the gold")
        lines: dict[int | str, list[Gold]] = defaultdict(list)
        for line in self.bundle.gold:
            lines[line.id].append(line)
        return lines

    def cut_gold(self, question: Question, texts: Mapping[str, str]) -> list[Cut]:
        """Return the pieces of a question's gold in order; passages without a location are recorded as left out."""
        cuts: list[Cut] = []
        for line in self.gold[question.id]:
            filename = line.filename or ""
            if line.context is not None and not line.spans:
                self.left_out["passage that is not located in the document"].append(f"{question.id}: {filename}")
            for start, end in line.spans:
                if end > len(texts[filename]):
                    raise BundleError(f"{filename}: gold at {start}-{end} is past the end; convert the bundle again")
                cuts.append((filename, start, end))
        return cuts


def write_json(path: Path, content: Mapping[str, Any], *, indent: int | None = 1) -> None:
    text = json.dumps(content, ensure_ascii=False, indent=indent)
    path.write_text(text + "\n", encoding="utf-8", errors="replace", newline="\n")


def write_lines(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8", errors="replace", newline="\n") as out:
        out.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write_texts(export: Export, folder: Path) -> None:
    """Write the extracted text of each document, to which gold offsets refer, under the document's name plus `.txt`."""
    for filename, text in export.documents():
        (folder / fit_name(filename, ".txt")).write_bytes(text.encode("utf-8"))


def write_questions(export: Export, folder: Path) -> None:
    """Write `questions.jsonl`, and `sealed.json` with the hash of bundle.json, which has all files' checksums."""
    info, questions = export.bundle.info, export.bundle.questions
    if info is None:
        raise BundleError(f"{export.bundle.root}: has no {INFO}, which this format needs; convert the bundle again")
    sealed = sha256_of(export.bundle.root / INFO)
    rows = ({"id": row.id, "question": row.question, "sealed": sealed} for row in questions)
    write_lines(folder / "questions.jsonl", rows)
    documents = {name: entry.sha256 for name, entry in info.files.items() if name.startswith(f"{CORPUS}/")}
    seal = {"bundle": export.name, "sealed": sealed, "questions": len(questions), "documents": documents}
    write_json(folder / "sealed.json", seal)


def write_beir(export: Export, folder: Path) -> None:
    """Write a bundle in the BEIR format; each document is one entry of the corpus."""
    title_of, questions = export.title_of, export.bundle.questions
    corpus = ({"_id": name, "title": title_of(name), "text": text, "metadata": {}} for name, text in export.documents())
    write_lines(folder / "corpus.jsonl", corpus)
    answers = ({"answer": row.answer, "is_impossible": row.is_impossible} for row in questions)
    queries = (
        {"_id": str(row.id), "text": row.question, "metadata": answer}
        for row, answer in zip(questions, answers, strict=True)
    )
    write_lines(folder / "queries.jsonl", queries)
    (folder / "qrels").mkdir()
    with (folder / "qrels" / "test.tsv").open("w", encoding="utf-8", newline="") as out:
        # a name with a quotation mark needs quotes around it; BEIR's reader removes them again
        table = csv.writer(out, delimiter="\t", lineterminator="\n")
        table.writerow(["query-id", "corpus-id", "score"])
        for question in questions:
            names = [] if question.is_impossible else dict.fromkeys(c.filename for c in question.contexts if c.filename)
            table.writerows([question.id, name, 1] for name in names)
            if not names:
                export.noted["query without a relevant text"].append(str(question.id))


def write_squad(export: Export, folder: Path) -> None:
    """Write a bundle in the SQuAD format; a question on several documents is repeated, with a number after its id."""
    texts = dict(export.documents())
    entries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for question in export.bundle.questions:
        id, impossible = str(question.id), question.is_impossible
        cuts = [] if impossible else export.cut_gold(question, texts)
        named = [line.filename for line in export.gold[question.id]] if impossible else [name for name, _, _ in cuts]
        filenames = list(dict.fromkeys(filter(None, named)))
        if not filenames:
            why = "impossible question that names no document" if impossible else "question without a located passage"
            export.left_out[why].append(id)
        if len(filenames) > 1:
            export.noted["question on several documents, repeated for each"].append(id)
        for number, filename in enumerate(filenames, 1):
            # SQuAD lists alternative correct answers; pieces of an interrupted passage are listed in the same way
            spans = [(start, end) for name, start, end in dict.fromkeys(cuts) if name == filename]
            answers = [{"text": texts[filename][start:end], "answer_start": start} for start, end in spans]
            entry = {"id": f"{id}-{number}" if len(filenames) > 1 else id, "question": question.question}
            entries[filename].append({**entry, "answers": answers, "is_impossible": impossible})
    data = [{"title": name, "paragraphs": [{"context": text, "qas": entries[name]}]} for name, text in texts.items()]
    write_json(folder / "squad.json", {"version": "v2.0", "data": data}, indent=None)


def write_legalbenchrag(export: Export, folder: Path) -> None:
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
        cuts = [] if question.is_impossible else export.cut_gold(question, texts)
        if not cuts:
            reason = "impossible question" if question.is_impossible else "question without a located passage"
            export.left_out[reason].append(str(question.id))
            continue
        merged = merge_cuts(cuts)
        if len(merged) < len(cuts):
            export.noted["snippets of a test at most one character apart were merged"].append(str(question.id))
        snippets = [
            {"file_path": paths[name], "span": [start, end], "answer": texts[name][start:end]}
            for name, start, end in merged
        ]
        group = _name_benchmark(export, export.gold[question.id][0])
        benchmarks[group].append({"query": question.question, "snippets": snippets})
    (folder / "benchmarks").mkdir()
    for name, tests in benchmarks.items():
        write_json(folder / "benchmarks" / f"{name}.json", {"tests": tests})


def merge_cuts(cuts: Sequence[Cut]) -> list[Cut]:
    """Merge the pieces of gold that are at most one character apart, as the benchmark's `sort_and_merge_spans` does."""
    merged: list[tuple[int, str, int, int]] = []  # the position of the first piece, and the united piece
    for position, (filename, start, end) in sorted(enumerate(dict.fromkeys(cuts)), key=lambda item: item[1]):
        first, name, before, last = merged[-1] if merged else (0, "", 0, 0)
        if name == filename and start <= last + 1:
            merged[-1] = (min(position, first), name, before, max(last, end))
        else:
            merged.append((position, filename, start, end))
    return [(filename, start, end) for _, filename, start, end in sorted(merged)]


def _name_benchmark(export: Export, line: Gold) -> str:
    info = export.bundle.info
    label = line.labels.get(info.groups) if info and info.groups else None
    return str(label or export.name).replace("/", "_")


def _choose_paths(export: Export) -> dict[str, str]:
    homes = {line.filename: _name_benchmark(export, line) for line in reversed(export.bundle.gold)}
    paths: dict[str, str] = {}
    for filename in sorted(export.bundle.files):
        name = filename if filename.lower().endswith(".txt") else fit_name(filename, ".txt")
        paths[filename] = f"{homes.get(filename, export.name)}/{name}"
    if len(set(paths.values())) < len(paths):
        raise BundleError(f"{export.bundle.root}: two documents differ only in the ending .txt; rename one of them")
    return paths


CHUNK_CHARS = 1000  # most characters of a chunk: one or two clauses, the length on which passage retrievers are trained
_BREAKS = ("\n\n", "\n", ". ", " ")  # the strings after which a chunk may end, the best first

_LANGUAGES = {
    "bg": "bul-Cyrl", "cs": "ces-Latn", "da": "dan-Latn", "de": "deu-Latn", "el": "ell-Grek", "en": "eng-Latn",
    "es": "spa-Latn", "fi": "fin-Latn", "fr": "fra-Latn", "hr": "hrv-Latn", "hu": "hun-Latn", "it": "ita-Latn",
    "nl": "nld-Latn", "pl": "pol-Latn", "pt": "por-Latn", "ro": "ron-Latn", "ru": "rus-Cyrl", "sk": "slk-Latn",
    "sl": "slv-Latn", "sv": "swe-Latn", "uk": "ukr-Cyrl",
}  # fmt: skip
"""MTEB's codes of languages; MTEB refuses a task with any other code, so languages that are not here are left out."""
_CONFIGS = {"corpus": "corpus.jsonl", "queries": "queries.jsonl", "default": "qrels.jsonl"}
"""The configs that MTEB loads, with their files; `default` has the relevance of passages."""


def write_mteb(export: Export, folder: Path) -> None:
    """Write a retrieval task that MTEB can load from the folder, or from a dataset repository with the same files."""
    texts = dict(export.documents())
    chunks = {filename: list(tile(text)) for filename, text in texts.items()}
    corpus = (
        {"id": f"{filename}#{start}-{end}", "title": export.title_of(filename), "text": texts[filename][start:end]}
        for filename, spans in chunks.items()
        for start, end in spans
    )
    write_lines(folder / _CONFIGS["corpus"], corpus)
    answerable = [question for question in export.bundle.questions if not question.is_impossible]
    write_lines(folder / _CONFIGS["queries"], ({"id": str(row.id), "text": row.question} for row in answerable))
    relevant = {str(row.id): score_chunks(export.gold[row.id], chunks) for row in answerable}
    if unanswered := [query for query, scores in relevant.items() if not scores]:
        export.noted["query without a relevant text"] = unanswered
    rows = (
        {"query-id": query, "corpus-id": name, "score": score}
        for query, scores in relevant.items()
        for name, score in scores.items()
    )
    write_lines(folder / _CONFIGS["default"], rows)
    task, card = _describe_task(export)
    write_json(folder / "task.json", task)
    (folder / "task.py").write_bytes(Path(__file__).with_name("mteb_task.txt").read_bytes())
    (folder / CARD).write_text(card, encoding="utf-8")


def tile(text: str, size: int = CHUNK_CHARS) -> Iterator[tuple[int, int]]:
    """Yield the start and end of consecutive chunks that cover the text."""
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        if end < len(text):
            breaks = ((text.rfind(mark, start + size // 2, end), mark) for mark in _BREAKS)
            end = next((at + len(mark) for at, mark in breaks if at >= 0), end)
        yield start, end
        start = end


def score_chunks(lines: list[Gold], chunks: dict[str, list[tuple[int, int]]]) -> dict[str, int]:
    """Return the relevance of each chunk that overlaps the gold: 2 with at least half of a passage, else 1."""
    scores: dict[str, int] = {}
    for line in lines:
        whole = sum(end - start for start, end in line.spans)
        for start, end in chunks.get(line.filename or "", ()):
            shared = sum(max(0, min(end, b) - max(start, a)) for a, b in line.spans)
            if shared:
                name = f"{line.filename}#{start}-{end}"
                scores[name] = max(scores.get(name, 0), 2 if 2 * shared >= whole else 1)
    return scores


def _describe_task(export: Export) -> tuple[dict[str, Any], str]:
    from huggingface_hub import DatasetCard  # import here: the import takes half a second

    from exhibit.hub.card import LICENCES

    info, card_file = export.bundle.info, export.bundle.root / CARD
    head: Any = DatasetCard(card_file.read_text(encoding="utf-8")).data if card_file.is_file() else {}
    languages = list(head.get("language") or ["en"])
    task = {
        "name": f"Exhibit{re.sub(r'[^A-Za-z0-9]', '', export.name.title())}Retrieval",
        "description": (info and info.summary) or "Questions on legal documents with located gold passages.",
        "dataset": {"path": export.name, "revision": info.source.version if info else "1"},
        "eval_langs": [_LANGUAGES[code] for code in languages if code in _LANGUAGES] or [_LANGUAGES["en"]],
        "type": "Retrieval",
        "category": "t2t",
        "modalities": ["text"],
        "eval_splits": ["test"],
        "main_score": "ndcg_at_10",
        "domains": ["Legal", "Written"],
        "reference": info.source.url or None if info else None,
        "license": info.licence.id if info and info.licence.id in LICENCES - {"other", "unknown"} else None,
    }
    files = {name: [{"split": "test", "path": path}] for name, path in _CONFIGS.items()}
    terms = {
        "license": task["license"] or "other",
        "language": languages,
        "task_categories": ["text-retrieval"],
        "tags": ["mteb", "legal"],
        "configs": [{"config_name": name, "data_files": parts} for name, parts in files.items()],
    }
    card = (
        f"---\n{yaml.safe_dump(terms, sort_keys=False)}---\n\n# {task['name']}\n\n{task['description']}\n\n"
        "Passages of about 1,000 characters; a passage with at least half of a gold passage has the score 2, one with "
        "a smaller part of it the score 1. Run it with `task.py`:\n\n"
        "    import mteb, task\n    mteb.evaluate(mteb.get_model(MODEL), [task.load()])\n"
    )
    return task, card


RECORD = "export.json"  # lists the items that an export left out; --force replaces only a folder with this file
KIND = FolderKind("an export", lambda folder: (folder / RECORD).is_file())
FORMATS: dict[str, Callable[[Export, Path], None]] = {
    "beir": write_beir,
    "legalbenchrag": write_legalbenchrag,
    "mteb": write_mteb,
    "questions": write_questions,
    "squad": write_squad,
    "text": write_texts,
}


def format_names() -> list[str]:
    """Return the names of the export formats of this package and of other installed distributions."""
    return sorted({*FORMATS, *points_of(__name__)})


def export(root: Location, name: str, out: Path, *, force: bool = False) -> Export:
    """Write a bundle in the named format; `out` appears complete or not at all."""
    if name not in format_names():
        raise ToolkitError(f"no format {name!r}; choose one of {', '.join(format_names())}")
    write = FORMATS[name] if name in FORMATS else load_plugin(__name__, name)[0].write
    source = Export(open_bundle(mirror_bundle(root)))
    with replace_folder(out, force=force, kind=KIND) as folder:
        write(source, folder)
        record = {"format": name, "bundle": source.name, "tool": f"exhibit-rag {__version__}"}
        write_json(folder / RECORD, {**record, "left_out": source.left_out, "noted": source.noted})
    return source


@guarded("stopped; nothing was written")
def main(argv: list[str] | None = None) -> int:
    parser = build_parser("exhibit export", __doc__)
    parser.add_argument("bundle", type=parse_location, metavar="DIR", help="a bundle's folder or URL")
    parser.add_argument("--to", choices=format_names(), required=True, help="the format to write")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    parser.add_argument("--force", action="store_true", help="replace an earlier export")
    add_json(parser)
    options = parser.parse_args(argv)
    done = export(options.bundle, options.to, options.out, force=options.force)
    names = ", ".join(sorted(path.name for path in options.out.iterdir()))
    lines = [f"{done.name} as {options.to} -> {options.out}: {names}"]
    for label, reasons in (("left out", done.left_out), ("noted", done.noted)):
        lines += [f"  {label}: {reason}: {len(cases)}" for reason, cases in reasons.items()]
    record = {"bundle": done.name, "format": options.to, "out": str(options.out), "left_out": done.left_out}
    print_results({**record, "noted": done.noted}, "\n".join(lines), as_json=options.json)
    return 0


EVAL = "eval.yaml"
METADATA = "metadata.jsonl"
QUESTIONS_TASK = "questions"  # the task with only the question, for a system behind an API or a model without documents

_INSTRUCTION = f"Answer in one sentence. If you cannot answer from the documents, reply: {IMPOSSIBLE_ANSWER}"
_TASKS = {
    QUESTIONS_TASK: ([], f"{{prompt}}\n\n{_INSTRUCTION}"),
    "reading": (["contexts"], f"Passages of the documents:\n{{contexts}}\n\nQuestion: {{prompt}}\n\n{_INSTRUCTION}"),
}  # For each task, the columns that its prompt shows besides the question, and the prompt's template


def make_shelf_files(info: BundleInfo) -> dict[str, bytes]:
    """Return the files that are added on publication: `eval.yaml` for questions, and `metadata.jsonl` for PDFs."""
    files = {}
    if info.counts.questions:
        tasks = []
        for name, (shown, template) in _TASKS.items():
            # the Hub and Inspect accept only these keys and names
            fields = {"input": "question", "target": "answer", **({"metadata": shown} if shown else {})}
            solvers = [{"name": "prompt_template", "args": {"template": template}}, {"name": "generate"}]
            about_task = {"id": name, "config": "questions", "split": "train", "field_spec": fields}
            tasks.append({**about_task, "solvers": solvers, "scorers": [{"name": "f1"}, {"name": "includes"}]})
        about = {"name": info.title, "description": info.summary, "evaluation_framework": "inspect-ai", "tasks": tasks}
        files[EVAL] = yaml.safe_dump(about, sort_keys=False, allow_unicode=True).encode()
    pdfs = [document for document in info.documents if document.filename.lower().endswith(".pdf")]
    if pdfs:
        entries = (pdf.model_dump(include={"title", "pages", "source"}) for pdf in pdfs)
        lines = ({"file_name": f"{CORPUS}/{pdf.filename}", **entry} for pdf, entry in zip(pdfs, entries, strict=True))
        files[METADATA] = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    return files
