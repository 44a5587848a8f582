"""Build CUAD_v1, six made-up contracts in the format of CUAD's release, from the sources in contracts/.

Run `python -m samples.cuad.make` from the root of the repository. A source begins with `name: value` lines.
Then come paragraphs: `# ` is a title, `## ` a heading, `>> ` right-aligned, `^ ` centred, `| ` a table,
`===` a new page, and `*…*` underlined. Last come the labels: `@@ Clause = answer`, each followed by its
quotes. In a quote ` ... ` stands for the words between, and `! ` marks a quote that the contract
deliberately does not contain.
"""

from __future__ import annotations

import csv
import html
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from exhibit.converters.pages.chromium import Printer

_HERE = Path(__file__).parent
_OUT = _HERE / "CUAD_v1"
_CLAUSES = (_HERE / "clauses.txt").read_text(encoding="utf-8").splitlines()  # in CUAD's order
_FREE = frozenset(_CLAUSES[:8])  # these clauses are answered by a name, a date or a place; the others by Yes or No
_STRAY_SPACE = "Notice Period To Terminate Renewal"  # CUAD writes a space before this clause's "Answer"

# Each mark of a source, with its characters in the PDF and in the TXT file.
_MARKS = (
    ("---", "\u2014", "-"),  # em dash
    ("--", "\u2013", "-"),  # en dash
    ("~", "\u00a0", " "),  # no-break space
    ("\\-", "\u00ad", ""),  # soft hyphen
    ("\\|", "\u200b", ""),  # zero-width space
    ("\ufb01", "\ufb01", "fi"),  # ligatures
    ("\ufb02", "\ufb02", "fl"),
)
_EMPHASIS = re.compile(r"\*([A-Z][^*]*\.)\*")

_FACES = {
    "times": "body { font: 11.5pt/1.32 'Liberation Serif', 'Times New Roman', serif }",
    "arial": "body { font: 10pt/1.4 'Liberation Sans', Arial, sans-serif } h2 { text-align: left }",
    "verdana": "body { font: 9pt/1.5 'DejaVu Sans', Verdana, sans-serif } h2 { text-align: left }",
    "georgia": "body { font: 13px/1.4 'DejaVu Serif', Georgia, serif } h2 { text-align: left }",
    "courier": "body { font: 10pt/1.2 'Liberation Mono', 'Courier New', monospace; text-align: left }"
    " h1, h2 { font-weight: normal } td { border: 0 !important }",
}
_CSS = """
body { margin: 0; text-align: justify; hyphens: manual }
h1 { font-size: 1.15em; text-align: center; margin: 1.3em 0 1em; break-after: avoid }
h2 { font-size: 1em; text-align: center; margin: 1.3em 0 .7em; break-after: avoid }
p { margin: 0 0 .8em; orphans: 2; widows: 2 }
.right { text-align: right } .mid { text-align: center }
table { width: 100%; border-collapse: collapse; margin: 1em 0; text-align: left; break-inside: avoid }
td { padding: 4px 10px 4px 0; vertical-align: top } .sign td { width: 50% }
.grid td { border: .6pt solid #555; padding: 3px 8px } .grid tr:first-child { font-weight: bold }
"""


@dataclass(frozen=True)
class Contract:
    """One source: its settings, its paragraphs, and the answer and the quotes for each clause."""

    settings: dict[str, str]
    blocks: list[str]
    answers: dict[str, str]
    quotes: dict[str, list[str]]


def read_contract(path: Path) -> Contract:
    """Read a source file; write its shortened quotes out in full, and check that its text contains them."""
    head, _, rest = path.read_text(encoding="utf-8").partition("\n\n")
    body, *labels = re.split(r"^@@ ", rest, flags=re.MULTILINE)
    settings = {name: value.strip() for name, _, value in (line.partition(":") for line in head.splitlines())}
    blocks = [block.strip() for block in body.split("\n\n") if block.strip()]
    text = plain_text(blocks)
    answers: dict[str, str] = {}
    quotes: dict[str, list[str]] = {}
    for label in labels:
        title, *lines = label.splitlines()
        clause, _, answer = title.partition("=")
        if clause.strip() not in _CLAUSES:
            raise ValueError(f"{path.name}: no such clause: {clause.strip()}")
        answers[clause.strip()] = answer.strip()
        quotes[clause.strip()] = [_full_quote(line, text) for line in lines if line.strip()]
    return Contract(settings, blocks, answers, quotes)


def plain_text(blocks: list[str]) -> str:
    """Return the content of the TXT file: one paragraph per line, without marks and with plain characters."""
    lines = []
    for block in blocks:
        rows = [re.sub(r"^(# |## |>> |\^ |\| )", "", row) for row in block.split("\n") if row != "==="]
        lines += ["    ".join(_EMPHASIS.sub(r"\1", row).split(" | ")) for row in rows]
    text = "\n\n".join(lines) + "\n"
    for mark, _, plain in _MARKS:
        text = text.replace(mark, plain)
    return text


