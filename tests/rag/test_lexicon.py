"""The tables of words entry by entry: what is kept in how many bytes, cut where, merged, forgotten and found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from exhibit.law.structure.profile import Profile
from exhibit.rag import columns
from exhibit.rag.columns import Column, write_archive
from exhibit.rag.lexicon import documents as documents_module
from exhibit.rag.lexicon import postings, runs
from exhibit.rag.lexicon.bm25 import Words, count_terms, digest, open_words, rarity
from exhibit.rag.lexicon.documents import Documents, read_names
from exhibit.rag.lexicon.lexicon import FILES, Lexicon, read_words
from exhibit.rag.lexicon.postings import Held, Postings
from exhibit.rag.lexicon.runs import Entries, Runs
from exhibit.rag.questions.question import Query
from exhibit.schemas.errors import BundleError


def entries(*rows: tuple[int, int, int]) -> Entries:
    terms, owners, counts = zip(*rows, strict=True)
    return Entries(np.array(terms, np.uint32), np.array(owners, np.int32), np.array(counts, np.uint8))


def told(found: Entries) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in found), strict=True))


# ---------------------------------------------------------------- columns and runs


def test_a_column_is_copied_piece_by_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "_PIECE", 3)
    column = Column(np.int16, tmp_path)
    column.append(np.arange(7))
    assert [piece.tolist() for piece in column.pieces()] == [[0, 1, 2], [3, 4, 5], [6]]
    assert column.read(3).tolist() == [3, 4, 5, 6] and column.read(end=2).tolist() == [0, 1]
    assert column.read().flags.writeable, "what is read may be changed"
    write_archive(tmp_path / "a.npz", {"x": column})
    assert np.load(tmp_path / "a.npz")["x"].tolist() == list(range(7))
    column.close()
    with pytest.raises(ValueError, match="closed"):
        column.read()


def test_entries_are_sorted_by_term_then_owner_then_count():
    mixed = entries((9, 1, 1), (2, 5, 3), (2, 5, 1), (2, 0, 7))
    assert told(mixed.sorted()) == [(2, 0, 7), (2, 5, 1), (2, 5, 3), (9, 1, 1)]


@pytest.mark.parametrize("most", [3, 4])
def test_runs_are_put_aside_from_so_many_entries_on(tmp_path, most):
    made = Runs(np.int32, np.uint8, folder=tmp_path / "new" / "deep", most=most)
    assert not made and not made.on_disk
    made.add(entries((5, 1, 1), (3, 1, 2)))
    assert made and not made.on_disk and not (tmp_path / "new").exists()
    made.add(entries((4, 2, 1)))
    assert made.on_disk is (most == 3)
    made.add(entries((1, 3, 1)))
    assert sorted(told(made.take())) == [(1, 3, 1), (3, 1, 2), (4, 2, 1), (5, 1, 1)]
    assert not made and not made.on_disk and told_nothing(made)


def told_nothing(made: Runs) -> bool:
    taken = made.take()
    return all(len(column) == 0 for column in taken) and [c.dtype.name for c in taken] == ["uint32", "int32", "uint8"]


def test_without_a_folder_everything_stays_in_memory():
    made = Runs(np.int32, np.uint8, folder=None, most=1)
    made.add(entries((5, 1, 1), (3, 1, 2)))
    assert made and not made.on_disk and len(made.take().terms) == 2


def test_blocks_are_cut_by_the_first_bits_of_a_term(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "_BLOCK", 2)
    high = 1 << 16  # the first sixteen bits of a term are those above this
    made = Runs(np.int32, np.uint8, folder=tmp_path, most=4)
    made.add(entries((high, 1, 1), (high + 1, 1, 1), (2 * high, 1, 1), (5 * high, 1, 1)))
    made.add(entries((high, 2, 1), (3 * high, 2, 1), (5 * high, 2, 1), (5 * high + 9, 2, 1)))
    made.add(entries((0, 3, 1)))
    blocks = [told(block) for block in made.blocks()]
    assert [entry for block in blocks for entry in block] == [
        (0, 3, 1), (high, 1, 1), (high, 2, 1), (high + 1, 1, 1), (2 * high, 1, 1), (3 * high, 2, 1),
        (5 * high, 1, 1), (5 * high, 2, 1), (5 * high + 9, 2, 1),
    ]  # fmt: skip
    assert [len(block) for block in blocks if block] == [1, 3, 2, 3], "what is longer than a block is one by itself"
    assert not made and told_nothing(made)


@pytest.mark.parametrize("in_order", [True, False])
def test_a_term_that_most_texts_have_comes_in_several_blocks(tmp_path, monkeypatch, in_order):
    monkeypatch.setattr(runs, "_BLOCK", 4)
    monkeypatch.setattr(runs, "_TOGETHER", 2)
    made = Runs(np.int32, np.uint8, folder=tmp_path, most=2)
    owners = range(20) if in_order else range(19, -1, -1)
    for owner in owners:
        made.add(entries((7, owner, 1), (9 + owner % 2, owner, 2), (1 << 20, owner, 1)))
    blocks = [told(block) for block in made.blocks()]
    every = [(7, owner, 1) for owner in range(20)]
    every += [(9, owner, 2) for owner in range(0, 20, 2)] + [(10, owner, 2) for owner in range(1, 20, 2)]
    assert [entry for block in blocks for entry in block] == every + [(1 << 20, owner, 1) for owner in range(20)]
    assert max(map(len, blocks)) == (2 if in_order else 20), "out of order, a term is sorted as a whole"


# ---------------------------------------------------------------- postings


def test_words_that_few_documents_hold_are_remembered_until_a_document_comes_or_goes(monkeypatch):
    monkeypatch.setattr(postings, "_SHORT", 2)
    monkeypatch.setattr(postings, "_REMEMBERED", 2)
    table = Postings()
    for number in range(3):
        table.add(number, {"all": 1, f"n{number}": 1})
    first = table.find("n0")
    assert table.find("n0")[0] is first[0] and table.find("all")[0] is not table.find("all")[0]
    table.find("n1")
    table.find("n2")
    assert table.find("n0")[0] is not first[0], "two are remembered, and then all are forgotten"
    table.add(3, {"n0": 4})
    assert [column.tolist() for column in table.find("n0")] == [[0, 3], [1, 4]]
    table.remove(0)
    assert table.find("n0")[0].tolist() == [3] and len(table.find("nowhere")[0]) == 0


def test_a_table_that_was_written_is_the_table(tmp_path):
    table = Postings()
    table.add(70000, {"oak": 70000, "elm": 2})
    arrays = table.columns()
    assert {name: column.dtype.name for name, column in arrays.items()} == {
        "terms": "uint32", "numbers": "int32", "counts": "uint16",
    }  # fmt: skip
    again = Postings.of(arrays, tmp_path)  # type: ignore[arg-type]
    assert [column.tolist() for column in again.find("oak")] == [[70000], [65535]] and len(again) == 2
    assert again.totals(np.array([70000]), lambda holders: holders / 2).tolist() == [1.0]
    assert Postings().totals(np.array([1, 2]), lambda holders: holders).tolist() == [0.0, 0.0]
    empty = Postings()
    empty.add_held(1, Held.of({}))
    assert len(empty) == 0 and not empty._runs


# ---------------------------------------------------------------- words of chunks


def test_counts_fit_a_byte_and_lengths_two():
    counted = count_terms(["oak " * 255 + "elm", "oak " * 256, "", "oak " * 65535, "oak " * 65536])
    assert counted.sizes.tolist() == [2, 1, 0, 1, 1] and counted.lengths.tolist() == [256, 256, 0, 65535, 65535]
    assert counted.counts.tolist() == [255, 1, 255, 255, 255]
    assert counted.terms.tolist() == [digest("oak"), digest("elm"), *[digest("oak")] * 3]


def table(*texts: str, first: int = 0, step: int = 1) -> Words:
    words = Words()
    words.add(range(first, first + step * len(texts), step), texts)
    return words


def test_frequencies_of_the_keys_that_are_asked_for_in_their_order():
    words = table("oak elm", "elm elm", "fir", "oak oak oak elm", first=10, step=2)
    keys = np.array([12, 14, 16])
    assert words.frequencies(["oak", "elm", "zzz"], keys).tolist() == [[0, 2, 0], [0, 0, 0], [3, 1, 0]]
    assert words.frequencies(["oak"], np.array([10, 11, 13, 16, 99])).tolist() == [[1], [0], [0], [3], [0]]
    assert words.frequencies(["oak"], np.array([11, 13])).tolist() == [[0], [0]]
    assert words.frequencies(["oak"], np.array([], np.int64)).shape == (0, 1)
    assert words.frequencies(["elm"], np.array([10])).tolist() == [[1]]
    assert words.lengths(np.array([9, 10, 12, 16, 17])).tolist() == [0, 2, 2, 4, 0]
    assert words.rarity(["oak", "elm", "zzz"]).tolist() == pytest.approx(
        [math.log(1 + 2.5 / 2.5), math.log(1 + 1.5 / 3.5), math.log(1 + 4.5 / 0.5)]
    )
    assert rarity(np.array([4]), 4).tolist() == pytest.approx([math.log(1 + 0.5 / 4.5)])


def test_bm25_in_figures():
    words = table("oak elm", "oak oak fir fir fir fir")  # four words on average
    norm = [1.2 * (0.5 + 0.5 * 2 / 4), 1.2 * (0.5 + 0.5 * 6 / 4)]
    expected = [1 * 2.2 / (1 + norm[0]), 2 * 2.2 / (2 + norm[1])]
    assert words.evidence(["oak"], np.array([0, 1]))[:, 0].tolist() == pytest.approx(expected)
    idf = math.log(1 + 0.5 / 2.5)
    assert words.scores(["oak"], np.array([0, 1])).tolist() == pytest.approx([idf * one for one in expected])
    scores, keys = words.search(["oak"], 9)
    order = sorted(range(2), key=lambda at: -expected[at])
    assert keys.tolist() == order and scores.tolist() == pytest.approx([idf * expected[at] for at in order])


def test_of_equal_chunks_the_first_are_found_and_no_more_than_asked():
    words = table("oak", "elm", "oak", "oak", first=5)
    assert words.search(["oak"], 2)[1].tolist() == [5, 7] and words.search(["oak"], 3)[1].tolist() == [5, 7, 8]
    assert words.search(["oak"], 4)[1].tolist() == [5, 7, 8] and words.search(["zzz"], 4)[1].tolist() == []
    assert words.search(["elm", "oak"], 1)[1].tolist() == [6]
    assert len(words) == 4 and len(table()) == 0


def test_empty_chunks_and_chunks_that_went_leave_the_others_as_they_were():
    words = table("", "")
    assert words.scores(["oak"], np.array([0, 1])).tolist() == [0.0, 0.0] and words.lengths(np.array([0]))[0] == 0
    words = table("oak", "elm oak", "fir")
    words.remove([1, 77])
    assert len(words) == 2 and words.frequencies(["oak", "elm"], np.arange(3)).tolist() == [[1, 0], [0, 0], [0, 0]]
    words.add([3, 4], ["oak elm", "elm"])
    assert len(words) == 4 and words.frequencies(["oak", "elm"], np.arange(5)).tolist() == [
        [1, 0], [0, 0], [0, 0], [1, 1], [0, 1],
    ]  # fmt: skip
    words.add([4], ["again"])
    with pytest.raises(BundleError, match="keys of chunks must grow"):
        words.search(["oak"], 1)


def test_words_are_saved_once_they_have_a_file(tmp_path):
    words = open_words(tmp_path / "words.npz")
    words.save()
    assert [len(column) for column in np.load(tmp_path / "words.npz").values()] == [0] * 6
    assert len(open_words(tmp_path / "words.npz")) == 0
    words.add([1], ["oak elm oak"])
    words.save()
    again = open_words(tmp_path / "words.npz")
    assert len(again) == 1 and again.frequencies(["oak"], np.array([1])).tolist() == [[2]]
    assert again.evidence(["oak"], np.array([1])).tolist() == words.evidence(["oak"], np.array([1])).tolist()
    stored = dict(np.load(tmp_path / "words.npz"))
    assert list(stored) == ["keys", "lengths", "terms", "ends", "rows", "counts"]
    assert [stored[name].dtype.name for name in stored] == ["int64", "uint16", "uint32", "int64", "uint32", "uint8"]


def test_the_three_tables_are_kept_in_step(tmp_path):
    lexicon = Lexicon(tmp_path)
    for number, name in enumerate(("Oak", "Elm")):
        words = read_words(
            filename=f"{name}.txt", profile=Profile(f"{name} Lease"), text=f"{name} Lease\nIt is let.",
            chunks=[f"{name} is let", "it ends"], headings=[f"{name} heading"],
        )  # fmt: skip
        lexicon.add(number, words, chunks=np.array([2 * number, 2 * number + 1]), sections=np.array([number]))
    lexicon.save()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(FILES)
    opened = Lexicon(tmp_path)
    assert (len(opened.chunks), len(opened.headings), len(opened.documents)) == (4, 2, 2)
    assert opened.chunks.search(["elm"], 9)[1].tolist() == [2] and opened.headings.search(["elm"], 9)[1].tolist() == [1]
    opened.remove(1, chunks=np.array([2, 3]), sections=np.array([1]))
    assert (len(opened.chunks), len(opened.headings), len(opened.documents)) == (2, 1, 1)
    assert opened.documents.numbers.tolist() == [0]


# ---------------------------------------------------------------- names of documents


def leases(*names: str, text: str = "It is let.") -> Documents:
    made = Documents()
    for number, name in enumerate(names):
        made.add(
            number, filename=f"{number}.txt", profile=Profile(f"{name} Lease"), text=f"{name} Lease\n{text} of {name}"
        )
    return made


def test_a_choice_is_remembered_by_names_kind_standing_and_the_use_of_files(monkeypatch):
    made = leases("Oak", "Elm", "Fir", "Yew")
    oak = Query("?", names="Oak", asks="?", apart=True)
    first = made.score(oak)
    assert made.score(Query("other?", names="Oak", asks="other?", apart=True)) is first
    for other in (
        Query("?", names="Elm", asks="?", apart=True),
        Query("?", names="Oak", asks="?", apart=True, kind="nda"),
        Query("?", names="Oak", asks="?", apart=False),
    ):
        assert made.score(other) is not first
    assert made.score(oak, filenames=False) is not first and made.score(oak) is first
    made.add(9, filename="9.txt", profile=Profile("Ash Lease"), text="Ash Lease")
    fifth = made.score(oak)
    assert fifth is not first and fifth.numbers.tolist() == [0, 1, 2, 3, 9]
    made.remove(9)
    assert made.score(oak).numbers.tolist() == [0, 1, 2, 3]
    monkeypatch.setattr(documents_module, "_REMEMBERED", 8)
    few = leases("Oak", "Elm", "Fir", "Yew")
    oaks, _ = few.score(oak), few.score(Query("?", names="Elm", asks="?", apart=True))
    assert few.score(oak) is oaks, "two of four documents are eight"
    few.score(Query("?", names="Fir", asks="?", apart=True))
    assert few.score(oak) is not oaks


def test_the_sum_of_all_evidence_is_normalised():
    made = leases("Oak", "Elm", "Fir", "Yew")
    choice = made.score(Query("?", names="Oak Lease", asks="?", apart=True, kind="nda"))
    total = sum(choice.evidence.values())
    assert list(choice.evidence) == ["names", "phrases", "title", "kind"]
    assert choice.log_weights.tolist() == pytest.approx((total - np.log(np.exp(total).sum())).tolist())
    assert choice.trace(2)["documents"].keys() == {0, 1} and choice.trace()["documents"].keys() == {0, 1, 2}
    assert choice.best(1) == [0] and made.nbytes > 0


def test_words_in_lower_case_of_a_name_in_capitals_are_no_initials():
    made = Documents()
    made.add(0, filename="0.txt", profile=Profile("", "", ("First Alder Trust",)), text="It is let.")
    for number in range(1, 9):
        made.add(number, filename=f"{number}.txt", profile=Profile(), text="It is let.")
    assert made.carried("FAT") and not made.carried("fat")
    assert made.carried("First") and made.carried("alder") and not made.carried("it")


@pytest.mark.parametrize(("name", "known"), [("lder", True), ("der", False)])
def test_part_of_a_files_name_is_known_from_four_letters_on(name, known):
    made = Documents()
    for number in range(9):
        made.add(number, filename="alder.txt" if number == 4 else "f.txt", profile=Profile(), text="It is let.")
    given = made.score(Query("?", names=name.title(), asks="?", apart=True)).evidence["names"]
    assert bool(given[4] > 0) is known and given[3] == given[5] == 0


def test_a_word_that_two_files_hold_one_of_them_twice_counts_for_two():
    made = Documents()
    for number, filename in enumerate(("alderalder.txt", "xalder.txt", "f.txt", "g.txt", "h.txt")):
        made.add(number, filename=filename, profile=Profile(), text="It is let.")
    given = made.score(Query("?", names="Alder", asks="?", apart=True)).evidence["names"]
    assert given.tolist() == pytest.approx([1.5 * math.log(6 / 2.5)] * 2 + [0.0] * 3)


def test_the_first_page_has_three_thousand_characters_and_a_title_six():
    text = "x" * 2996 + " oak elm"
    held = read_names("a.txt", Profile(), text).fields["opening"]
    assert held.counts.tolist() == [1, 1] and len(held.terms) == 2, "oak is on the page, elm is not"
    for before, stands in ((5996, True), (5997, False)):
        fields = read_names("a.txt", Profile("Oak"), "x" * before + " oak elm").fields
        assert bool(len(fields["stated"].terms)) is stands


def test_a_name_is_kept_where_it_was_said():
    fields = read_names(
        "dir/Oak-Lease.txt", Profile("Oak Lease – Part 2", "contract", ("Elm Trading Ltd",)),
        "Oak Lease – Part 2\nbetween Elm Trading Ltd and Fir. we met Fir",
    ).fields  # fmt: skip
    words = {name: Postings() for name in fields}
    for name, held in fields.items():
        words[name].add_held(0, held)

    def counts(name: str, *terms: str) -> list[int]:
        return [int(words[name].find(term)[1].sum()) for term in terms]

    assert counts("stated", "oak", "lease", "part", "2", "elm", "trading", "ltd", "fir") == [1, 1, 1, 1, 1, 1, 1, 0]
    assert counts("title", "oak", "lease", "part", "elm") == [1, 1, 0, 0]
    assert counts("initials", "etl", "et", "olp2", "olp", "ol") == [1, 1, 1, 1, 0]
    assert counts("opening", "oak", "fir", "between") == [1, 2, 1]
    assert counts("pairs", "oaklease", "elmtrading", "ltdand") == [1, 1, 0]
    assert counts("proper", "elm", "ltd", "fir", "between") == [1, 1, 2, 0]
    assert counts("file", "oak", "lease", "dir", "txt") == [1, 1, 0, 0]


def test_keys_of_many_documents_wait_on_disk_and_give_the_same_file(tmp_path):
    here, aside = Words(), Words(tmp_path / "b" / "words.npz")
    for number in range(600):
        for words in (here, aside):
            words.add([2 * number, 2 * number + 1], [f"oak {number}", "elm"])
    assert len(aside._new) < 256 and len(aside._aside[0]) == 1024, "two blocks of 256 documents are in files"
    here.path = tmp_path / "words.npz"
    here.save()
    aside.save()
    assert here.path.read_bytes() == aside.path.read_bytes()
    assert aside._aside is None and len(aside) == 1200 and aside.lengths(np.array([1199, 7])).tolist() == [1, 1]
    assert aside.lengths(np.array([598, 1198])).tolist() == [2, 2]
