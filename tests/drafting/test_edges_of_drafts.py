"""Edge cases of drafts: questions from a document's text, its parts for a model, wordings, playbooks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exhibit.drafting.asked import Asker
from exhibit.drafting.constructed import construct_questions
from exhibit.drafting.drafts import word_question
from exhibit.drafting.generated import Generator
from exhibit.evidence import Document, Span, read_document
from exhibit.law.profile import Profile, read_profile
from exhibit.law.structure import read_structure
from exhibit.law.structure.tree import Section
from exhibit.models.embedders.hashing import Hashing
from exhibit.models.llms import Completion
from tests.drafting.test_draft import CONTRACT, Scripted
from tests.drafting.test_generated import KEPT, LAW, Model, generate

LEASE = """LEASE AGREEMENT

This Lease Agreement is made on May 4, 2021 between Fir Estates Ltd and Gorse Mills plc.

1. Definitions

“Premises” means the mill that stands at the ford of the river, with its yard. “Term” means the five years from the day
on which the keys are given. “Rent” shall mean $1,200 a month. “Deposit” (also the “Sum”) refers to two months of Rent.

2. Rent

2.1 The Rent is paid in advance on the first of each month, and Section 3.2 says what follows where it is late.

2.2 A further €350 falls due on 1 June 2022, and $10, $20, $30 and $40 on other days that the parties agree.

3. Default

3.1 Where the Tenant is in default for thirty days, the Landlord may end this Lease as clause 4 lays down.

3.2 Interest of 4% a year falls due on what is late, from the day after it was due until the day on which it is paid.

4. End

This Lease ends on 3 May 2026, or 30 days after a notice under Section 3.1. Section 9.9 is left out on purpose.
"""


@pytest.mark.parametrize("name", ["lease", "contract"])
def test_construct_questions_matches_golden_file(tmp_path, golden, name):
    text = LEASE if name == "lease" else CONTRACT.format(party="Alder", law="Norway")
    (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    document = read_document(tmp_path / f"{name}.txt")
    made = construct_questions(document, read_structure(document), read_profile(document))
    told = [
        [one.kind, one.status, one.name, word_question(one, "Paper"), [list(span) for span in one.spans]]
        for one in made
    ]
    golden(f"drafting/{name}.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in told))


# ---------------------------------------------------------------- by construction


def made(text: str, *sections: Section, parties: tuple[str, ...] = ()) -> dict[tuple[str, str], list[str]]:
    root = Section(Span(0, len(text)), kind="document", children=sections)
    drafts = construct_questions(Document("a.txt", text), root, Profile(parties=parties))
    return {(d.kind, d.name): [text[s.start : s.end] for s in d.spans] for d in drafts if d.status == "sure"}


LONG = "which the parties to this Agreement have agreed upon in good faith."


def test_construct_questions_skips_a_term_defined_twice():
    once, twice = f"“Goods” means planks {LONG}", f"“goods” is not “Goods” and “GOODS” means nails {LONG}"
    assert made(once) == {("definition", "Goods"): [once]} and made(f"{once} {twice}") == {}
    inside = f"In this Agreement “Base  Rent” (the “Sum”) shall mean the rent {LONG}"
    assert made(inside) == {("definition", "Base Rent"): [inside[18:]]}, "from the term on"


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("Tax", "Tax"),
        ("§ 12. Tax", "Tax"),
        ("Section 4.2  Late  payment.", "Late payment"),
        ("(a) TAX AND DUTY", "Tax and Duty"),
        ("one two three four five six seven eight nine ten", None),
        ("To be or", None),
        ("4.", None),
    ],
)
def test_construct_questions_asks_for_a_section_by_the_words_of_its_heading(heading, name):
    assert made("w" * 80, Section(Span(0, 80), heading)) == ({("heading", name): ["w" * 80]} if name else {})


def test_construct_questions_skips_a_repeated_or_parent_heading():
    text = "w" * 160
    parts = Section(Span(0, 80), "1. Tax"), Section(Span(80, 160), "2. TAX")
    assert made(text, *parts) == {} and made(text, parts[0]) == {("heading", "Tax"): ["w" * 80]}
    assert made(text, Section(Span(0, 160), "Duty", children=parts[:1])) == {("heading", "Tax"): ["w" * 80]}
    assert made(f"  {text}\n", Section(Span(0, 163), "Tax")) == {("heading", "Tax"): [text]}, "without its edges"


def test_construct_questions_asks_for_parties_when_sentences_name_both():
    text = f"Alder Ltd supplies planks {LONG} Birch plc pays for them {LONG}"
    first = text[: text.index(" Birch")]
    assert made(text, parties=("Alder Ltd",)) == {} and made(text, parties=("Alder Ltd", "Cedar AG")) == {}
    assert made(text, parties=("Alder Ltd", "Birch plc")) == {("parties", "parties"): [first, text[len(first) + 1 :]]}
    assert made(first, parties=("Alder Ltd", "planks")) == {("parties", "parties"): [first]}, "one sentence names both"
    assert made(f"{text} Cedar AG.", parties=("Alder Ltd", "Cedar AG")) == {}, "a line of signature is no answer"


def test_construct_questions_asks_at_most_3_questions_of_each_kind():
    text = " ".join(f"“Thing{n}” means a thing {LONG}" for n in "ABCDE")
    drafts = construct_questions(Document("a.txt", text), Section(Span(0, len(text))), Profile())
    assert [draft.status for draft in drafts] == ["sure"] * 3 + ["absent"] * 3
    assert construct_questions(Document("a.txt", LONG * 9), Section(Span(0, 9)), Profile()) == [], "it defines nothing"
    [named] = {d.name for d in drafts if d.status == "absent"} - {
        d.name
        for d in construct_questions(Document("a.txt", text + drafts[3].name.upper()), Section(Span(0, 9)), Profile())
        if d.status == "absent"
    }
    assert named == drafts[3].name


LETTER = """Dear Mr Webb,

