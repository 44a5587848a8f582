"""The documents of a CPR corpus: PDFs, HTML to print to PDF, and search-index exports whose chunks are joined."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from exhibit.converters.benchmark import PAST_A_LIMIT, UNREADABLE, Block, Item, RawDocument, Tally
from exhibit.converters.civil_procedure.parsing import (
    IndexExport,
    Record,
    blocks_of,
    cut_body,
    heading_of,
    load_json,
    make_document_key,
    read_export,
    read_page,
    read_records,
    read_string,
)
from exhibit.converters.fetching.fetch import Policy, fetch_all, fetch_folder, report
from exhibit.converters.raw.titles import choose_unique_titles, read_own_title
from exhibit.engine import run_in_worker
from exhibit.evidence import Document, read_document
from exhibit.evidence.read import NamedFile, has_page, list_folder, with_attachments
from exhibit.law.casing import tidy
from exhibit.schemas.errors import DocumentError, LimitError, SourceError
from exhibit.storage.atomic import list_left_out

CPR, PD, GUIDE = "CPR", "PD", "Court Guide"
"""The source's own names for the kinds of documents."""

_REFERENCE = re.compile(r"(part|practice direction|cyfarwyddyd ymarfer|pd) (\d++(?:[a-z]++\d*+)?)\b", re.IGNORECASE)
_LETTER_APART = re.compile(r"((?i:direction|ymarfer) \d+) ([A-Z]{1,2}\d?)\b")
_NOT_IN_NAMES = re.compile(r"[/\x00-\x1f\x7f]")
_EXPORTER_CHANGED = re.compile(r'[<>:"/\\|?*]')
_LONGEST = 255 - len(".pdf")
_ENDINGS = frozenset({".json", ".pdf", ".html", ".htm"})
_NOTES = frozenset({".md", ".markdown", ".csv", ".tsv"})
"""Suffixes of files that are not documents but notes on documents or lists of them."""
NO_DOCUMENT = "no document: only JSON exports, PDFs, HTML and office files are read"


@dataclass(frozen=True)
class RulesFile:
    """A document of the corpus, and every name that a citation may use for it."""

    raw: RawDocument
    names: tuple[str, ...]
    kind: str
    """CPR, PD, Court Guide, or empty if its name does not say."""
    origin: str
    """The place where it was found, for messages."""
    blocks: tuple[Block, ...] = ()
    """The blocks to print if there is no file; `raw.text` is their text, separated by blank lines."""

    def __str__(self) -> str:
        """Return the document's origin, which is its name in error messages."""
        return self.origin

    def document(self) -> Document:
        """Return the document's text; raise DocumentError if the document cannot be read.

        The text has page positions only if it is read from a file.
        """
        file = self.raw.path or self.raw.original
        return Document(self.raw.filename, self.raw.text or "") if file is None else read_document(file)


def load(root: Path, policy: Policy, tally: Tally, *, table: Path | None = None) -> tuple[list[RulesFile], str]:
    """Return the documents of a folder, a file or a list of URLs, sorted by file name, and a digest of them.

    Raise SourceError if there is no document, or if two documents would have the same file name.
    """
    if root.suffix.lower() == ".txt" and root.is_file():
        return _fetch_sources(root, policy, tally)
    files = list(with_attachments([NamedFile(root, root.name)])) if root.is_file() else list_folder(root)
    files = [file for file in files if file.path != table]  # the rows of the table have their own account
    tally.take(_make_item(file) for file in files)
    for path, why in list_left_out(root) if root.is_dir() else ():
        tally.leave_out(why, path.relative_to(root).as_posix())
    digest = hashlib.sha256()
    exports: dict[str, IndexExport] = {}
    sources: list[RulesFile] = []
    for file in files:
        path, ending = file.path, file.path.suffix.lower()
        if path.name.startswith(".") or (ending not in _ENDINGS and (ending in _NOTES or not has_page(path))):
            tally.leave_out(NO_DOCUMENT, file.name, item=_make_item(file))
            continue
        digest.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
        if ending == ".json":
            _add_exports(file, exports, tally)
            continue
        try:
            source = (
                _read_pdf(path) if ending == ".pdf" else _read_page(path) if ending in _ENDINGS else _read_office(path)
            )
        except DocumentError as error:
            tally.fault(_explain_error(error, UNREADABLE), str(error), item=_make_item(file))
            continue
        sources.append(replace(source, raw=replace(source.raw, items=(_make_item(file),))))
    shared = Counter(export.sourcefile for export in exports.values())
    sources += [_from_export(export, shared[export.sourcefile] > 1, tally) for export in exports.values()]
    if not sources:
        raise SourceError(f"{root}: no document in it; expected JSON exports, PDFs or HTML, or pass --documents")
    return _keep_distinct(sources), digest.hexdigest()


