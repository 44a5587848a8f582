"""Drafting from a folder: rows of a bundle, titles, the cache, and counts of discarded drafts."""

import importlib
from argparse import Namespace
from pathlib import Path

import pytest

import exhibit
from exhibit.converters import Tally
from exhibit.drafting import folder
from exhibit.drafting.drafts import Draft, digest
from exhibit.drafting.folder import main
from exhibit.drafting.playbook import choose_playbook, find_playbooks
from exhibit.evidence import Span
from exhibit.law.profile import Profile
from exhibit.models.llms import Completion
from exhibit.rag.pipeline import Pipeline
from exhibit.schemas.errors import SourceError, ToolkitError
from exhibit.storage.bundle import sha256_of

USUAL = {
    "playbook": "", "llm": "none", "topic": "", "impossible": 1.0, "engine": "serial", "jobs": 1, "ocr": False,
    "out": Path("drafted"),
}  # fmt: skip


def read(source, **options):
    tally = Tally()
    return folder.read(source, Namespace(**{**USUAL, **options}), tally), tally


class StubDrafter:
    """A stub drafter that returns the given drafts, one list for each document."""

    def __init__(self, monkeypatch, *drafts: tuple[Draft, ...]) -> None:
        self.left = list(drafts)
        monkeypatch.setattr(folder, "construct_questions", lambda document, root, profile: [])
        monkeypatch.setattr(folder, "open_asker", lambda pipeline: self)
        self.embedder = self.reranker = self.reader = Namespace(name="written")

    def ask(self, playbook, prepared):
        return list(self.left.pop(0))


HEAD = (Span(0, 16),)


def make_draft(name="rent", status="sure", asks="Who pays the Rent?", spans=HEAD, sure=0.9, kind="playbook"):
    return Draft("", asks, kind, status, name, spans, sure)


def test_draft_is_converted_to_a_row_with_its_question_answer_and_labels(contracts, monkeypatch):
    spans = Span(0, 16), Span(18, 39)
    unsure, absent = (
        make_draft(asks="Who pays under the {title}?", status="unsure", spans=spans, sure=0.4),
        make_draft(name="fuel", status="absent", spans=(), sure=0.95, asks="Who burns under the {title}?"),
    )
    StubDrafter(monkeypatch, (unsure, absent), ())
    benchmark, _ = read(contracts[0])
    first, second = benchmark.rows
    assert benchmark.sha256 == {path.name: sha256_of(path) for path in contracts[0].iterdir()}
    assert first.id == int(digest("Alder.txt.pdf", "playbook", "rent")[:12], 16)
    assert first.question.startswith("Who pays under the Supply Agreement") and not first.is_impossible
    assert first.answer == "SUPPLY AGREEMENT This Supply Agreement"
    assert [(quote.filename, quote.text, quote.marked) for quote in first.quotes] == [
        ("Alder.txt.pdf", "SUPPLY AGREEMENT", ((0, 16),)),
        ("Alder.txt.pdf", "This Supply Agreement", ((18, 39),)),
    ]
    assert first.labels == {"drafted": "playbook", "draft": "unsure", "asks_for": "rent", "confidence": 0.4}
    assert second.is_impossible and second.answer == "" and second.quotes == ()


def test_draft_adds_a_note_for_documents_that_match_no_playbook(contracts, monkeypatch, tmp_path):
    source = tmp_path / "recipes"
    source.mkdir()
    for name in ("a", "b"):
        (source / f"{name}.txt").write_text("Boil the leeks. Add salt. Serve hot.", encoding="utf-8")
    written = StubDrafter(monkeypatch)
    monkeypatch.setattr(
        folder, "construct_questions", lambda document, root, profile: [make_draft(spans=(Span(0, 4),))]
    )
    benchmark, tally = read(source)
    assert [row.labels["drafted"] for row in benchmark.rows] == ["playbook"] * 2 and not written.left
    assert tally.noted["no playbook suits the document"] == [
        "a.txt.pdf: of no known kind", "b.txt.pdf: of no known kind"
    ]  # fmt: skip
    assert benchmark.draft.playbooks == [] and benchmark.draft.models == ["written"] * 3


