"""ContractNLI: 607 non-disclosure agreements, 17 hypotheses each, with the sentences that decide them.

exhibit convert contractnli --out datasets_out/contractnli
"""

from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from pydantic import BaseModel, Field

from exhibit.converters import Benchmark, DatasetInfo, Download, Quote, RawDocument, RawRow, Tally, list_questions
from exhibit.converters.core.source import Release, key_by_name, read_records
from exhibit.converters.core.titles import choose_unique_titles, join_names, list_titles
from exhibit.converters.pages.chromium import split_filed_text, strip_filing
from exhibit.law.profile import date_of, kind_of, parties_of
from exhibit.schemas.errors import SourceError
from exhibit.schemas.models import Licence

INFO = DatasetInfo(
    name="contractnli",
    title="ContractNLI on its documents",
    benchmark="ContractNLI",
    summary="""Non-disclosure agreements from the web and from SEC filings, with 17 hypotheses about each; the evidence
        for every yes and no is located on the page of the agreement's PDF.""",
    expects="contract-nli/ with train.json, dev.json, test.json and raw/ (or contract-nli.zip)",
    licence=Licence(
        id="cc-by-4.0",
        name="CC BY 4.0, with terms of use",
        url="https://creativecommons.org/licenses/by/4.0/",
        redistributable=False,
        note=(
            "Every user must agree to the TERMS of the release. The agreements were written by third parties and "
            "collected from the web and from SEC filings: share them only if you have the right to."
        ),
    ),
    url="https://stanfordnlp.github.io/contract-nli/",
    version="2021-10-05",
    citation="""@inproceedings{koreeda-manning-2021-contractnli,
  title = {{ContractNLI}: A Dataset for Document-level Natural Language Inference for Contracts},
  author = {Koreeda, Yuta and Manning, Christopher D.},
  booktitle = {Findings of the Association for Computational Linguistics: EMNLP 2021},
  year = {2021},
  pages = {1907--1919},
  doi = {10.18653/v1/2021.findings-emnlp.164}
}""",
    downloads=(
        Download(
            "https://stanfordnlp.github.io/contract-nli/resources/contract-nli.zip",
            "e03fc77bbf8b53e2976a250e81d8a294bc3d5e5fb014521e477dee9340d6287b",
            65_362_913,
        ),
    ),
    headline="recall@10",
    tags=("legal", "contracts", "nda", "contractnli"),
    derived="contract-nli",
    splits=("train", "dev", "test"),
    questions="""One question per hypothesis, worded for this conversion: "Consider the {title}; {question}". Entailment
        is answered Yes, Contradiction No, and NotMentioned is impossible. The title is made of the heading and the
        parties on the first page and, if needed, the date or the file's name.""",
    limits="""
        - If the source's raw/ folder has a PDF of a document, this PDF is used. HTML and plain text from that folder
      are printed without scripts and external pictures. Otherwise the source's extracted text is printed.
        - In documents printed from the source's text, the source's offsets are converted exactly. In official
      files the words of the evidence are searched; their further locations are alternatives.
        - Many agreements are forms with blanks, and a few are in the release twice under two names.""",
)

# our wording, in the order of the source, on which ids depend
QUESTIONS = list_questions("""
    nda-11 = does the agreement forbid the receiving party to reverse engineer anything that embodies the disclosing
        party's confidential information?
    nda-16 = does the agreement oblige the receiving party to return or destroy at least some of the confidential
        information when the agreement ends?
    nda-15 = does the agreement provide that the receiving party acquires no right in the confidential information
        by it?
    nda-10 = does the agreement forbid the receiving party to reveal that the agreement was made or was being
        negotiated?
    nda-2 = does the agreement provide that nothing but technical information can be confidential information?
    nda-1 = does the agreement provide that all confidential information must be expressly identified as such by the
        disclosing party?
    nda-19 = does the agreement provide that some of its obligations may outlast its termination?
    nda-12 = does the agreement leave the receiving party free to develop, by itself, information that resembles the
        confidential information?
    nda-20 = does the agreement let the receiving party keep some confidential information even after it has
        returned or destroyed the rest?
    nda-3 = does the agreement provide that what is told by word of mouth can be confidential information?
    nda-18 = does the agreement forbid the receiving party to solicit some of the disclosing party's
        representatives?
    nda-7 = does the agreement let the receiving party pass some confidential information on to some third parties,
        such as consultants, agents or professional advisers?
    nda-17 = does the agreement let the receiving party make copies of some confidential information in some
        circumstances?
    nda-8 = does the agreement oblige the receiving party to tell the disclosing party when a law, a regulation or a
        court requires it to disclose confidential information?
    nda-13 = does the agreement leave the receiving party free to obtain, from a third party, information that
        resembles the confidential information?
    nda-5 = does the agreement let the receiving party pass some confidential information on to some of its own
        employees?
    nda-4 = does the agreement forbid the receiving party to use confidential information for any purpose that the
        agreement does not state?
""")

SPLITS = {"train": 423, "dev": 61, "test": 123}  # the release's files, and the number of documents in each
ANSWERS = {"Entailment": "Yes", "Contradiction": "No", "NotMentioned": ""}


class _Annotation(BaseModel):
    choice: str
    spans: list[int]


