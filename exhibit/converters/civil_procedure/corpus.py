"""The documents of a CPR corpus (PDFs, and exports of a search index), and the citations of answers that name them."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

from exhibit.converters import PAST_A_LIMIT, UNREADABLE, Block, Item, RawDocument, Tally
from exhibit.converters.core.source import key_by_name
from exhibit.converters.core.titles import choose_unique_titles, read_own_title
from exhibit.converters.pages.fetch import Policy, fetch_all, report
from exhibit.converters.pages.text_pdf import make_printable
from exhibit.engine import run_in_worker
from exhibit.engine.limits import limit_reading
from exhibit.evidence import Document, Span, read_document
from exhibit.evidence.readers.pdf import LineType
from exhibit.law.citations import BRACKETED
from exhibit.law.names import keep_letters, make_file_key, normalise_name, tidy
from exhibit.law.references import find_references
from exhibit.law.structure import read_structure
from exhibit.law.structure.lines import Outline
from exhibit.schemas.errors import DocumentError, LimitError, SourceError, escape_surrogates
from exhibit.schemas.layout import fit_name
from exhibit.schemas.parsing import explain_read_errors, parse_json, read_beside
from exhibit.storage.atomic import list_files, list_left_out

Record = Mapping[str, object]
CPR, PD, GUIDE = "CPR", "PD", "Court Guide"  # the source's own names for the kinds of documents

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
    """Return the documents in a file or a folder, without the questions, and a line with each file's checksum."""
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
    # the title in an export may be only a number, but the text begins with the whole name
    words = [_LETTER_APART.sub(r"\1\2", name) for name in names]
    after = [name.removeprefix(number).strip(" –—:-") for name in words if (number := reference_of(name))]
    return RulesFile(raw, tuple(filter(None, dict.fromkeys((*names, reference_of(raw.title), *after)))), origin)


def read_pdf_title(path: Path) -> str:
    """Return a PDF's title, or words from its file name if it has no title or only one from Word."""
    title = tidy(read_own_title(path))
    return title if title and not title.startswith("Microsoft Word") else tidy(re.sub(r"[-_]+", " ", path.stem))


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
            numbered.append(
                (int(number[1]) if number else 0, _CHUNK_HEAD.sub("", read_string(part, "content")).strip())
            )
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


def restore_full_name(name: str, section: str) -> str:
    """Return a document's name as it was before the exporter cut it at 100 characters and replaced `:` by `_`."""
    mangled = re.sub(r'[<>:"/\\|?*]', "_", section)
    for start in range(max(0, len(name) - 200), len(name)):  # the section's part is shorter than 200 characters
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


def read_candidates(path: Path) -> list[dict[str, str]]:
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
    text = re.sub(r"^-+$", "", _CHUNK_HEAD.sub("", read_string(records[0], "content")), flags=re.MULTILINE)
    excerpt = shorten(text, 600, placeholder=" …")
    # square brackets mark citations
    brackets = str.maketrans("[]", "()")
    marks = [f"[{name.translate(brackets)}]" for name in list(dict.fromkeys(cited))[:3]]  # a person edits the row
    truth = " ".join([excerpt.translate(brackets), *marks])
    category = read_string(records[0], "category")
    return {"question": question, "truth": truth, "source_type": kind_of(names[0]), "category": category}


_UNSAID = frozenset("chapter section sub-section subsection rule rules r rr s para paras paragraph paragraphs".split())
"""Words before a number that a citation may omit or exchange: `5.9` equals `Section 5.9`."""
_LABEL = re.compile(
    r"(?:(?P<kind>part|chapter|sub-?section|section|annexe?|appendix|schedule|rules?|rr?|paras?|paragraphs?|s)\b\.?\s*"
    r"(?P<worded>[A-Z]\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*|\d+[A-Z]{0,2}(?:\.\d+[A-Z]?)*|[A-Z]|[IVX]+)(?![A-Za-z0-9])"
    r"|(?P<lettered>[A-Z](?:\.(?=\s)|\.?\d+[A-Z]?(?:\.\d+[A-Z]?)*(?![A-Za-z0-9])))"
    r"|(?P<bare>\d{1,3}[A-Z]{0,2}(?:\.\d+[A-Z]?)*)(?=\.[A-Z]|\W|$))"
    r"\s*(?:\([^)]{1,6}\)\s*)*[.:–—-]*\s*",
    re.IGNORECASE,
)


class Name(NamedTuple):
    """The parts of a heading: `Appendix B: Specimen Directions` has the kind `appendix`, the number `B` and a title."""

    kind: str
    number: str  # in upper case, without the dot between a letter and a digit: `K.1` and `K1` are equal
    title: str


