"""CUAD v1: 510 commercial contracts, each with lawyers' quotes for 41 kinds of clause.

exhibit convert cuad --out datasets_out/cuad
"""

import ast
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from exhibit.converters import (
    CC_BY,
    Benchmark,
    DatasetInfo,
    Download,
    Quote,
    RawDocument,
    RawRow,
    Tally,
    list_questions,
)
from exhibit.converters.core.source import Release, key_by_name
from exhibit.converters.core.titles import ask_titles, choose_unique_titles, join_names, list_titles, pair_files
from exhibit.evidence.read import read_within
from exhibit.law.names import tidy
from exhibit.schemas.errors import SourceError

INFO = DatasetInfo(
    name="cuad",
    title="CUAD on its PDFs",
    benchmark="Contract Understanding Atticus Dataset (CUAD) v1",
    summary="""Commercial contracts filed with the SEC, with questions about 41 clauses that lawyers look for; every
        clause that a contract has is quoted, and located on the page of the contract's PDF.""",
    expects="CUAD_v1/ with master_clauses.csv and full_contract_pdf/ (or CUAD_v1.zip)",
    licence=CC_BY,
    url="https://zenodo.org/records/4595826",
    version="1",
    citation="""@inproceedings{hendrycks2021cuad,
  title = {CUAD: An Expert-Annotated NLP Dataset for Legal Contract Review},
  author = {Hendrycks, Dan and Burns, Collin and Chen, Anya and Ball, Spencer},
  booktitle = {NeurIPS Datasets and Benchmarks},
  year = {2021}
}""",
    downloads=(
        Download(
            "https://zenodo.org/records/4595826/files/CUAD_v1.zip",
            "88b694d99007d39777fa44cd72daf8297773d285dc3eab0091ba32078888d18e",
            105_883_672,
        ),
    ),
    headline="recall@10",
    tags=("legal", "contracts", "cuad"),
    annotations=("expert-generated",),
    derived="cuad",
    questions="""One question per clause, worded for this conversion: "Consider the {title}; {question}". The title
        is made of the source's Document Name and Parties, and, if needed, the date and the file's name.""",
    limits="""
        - If the words of a quote occur more than once, the other locations are alternatives.
        - Contracts that are one of several versions or parts are left out, unless --keep-ambiguous is given.
        - A clause without a quote counts as impossible; bundle.json lists those clauses that still have an answer.
        - The contracts are in English, most of them under the law of a state of the US.""",
)

# our wording, in the order of the source, on which ids depend
QUESTIONS = list_questions("""
    Document Name = what is the document called?
    Parties = who are the parties to it?
    Agreement Date = what date does it bear?
    Effective Date = from what date does it take effect?
    Expiration Date = when does its initial term come to an end?
    Renewal Term = for how long does it renew or extend once the initial term is over?
    Notice Period To Terminate Renewal = how much notice must a party give to stop it from renewing?
    Governing Law = which state's or country's law governs it?
    Most Favored Nation = must one party be given terms at least as good as those offered to any third party, for
        example on price or technology?
    Competitive Restriction Exception = what exceptions or carve-outs soften its non-compete, exclusivity or
        no-solicit duties?
    Non-Compete = is a party restrained from competing with the other, or from working in some business, place or
        sector?
    Exclusivity = does a party commit to deal exclusively with the other, or to keep away from others for certain
        goods, rights or territory?
    No-Solicit Of Customers = is a party barred from soliciting or contracting with the other's customers or
        partners?
    No-Solicit Of Employees = is a party barred from soliciting or hiring the other's employees or contractors?
    Non-Disparagement = must a party refrain from disparaging the other?
    Termination For Convenience = may a party end it without cause, merely by giving notice?
    Rofr/Rofo/Rofn = does a party have a right of first refusal, first offer or first negotiation?
    Change Of Control = does a merger, sale of shares or other change of control of a party let the other end it, or
        require notice or consent?
    Anti-Assignment = does assigning it to a third party require notice or consent?
    Revenue/Profit Sharing = must one party share revenue or profit with the other?
    Price Restrictions = is a party limited in raising or lowering the prices of what it provides?
    Minimum Commitment = must a party buy, order or pay a minimum amount or number of units?
    Volume Restriction = is there a cap or a surcharge when use or volume passes a threshold?
    Ip Ownership Assignment = does intellectual property made by one party become the property of the other?
    Joint Ip Ownership = is any intellectual property owned by the parties jointly?
    License Grant = does one party grant the other a licence?
    Non-Transferable License = is a licensee limited in transferring its licence to somebody else?
    Affiliate License-Licensor = does a licence cover intellectual property of the licensor's affiliates?
    Affiliate License-Licensee = does a licence extend to the licensee's affiliates, or let it sublicense to them?
    Unlimited/All-You-Can-Eat-License = is there an enterprise-wide or unlimited-use licence?
    Irrevocable Or Perpetual License = is any licence irrevocable or perpetual?
    Source Code Escrow = must source code be deposited in escrow, and released to the other party on some event?
    Post-Termination Services = what must a party still do after it has ended, such as winding down, paying or
        handing over?
    Audit Rights = may a party audit the other's books, records or premises?
    Uncapped Liability = is a party's liability unlimited for some breach, such as of confidentiality or of
        intellectual property?
    Cap On Liability = is a party's liability limited, in amount, in kind or in the time for bringing a claim?
    Liquidated Damages = does a breach or an early end cost a party liquidated damages or a termination fee?
    Warranty Duration = for how long does any warranty against defects last?
    Insurance = must a party carry insurance for the benefit of the other?
    Covenant Not To Sue = does a party promise not to contest the other's intellectual property, or not to bring
        claims unrelated to the contract?
    Third Party Beneficiary = does somebody who is not a party benefit from it and may enforce it?
""")