def _make_item(file: NamedFile) -> Item:
    return Item("files", file.name)


def _explain_error(error: DocumentError, usual: str) -> str:
    return PAST_A_LIMIT if isinstance(error, LimitError) else usual


def kind_of(name: str) -> str:
    """Return the kind of document that a name states: `CPR`, `PD` or `Court Guide`; empty if it states none."""
    first = _REFERENCE.match(name)
    if first:
        return CPR if first.group(1).lower() == "part" else PD
    if re.match(r"practice direction|cyfarwyddyd ymarfer", name, re.IGNORECASE):
        return PD
    return GUIDE if re.search(r"(?<![a-z])guide(?![a-z])", name, re.IGNORECASE) else ""


def reference_of(name: str) -> str:
    """Return the reference at the start of a name, such as `Part 36` or `Practice Direction 51ZG3`; else empty."""
    match = _REFERENCE.match(name)
    return match.group() if match else ""


# ---------------------------------------------------------------- exports


def restore_full_name(name: str, section: str) -> str:
    """Return a document's name as it was before the exporter cut it at 100 characters and replaced `:` by `_`."""
    mangled = _EXPORTER_CHANGED.sub("_", section)
    for start in range(len(name)):
        if len(name) - start > 3 and mangled.startswith(name[start:]):
            return name[:start].replace("_ ", ": ") + section
    return name.replace("_ ", ": ")


def _add_exports(file: NamedFile, exports: dict[str, IndexExport], tally: Tally) -> None:
    name = file.path.name
    try:
        here = {export.key: export for export in run_in_worker(read_export, file.path)}
    except DocumentError as error:
        tally.fault(_explain_error(error, "JSON file cannot be read"), str(error), item=_make_item(file))
        return
    for _ in range(here.pop("").records if "" in here else 0):
        tally.fault("export record without a document's name", name)
    if not here:
        tally.leave_out("JSON file that is no export of documents", name, item=_make_item(file))
    for key, export in here.items():
        export.origin = name
        first = exports.setdefault(key, export)
        first.items.append(_make_item(file))  # count the file, although its copy may not be used
        if first is not export:
            same = first.text == export.text
            remark = "exported more than once, kept once" if same else "exports of it differ, the first is kept"
            tally.note(f"document {remark}", f"{key}: {first.origin}, {export.origin}")


def _from_export(export: IndexExport, shared: bool, tally: Tally) -> RulesFile:
    title, text = restore_full_name(export.key, next(iter(export.sections), "")), export.text
    name = _NOT_IN_NAMES.sub("_", export.key)
    name = name.encode("utf-8")[:_LONGEST].decode("utf-8", "ignore")
    if name != export.key:
        tally.note("file name changed, as a file cannot be called that", f"{export.key} -> {name}.pdf")
    blocks = tuple(blocks_of(title, text))
    raw = RawDocument(
        f"{name}.pdf",
        title,
        text=_join_blocks(blocks),
        blocks=blocks,
        source=export.url,
        items=tuple(export.items),
    )
    # `sourcefile` says "Part 63" for Part 63A, so a number is read only from the title; some titles are only a number:
    # then the first line of the text has the words
    misleading = shared or kind_of(export.sourcefile) in {CPR, PD}
    names = (title, export.key, "" if misleading else export.sourcefile)
    return replace(_make_source(raw, (*names, *export.sections, heading_of(text)), export.origin), blocks=blocks)