@cache
def read_name(text: str) -> Name:
    text = " ".join(text.split())
    match = _LABEL.match(text)
    kind, number = "", ""
    if match:
        kind = (match["kind"] or "").lower().replace("annexe", "annex")
        number = (match["worded"] or match["lettered"] or match["bare"]).upper().rstrip(".")
        text = text[match.end() :]
    return Name("" if kind in _UNSAID else kind, re.sub(r"^([A-Z])\.(?=\d)", r"\1", number), text.strip(" .:;,–—-…"))


def compare_names(cited: Name, heading: Name) -> float:
    """Return the similarity of a cited name and a heading, from 0 to 1; the cited title may be cut off at its end."""
    if cited.number and (cited.number, cited.kind) != (heading.number, heading.kind):
        return 0.0
    words, others = keep_letters(cited.title), keep_letters(heading.title)
    if words == others or not words:
        return float(bool(words or cited.number))
    least = 0.3 if cited.number else 0.6  # least share of a title, if its beginning is cited
    share = len(words) / len(others) if others.startswith(words) else 0.0
    return 0.8 + 0.15 * share if share >= least else 0.0


_BETWEEN = re.compile(r",\s+|(?<!\s)\s++[–—>|/-]\s+|:\s+|(?<=Guide)\s+(?=\S)|(?<=Guide \d{4})\s+(?=\S)")


def list_splits(text: str) -> list[tuple[str, str]]:
    """Return every way to split a text into a name and the name of a section, such as `Part 3` and `Costs`."""
    return [
        (text[: m.start()].strip(), text[m.end() :].strip()) for m in _BETWEEN.finditer(text) if m.end() < len(text)
    ]


class RuleHeading(NamedTuple):
    """A heading or a numbered paragraph, and its section, which includes the heading."""

    name: Name
    words: str
    section: Span


_RUNNING_HEAD = re.compile(r"(?:.*\n)?\d{1,4}")


class Layout(NamedTuple):
    text: str = ""
    pages: Sequence[Span] = ()
    headings: Sequence[RuleHeading] = ()

    def find_meant(self, text: str) -> list[tuple[RuleHeading, float]]:
        """Return the headings that a citation can mean, each with its similarity; a chapter may be wrong or missing."""
        whole = read_name(text)
        matches = self._find_alike(whole)
        if whole.number and whole.title and any(like == 1 for _, like in matches):
            return [match for match in matches if match[1] == 1]  # the whole citation is one heading with commas
        names = [name for _, below in list_splits(text) if (name := read_name(below)).number and name.title]
        return [match for name in names for match in self._find_alike(name) if match[1] == 1] or matches

    def lists(self, text: str) -> bool:
        """Return whether the start of the document, where the table of contents is, contains this numbered heading."""
        name = read_name(text)
        return bool(name.number and name.title) and keep_letters(text) in keep_letters(self.text[:60_000])

    def _find_alike(self, name: Name) -> list[tuple[RuleHeading, float]]:
        return [(heading, like) for heading in self.headings if (like := compare_names(name, heading.name))]


def layout_of(source: RulesFile) -> Layout:
    with suppress(DocumentError):  # the conversion reads the document next, and reports the error
        return run_in_worker(_read_layout, source)
    return Layout()


def _read_layout(source: RulesFile) -> Layout:
    raw = source.raw
    document = read_document(raw.path) if raw.path else Document(raw.filename, raw.text or "")
    starts = accumulate((len(f"{block.text}\n\n") for block in raw.blocks), initial=0)
    # different font heights, so that two consecutive headings are not read as one
    large = {at: LineType(at, True) for at, block in zip(starts, raw.blocks, strict=False) if block.style == "h2"}
    root = read_structure(document, Outline(large, rules=True) if raw.blocks else None)
    headings: list[RuleHeading] = []
    for section in reversed(list(root.walk())):
        if section.heading and section.kind != "clause":
            start, end = section.title
            until = _find_end(document, Span(start, section.span.end))
            if headings and document.pages and until <= end:
                until = headings[-1].section.end  # the text may begin below another heading of the same level
            words = " ".join(document.text[start:end].split())
            headings.append(RuleHeading(read_name(section.heading), words, Span(start, until)))
    return Layout(document.text, [page.span for page in document.pages], headings[::-1])


def _find_end(document: Document, span: Span) -> int:
    """Return the end of a section, before the running head of the page on which the next section begins."""
    last = document.cut_furniture(span)[-1]
    numbers = document.pages_of((last.end - 1, last.end))
    top = document.pages[numbers[0] - 1].span.start if numbers else 0
    if top > span.start and _RUNNING_HEAD.fullmatch(document.text, top, last.end):
        return Span(span.start, top).trim(document.text).end
    return last.end


