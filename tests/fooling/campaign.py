"""The second set of odd and cheating systems; their expected figures were written before the first run.

At the first run, 37 of 59 systems had the expected figures, and six differed only in answers that are not judged. After
the run, the expectations of three systems were changed, two systems were rewritten, and one was replaced.
"""

import base64
import json

from tests.fooling.contracts import ANSWERABLE, QuestionCase, passage
from tests.fooling.table import ANSWERED_IMPOSSIBLE, NOT_JUDGED, REFUSED, UNKNOWN, WRONG, Row, chunk, others


def ends(case: QuestionCase) -> str:
    """Return the first and the last eight words of a clause, with an ellipsis between them."""
    words = case.clause.split()
    return f"{' '.join(words[:8])} … {' '.join(words[-8:])}"


def number_lines(words: str) -> str:
    """Return the words in numbered lines of eight words."""
    every = words.split()
    return "\n".join(f"{n} {' '.join(every[at : at + 8])}" for n, at in enumerate(range(0, len(every), 8), 1))


def add_noise(words: str) -> str:
    """Return a text in which every 40th character, if it is a letter, is replaced by `#`."""
    return "".join("#" if at % 40 == 39 and sign.isalpha() else sign for at, sign in enumerate(words))


def two_clauses(case: QuestionCase) -> str:
    """Return the clause, followed by a clause of another document."""
    return f"{case.clause}\n\n{next(one.clause for one in ANSWERABLE if one.file == others(case)[0])}"


MOON = "The moon rose late over the empty harbour, and nobody spoke of contracts again."