def _join_blocks(blocks: Iterable[Block]) -> str:
    return "\n\n".join(block.text for block in blocks)


def _make_source(raw: RawDocument, names: tuple[str, ...], origin: str) -> RulesFile:
    # an export's title may be only a number, while its text begins with the whole name
    words = [_LETTER_APART.sub(r"\1\2", name) for name in (raw.title, *names)]
    after = [name.removeprefix(number).strip(" –—:-") for name in words if (number := reference_of(name))]
    called = tuple(filter(None, dict.fromkeys((*names, reference_of(raw.title), *after))))
    return RulesFile(raw, called, next(filter(None, map(kind_of, called)), ""), origin)


def _keep_distinct(sources: list[RulesFile]) -> list[RulesFile]:
    first: dict[str, RulesFile] = {}
    for source in sources:
        name = source.raw.filename.casefold()
        if name in first:
            origins = f"{first[name].origin} and {source.origin}"
            raise SourceError(f"two documents would be named {source.raw.filename!r}: {origins}; remove one")
        first[name] = source
    ordered = sorted(sources, key=lambda source: source.raw.filename)
    titles = choose_unique_titles({s.raw.filename: [s.raw.title, f"{s.raw.title} ({s.origin})"] for s in ordered})
    return [replace(s, raw=replace(s.raw, title=titles[s.raw.filename])) for s in ordered]


# ---------------------------------------------------------------- files and links


def _fetch_sources(path: Path, policy: Policy, tally: Tally) -> tuple[list[RulesFile], str]:
    lines = [line.strip() for line in path.read_text(encoding="utf-8-sig").splitlines()]
    urls = [line for line in lines if line and not line.startswith("#")]
    if not urls:
        raise SourceError(f"{path}: no URL in it; expected one on each line")
    pages = fetch_all(urls, folder=fetch_folder(), policy=policy)
    report(pages, tally)
    sources = []
    for page in pages.values():
        if page.path is not None:
            source = _read_pdf(page.path)
            raw = replace(source.raw, filename=page.filename, source=page.url)
            names = (
                source.raw.title,
                reference_of(source.raw.title),
                page.filename,
                Path(page.filename).stem,
                page.url,
            )
            sources.append(_make_source(raw, names, page.url))
    if not sources:
        raise SourceError(
            f"{path}: none of its {len(urls)} URLs gave a document; to see why, run "
            f"`python -m converters.web --source {path}`"
        )
    digest = hashlib.sha256("\n".join(f"{page.url} {page.sha256}" for page in pages.values()).encode())
    return _keep_distinct(sources), digest.hexdigest()


def _read_pdf(path: Path) -> RulesFile:
    own = read_own_title(path)
    title = tidy(re.sub(r"[-_]+", " ", path.stem) if own.startswith("Microsoft Word") or not tidy(own) else own)
    # `text_path` tells the conversion that offsets refer to the file's own text
    return _make_source(RawDocument(path.name, title, path, text_path=path), (title, path.stem, path.name), path.name)


def _read_office(path: Path) -> RulesFile:
    title = tidy(re.sub(r"[-_]+", " ", path.stem))
    return _make_source(RawDocument(f"{path.name}.pdf", title, original=path), (title, path.stem, path.name), path.name)


def _read_page(path: Path) -> RulesFile:
    page = run_in_worker(read_page, path)
    title = tidy(page.title) or tidy(re.sub(r"[-_]+", " ", path.stem))
    raw = RawDocument(f"{path.stem}.pdf", title, text=_join_blocks(page.blocks), html=page.markup)
    return replace(_make_source(raw, (title, path.stem, path.name), path.name), blocks=page.blocks)


