"""A table of odd or cheating systems with their expected results.

Each row changes the honest reply, which is the expected answer with its clause as the only passage. A row
names the figures that differ from those of the honest reply; all other figures must be the same. `answers`
maps questions to answers, or is a function that returns the answer to a question. `passages` makes the
passages that replace the clause.
"""

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.fooling.contracts import (
    ANSWERABLE,
    CONTRACTS,
    QUESTIONS,
    TIMBER,
    Figures,
    QuestionCase,
    Reply,
    passage,
    reply_honestly,
)

Expected = float | str | None | Callable[[QuestionCase], float]
Passages = Callable[[QuestionCase], Sequence[dict[str, Any]]]


@dataclass(frozen=True)
class Row:
    """A system: its name, its replies, and the figures that differ from those of an honest system."""

    name: str
    answers: Mapping[str, str] | Callable[[QuestionCase], str] | None = None
    passages: Passages | None = None
    gets: Mapping[str, Expected] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    """The questions with a changed reply, if `answers` does not name them."""

    @property
    def questions(self) -> list[QuestionCase]:
        """The questions to which the system's reply differs from an honest reply."""
        keys = self.answers if isinstance(self.answers, Mapping) else self.only
        return [QUESTIONS[key] for key in keys] if keys else ANSWERABLE

    def figures(self, case: QuestionCase, honest: Figures) -> Figures:
        """Return the expected figures of a question, given the figures of an honest reply."""
        if case not in self.questions:
            return honest
        return honest | {name: value(case) if callable(value) else value for name, value in self.gets.items()}

    def reply(self, case: QuestionCase) -> Reply:
        """Return the system's reply."""
        answer, passages = reply_honestly(case)
        if case not in self.questions:
            return answer, passages
        if self.answers is not None:
            answer = self.answers[case.key] if isinstance(self.answers, Mapping) else self.answers(case)
        return answer, passages if self.passages is None else self.passages(case)


def chunk(change: Callable[[str], str]) -> Passages:
    """Return a function that returns the clause in a changed form, with the right file name."""
    return lambda case: [passage(change(case.clause), case.file)]


def name(change: Callable[[str], str | None]) -> Passages:
    """Return a function that returns the clause with a changed file name."""
    return lambda case: [passage(case.clause, change(case.file))]


def others(case: QuestionCase) -> list[str]:
    """Return the names of the documents that do not answer the question."""
    return [file for file in CONTRACTS if file != case.file]


def share_of_document(case: QuestionCase) -> float:
    """Return the clause's share of the characters in its document."""
    return len(case.clause) / len(case.document)


def proviso(case: QuestionCase) -> int:
    """Return the offset after the first comma of a clause, where its second part begins."""
    return case.clause.index(",") + 1


RIGHT: dict[str, Expected] = {}
WRONG: dict[str, Expected] = {"outcome": "wrong"}
NOT_JUDGED: dict[str, Expected] = {"outcome": "not judged"}
REFUSED: dict[str, Expected] = {"outcome": "wrongly refused"}
MISSED: dict[str, Expected] = {"recall@10": 0.0, "char_recall@8": 0.0, "char_precision@8": 0.0}
WRONG_FILE: dict[str, Expected] = {**MISSED, "document_hit@1": 0.0, "drm@8": 1.0}
ANOTHER: dict[str, Expected] = {}
UNKNOWN: dict[str, Expected] = {
    "recall@10": None, "char_recall@8": None, "char_precision@8": None,
}  # fmt: skip
ANSWERED_IMPOSSIBLE: dict[str, Expected] = {"outcome": "invented"}
LOOK_ALIKE = str.maketrans("aeopcxyAEOPC", "аеорсхуАЕОРС")