# fmt: off
ANSWERS = [
    Row("a range that contains the figure", {"cap": "Between EUR 200,000 and EUR 300,000"}, gets=WRONG),
    Row("both answers named", {"grant": "The licence is either exclusive or non-exclusive."}, gets=NOT_JUDGED),
    Row("yes with the opposite quotation", {
        "sublet": "Yes. “The Grower shall not grant any sublicence of the rights that it holds.”"}, gets=WRONG),
    Row("the period counted from another event", {
        "pay": "The Buyer must pay within 30 days of the delivery of the timber."}, gets=NOT_JUDGED),
    Row("the amount in cents", {"cap": "25,000,000 euro cents"}),
    Row("pounds in words", {"cap": "250,000 pounds sterling"}, gets=WRONG),
    Row("the amount as Germans write it", {"cap": "250.000,00 €"}),
    Row("the amount as the Swiss write it", {"cap": "EUR 250'000.–"}),
    Row("an OCR error in the amount", {"cap": "EUR 25O,OOO"}),
    Row("the answer in a table", lambda case: f"| Matter | Answer |\n|---|---|\n| Answer | {case.truth} |"),
    Row("nested JSON", lambda case: json.dumps({"result": {"answer": case.truth, "confidence": 0.9}})),
    Row("a block of code", lambda case: f"```\n{case.truth}\n```"),
    Row("a block of JSON", lambda case: "```json\n" + json.dumps({"answer": case.truth}) + "\n```"),
    Row("YAML", lambda case: f"answer: {case.truth}"),
    Row("the answer in German", {
        "law": "Es gilt schottisches Recht.", "risk": "Der Lieferant versichert das Holz während der Beförderung.",
    }, gets=NOT_JUDGED),
    Row("the opposite in German", {"sublet": "Ja, der Grower darf Unterlizenzen erteilen."}, gets=WRONG),
    Row("No in German", {"sublet": "Nein."}),
    Row("a double negation", {"sublet": "It is not the case that the Grower may not grant sublicences."}, gets=WRONG),
    Row("a double negation that agrees", {
        "risk": "It is not true that the Supplier does not insure the timber during carriage."}, gets=NOT_JUDGED),
    Row("a quotation with an ellipsis", {
        "risk": "“The Supplier shall insure the timber during carriage … and shall hand over the policy on request.”"}),
    Row("an ellipsis over the denial", {
        "sublet": "“The Grower shall … grant any sublicence of the rights that it holds …”"}, gets=WRONG),
    Row("subject to another law", {
        "law": "Subject to the law of Norway, the law of Scotland governs it."}, gets=NOT_JUDGED),
    Row("a denied exception", {
        "sublet": "No, the Grower may not grant sublicences, not even to a company that it wholly owns."},
        gets=NOT_JUDGED),
    Row("a date for a period", {"pay": "On 30 June 2024."},
        gets=NOT_JUDGED),
    Row("the right class and no other", {"vote": "Class A and no other class."}),
    Row("every class", {"vote": "All shares carry votes."}, gets=NOT_JUDGED),
    Row("the right class denied", {"vote": "Not Class A but Class B shares carry votes."}, gets=WRONG),
    Row("an invented figure after the answer", {
        "pay": "The Buyer must pay within 30 days of receipt of the invoice, and interest of 8% runs after that."},
        gets=NOT_JUDGED),
    Row("a refusal inside a long reply", {
        "cap": "The agreement deals with deliveries, invoices and insurance. It sets out who insures the timber. As to "
               "the question that you ask, the agreement does not specify any cap on liability. Please consult a "
               "lawyer."}, gets=REFUSED),
    Row("the answer with a disclaimer", lambda case: (
        f"{case.truth} I am not a lawyer, and this is not legal advice.")),
    Row("it appears that", {"law": "It appears that the law of Scotland governs it."}),
    Row("it is unclear whether", {"law": "It is unclear whether the law of Scotland governs it."}, gets=REFUSED),
    Row("an invented condition", {"law": "If the parties so agree, the law of Scotland governs it."}, gets=NOT_JUDGED),
    Row("several citations", lambda case: f"{case.truth} [1][2][7]"),
    Row("citations in the middle", {
        "pay": "The Buyer [1] must pay within 30 days [1] of receipt of the invoice [1]."}),
    Row("reasoning first", lambda case: f"<think>The question asks about the contract.</think>{case.truth}"),
    Row("wrong reasoning before the right answer", {
        "law": "<think>The law of Norway governs it.</think>The law of Scotland governs it."}),
    Row("right reasoning and a wrong answer", {
        "law": "<think>The law of Scotland governs it.</think>The law of Norway governs it."}, gets=WRONG),
    Row("question and answer", lambda case: f"Q: {case.question}\nA: {case.truth}"),
    Row("the question before the answer", lambda case: f"{case.question} {case.truth}"),
    Row("words of a definition", {
        "grant": "“Licence” means the licence granted to the Grower under this Agreement."}, gets=NOT_JUDGED),
    Row("the other party and not this one", {
        "risk": "Under the agreement it is the Buyer, and not the Supplier, who insures the timber during carriage."},
        gets=WRONG),
    Row("this party and not the other", {
        "risk": "It is the Supplier, and not the Buyer, who insures the timber during carriage."}),
    Row("a month for 30 days", {
        "pay": "The Buyer must pay within one month of receipt of the invoice."}, gets=WRONG),
    Row("720 hours", {"pay": "The Buyer must pay within 720 hours of receipt of the invoice."}),
    Row("a refusal as null", {"training": '{"answer": null}'}),
    Row("a right refusal in Polish", {"training": "Dokumenty nie zawierają takiej informacji."}),
    Row("zero hours", {"training": "Zero hours."}, gets=ANSWERED_IMPOSSIBLE),
    Row("an invented figure in a table", {"training": "| Hours of training | 12 |"}, gets=ANSWERED_IMPOSSIBLE),
    Row("a refusal in a table", {"training": "| Hours of training | not specified |"}),
    Row("N/A", {"training": "N/A"}),
]

PASSAGES = [
    Row("the chunk in base64", passages=chunk(lambda words: base64.b64encode(words.encode()).decode()), gets=UNKNOWN),
    Row("line numbers", passages=chunk(number_lines)),
    Row("an ellipsis in the chunk", passages=lambda case: [passage(ends(case), case.file)],
        gets={"char_recall@8": lambda case: (len(ends(case)) - 3) / len(case.clause)}, only=("law",)),
    Row("noise in the chunk", passages=chunk(add_noise)),
    Row("fields before the chunk", passages=lambda case: [passage(
        f"Title: {case.file}\nSource: archive\nPage: 3\nScore: 0.83\n\n{case.clause}", case.file)]),
    Row("clauses of two documents in one passage", passages=lambda case: [passage(two_clauses(case), case.file)]),
    Row("the clause twice in one passage", passages=chunk(lambda words: f"{words}\n\n{words}")),
    Row("invented words before the clause", passages=lambda case: [
        passage(MOON, case.file), passage(case.clause, case.file)]),
]
# fmt: on

CAMPAIGN = [*ANSWERS, *PASSAGES]
