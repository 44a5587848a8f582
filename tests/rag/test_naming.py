"""Names word by word, and questions in many wordings, parsed by hand."""

from __future__ import annotations

import pytest

from exhibit.evidence import Span
from exhibit.law.names import count_proper_words, list_acronyms, list_pairs, name_terms, name_words, split_filename
from exhibit.rag.questions import find_references, understand


@pytest.mark.parametrize(
    ("text", "expected"),
    [
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
    ],
)
def test_words_as_they_are_compared(text, expected):
    assert list(name_words(text)) == expected
    assert name_terms(text) == [term for term, *_ in expected]


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("First Nations Health Authority", {"fnha", "fnh"}),
        ("Alder Mills", {"am"}),
        ("X", set()),
        ("The A & B Co", {"bc"}),
    ],
)
def test_initials_with_and_without_the_form(name, short):
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
def test_the_words_of_a_files_name(filename, run, parts):
    assert split_filename(filename) == (run, tuple(parts.split()))


def test_names_in_running_text_are_counted_but_where_a_sentence_or_a_line_begins():
    text = "is it so? Birch and Alder sold to Birch. see: Cedar, and Dune's; the FNHA 3M McDonald\nElm Fir (Hazel)"
    assert count_proper_words(text) == {
        "alder": 1, "birch": 1, "dune": 1, "fnha": 1, "3m": 1, "mcdonald": 1, "fir": 1, "hazel": 1,
    }  # fmt: skip


@pytest.mark.parametrize("before", ["", " ", "\n", "§ "])
def test_the_first_word_of_a_text_is_no_name_for_standing_there(before):
    assert count_proper_words(f"{before}Lease of Oak") == {"oak": 1}
    assert count_proper_words(f"{before}Société Oak") == {"oak": 1}


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
def test_two_words_of_a_name(text, named, lower):
    row = list(name_words(text))
    assert [f"{one.term}+{other.term}" for one, other in list_pairs(row)] == named
    assert [f"{one.term}+{other.term}" for one, other in list_pairs(row, lower=True)] == lower


# ---------------------------------------------------------------- questions


def carried(text: str) -> bool:
    """Return whether a text contains one of the collection's two names."""
    return any(name in text.lower() for name in ("kenway", "alder"))


@pytest.mark.parametrize(
    ("question", "lead", "names", "asks", "kind"),
    [
        (
            "Does the lease of Alder Mills, Inc. and Birch end?",
            "",
            "the lease of Alder Mills, Inc. and Birch",
            "Does it end?",
            "contract",
        ),
        ("Under the Lease dated 3 May 2021, who pays?", "Under", "the Lease dated 3 May 2021", "who pays?", "contract"),
        ("What does Amendment No. 3 say?", "", "Amendment No. 3", "What does it say?", ""),
        ("Consider Kenway; who pays?", "Consider", "Kenway", "who pays?", ""),
        ("kenway: who pays?", "", "kenway", "who pays?", ""),
        ("Kenway, who pays?", "", "Kenway", "who pays?", ""),
        ("Kenway - who pays?", "", "Kenway", "who pays?", ""),
        ("Kenway NDA: who pays?", "", "Kenway NDA", "who pays?", "nda"),
        ("Under the Privacy Policy, who pays?", "Under", "the Privacy Policy", "who pays?", "privacy policy"),
        ("Regarding “Oak”, who pays?", "Regarding", "“Oak”", "who pays?", ""),
        ("See the Alder, Inc. Agreement. Who pays?", "See .", "the Alder, Inc. Agreement", "Who pays?", "contract"),
        (
            "I have a question about the Kenway Lease. Who pays?",
            "I have a question .",
            "about the Kenway Lease",
            "Who pays?",
            "contract",
        ),
        (
            "Could you look into the Kenway Lease for me? Who pays?",
            "Could you look into for me?",
            "the Kenway Lease",
            "Who pays?",
            "contract",
        ),
        ("Who pays the Kenway Lease?", "", "the Kenway Lease", "Who pays?", "contract"),
        (
            "agreement between alder and birch chemicals, who pays?",
            "",
            "agreement between alder and birch chemicals",
            "who pays?",
            "contract",
        ),
        ("In the agreement, what does Kenway pay?", "In", "the agreement Kenway", "what does Kenway pay?", "contract"),
        ("Is the policy of Kenway void?", "", "the policy of Kenway", "Is it void?", ""),
        (
            "The agreement by and between A and B for C: who pays?",
            ":",
            "The agreement by and between A and B for C",
            "who pays?",
            "contract",
        ),
        (
            "Who pays under the agreement made between “A, B” and “C”?",
            "",
            "under the agreement made between “A, B” and “C”",
            "Who pays?",
            "contract",
        ),
        ("Describe the NDA named Oak.", "", "the NDA named Oak.", "Describe", "nda"),
        ("Does Oak Ltd, Inc. agreement end?", "", "Oak Ltd, Inc. agreement", "Does it end?", "contract"),
        ("How about it, Kenway's NDA?", "", "Kenway's NDA", "How about it?", "nda"),
    ],
)
def test_names_that_stand_apart(question, lead, names, asks, kind):
    query = understand(question, carried)
    assert (query.lead, query.names, query.asks, query.kind, query.apart) == (lead, names, asks, kind, True)


