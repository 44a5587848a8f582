"""MAUD's release: its tables and agreements, the locations of excerpts, and the names of deals."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from exhibit.converters.benchmark import DatasetInfo, Tally
from exhibit.converters.raw.source import find_one, read_csv, unpack
from exhibit.converters.raw.titles import join_names
from exhibit.evidence import Document, Match, Span, fold, locate
from exhibit.evidence.matches import chain_in_order, measure_stretch, prefer_whole_words
from exhibit.law.casing import tidy, to_title_case
from exhibit.law.figures import MONTH
from exhibit.law.names import DESCRIBED
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import quote_parts
from exhibit.storage.atomic import make_scratch_folder

MAE = "MAE Definition"
"""The deal point by which a row is assigned to its agreement."""

_MAIN = "main.csv"
_LABEL_FILES = ("MAUD_train.csv", "MAUD_dev.csv", "MAUD_test.csv")
_LABEL_COLUMNS = ("contract_name", "text", "text_type", "question", "answer")
_MADE_UP = frozenset({"abridged", "rare_answers"})
"""Label rows on shortened or invented texts, which are not evidence for an agreement."""


@dataclass
class Labels:
    """The content of MAUD's label files: which agreements have each MAE definition, and the experts' answers.

    MAE means material adverse effect.
    """

    owners: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Agreements by the key of their MAE definition."""
    verbatim: set[str] = field(default_factory=set)
    """The MAE definitions in their exact words."""
    answers: dict[tuple[str, str], dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    """Answers by question, for each agreement and deal point."""


@dataclass(frozen=True)
class Release:
    """The content of the release: the rows of its main table, its labels and its agreements."""

    rows: list[dict[str, str]]
    """The rows of main.csv by column."""
    labels: Labels
    texts: dict[str, str]
    """The agreements by name, `contract_7`; unchanged, because offsets also count the BOM."""
    sha256: dict[str, str]


def read_release(source: Path, info: DatasetInfo, columns: Collection[str], tally: Tally) -> Release:
    """Read the release from maud-main/, its data/, or data.zip in either of them."""
    with ExitStack() as stack:
        if not any(source.rglob(f"raw/{_MAIN}")) and any(source.rglob("data.zip")):  # unpack it, as in the repository
            archive, source = find_one(source, info, "data.zip"), stack.enter_context(make_scratch_folder())
            unpack(archive, source)
        main = find_one(source, info, f"raw/{_MAIN}")
        data = main.parent.parent
        tables = {name: find_one(data, info, name).read_bytes() for name in _LABEL_FILES}
        texts = {path.name: path.read_bytes() for path in sorted((data / "contracts").glob("contract_*.txt"))}
        if not texts:
            raise SourceError(
                f"{data / 'contracts'}: no contract_N.txt in it; expected {info.expects}, from {info.url}"
            )
        files = {_MAIN: main.read_bytes(), **tables}

    def read_table(name: str, wanted: Collection[str]) -> list[dict[str, str]]:
        # the release has two spaces in one header: "Fiduciary exception:  Board determination (no-shop)"
        return read_csv(Path(name), files[name], wanted, info, header=lambda cell: " ".join(cell.split()))

    return Release(
        rows=read_table(_MAIN, columns),
        labels=_read_labels(row for name in _LABEL_FILES for row in read_table(name, _LABEL_COLUMNS)),
        texts=dict(_decode_texts(texts, tally)),
        sha256={name: hashlib.sha256(content).hexdigest() for name, content in (files | texts).items()},
    )


def _read_labels(records: Iterable[dict[str, str]]) -> Labels:
    labels = Labels()
    for record in records:
        if record.get("data_type") in _MADE_UP:
            continue
        contract = Path(record["contract_name"]).stem
        point = " ".join(record["text_type"].split())
        if point == MAE:
            labels.owners[make_definition_key(record["text"])].add(contract)
            labels.verbatim.add(record["text"])
        asked = [record["question"], record.get("subquestion", "")]
        question = ", ".join(part for part in asked if part and part != "<NONE>")
        labels.answers[contract, point][question] = record["answer"]
    return labels


def _decode_texts(texts: dict[str, bytes], tally: Tally) -> Iterator[tuple[str, str]]:
    for name, data in texts.items():
        try:
            yield Path(name).stem, data.decode("utf-8")
        except UnicodeDecodeError as error:
            tally.fault("agreement is not UTF-8", f"{name}: byte {error.start}")


_PAGES = re.compile(r"(?<!\s)\s*\(\s*(pages?\s*\d[\d\s,;&–—-]*+(?:and\s+\d+)?)\s*\)\s*$", re.IGNORECASE)
"""The page mark at a cell's end, with the pages of the annotators' PDF."""
_NOTHING = frozenset({"", "n/a", "na", "nan", "none", "-"})

_FIRST_PAGE = 3000  # characters of a printed page, which contains title, parties and date
_PREAMBLE = 60_000
"""Characters of the agreement in which a name in capitals also occurs in its usual form."""
_DATE = re.compile(rf"\b{MONTH}\s+\d{{1,2}},\s+\d{{4}}\b", re.IGNORECASE)
_NAME = re.compile(
    r"\b(?:amended\s+and\s+restated\s+)?(?:agreement\s+(?:and\s+plan\s+)?of\s+(?:merger|reorganization)"
    r"(?:\s+and\s+(?:plan\s+of\s+)?(?:merger|reorganization))?"
    r"|(?:merger|transaction|business\s+combination|combination)\s+agreement)\b",
    re.IGNORECASE,
)
_AMONG = re.compile(r"\b(?:by\s+and\s+)?(?:among|between)\b\s*:?", re.IGNORECASE)
_AFTER = re.compile(rf"\bdated\b|{_DATE.pattern}|_{{5}}|\btable\s+of\s+contents\b|\bindex\b", re.IGNORECASE)
_BREAK = re.compile(r"\s*\n\s*|\s{2,}|;")
_AND = re.compile(r"^(?:and\b\s*)+|(?<!\s)(?:\s*\band){1,9}$", re.IGNORECASE)
_ASIDE = re.compile(r"\bsolely\b|\bpurposes\b|\bsections?\s+\d|^\W*$", re.IGNORECASE)
_LONGEST_NAME = 80  # characters: a longer name is a list of parties that was not split
_SHELL = re.compile(r"\b(?:merger|acquisition)\s+(?:sub|corp|co)|\bsubsidiary\b|\bmidco\b|\bsub\b", re.IGNORECASE)
"""A company formed for the merger: if there are many parties, the other names are more useful."""
_MOST = 3  # parties: if there are more, those formed for the merger are left out


@dataclass(frozen=True)
class DealPointCell:
    """The content of a table cell of MAUD: the excerpts of one agreement for one deal point, and their pages.

    A deal point is a question about a merger agreement; the table has one row per agreement.
    """

    excerpts: tuple[str, ...]
    """The texts between the `<omitted>` marks."""
    pages: str
    """The page mark without its brackets, for the labels."""


@dataclass(frozen=True)
class Excerpt:
    """One of the texts that a table cell quotes from an agreement, with its location if it was found there."""

    text: str
    match: Match | None = None
    others: tuple[Match, ...] = ()
    """Other possible locations, if the order of the cell's excerpts does not decide."""

    @property
    def span(self) -> Span | None:
        """The span of the excerpt in the agreement; None if it has no location or several."""
        return self.match.span if self.match and not self.others else None


def read_cell(cell: str) -> DealPointCell:
    """Return a cell's excerpts and page marks; there are no excerpts if the cell is empty or says `N/A`."""
    parts, pages = [], []
    for part in quote_parts(cell):
        mark = _PAGES.search(part)
        words = part[: mark.start()].strip() if mark else part.strip()
        if mark:
            pages.append(" ".join(mark.group(1).split()))
        if fold(words) and words.casefold() not in _NOTHING:
            parts.append(words)
    # the same words twice are one excerpt
    return DealPointCell(tuple(dict.fromkeys(parts)), "; ".join(pages))


def make_definition_key(cell: str) -> str:
    """Return a key that copies of a definition share despite different spaces, dashes and page marks."""
    return fold("".join(read_cell(cell).excerpts), loose=True)


def find_excerpts(cell: DealPointCell, document: Document) -> list[Excerpt]:
    """Return the excerpts of a cell with their locations in the agreement.

    If an excerpt occurs several times, the location that fits the order of the excerpts is chosen.
    """
    places = [
        sorted(prefer_whole_words(locate(text, document)), key=lambda match: match.span) for text in cell.excerpts
    ]
    located = [choices for choices in places if choices]
    # prefer close locations: a section's heading is also in the table of contents, and the one near the text is quoted
    tightest: list[Match] = min(chain_in_order(located), key=measure_stretch, default=[])
    chain = iter(tightest or [choices[0] for choices in located])
    allowed = iter(_with_room(located) or located)
    excerpts = []
    for text, choices in zip(cell.excerpts, places, strict=True):
        if not choices:
            excerpts.append(Excerpt(text))
            continue
        match = next(chain)
        excerpts.append(Excerpt(text, match, tuple(other for other in next(allowed) if other != match)))
    return _join_excerpts(_without_repeats(excerpts), document.text)


def _with_room(places: Sequence[Sequence[Match]]) -> list[list[Match]]:
    """Return `places` with only the locations at which all excerpts can follow one another in the text.

    `places` has all locations of each excerpt. Return [] if the excerpts cannot follow one another.
    """
    earliest = [0]
    for choices in places:
        ends = [match.span.end for match in choices if match.span.start >= earliest[-1]]
        if not ends:
            return []
        earliest.append(min(ends))
    latest = [max(match.span.end for choices in places for match in choices)] if places else [0]
    for choices in reversed(places):
        latest.append(max(match.span.start for match in choices if match.span.end <= latest[-1]))
    latest.reverse()
    return [
        [match for match in choices if before <= match.span.start and match.span.end <= after]
        for choices, before, after in zip(places, earliest[:-1], latest[1:], strict=True)
    ]


def _without_repeats(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    """Return the excerpts without those that repeat a part of another excerpt.

    An excerpt repeats a part of another if it occurs inside the location of the other in the agreement. Of two
    excerpts with the same location, the first is kept.
    """
    taken = [(index, excerpt.span) for index, excerpt in enumerate(excerpts) if excerpt.span]
    return [
        excerpt
        for index, excerpt in enumerate(excerpts)
        if not any(_is_inside(excerpt, index, span, other) for other, span in taken if other != index)
    ]


def _is_inside(excerpt: Excerpt, index: int, span: Span, other: int) -> bool:
    if excerpt.match is None:
        return False
    # of two equal locations keep the first
    return any(
        span.start <= match.span.start and match.span.end <= span.end and (match.span != span or other < index)
        for match in (excerpt.match, *excerpt.others)
    )


def _join_excerpts(excerpts: Sequence[Excerpt], text: str) -> list[Excerpt]:
    """Return the excerpts; those with only white space between their locations are joined, as nothing was omitted."""
    joined: list[Excerpt] = []
    for excerpt in excerpts:
        last = joined[-1] if joined else Excerpt("")
        before, after = last.match, excerpt.match
        if before and after and last.span and excerpt.span and _meet(last.span, excerpt.span, text):
            spans = (Span(last.span.start, excerpt.span.end),)
            whole = replace(before, spans=spans, score=min(before.score, after.score))
            joined[-1] = Excerpt(f"{last.text}\n{excerpt.text}", whole)
        else:
            joined.append(excerpt)
    return joined


def _meet(first: Span, second: Span, text: str) -> bool:
    return first.end <= second.start and not text[first.end : second.start].strip()


# ---------------------------------------------------------------- titles


def titles_of(text: str, *, deal: str, stem: str) -> Iterator[str]:
    """Yield possible titles of a merger agreement, each longer and more specific than the one before.

    The first has the type of agreement and the parties, the second adds the date, and the last adds the
    file's name (`stem`). The parties are taken from `deal` if the first page does not name them.
    """
    page = "".join(c for c in text[:_FIRST_PAGE] if c != "\ufeff" and c != "\u200b")
    name = _NAME.search(page)
    kind = to_title_case(" ".join(name.group().split()).upper()) if name else "Merger Agreement"
    names = [_as_usual(party, text[:_PREAMBLE]) for party in _find_parties(page[name.end() :])] if name else []
    if len(names) > 1:
        title = f"{kind} {'between' if len(names) == 2 else 'among'} {join_names(names, most=2 * _MOST)}"
    else:
        title = f"{kind} {_name_parties(deal)}"
    yield title
    date = _DATE.search(page, name.end() if name else 0)
    if date:
        title = f"{title} dated {to_title_case(' '.join(date.group().upper().split()))}"
        yield title
    yield f"{title} ({stem})"


def _find_parties(page: str) -> list[str]:
    """Return the names between `by and among` and the date or the table of contents; [] if it is not a title page."""
    among = _AMONG.search(page)
    after = _AFTER.search(page, among.end()) if among else None
    if among is None or after is None:
        return []
    names = []
    for line in _BREAK.split(page[among.end() : after.start()]):
        name = _AND.sub("", DESCRIBED.sub("", line).strip(" ,:")).strip(" ,:")
        if name and not _ASIDE.search(name):
            names.append(name)
    if len(names) == 1:
        names = re.split(r"(?<!\s)\s+and\s+", names[0], flags=re.IGNORECASE)
    if len(names) > _MOST:
        names = [name for name in names if not _SHELL.search(name)]
    return names if all(len(name) <= _LONGEST_NAME for name in names) else []


def _as_usual(name: str, text: str) -> str:
    """Return a name; if it is in capitals, use its spelling elsewhere in the text, such as `BioTelemetry, Inc.`."""
    if name.isupper():
        words = r"\s+".join(re.escape(word) for word in name.split())
        written = (" ".join(match.group().split()) for match in re.finditer(rf"\b{words}", text, re.IGNORECASE))
        name = next((other for other in written if not other.isupper() and other[:1].isupper()), name)
    return tidy(name)


def _name_parties(deal: str) -> str:
    """Return the parties from a deal's file name: `Target_Buyer.pdf` gives `between Target and Buyer`."""
    names = re.sub(r"\.pdf$", "", deal.split(" | ")[0], flags=re.IGNORECASE).split("_")
    return f"between {names[0]} and {names[1]}" if len(names) == 2 else f"of {' '.join(names)}"