# fmt: off
WRONG_ANSWERS = [
    Row("the opposite", {
        "pay": "The Buyer need not pay within 30 days of receipt of the invoice.",
        "risk": "The Supplier does not insure the timber during carriage.",
        "grant": "The Grower does not receive an exclusive licence.",
        "sublet": "Yes, the Grower may grant sublicences.",
        "vote": "Class A shares carry no votes.",
        "law": "The law of Scotland does not govern it.",
    }, gets=WRONG),
    Row("the other party", {
        "pay": "The Supplier must pay within 30 days of receipt of the invoice.",
        "risk": "The Buyer insures the timber during carriage.",
        "grant": "The Breeder receives an exclusive licence.",
        "sublet": "No, the Breeder may not grant sublicences.",
    }, gets=WRONG),
    Row("the parties exchanged", {"risk": "The timber insures the Supplier during carriage."}, gets=NOT_JUDGED),
    Row("another currency", {"cap": "USD 250,000"}, gets=WRONG),
    Row("the sign of another currency", {"cap": "The cap is £250,000."}, gets=WRONG),
    Row("another amount", {"cap": "EUR 350,000"}, gets=WRONG),
    Row("ten times the amount", {"cap": "EUR 2,500,000"}, gets=WRONG),
    Row("the amount in thousands", {"cap": "EUR 250"}, gets=WRONG),
    Row("a percentage instead of an amount", {"cap": "250,000 per cent"}, gets=NOT_JUDGED),
    Row("a floor instead of a cap", {"cap": "The liability of the Supplier is at least EUR 250,000."}, gets=WRONG),
    Row("business days", {"pay": "The Buyer must pay within 30 business days of receipt of the invoice."}, gets=WRONG),
    Row("months, not days", {"pay": "The Buyer must pay within 30 months of receipt of the invoice."}, gets=WRONG),
    Row("another number of days", {"pay": "The Buyer must pay within 60 days of receipt."}, gets=WRONG),
    Row("before, not after", {"pay": "The Buyer must pay 30 days before receipt of the invoice."}, gets=NOT_JUDGED),
    Row("at the earliest", {"pay": "The Buyer must pay at least 30 days after receipt of the invoice."}, gets=WRONG),
    Row("allowed, not required", {"pay": "The Buyer may pay within 30 days of receipt of the invoice."}, gets=WRONG),
    Row("another class", {"vote": "Class B shares carry votes."}, gets=WRONG),
    Row("one class too many", {"vote": "Class A shares and Class B shares carry votes."}, gets=NOT_JUDGED),
    Row("another law", {"law": "The law of Norway governs it."}, gets=WRONG),
    Row("the law of a neighbouring country", {"law": "The law of England and Wales governs it."}, gets=WRONG),
    Row("non-exclusive", {"grant": "The Grower receives a non-exclusive licence."}, gets=WRONG),
    Row("non exclusive", {"grant": "The Grower receives a non exclusive licence."}, gets=WRONG),
    Row("nonexclusive", {"grant": "The Grower receives a nonexclusive licence."}, gets=WRONG),
    Row("sole and not exclusive", {"grant": "The Grower receives a sole, but not an exclusive, licence."}, gets=WRONG),
    Row("the answer and its opposite", {
        "pay": "The Buyer must pay within 30 days of receipt of the invoice. "
               "The Buyer need not pay within 30 days of receipt of the invoice.",
        "risk": "The Supplier insures the timber during carriage. The Supplier does not insure the timber "
                "during carriage.",
        "law": "The law of Scotland governs it. The law of Scotland does not govern it.",
    }, gets=WRONG),
    Row("two figures to choose from", {"cap": "EUR 250,000 or EUR 900,000"},
        gets=NOT_JUDGED),
    Row("yes and no", {"sublet": "Yes and no."}, gets=NOT_JUDGED),
    Row("the answer called untrue", {"law": "It is not true that the law of Scotland governs it."}, gets=WRONG),
    Row("the answer as a false belief", {"law": "Contrary to belief, the law of Scotland governs it."}, gets=WRONG),
    Row("the question repeated", lambda case: case.question, gets=WRONG),
    Row("the question repeated as a statement", {"cap": "The cap on the liability of the Supplier."}, gets=WRONG),
    Row("the question repeated politely", lambda case: f"You asked: {case.question}", gets=NOT_JUDGED,
        only=("pay", "cap", "risk", "grant", "vote", "law")),
    Row("the whole document as the answer", lambda case: case.document, gets=WRONG, only=("pay", "grant", "vote")),
    Row("every document as the answer", lambda case: "\n\n".join(CONTRACTS.values()), gets=WRONG, only=("pay",)),
    Row("a full stop alone", lambda case: ".", gets=WRONG),
    Row("OK", lambda case: "OK.", gets=NOT_JUDGED),
    Row("the right words in the wrong order", {
        "risk": "Carriage insures during the Supplier the timber.",
        "pay": "Receipt must pay the Buyer within the invoice of 30 days.",
    }, gets=NOT_JUDGED),
    Row("half of the answer", {"pay": "The Buyer must pay."}, gets=WRONG),
    Row("an invented exception", {"sublet": "No, the Grower may not grant sublicences except to its friends."},
        gets=NOT_JUDGED),
    Row("a question in return", lambda case: "Do you mean this agreement or another one?", gets=NOT_JUDGED,
        only=("pay", "risk", "grant", "sublet", "vote", "law")),
]

