"""The documents of a CPR corpus: PDFs, and search-index exports whose chunks are joined."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from textwrap import shorten

from exhibit.converters import PAST_A_LIMIT, UNREADABLE, Block, Item, RawDocument, Tally
from exhibit.converters.core.source import key_by_name
from exhibit.converters.core.titles import choose_unique_titles, read_own_title
from exhibit.converters.pages.fetch import Policy, fetch_all, report
from exhibit.converters.pages.text_pdf import make_printable
from exhibit.engine import run_in_worker
from exhibit.engine.limits import limit_reading
from exhibit.law.names import make_file_key, tidy
from exhibit.schemas.errors import DocumentError, LimitError, SourceError, escape_surrogates
from exhibit.schemas.layout import fit_name
from exhibit.schemas.parsing import explain_read_errors, parse_json
from exhibit.storage.atomic import list_files, list_left_out

Record = Mapping[str, object]

CPR, PD, GUIDE = "CPR", "PD", "Court Guide"  # the source's own names for the kinds of documents
MAX_CUT_CHARS = 200  # most characters of a name that may be the start of a section: exports cut names at 100 characters

_REFERENCE = re.compile(r"(part|practice direction|cyfarwyddyd ymarfer|pd) (\d++(?:[a-z]++\d*+)?)\b", re.IGNORECASE)
_LETTER_APART = re.compile(r"((?i:direction|ymarfer) \d+) ([A-Z]{1,2}\d?)\b")


@dataclass(frozen=True, eq=False)  # compare by identity, so that a cache need not hash the text
class RulesFile:
    """A document of the corpus, and every name that a citation may use for it."""

    raw: RawDocument
    names: tuple[str, ...]
    origin: str  # the place where it was found, for messages

    def __str__(self) -> str:
        return self.origin

    @property
    def kind(self) -> str:
        """The kind of document that its names state: `CPR`, `PD`, `Court Guide`, or empty."""
        return next(filter(None, map(kind_of, self.names)), "")


def load(root: Path, policy: Policy, tally: Tally, *, table: Path | None = None) -> tuple[list[RulesFile], str]:
    """Return the documents of a folder, a file or a list of URLs, sorted by file name, and a digest of them."""
    is_list = root.suffix.lower() == ".txt" and root.is_file()
    sources, checksums = _fetch_pages(root, policy, tally) if is_list else _read_files(root, tally, table)
    if not sources:
        expected = "JSON exports, PDFs, or a .txt file with URLs of pages (exhibit convert web says why one fails)"
        raise SourceError(f"{root}: no document in it; expected {expected}; or pass --documents")
    sources.sort(key=lambda source: source.raw.filename)
    key_by_name((source.raw.filename.casefold(), source) for source in sources)
    titles = choose_unique_titles({s.raw.filename: [s.raw.title, f"{s.raw.title} ({s.origin})"] for s in sources})
    digest = hashlib.sha256("".join(checksums).encode()).hexdigest()
    return [replace(s, raw=replace(s.raw, title=titles[s.raw.filename])) for s in sources], digest


def _fetch_pages(path: Path, policy: Policy, tally: Tally) -> tuple[list[RulesFile], list[str]]:
    """Fetch the pages in a list of URLs; return their PDFs, and a line with the checksum of each."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    pages = fetch_all([line for line in lines if line and not line.startswith("#")], policy=policy)
    report(pages, tally)
    sources = []
    for page in pages.values():
        if page.path is not None:
            title = read_pdf_title(page.path)
            raw = RawDocument(page.filename, title, page.path, own_text=True, source=page.url, printer=page.printer)
            sources.append(make_source(raw, (title, page.filename, Path(page.filename).stem, page.url), page.url))
    return sources, [f"{page.url} {page.sha256}\n" for page in pages.values()]