We act for your landlord, Mrs Smith. The rent that was due on 1 May 2024, altogether £4,000, has not been paid.

Please telephone our office before 28 June 2024 so that payment by instalments can be discussed with our client.
"""


def test_construct_questions_asks_for_dates_and_amounts_of_a_letter_without_headings():
    drafts = made(LETTER)
    assert set(drafts) == {("value", name) for name in ("1 May 2024", "£4,000", "28 June 2024")}
    assert drafts["value", "28 June 2024"][0].startswith("Please telephone our office")
    written = construct_questions(Document("a.txt", LETTER), Section(Span(0, len(LETTER))), Profile())
    assert {draft.asks for draft in written} == {
        "Why does 1 May 2024 matter?", "Why does 28 June 2024 matter?", "What is the sum of £4,000 for?"
    }  # fmt: skip


# ---------------------------------------------------------------- by a language model


def shown(model: Model) -> list[str]:
    return [
        prompt.user.partition("<document>\n")[2].partition("\n</document>")[0]
        for prompt in model.asked
        if "<document>" in prompt.user
    ]


@pytest.mark.parametrize(("length", "windows"), [(100, 1), (99_999, 3)])
def test_generator_shows_the_model_up_to_3_parts_of_a_document(prepared, length, windows):
    text = ("word " * (length // 5 + 1))[:length]
    long = prepared.__class__(**{**vars(prepared), "text": text})
    model = Model(*(["no json"] * 3))
    _, dropped = generate(model, long)
    parts = shown(model)
    assert len(parts) == windows and all(len(part) <= 2400 for part in parts) and text.startswith(parts[0])
    assert dropped["a reply that is not the requested JSON"] == windows


def whole(prepared, text, *starts):
    """Return a document of this text, with a chunk of a hundred characters from each of these offsets on."""
    table = np.array([[at, at + 100, 0, 0] for at in starts], np.int64).reshape(-1, 4)
    chunks = tuple(text[at : at + 100] for at in starts)
    return prepared.__class__(**{**vars(prepared), "text": text, "chunks": table, "texts": chunks})


def test_generator_shows_the_parts_nearest_to_the_topic_with_preceding_text(prepared):
    text = "".join(f"{number:04d}" for number in range(2500)).replace("1250", "rent")
    topical = whole(prepared, text, 100, 4990)
    model = Model(*(["no json"] * 3))
    generate(model, topical, topic=topical.texts[1])
    assert shown(model) == [text[4190:6590], text[:2400]], "the nearest first, from a third of the window before"
    without = Model("no json")
    generate(without, whole(prepared, "short"), topic="rent")
    assert shown(without) == ["short"], "a document without chunks is shown from its beginning"


def test_generator_counts_a_model_failure_and_continues_with_the_next_part(prepared):
    model = Model(*[json.dumps({"questions": [KEPT]})] * 2)
    complete = model.complete

    def failing(prompts, **told):
        first, *others = complete(prompts, **told)
        return [first if not others else Completion("", error="busy"), *others]

    model.complete = failing
    drafts, dropped = generate(model, whole(prepared, f"{LAW}. {'word ' * 960}", 0))
    assert len(drafts) == 1 and dropped == {"the language model failed": 1}


@pytest.mark.parametrize(
    "broken",
    [
        7, {**KEPT, "quotes": "a string"}, {**KEPT, "quotes": [7]}, {**KEPT, "question": 7}, {**KEPT, "question": " "},
        {**KEPT, "type": "poem"}, {"type": "fact"},
    ],
)  # fmt: skip
def test_generator_counts_a_malformed_question_and_keeps_the_others(prepared, broken):
    drafts, dropped = generate(Model(json.dumps({"questions": [broken, KEPT]})), prepared)
    assert [draft.asks for draft in drafts] == [KEPT["question"]]
    assert dropped == {"a question without its type or quotes": 1}


def test_generator_drops_a_question_with_a_quote_missing_from_the_document(prepared):
    term = "The deposit is returned within thirty days"
    quotes = [{**KEPT, "quotes": given} for given in ([LAW, " ", term, LAW], [LAW, "never written here at all"], [" "])]
    [both], dropped = generate(Model(json.dumps({"questions": quotes})), prepared)
    assert [prepared.text[span.start : span.end] for span in both.spans] == [LAW, term]
    assert dropped == {"a quote that is not in the document": 2}
    spaced = {**KEPT, "question": "Which  law\ngoverns it?"}
    [draft], _ = generate(Model(json.dumps({"questions": [spaced]})), prepared)
    assert draft.asks == "Which law governs it?" and draft.kind == "llm"


@pytest.mark.parametrize(("likely", "status"), [(0.9, "sure"), (0.5, "unsure")])
def test_generator_marks_a_draft_sure_above_a_confidence_threshold(prepared, likely, status):
    reader = Scripted()
    reader.confidence = lambda scores, *, spot=None: likely
    model = Model(json.dumps({"questions": [KEPT]}))
    [draft] = Generator(model, Asker(Hashing(64), reader, reader)).draft(prepared)
    assert (draft.status, draft.confidence) == (status, likely)
