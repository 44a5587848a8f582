"""Reworded questions: every one changes, and no word of it is lost."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench import reword as module
from bench.legalbenchrag.variants import rewrite
from bench.reword import FRAMES, FREE, NamedQuestion, frame_of, free, main, reword, split, unname, write
from exhibit.converters import legalbenchrag
from exhibit.schemas.validate import validate
from exhibit.storage.bundle import open_bundle

MERGER = (
    "Consider the Merger Agreement between 'Calder Group plc' and \"Orrin Holdings Corp.\"; What is the Outside Date"
)
POLICY = 'Consider "Tidepool"\'s privacy policy; does the policy say who sees my data?'
FORM = re.compile(r"\bconsider\b[^;]*;", re.IGNORECASE)

WORDS = st.lists(st.sampled_from("Orrin plc Inc. deltathree.com the for A&B Holdings' \"Keep\" 'Tarn' I NDA".split()))
ASKS = st.lists(st.sampled_from("Does the document allow iPhone data What is I sold; this agreement? IT how".split()))


def words(text: str) -> Counter[str]:
    """Count the words of a text, ignoring case and punctuation."""
    return Counter(re.findall(r"[\w&.-]*\w", text.lower()))


def holds(text: str, part: str) -> bool:
    return not words(part) - words(text)


@pytest.mark.parametrize(
    ("number", "merger", "policy"),
    [
        (0, "Under the Merger Agreement between 'Calder Group plc' and \"Orrin Holdings Corp.\", "
            "what is the Outside Date",
         'Under "Tidepool"\'s privacy policy, does the policy say who sees my data?'),
        (1, "In the Merger Agreement between Calder Group plc and Orrin Holdings Corp.: What is the Outside Date",
         "In Tidepool's privacy policy: does the policy say who sees my data?"),
        (3, "The Merger Agreement between Calder Group plc and Orrin Holdings Corp. – what is the Outside Date",
         "Tidepool's privacy policy – does the policy say who sees my data?"),
        (7, "My question is about the Merger Agreement between 'Calder Group plc' and \"Orrin Holdings Corp.\": "
            "what is the Outside Date",
         'Does the policy, "Tidepool"\'s privacy policy, say who sees my data?'),
        (8, "What is the Outside Date? This concerns the Merger Agreement between Calder Group plc and "
            "Orrin Holdings Corp.",
         "Does the policy say who sees my data? This concerns Tidepool's privacy policy."),
        (9, "What is the Outside Date (the Merger Agreement between 'Calder Group plc' and \"Orrin Holdings Corp.\")",
         'Does the policy say who sees my data? ("Tidepool"\'s privacy policy)'),
    ],
)  # fmt: skip
def test_frames_read_like_a_person_wrote_them(number, merger, policy):
    assert write(FRAMES[number], split(MERGER)) == merger
    assert write(FRAMES[number], split(POLICY)) == policy


def test_names_stand_in_front_in_the_middle_and_at_the_end():
    query = NamedQuestion("the Orrin lease", "What is the rent?")
    assert len(FRAMES) >= 8
    assert {frame.place for frame in FRAMES} == {"front", "middle", "end"}
    for frame in FRAMES:
        text = write(frame, query).lower()
        assert (text.index("orrin") > text.index("rent")) == (frame.place == "end"), text


@pytest.mark.parametrize(
    ("ask", "asked"),
    [
        ("IT systems: who owns them?", "IT systems: who owns them?"),
        ("I want to know the rent", "I want to know the rent"),
        ("Tarn Hollow's duties?", "Tarn Hollow's duties?"),
        ("Is it sold?", "is it sold?"),
    ],
)
def test_only_a_word_that_is_no_name_loses_its_capital(ask, asked):
    assert write(FRAMES[0], NamedQuestion("the lease", ask)) == f"Under the lease, {asked}"


def test_what_is_no_question_gets_a_full_stop():
    query = NamedQuestion("the lease", "Information about the rent")
    assert write(FRAMES[8], query) == "Information about the rent. This concerns the lease."


@given(WORDS, ASKS)
def test_every_question_changes_loses_its_form_and_keeps_its_words(name, ask):
    name, ask = " ".join(["the", *name]).strip(), " ".join(ask)
    assume(re.search(r"\w", ask))
    question = f"Consider {name}; {ask}"
    assert split(question) == NamedQuestion(name, ask.strip())
    for frame in FRAMES:
        text = write(frame, split(question))
        assert text != question
        assert not FORM.search(text)
        assert holds(text, name) and holds(text, ask), text
    assert reword(question) == write(frame_of(question), split(question))
    assert words(unname(question)) == words(ask)


def test_a_question_of_another_form_changes_too_but_has_no_name_to_lose():
    assert reword("What is the rent?") == "Please tell me: what is the rent?"
    assert unname("What is the rent?") == "What is the rent?"


def test_the_frame_depends_on_the_words_alone_and_all_are_used():
    questions = [f"Consider the lease of plot {number}; what is the rent?" for number in range(300)]
    assert {FRAMES.index(frame_of(question)) for question in questions} == set(range(len(FRAMES)))
    assert [reword(q) for q in questions] == [reword(q) for q in reversed(questions)][::-1]
    # fixed for all time: a figure on reworded questions must mean the same on any machine
    assert reword(POLICY) == "In Tidepool's privacy policy: does the policy say who sees my data?"


@pytest.mark.parametrize("flags", [[], ["--unnamed"]])
def test_the_command_writes_a_sound_bundle_with_the_same_gold(convert, samples, tmp_path, flags, capsys):
    bundle = convert(legalbenchrag.INFO.name, "--source", samples / "legalbenchrag")
    out = tmp_path / "other"
    assert main([str(bundle), "--out", str(out), *flags]) == 0
    assert validate(out) == []
    before, after = open_bundle(bundle), open_bundle(out)
    assert after.gold == before.gold
    assert [q.id for q in after.questions] == [q.id for q in before.questions]
    for old, new in zip(before.questions, after.questions, strict=True):
        assert new.question != old.question and not FORM.search(new.question)
        assert (new.answer, new.contexts) == (old.answer, old.contexts)
        assert holds(new.question, split(old.question).name) != bool(flags)
    assert "15 questions" in capsys.readouterr().out
    assert main([str(bundle), "--out", str(out), *flags]) == 1
    assert "exists already" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.data
def test_every_published_question_is_reworded(data):
    files = sorted((data / "legalbenchrag" / "benchmarks").glob("*.json"))
    questions = {test["query"] for file in files for test in json.loads(file.read_text(encoding="utf-8"))["tests"]}
    assert len(questions) > 600
    for question in questions:
        query, text = split(question), reword(question)
        assert query is not None, question
        assert text != question and not FORM.search(text)
        assert holds(text, query.name) and holds(text, query.ask), text


def test_free_words_are_two_hundred_and_no_two_alike():
    written = json.loads(FREE.read_text(encoding="utf-8"))
    assert len(written) == 200 == len({" ".join(words(text)) for text in written.values()})
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in written)
    assert not any(FORM.search(text) for text in written.values())
    assert free("Does anyone ask this?") is None


def test_only_questions_that_somebody_wrote_anew_are_kept(convert, samples, tmp_path, monkeypatch, capsys):
    whole = convert(legalbenchrag.INFO.name, "--source", samples / "legalbenchrag")
    old = open_bundle(whole)
    texts = sorted({question.question for question in old.questions})[::3]
    written = {hashlib.sha256(text.encode()).hexdigest(): f"In short: {n}?" for n, text in enumerate(texts)}
    chosen = [question for question in old.questions if question.question in texts]
    monkeypatch.setattr(module, "FREE", tmp_path / "free.json")
    (tmp_path / "free.json").write_text(json.dumps(written), encoding="utf-8")
    module._free_words.cache_clear()
    assert main([str(whole), "--out", str(tmp_path / "some"), "--free"]) == 0
    module._free_words.cache_clear()
    assert f"{len(chosen)} questions" in capsys.readouterr().out
    assert validate(tmp_path / "some") == []
    new = open_bundle(tmp_path / "some")
    wanted = [(q.id, f"In short: {texts.index(q.question)}?") for q in chosen]
    assert [(q.id, q.question) for q in new.questions] == wanted
    kept = {int(q.id) for q in chosen}
    assert [line for line in old.gold if line.id in kept] == list(new.gold)
    assert rewrite(whole, tmp_path / "all") == len(old.questions)
    assert validate(tmp_path / "all") == []