_NUMBERS = re.compile(r"[\d\s,;–-]+")
_PAGES = re.compile(r"(?<!\s)\s*+(?:[,;]\s*+)?\(?\b(?:pp?\.|pages?)\s*(\d[\d\s,–-]*+)\)?\s*$", re.IGNORECASE)
_ENDED = re.compile(r"(?:[.!?:;][\"'”’)]*|\])\s*$")


class RuleCitation(NamedTuple):
    """A citation: `[Document#page=Section]`, `[Document]`, or the heading of a section with its page."""

    text: str
    document: str
    section: str = ""
    page: str = ""


def find_citations(truth: str) -> list[RuleCitation]:
    """Return the distinct citations in the brackets of an answer; other brackets mark an editor's change to a quote."""
    by_name: dict[str, RuleCitation] = {}
    for match in BRACKETED.finditer(truth):
        text = " ".join(match.group(1).split())
        # a citation follows a sentence, or contains a title of several words
        titled = re.match(r"[A-Z].*\s", text) or "#page=" in text or _ENDED.search(truth[: match.start()])
        if len(text) <= 500 and titled and re.search(r"[A-Za-z]{2}", text):
            by_name.setdefault(normalise_name(text), read_citation(text))
    return list(by_name.values())


def read_citation(text: str) -> RuleCitation:
    document, _, section = text.partition("#page=")
    page = ""
    if _NUMBERS.fullmatch(section.strip()):
        section, page = "", section.strip()
    for part in (document, section):
        if pages := _PAGES.search(part):
            page = pages[1].strip(" ,–-")
    return RuleCitation(text, _PAGES.sub("", document).strip(), _PAGES.sub("", section).strip(), page)


_GUIDES = {name: guide for guide, names in read_beside(__file__).items() for name in names}
_COURTS = re.compile(rf"\b(?:{'|'.join(sorted(_GUIDES, key=len, reverse=True))})\b")


def find_courts(text: str) -> set[str]:
    return {_GUIDES[name] for name in _COURTS.findall(normalise_name(text))}


_NO_DOCUMENT = "names no document of the corpus"
MAX_WHOLE_CHARS = 25_000  # about ten printed pages: if a longer document is cited as a whole, its gold has no location


class Resolution(NamedTuple):
    """The document and the section to which a citation refers, or the reason why it was not resolved."""

    source: RulesFile | None
    how: str | None = None
    reason: str = ""
    span: tuple[int, int] | None = None  # the section's span; None if only the document is known
    text: str = ""
    heading: str = ""
    score: float = 1.0