def _read_files(root: Path, tally: Tally, table: Path | None) -> tuple[list[RulesFile], list[str]]:
    """Return the documents in a file or a folder without the questions, and a line with the checksum of each file."""
    paths = [path for path in (list_files(root) if root.is_dir() else [root]) if path != table]
    items = [Item("files", path.relative_to(root).as_posix() if path != root else path.name) for path in paths]
    tally.take(items)
    for path, why in list_left_out(root) if root.is_dir() else ():
        tally.leave_out(why, path.relative_to(root).as_posix())
    checksums: list[str] = []
    exports: dict[str, RulesFile] = {}
    sources: list[RulesFile] = []
    for path, item in zip(paths, items, strict=True):
        ending = path.suffix.lower()
        if path.name.startswith(".") or ending not in (".json", ".pdf"):
            tally.leave_out("no document: only JSON exports and PDFs are read", item.name, item=item)
            continue
        checksums.append(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n")
        try:
            if ending == ".json":
                _add_exports(path, item, exports, tally)
            else:
                title = read_pdf_title(path)
                raw = RawDocument(path.name, title, path, own_text=True, items=(item,))
                sources.append(make_source(raw, (title, path.stem, path.name), path.name))
        except DocumentError as error:
            reason = "JSON file cannot be read" if ending == ".json" else UNREADABLE
            tally.fault(PAST_A_LIMIT if isinstance(error, LimitError) else reason, str(error), item=item)
    return [*sources, *exports.values()], checksums


def kind_of(name: str) -> str:
    """Return the kind of document that a name states: `CPR`, `PD` or `Court Guide`; empty if it states none."""
    if re.match(r"part \d", name, re.IGNORECASE):
        return CPR
    if re.match(r"practice direction|cyfarwyddyd ymarfer|pd \d", name, re.IGNORECASE):
        return PD
    return GUIDE if re.search(r"(?<![a-z])guide(?![a-z])", name, re.IGNORECASE) else ""


def reference_of(name: str) -> str:
    """Return the reference at the start of a name, such as `Part 36` or `Practice Direction 51ZG3`; else empty."""
    match = _REFERENCE.match(name)
    return match[0] if match else ""


def make_source(raw: RawDocument, names: Sequence[str], origin: str) -> RulesFile:
    """Return a document and the names that citations may use for it: `names`, and the words after their numbers."""
    # the title in an export may be only a number, but the text begins with the whole name
    words = [_LETTER_APART.sub(r"\1\2", name) for name in names]
    after = [name.removeprefix(number).strip(" –—:-") for name in words if (number := reference_of(name))]
    return RulesFile(raw, tuple(filter(None, dict.fromkeys((*names, reference_of(raw.title), *after)))), origin)


def read_pdf_title(path: Path) -> str:
    """Return a PDF's title, or words from its file name if it has no title or only one from Word."""
    title = tidy(read_own_title(path))
    return title if title and not title.startswith("Microsoft Word") else tidy(re.sub(r"[-_]+", " ", path.stem))


# ---------------------------------------------------------------- exports of a search index

_CHUNK_ID = re.compile(r"_chunk_(\d{1,9})$")
# lines that the exporter added: "Document: …", sometimes "Section: …" over several lines, "Part 1 of 2", a rule
_CHUNK_HEAD = re.compile(r"\ADocument: .*?\nPart \d+ of \d+\n=+\n", re.DOTALL)


def _add_exports(path: Path, item: Item, exports: dict[str, RulesFile], tally: Tally) -> None:
    found_exports, nameless = run_in_worker(read_export, path)
    for _ in range(nameless):
        tally.fault("export record without a document's name", path.name)
    if not found_exports:
        tally.leave_out("JSON file that is not an export of documents", path.name, item=item)
    for key, export in found_exports.items():
        known = exports.get(key, export)
        if known is not export:
            same = known.raw.text == export.raw.text
            remark = "exported more than once, kept once" if same else "exported in several versions; the first is used"
            tally.note(f"document {remark}", f"{key}: {known.origin}, {export.origin}")
        elif export.raw.filename != f"{key}.pdf":
            tally.note("file name changed, because the old name is not valid", f"{key} -> {export.raw.filename}")
        # count the file even if its copy is not used
        exports[key] = replace(known, raw=replace(known.raw, items=(*known.raw.items, item)))


def read_export(path: Path) -> tuple[dict[str, RulesFile], int]:
    """Return the documents of a JSON export by name, and the number of records without a name; called in a worker."""
    data = _load_json(path)
    documents: dict[str, list[Record]] = defaultdict(list)
    # search results are parts of documents; --from-search reads them
    for record in () if isinstance(data, dict) and "query" in data else _list_records(data):
        documents[_make_key(record)].append(record)
    nameless = documents.pop("", [])
    return {key: _make_export(key, records, path.name) for key, records in documents.items()}, len(nameless)


def _make_export(key: str, records: Sequence[Record], origin: str) -> RulesFile:
    sections = list(dict.fromkeys(filter(None, (read_string(record, "sourcepage") for record in records))))
    url = next(filter(None, (read_string(record, "storageUrl", "url") for record in records)), "")
    title, text = restore_full_name(key, next(iter(sections), "")), _join_chunks(records)
    blocks = tuple(blocks_of(title, text))
    filename = fit_name(re.sub(r"[/\x00-\x1f\x7f]", "_", key), ".pdf")
    raw = RawDocument(filename, title, text="\n\n".join(b.text for b in blocks), blocks=blocks, source=url)
    # if the title is only a number, the first line of the text has its words
    return make_source(raw, (title, key, *sections, heading_of(text)), origin)


def _join_chunks(records: Iterable[Record]) -> str:
    numbered: list[tuple[int, str]] = []
    for record in records:
        chunks = record.get("chunks")  # if a record has chunks, its content repeats only the first
        for part in chunks if isinstance(chunks, list) and chunks else [record]:
            number = _CHUNK_ID.search(read_string(part, "id"))
            numbered.append((int(number[1]) if number else 0, _cut_body(read_string(part, "content"))))
    return "\n\n".join(text for _, text in sorted(numbered, key=lambda pair: pair[0]) if text)


def _load_json(path: Path) -> object:
    with explain_read_errors(path, DocumentError), limit_reading(str(path), path.stat().st_size):
        return parse_json(path.read_bytes(), where=path.name, error=DocumentError)


def _list_records(data: object) -> Iterator[Record]:
    """Yield the records of an export, which is a single record, a list, or a search service's reply with a list."""
    if isinstance(data, dict) and not {"content", "chunks"} & data.keys():
        data = next((data[name] for name in ("documents", "results", "value") if name in data), None)
    for record in data if isinstance(data, list) else [data]:
        if isinstance(record, dict) and {"content", "chunks"} & record.keys():
            yield record


def read_string(record: Record, *names: str) -> str:
    """Return the first of the named fields that contains text; an empty string if there is none."""
    values = (record.get(name) for name in names) if isinstance(record, dict) else ()
    # JSON can contain a lone surrogate, which no file can store
    return next((escape_surrogates(value.strip()) for value in values if isinstance(value, str) and value.strip()), "")


def _make_key(record: Record) -> str:
    return _CHUNK_ID.sub("", read_string(record, "parent_id", "id")) or read_string(record, "sourcefile", "document")


def _cut_body(content: str) -> str:
    return _CHUNK_HEAD.sub("", content).strip()


def restore_full_name(name: str, section: str) -> str:
    """Return a document's name as it was before the exporter cut it at 100 characters and replaced `:` by `_`."""
    mangled = re.sub(r'[<>:"/\\|?*]', "_", section)
    for start in range(max(0, len(name) - MAX_CUT_CHARS), len(name)):
        if len(name) - start > 3 and mangled.startswith(name[start:]):
            return name[:start].replace("_ ", ": ") + section
    return name.replace("_ ", ": ")


_MAX_HEADING_CHARS = 150  # a longer line is a sentence
_OPEN_END = re.compile(r"[.;:,–-]$|\b(and|or)$")
_SEPARATOR = "---"  # the exporter's mark before each heading


def blocks_of(title: str, text: str) -> list[Block]:
    """Return the blocks to print to PDF: a document's name, then its text, paragraph by paragraph."""
    paragraphs = [part.strip() for part in re.split(r"\n\s*\n", make_printable(text)) if part.strip()]
    blocks = [Block("h1", title)]
    if paragraphs and make_file_key(heading_of(text)).startswith(make_file_key(title)):
        # the text begins with its own title; printing both would repeat it
        blocks = [Block("h1", paragraphs.pop(0))]
    for before, paragraph in pairwise(["", *paragraphs]):
        short = len(paragraph) <= _MAX_HEADING_CHARS and "\n" not in paragraph and not _OPEN_END.search(paragraph)
        # exports in chunks have no separators; there a line in capitals is a heading
        shouted = paragraph.isupper() and len(paragraph) > 8
        named = before == _SEPARATOR and not re.match(r"[\d(•£]", paragraph)
        if paragraph != _SEPARATOR:
            blocks.append(Block("h2" if short and (shouted or named) else "p", paragraph))
    return blocks


def heading_of(text: str) -> str:
    """Return the first paragraph of a text if it is a single line that is short enough for a title; else empty."""
    first = re.split(r"\n\s*\n", text.strip(), maxsplit=1)[0].strip()
    return first if len(first) <= 2 * _MAX_HEADING_CHARS and "\n" not in first else ""


# ---------------------------------------------------------------- questions from exported searches

_MAX_CITED = 3  # most citations in a proposed row, which a person edits
_EXCERPT_CHARS = 600


def read_candidates(path: Path) -> list[dict[str, str]]:
    """Return a proposed ground-truth row for each query of exported search results; called in a worker."""
    data = _load_json(path)
    return [
        _make_candidate(question, records)
        for search in (data if isinstance(data, list) else [data])
        if isinstance(search, dict)
        and (question := read_string(search, "query", "question"))
        and (records := list(_list_records(search.get("results"))))
    ]


def _make_candidate(question: str, records: list[Record]) -> dict[str, str]:
    cited, names = [], []
    for record in records:
        section = read_string(record, "sourcepage")
        full = restore_full_name(_make_key(record), section)
        names.append(reference_of(full) or full)
        cited.append(names[-1] if section in {"", names[-1]} else f"{names[-1]}#page={section}")
    text = re.sub(r"^-+$", "", _cut_body(read_string(records[0], "content")), flags=re.MULTILINE)
    excerpt = shorten(text, _EXCERPT_CHARS, placeholder=" …")
    # square brackets mark citations
    brackets = str.maketrans("[]", "()")
    marks = [f"[{name.translate(brackets)}]" for name in list(dict.fromkeys(cited))[:_MAX_CITED]]
    truth = " ".join([excerpt.translate(brackets), *marks])
    category = read_string(records[0], "category")
    return {"question": question, "truth": truth, "source_type": kind_of(names[0]), "category": category}
