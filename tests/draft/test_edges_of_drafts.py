"""Drafts at their edges: every question that a document's own words give, windows for a model, wordings, playbooks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from exhibit.draft.asked import Levels, Thresholds, completed
from exhibit.draft.drafts import Draft, digest, pick, worded
from exhibit.draft.made import made_from
from exhibit.draft.playbook import Playbook, chosen_playbook, read_playbook
from exhibit.evidence import Document, Span, read_document
from exhibit.law.profile import Profile, read_profile
from exhibit.law.structure import read_structure
from exhibit.schemas.errors import SourceError
from tests.draft.test_draft import CONTRACT
from tests.draft.test_generated import KEPT, Model, generate, prepared

__all__ = ["prepared"]

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
def test_every_question_that_a_documents_own_words_give_is_as_it_was(tmp_path, golden, name):
    text = LEASE if name == "lease" else CONTRACT.format(party="Alder", law="Norway")
    (tmp_path / f"{name}.txt").write_text(text, encoding="utf-8")
    document = read_document(tmp_path / f"{name}.txt")
    made = made_from(document, read_structure(document), read_profile(document))
    told = [[one.kind, one.status, one.name, worded(one, "Paper"), [list(span) for span in one.spans]] for one in made]
    golden(f"draft/{name}.jsonl", "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in told))


def test_a_draft_is_worded_the_same_each_time():
    assert len(digest("a")) == 16 and digest("a", "b") != digest("ab") and pick(["x"], "a") == "x"
    assert len({pick(["x", "y", "z"], str(n)) for n in range(30)}) == 3 and pick(["x", "y"], "a") == pick(
        ["x", "y"], "a"
    )
    named = Draft("a.pdf", "What of the {title}?", "heading", "sure", "n")
    assert worded(named, "Lease") == "What of the Lease?"
    asked = {worded(Draft("a.pdf", "Who pays?", "heading", "sure", str(n)), "Lease") for n in range(40)}
    assert asked == {
        "Consider the Lease; Who pays?", "In the Lease: Who pays?", "Who pays? (the Lease)",
        "Regarding the Lease, who pays?",
    }  # fmt: skip
    assert named.key == digest("a.pdf", "heading", "n") and named.confidence == 1.0


@pytest.mark.parametrize(
    ("span", "start", "end", "whole"),
    [
        ((4, 8), False, False, (4, 8)),
        ((5, 9), False, False, (4, 9)),
        ((5, 10), False, False, (4, 11)),
        ((0, 1), False, False, (0, 3)),
        ((25, 33), False, False, (24, 35)),
        ((9, 11), True, False, (0, 11)),
        ((9, 11), False, True, (9, 23)),
        ((9, 11), True, True, (0, 23)),
        ((0, 23), True, True, (0, 23)),
    ],
)
def test_a_passage_is_of_whole_words_and_of_the_sentences_that_were_cut(span, start, end, whole):
    assert completed("The rent is due in May. It is paid.", Span(*span), start, end) == whole


def playbook(**told) -> Playbook:
    given = {
        "name": "p",
        "title": "P",
        "kinds": ["lease"],
        "questions": [{"name": "rent", "ask": ["What is the rent?"]}],
    }
    return Playbook.model_validate({**given, **told})


def profile(kind: str, title: str) -> Profile:
    return read_profile(Document("a.txt", title)).__class__(kind=kind, title=title)


def test_levels_are_the_playbooks_unless_they_are_told():
    own = playbook(sure=0.9, absent=0.2, again=False)
    assert Thresholds().over(own) == Levels(0.9, 0.2, False) and Thresholds(0.0, 1.0).over(own) == Levels(
        0.0, 1.0, False
    )


def test_a_playbook_that_knows_words_of_the_title_comes_first():
    general, own = playbook(), playbook(words=["Mill"])
    mill, other = profile("lease", "The MILL lease"), profile("lease", "The ford lease")
    assert own.suits(mill) and not own.suits(other) and general.suits(other) and not general.suits(profile("deed", "x"))
    assert chosen_playbook([general, own], mill) is own and chosen_playbook([own, general], other) is general
    assert chosen_playbook([own], other) is None


def test_a_playbook_with_two_questions_of_a_name_or_of_another_size_is_refused(tmp_path, monkeypatch):
    question = '[[questions]]\nname = "rent"\nask = ["What is the rent?"]\n'
    path = tmp_path / "my_own.toml"
    path.write_text(f'title = "P"\nkinds = ["lease"]\n{question}', encoding="utf-8")
    assert read_playbook(path).name == "my-own"
    path.write_text(f'title = "P"\nkinds = ["lease"]\n{question}{question}', encoding="utf-8")
    with pytest.raises(SourceError, match="questions called the same: rent"):
        read_playbook(path)
    with pytest.raises(SourceError, match="none.toml: cannot be read"):
        read_playbook(tmp_path / "none.toml")


# ---------------------------------------------------------------- by a language model


def shown(model: Model) -> list[str]:
    return [
        prompt.user.partition("<document>\n")[2].partition("\n</document>")[0]
        for prompt in model.asked
        if "<document>" in prompt.user
    ]


@pytest.mark.parametrize(("length", "windows"), [(100, 1), (2400, 1), (4799, 1), (4800, 2), (7200, 3), (99_999, 3)])
def test_a_model_is_shown_up_to_three_parts_of_a_document(prepared, length, windows):
    text = ("word " * (length // 5 + 1))[:length]
    long = prepared.__class__(**{**vars(prepared), "text": text})
    model = Model(*(["no json"] * 3))
    _, dropped = generate(model, long)
    parts = shown(model)
    assert len(parts) == windows and all(len(part) <= 2400 for part in parts) and text.startswith(parts[0])
    assert dropped["a reply that is not the JSON that was asked for"] == windows


def test_a_reply_may_talk_around_its_json_and_two_questions_that_are_alike_are_one(prepared):
    reply = f"Here it is: {json.dumps({'questions': [KEPT, KEPT]})} I hope it helps."
    drafts, dropped = generate(Model(reply), prepared)
    assert len(drafts) == 1 and dropped == {"asks what another question asks": 1}
    assert drafts[0].labels["type"] == "fact" and drafts[0].labels["model"] == "scripted-llm"


@pytest.mark.parametrize(("bare", "known"), [("Norway, in Europe.", True), ("Peru.", False)])
def test_what_a_model_says_without_the_document_is_compared_by_its_words(prepared, bare, known):
    item = {**KEPT, "answer": "Norway Europe Oslo"}
    [draft], _ = generate(Model(json.dumps({"questions": [item]}), bare=bare), prepared)
    assert draft.labels["closed_book"] is known
    assert np.isfinite(draft.confidence)