_AMBIGUOUS = re.compile(r"agreement[234](?!\d)|(?P<part>part) ?[12](?!\d)", re.IGNORECASE)
_ALIAS = re.compile(r"\s{0,50}[(\[][^()\[\]]*[)\]]\s*")
_COLLECTIVE = re.compile(r"\b(each|collectively|individually|together|hereinafter)\b", re.IGNORECASE)


def add_arguments(parser: ArgumentParser) -> None:
    keep = "keep contracts that are one of several versions or parts (agreement2, part1 …)"
    parser.add_argument("--keep-ambiguous", action="store_true", help=keep)
    titles = "make titles by rule, or by an OpenAI-compatible server (OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL)"
    parser.add_argument("--titles", choices=["rule", "llm"], default="rule", help=titles)


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read master_clauses.csv and pair its rows with the PDFs."""
    release = Release(source, INFO)
    table = release.find("master_clauses.csv")
    wanted = ["Filename", *QUESTIONS, *(f"{clause}-Answer" for clause in QUESTIONS)]
    # the release has a superfluous space in one header: "Notice Period To Terminate Renewal- Answer"
    records = release.read_csv(table, wanted, header=lambda name: name.strip().replace("- Answer", "-Answer"))
    files = _pair(records, table.parent / "full_contract_pdf", tally)
    # make titles unique in the whole source, so that filters and limits change no title
    titles = choose_unique_titles({path.name: _list_titles(records[row], path) for row, path in files.items()})
    for row, path in () if options.keep_ambiguous else list(files.items()):
        match = _AMBIGUOUS.search(path.stem)
        if match and (match["part"] or "amend" not in titles[path.name].lower()):
            tally.leave_out("ambiguous contract: one of several versions or parts", path.name)
            del files[row]
    files = dict(list(files.items())[: options.max_documents])
    if options.titles == "llm":
        chosen = ask_titles({path.name: read_within(path).text for path in files.values()})
        titles = choose_unique_titles({name: [title, f"{title} ({Path(name).stem})"] for name, title in chosen.items()})
    return Benchmark(
        documents=[RawDocument(path.name, titles[path.name], path) for path in files.values()],
        rows=[r for row, path in files.items() for r in _make_rows(row, records[row], path, titles[path.name], tally)],
        sha256=release.sha256,
    )


def _pair(records: list[dict[str, str]], folder: Path, tally: Tally) -> dict[int, Path]:
    """Return the PDF of each row; the two names may differ in case, spaces, quotes, `&`, accents and length."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".pdf" and path.is_file())
    if not paths:
        raise SourceError(f"{folder}: no PDF in it; expected {INFO.expects}, from {INFO.url}")
    names = [record["Filename"] for record in records]
    files, similar = pair_files(names, key_by_name((path.name, path) for path in paths).values())
    for row in similar:
        tally.note("PDF paired with its row by a similar name", f"{names[row]} -> {files[row].name}")
    for row, name in enumerate(names):
        if row not in files:
            tally.fault("no PDF for the contract, or another row has it", name or f"row {row}")
    return dict(sorted(files.items()))


def _list_titles(cells: dict[str, str], path: Path) -> list[str]:
    name = tidy(cells["Document Name-Answer"]) or path.stem
    parties = join_names(split_party_names(cells["Parties-Answer"]))
    title = f"{name} between {parties}" if " and " in parties else f"{name} of {parties}" if parties else name
    date = cells["Agreement Date-Answer"].strip() or cells["Effective Date-Answer"].strip()
    return list_titles(title, date="" if "[" in date else date, stem=path.stem)


def split_party_names(answer: str) -> list[str]:
    """Return the names in a cell like `Acme Inc. ("Buyer"); Bolt Ltd. ("Seller")("Party", together "Parties")`."""
    names: list[str] = []
    for part in answer.split(";"):
        if _COLLECTIVE.search(_ALIAS.split(part)[0]) or re.match(r"\s*\(", part):
            continue
        # leave out `A and B (each a "Party")`, which only repeats names
        if _COLLECTIVE.search(part) and " and " in _ALIAS.split(part)[0] and names:
            continue
        names += filter(None, [tidy(_ALIAS.sub(" ", part))])
    return list(dict.fromkeys(names))


def _make_rows(row: int, cells: dict[str, str], path: Path, title: str, tally: Tally) -> Iterator[RawRow]:
    for column, (clause, question) in enumerate(QUESTIONS.items()):
        place = f"{path.name}: {clause}"
        try:
            quotes = quotes_of(cells[clause])
        except ValueError:
            tally.fault("cell is not a list of quotes", place)
            continue
        answer = cells[f"{clause}-Answer"].strip()
        if not quotes and answer and answer != "No":
            tally.note("answer without a quote, so counted as impossible", f"{place}: {answer}")
        id, words = row * len(QUESTIONS) + column, f"Consider the {title}; {question}"
        gold = tuple(Quote(path.name, text) for text in quotes)
        labels = {"clause": clause, "contract": path.stem, "answer": answer}
        yield RawRow(id, words, answer or "; ".join(quotes), gold, path.name, not quotes, labels, place=place)


def quotes_of(cell: str) -> list[str]:
    """Return the quotes of a cell, which contains a Python list as a string; raise ValueError if it does not."""
    try:
        value = ast.literal_eval(cell.strip() or "[]")
        # skip empty quotes; a repeated quote is one passage
        return [text for text in dict.fromkeys(value) if text.strip()]
    except (ValueError, SyntaxError, TypeError, AttributeError, MemoryError, RecursionError) as error:
        raise ValueError("it is not a Python list of strings") from error
