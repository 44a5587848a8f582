"""Summaries: one line, never over the limit, asked once, and in the text's own words where a model fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence import Document
from exhibit.law.profile import Profile, read_profile
from exhibit.law.structure import read_structure
from exhibit.law.structure.tree import Section
from exhibit.models.llms import Completion, Prompt
from exhibit.rag.config import Config
from exhibit.rag.summaries import open_summariser
from exhibit.rag.summaries.extractive import Extractive, fit
from exhibit.rag.summaries.llm import LLMSummaries
from exhibit.schemas.errors import ToolkitError

TEXT = """SUPPLY AGREEMENT
This Supply Agreement is made on 3 May 2021 between Alder Mills Limited (“Alder”) and Birch Foods plc (“Birch”).
RECITALS
A. Alder desires to sell flour to mills in Kent.
B. Birch bakes bread.
NOW, THEREFORE, the parties agree:
1. Term. The term of this Agreement is five years. It may be renewed.
2. Price. The price of the flour is set out in Schedule 1.
"""


def read(text: str, name: str = "a.txt") -> tuple[Document, Section, Profile]:
    document = Document(name, text)
    return document, read_structure(document), read_profile(document)


class Scripted:
    """A model that answers from a function of prompt and turn, and counts what it is asked."""

    def __init__(self, reply: Callable[[Prompt], Completion], name: str = "scripted-1") -> None:
        self.name = name
        self.reply = reply
        self.asked: list[Prompt] = []
        self.calls = 0

    def complete(self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float) -> list[Completion]:
        self.calls += 1
        self.asked += prompts
        return [self.reply(prompt) for prompt in prompts]


# ---------------------------------------------------------------- extractive


def test_a_document_is_its_title_its_parties_and_its_subject():
    assert Extractive()(*read(TEXT)) == (
        "Supply Agreement between Alder Mills Limited and Birch Foods plc: Alder desires to sell flour to mills in Kent"
    )


def test_without_a_stated_purpose_the_subject_is_what_the_sections_are_called():
    text = "NON-DISCLOSURE AGREEMENT\n1. Definitions. X.\n2. Return of Information. Y.\n3. No Warranty. Z.\n"
    assert Extractive()(*read(text)) == "Non-Disclosure Agreement: Return of Information; No Warranty"


def test_rules_say_what_they_deal_with():
    text = (
        "PART 30 - TRANSFER\n\n---\n\nScope of this Part\n\n30.1\n\n(1) This Part deals with the transfer of claims.\n"
    )
    assert Extractive()(*read(text)) == "Part 30 - Transfer: This Part deals with the transfer of claims"


def test_a_section_is_its_heading_and_its_first_sentence():
    document, root, profile = read(TEXT)
    sections = [part for part in root.walk() if part.heading.startswith(("1.", "2."))]
    assert Extractive().summarise_sections(document, sections, profile) == [
        "1. Term: The term of this Agreement is five years.",
        "2. Price: The price of the flour is set out in Schedule 1.",
    ]


def test_a_rule_whose_title_stands_over_its_number():
    document, root, profile = read("PART 3 - X\n\n---\n\nScope\n\n3.1\n\nThe court manages cases.\n")
    section = next(part for part in root.walk() if part.heading == "3.1 Scope")
    assert Extractive().summarise_sections(document, [section], profile) == ["3.1 Scope: The court manages cases."]


def test_a_document_without_text_is_called_by_its_name():
    assert Extractive()(*read("", "scan-7.pdf")) == "scan-7"


@given(
    st.text(max_size=300),
    st.lists(st.text(min_size=1, max_size=60), max_size=6),
    st.integers(20, 200),
)
def test_no_summary_is_ever_over_the_limit_or_on_two_lines(text, parties, characters):
    document = Document("a.txt", text)
    profile = Profile(title=text[:90], parties=tuple(parties))
    root = read_structure(document)
    made = [
        Extractive(characters)(document, root, profile),
        *Extractive().summarise_sections(document, list(root.walk()), profile, characters=characters),
    ]
    assert all(len(line) <= characters + 20 and line == " ".join(line.split()) for line in made)


def test_what_fits_is_whole_and_what_does_not_is_cut_at_a_word():
    assert fit("one " * 7, 8) == "one one one one one one one"
    assert fit("one " * 8, 8) == "one one…"


# ---------------------------------------------------------------- by a model


def summaries(model: Scripted, style: str = "generic") -> LLMSummaries:
    return LLMSummaries(model, style)


def test_a_model_is_shown_the_text_and_asked_for_a_length():
    model = Scripted(lambda prompt: Completion('Summary: "Flour for\nBirch."'))
    assert summaries(model)(*read(TEXT)) == "Flour for Birch."
    prompt = model.asked[0]
    assert "150 characters" in prompt.user and "Alder Mills Limited" in prompt.user and prompt.system


def test_the_two_styles_ask_differently():
    model = Scripted(lambda prompt: Completion("x"))
    summaries(model)(*read(TEXT))
    summaries(model, style="expert")(*read(TEXT))
    assert model.asked[0].user != model.asked[1].user
    assert "governing law" in model.asked[1].user and "governing law" not in model.asked[0].user


@pytest.mark.parametrize(("length", "asked"), [(170, 1), (171, 3)])
def test_a_summary_may_be_twenty_characters_longer_than_asked_for(length, asked):
    model = Scripted(lambda prompt: Completion("x" * length))
    assert (len(summaries(model)(*read(TEXT))) == length) is (asked == 1)
    assert len(model.asked) == asked


def test_too_long_a_summary_is_asked_for_again_shorter():
    def reply(prompt: Prompt) -> Completion:
        return Completion("Flour for Birch." if "90 characters" in prompt.user else "word " * 60)

    model = Scripted(reply)
    assert summaries(model)(*read(TEXT)) == "Flour for Birch."
    assert [f"{n} characters" in prompt.user for n, prompt in zip((150, 120, 90), model.asked, strict=True)] == [
        True
    ] * 3


def test_a_summary_that_stays_too_long_is_cut_at_a_word():
    model = Scripted(lambda prompt: Completion("flour " * 60))
    made = summaries(model)
    line = made(*read(TEXT))
    assert 100 < len(line) <= 150 and line.endswith("flour…")
    assert len(model.asked) == 3


@pytest.mark.parametrize("reply", [Completion(error="429 too many requests"), Completion(""), Completion(' "" ')])
def test_a_failure_falls_back_on_the_text(reply):
    assert summaries(Scripted(lambda prompt: reply))(*read(TEXT)) == Extractive()(*read(TEXT))


def test_a_failure_when_asked_for_less_leaves_the_longer_one_cut():
    replies = iter([Completion("flour " * 60), Completion(error="500"), Completion(error="500")])
    made = summaries(Scripted(lambda prompt: next(replies)))
    assert made(*read(TEXT)).endswith("flour…")


def test_sections_are_asked_for_together():
    model = Scripted(lambda prompt: Completion("bad" * 50) if "Price" in prompt.user else Completion("ok"))
    document, root, profile = read(TEXT)
    sections = [part for part in root.walk() if part.heading.startswith(("1.", "2."))]
    made = summaries(model).summarise_sections(document, sections, profile)
    assert made[0] == "ok" and len(made[1]) <= 95
    assert model.calls == 3 and len(model.asked) == 4  # both, then the long one twice more
    assert "section" in model.asked[0].user and "75 characters" in model.asked[0].user


def test_a_document_without_text_is_not_asked_about():
    model = Scripted(lambda prompt: Completion("x"))
    assert summaries(model)(*read("", "scan-7.pdf")) == "scan-7" and not model.asked


# ---------------------------------------------------------------- choosing, keeping


def test_summarisers_are_opened_by_name():
    model = Scripted(lambda prompt: Completion("word " * 22))
    assert open_summariser(Config()).name == "extractive"
    chosen = open_summariser(Config(summaries="llm", summary_characters=100), llm=model)
    assert chosen.name == "llm:generic:scripted-1"
    assert len(chosen(*read(TEXT))) <= 120
    assert open_summariser(Config(summaries="llm:expert"), llm=model).name == "llm:expert:scripted-1"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config(summaries="nobody"), "extractive, llm"),
        (Config(summaries="llm"), "need one: set llm"),
    ],
)
def test_what_cannot_be_opened_says_why(config, message):
    with pytest.raises(ToolkitError, match=message):
        open_summariser(config)


def test_an_unknown_style_says_which_there_are():
    with pytest.raises(ToolkitError, match="generic, expert"):
        summaries(Scripted(lambda prompt: Completion("x")), style="poetic")
