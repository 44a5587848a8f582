"""Words of names, in file names and in running text."""

import pytest

from exhibit.law.names import count_proper_words, list_acronyms, list_pairs, name_terms, name_words, split_filename

WORDS = [
    ("MOËT's Moet’s", [("moet", True, 0, 6, ()), ("moet", True, 7, 13, ())]),
    ("O'Neil don't", [("oneil", True, 0, 6, ("o", "neil")), ("dont", False, 7, 12, ())]),
    ("AGProjects", [("agprojects", True, 0, 10, ("ag", "projects"))]),
    ("iPhone", [("iphone", True, 0, 6, ("i", "phone"))]),
    ("Nondisclosure", [("non", True, 0, 3, ()), ("disclosure", True, 3, 13, ())]),
    ("noncompete", [("non", False, 0, 3, ()), ("compete", False, 3, 10, ())]),
    ("nonsuch NonUse", [("nonsuch", False, 0, 7, ()), ("nonuse", True, 8, 14, ("non", "use"))]),
    ("3M 42 B2B", [("3m", True, 0, 2, ()), ("42", False, 3, 5, ()), ("b2b", True, 6, 9, ())]),
    ("a_b", [("a", False, 0, 1, ()), ("b", False, 2, 3, ())]),
    ("eBay’S", [("ebay", True, 0, 6, ("e", "bay"))]),
]


@pytest.mark.parametrize(("text", "expected"), WORDS)
def test_name_words_returns_lower_case_words_and_the_parts_of_compounds(text, expected):
    assert list(name_words(text)) == expected
    assert name_terms(text) == [term for term, *_ in expected]


@pytest.mark.parametrize(
    ("name", "short"),
    [("First Nations Health Co", {"fnhc", "fnh"}), ("Alder Mills", {"am"}), ("X", set()), ("The A & B Co", {"bc"})],
)
def test_list_acronyms_returns_initials_with_and_without_company_form(name, short):
    assert list_acronyms(name) == short


@pytest.mark.parametrize(
    ("filename", "run", "parts"),
    [
        ("dir/AlderInc_2019_EX-10.1_Lease.pdf", "alderinc2019ex101lease", "alderinc alder inc 2019 ex 10 1 lease"),
        ("a%20b.TXT", "ab", "a b"),
        ("x||y.json", "xy", "x y"),
        ("C:\\docs\\Lease.docx", "lease", "lease"),
        ("file.with.dots", "filewithdots", "file with dots"),
        ("Oak-Oak.md", "oakoak", "oak"),
    ],
)
def test_split_filename_returns_the_words_of_the_file_name(filename, run, parts):
    assert split_filename(filename) == (run, tuple(parts.split()))


def test_count_proper_words_ignores_first_word_of_sentence_or_line():
    text = "is it so? Birch and Alder sold to Birch. see: Cedar, and Dune's; the FNHA 3M McDonald\nElm Fir (Hazel)"
    names = "alder birch dune fnha 3m mcdonald fir hazel"
    assert count_proper_words(text) == dict.fromkeys(names.split(), 1)
    assert count_proper_words("§ Société Oak") == {"oak": 1}


@pytest.mark.parametrize(
    ("text", "named", "lower"),
    [
        ("Alder Mills", ["alder+mills"], ["alder+mills"]),
        ("Alder, Mills", ["alder+mills"], ["alder+mills"]),
        ("Alder and Mills", [], ["alder+and", "and+mills"]),
        ("Alder - Mills", [], []),
        ("No. 3", ["no+3"], ["no+3"]),
        ("alder mills", [], ["alder+mills"]),
        ("Alder (3) x", ["alder+3"], ["alder+3", "3+x"]),
    ],
)
def test_list_pairs_returns_pairs_of_adjacent_words_in_a_name(text, named, lower):
    row = list(name_words(text))
    assert [f"{first.term}+{second.term}" for first, second in list_pairs(row)] == named
    assert [f"{first.term}+{second.term}" for first, second in list_pairs(row, lower=True)] == lower
