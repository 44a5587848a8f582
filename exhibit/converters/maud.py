"""MAUD: 152 merger agreements, with deal points quoted by lawyers for the ABA's Public Target Deal Points Study.

exhibit convert maud --source maud-main --out datasets_out/maud
"""

import re
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

from exhibit.converters import CC_BY, Benchmark, DatasetInfo, Quote, RawDocument, RawRow, Tally, list_questions
from exhibit.converters.core.source import Release, unpack
from exhibit.converters.core.titles import choose_unique_titles, join_names, list_titles
from exhibit.evidence import Document, Match, Span, fold, locate
from exhibit.evidence.locate import chain_in_order, measure_stretch, prefer_whole_words
from exhibit.law.names import DESCRIBED, tidy, to_title_case
from exhibit.law.values import MONTH
from exhibit.schemas.errors import SourceError
from exhibit.schemas.layout import quote_parts
from exhibit.storage.atomic import make_scratch_folder

INFO = DatasetInfo(
    name="maud",
    title="MAUD on printed agreements",
    benchmark="Merger Agreement Understanding Dataset (MAUD)",
    summary="""Merger agreements between public companies, with questions on the deal points of the American Bar
        Association's Public Target Deal Points Study; the passages that lawyers chose are located on the page.""",
    expects="maud-main/ (or its zip) with data/raw/main.csv, data/MAUD_{train,dev,test}.csv and data/contracts/",
    licence=CC_BY,
    url="https://www.atticusprojectai.org/maud",
    version="1",
    citation="""@inproceedings{wang-etal-2023-maud,
  title = {MAUD: An Expert-Annotated Legal NLP Dataset for Merger Agreement Understanding},
  author = {Wang, Steven H. and Scardigli, Antoine and Tang, Leonard and Chen, Wei and Levkin, Dimitry and
    Chen, Anya and Ball, Spencer and Woodside, Thomas and Zhang, Oliver and Hendrycks, Dan},
  booktitle = {EMNLP},
  year = {2023},
  doi = {10.18653/v1/2023.emnlp-main.1019}
}""",
    by_hand="""Nothing is downloaded, because no address with fixed content is known: take data.zip from
        https://github.com/TheAtticusProject/maud and pass it, or the clone, with --source.""",
    headline="recall@10",
    tags=("legal", "contracts", "mergers", "maud"),
    annotations=("expert-generated",),
    derived="maud",
    questions="""One question per deal point, worded for this conversion: "Consider the {title}; {question}". The title
        is made of the name and parties on the agreement's first page, and, if needed, the date and the file's name. The
        answer is the excerpt; the experts' answers to more detailed questions on it are the label `answers`.""",
    limits="""
        - Agreements are printed from the source's text: pages are not those of the filing.
        - Each excerpt of a passage is one context. If its words occur more than once and the order of the excerpts does
          not decide, the location nearest to the other excerpts is gold, and the others are alternatives.
        - A deal point without an excerpt is left out, not counted as impossible.
        - contract_88 is cut short and contract_149 is another agreement: --patch shipped leaves both out.""",
)