def test_draft_refuses_a_folder_that_is_missing_or_unreadable(contracts, tmp_path, capsys):
    assert main([str(contracts[0] / "none"), "--out", str(contracts[1])]) == 1
    assert "none: no such file or folder; expected documents" in capsys.readouterr().err
    with pytest.raises(SourceError, match=r"none: no such folder"):
        read(tmp_path / "none")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.pdf").write_bytes(b"%PDF-1.4 nothing else")
    with pytest.raises(SourceError, match=r"none of its 1 documents can be read: .*a\.pdf: damaged"):
        read(tmp_path / "broken")


def test_cached_drafts_are_reused_only_for_same_settings_and_file_name(contracts, monkeypatch):
    source, *_ = contracts
    (source / "Birch.txt").unlink()
    written = StubDrafter(monkeypatch, *[(make_draft(),)] * 4)
    first = read(source)[0].rows
    assert len(written.left) == 3 and read(source)[0].rows == first and len(written.left) == 3
    others = {"topic": "rent", "playbook": "contract,lease"}
    for left, (flag, value) in zip((2, 1), others.items(), strict=True):
        read(source, **{flag: value})
        assert len(written.left) == left, flag
    (source / "Alder.txt").rename(source / "Birch.txt")
    read(source)
    assert not written.left, "a cached draft is bound to its file name"


def test_draft_records_the_language_model_and_dropped_replies(contracts, monkeypatch):
    class StubLlm:
        name = "told-llm"

        def complete(self, prompts, *, max_tokens, temperature):
            return [Completion("no JSON") for _ in prompts]

    monkeypatch.setattr(Pipeline, "llm", StubLlm())
    benchmark, tally = read(contracts[0])
    [words] = [reason for reason in tally.noted if "discarded" in reason]
    assert words.endswith("a reply that is not the requested JSON") and tally.noted[words] == ["2 questions"]
    assert benchmark.draft.models[-1] == "told-llm" and len(benchmark.draft.models) == 4


@pytest.mark.parametrize("flags", [[], ["--ocr-language", "de"]])
@pytest.mark.parametrize("installed", [True, False])
def test_draft_command_enables_ocr_when_an_engine_is_installed(monkeypatch, flags, installed):
    def choose_ocr() -> None:
        if not installed:
            raise ToolkitError("OCR needs the extra 'ocr'")

    given = []
    monkeypatch.setattr("exhibit.drafting.folder.choose_ocr", choose_ocr)
    monkeypatch.setattr("exhibit.drafting.folder.convert", lambda _, words: given.extend(words) or 0)
    assert main(["folder", *flags]) == 0
    assert ("--ocr" in given) is (installed and not flags)


MAIL = """From: Ada Quill <ada@quill.example>
To: Ben Ostler <ben@ostler.example>
Subject: Letter agreement

Dear Ben,

This letter agreement is still with the printers. If you agree, please sign where marked and send it back by Friday;
each party shall have a copy. The ferry is booked for the second, and the keys of the boathouse lie under the mat.

Kind regards, Ada
"""
NOTE = "LETTER AGREEMENT\n\nThe signed copy is in the safe. Ask Ben for the key before you open it, and put it back.\n"
SHORT = """CONFIDENTIALITY AGREEMENT

Quill Ltd and Ostler Ltd agree that each party shall keep the other party's plans secret and shall use them
for the ferry only. This agreement is governed by the law of Norway.
No party may assign it without the consent of the other party.
"""


@pytest.mark.parametrize(("text", "asked"), [(MAIL, False), (NOTE, False), (SHORT, True)])
def test_choose_playbook_skips_a_text_that_only_mentions_an_agreement(text, asked):
    chosen = choose_playbook(find_playbooks(), Profile(title="Letter Agreement", kind="contract"), text)
    assert (chosen is not None) is asked
    assert choose_playbook(find_playbooks(), Profile(title="Privacy Policy", kind="privacy policy"), text) is not None


