"""A question is parsed into the words that name a document and the words that ask, and no word is lost."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.rag.questions import understand

SUPPLY = "the Supply Agreement between Alder Chemical Company, LLC and Birch Chemistry, LLC for Resin Products"
WORDINGS = [
    # question, names, asks, kind
    (f"Consider {SUPPLY}; Is there a cap?", SUPPLY, "Is there a cap?", "contract"),
    (f"Under {SUPPLY}, may a party assign it?", SUPPLY, "may a party assign it?", "contract"),
    (f"Is there a cap in {SUPPLY}?", f"in {SUPPLY}", "Is there a cap?", "contract"),
    (f"Regarding {SUPPLY}: who pays?", SUPPLY, "who pays?", "contract"),
    (f"May Alder end {SUPPLY} if Birch defaults?", SUPPLY, "May Alder end it if Birch defaults?", "contract"),
    ('Consider "Lodger"\'s privacy policy; is it sold?', '"Lodger"\'s privacy policy', "is it sold?", "privacy policy"),
    (
        'Consider "Tock: Lists, with Reminders"\'s privacy policy; is it sold?',
        '"Tock: Lists, with Reminders"\'s privacy policy',
        "is it sold?",
        "privacy policy",
    ),
    (
        "What does Lodger's privacy policy say about cookies?",
        "Lodger's privacy policy",
        "What does it say about cookies?",
        "privacy policy",
    ),
    (
        "what does lodger's privacy policy say about cookies",
        "lodger's privacy policy",
        "what does it say about cookies",
        "privacy policy",
    ),
    (
        "WHAT DOES LODGER'S PRIVACY POLICY SAY?",
        "lodger's privacy policy",
        "what does it say?",
        "privacy policy",
    ),
    ("In Fenway's NDA, does it survive?", "Fenway's NDA", "does it survive?", "nda"),
    (
        "Can copies be made under Fenway’s Non-Disclosure Agreement?",
        "under Fenway’s Non-Disclosure Agreement",
        "Can copies be made?",
        "nda",
    ),
    (
        'What is the Type of Consideration in the merger agreement between "Oak, Inc." and "Elm, Inc."?',
        'in the merger agreement between "Oak, Inc." and "Elm, Inc."',
        "What is the Type of Consideration?",
        "merger agreement",
    ),
    (
        "under the supply agreement between alder chemical and birch chemistry, who bears the loss?",
        "the supply agreement between alder chemical and birch chemistry",
        "who bears the loss?",
        "contract",
    ),
    (
        "Does the privacy policy of Lodger Messenger allow sharing?",
        "the privacy policy of Lodger Messenger",
        "Does it allow sharing?",
        "privacy policy",
    ),
    (
        "Under Practice Direction 7A, when is it issued?",
        "Practice Direction 7A",
        "when is it issued?",
        "practice direction",
    ),
]


@pytest.mark.parametrize(("question", "names", "asks", "kind"), WORDINGS, ids=lambda value: value[:40])
def test_what_names_a_document_is_set_apart_from_what_asks(question, names, asks, kind):
    query = understand(question)
    assert (query.names, query.asks, query.kind, query.apart) == (names, asks, kind, True)


@pytest.mark.parametrize(
    "question",
    [
        "What happens on termination?",
        "In the event of termination, must the parties pay?",
        "Does the agreement forbid the receiving party to solicit employees?",
    ],
)
def test_a_question_that_names_nothing_asks_with_all_its_words(question):
    query = understand(question)
    assert (query.names, query.asks, query.apart) == ("", question, False)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Does Lodger share my data?", "Lodger"),
        ("Has Alder agreed to any exclusivity with Tate & Birch?", "Alder Tate & Birch"),
        ("Does the contract require an insurance policy?", "insurance policy"),
    ],
)
def test_words_that_only_look_like_a_name_are_asked_with_too(question, names):
    query = understand(question)
    assert (query.names, query.asks, query.apart) == (names, question, False)


def test_the_rest_may_say_whose_when_the_lead_says_only_the_kind():
    query = understand("In the agreement, what may Alder disclose?")
    assert (query.names, query.asks) == ("the agreement Alder", "what may Alder disclose?")


def test_quoted_names_are_given():
    query = understand("Consider the Merger Agreement between \"Oak, Inc.\" and 'Elm Holdings'; who pays?")
    assert query.quoted == ("Oak, Inc.", "Elm Holdings")


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.lower()))


PIECES = st.sampled_from(
    [
        *(question for question, *_ in WORDINGS),
        "Consider",
        "the",
        "agreement",
        "between",
        '"',
        "'",
        ";",
        ",",
        "Oak's",
        "NDA",
    ]
)


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=8).map(" ".join)))
def test_any_string_is_accepted_and_no_word_is_lost(question):
    query = understand(question)
    assert query.question == question
    assert _words(question) <= _words(query.lead) | _words(query.names) | _words(query.asks)
    assert _words(query.names) <= _words(question)
    assert _words(query.asks) <= _words(question) | {"it"}
    assert bool(_words(query.asks)) == bool(_words(question))


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("What does Fenway's privacy policy say: who sees my jobs?", "who sees my jobs?"),
        ("My question is about Fenway's privacy policy: who sees my jobs?", "who sees my jobs?"),
        ("Could you look into Fenway's privacy policy for me? Who sees my jobs?", "Who sees my jobs?"),
        ("Who sees my jobs? Please answer from Fenway's privacy policy.", "Who sees my jobs?"),
        ("Please review Fenway's privacy policy and tell me: who sees my jobs?", "who sees my jobs?"),
        ("Who sees my jobs? I am asking with regard to Fenway's privacy policy.", "Who sees my jobs?"),
        ("Who sees my jobs? – I mean Fenway's privacy policy.", "Who sees my jobs?"),
        (
            "I have Fenway's privacy policy in front of me and would like to know: who sees my jobs?",
            "who sees my jobs?",
        ),
        (
            "Where is the No-Shop Clause (the Merger Agreement between Oak, Inc. and Elm, Inc.)",
            "Where is the No-Shop Clause",
        ),
        ("What does Fenway's privacy policy say about cookies?", "What does it say about cookies?"),
        (
            "Who are the parties? What is the price in Fenway's privacy policy?",
            "Who are the parties? What is the price?",
        ),
    ],
)
def test_a_sentence_that_only_says_which_document_is_no_part_of_what_is_asked(question, asks):
    query = understand(question)
    assert query.asks == asks and query.apart and ("Fenway" in query.names or "Oak" in query.names)


def kenway(text: str) -> bool:
    """Return whether a text names Kenway, the party of the collection's only document."""
    return "kenway" in text.lower()


