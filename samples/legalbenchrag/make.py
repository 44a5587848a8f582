"""Writes benchmarks/*.json from the texts in corpus/: `python -m samples.legalbenchrag.make`.

The code below gives the words of each snippet. Its span is the first occurrence of the words in the file,
or the n-th with `nth`. Offsets count the characters of the file, including a byte order mark.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

NDA = "contractnli/Quillmere%20Mutual%20NDA%20rev2.txt"
FORM = "contractnli/brackenridge-nda-form.txt"
SPONSOR = "cuad/PELLWORTH&FINCHINC_06_11_2008-EX-10.2-SPONSORSHIP AGREEMENT.txt"
SUPPLY = "cuad/Amendment No. 1.txt"
BANK = "maud/Amendment No. 1.txt"
MERGER = "maud/Orrin Holdings Corp._Calder Group plc.pdf||Orrin Holdings Corp._Calder Group plc Amendment No. 2.txt"
TIDEPOOL = "privacy_qa/Tidepool: Habits & Streaks.txt"

Snippet = dict[str, Any]


def cut(path: str, words: str, *, nth: int = 1) -> Snippet:
    """Return a snippet with these words and the span of their `nth` occurrence in a file of the corpus."""
    text = (HERE / "corpus" / path).read_bytes().decode("utf-8")
    start = -1
    for _ in range(nth):
        start = text.find(words, start + 1)
        if start < 0:
            sys.exit(f"{path}: does not say {words!r}, {nth} times")
    return {"file_path": path, "span": [start, start + len(words)], "answer": words}


def shifted(snippet: Snippet, by: int) -> Snippet:
    """Return a snippet whose span is off, as if the text had been edited since."""
    start, end = snippet["span"]
    return {**snippet, "span": [start + by, end + by]}


def unquoted(snippet: Snippet) -> Snippet:
    """Return a snippet without the stored answer."""
    return {name: value for name, value in snippet.items() if name != "answer"}


def benchmarks() -> dict[str, list[tuple[str, list[Snippet]]]]:
    """Return the tests by the name of their benchmark: each is a question and the snippets that answer it."""
    nda = "Consider the Mutual NDA of Quillmere Optics and Harrow Vale Instruments;"
    form = "Consider the confidentiality undertaking of Brackenridge Water Trust's bidders;"
    sponsor = "Consider the Sponsorship Agreement of Pellworth & Finch and the Corran Bay Regatta Association;"
    merger = "Consider the merger agreement of Calder Group and Orrin Holdings;"
    tidepool = 'Consider "Tidepool: Habits & Streaks"\'s privacy policy;'
    purpose = "The Receiving Party shall use Confidential Information for the Purpose only."
    return {
        "contractnli": [
            (
                f"{nda} is information confidential even if nobody marked it so?",
                [cut(NDA, "whether or not it is marked as confidential.")],
            ),
            (f"{nda} what may the information be used for?", [cut(NDA, purpose, nth=2), cut(NDA, purpose)]),
            (
                f"{nda} is copying restricted?",
                [cut(NDA, "shall not copy Confidential Information without the Disclosing Party's written re(cid:84)")],
            ),
            (
                f"{nda} must information be given back?",
                [
                    cut(NDA, "5. Return. On the Disclosing Party's written request the Receiving Party shall return or "
                        "destroy all Confidential Information within thirty (30) days, "),
                    cut(NDA, "within thirty (30) days, except one copy that its legal department may keep"),
                ],
            ),
            (
                f"{form} may the bidder show the documents to its sub-contractors?",
                [cut(FORM, "will not show them to any third party, its own sub-contractors included, ")],
            ),
            (
                f"{form} must the bidder say so when a court orders disclosure?",
                [shifted(cut(FORM, "the Recipient will tell the Trust before it does so, where the law allows."), 7)],
            ),
        ],
        "cuad": [
            (
                f"{sponsor} is any party promised exclusivity?",
                [
                    cut(SPONSOR, 'the exclusive right to be named "Official Outfitter"'),
                    cut(SPONSOR, "Association shall not accept any other maker or seller of outdoor clothing as a "
                        "sponsor of the Event during the Term."),
                    cut(SPONSOR, 'the exclusive right to be named "Official Outfitter"'),
                ],
            ),
            (
                f"{sponsor} how is liability limited?",
                [cut(SPONSOR, "EACH PARTY'S LIABILITY UNDER THIS AGREEMENT IS LIMITED TO THE FEES PAID IN THE YEAR OF "
                     "THE CLAIM.")],
            ),
            (
                "Consider the amendment of Tarn Hollow Dairies' supply agreement; how much must the buyer order?",
                [unquoted(cut(SUPPLY, '"Buyer shall order at least 1,200,000 cartons in each Contract Year."'))],
            ),
            (
                "Consider the distribution agreement of Nettlecombe Tools; what law governs it?",
                [{"file_path": "cuad/Nettlecombe Tools.txt", "span": [100, 140], "answer": "the laws of Ontario"}],
            ),
        ],
        "maud": [
            (
                f"{merger} is a pandemic carved out of the definition of a material adverse effect?",
                [cut(MERGER, "(iii) any epidemic, pandemic or outbreak of disease; ")],
            ),
            (
                f"{merger} how long may the buyer take to match a better offer?",
                [cut(MERGER, "(b) If the Company receives a Superior Proposal, it shall give Parent not less than four "
                     "(4) Business Days to match it, and not less than two (2) Business Days to match each later "
                     "change of it.   ")],
            ),
            (
                "Consider the amendments of Lindqvist Bancorp's merger and of Tarn Hollow Dairies' supply agreement; "
                "what do they replace?",
                [
                    cut(BANK, "Section 8.1(b) of the Merger Agreement is amended by replacing"),
                    cut(SUPPLY, "1. Section 4.2 (Minimum Purchase) is replaced by:"),
                ],
            ),
        ],
        "privacy_qa": [
            (
                f"{tidepool} is my data sold?",
                [cut(TIDEPOOL, "We do not sell your personal data to anybody.\n", nth=2)],
            ),
            (
                f"{tidepool} who sees my data?",
                [
                    cut(TIDEPOOL, "We share your data with the providers who host the app and send our e-mails, and "
                        "with nobody else unless the law orders it.\n"),
                    cut(TIDEPOOL, "We do not sell your personal data to anybody.\n"),
                ],
            ),
            (
                f"{tidepool} is my data sold?",
                [cut(TIDEPOOL, "We do not sell your personal data to anybody.\n")],
            ),
        ],
    }  # fmt: skip


def main() -> None:
    """Write the JSON files of the four benchmarks."""
    for name, tests in benchmarks().items():
        records = [{"query": query, "snippets": snippets} for query, snippets in tests]
        text = json.dumps({"tests": records}, ensure_ascii=False, indent=1)
        (HERE / "benchmarks").mkdir(exist_ok=True)
        (HERE / "benchmarks" / f"{name}.json").write_text(text + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