# our wording, in the order of the source, on which ids depend
QUESTIONS = list_questions("""
    Type of Consideration = what will the target's stockholders receive for their shares?
    Accuracy of Target R&W Closing Condition = how accurate must the target's representations and warranties be for
        the buyer to have to close?
    Compliance with Covenant Closing Condition = how fully must covenants have been performed before the closing can
        be required?
    Absence of Litigation Closing Condition = is it a condition of closing that no lawsuit or proceeding against the
        deal is pending or threatened?
    Agreement includes a "Back-Door" MAE = does the target's representation that there was no material adverse
        effect let the buyer refuse to close?
    "No MAE" R&W Made as of a Specified Date = since what date does the target represent that no material adverse
        effect has occurred?
    MAE Definition = what counts as a material adverse effect, and what is carved out of it?
    Knowledge Definition = whose knowledge counts as a party's knowledge, and must they have inquired?
    No-Shop = how is the target kept from soliciting or discussing other acquisition proposals?
    Fiduciary exception: Board determination (no-shop) = what must the target's board determine before it may talk
        to an unsolicited bidder despite the no-shop?
    Fiduciary exception to COR covenant = when do the board's fiduciary duties allow it to change its recommendation
        to stockholders?
    Agreement provides for matching rights in connection with COR = may the buyer match a competing offer before the
        board changes its recommendation, and how long has it?
    Superior Offer Definition = what makes a competing proposal a superior one?
    Intervening Event Definition = what event, other than a better offer, may lead the board to change its
        recommendation?
    FTR Triggers = what allows the target to terminate in order to accept a better offer?
    Limitations on FTR Exercise = what must the target have done, or not done, before it may terminate for a better
        offer?
    Agreement provides for matching rights in connection with FTR = may the buyer match a better offer before the
        target terminates for it, and how long has it?
    Tail Period & Acquisition Proposal Details = for how long after termination can another deal still cost the
        target a termination fee?
    Breach of No Shop = may the buyer terminate and collect a fee when the target breaches the no-shop?
    Breach of Meeting Covenant = may the buyer terminate and collect a fee when the target fails to call or hold its
        stockholders' meeting?
    Ordinary course covenant = how must the target run its business between signing and closing?
    Negative interim operating covenant = what may the target not do between signing and closing without the buyer's
        consent?
    General Antitrust Efforts Standard = how hard must the parties try to obtain antitrust and other regulatory
        clearance?
    Limitations on Antitrust Efforts = which divestitures, lawsuits or other steps may the buyer refuse even if
        antitrust clearance depends on them?
    Specific Performance = may a party have the agreement specifically enforced by a court?
""")

MAE = "MAE Definition"  # "material adverse effect": this deal point shows to which agreement a row belongs

_LABEL_COLUMNS = ("contract_name", "text", "text_type", "question", "answer")
_MADE_UP = frozenset({"abridged", "rare_answers"})  # label rows on shortened or invented texts

Answers = dict[tuple[str, str], dict[str, str]]  # by agreement and deal point: the experts' answer to each question


class Excerpt(NamedTuple):
    """A text that a cell quotes from an agreement, with its location if it was found there."""

    text: str
    match: Match | None = None
    others: tuple[Match, ...] = ()  # further locations, if the order of the cell's excerpts leaves several possible

    @property
    def span(self) -> Span | None:
        """The span of the excerpt in the agreement; None if it has no location or several."""
        return self.match.span if self.match and not self.others else None


@dataclass(frozen=True)
class _Contract:
    row: int  # in main.csv
    cells: dict[str, str]
    deal: str  # its name; several lines, as for an amendment, are joined by `|`
    name: str
    text: str

    @cached_property
    def excerpts(self) -> dict[str, list[Excerpt]]:
        """The located excerpts by deal point; deal points without an excerpt are left out."""
        document = Document(f"{self.name}.txt", self.text)
        cells = {point: read_cell(self.cells[point])[0] for point in QUESTIONS}
        return {point: find_excerpts(texts, document) for point, texts in cells.items() if texts}

    @property
    def located(self) -> int:
        return sum(excerpt.match is not None for excerpts in self.excerpts.values() for excerpt in excerpts)


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read main.csv, pair its rows with the agreements, and locate each excerpt in its agreement's text."""
    release = Release(source, INFO)
    with make_scratch_folder() as folder:
        if not any(source.rglob("raw/main.csv")) and any(source.rglob("data.zip")):
            unpack(release.find("data.zip"), folder)
            release.source = folder
        table = release.find("raw/main.csv")
        # the release has two spaces in one header: "Fiduciary exception:  Board determination (no-shop)"
        rows = release.read_csv(table, ["Filename", *QUESTIONS], header=lambda cell: " ".join(cell.split()))
        owners, answers = _read_labels(release)
        paths = sorted((table.parent.parent / "contracts").glob("contract_*.txt"))
        # keep the BOM, because offsets count it
        texts = {path.stem: release.read_text(path, encoding="utf-8") for path in paths}
        if not texts:
            raise SourceError(f"{source}: no contracts/contract_N.txt; expected {INFO.expects}, from {INFO.url}")
    contracts = _pair(rows, owners, texts, tally)
    # make titles unique in the whole source, so that a limit changes no title
    titles = choose_unique_titles({c.name: titles_of(c.text, deal=c.deal, stem=c.name) for c in contracts})
    contracts = contracts[: options.max_documents]
    kept = [c for c in contracts if c.located or not c.excerpts]
    for contract in (c for c in contracts if c not in kept):
        reason = "none of the excerpts is in the agreement's text: they are from another agreement"
        tally.fault(reason, f"{contract.name}.txt")
    return Benchmark(
        documents=[RawDocument(f"{c.name}.pdf", titles[c.name], text=c.text) for c in kept],
        rows=[row for c in kept for row in _make_rows(c, f"{c.name}.pdf", titles[c.name], answers, tally)],
        sha256=release.sha256,
    )


