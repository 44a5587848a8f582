"""Tokens word by word: the same ids as the model's own tokenizer, whatever the text; and complete batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhibit.models import network
from exhibit.models.network import Tokens, WordTokenizer, load_tokenizer

ODD = [
    "",
    " \n\t",
    "The Supplier's “Net Revenue” – see § 4.2(a) – shall not exceed $250,000.00.",
    "naïve café\u00a0résumé\u2003Zürich\u2028new line",
    "合同的 第一条 mixed中文words",
    "a[SEP]b [CLS] [MASK]",
    "form\x0cfeed bell\x07 vertical\x0btab next\x85line file\x1cseparator",
    "e\u0301 \u0301alone combining",
    "\ud800 half a pair",
    "x" * 150 + " antidisestablishmentarianism",
    "termination " * 300,
]


@pytest.fixture(scope="module")
def own() -> WordTokenizer:
    return WordTokenizer(load_tokenizer(), longest=256)


@pytest.fixture(scope="module")
def official():
    tokenizer = load_tokenizer()
    tokenizer.enable_truncation(256)
    return lambda texts: [tokenizer.encode(text.encode("utf-8", "replace").decode()).ids for text in texts]


def test_odd_texts_have_the_ids_of_the_official_tokenizer(own, official):
    assert own(ODD) == official(ODD)
    assert own(ODD) == official(ODD)  # and again, now that the words are remembered


@settings(max_examples=settings.default.max_examples * 3 // 2)
@given(st.text(max_size=60))
def test_any_text_has_the_ids_of_the_official_tokenizer(own, official, text):
    assert own([text]) == official([text])


def test_what_is_remembered_stays_small_and_changes_nothing(official, monkeypatch):
    monkeypatch.setattr(network, "_REMEMBERED", 20)
    small = WordTokenizer(load_tokenizer(), longest=256)
    texts = [f"clause number {number} of lease {number * 7}" for number in range(12)]
    assert [small([text])[0] for text in texts] == official(texts)
    assert len(small._known) <= 20


def test_batches_hold_every_text_once_with_others_of_its_length(own):
    tokens = own.flatten([*ODD, *ODD, "Notices.", "Term."])
    batches = tokens.batches(600)
    rows = np.concatenate([rows for rows, _ in batches])
    assert sorted(rows) == list(range(len(tokens.lengths)))
    ids = own([*ODD, *ODD, "Notices.", "Term."])
    for rows, lines in batches:
        assert lines.size <= max(600, lines.shape[1])
        assert [list(map(int, line)) for line in lines] == [ids[row] for row in rows]
    assert Tokens(np.zeros(0, np.uint16), np.zeros(0, np.int64)).batches(9) == []


def test_workers_give_the_tokens_that_one_process_gives(own, monkeypatch):
    monkeypatch.setattr(network, "FEW", 4)
    monkeypatch.setattr(network, "PART", 3)
    texts = ODD + [f"Section {number}. Governing Law." for number in range(9)]
    feed = network.Feed(workers=1, slab=6)
    try:
        slabs = list(feed.slabs(texts))
    finally:
        feed.close()
    assert [start for start, _ in slabs] == [0, 6, 12, 18]
    found = [line for _, slab in slabs for line in np.split(slab.ids, np.cumsum(slab.lengths)[:-1])]
    assert [list(map(int, line)) for line in found] == own(texts)