@pytest.mark.parametrize(
    ("question", "names", "asks"),
    [
        ("Kenway NDA: does it survive?", "Kenway NDA", "does it survive?"),
        ("kenway: does it survive?", "kenway", "does it survive?"),
        ("kenway, may copies be made?", "kenway", "may copies be made?"),
        ("Having read what kenway wrote; copies allowed", "what kenway wrote", "copies allowed"),
        ("Take Kenway; copies allowed", "Kenway", "copies allowed"),
    ],
)
def test_words_that_few_documents_carry_name_one_before_a_question(question, names, asks):
    query = understand(question, kenway)
    assert (query.names, query.asks, query.apart) == (names, asks, True)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("does kenway share my data", "kenway"),
        ("kenway copies", "kenway"),
        ("In case kenway is sold, who pays?", "kenway"),  # more than a name stands before the comma
        ("Consider the termination; who pays?", ""),  # no word of the lead is any document's
        ("Consider oak; who pays?", ""),
    ],
)
def test_a_question_asks_with_all_its_words_unless_a_clause_is_a_name(question, names):
    query = understand(question, kenway)
    assert (query.names, query.asks, query.apart) == (names, question, False)


def test_a_semicolon_ends_a_lead_before_a_comma_does():
    query = understand("Consider the Services Agreement of Oak, Will Writing, Elm; who pays?")
    assert (query.names, query.asks) == ("the Services Agreement of Oak, Will Writing, Elm", "who pays?")


def test_a_kind_has_two_describing_words_before_it():
    assert understand("Does any mutual content license agreement survive?").names == "content license agreement"


def test_a_name_is_not_endless():
    query = understand("May Elm end the Agreement between " + "Oak and " * 80 + "Oak?")
    assert 390 < len(query.names) < 440


def test_small_letters_are_meant_where_a_known_name_is_written_as_one():
    known = {"viber", "agency"}
    carried = lambda text: any(word.strip(",?").lower() in known for word in text.split())  # noqa: E731
    assert understand("If some state agency asked Viber for it, would they give it?", carried).names == "Viber"
    assert understand("if some state agency asked viber for it, would they give it?", carried).names == "agency viber"
    assert understand("If some state agency asked them for it, would they give it?", carried).names == "agency"


def test_a_question_may_begin_with_am():
    assert understand("Am I the product at Groupon?").names == "Groupon"


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("As of May 3, 2022: Under the Alder lease, who pays the rent?", "who pays the rent?"),
        ("As at 1 March 2021; who pays the rent?", "who pays the rent?"),
    ],
)
def test_a_day_before_the_question_is_not_searched_for(question, asks):
    query = understand(question)
    assert (query.question, query.asks) == (question, asks)
    assert query.lead.startswith("As ") and "20" not in query.names


def test_a_lead_that_is_no_day_may_name_a_document():
    assert understand("As of the Closing Date: who pays the rent?").lead == ""