def _read_labels(release: Release) -> tuple[dict[str, set[str]], Answers]:
    owners: dict[str, set[str]] = defaultdict(set)
    answers: Answers = defaultdict(dict)
    tables = [release.find(f"MAUD_{split}.csv") for split in ("train", "dev", "test")]
    for record in (row for path in tables for row in release.read_csv(path, _LABEL_COLUMNS)):
        if record.get("data_type") in _MADE_UP:
            continue
        contract = Path(record["contract_name"]).stem
        point = " ".join(record["text_type"].split())
        if point == MAE:
            owners[make_definition_key(record["text"])].add(contract)
        parts = (part for part in (record["question"], record.get("subquestion")) if part and part != "<NONE>")
        answers[contract, point][", ".join(parts)] = record["answer"]
    return owners, answers


def _pair(
    rows: list[dict[str, str]], owners: dict[str, set[str]], texts: dict[str, str], tally: Tally
) -> list[_Contract]:
    """Pair each row with the agreement that has its MAE definition; the numbers in `Filename (anon)` are unreliable."""
    pairs: dict[str, list[_Contract]] = defaultdict(list)
    fold_text = cache(lambda name: fold(texts[name], loose=True))
    for row, cells in enumerate(rows):
        having = owners.get(make_definition_key(cells[MAE]), set())
        if len(having) != 1:
            parts = [fold(part, loose=True) for part in read_cell(cells[MAE])[0]]
            having = {name for name in texts if parts and all(part in fold_text(name) for part in parts)}
        name = next(iter(having)) if len(having) == 1 else ""
        contract = _Contract(row, cells, " | ".join(cells["Filename"].split("\n")), name, texts.get(name, ""))
        if name in texts:
            pairs[name].append(contract)
        else:
            tally.fault("no agreement has the row's MAE definition, or several do", contract.deal or f"row {row}")
    for name in sorted(texts.keys() - pairs.keys()):
        tally.leave_out("no row for the agreement", f"{name}.txt")
    contracts = []
    for name, several in pairs.items():
        # one of the two rows for Soliton's agreement is damaged
        chosen = max(several, key=lambda contract: contract.located) if len(several) > 1 else several[0]
        contracts.append(chosen)
        for other in (contract for contract in several if contract is not chosen):
            tally.fault("second row for the same agreement", f"{other.deal}: {name}.txt")
    return sorted(contracts, key=lambda contract: contract.row)


