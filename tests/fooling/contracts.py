"""Three fictional contracts, questions on them with their gold, and the figures of a reply to one question."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from exhibit.evaluation.datasets import Dataset, Selection, load_datasets
from exhibit.evaluation.journal import Journal
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.outcomes import find_outcome
from exhibit.evaluation.targets import TargetOptions, open_target
from tests.rag.bundles import gold_line, write_files

Reply = tuple[str | None, Sequence[dict[str, Any]]]
Figures = dict[str, float | str | None]

TIMBER, PEAR, SHARES = "timber supply.txt", "pear licence.txt", "lighthouse shares.txt"

_SEASONS = ("in spring", "in autumn", "in winter")
_DEEDS = (
    "paint the sheds", "hire a barge", "store lamp oil", "keep geese", "cut the hedges", "sell the old nets",
    "move the crane", "open the sluice", "burn brushwood", "lend the scales", "let the loft", "dig a second well",
)  # fmt: skip


@dataclass(frozen=True)
class QuestionCase:
    """A question with the reply of an honest system: the expected answer, and the clause that supports it."""

    key: str
    question: str
    truth: str
    clause: str = ""
    file: str = TIMBER

    @property
    def document(self) -> str:
        """The text of the question's document."""
        return CONTRACTS[self.file]


QUESTIONS = {
    one.key: one
    for one in (
        QuestionCase(
            "pay",
            "When must the Buyer pay an invoice?",
            "The Buyer must pay within 30 days of receipt of the invoice.",
            "The Buyer shall pay each invoice within thirty (30) days of its receipt, provided that the Buyer may "
            "withhold any amount that it disputes in good faith and in writing.",
        ),
        QuestionCase(
            "cap",
            "What is the cap on the liability of the Supplier?",
            "EUR 250,000",
            "The total liability of the Supplier under this Agreement shall not exceed EUR 250,000 in any calendar "
            "year, whether in contract, in tort or otherwise.",
        ),
        QuestionCase(
            "risk",
            "Who insures the timber during carriage?",
            "The Supplier insures the timber during carriage.",
            "The Supplier shall insure the timber during carriage from the sawmill at Umnäs to the quay at Leith, and "
            "shall hand over the policy on request.",
        ),
        QuestionCase(
            "grant",
            "What kind of licence does the Grower receive?",
            "The Grower receives an exclusive licence.",
            "The Breeder grants to the Grower an exclusive licence to graft, grow and sell the pear Linnea in Wales "
            "and Cornwall during the Term.",
            PEAR,
        ),
        QuestionCase(
            "sublet",
            "May the Grower grant sublicences?",
            "No, the Grower may not grant sublicences.",
            "The Grower shall not grant any sublicence of the rights that it holds, except to a company that it wholly "
            "owns and for as long as it owns it.",
            PEAR,
        ),
        QuestionCase(
            "vote",
            "Which shares carry votes at a general meeting?",
            "Class A shares carry votes.",
            "Only the holders of Class A Shares may vote at a general meeting, and each such share carries three votes "
            "on a poll.",
            SHARES,
        ),
        QuestionCase(
            "law",
            "Which law governs the shareholders' agreement?",
            "The law of Scotland governs it.",
            "This Agreement and any dispute that arises out of it are governed by the law of Scotland, and the Court "
            "of Session alone hears such disputes.",
            SHARES,
        ),
        QuestionCase("training", "How many hours of safety training does the Supplier owe each year?", ""),
    )
}
ANSWERABLE = [one for one in QUESTIONS.values() if one.clause]