RIGHT_ANSWERS = [
    Row("the expected answer", lambda case: case.truth),
    Row("capitals", lambda case: case.truth.upper()),
    Row("small letters", lambda case: case.truth.lower()),
    Row("no full stop", lambda case: case.truth.rstrip(".")),
    Row("quotation marks", lambda case: f"“{case.truth}”"),
    Row("bold Markdown", lambda case: f"**{case.truth}**"),
    Row("a Markdown list", lambda case: f"- {case.truth}"),
    Row("HTML", lambda case: f"<p>{case.truth}</p>"),
    Row("a JSON object", lambda case: json.dumps({"answer": case.truth})),
    Row("a polite phrase before the answer", lambda case: f"Certainly! {case.truth}"),
    Row("an offer of help after the answer", lambda case: f"{case.truth} Let me know if you need anything else."),
    Row("a citation after the answer", lambda case: f"{case.truth} [1]"),
    Row("a page", lambda case: f"{case.truth} (page 3)"),
    Row("a section", lambda case: f"{case.truth} (see section 14.2)"),
    Row("a footnote", lambda case: f"{case.truth} See footnote 7."),
    Row("According to the agreement", lambda case: f"According to the agreement: {case.truth}"),
    Row("line breaks", lambda case: case.truth.replace(" ", "\n")),
    Row("no-break spaces", lambda case: case.truth.replace(" ", "\u00a0")),
    Row("zero-width marks", lambda case: "\u200b".join(case.truth)),
    Row("soft hyphens", lambda case: case.truth.replace("e", "e\u00ad")),
    Row("look-alike letters", lambda case: case.truth.translate(LOOK_ALIKE)),
    Row("wide letters", lambda case: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in case.truth)),
    Row("numbers as words", {
        "pay": "The Buyer must pay within thirty days of receipt of the invoice.",
        "cap": "Two hundred and fifty thousand euros",
    }),
    Row("words and digits", {"pay": "The Buyer must pay within thirty (30) days of receipt of the invoice."}),
    Row("a space between thousands", {"cap": "EUR 250 000"}),
    Row("the sign of the currency", {"cap": "€250,000"}),
    Row("an abbreviated amount", {"cap": "€250k"}),
    Row("the amount in millions", {"cap": "EUR 0.25 million"}),
    Row("the passive", {"risk": "The timber is insured by the Supplier during carriage."}),
    Row("a sentence around the figure", {"cap": "The liability of the Supplier is capped at EUR 250,000."}),
    Row("the key words alone", {"risk": "The Supplier", "law": "Scotland", "vote": "Class A", "grant": "Exclusive"}),
    Row("Scots law", {"law": "Scots law"}),
    Row("the clause as the answer", lambda case: case.clause),
    Row("No alone", {"sublet": "No."}),
    Row("a denial without the word no", {"sublet": "The Grower is not permitted to grant sublicences."}),
    Row("the whole rule with its exception", {
        "sublet": "No, the Grower may not grant sublicences, except to a company that it wholly owns."
    }),
]

