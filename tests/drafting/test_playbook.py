"""The package's playbooks are valid, and an invalid playbook causes an error that names the fault."""

import json

import pytest

from exhibit.drafting.folder import playbook_main
from exhibit.drafting.playbook import SHIPPED, choose_playbook, find_playbooks, read_playbook
from exhibit.law.profile import Profile
from exhibit.models.reader import KINDS
from exhibit.schemas.errors import SourceError

OWN = """title = "Boat charters"
kinds = ["contract"]
words = ["charter"]

[[questions]]
name = "fuel"
ask = "Who pays for fuel?"
"""


def test_shipped_playbooks_are_valid():
    playbooks = find_playbooks()
    assert [playbook.name for playbook in playbooks] == sorted(p.stem.replace("_", "-") for p in SHIPPED.glob("*.toml"))
    assert {"contract", "nda", "merger", "privacy", "court-rules", "lease", "employment"} <= {p.name for p in playbooks}
    for playbook in playbooks:
        assert all(question.ask.endswith("?") for question in playbook.questions), playbook.name
    assert len(find_playbooks(["contract"])[0].questions) == 41


def test_shipped_playbook_questions_use_question_kinds_known_to_the_model():
    known = set(json.loads(KINDS.with_suffix(".json").read_text(encoding="utf-8"))["kinds"].values())
    contract, nda = find_playbooks(["contract", "nda"])
    assert {question.seek for question in contract.questions} <= known
    assert {question.seek.casefold() for question in nda.questions} <= {words.casefold() for words in known}
    assert not {question.seek for question in nda.questions} & known


@pytest.mark.parametrize(
    ("kind", "title", "name"),
    [
        ("contract", "Supply Agreement", "contract"),
        ("contract", "Lease of the Marlpit Barn", "lease"),
        ("contract", "Employment Agreement", "employment"),
        ("nda", "Mutual Non-Disclosure Agreement", "nda"),
        ("practice direction", "Practice Direction 7A", "court-rules"),
        ("", "Minutes of the choir", None),
    ],
)
def test_choose_playbook_selects_by_kind_and_title_of_the_document(kind, title, name):
    chosen = choose_playbook(find_playbooks(), Profile(title=title, kind=kind))
    assert (chosen.name if chosen else None) == name


def test_playbook_file_of_a_user_is_read_and_printed(tmp_path, capsys):
    path = tmp_path / "boats.toml"
    path.write_text(OWN, encoding="utf-8")
    assert read_playbook(path).applies_to(Profile(title="Bareboat Charter", kind="contract"))
    assert not read_playbook(path).applies_to(Profile(title="Loan", kind="contract"))
    assert playbook_main([str(path)]) == 0
    assert "fuel: Who pays for fuel?" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "not TOML"),
        (OWN.replace("ask = ", "ask = []  #"), "questions.0.ask"),
        (OWN + 'server = "http://example.org"\n', "questions.0.server"),
        (OWN + 'trained = "maud/Fuel"\n', "fuel: unknown wording 'maud/Fuel'"),
        (OWN + OWN[OWN.index("[[") :], "several questions have the same name \\(fuel\\)"),
    ],
)
def test_read_playbook_error_names_the_position_of_the_fault(text, message, tmp_path):
    path = tmp_path / "boats.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=message):
        read_playbook(path)


def test_find_playbooks_lists_known_names_for_an_unknown_name():
    with pytest.raises(SourceError, match="no playbook 'boats'; choose one of contract"):
        find_playbooks(["boats"])