@pytest.mark.parametrize(("share", "impossible"), [(1 / 3, 2), (0.5, 4), (1.0, 9), (0.0, 0)])
def test_draft_limits_the_share_of_impossible_questions(contracts, monkeypatch, share, impossible):
    sure = [make_draft(name=f"sure {n}", asks=f"Who pays {n}?") for n in range(4)]
    absent = [make_draft(name=f"absent {n}", status="absent", spans=(), asks=f"Who burns {n}?") for n in range(9)]
    (contracts[0] / "Birch.txt").unlink()
    StubDrafter(monkeypatch, (*sure, *absent, make_draft(name="open", status="unsure")))
    benchmark, tally = read(contracts[0], impossible=share)
    assert sum(row.is_impossible for row in benchmark.rows) == impossible and len(benchmark.rows) == impossible + 5
    noted = [note for note in tally.noted if "impossible questions beyond the share of" in note]
    assert bool(noted) is (impossible < 9)


def test_title_of_a_mail_about_an_agreement_is_the_file_name(contracts, monkeypatch):
    source = contracts[0]
    for path in source.iterdir():
        path.unlink()
    (source / "ada to ben.txt").write_text(MAIL.replace("Friday", "3 May 2024"), encoding="utf-8")
    StubDrafter(monkeypatch)
    monkeypatch.setattr(folder, "construct_questions", lambda document, root, profile: [make_draft(kind="date")])
    benchmark, _ = read(source)
    assert [row.question for row in benchmark.rows if "ada to ben" in row.question] and not [
        row.question for row in benchmark.rows if "etter agreement" in row.question.casefold()
    ]


def test_draft_counts_every_excluded_file(contracts, monkeypatch, tmp_path):
    source, *_ = contracts
    (tmp_path / "elsewhere.txt").write_text("a private note", encoding="utf-8")
    (source / "link.txt").symlink_to(tmp_path / "elsewhere.txt")
    (source / "film.mp4").write_bytes(b"\0\0\0 ftyp")
    StubDrafter(monkeypatch, *[(make_draft(),)] * 7)
    benchmark, tally = read(source)
    kept = [item for raw in benchmark.documents for item in raw.items]
    files = tally.account(kept)["files"]
    assert sum(map(len, tally.left_out.values())) == files.given - files.kept == 2


def test_draft_function_writes_a_bundle_and_refuses_to_overwrite_the_bundle(contracts, monkeypatch):
    StubDrafter(monkeypatch, (make_draft(),), (make_draft(),))
    done = exhibit.draft(contracts[0], out=contracts[1], jobs=1)
    importlib.import_module("exhibit.drafting.folder")
    assert callable(exhibit.draft) and done.info.counts.questions == len(done.load().questions) > 0
    with pytest.raises(ToolkitError) as raised:
        exhibit.draft(contracts[0], out=contracts[1])
    assert raised.value.__context__ is None


def test_card_of_drafts_shows_commands_with_real_folder_names(contracts, monkeypatch, tmp_path):
    StubDrafter(monkeypatch, (make_draft(),), (make_draft(),))
    source = contracts[0].rename(tmp_path / "Smith matter")
    assert main([str(source), "--out", str(tmp_path / "Smith 12"), "--engine", "serial"]) == 0
    card = (tmp_path / "Smith 12" / "README.md").read_text(encoding="utf-8")
    assert "# Drafted questions: Smith 12" in card and "exhibit draft 'Smith matter' " in card
    assert "--out 'datasets_out/Smith 12'" in card and "exhibit evaluate 'datasets_out/Smith 12'" in card
    assert 'load_dataset("datasets_out/Smith 12", "gold"' in card and "FOLDER" not in card


@pytest.mark.parametrize(
    ("profiles", "titles"),
    [
        ([Profile("Lease", parties=("A", "B")), Profile("Lease")], ["Lease between A and B", "Lease (1)"]),
        ([Profile("Lease", parties=("A", "B"))], ["Lease"]),
    ],
)
def test_title_gets_details_only_if_another_document_has_the_same_title(profiles, titles):
    drafted = [folder.Drafted(f"{n}.pdf", profile, "", ()) for n, profile in enumerate(profiles)]
    assert list(folder._make_titles(drafted).values()) == titles