REFUSALS = [
    Row("I don't know", lambda case: "I don't know.", gets=REFUSED),
    Row("not specified", lambda case: "The agreement does not specify this.", gets=REFUSED),
    Row("an apology", lambda case: "I'm sorry, I cannot find that information in the documents.", gets=REFUSED),
    Row("no such clause", lambda case: "There is no such clause.", gets=REFUSED),
    Row("a refusal in German", lambda case: "Dazu enthalten die Dokumente keine Angaben.", gets=REFUSED),
    Row("a refusal in French", lambda case: "Les documents ne contiennent pas cette information.", gets=REFUSED),
    Row("a refusal in zero-width marks", lambda case: "\u200b".join("I don't know."), gets=REFUSED),
    Row("a refusal with a typographic apostrophe", lambda case: "I don’t know.", gets=REFUSED),
    Row("a refusal in capitals", lambda case: "NOT FOUND IN THE PROVIDED DOCUMENTS", gets=REFUSED),
    Row("a refusal in Markdown", lambda case: "**Not found in the provided documents.**", gets=REFUSED),
    Row("the answer with an apology", {"cap": "I'm sorry to say that the cap is EUR 250,000."}),
    Row("an answer that denies", {"sublet": "No. The Grower shall not grant any sublicence."}),
    Row("a right refusal in ordinary words", {"training": "The agreement does not mention safety training."}),
    Row("a right refusal with a summary", {
        "training": "I could not find this. The agreement deals with payment, liability and carriage only."
    }),
    Row("a right refusal in German", {"training": "Das geht aus den Unterlagen nicht hervor."}),
    Row("an invented figure", {"training": "The Supplier owes 12 hours of safety training."}, gets=ANSWERED_IMPOSSIBLE),
    Row("an invented figure before a refusal", {
        "training": "The Supplier owes 12 hours of safety training each year. The documents do not say so, however."
    }, gets=ANSWERED_IMPOSSIBLE),
    Row("a refusal that answers", {
        "training": "The agreement does not specify a number, so the Supplier owes none."
    }, gets=ANSWERED_IMPOSSIBLE),
    Row("a refusal before a guess", {
        "training": "The documents do not say; it is 8 hours each year."
    }, gets=ANSWERED_IMPOSSIBLE),
    Row("a denial instead of a refusal", {"training": "The Supplier shall not be liable for training."},
        gets=ANSWERED_IMPOSSIBLE),
    Row("the question instead of a refusal", {"training": QUESTIONS["training"].question}, gets=ANSWERED_IMPOSSIBLE),
]

