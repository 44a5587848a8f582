"""The lexicon's tables, entry by entry: bytes of an entry, blocks, merging, removal and lookup."""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.law.profile import Profile
from exhibit.rag.database import Database
from exhibit.rag.lexicon import Lexicon, read_words
from exhibit.rag.lexicon import documents as documents_module
from exhibit.rag.lexicon import postings as module
from exhibit.rag.lexicon.bm25 import Words, compute_rarity, count_terms
from exhibit.rag.lexicon.documents import DocumentNames
from exhibit.rag.lexicon.name_words import read_names
from exhibit.rag.lexicon.postings import Postings, TermCounts, digest
from exhibit.rag.questions import Query
from exhibit.schemas.errors import BundleError


def postings(*rows: tuple[int, dict[str, int]], database: Database | None = None) -> Postings:
    made = Postings(database or Database(), "opening")
    for number, counts in rows:
        terms, each = TermCounts.of(counts)
        made.add(terms, np.full(len(terms), number), each)
    return made


def told(found: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    return [column.tolist() for column in found]


# ---------------------------------------------------------------- postings


def test_postings_by_hand():
    table = postings((3, {"oak": 2, "elm": 1}), (1, {"oak": 70000}), (4, {}))
    assert told(table.find("oak")) == [[1, 3], [65535, 2]] and told(table.find("nowhere")) == [[], []]
    table.remove(np.array([3]))
    assert told(table.find("oak")) == [[1], [65535]] and told(table.find("elm")) == [[], []]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.dictionaries(st.sampled_from("abcdefg"), st.integers(1, 99))), max_size=9),
    st.integers(1, 5),
    st.integers(1, 9),
)
def test_postings_find_what_was_added_however_much_is_put_aside(rows, pending, block):
    wanted = dict(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PENDING", pending)
        patch.setattr(module, "_SEPARATE", 2)
        patch.setattr(module, "_BLOCK", block)
        table = postings(*wanted.items())
        for term in "abcdefgh":
            owners = sorted(number for number, counts in wanted.items() if term in counts)
            assert told(table.find(term)) == [owners, [wanted[number][term] for number in owners]]
        entries = [entry for part in table.blocks() for entry in zip(*told(part[:2]), strict=True)]
        assert entries == sorted(entries) and len(entries) == sum(map(len, wanted.values()))


def test_what_is_saved_is_there_again_and_can_be_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PENDING", 3)
    database = Database(tmp_path / "index.sqlite")
    table = postings((4, {"mill": 4, "harrow": 1}), (1, {"mill": 1, "kiln": 2}), database=database)
    table.save()
    assert not (tmp_path / "index.sqlite").exists()
    database.save()
    assert [path.name for path in tmp_path.iterdir()] == ["index.sqlite"], "what waited on disk is gone"
    again = postings((9, {"mill": 5}), database=Database(tmp_path / "index.sqlite"))
    assert told(again.find("mill")) == [[1, 4, 9], [1, 4, 5]]
    other = postings(database=Database(tmp_path / "index.sqlite"))
    assert told(other.find("mill")) == [[1, 4], [1, 4]], "not saved, so nobody else sees it"


def test_words_are_remembered_up_to_a_size_until_a_document_comes_or_goes(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 40)
    table = postings(*((number, {"all": 1, f"n{number}": 1}) for number in range(3)))
    first = table.find("n0")
    assert table.find("n0")[0] is first[0]
    for term in ("n1", "n2", "all"):
        table.find(term)
    assert table.find("n0")[0] is not first[0], "the oldest was forgotten"
    table.add(*(np.array([value]) for value in (digest("n0"), 3, 4)))
    assert told(table.find("n0")) == [[0, 3], [1, 4]]


def test_a_database_of_other_tables_or_of_nonsense_is_refused(tmp_path):
    path = tmp_path / "index.sqlite"
    path.write_bytes(b"no database" * 999)
    with pytest.raises(BundleError, match="damaged .* build the index again"):
        postings(database=Database(path)).find("oak")
    path.unlink()
    with closing(sqlite3.connect(path)) as strange:
        strange.execute("CREATE VIEW postings AS SELECT 1 AS place, 2 AS terms, 3 AS owners, 4 AS counts")
    with pytest.raises(BundleError, match="its tables are not those of an index"):
        postings(database=Database(path)).find("oak")


def test_what_is_not_saved_goes_when_the_database_is_closed(tmp_path):
    database = Database(tmp_path / "index.sqlite")
    postings((1, {"oak": 1}), database=database).save()
    database.close()
    assert not list(tmp_path.iterdir())


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
    assert words.count_frequencies(["oak", "elm", "zzz"], keys).tolist() == [[0, 2, 0], [0, 0, 0], [3, 1, 0]]
    assert words.count_frequencies(["oak"], np.array([10, 11, 13, 16, 99])).tolist() == [[1], [0], [0], [3], [0]]
    assert words.count_frequencies(["oak"], np.array([11, 13])).tolist() == [[0], [0]]
    assert words.count_frequencies(["oak"], np.array([], np.int64)).shape == (0, 1)
    assert words.count_frequencies(["elm"], np.array([10])).tolist() == [[1]]
    assert words.find_lengths(np.array([9, 10, 12, 16, 17])).tolist() == [0, 2, 2, 4, 0]
    assert words.compute_rarity(["oak", "elm", "zzz"]).tolist() == pytest.approx(
        [math.log(1 + 2.5 / 2.5), math.log(1 + 1.5 / 3.5), math.log(1 + 4.5 / 0.5)]
    )
    assert compute_rarity(np.array([4]), 4).tolist() == pytest.approx([math.log(1 + 0.5 / 4.5)])


def test_bm25_in_figures():
    words = table("oak elm", "oak oak fir fir fir fir")  # four words on average
    norm = [1.2 * (0.5 + 0.5 * 2 / 4), 1.2 * (0.5 + 0.5 * 6 / 4)]
    expected = [1 * 2.2 / (1 + norm[0]), 2 * 2.2 / (2 + norm[1])]
    assert words.score_terms(["oak"], np.array([0, 1]))[:, 0].tolist() == pytest.approx(expected)
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
    assert words.scores(["oak"], np.array([0, 1])).tolist() == [0.0, 0.0] and words.find_lengths(np.array([0]))[0] == 0
    words = table("oak", "elm oak", "fir")
    words.remove([1, 77])
    assert len(words) == 2 and words.count_frequencies(["oak", "elm"], np.arange(3)).tolist() == [
        [1, 0],
        [0, 0],
        [0, 0],
    ]
    words.add([3, 4], ["oak elm", "elm"])
    assert len(words) == 4 and words.count_frequencies(["oak", "elm"], np.arange(5)).tolist() == [
        [1, 0], [0, 0], [0, 0], [1, 1], [0, 1],
    ]  # fmt: skip
    words.add([2], ["again"])
    with pytest.raises(BundleError, match="the keys in its table of text lengths are out of order"):
        words.search(["oak"], 1)


def test_words_are_saved_with_their_database(tmp_path):
    database = Database(tmp_path / "index.sqlite")
    words = Words(database)
    words.add([1], ["oak elm oak"])
    words.save()
    database.save()
    again = Words(Database(tmp_path / "index.sqlite"))
    assert len(again) == 1 and again.count_frequencies(["oak"], np.array([1])).tolist() == [[2]]
    assert again.score_terms(["oak"], np.array([1])).tolist() == words.score_terms(["oak"], np.array([1])).tolist()


def test_the_three_tables_are_kept_in_step(tmp_path):
    database = Database(tmp_path / "index.sqlite")
    lexicon = Lexicon(database)
    for number, name in enumerate(("Oak", "Elm")):
        words = read_words(
            filename=f"{name}.txt", profile=Profile(f"{name} Lease"), text=f"{name} Lease\nIt is let.",
            chunks=[f"{name} is let", "it ends"], headings=[f"{name} heading"],
        )  # fmt: skip
        lexicon.add(number, words, chunks=np.array([2 * number, 2 * number + 1]), sections=np.array([number]))
    lexicon.save()
    database.save()
    opened = Lexicon(Database(tmp_path / "index.sqlite"))
    assert (len(opened.chunks), len(opened.headings), len(opened.documents)) == (4, 2, 2)
    assert opened.chunks.search(["elm"], 9)[1].tolist() == [2] and opened.headings.search(["elm"], 9)[1].tolist() == [1]
    opened.remove(1, chunks=np.array([2, 3]), sections=np.array([1]))
    assert (len(opened.chunks), len(opened.headings), len(opened.documents)) == (2, 1, 1)
    assert opened.documents.numbers.tolist() == [0]


# ---------------------------------------------------------------- names of documents


def leases(*names: str, text: str = "It is let.") -> DocumentNames:
    made = DocumentNames()
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
    assert choice.choose_best(1) == [0]


def test_words_in_lower_case_of_a_name_in_capitals_are_no_initials():
    made = DocumentNames()
    made.add(0, filename="0.txt", profile=Profile("", "", ("First Alder Trust",)), text="It is let.")
    for number in range(1, 9):
        made.add(number, filename=f"{number}.txt", profile=Profile(), text="It is let.")
    assert made.has_rare_name("FAT") and not made.has_rare_name("fat")
    assert made.has_rare_name("First") and made.has_rare_name("alder") and not made.has_rare_name("it")


@pytest.mark.parametrize(("name", "known"), [("lder", True), ("der", False)])
def test_part_of_a_files_name_is_known_from_four_letters_on(name, known):
    made = DocumentNames()
    for number in range(9):
        made.add(number, filename="alder.txt" if number == 4 else "f.txt", profile=Profile(), text="It is let.")
    given = made.score(Query("?", names=name.title(), asks="?", apart=True)).evidence["names"]
    assert bool(given[4] > 0) is known and given[3] == given[5] == 0


def test_a_word_that_two_files_hold_one_of_them_twice_counts_for_two():
    made = DocumentNames()
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

    def counts(name: str, *terms: str) -> list[int]:
        return [int(fields[name].counts[fields[name].terms == digest(term)].sum()) for term in terms]

    assert counts("stated", "oak", "lease", "part", "2", "elm", "trading", "ltd", "fir") == [1, 1, 1, 1, 1, 1, 1, 0]
    assert counts("title", "oak", "lease", "part", "elm") == [1, 1, 0, 0]
    assert counts("initials", "etl", "et", "olp2", "olp", "ol") == [1, 1, 1, 1, 0]
    assert counts("opening", "oak", "fir", "between") == [1, 2, 1]
    assert counts("pairs", "oaklease", "elmtrading", "ltdand") == [1, 1, 0]
    assert counts("proper", "elm", "ltd", "fir", "between") == [1, 1, 2, 0]
    assert counts("file", "oak", "lease", "dir", "txt") == [1, 1, 0, 0]


def test_keys_of_many_documents_are_written_as_they_come(tmp_path):
    words = Words(Database(tmp_path / "index.sqlite"))
    for number in range(600):
        words.add([2 * number, 2 * number + 1], [f"oak {number}", "elm"])
    assert len(words._pending) < 256 and len(words) == 1200
    assert words.find_lengths(np.array([1199, 7, 598, 1198])).tolist() == [1, 1, 2, 2]
