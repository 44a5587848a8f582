"""Summaries: one line, never over the limit, requested once, and from the text's own words if a model fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.evidence import Document, Span
from exhibit.law.profile import Profile, read_profile
from exhibit.law.structure import read_structure
from exhibit.law.structure.tree import Section
from exhibit.models.llms import Completion, Prompt
from exhibit.rag.config import Config
from exhibit.rag.summaries import open_summariser
from exhibit.rag.summaries.extractive import ExtractiveSummariser, fit
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
    """A model whose replies are a function of prompt and turn, and which counts its requests."""

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
    assert ExtractiveSummariser()(*read(TEXT)) == (
        "Supply Agreement between Alder Mills Limited and Birch Foods plc: Alder desires to sell flour to mills in Kent"
    )


def test_without_a_stated_purpose_the_subject_is_what_the_sections_are_called():
    text = "NON-DISCLOSURE AGREEMENT\n1. Definitions. X.\n2. Return of Information. Y.\n3. No Warranty. Z.\n"
    assert ExtractiveSummariser()(*read(text)) == "Non-Disclosure Agreement: Return of Information; No Warranty"


def test_rules_say_what_they_deal_with():
    text = (
        "PART 30 - TRANSFER\n\n---\n\nScope of this Part\n\n30.1\n\n(1) This Part deals with the transfer of claims.\n"
    )
    assert ExtractiveSummariser()(*read(text)) == "Part 30 - Transfer: This Part deals with the transfer of claims"


def test_a_section_is_its_heading_and_its_first_sentence():
    document, root, profile = read(TEXT)
    sections = [part for part in root.walk() if part.heading.startswith(("1.", "2."))]
    assert ExtractiveSummariser().summarise_sections(document, sections, profile) == [
        "1. Term: The term of this Agreement is five years.",
        "2. Price: The price of the flour is set out in Schedule 1.",
    ]


def test_a_rule_whose_title_stands_over_its_number():
    document, root, profile = read("PART 3 - X\n\n---\n\nScope\n\n3.1\n\nThe court manages cases.\n")
    section = next(part for part in root.walk() if part.heading == "3.1 Scope")
    assert ExtractiveSummariser().summarise_sections(document, [section], profile) == [
        "3.1 Scope: The court manages cases."
    ]


def test_a_document_without_text_is_called_by_its_name():
    assert ExtractiveSummariser()(*read("", "scan-7.pdf")) == "scan-7"


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
        ExtractiveSummariser(characters)(document, root, profile),
        *ExtractiveSummariser().summarise_sections(document, list(root.walk()), profile, characters=characters),
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
    assert summaries(Scripted(lambda prompt: reply))(*read(TEXT)) == ExtractiveSummariser()(*read(TEXT))


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


@pytest.mark.parametrize("length", [170, 171])
def test_what_is_opened_may_say_twenty_characters_more_than_it_is_set_to(length):
    document, section = Document("a.txt", ""), Section(Span(0, 0), "w " * 47 + "w")
    profile = Profile(title="w" * length)
    summarise = open_summariser(Config())
    assert (summarise(document, section, profile) == "w" * length) is (length == 170)
    assert summarise.summarise_sections(document, [section], profile) == ["w " * 47 + "w"], "95, of 75"
    assert len(summarise.summarise_sections(document, [Section(Span(0, 0), "w " * 48)], profile)[0]) == 95
    assert len(summarise.summarise_sections(document, [Section(Span(0, 0), "w " * 49)], profile)[0]) <= 76


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config(summaries="nobody"), "extractive, llm"),
        (Config(summaries="llm"), "needs a language model: set llm"),
    ],
)
def test_what_cannot_be_opened_says_why(config, message):
    with pytest.raises(ToolkitError, match=message):
        open_summariser(config)


def test_an_unknown_style_says_which_there_are():
    with pytest.raises(ToolkitError, match="generic, expert"):
        summaries(Scripted(lambda prompt: Completion("x")), style="poetic")


# ---------------------------------------------------------------- at their bounds


def summary_of(text: str, root: Section | None = None, *, length: int = 400, **profile: object) -> str:
    document = Document("a.txt", text)
    return ExtractiveSummariser(length)(document, root or Section(Span(0, len(text))), Profile(**profile))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parties", "named"),
    [
        (("A",), "A"),
        (("A", "B"), "A and B"),
        (("A", "B", "C"), "A, B and C"),
        (("A", "B", "C", "D"), "A, B and 2 others"),
        (("A", "B", "C", "D", "E"), "A, B and 3 others"),
    ],
)
def test_three_parties_are_named_and_of_more_two_and_a_count(parties, named):
    assert summary_of("", title="Lease", parties=parties) == f"Lease between {named}"


@pytest.mark.parametrize(("length", "cut_short"), [(170, False), (171, True)])
def test_a_title_that_leaves_no_room_for_the_parties_is_cut_to_half(length, cut_short):
    title = ("word " * 40)[: length - len(" between A and B")].strip().ljust(length - len(" between A and B"), "x")
    told = summary_of("", title=title, parties=("A", "B"), length=150)
    assert told.endswith(" between A and B") and (told == f"{title} between A and B") is not cut_short
    assert not cut_short or len(told) <= 75 + len(" between A and B") + 2


WISH = "The owner wishes to let the mill"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{WISH}.", WISH),
        (f"WHEREAS, {WISH};", WISH),
        (f"{WISH[:29]}.", ""),
        (f"{WISH[:30]}.", WISH[:30]),
        (f"The owner wishes to {'x' * 380}.", f"The owner wishes to {'x' * 380}"),
        (f"The owner wishes to {'x' * 381}.", ""),
        (f"{WISH} on the terms and conditions below.", ""),
        ("The owner has a mill at the ford of the river.", ""),
        ("This Guide explains how a mill is let by its owner.", "This Guide explains how a mill is let by its owner"),
    ],
)
def test_the_subject_is_the_sentence_that_says_what_is_wished_or_explained(text, told):
    assert summary_of(text, title="Lease", kind="contract") == (f"Lease: {told}" if told else "Lease")
    if "wishes" in text:
        assert summary_of(text, title="Rules", kind="rules") == "Rules", "no party wishes anything there"


@pytest.mark.parametrize(("at", "seen"), [(3900, True), (4001, False)])
def test_a_wish_is_looked_for_where_recitals_stand(at, seen):
    text = f"{'A mill. ' * (at // 8)}{' ' * (at % 8)}{WISH}. The end."
    assert (WISH in summary_of(text, title="Lease", kind="contract")) is seen
    marked = Section(Span(0, len(text)), children=(Section(Span(at, len(text)), kind="recitals"),))
    assert WISH in summary_of(text, marked, title="Lease", kind="contract"), "recitals are where they are marked"


def test_what_a_title_says_already_is_no_subject():
    text = "This Policy explains how we handle the data of all of our customers in Kent."
    assert summary_of(text, title="Policy") == f"Policy: {text[:-1]}"
    assert summary_of(text, title=text[:45]) == text[:45]


def test_topics_are_the_headings_that_tell_something():
    def part(*headings: str, kind: str = "section") -> tuple[Section, ...]:
        return tuple(Section(Span(0, 0), heading, kind) for heading in headings)

    root = Section(Span(0, 0), children=part("1. Rent", "2. Tax", "3. Term", "Definitions", "TERM OF LEASE", "Lease"))
    assert summary_of("", root, title="Lease") == "Lease: Rent; Term; Term of Lease", "short and usual ones say nothing"
    root = Section(Span(0, 0), children=(*part("Signed by", kind="signature"), *part("Rent", "Repairs")))
    assert summary_of("", root, title="Lease") == "Lease: Rent; Repairs"
    inner = Section(Span(0, 0), "Lease of the mill", children=part("Rent", "Repairs"))
    assert summary_of("", Section(Span(0, 0), children=(inner,)), title="Lease") == "Lease: Rent; Repairs"
    assert summary_of("", Section(Span(0, 0), children=(inner, *part("End of it"))), title="Lease") == (
        "Lease: Lease of the mill; End of it"
    )


@pytest.mark.parametrize(
    ("heading", "text", "line"),
    [
        ("2. Rent", "2. Rent: It is due. It is paid.", "2. Rent: It is due."),
        ("2. Rent", "2.  Rent\n\n(a) it is due", "2. Rent: (a) it is due"),
        ("2.1 Rent due", "Rent due\n2.1 It is paid.", "2.1 Rent due: It is paid."),
        ("2.1 Rent", "Rentals 2.1 Rent It is paid.", "2.1 Rent: It is paid."),
        ("Rent", "Rent", "Rent"),
        ("", "It is due. It is paid.", "It is due."),
        ("Rent", "It is due.", "Rent: It is due."),
    ],
)
def test_a_section_is_told_by_what_stands_below_its_heading(heading, text, line):
    section = Section(Span(0, len(text)), heading)
    assert ExtractiveSummariser().summarise_sections(Document("a.txt", text), [section], Profile()) == [line]


def test_the_model_is_shown_as_much_as_is_set_and_asked_as_it_is_set():
    told = []
    model = Scripted(lambda prompt: Completion("A lease."))
    complete = model.complete
    model.complete = lambda prompts, **how: told.append(how) or complete(prompts, **how)
    shown = Config(summaries="llm", summary_shown=5, summary_tokens=40, summary_temperature=0.3)
    document = Document("a.txt", "W" * 9000)
    sections = [Section(Span(0, 3000)), Section(Span(3000, 3001))]
    summarise = open_summariser(shown, llm=model)
    assert summarise(document, sections[0], Profile()) == "A lease." and summarise.alone is False
    assert told == [{"max_tokens": 40, "temperature": 0.3}] and "WWWWW" in model.asked[0].user
    assert "WWWWWW" not in model.asked[0].user
    summarise.summarise_sections(document, sections, Profile(title="Lease"))
    assert "W" * 2500 in model.asked[1].user and "W" * 2501 not in model.asked[1].user
    assert all("From: Lease" in prompt.user for prompt in model.asked[1:])


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("**Summary**: A lease.", "A lease."), ("summary - A “lease”.", "A lease."), ("A summary: b.", "A summary: b.")
    ],
)  # fmt: skip
def test_what_models_put_around_a_summary_is_taken_away(reply, kept):
    model = Scripted(lambda prompt: Completion(reply))
    assert LLMSummaries(model)(*read(TEXT)) == kept


def test_a_longer_second_reply_does_not_replace_the_first():
    replies = iter(["w " * 100, "w " * 120, "w " * 90])
    model = Scripted(lambda prompt: Completion(next(replies)))
    told = LLMSummaries(model)(*read(TEXT))
    assert model.calls == 3 and told.startswith("w w") and len(told) <= 152
    asked = [int(re.search(r"\b(150|120|90)\b", prompt.user)[0]) for prompt in model.asked]
    assert asked == [150, 120, 90]


def test_a_model_is_asked_as_the_usual_settings_ask_unless_told():
    usual, config = LLMSummaries(Scripted(lambda prompt: Completion("x"))), Config()
    assert (usual.shown, usual.tokens, usual.temperature, usual.length) == (
        config.summary_shown, config.summary_tokens, config.summary_temperature, config.summary_characters
    )  # fmt: skip
    assert ExtractiveSummariser().length == config.summary_characters and ExtractiveSummariser().alone is True