FORMS = [
    Row("context before the chunk", passages=chunk(
        lambda words: f"This chunk stems from a contract and sets out who does what.\n\n{words}")),
    Row("a summary before the chunk", passages=chunk(
        lambda words: f"Summary: a deal between two firms about goods, money and time.\n---\n{words}")),
    Row("a summary after the chunk", passages=chunk(lambda words: f"{words}\n\nIn short: somebody owes something.")),
    Row("HTML tags", passages=chunk(lambda words: f"<div class='c'><p>{html.escape(words)}</p></div>")),
    Row("HTML tags inside", passages=chunk(lambda words: words.replace(" the ", " <b>the</b> "))),
    Row("the chunk in a JSON object", passages=chunk(lambda words: json.dumps({"id": "c-17", "page_content": words}))),
    Row("a Markdown quotation", passages=chunk(lambda words: "> **" + words + "**")),
    Row("a Markdown link", passages=chunk(
        lambda words: words.replace("shall", "[shall](https://leases.example/a?b=c)"))),
    Row("a heading before the chunk", passages=chunk(lambda words: f"SUPPLY OF TIMBER\n## Duties\n{words}")),
    Row("a Markdown table", passages=chunk(lambda words: f"| Matter | Text |\n|---|---|\n| Wording | {words} |")),
    Row("a LaTeX table", passages=chunk(
        lambda words: "\\begin{tabular}{ll}\nWording & \\textit{" + words + "} \\\\\n\\end{tabular}")),
    Row("hyphenation", passages=chunk(lambda words: " ".join(
        f"{word[:3]}-\n{word[3:]}" if len(word) > 6 and word.isalpha() else word for word in words.split(" ")))),
    Row("a page header inside", passages=lambda case: [passage(
        case.clause[:proviso(case)] + "\n\nCONFIDENTIAL – Page 4 of 19\n\n" + case.clause[proviso(case):].strip()
        if "," in case.clause else case.clause, case.file)]),
    Row("zero-width marks in the chunk", passages=chunk(lambda words: "\u200b".join(words))),
    Row("look-alike letters in the chunk", passages=chunk(lambda words: words.translate(LOOK_ALIKE))),
    Row("capitals in the chunk", passages=chunk(str.upper)),
    Row("one word per line", passages=chunk(lambda words: words.replace(" ", "\n"))),
    Row("no spaces", passages=chunk(lambda words: words.replace(" ", ""))),
    Row("typographic letters", passages=chunk(lambda words: words.replace("fi", "ﬁ").replace("fl", "ﬂ"))),
    Row("OCR errors", passages=chunk(lambda words: words.replace("shall", "sha1l").replace("may", "rnay"))),
    Row("the chunk in two halves", passages=lambda case: [
        passage(case.clause[:len(case.clause) // 2], case.file),
        passage(case.clause[len(case.clause) // 2:], case.file)]),
    Row("the same passage 64 times", passages=lambda case: [passage(case.clause, case.file)] * 64),
    Row("no file name", passages=name(lambda file: None)),
    Row("a percent-encoded name", passages=name(lambda file: file.replace(" ", "%20"))),
    Row("a name in capitals", passages=name(str.upper)),
    Row("a name with a path", passages=name(lambda file: f"/srv/data/{file}")),
    Row("a name with a Windows path", passages=name(lambda file: f"C:\\data\\{file}")),
    Row("a name with two extensions", passages=name(lambda file: f"{file}.pdf")),
    Row("a name without extension", passages=name(lambda file: file.removesuffix(".txt"))),
    Row("an address with a fragment", passages=name(lambda file: f"https://files.example/{file}?v=2#page=1")),
    Row("an unknown file name", passages=name(lambda file: "chunk-0017")),
]


def surroundings(case: QuestionCase) -> str:
    """Return the clause with 300 characters before it and 300 after it."""
    start = case.document.index(case.clause)
    return case.document[max(0, start - 300) : start + len(case.clause) + 300]


def two_chunks(case: QuestionCase) -> list[dict[str, Any]]:
    """Return one passage that joins the clause and the last 60 characters of its document, which are far apart."""
    return [passage(f"{case.clause}\n\n{case.document[-60:]}", case.file)]


CHEATS = [
    Row("two chunks joined", passages=two_chunks,
        gets={"char_precision@8": lambda case: len(case.clause) / (len(case.clause) + 60)}),
    Row("the whole document", passages=lambda case: [passage(case.document, case.file)],
        gets={"char_precision@8": share_of_document}),
    Row("every document", passages=lambda case: [passage(text, file) for file, text in CONTRACTS.items()],
        gets={"char_precision@8": lambda case: len(case.clause) / sum(map(len, CONTRACTS.values())),
              "document_hit@1": lambda case: float(case.file == TIMBER), "drm@8": 2 / 3}),
    Row("the first and the last 60 characters", passages=lambda case: [
        passage(f"{case.document[:60]}\n{case.document[-60:]}", case.file)], gets={**MISSED, **ANOTHER}),
    Row("one character of the clause", passages=lambda case: [passage(case.clause[1], case.file)],
        gets=UNKNOWN),
    Row("the word shall", passages=lambda case: [passage("shall", case.file)], gets=UNKNOWN,
        only=("pay", "cap", "risk")),
    Row("the word shall 64 times", passages=lambda case: [passage("shall", case.file)] * 64, gets=UNKNOWN,
        only=("pay", "cap", "risk")),
    Row("a word that the named document lacks", passages=lambda case: [passage("shall", case.file)],
        gets={**WRONG_FILE, **ANOTHER}, only=("vote", "law")),
    Row("no words", passages=lambda case: [passage("", case.file)], gets={**UNKNOWN, **ANOTHER}),
    Row("no passage", passages=lambda case: [],
        gets={**MISSED, "document_hit@1": 0.0, "drm@8": None}),
    Row("words of another document under the right name", passages=lambda case: [
        passage(next(one.clause for one in ANSWERABLE if one.file == others(case)[0]), case.file)],
        gets={**WRONG_FILE, **ANOTHER}),
    Row("the clause under another name", passages=lambda case: [passage(case.clause, others(case)[0])]),
    Row("another document", passages=lambda case: [
        passage(CONTRACTS[others(case)[1]][:400], others(case)[1])], gets={**WRONG_FILE, **ANOTHER}),
    Row("invented words", passages=lambda case: [
        passage("The moon rose late over the empty harbour, and nobody spoke of contracts again.", case.file)],
        gets=UNKNOWN),
    Row("the question as the passage", passages=lambda case: [passage(case.question, case.file)],
        gets=UNKNOWN),
    Row("the answer as the passage", passages=lambda case: [passage(case.truth, case.file)],
        gets=UNKNOWN, only=("pay", "risk", "grant", "sublet", "vote", "law")),
    Row("a third of the clause", passages=lambda case: [
        passage(case.clause[:len(case.clause) // 3], case.file)],
        gets={"recall@10": 0.0, **ANOTHER,
              "char_recall@8": lambda case: (len(case.clause) // 3) / len(case.clause)}),
    Row("half a clause without its proviso", passages=lambda case: [
        passage(case.clause[:round(len(case.clause) * 0.6)], case.file)],
        gets={"char_recall@8": lambda case: round(len(case.clause) * 0.6) / len(case.clause)}),
    Row("the words of the clause in another order", passages=chunk(lambda words: " ".join(sorted(words.split()))),
        gets=UNKNOWN),
    Row("the words of the clause backwards", passages=chunk(lambda words: " ".join(reversed(words.split()))),
        gets=UNKNOWN),
    Row("a word added to the clause", passages=chunk(
        lambda words: words.replace("shall", "shall never", 1).replace("may", "may never", 1)), gets={}),
    Row("the clause after nine others", passages=lambda case: [
        *[passage(line, case.file) for line in case.document.split("\n\n") if "consent" in line][:10],
        passage(case.clause, case.file)],
        gets={"recall@10": 0.0, "char_recall@8": 0.0, "char_precision@8": 0.0, **ANOTHER}),
    Row("a wrong answer with the clause", {"cap": "EUR 900"}, gets=WRONG),
]

ONCE_RIGHT = [
    Row("the expected words in random order", {"grant": "licence exclusive Grower an receives the"}, gets=NOT_JUDGED),
    Row("the clause and its surroundings as the answer", surroundings, gets=NOT_JUDGED, only=("law",)),
    Row("the clause and the figures around it as the answer", surroundings, only=("cap", "risk"),
        gets=NOT_JUDGED),
    Row("boilerplate of another document under the right name", passages=lambda case: [
        passage(CONTRACTS[others(case)[0]][:400], case.file)], gets={**WRONG_FILE, **ANOTHER},
        only=("cap", "risk", "vote")),
    Row("three documents in one passage without a name", passages=lambda case: [
        passage("\n\n".join(CONTRACTS.values()), None)],
        gets={"char_precision@8": share_of_document, "document_hit@1": None, "drm@8": None}),
]

ROWS = [*WRONG_ANSWERS, *RIGHT_ANSWERS, *REFUSALS, *FORMS, *CHEATS, *ONCE_RIGHT]
# fmt: on
