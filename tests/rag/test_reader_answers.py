"""Answers by the question-answering model: exact quotes with citations, joined passages, refusals, early stop."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from exhibit.evidence import Span
from exhibit.law.citations import claims_of, without_places
from exhibit.models.embedders import legal
from exhibit.models.llms import estimate
from exhibit.models.reader import AnswerSpan, Reading
from exhibit.rag.answerers import open_answerer, section_of, with_places
from exhibit.rag.answerers.reader import ReaderAnswerer
from exhibit.rag.config import Config
from exhibit.rag.protocols import Answer, AnswerContext, Chunk, Hit, QueryVector
from exhibit.rag.retrieval.stages import assemble
from exhibit.schemas import IMPOSSIBLE_ANSWER

LAW = "This Agreement is governed by the laws of the State of Delaware."
RENT = "Rent is due each quarter in advance and is paid to the Landlord's account."


def context_of(
    *texts: str, document: str = "lease.pdf", gap: int = 1000, confidence: float | None = None
) -> AnswerContext:
    hits, at = [], 0
    for number, text in enumerate(texts):
        chunk = Chunk(document, Span(at, at + len(text)), "ARTICLE IX > 9.1 Law > (b)", 3)
        hits.append(Hit(chunk, 0.9 - number / 10, text))
        at += len(text) + gap
    return assemble("q", hits, summaries={}, tokens=estimate, confidence=confidence)


class Scripted:
    """A stub question-answering model that finds a given word and records its passages."""

    def __init__(self, word: str, scores: Sequence[float]) -> None:
        self.word, self.scores, self.read_texts = word, list(scores), list[str]()

    def read(self, question: str, passages: Sequence[str], hint: str = "") -> list[Reading]:
        self.read_texts += passages
        self.hint = hint
        return [self._reading(text, self.scores.pop(0)) for text in passages]

    def _reading(self, text: str, score: float) -> Reading:
        at = text.find(self.word)
        return Reading(score, (AnswerSpan(at, at + len(self.word), 1.0),) if at >= 0 else ())

    def confidence(
        self, scores: Sequence[float], found: float | None = None, *, usual: float = 0.0, also: Sequence[str] = ()
    ) -> float:
        self.usual = usual
        raised = {"short": 0.2, "whole": 0.1, "policy": 0.2}
        return max(scores) * (1.0 if found is None else found) + sum(raised[one] for one in also)


def answerer(word: str, *scores: float, most: int = 4) -> tuple[ReaderAnswerer, Scripted]:
    reader = Scripted(word, scores)
    return ReaderAnswerer(refuse_below=0.25, most=most, reader=reader), reader  # type: ignore[arg-type]


def test_the_words_that_are_read_are_the_answer_and_cite_their_source() -> None:
    model, _ = answerer("State of Delaware", 0.1, 0.8)
    answer = model.answer("Which law governs?", context_of(RENT, LAW))
    assert (answer.text, answer.citations, answer.confidence) == (f"“{LAW}” [2]", (2,), 0.8)
    assert (answer.short, answer.quotes) == ("", (LAW,))


class Short(Scripted):
    """A stub model that also returns a short answer, with given log-odds of a yes."""

    def __init__(self, word: str, short: str, yes: float = 0.0, sure: float = 1.0) -> None:
        super().__init__(word, [0.8])
        self.short, self.yes, self.sure = short, yes, sure

    def _reading(self, text: str, score: float) -> Reading:
        at = text.find(self.short)
        short = AnswerSpan(at, at + len(self.short), self.sure)
        return super()._reading(text, score)._replace(short=short, yes=self.yes)


def short_answer(question: str, short: str, yes: float = 0.0, words: str = LAW) -> str:
    model = ReaderAnswerer(refuse_below=0.25, most=4, reader=Short(words, short, yes))  # type: ignore[arg-type]
    answer = model.answer(question, context_of(words))
    front, quote, _ = answer.text.partition(f"“{words}”")
    assert quote and front == (f"{answer.short}: " if answer.short else "")
    return answer.short


def test_a_value_comes_before_the_sentence_that_states_it() -> None:
    assert short_answer("Which law governs?", "the State of Delaware") == "the State of Delaware"
    assert short_answer("Which law governs?", LAW[:-4]) == "", "nearly the whole sentence is no short answer"
    assert short_answer("What is said of the Agreement?", "This Agreement") == "", "the question has these words"
    rate = "Overdue amounts bear interest of 1% per month (12% per annum, simple) until they are paid in full."
    assert (
        short_answer("What is the rate?", "1% per month (12% per annum", words=rate)
        == "1% per month (12% per annum, simple)"
    )
    assert short_answer("What is due?", "verdue amount", words=rate) == "Overdue amounts", "no parts of words"
    paid = "The fee of 5,000 is due by the 3rd day."
    assert short_answer("What is the fee?", "5,000", words=paid) == "5,000"


@pytest.mark.parametrize(("sure", "short"), [(1.0, "the State of Delaware"), (0.9, "")])
def test_a_short_answer_of_which_the_reader_is_not_sure_is_left_to_the_quote(sure: float, short: str) -> None:
    reader = Short(LAW, "the State of Delaware", sure=sure)
    model = ReaderAnswerer(refuse_below=0.25, most=4, reader=reader)  # type: ignore[arg-type]
    answer = model.answer("Which law governs?", context_of(LAW))
    assert answer.short == short and answer.quotes == (LAW,)


@pytest.mark.parametrize(("yes", "said"), [(2.0, "Yes"), (-9.0, "No"), (-4.0, ""), (-3.0, "")])
def test_a_question_for_a_yes_or_a_no_gets_one_where_the_reader_is_sure(yes: float, said: str) -> None:
    assert short_answer("Is the law that of Delaware?", "the State of Delaware", yes) == said
    assert short_answer("Which law governs?", "the State of Delaware", yes) == "the State of Delaware"


def test_items_of_a_complete_list_are_counted_where_no_number_answers() -> None:
    listed = "Permitted uses of the yard: (a) storing boats; (b) washing them; and (c) selling paint."
    asked = "How many permitted uses are listed?"
    assert short_answer(asked, "storing boats", words=listed) == "3"
    assert short_answer(asked, "storing boats", words=listed.replace("and (c)", "(c)")) == "storing boats"
    stated = listed.replace("Permitted", "There are four permitted")
    assert short_answer(asked, "four", words=stated) == "four", "a number that the clause states is the answer"
    assert short_answer("Which permitted uses are listed?", "storing boats", words=listed) == "storing boats"


def test_words_that_deny_make_a_no_likelier() -> None:
    forbids = "The Tenant shall not sublet the flat, nor any part of it, at any time."
    allows = "The Tenant may sublet the flat, and any part of it, at any time."
    said = [short_answer("May the tenant sublet?", "the flat", -2.0, words=words) for words in (forbids, allows)]
    assert said == ["No", "Yes"]


def test_a_clause_that_is_there_is_the_yes_to_the_question_whether_it_is() -> None:
    own, other = "may a party audit the other's books, records or premises?", "Is an audit of the books forbidden?"
    [vector] = legal.open("int8").embed([own], role="query")
    for question, said in ((own, "Yes"), (other, "No")):
        reader = Short(LAW, "Delaware", -9.0)
        model = ReaderAnswerer(refuse_below=0.25, most=4, reader=reader)  # type: ignore[arg-type]
        context = replace(context_of(LAW), asked=QueryVector("legal-1", vector))
        assert model.answer(question, context).short == said


def test_a_clause_that_says_the_contrary_is_the_no_to_the_question_whether_it_is_there() -> None:
    question = "may a party audit the other's books, records or premises?"
    [vector] = legal.open("int8").embed([question], role="query")
    for clause, said in (
        ("The Tenant shall let the Landlord audit its books at any time.", "Yes"),
        ("The Tenant shall not be required to let the Landlord audit its books at any time.", "No"),
        ("The Tenant shall not be required to let the Landlord audit its books, except in March.", ""),
        ("Notwithstanding the foregoing, the Tenant shall not be required to open its books to the Landlord.", ""),
    ):
        model = ReaderAnswerer(refuse_below=0.25, most=4, reader=Short(clause, "audit", 2.0))  # type: ignore[arg-type]
        context = replace(context_of(clause), asked=QueryVector("legal-1", vector))
        assert model.answer(question, context).short == said


def test_a_quote_is_the_whole_sentence_and_the_list_that_it_announces() -> None:
    text = "It is so. The Buyer bears: (a) freight; (b) duties. The Seller bears the rest."
    model, _ = answerer("Buyer bears", 0.8)
    answer = model.answer("What costs are the Buyer's?", context_of(text))
    assert answer.quotes[0].startswith("The Buyer bears: (a) freight; (b) duties") and "It is so" not in answer.text


@pytest.mark.parametrize(("found", "refused"), [(None, False), (0.9, False), (0.2, True)])
def test_reader_and_reranker_decide_together(found: float | None, refused: bool) -> None:
    model, _ = answerer("Delaware", 0.5)
    answer = model.answer("Which law governs?", context_of(LAW, confidence=found))
    assert answer.refused is refused and (answer.text == IMPOSSIBLE_ANSWER) is refused
    assert model.answer("Which law?", AnswerContext("", (), 0)).refused


@pytest.mark.parametrize(("characters", "refused"), [(0, True), (2_000, False), (3_600, False), (3_601, True)])
def test_a_document_that_is_read_as_a_whole_is_answered_from_sooner(characters: int, refused: bool) -> None:
    model, _ = answerer("Delaware", 0.1)
    answer = model.answer("Which law governs?", replace(context_of(LAW), characters=characters))
    assert answer.refused is refused
    long = "Does the agreement let the receiving party keep a copy of what it was given?"
    model, _ = answerer("Delaware", 0.1)
    assert model.answer(long, replace(context_of(LAW), characters=characters)).refused


def test_a_longer_question_on_a_document_that_is_read_as_a_whole_is_answered_a_little_sooner() -> None:
    question = "Which law governs this agreement and every claim that may ever arise out of it or in its connection?"
    for score, characters, refused in ((0.2, 2_000, False), (0.2, 3_601, True), (0.1, 2_000, True)):
        model, _ = answerer("State of Delaware", score)
        assert model.answer(question, replace(context_of(LAW), characters=characters)).refused == refused


def test_a_privacy_policy_is_answered_from_sooner() -> None:
    for kind, refused in (("contract", True), ("privacy policy", False)):
        model, _ = answerer("Delaware", 0.1)
        assert model.answer("Which law governs?", replace(context_of(LAW), kind=kind)).refused is refused


def test_the_question_in_its_kinds_own_words_is_handed_on() -> None:
    [vector] = legal.open("int8").embed(["Whose courts and whose rules of law apply here?"], role="query")
    for name, hint in (("legal-1", "which state's or country's law governs it?"), ("minilm", "")):
        model, reader = answerer("Delaware", 0.8)
        model.answer("Whose rules?", replace(context_of(LAW), asked=QueryVector(name, vector)))
        assert reader.hint == hint and (reader.usual > 1) is bool(hint)
    model, reader = answerer("Delaware", 0.8)
    model.answer("Whose rules?", replace(context_of(LAW), asked=QueryVector("legal-1", vector), characters=500))
    assert (reader.hint, reader.usual) == ("", 0.0)  # a plain question on a short document


def test_passages_that_follow_each_other_are_read_as_one_and_both_are_cited() -> None:
    model, reader = answerer("Delaware. Rent is due", 0.8)
    answer = model.answer("What?", context_of(LAW, RENT, gap=1))
    assert reader.read_texts == [f"{LAW} {RENT}"]
    assert answer.text == f"“{LAW} {RENT}” [1][2]"


@pytest.mark.parametrize(
    ("question", "refused"), [("Which law governs?", True), ("List every law that governs.", False)]
)
def test_another_documents_clause_is_no_reason_to_answer(question: str, refused: bool) -> None:
    hits = [Hit(Chunk(name, Span(0, 60), "", 1), 0.9, text) for name, text in (("ours.pdf", RENT), ("theirs.pdf", LAW))]
    model, reader = answerer("Delaware", 0.1, 0.9)
    answer = model.answer(question, assemble("q", hits, summaries={}, tokens=estimate))
    assert len(reader.read_texts) == 2 and answer.refused is refused


@pytest.mark.parametrize(("scores", "read"), [((0.95, 0.1, 0.5), 1), ((0.5, 0.1, 0.5), 3), ((0.001, 0.9, 0.5), 1)])
def test_no_more_is_read_than_is_needed_to_be_sure(scores: tuple[float, ...], read: int) -> None:
    model, reader = answerer("Delaware", *scores)
    model.answer("Which law governs?", context_of(LAW, RENT, LAW + " It is final."))
    assert len(reader.read_texts) == read
    model, reader = answerer("Delaware", *scores)
    model.answer("List every law that governs.", context_of(LAW, RENT, LAW + " It is final."))
    assert len(reader.read_texts) == 3


def test_where_no_words_are_found_the_nearest_sentence_is_given() -> None:
    model, _ = answerer("nowhere", 0.9)
    answer = model.answer("Which laws govern the Agreement?", context_of(LAW))
    assert answer.text.startswith(LAW) and not answer.refused


# ---------------------------------------------------------------- places


@pytest.mark.parametrize(
    ("document", "path", "expected"),
    [
        ("Part 36 – Offers to Settle.pdf", "PART 36 OFFERS > Costs > 36.14 > (3)", "CPR 36.14(3)"),
        ("Practice Direction 28 – The Fast Track.pdf", "PD > 2.1 Allocation", "PD 28 para 2.1"),
        ("merger.pdf", "ARTICLE III THE MERGER > 3.2 Shares > (b)", "ARTICLE III, 3.2(b)"),
        ("merger.pdf", "Section 9.10 Specific Performance", "Section 9.10 Specific Performance"),
        ("policy.html", "How we share data", "How we share data"),
        ("letter.txt", "", ""),
    ],
)
def test_a_section_is_called_what_the_law_calls_it(document: str, path: str, expected: str) -> None:
    assert section_of(document, path) == expected


def test_an_answer_says_where_each_citation_stands_and_that_is_no_claim_of_it() -> None:
    context = context_of(LAW, RENT, document="Part 9 – Leases.pdf")
    told = with_places(f"{LAW} [1] {RENT} [2]", context.sources, "numbers")
    assert told.endswith(
        "\n\nSources:\n[1] Part 9 – Leases.pdf, CPR 9.1(b), page 3\n[2] Part 9 – Leases.pdf, CPR 9.1(b), page 3"
    )
    assert without_places(told) == f"{LAW} [1] {RENT} [2]" and len(claims_of(told)) == 2
    assert with_places(f"{LAW} [1]", context.sources, "places") == f"{LAW} [Part 9#page=3]"
    assert with_places("It is silent [9].", context.sources, "numbers") == "It is silent [9]."


def test_every_answerer_that_is_opened_says_where_it_stands() -> None:
    given = open_answerer(Config(answerer="extractive")).answer("Which laws govern?", context_of(LAW))
    assert "Sources:\n[1] lease.pdf, ARTICLE IX, 9.1(b), page 3" in given.text
    assert (
        open_answerer(Config(answerer="extractive")).answer("Who?", AnswerContext("", (), 0)).text == IMPOSSIBLE_ANSWER
    )


def test_court_rules_are_answered_by_their_nearest_sentence_which_does_better_there() -> None:
    model, reader = answerer("claim", 0.9, 0.9)
    context = replace(context_of("A claim is served within four months.", RENT), kind="rules")
    answer = model.answer("Within how many months is a claim served?", context)
    assert answer.text == "A claim is served within four months. [1]" and not reader.read_texts


@pytest.mark.parametrize(
    ("question", "read"),
    [
        ("Does the agreement oblige it to return or destroy papers when the agreement ends?", 1),
        ("Which law governs the Alder lease and the Birch lease?", 3),
        ("Consider both leases; which law governs?", 1),
        ("Consider the lease; would one consider both parties; which law governs?", 3),
    ],
)
def test_two_documents_are_meant_only_where_two_are_named(question: str, read: int) -> None:
    model, reader = answerer("Delaware", 0.95, 0.1, 0.5)
    model.answer(question, context_of(LAW, RENT, LAW + " It is final."))
    assert len(reader.read_texts) == read


# ---------------------------------------------------------------- at their bounds


class Marks:
    """A stub model that marks eight characters in each passage, ending at given offsets, with a given score."""

    def __init__(self, *scores: float, ends: Sequence[int] = (8,), sure: float = 0.5) -> None:
        self.scores, self.ends, self.sure, self.read_texts = list(scores), ends, sure, list[str]()

    def read(self, question: str, passages: Sequence[str], hint: str = "") -> list[Reading]:
        self.read_texts += passages
        spans = tuple(AnswerSpan(end - 8, end, 1.0) for end in self.ends)
        return [Reading(self.scores.pop(0), spans) for _ in passages]

    def confidence(self, scores: Sequence[float], found: object = None, **also: object) -> float:
        self.judged = list(scores)
        return self.sure


def answered(reader: Marks, context: AnswerContext, question: str = "Which law governs?", most: int = 9) -> Answer:
    return ReaderAnswerer(refuse_below=0.3, most=most, reader=reader).answer(question, context)  # type: ignore[arg-type]


def of_documents(*names: str) -> AnswerContext:
    hits = [
        Hit(Chunk(name, Span(1000 * n, 1000 * n + 20), "", 1), 0.9 - n / 100, f"Answer {'ABCDEFGH'[n]}. The rest.")
        for n, name in enumerate(names)
    ]
    return assemble("q", hits, summaries={}, tokens=estimate)


def cited(answer: Answer) -> list[int]:
    return [int(number) for number in re.findall(r"\[(\d)\]", answer.text)]


@pytest.mark.parametrize(
    ("scores", "sources"),
    [
        ((2.0, 1.4, 1.4), [1, 2]),  # each loses a quarter for every one before it: more than one below is too much
        ((2.0, 2.5, 3.0), [1, 2, 3]),
        ((2.0, 1.2, 1.4), [1]),
        ((0.0, 3.0, 0.0), [2]),
    ],
)
def test_words_of_further_passages_are_given_that_are_nearly_as_good(scores, sources) -> None:
    assert cited(answered(Marks(*scores), of_documents("a", "a", "a"))) == sources


@pytest.mark.parametrize(("scores", "sources"), [((4.0, 0.0, -0.1), [1, 2]), ((0.0, 4.0, 4.0), [1, 2, 3])])
def test_where_several_places_are_asked_for_less_likely_ones_are_given_too(scores, sources) -> None:
    assert cited(answered(Marks(*scores), of_documents("a", "b", "c"), "List every law.")) == sources


@pytest.mark.parametrize(
    ("scores", "sources", "judged"),
    [((1.0, 4.2), [1], 1.2), ((1.0, 4.6), [2], 1.6), ((1.0, 5.0), [2], 2.0)],
)
def test_another_document_must_be_better_by_much_and_answers_alone(scores, sources, judged) -> None:
    reader = Marks(*scores)
    assert cited(answered(reader, of_documents("a", "b"))) == sources
    assert reader.judged == pytest.approx([1.0, judged])


def test_an_answer_has_five_stretches_of_words_at_most_each_once() -> None:
    reader = Marks(*[3.0] * 7)
    assert cited(answered(reader, of_documents(*"abcdefg"), "List every law.")) == [1, 2, 3, 4, 5]
    twice = Marks(3.0, 3.0)
    hits = [Hit(Chunk("a", Span(n, n + 9), "", 1), 0.9, text) for n, text in ((0, "The rent."), (900, "THE RENT."))]
    assert cited(answered(twice, assemble("q", hits, summaries={}, tokens=estimate), "List it.")) == [1]
    both = answered(Marks(3.0, ends=(18, 8)), of_documents("a"))
    assert both.text == "“Answer A.” [1]\n\n“The rest.” [1]", "in the order of the source"


@pytest.mark.parametrize(
    ("sure", "read"), [(0.95, 1), (0.949, 3), (0.002, 3), (0.0019, 1)],
)  # fmt: skip
def test_reading_goes_on_between_hopeless_and_sure(sure: float, read: int) -> None:
    reader = Marks(1.0, 1.0, 1.0, sure=sure)
    answered(reader, of_documents("a", "a", "a"))
    assert len(reader.read_texts) == read


def test_an_answer_is_refused_below_its_level_alone() -> None:
    assert not answered(Marks(1.0, sure=0.3), of_documents("a")).refused
    assert answered(Marks(1.0, sure=0.29), of_documents("a")).refused
    never = ReaderAnswerer(refuse_below=None, most=1, reader=Marks(1.0, sure=0.0))  # type: ignore[arg-type]
    assert not never.answer("Which law?", of_documents("a")).refused


@pytest.mark.parametrize(("gap", "length", "together"), [(4, 100, True), (5, 100, False), (0, 100, True)])
def test_passages_are_one_where_a_mark_and_a_space_stand_between_them(gap, length, together) -> None:
    reader = Marks(1.0, 1.0)
    answered(reader, context_of("w" * length, "v" * length, gap=gap))
    assert len(reader.read_texts) == (1 if together else 2)


@pytest.mark.parametrize(("length", "together"), [(449, True), (450, False)])
def test_passages_are_one_as_far_as_they_can_be_read_at_once(length: int, together: bool) -> None:
    reader = Marks(1.0, 1.0)
    answered(reader, context_of("w" * length, "v" * length, gap=2))
    assert len(reader.read_texts) == (1 if together else 2)
    overlapping = [Hit(Chunk("a", Span(at, at + 20), "", 1), 0.9, f"Which is {at:02d} of two.") for at in (0, 19)]
    reader = Marks(1.0, 1.0)
    answered(reader, assemble("q", overlapping, summaries={}, tokens=estimate))
    assert len(reader.read_texts) == 2, "what stands in both would be read twice"


def test_words_across_two_passages_cite_those_that_have_them() -> None:
    words = context_of("Answered.", "And next.", gap=1)
    assert cited(answered(Marks(1.0, ends=(9,)), words)) == [1]
    assert cited(answered(Marks(1.0, ends=(11,)), words)) == [1, 2]
    assert cited(answered(Marks(1.0, ends=(18,)), words)) == [2]


def test_words_are_in_the_order_of_the_source_that_they_begin_in() -> None:
    places = ((0, "Answer A."), (500, "Answer B of it all."), (10, "Answer C."))
    hits = [Hit(Chunk("a", Span(at, at + 9), "", 1), 0.9 - at / 9999, text) for at, text in places]
    context = assemble("q", [hits[0], hits[1], hits[2]], summaries={}, tokens=estimate)
    assert cited(answered(Marks(3.0, 3.5, ends=(14,)), context)) == [1, 3, 2]


def test_a_place_is_found_by_eight_words_and_where_they_are_not_it_is_where_the_source_begins() -> None:
    words = "one two three four five six seven eight"
    chunk = Chunk("a.pdf", Span(100, 160), "First", 3, ((108, "Second", 4), (147, "Third", None)))
    context = assemble("q", [Hit(chunk, 0.9, f"Before. {words} nine. Last of all.")], summaries={}, tokens=estimate)

    def place(quoted: str, form: str = "places") -> str:
        return with_places(f"{quoted} [1]", context.sources, form).rpartition("[")[2]  # type: ignore[arg-type]

    assert place(f"{words} NINE") == place(f"… {words} …") == place(words.replace(" ", "\n")) == "a#page=4]"
    assert place(words.replace("eight", "EIGHT")) == place("Before.") == place("") == "a#page=3]"
    assert place("nine.") == "a#page=Third]", "where there is no page the section stands for it"
    assert place(f"{words} NINE", "numbers") == "1] a.pdf, Second, page 4"
    assert place("nine.", "numbers") == "1] a.pdf, Third"


def test_the_section_of_a_citation_is_that_of_the_quote_and_not_of_the_start_of_its_passage() -> None:
    text = "4. Deposit. The deposit is £900. 6. Pets. The “Tenant” may keep one “small” pet. 7. Keys."
    chunk = Chunk("lease.pdf", Span(50, 140), "4. Deposit", 1, ((83, "6. Pets", 2), (132, "7. Keys", 2)))
    context = assemble("q", [Hit(chunk, 0.9, text)], summaries={}, tokens=estimate)

    def listed(answer: str) -> str:
        return with_places(f"{answer} [1]", context.sources, "numbers").rpartition("[1] ")[2]

    assert listed("Yes: “The “Tenant” may keep one “small” pet.”") == "lease.pdf, 6. Pets, page 2"
    assert listed("£900: “The deposit is £900.”") == "lease.pdf, 4. Deposit, page 1"
    assert listed("Keys: “a quote that the passage lacks”") == "lease.pdf, 4. Deposit, page 1"


def test_two_numbers_together_cite_the_same_words_and_a_source_lists_each_of_its_places_once() -> None:
    chunk = Chunk("a – Lease.pdf", Span(0, 40), "First", 3, ((20, "Second", 4),))
    other = Chunk("b[1]#.pdf", Span(0, 40), "First", 7)
    text = "The rent is due. The term is five years."
    context = assemble("q", [Hit(chunk, 0.9, text), Hit(other, 0.8, text)], summaries={}, tokens=estimate)
    said = "The rent is due. [1][2] five years. [2][1] The rent is due. [1]"
    assert with_places(said, context.sources, "places") == (
        "The rent is due. [a#page=3][b 1#page=7] five years. [b 1#page=7][a#page=4] The rent is due. [a#page=3]"
    )
    assert with_places(said, context.sources, "numbers").split("\n")[3:] == [
        "[1] a – Lease.pdf, First, page 3; a – Lease.pdf, Second, page 4", "[2] b[1]#.pdf, First, page 7"
    ]  # fmt: skip