class Corpus:
    """Resolves a question's citations; `kind` is its source type, `fields` are its other texts, such as the court."""

    def __init__(self, sources: Sequence[RulesFile]) -> None:
        self.sources = sources
        self._named: dict[str, list[RulesFile]] = defaultdict(list)
        for source in sources:
            for name in dict.fromkeys(map(normalise_name, source.names)):
                self._named[name].append(source)
        self._guides = {source: find_courts(" / ".join(source.names)) for source in sources if source.kind == GUIDE}
        self._read_layout = cache(layout_of)

    def resolve_all(
        self, citation: RuleCitation, kind: str = "", fields: Sequence[str] = ()
    ) -> list[tuple[RuleCitation, Resolution]]:
        """Return the citations in a bracket of an answer, each with the document and section to which it refers."""
        whole = self.resolve(citation, kind, fields)
        pieces = re.split(r"\s*;\s*", citation.text) if whole.source is None else []
        parts = [(part, self.resolve(part, kind, fields)) for part in map(read_citation, pieces)]
        return parts if any(resolution.source for _, resolution in parts) else [(citation, whole)]

    def resolve(self, citation: RuleCitation, kind: str = "", fields: Sequence[str] = ()) -> Resolution:
        parts = [(citation.document, citation.section)]
        if not citation.section:
            parts += [*list_splits(citation.document), *_list_rules(citation.document)]
        for name, section in parts:
            sources = self._find_documents(name)
            sources = [source for source in sources if source.kind == kind] or sources
            if len(sources) > 1:
                return Resolution(None, reason=_list_names(sources))
            if sources:
                exact = name in [" ".join(called.split()) for called in sources[0].names]
                resolution = self._resolve_section(sources, section, citation, "exact" if exact else "normalised")
                if resolution.span or citation.section or not section or re.search(r"\d|[Gg]uide", name):
                    return resolution
        if citation.section:
            return Resolution(None, reason=_NO_DOCUMENT)
        return self._resolve_heading(citation, kind, fields)

    def _find_documents(self, name: str) -> list[RulesFile]:
        """Return the documents with this name, else with its number and half of its title, else of its court."""
        plain = normalise_name(name)
        number = reference_of(plain)
        title = set(plain.removeprefix(number).split())
        known = self._named.get(number, []) if number and title else []
        half = len(title) / 2
        numbered = [s for s in known if len(title & {*" ".join(map(normalise_name, s.names)).split()}) >= half]
        courts = find_courts(name) if re.search(r"\bguide(?: \d{4})?$", plain) else set()
        return self._named.get(plain) or numbered or self._list_guides(courts)

    def _list_guides(self, courts: set[str]) -> list[RulesFile]:
        return [guide for guide, own_courts in self._guides.items() if courts & own_courts]

    def _resolve_heading(self, citation: RuleCitation, kind: str, fields: Sequence[str]) -> Resolution:
        """Resolve a heading cited without a document, in the guide of the row's court, else in all documents."""
        texts = (citation.document if "uide" in citation.document else "", " / ".join(fields), kind)
        courts = next(filter(None, map(find_courts, texts)), set())
        phrases = [f"{normalise_name(field)} guide" for field in fields]  # also for courts that are not in the map
        named = [source for source in self.sources if any(p in normalise_name(source.raw.title) for p in phrases)]
        guides = self._list_guides(courts) or named
        if not guides and (courts or (kind == GUIDE and fields)):
            missing = ", ".join(sorted(courts)) or f"the guide of {fields[0]}"
            return Resolution(None, reason=f"{_NO_DOCUMENT}: {missing} is not in it")
        resolution = self._resolve_section(guides or self.sources, citation.document, citation, "section")
        if resolution.source and not guides and not read_name(citation.document).number:
            reason = f"{_NO_DOCUMENT} with certainty: it is a heading in {resolution.source.raw.filename}"
            return Resolution(None, reason=reason)
        return resolution

    def _resolve_section(
        self, sources: Sequence[RulesFile], section: str, citation: RuleCitation, how: str
    ) -> Resolution:
        """Resolve a section in one of these documents; an empty section means the whole document."""
        if not section:
            return self._resolve_whole(sources[0], citation.page, how)
        matches = [(source, *match) for source in sources for match in self._read_layout(source).find_meant(section)]
        top = max((like for *_, like in matches), default=0)
        best = [match for match in matches if match[-1] == top]
        holders = list(dict.fromkeys(source for source, *_ in best))
        if not holders and how == "section":
            holders = [source for source in sources if self._read_layout(source).lists(section)]
        if len(holders) > 1:
            return Resolution(None, reason=_list_names(holders))
        if not holders:
            return Resolution(None, reason=_NO_DOCUMENT) if how == "section" else Resolution(sources[0], how)
        [source] = holders
        if len({heading.section.start for _, heading, _ in best}) != 1:
            return Resolution(source, how)  # a heading such as "General" occurs in every chapter
        _, heading, like = best[0]
        text = self._read_layout(source).text[slice(*heading.section)]
        return Resolution(source, how, span=heading.section, text=text, heading=heading.words, score=like)

    def _resolve_whole(self, source: RulesFile, page: str, how: str) -> Resolution:
        """Resolve a citation without a section: to the cited pages or, in a short document, to the whole document."""
        layout = self._read_layout(source)
        start, end = 0, len(layout.text)
        pages = [int(number) for number in re.findall(r"(?<!\d)\d{1,9}(?!\d)", page)]
        if pages and layout.pages:
            spans = layout.pages[pages[0] - 1 : min(max(pages), pages[0] + 4)]  # a longer range only names its start
            start, end = (spans[0].start, spans[-1].end) if spans else (0, 0)
        elif end > MAX_WHOLE_CHARS:
            return Resolution(source, how)
        span = Span(start, end).trim(layout.text)
        text = layout.text[slice(*span)]
        return Resolution(source, how, span=span if text else None, text=text, heading=text.partition("\n")[0].strip())


def _list_rules(name: str) -> Iterator[tuple[str, str]]:
    for reference in find_references(name):
        number = ".".join(reference.path[:2])
        if reference.kind == "rule" and len(reference.path) > 1:
            yield f"Part {reference.path[0]}", number
        elif reference.kind == "direction" and reference.path:
            yield f"Practice Direction {reference.source}", number


def _list_names(sources: Collection[RulesFile]) -> str:
    return f"names {len(sources)} documents: {', '.join(sorted(source.raw.filename for source in sources))}"