class _Record(BaseModel):
    file_name: str = Field(pattern=r"^[^\x00]*[^\s/\x00]\s*$")
    text: str = Field(pattern=r"\S")
    spans: list[tuple[int, int]]
    annotation_sets: list[dict[str, dict[str, _Annotation]]] = Field(min_length=1)
    document_type: str = ""
    url: str = ""


class _Contract(NamedTuple):
    split: str
    number: int  # the document's number in the full release
    record: _Record
    name: str  # of the file in raw/

    @property
    def filename(self) -> str:
        return self.name if self.name.lower().endswith(".pdf") else f"{self.name}.pdf"


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:  # noqa: ARG001
    """Read the splits and pair their documents with the files in raw/."""
    release = Release(source, INFO)
    root = release.find(*(f"{split}.json" for split in SPLITS)).parent
    contracts = list(_read_contracts(release, root, tally))
    titles = choose_unique_titles({c.filename: _list_titles(c) for c in contracts})
    files = key_by_name((path.name, path) for path in sorted((root / "raw").rglob("*")) if path.is_file())
    if not files:
        tally.note("no raw/ folder in the source, so texts are printed", root.name)
    for name in [c.name for c in contracts if files and c.name not in files]:
        tally.note("document without a file in raw/: its text is printed", name)
    return Benchmark(
        documents=[_make_document(c, titles[c.filename], files.get(c.name), release) for c in contracts],
        rows=[row for c in contracts for row in _make_rows(c, titles[c.filename], tally)],
        sha256=release.sha256,
    )


def _read_contracts(release: Release, root: Path, tally: Tally) -> Iterator[_Contract]:
    start = 0
    taken: set[str] = set()
    for split, size in SPLITS.items():
        path = root / f"{split}.json"
        if not path.is_file():
            tally.note("split that the source does not have", path.name)
            start += size
            continue
        content = release.read_json(path, lists="documents")
        if set(content.get("labels") or ()) != set(QUESTIONS):
            raise SourceError(f"{path}: its labels are not the 17 hypotheses; is this ContractNLI's release of 2021?")
        for index, record in read_records(_Record, content["documents"], path.name, tally):
            contract = _Contract(split, start + index, record, PurePosixPath(record.file_name).name)
            if contract.filename in taken:
                tally.fault("second document with the same file name", f"{path.name} {index}: {contract.filename}")
            else:
                taken.add(contract.filename)
                yield contract
        start += max(size, len(content["documents"]))


def _make_document(contract: _Contract, title: str, path: Path | None, release: Release) -> RawDocument:
    """Return a contract's PDF in raw/, or the content to print: its HTML or text in raw/, else its text in the JSON."""
    document = RawDocument(contract.filename, title, text=contract.record.text, source=contract.record.url)
    if path is None or path.suffix.lower() == ".pdf":
        return replace(document, path=path)
    page = strip_filing(release.read(path, name=f"raw/{path.name}"))
    if path.suffix.lower() in {".htm", ".html"}:
        return replace(document, html=page)
    return replace(document, blocks=split_filed_text(page))


def _make_rows(contract: _Contract, title: str, tally: Tally) -> Iterator[RawRow]:
    record, filename = contract.record, contract.filename
    for column, (key, question) in enumerate(QUESTIONS.items()):
        place = f"{contract.name}: {key}"
        annotation = record.annotation_sets[0].get("annotations", {}).get(key)
        if annotation is None or annotation.choice not in ANSWERS:
            tally.fault("hypothesis without one of the three labels", place)
            continue
        answer = ANSWERS[annotation.choice]
        quotes = tuple(_read_evidence(contract, annotation, place, tally)) if answer else ()
        if answer and not quotes:
            tally.note("answer without evidence: only its document is named", place)
            quotes = (Quote(filename, None),)
        id, words = contract.number * len(QUESTIONS) + column, f"Consider the {title}; {question}"
        labels = {"hypothesis": key, "label": annotation.choice, "split": contract.split}
        labels["document_type"] = record.document_type
        yield RawRow(id, words, answer, quotes, filename, not answer, labels, place=place)


def _read_evidence(contract: _Contract, annotation: _Annotation, place: str, tally: Tally) -> Iterator[Quote]:
    text, spans = contract.record.text, contract.record.spans
    for index in dict.fromkeys(annotation.spans):
        start, end = spans[index] if 0 <= index < len(spans) else (0, 0)
        words = text[start:end].strip() if 0 <= start < end <= len(text) else ""
        if words:
            start = text.index(words, start)
            yield Quote(contract.filename, words, ((start, start + len(words)),), (("span", index),))
        else:
            tally.leave_out("evidence that contains no words of the document", f"{place}: span {index}")


def _list_titles(contract: _Contract) -> list[str]:
    text, stem = contract.record.text, unquote(Path(contract.name).stem).strip()
    kind, parties = kind_of(text), parties_of(text)
    if not parties:
        # a form without a party's name is distinguished only by its file
        return [f"{kind} ({stem})" if kind else stem]
    title = f"{kind or 'Agreement'} {'between' if len(parties) > 1 else 'of'} {join_names(parties)}"
    return list_titles(title, date=date_of(text), stem=stem)