def _full_quote(line: str, text: str) -> str:
    sign, quote = line[:2], line[2:].strip()
    if sign == "! ":
        if quote in text:
            raise ValueError(f"in the contract after all: {quote}")
        return quote
    parts = [_expand(part.strip(), text) for part in quote.split("<omitted>")]
    return " <omitted> ".join(parts).strip()


def _expand(quote: str, text: str) -> str:
    """Return the text that a quote `A ... B` means: from A to the first B after it."""
    first, _, last = quote.partition(" ... ")
    start = text.find(first)
    end = text.find(last, start + len(first))
    stretch = text[start : end + len(last)]
    if start < 0 or end < 0 or "\n" in stretch:
        raise ValueError(f"not in the contract: {quote}")
    return stretch


def to_html(contract: Contract) -> str:
    """Return the contract as a page to print, with its paper size, type face and style of quotes."""
    curly = contract.settings["quotes"] == "curly"
    body = "\n".join(_block_html(block, curly) for block in contract.blocks)
    paper = f"@page {{ size: {contract.settings['page']} }}"
    style = f"<style>{paper} {_CSS} {_FACES[contract.settings['face']]}</style>"
    return f'<!doctype html><html lang="en"><meta charset="utf-8">{style}<body>\n{body}\n</body></html>'


def _block_html(block: str, curly: bool) -> str:
    if block.startswith("| "):
        rows = [[_typeset(cell, curly) for cell in row[2:].split(" | ")] for row in block.split("\n")]
        cells = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
        return f'<table class="{"sign" if "/s/" in block else "grid"}">{cells}</table>'
    if block == "===":
        return '<div style="break-after: page"></div>'
    kinds = (("# ", "h1", ""), ("## ", "h2", ""), (">> ", "p", "right"), ("^ ", "p", "mid"), ("", "p", ""))
    mark, tag, kind = next(k for k in kinds if block.startswith(k[0]))
    return f'<{tag} class="{kind}">{_typeset(block.removeprefix(mark), curly)}</{tag}>'


def _typeset(text: str, curly: bool) -> str:
    """Return a text as HTML with typographic characters; the TXT file and the CSV have plain characters instead."""
    for mark, printed, _ in _MARKS:
        text = text.replace(mark, printed)
    if curly:
        text = re.sub(r'(^|[\s(\[\u2013\u2014])"', "\\1\u201c", text).replace('"', "\u201d")
        text = text.replace("'", "\u2019")
    return _EMPHASIS.sub(r"<u>\1</u>", html.escape(text, quote=False))


def print_pdf(printer: Printer, contract: Contract) -> None:
    """Print the contract, with the running header and the footer that its settings ask for."""
    path = _OUT / "full_contract_pdf" / contract.settings["pdf"]
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = "width: 100%; margin: 0 22mm; text-align: center; font: 7.5pt 'Liberation Sans', sans-serif"
    top = _typeset(contract.settings["header"], curly=True)
    bottom = _typeset(contract.settings["footer"], curly=False)
    number = '<span class="pageNumber"></span>'
    footer = f'<div style="{frame}">{number}<div style="text-align: left">{bottom}</div></div>'
    printer.print_html(to_html(contract), path, header=f'<div style="{frame}">{top}</div>', footer=footer)


def write_table(contracts: list[Contract]) -> None:
    """Write master_clauses.csv: the file's name, then the 41 clauses, each with its quotes and answer."""
    header = ["Filename"]
    for clause in _CLAUSES:
        header += [clause, clause + ("- Answer" if clause == _STRAY_SPACE else "-Answer")]
    with (_OUT / "master_clauses.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(header)
        for contract in contracts:
            row = [contract.settings["csv"]]
            for clause in _CLAUSES:
                nothing = "" if clause in _FREE else "No"
                row += [repr(contract.quotes.get(clause, [])), contract.answers.get(clause, nothing)]
            table.writerow(row)


def main() -> None:
    """Delete CUAD_v1, and write its text files, its table and its PDFs."""
    contracts = [read_contract(path) for path in sorted((_HERE / "contracts").glob("*.md"))]
    shutil.rmtree(_OUT, ignore_errors=True)
    texts = _OUT / "full_contract_txt"
    texts.mkdir(parents=True)
    for contract in contracts:
        content = plain_text(contract.blocks)
        (texts / contract.settings["txt"]).write_text(content, encoding="utf-8", newline="\n")
    write_table(contracts)
    with Printer() as printer:
        for contract in contracts:
            print_pdf(printer, contract)


if __name__ == "__main__":
    main()