@pytest.mark.parametrize(
    ("question", "names", "kind"),
    [
        ("Does the agreement with Third Parties end?", "agreement with Third Parties Third", "contract"),
        ("What does the contract say?", "", ""),
        ("Who signs the “Oak” content license agreement?", "“Oak” content license agreement “Oak”", "contract"),
        ("is there a cap in the very long content license agreement?", "content license agreement", "contract"),
        ("If Kenway is sold, who pays?", "Kenway", ""),
        ("For Kenway? Who pays?", "Kenway", ""),
        ("In the event of termination, who pays?", "", ""),
        ("Under Delaware law, who pays?", "Delaware", ""),
        ("Consider, who pays;", "", ""),
        ("Consider Kenway;", "Kenway", ""),
        ("Consider Kenway; !", "Kenway", ""),
        ("the Kenway Lease", "the Kenway Lease Kenway Lease", "contract"),
        ("What does Kenway pay?", "Kenway", ""),
        ("What does kenway pay?", "kenway", ""),
        ("Does Alder & Co pay?", "Alder & Co", ""),
        ("Does oak, inc. agreement end?", "oak, inc. agreement", "contract"),
        ("what is “x” in y?", "“x”", ""),
        ("a; b; c?", "", ""),
    ],
)
def test_a_question_that_asks_with_all_its_words(question, names, kind):
    query = understand(question, carried)
    assert (query.names, query.asks, query.kind, query.apart) == (names, question, kind, False)


def test_quotations_beyond_fifty_and_a_contract_pasted_in_are_not_looked_into():
    many = " ".join(f"“n{number}”" for number in range(51))
    assert understand(f"what is {many}?").names.split()[-1] == "“n49”"
    asked = "Consider the Kenway Lease; who pays? "
    assert understand(asked + "x" * (10_000 - len(asked))).apart
    assert not understand(asked + "x" * (10_001 - len(asked))).apart


def spans(text: str) -> list[tuple[str, bool]]:
    return [(text[slice(*reference.span)], reference.sure) for reference in find_references(text, [])]


def test_a_name_reaches_four_hundred_characters_to_either_side():
    for length, missing in ((399, 0), (400, 1), (402, 3)):
        [(found, sure)] = spans(f"{'X' * length} Lease")
        assert (len(found), sure) == (length + len(" Lease") - missing, True)
    for length, found in ((400, 400), (401, 400)):
        assert len(spans(f"lease between {'X' * length}")[0][0]) == len("lease between ") + found


def test_two_references_do_not_overlap_and_a_figure_makes_a_kind_a_name():
    assert spans("the Oak Lease and the Elm Lease") == [("the Oak Lease", True), ("the Elm Lease", True)]
    assert spans("the Act 1996") == [("the Act 1996", True)]
    assert spans("an act of kindness") == []
    assert spans("is it due? Oak Lease") == [("Oak Lease", True)]
    assert spans("is it due! Oak Lease") == spans("is it due; Oak Lease") == [("Oak Lease", True)]
    quoted = "“Oak, Hill” Lease"
    assert find_references(quoted, [Span(0, 11)]) == [((0, len(quoted)), True)]


def test_of_very_many_commas_the_first_fifty_are_looked_at():
    for commas, lead in ((49, "Under"), (50, "")):
        assert understand(f"Under the Oak Lease{', x' * commas}, who pays?").lead == lead