def _contract(title: str, parties: tuple[str, str], file: str) -> str:
    """Return a contract in which each clause that answers a question is between two clauses on other matters."""
    lines = [title, f"This Agreement is made between the {parties[0]} and the {parties[1]} on 3 May 2024."]
    own = [one.clause for one in QUESTIONS.values() if one.clause and one.file == file]
    for number, (season, deed) in enumerate(product(_SEASONS, _DEEDS)):
        lines.append(
            f"{2 * number + 1}. Without the written consent of the {parties[number % 2]}, the "
            f"{parties[1 - number % 2]} may not {deed} {season} at the {title.split()[0].lower()} yard, "
            "nor let any of its servants, agents or guests do so."
        )
        if number < len(own):
            lines.append(f"{2 * number + 2}. {own[number]}")
    return "\n\n".join([*lines, f"Signed at the harbour office for the {parties[0]} and the {parties[1]}."])


CONTRACTS: dict[str, str] = {
    TIMBER: _contract("TIMBER SUPPLY AGREEMENT", ("Supplier", "Buyer"), TIMBER),
    PEAR: _contract("PEAR TREE LICENCE AGREEMENT", ("Breeder", "Grower"), PEAR),
    SHARES: _contract("LIGHTHOUSE SHAREHOLDERS' AGREEMENT", ("Founder", "Investor"), SHARES),
}


def write_contracts(folder: Path) -> Path:
    """Write the contracts and their questions as a bundle; return its folder."""
    rows, lines = [], []
    for number, one in enumerate(QUESTIONS.values()):
        rows.append({
            "id": number, "question": one.question, "answer": one.truth or "Not found in provided documents",
            "contexts": [{"filename": one.file, "text": one.clause}], "is_impossible": not one.clause,
        })  # fmt: skip
        start = one.document.index(one.clause)
        spans = [[start, start + len(one.clause)]] if one.clause else []
        lines.append(gold_line(number, 0 if one.clause else None, one.file, spans, {}))
    return write_files(folder, CONTRACTS, rows, lines)


def passage(text: str, file: str | None) -> dict[str, Any]:
    """Return a passage in the format of a system's reply; it has no file name if `file` is None."""
    return {"text": text} if file is None else {"text": text, "filename": file}


def reply_honestly(case: QuestionCase) -> Reply:
    """Return the expected answer and its clause; a refusal if the documents do not answer."""
    if not case.clause:
        return "The documents do not say.", [passage(case.document[:300], case.file)]
    return case.truth, [passage(case.clause, case.file)]


RETRIEVAL = ("recall@10", "char_recall@8", "char_precision@8", "document_hit@1", "drm@8")


class Evaluation:
    """An evaluation of a Python function on the contracts, with the same scores as `exhibit.evaluate`."""

    def __init__(self, folder: Path) -> None:
        """Write the contracts into a folder and open them."""
        [dataset], _ = load_datasets([write_contracts(folder / "contracts")], Selection())
        self.dataset: Dataset = dataset
        self._folder, self._runs = folder, 0

    def figures(
        self, reply: Callable[[QuestionCase], Reply], selected: Sequence[QuestionCase] = ()
    ) -> dict[str, Figures]:
        """Return the figures of the given questions, or of all: the retrieval metrics and the outcome of each."""
        keys = [key for key, q in QUESTIONS.items() if q in selected or not selected]
        chosen = [case for key, case in zip(QUESTIONS, self.dataset.cases, strict=True) if key in keys]
        by_question = {q.question: q for q in QUESTIONS.values()}

        def answer(question: str) -> dict[str, Any]:
            said, passages = reply(by_question[question])
            return {"answer": said, "passages": list(passages)}

        self._runs += 1
        target = open_target("function", TargetOptions(function=answer, threads=1))
        cases = list(Journal(self._folder / f"run-{self._runs}", replace(self.dataset, cases=chosen), target).ask())
        assert not any(case.reply.error for case in cases), [case.reply.error for case in cases]
        columns = measure(cases, names=RETRIEVAL)
        figures: dict[str, Figures] = {}
        for at, (key, case) in enumerate(zip(keys, cases, strict=True)):
            scores = {name: columns[name][at] for name in RETRIEVAL}
            figures[key] = {**scores, "outcome": find_outcome(case).outcome}
        return figures