def _make_rows(contract: _Contract, filename: str, title: str, answers: Answers, tally: Tally) -> Iterator[RawRow]:
    for column, (point, question) in enumerate(QUESTIONS.items()):
        place = f"{filename}: {point}"
        excerpts = contract.excerpts.get(point)
        if not excerpts:
            tally.leave_out("no excerpt for the deal point", place)
            continue
        if any(excerpt.others for excerpt in excerpts):
            tally.note("excerpt with several locations, which the order of the excerpts does not resolve", place)
        ticked = "; ".join(f"{subject}: {reply}" for subject, reply in answers.get((contract.name, point), {}).items())
        pages = read_cell(contract.cells[point])[1]
        labels = {"deal_point": point, "contract": contract.name, "deal": contract.deal, "pages": pages or None}
        labels["answers"] = ticked or None
        id, words = contract.row * len(QUESTIONS) + column, f"Consider the {title}; {question}"
        answer = " […] ".join(" ".join(excerpt.text.split()) for excerpt in excerpts)
        quotes = []
        for text, match, others in excerpts:
            spans, score = (match.spans, match.score) if match else ((), 1.0)
            quotes.append(Quote(filename, text, spans, alternatives=tuple(m.spans for m in others), score=score))
        yield RawRow(id, words, answer, tuple(quotes), filename, labels=labels)


_PAGES = re.compile(r"(?<!\s)\s*\(\s*(pages?\s*\d[\d\s,;&–—-]*+(?:and\s+\d+)?)\s*\)\s*$", re.IGNORECASE)
_NOTHING = frozenset({"", "n/a", "na", "nan", "none", "-"})


def read_cell(cell: str) -> tuple[tuple[str, ...], str]:
    """Return a cell's distinct excerpts, and its page marks; `N/A` does not count as an excerpt."""
    parts, pages = [], []
    for part in quote_parts(cell):
        mark = _PAGES.search(part)
        words = part[: mark.start()].strip() if mark else part.strip()
        if mark:
            pages.append(" ".join(mark.group(1).split()))
        if fold(words) and words.casefold() not in _NOTHING:
            parts.append(words)
    return tuple(dict.fromkeys(parts)), "; ".join(pages)


def make_definition_key(cell: str) -> str:
    """Return a key that is equal for copies of a definition that differ in spaces, dashes and page marks."""
    return fold("".join(read_cell(cell)[0]), loose=True)


def find_excerpts(texts: Sequence[str], document: Document) -> list[Excerpt]:
    """Return the excerpts of a cell, located so that they fit the order of the excerpts."""
    places = [sorted(prefer_whole_words(locate(text, document)), key=lambda match: match.span) for text in texts]
    located = [choices for choices in places if choices]
    # prefer close locations: a quoted heading is near its text, although the table of contents also has it
    tightest: list[Match] = min(chain_in_order(located), key=measure_stretch, default=[])
    chain = iter(tightest or [choices[0] for choices in located])
    allowed = iter(_with_room(located) or located)
    excerpts = []
    for text, choices in zip(texts, places, strict=True):
        if not choices:
            excerpts.append(Excerpt(text))
            continue
        match = next(chain)
        excerpts.append(Excerpt(text, match, tuple(other for other in next(allowed) if other != match)))
    return _join_excerpts(_without_repeats(excerpts), document.text)


def _with_room(places: Sequence[Sequence[Match]]) -> list[list[Match]]:
    """Return each excerpt's locations that leave room for the excerpts before and after it; [] if one has none."""
    room: list[list[Match]] = []
    earliest = 0
    for choices in places:
        room.append([match for match in choices if match.span.start >= earliest])
        if not room[-1]:
            return []
        earliest = min(match.span.end for match in room[-1])
    latest = max((match.span.end for choices in room for match in choices), default=0)
    for choices in reversed(room):
        choices[:] = [match for match in choices if match.span.end <= latest]
        latest = max(match.span.start for match in choices)
    return room


def _without_repeats(excerpts: Sequence[Excerpt]) -> list[Excerpt]:
    """Remove excerpts whose location is inside another excerpt's; of equal locations, the first stays."""
    taken = [(index, excerpt.span) for index, excerpt in enumerate(excerpts) if excerpt.span]
    return [
        excerpt
        for index, excerpt in enumerate(excerpts)
        if not any(
            span.start <= match.span.start and match.span.end <= span.end and (match.span != span or other < index)
            for match in ((excerpt.match, *excerpt.others) if excerpt.match else ())
            for other, span in taken
            if other != index
        )
    ]