_CITED = 3
"""Documents cited per candidate, best first: a person is to edit the candidate, not to shorten a long list."""
_LONGEST_EXCERPT = 600  # characters of an excerpt: a paragraph


def make_candidates(exports: Sequence[Path]) -> Iterator[dict[str, str]]:
    """Yield a proposed ground-truth row for each distinct query in exported search results.

    An export without queries gives one row per document.
    """
    seen: set[str] = set()
    for path in exports:
        try:
            rows = run_in_worker(read_candidates, path)
        except DocumentError as error:
            raise SourceError(f"{error}; expected an export of search results") from error
        if not rows:
            raise SourceError(
                f"{path}: no search results in it; expected records with content and sourcepage, or "
                '{"query": …, "results": […]}'
            )
        for candidate in rows:
            if candidate["question"] not in seen:
                seen.add(candidate["question"])
                yield candidate


def read_candidates(path: Path) -> list[dict[str, str]]:
    """Return a candidate row of ground truth for each query in a file; called in a worker."""
    data = load_json(path)
    searches = [(query, records) for query, records in _read_searches(data) if records]
    return [
        _make_candidate(query or f"What does {_name_document(records[0])} provide?", records)
        for query, records in searches
    ]


def _read_searches(data: object) -> Iterator[tuple[str, list[Record]]]:
    """Yield each query with its results, best first; records without a query are grouped by document."""
    if isinstance(data, dict) and read_string(data, "query", "question"):
        results = [record for name in ("results", "value", "documents") for record in read_records(data.get(name))]
        yield read_string(data, "query", "question"), results or list(read_records(data))
        return
    if isinstance(data, list) and any(isinstance(item, dict) and "results" in item for item in data):
        for item in data:
            yield from _read_searches(item)
        return
    grouped: dict[tuple[str, str], list[Record]] = {}
    for record in read_records(data):
        query = read_string(record, "query", "question")
        grouped.setdefault((query, "" if query else make_document_key(record)), []).append(record)
    for (query, _), group in grouped.items():
        yield query, group


def _make_candidate(question: str, records: list[Record]) -> dict[str, str]:
    cited = list(dict.fromkeys(_make_citation(record) for record in records))[:_CITED]
    return {
        "question": question,
        "truth": " ".join([_cut_excerpt(cut_body(_read_content(records[0]))), *cited]),
        "source_type": kind_of(_name_document(records[0])),
        "category": read_string(records[0], "category"),
    }


def _read_content(record: Record) -> str:
    return read_string(record, "content") or next(
        (read_string(r, "content") for r in read_records(record.get("chunks"))), ""
    )


def _name_document(record: Record) -> str:
    """Return the name by which a citation refers to a document: `Part 36`, or the whole name if it has no number."""
    name = restore_full_name(make_document_key(record), read_string(record, "sourcepage"))
    return reference_of(name) or name


def _make_citation(record: Record) -> str:
    document, section = _name_document(record), read_string(record, "sourcepage")
    mark = document if section in {"", document} else f"{document}#page={section}"
    # brackets inside would end the citation early
    return "[" + mark.replace("[", "(").replace("]", ")") + "]"


def _cut_excerpt(text: str) -> str:
    """Return the first whole sentences of a text, as many as fit into an excerpt.

    Square brackets become round ones, because they would look like citations.
    """
    flat = re.sub(r"\s+", " ", re.sub(r"^-+$", "", text, flags=re.MULTILINE)).strip()
    flat = flat.replace("[", "(").replace("]", ")")
    if len(flat) <= _LONGEST_EXCERPT:
        return flat
    cut = flat[:_LONGEST_EXCERPT]
    end = max(cut.rfind(mark) for mark in (". ", "; ", "? "))
    return cut[: end + 1] if end > _LONGEST_EXCERPT // 3 else cut[: cut.rfind(" ")] + " …"
