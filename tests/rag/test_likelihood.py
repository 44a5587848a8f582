"""The probability that each document is meant, computed by hand in natural logarithms, for every kind of evidence."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from exhibit.law.profile import Profile
from exhibit.rag.lexicon.documents import Choice, DocumentNames
from exhibit.rag.lexicon.name_words import read_names
from exhibit.rag.questions import Query

WORDS = "the parties agree that the rent is due. "


def documents(*told: tuple[str, str, tuple[str, ...], str, str]) -> DocumentNames:
    """Return documents by file, title, parties, kind and text, with others up to eight."""
    made = DocumentNames()
    for number, (filename, title, parties, kind, text) in enumerate(told):
        made.add(number, filename=filename, profile=Profile(title, kind, parties), text=text)
    for number in range(len(told), 8):
        made.add(number, filename=f"f{number}.txt", profile=Profile(), text=WORDS)
    return made


def rarity(holders: float) -> float:
    """Return the rarity of a word among eight documents."""
    return max(0.0, log(9 / (holders + 0.5)))


def given(
    made: DocumentNames, names: str, signal: str, *, apart: bool = True, kind: str = "", **options
) -> list[float]:
    query = Query("?", names=names, asks="?", apart=apart, kind=kind)
    # what is said of names counts one and a half times
    times = 1.5 if signal in {"names", "phrases", "title"} else 1.0
    return [round(float(weight) / times, 6) for weight in made.score(query, **options).evidence[signal]]


def near(*numbers: float) -> list[float]:
    return [*(round(number, 6) for number in numbers), *([0.0] * (8 - len(numbers)))]


def test_a_name_in_the_title_counts_for_as_much_as_it_is_rare():
    oak = ("a.txt", "Oak Lease", (), "", f"Oak Lease\n{WORDS}")
    assert given(documents(oak), "Oak", "names") == near(rarity(1))
    two = documents(oak, ("b.txt", "Oak Sale", (), "", f"Oak Sale\n{WORDS}"))
    assert given(two, "Oak", "names") == near(rarity(2), rarity(2))
    assert given(two, "Oak Elm", "names") == near(rarity(2), rarity(2))


def test_mentions_in_running_text_count_for_half_two_thirds_and_so_on():
    once = ("a.txt", "", (), "", f"{WORDS}He met Oak here.")
    twice = ("b.txt", "", (), "", f"{WORDS}He met Oak and Oak here.")
    assert given(documents(once, twice), "Oak", "names") == near(rarity(2) / 2, 2 * rarity(2) / 3)
    assert given(documents(once, twice), "oak", "names") == near(rarity(2) / 2, 2 * rarity(2) / 3)


def test_a_party_is_known_by_its_initials_in_capitals_or_where_all_is_small():
    party = ("a.txt", "", ("First Alder Trust",), "", WORDS)
    assert given(documents(party), "FAT", "names") == near(rarity(1))
    assert given(documents(party), "fat", "names") == near(rarity(1))
    assert given(documents(party), "fat Cat", "names") == near(0.0)


def test_the_name_of_the_file_counts_unless_it_is_left_out_and_in_part_from_four_letters_on():
    oak = ("oakwood-2019.txt", "", (), "", WORDS)
    assert given(documents(oak), "Oakwood", "names") == near(rarity(1))
    assert given(documents(oak), "wood", "names") == near(rarity(1))
    assert given(documents(oak), "oak", "names") == near(0.0)
    assert given(documents(oak), "Oakwood", "names", filenames=False) == near(0.0)


def test_a_word_that_any_text_has_tells_nothing_though_few_titles_have_it():
    rent = ("a.txt", "Rent", (), "", f"Rent\n{WORDS}")
    assert given(documents(rent), "rent", "names")[0] == pytest.approx(rarity(8), abs=1e-6)


def test_two_words_in_a_row_count_for_what_they_tell_beyond_each():
    row = ("a.txt", "", (), "", f"{WORDS}to Oak Hill.")
    apart = ("b.txt", "", (), "", f"{WORDS}to Oak and to Hill.")
    made = documents(row, apart)
    assert given(made, "Oak Hill", "phrases") == near(max(0.0, rarity(1) - rarity(2)), 0.0)
    assert given(made, "Oak and Hill", "phrases") == near(0.0)


def test_a_camels_parts_and_a_word_that_a_page_writes_as_two():
    made = documents(("a.txt", "", (), "", f"{WORDS}to AG Projects."), ("b.txt", "", (), "", f"{WORDS}to Alder."))
    assert given(made, "Agprojects", "names") == near(rarity(1))
    assert given(made, "AlderZzz", "names") == near(0.0, rarity(1) / 2)
    rent = documents(("a.txt", "", (), "", f"{WORDS}to Rent."))
    assert given(rent, "RentZzz", "names") == near(rarity(1) / 2), "as a name, though every text has the word"


def test_a_title_that_is_said_in_full_is_meant_and_half_of_it_is_chance():
    one = ("a.txt", "Oak Lease", (), "", f"Oak Lease\n{WORDS}")
    other = ("b.txt", "Elm Lease", (), "", f"Elm Lease\n{WORDS}")
    made = documents(one, other)
    assert given(made, "Oak Lease", "title")[0] == pytest.approx(rarity(1), abs=1e-6)
    share = rarity(1) / (rarity(1) + rarity(2))
    said = (share - 0.5) / 0.5
    assert given(made, "Oak", "title")[0] == pytest.approx(said * rarity(said), abs=1e-5)
    assert given(made, "Lease", "title") == near(0.0)


def test_what_sort_a_document_is_need_not_be_said_where_two_words_name_it():
    made = documents(
        ("a.txt", "The Elm Court Guide", (), "", f"The Elm Court Guide\n{WORDS}"),
        ("b.txt", "Oak Guide", (), "", f"Oak Guide\n{WORDS}"),
    )
    assert given(made, "Elm Court", "title") == near(rarity(1))
    assert given(made, "Guide", "title") == near(0.0)
    assert given(made, "Oak", "title") == near(0.0)  # one word alone may be said by chance


def test_only_what_stands_on_its_first_pages_is_a_documents_title():
    for before, counts in ((5990, True), (6000, False)):
        text = "x" * before + " Oak Lease"
        fields = read_names("a.txt", Profile("Oak Lease"), text[: before + 10]).fields
        assert bool(len(fields["title"].terms)) is counts
    heads = read_names("a.txt", Profile("Guide 4 – Oak Lease"), "Guide 4 – Oak Lease").fields["title"]
    assert len(heads.terms) == 2, "what is cited of it ends at a dash"
    assert len(read_names("a.txt", Profile(), "A" * 2999 + " Oak").fields["opening"].terms) == 1


def test_a_kind_that_is_meant_leaves_other_kinds_ten_times_less_likely():
    told = [(f"{kind}.txt", "", (), kind, WORDS) for kind in ("nda", "contract", "privacy policy", "merger agreement")]
    assert given(documents(*told), "", "kind", kind="nda")[:5] == [0.0, -2.3, -2.3, -2.3, 0.0]
    assert given(documents(*told), "", "kind", kind="contract")[:5] == [0.0, 0.0, -2.3, 0.0, 0.0]
    assert given(documents(*told), "", "kind")[:5] == [0.0] * 5


@pytest.mark.parametrize(("holders", "counts"), [(1, True), (2, False)])
def test_of_words_that_only_look_like_names_those_count_that_few_documents_hold(holders, counts):
    told = [(f"{n}.txt", "Oak Lease", (), "", f"Oak Lease\n{WORDS}") for n in range(holders)]
    made = documents(*told)
    assert bool(given(made, "Oak", "names", apart=False)[0]) is counts
    assert made.has_rare_name("the Oak") is counts and made.has_rare_name("the oak") is counts
    assert not made.has_rare_name("rent")


@pytest.mark.parametrize(("total", "counts"), [(2, False), (3, True)])
def test_one_of_three_documents_is_few_and_one_of_two_is_not(total, counts):
    made = DocumentNames()
    for number in range(total):
        name = "Oak" if number == 0 else "Elm"
        made.add(number, filename=f"{number}.txt", profile=Profile(f"{name} Deed"), text=f"{name} Deed\nIt is let.")
    assert made.has_rare_name("oak") is counts and made.has_rare_name("Oak") is counts


def test_likelihoods_add_up_and_the_best_hold_a_share():
    choice = Choice(np.array([4, 5, 6, 7]), np.log([0.5, 0.3, 0.15, 0.05]))
    assert choice.sure == pytest.approx(0.5) and choice.choose_best(2) == [4, 5]
    assert [len(choice.choose_best(4, share=share)) for share in (0.4, 0.5, 0.51, 0.8, 0.81, 1.1)] == [1, 1, 2, 2, 3, 4]
    assert choice.trace(1) == {"sure": 0.5, "documents": {4: {"weight": 0.5}}}
    more = choice.add_signal("x", np.array([0.0, 1.0, 0.0, 0.0]))
    assert more.choose_best(1) == [5] and np.exp(more.log_weights).sum() == pytest.approx(1.0)
    whole = 0.7 + 0.3 * exp(1)
    assert more.trace(1)["documents"][5] == {"weight": round(0.3 * exp(1) / whole, 4), "x": 1.0}
    told = Choice(np.array([3]), np.log([0.12345678]), {"x": np.array([1.23456])}).trace()
    assert told == {"sure": 0.1235, "documents": {3: {"weight": 0.1235, "x": 1.23}}}
    assert Choice(np.zeros(0, np.int64), np.zeros(0)).sure == 0.0


def test_a_name_that_one_document_alone_carries_makes_it_likelier_than_all_others():
    made = documents(("alder.txt", "", (), "", WORDS), *((f"{n}.txt", "", (), "", WORDS) for n in range(7)))
    choice = made.score(Query("?", names="Alder", asks="?", apart=False))
    assert choice.sure > 0.5 and choice.choose_best(1) == [0]


def test_very_unlike_documents_still_have_a_likelihood():
    choice = Choice(np.arange(2), np.zeros(2)).add_signal("names", np.array([2000.0, 0.0]))
    assert choice.log_weights.tolist() == [0.0, -2000.0]
    even = Choice(np.arange(4), np.zeros(4)).add_signal("names", np.ones(4)).log_weights
    assert np.exp(even).tolist() == pytest.approx([0.25] * 4)
