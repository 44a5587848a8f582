"""Changes of form never change results; changes of substance do."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fooling.contracts import ANSWERABLE, QUESTIONS, passage
from tests.fooling.table import FORMS, LOOK_ALIKE, WRONG_ANSWERS, Row

LETTERS = {
    "as they are": lambda text: text,
    "zero-width marks": lambda text: text.replace("e", "e\u200b"),
    "soft hyphens": lambda text: text.replace("i", "\u00adi"),
    "look-alike letters": lambda text: text.translate(LOOK_ALIKE),
    "spaces that do not break": lambda text: text.replace(" ", "\u00a0"),
    "line breaks": lambda text: text.replace(" ", "\n"),
    "direction marks": lambda text: f"\u202a{text}\u202c",
}
FRAMES = {
    "none": lambda text: text,
    "quotation marks": lambda text: f"“{text}”",
    "bold": lambda text: f"**{text}**",
    "HTML": lambda text: f"<div><p>{text}</p></div>",
    "JSON": lambda text: json.dumps({"answer": text, "score": 0.5}),
    "a courtesy": lambda text: f"Certainly! {text}",
    "an offer": lambda text: f"{text} Let me know if you need anything else.",
    "a citation": lambda text: f"{text} [1]",
}
SUBSTANCE = [(row.name, key, said) for row in WRONG_ANSWERS if isinstance(row.answers, dict)
             for key, said in row.answers.items()]  # fmt: skip
letters, frames = st.sampled_from(sorted(LETTERS)), st.sampled_from(sorted(FRAMES))
answerable = st.sampled_from(ANSWERABLE)


@given(answerable, letters, frames)
def test_answer_formatting_does_not_change_results(evaluation, honest, question_case, letter, frame):
    row = Row("a form", lambda one: FRAMES[frame](LETTERS[letter](one.truth)))
    assert evaluation.figures(row.reply, [question_case])[question_case.key] == honest[question_case.key]


@given(st.sampled_from(SUBSTANCE), letters, frames)
def test_answer_formatting_does_not_make_wrong_answer_right(evaluation, wrong, letter, frame):
    _, key, said = wrong
    figures = evaluation.figures(Row("wrong", {key: FRAMES[frame](LETTERS[letter](said))}).reply, [QUESTIONS[key]])[key]
    assert figures["outcome"] != "right"


@given(st.integers(1, 10**9), st.sampled_from(["EUR", "USD", "GBP", "CHF"]))
def test_amount_is_right_only_with_expected_number_and_currency(evaluation, amount, currency):
    said = f"The liability of the Supplier is capped at {currency} {amount:,}."
    figures = evaluation.figures(Row("an amount", {"cap": said}).reply, [QUESTIONS["cap"]])["cap"]
    assert (figures["outcome"] == "right") == ((amount, currency) == (250_000, "EUR"))


@given(st.integers(1, 400), st.sampled_from(["days", "business days", "weeks", "months", "years"]))
def test_period_is_right_only_with_expected_number_and_unit(evaluation, number, unit):
    said = f"The Buyer must pay within {number} {unit} of receipt of the invoice."
    figures = evaluation.figures(Row("a period", {"pay": said}).reply, [QUESTIONS["pay"]])["pay"]
    assert (figures["outcome"] == "right") == ((number, unit) == (30, "days"))


@given(answerable, st.lists(st.sampled_from(FORMS), min_size=1, max_size=4, unique_by=lambda row: row.name))
def test_combined_chunk_formats_do_not_change_results(evaluation, honest, question_case, forms):
    row = Row("forms", passages=lambda one: [chunk for form in forms for chunk in form.passages(one)])
    assert evaluation.figures(row.reply, [question_case])[question_case.key] == honest[question_case.key]


@given(answerable, st.data())
def test_partial_clause_has_recall_equal_to_the_share_of_retrieved_characters(evaluation, question_case, data):
    size = len(question_case.clause)
    start = data.draw(st.integers(0, size - 40))
    end = data.draw(st.integers(start + 40, size))
    part = question_case.clause[start:end].strip()
    row = Row("a part", passages=lambda one: [passage(part, one.file)])
    figures = evaluation.figures(row.reply, [question_case])[question_case.key]
    assert figures["char_recall@8"] == pytest.approx(len(part) / size, abs=0.02)
    assert figures["recall@10"] == float(figures["char_recall@8"] >= 0.5)


@given(
    st.sampled_from(sorted(QUESTIONS)), letters, st.sampled_from(["none", "quotation marks", "bold", "HTML", "JSON"])
)
def test_refusal_is_recognised_in_every_format(evaluation, key, letter, frame):
    said = FRAMES[frame](LETTERS[letter]("The documents do not say."))
    figures = evaluation.figures(Row("a refusal", {key: said}).reply, [QUESTIONS[key]])[key]
    assert figures["outcome"] == ("rightly refused" if key == "training" else "wrongly refused")
