"""ContractNLI: 607 non-disclosure agreements, 17 hypotheses each, with the sentences that decide them.

python -m converters.contractnli --out datasets_out/contractnli
"""

import hashlib
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from pydantic import BaseModel, Field, ValidationError

from exhibit.converters import Benchmark, Quote, RawDocument, RawRow, Tally, read_info
from exhibit.converters.printing.press import split_filed_text, strip_filing
from exhibit.converters.raw.source import find_one, key_by_name, read_json
from exhibit.converters.raw.titles import choose_unique_titles, join_names
from exhibit.converters.steps.cli import main
from exhibit.law.opening import date_of, kind_of, parties_of
from exhibit.schemas.errors import SourceError

INFO = read_info(__file__)

QUESTIONS = INFO.asked
"""Our wording of the 17 hypotheses, in the order of the source's labels."""

SPLITS = {"train": 423, "dev": 61, "test": 123}
"""The release's files, and the number of documents in each."""
ANSWERS = {"Entailment": "Yes", "Contradiction": "No", "NotMentioned": ""}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the flags that only ContractNLI needs."""
    parser.add_argument(
        "--split",
        type=_parse_splits,
        default="all",
        metavar="NAME[,NAME]",
        help="which of the source's files to take: train, dev, test, or all that are there (default: all)",
    )


def _parse_splits(text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    unknown = [name for name in names if name not in {*SPLITS, "all"}]
    if unknown:
        raise ArgumentTypeError(f"no split {unknown[0]!r}; there are {', '.join(SPLITS)}, all")
    return "all" if "all" in names else ",".join(name for name in SPLITS if name in names)


class _Annotation(BaseModel):
    choice: str
    spans: list[int]


class _Annotations(BaseModel):
    annotations: dict[str, _Annotation]


class _Record(BaseModel):
    """A document as the JSON files of the release describe it."""

    file_name: str = Field(pattern=r"^[^\x00]*[^\s/\x00]\s*$")
    text: str = Field(pattern=r"\S")
    spans: list[tuple[int, int]]
    annotation_sets: list[_Annotations] = Field(min_length=1)
    document_type: str = ""
    url: str = ""


@dataclass(frozen=True)
class _Contract:
    """A document and its position in the release."""

    split: str
    index: int
    record: _Record
    filename: str

    @property
    def name(self) -> str:
        """The base name of the document's file in the source."""
        return PurePosixPath(self.record.file_name).name


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read the splits and pair their documents with the files in raw/."""
    root = _find_root(source)
    paths = [root / f"{split}.json" for split in SPLITS if (root / f"{split}.json").is_file()]
    chosen = list(SPLITS) if options.split == "all" else options.split.split(",")
    _check_splits(root, chosen, paths, options, tally)
    data = {path.stem: path.read_bytes() for path in paths}
    contracts = list(_read_contracts(root, data, chosen, tally))
    # make titles unique over the whole source, so that neither a split nor a limit changes a title
    titles = choose_unique_titles({c.filename: list(_list_titles(c)) for c in contracts})
    contracts = [c for c in contracts if c.split in chosen][: options.limit]
    sha256 = {f"{split}.json": hashlib.sha256(content).hexdigest() for split, content in data.items()}
    files = key_by_name(sorted(path for path in (root / "raw").rglob("*") if path.is_file()))
    if not files:
        tally.note("no raw/ folder in the source, so texts are printed", root.name)
    return Benchmark(
        documents=[_make_document(c, titles[c.filename], files, sha256, tally) for c in contracts],
        rows=[row for c in contracts for row in _make_rows(c, titles[c.filename], tally)],
        sha256=sha256,
    )


# ---------------------------------------------------------------- the splits


def _find_root(source: Path) -> Path:
    names = [f"{split}.json" for split in SPLITS]
    first = next((name for name in names if any(source.rglob(name))), names[0])
    return find_one(source, INFO, first).parent


def _check_splits(root: Path, chosen: list[str], paths: list[Path], options: Namespace, tally: Tally) -> None:
    for split in chosen:
        if root / f"{split}.json" in paths:
            continue
        if options.split != "all":
            raise SourceError(f"{root}: no {split}.json in it; expected {INFO.expects}, from {INFO.url}")
        tally.note("split that the source does not have", f"{split}.json")


def _read_contracts(root: Path, data: dict[str, bytes], chosen: list[str], tally: Tally) -> Iterator[_Contract]:
    """Yield the valid documents of all splits, each with a number; count faults only in the chosen splits.

    The numbers follow the order train, dev, test. The number of the first document of a split is the same as
    in the full release, even if documents of an earlier split are missing.
    """
    start = 0
    taken: dict[str, str] = {}
    for split, size in SPLITS.items():
        records = _read_split(root / f"{split}.json", data[split]) if split in data else []
        report = tally if split in chosen else Tally()
        for index, raw in enumerate(records, start):
            place = f"{split}.json: document {index - start}"
            try:
                record = _Record.model_validate(raw)
            except ValidationError as error:
                fault = error.errors()[0]
                report.fault("document that is not in the release's form", f"{place}: {fault['loc']}: {fault['msg']}")
                continue
            filename = _make_corpus_name(record.file_name)
            if len(filename.encode()) > 255:
                report.fault("file name that is too long for a file", f"{place}: {filename}")
            elif taken.setdefault(filename, place) != place:
                report.fault("second document of one file name", f"{place}: {filename}")
            else:
                yield _Contract(split, index, record, filename)
        start += max(size, len(records))


def _read_split(path: Path, data: bytes) -> list[object]:
    content = read_json(path, data, INFO, lists="documents")
    labels = content.get("labels")
    labels = list(labels) if isinstance(labels, dict) else []
    missing = [key for key in QUESTIONS if key not in labels]
    unknown = [key for key in labels if key not in QUESTIONS]
    if missing or unknown:
        what = f"lack the hypothesis {missing[0]!r}" if missing else f"have an unknown hypothesis {unknown[0]!r}"
        raise SourceError(f"{path}: its labels {what}; is this ContractNLI's release of 2021?")
    return list(content["documents"])


# ---------------------------------------------------------------- documents


def _make_corpus_name(file_name: str) -> str:
    name = PurePosixPath(file_name).name
    return name if name.lower().endswith(".pdf") else f"{name}.pdf"


def _make_document(
    contract: _Contract, title: str, files: dict[str, Path], sha256: dict[str, str], tally: Tally
) -> RawDocument:
    """Return a contract's document: its PDF in raw/, else its HTML or text in raw/, else the text in the JSON.

    A PDF is copied; HTML and text are printed to PDF. The hash of an HTML or text file is stored in `sha256`.
    """
    record, filename, path = contract.record, contract.filename, files.get(contract.name)
    if path is None:
        if files:
            tally.note("no file in raw/, so its text is printed", contract.name)
        return RawDocument(filename, title, text=record.text, source=record.url)
    if path.suffix.lower() == ".pdf":
        return RawDocument(filename, title, path, text=record.text, source=record.url)
    data = path.read_bytes()
    sha256[f"raw/{path.name}"] = hashlib.sha256(data).hexdigest()
    page = strip_filing(data)
    if path.suffix.lower() in {".htm", ".html"}:
        return RawDocument(filename, title, text=record.text, html=page, source=record.url)
    return RawDocument(filename, title, text=record.text, blocks=split_filed_text(page), source=record.url)


# ---------------------------------------------------------------- questions


def _make_rows(contract: _Contract, title: str, tally: Tally) -> Iterator[RawRow]:
    annotations = contract.record.annotation_sets[0].annotations
    if len(contract.record.annotation_sets) > 1:
        tally.note("more than one set of annotations; the first counts", contract.name)
    for column, (key, question) in enumerate(QUESTIONS.items()):
        place = f"{contract.name}: {key}"
        annotation = annotations.get(key)
        if annotation is None or annotation.choice not in ANSWERS:
            tally.fault("hypothesis without a choice of the three", place)
            continue
        impossible = annotation.choice == "NotMentioned"
        quotes = [] if impossible else list(_read_evidence(contract, annotation, place, tally))
        if not impossible and not quotes:
            tally.note("answer without evidence: only its document is named", place)
            quotes = [Quote(contract.filename, None)]
        yield RawRow(
            id=contract.index * len(QUESTIONS) + column,
            question=f"Consider the {title}; {question}",
            answer=ANSWERS[annotation.choice],
            quotes=tuple(quotes),
            filename=contract.filename,
            is_impossible=impossible,
            place=place,
            labels={
                "hypothesis": key,
                "label": annotation.choice,
                "split": contract.split,
                "document_type": contract.record.document_type,
            },
        )


def _read_evidence(contract: _Contract, annotation: _Annotation, place: str, tally: Tally) -> Iterator[Quote]:
    """Yield one quote per evidence span, without white space at its edges."""
    text, spans = contract.record.text, contract.record.spans
    for index in dict.fromkeys(annotation.spans):
        start, end = spans[index] if 0 <= index < len(spans) else (0, 0)
        if not 0 <= start < end <= len(text):
            tally.fault("evidence that is no span of the document", f"{place}: span {index}")
            continue
        words = text[start:end].strip()
        if not words:
            tally.leave_out("blank evidence", f"{place}: span {index}")
            continue
        start = text.index(words, start)
        yield Quote(contract.filename, words, ((start, start + len(words)),), (("span", index),))


# ---------------------------------------------------------------- titles


def _list_titles(contract: _Contract) -> Iterator[str]:
    """Yield candidate titles of a contract, from the shortest to the most precise."""
    text, stem = contract.record.text, unquote(Path(contract.name).stem).strip()
    kind, parties = kind_of(text), parties_of(text)
    if not parties:
        # a form that names no party is distinguished only by its file
        yield f"{kind} ({stem})" if kind else stem
        return
    title = f"{kind or 'Agreement'} {'between' if len(parties) > 1 else 'of'} {join_names(parties)}"
    yield title
    date = date_of(text)
    if date:
        title += f" dated {date}"
        yield title
    yield f"{title} ({stem})"


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