def _join_excerpts(excerpts: Sequence[Excerpt], text: str) -> list[Excerpt]:
    """Return the excerpts; excerpts with only white space between them are joined, because nothing was omitted."""
    joined: list[Excerpt] = []
    for excerpt in excerpts:
        last = joined[-1] if joined else Excerpt("")
        before, after, match = last.span, excerpt.span, last.match
        adjacent = before and after and before.end <= after.start and not text[before.end : after.start].strip()
        if adjacent and before and after and match and excerpt.match:
            score = min(match.score, excerpt.match.score)
            whole = replace(match, spans=(Span(before.start, after.end),), score=score)
            joined[-1] = Excerpt(f"{last.text}\n{excerpt.text}", whole)
        else:
            joined.append(excerpt)
    return joined


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
_MAX_PARTY_CHARS = 80  # most characters of a party's name: a longer text is several names
_SHELL = re.compile(r"\b(?:merger|acquisition)\s+(?:sub|corp|co)|\bsubsidiary\b|\bmidco\b|\bsub\b", re.IGNORECASE)
_MAX_PARTIES = 3  # most parties; if there are more, companies formed for the merger (`_SHELL`) are omitted


def titles_of(text: str, *, deal: str, stem: str) -> list[str]:
    """Return candidate titles of a merger agreement, from the shortest to the most precise."""
    page = re.sub("[\ufeff\u200b]", "", text[:3000])  # title, parties and date are on the first page
    name = _NAME.search(page)
    kind = to_title_case(" ".join(name.group().split()).upper()) if name else "Merger Agreement"
    parties = _find_parties(page[name.end() :]) if name else []
    names = [_as_usual(party, text[:60_000]) for party in parties]  # the preamble has names in their usual form
    if len(names) > 1:
        between = f"{'between' if len(names) == 2 else 'among'} {join_names(names, most=2 * _MAX_PARTIES)}"
    else:
        # a deal's file is named `Target_Buyer.pdf`
        parties = re.sub(r"\.pdf$", "", deal.split(" | ")[0], flags=re.IGNORECASE).split("_")
        between = f"between {parties[0]} and {parties[1]}" if len(parties) == 2 else f"of {' '.join(parties)}"
    match = _DATE.search(page, name.end() if name else 0)
    date = to_title_case(" ".join(match.group().upper().split())) if match else ""
    return list_titles(f"{kind} {between}", date=date, stem=stem)


def _find_parties(page: str) -> list[str]:
    """Return the names between `by and among` and the date or table of contents; [] if the page is not a title page."""
    among = _AMONG.search(page)
    after = _AFTER.search(page, among.end()) if among else None
    if among is None or after is None:
        return []
    lines = _BREAK.split(page[among.end() : after.start()])
    names = [_AND.sub("", DESCRIBED.sub("", line).strip(" ,:")).strip(" ,:") for line in lines]
    names = [name for name in names if name and not _ASIDE.search(name)]
    if len(names) == 1:
        names = re.split(r"(?<!\s)\s+and\s+", names[0], flags=re.IGNORECASE)
    if len(names) > _MAX_PARTIES:
        names = [name for name in names if not _SHELL.search(name)]
    return names if all(len(name) <= _MAX_PARTY_CHARS for name in names) else []


def _as_usual(name: str, text: str) -> str:
    """Return a name; a name in capitals is spelt as elsewhere in the text, such as `BioTelemetry, Inc.`."""
    if name.isupper():
        words = r"\s+".join(re.escape(word) for word in name.split())
        written = (" ".join(match.group().split()) for match in re.finditer(rf"\b{words}", text, re.IGNORECASE))
        name = next((other for other in written if not other.isupper() and other[:1].isupper()), name)
    return tidy(name)
