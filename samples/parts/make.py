"""Writes questions.jsonl: questions on several clauses or agreements, answered by the quotes of samples/cuad.

python samples/parts/make.py
"""

from __future__ import annotations

import ast
import csv
import json
from pathlib import Path

HERE = Path(__file__).parent
CONTRACTS = HERE.parent / "cuad" / "CUAD_v1" / "master_clauses.csv"
LICENSE, DISTRIBUTOR, BRANDING, SUPPLY, COLLABORATION, SERVICES = range(6)
NAMES = (
    "the Tessaline software license agreement",
    "the Harrowgate distributor agreement",
    "the Lantern & Finch co-branding agreement",
    "the Verreries de Saint-Élor supply agreement",
    "the Corvane collaboration agreement",
    "the Bramblewick master services agreement",
)
PAIRS: tuple[tuple[str, str, tuple[int, int]], ...] = (
    ("Compare the governing law of {} and {}.", "Governing Law", (LICENSE, SERVICES)),
    ("Which law governs {}, and which law governs {}?", "Governing Law", (DISTRIBUTOR, SUPPLY)),
    ("Are {} and {} under the same law?", "Governing Law", (BRANDING, COLLABORATION)),
    ("When do {} and {} each expire?", "Expiration Date", (LICENSE, SERVICES)),
    ("Compare how long {} and {} last.", "Expiration Date", (DISTRIBUTOR, COLLABORATION)),
    ("On what dates were {} and {} made?", "Agreement Date", (SUPPLY, SERVICES)),
    ("How are {} and {} renewed?", "Renewal Term", (LICENSE, BRANDING)),
    ("Compare the renewal of {} with that of {}.", "Renewal Term", (DISTRIBUTOR, SERVICES)),
    ("How much notice ends {} and {} without cause?", "Termination For Convenience", (BRANDING, SERVICES)),
    ("Who may walk away for any reason from {} and from {}?", "Termination For Convenience", (LICENSE, COLLABORATION)),
    ("May {} and {} be assigned?", "Anti-Assignment", (BRANDING, COLLABORATION)),
    ("Compare the rules on assignment in {} and {}.", "Anti-Assignment", (SUPPLY, SERVICES)),
    ("What happens on a change of control under {} and under {}?", "Change Of Control", (LICENSE, SUPPLY)),
    ("Compare the change of control clauses of {} and {}.", "Change Of Control", (DISTRIBUTOR, SERVICES)),
    ("What must be bought at least under {} and under {}?", "Minimum Commitment", (SUPPLY, SERVICES)),
    ("Who may audit whose books under {} and {}?", "Audit Rights", (SUPPLY, COLLABORATION)),
    ("Compare the audit rights in {} and {}.", "Audit Rights", (LICENSE, BRANDING)),
    ("How long does the warranty last under {} and {}?", "Warranty Duration", (LICENSE, SERVICES)),
    ("Compare the warranties of {} and {}.", "Warranty Duration", (SUPPLY, SERVICES)),
    ("What insurance must be carried under {} and under {}?", "Insurance", (LICENSE, SERVICES)),
    ("How may prices rise under {} and {}?", "Price Restrictions", (DISTRIBUTOR, SUPPLY)),
    ("May employees be hired away under {} or {}?", "No-Solicit Of Employees", (DISTRIBUTOR, SERVICES)),
    ("Do {} and {} both promise the best price given to others?", "Most Favored Nation", (BRANDING, SUPPLY)),
    ("What is jointly owned under {} and {}?", "Joint Ip Ownership", (BRANDING, COLLABORATION)),
    ("Which perpetual licenses do {} and {} grant?", "Irrevocable Or Perpetual License", (BRANDING, COLLABORATION)),
    ("What rights of first refusal or offer are in {} and {}?", "Rofr/Rofo/Rofn", (DISTRIBUTOR, COLLABORATION)),
    ("What liability is without limit under {} and {}?", "Uncapped Liability", (DISTRIBUTOR, SUPPLY)),
    ("What follows the end of {} and of {}?", "Post-Termination Services", (BRANDING, SUPPLY)),
)
"""A question that names two agreements, and the clause that answers it in both."""
LISTS: tuple[tuple[str, str, int], ...] = (
    ("List every license that {} grants.", "License Grant", LICENSE),
    ("List all licenses in {}.", "License Grant", COLLABORATION),
    ("Which licenses do the parties give each other in {}?", "License Grant", BRANDING),
    ("List every minimum that must be met under {}.", "Minimum Commitment", BRANDING),
    ("What must be bought under {}, and what follows if it is not?", "Minimum Commitment", DISTRIBUTOR),
    ("List every restriction on assignment in {}.", "Anti-Assignment", LICENSE),
    ("Who may assign {}, and who may not?", "Anti-Assignment", DISTRIBUTOR),
    ("List every limit on liability in {}.", "Cap On Liability", LICENSE),
    ("List all the limits on liability and on actions in {}.", "Cap On Liability", DISTRIBUTOR),
    ("List every case of liquidated damages in {}.", "Liquidated Damages", SUPPLY),
    ("What payments do the parties share under {}?", "Revenue/Profit Sharing", BRANDING),
    ("List everything that has to be done after the end of {}.", "Post-Termination Services", DISTRIBUTOR),
    ("What does the licensor owe after the end of {}?", "Post-Termination Services", LICENSE),
    ("List all promises of exclusivity in {}.", "Exclusivity", SUPPLY),
    ("List every promise of exclusivity in {}.", "Exclusivity", DISTRIBUTOR),
    ("Where may the distributor not sell or compete under {}?", "Non-Compete", DISTRIBUTOR),
    ("List all warranties and how long they last in {}.", "Warranty Duration", DISTRIBUTOR),
)
"""A question that one agreement answers in several places."""


def main() -> None:
    """Write the questions."""
    with CONTRACTS.open(encoding="utf-8", newline="") as stream:
        contracts = list(csv.DictReader(stream))
    rows = []
    for form, clause, pair in PAIRS:
        quotes = [(contract, _quotes(contracts[contract], clause)[0]) for contract in pair]
        rows.append(_row(form.format(*(NAMES[contract] for contract in pair)), quotes, contracts))
    for form, clause, contract in LISTS:
        quotes = [(contract, quote) for quote in _quotes(contracts[contract], clause)]
        rows.append(_row(form.format(NAMES[contract]), quotes, contracts))
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (HERE / "questions.jsonl").write_text(lines, encoding="utf-8")


def _quotes(contract: dict[str, str], clause: str) -> list[str]:
    quotes: list[str] = ast.literal_eval(contract[clause])
    return [quote for quote in quotes if "<omitted>" not in quote]


def _row(question: str, quotes: list[tuple[int, str]], contracts: list[dict[str, str]]) -> dict[str, object]:
    return {
        "question": question,
        "answer": " ".join(quote for _, quote in quotes),
        "document": [contracts[contract]["Filename"] for contract, _ in quotes],
        "text": [quote for _, quote in quotes],
    }


if __name__ == "__main__":
    main()
