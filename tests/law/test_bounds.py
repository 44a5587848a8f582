"""Bounds in the reading of legal text: the last value that fits and the first that does not."""

from __future__ import annotations

import pytest

from exhibit.evaluation.registers import find_page_elements
from exhibit.evaluation.registers.client import RegisterPage
from exhibit.evidence import Span
from exhibit.law import profile
from exhibit.law.citations import claims_of
from exhibit.law.profile import find_file_title, find_own_date, join_paragraphs, title_of
from exhibit.law.references import find_references
from exhibit.law.references.reference import read_numbers
from exhibit.law.refusals import is_refusal
from exhibit.law.structure import cut, format_section_path
from exhibit.law.structure.headings import Heading
from exhibit.law.structure.labels import is_prose, run_in
from exhibit.law.structure.lines import Line, find_contents, find_full_width, is_entry
from exhibit.law.structure.tree import BARE, COUNTED, Node, Section, place


def tree(*headings: str) -> Section:
    """Return nested sections with these headings, all of a hundred characters."""
    section = Section(Span(0, 100), headings[-1])
    for heading in reversed(headings[:-1]):
        section = Section(Span(0, 100), heading, children=(section,))
    return Section(Span(0, 100), "", "document", children=(section,))


def test_a_path_of_headings_has_two_hundred_characters_and_each_of_them_sixty():
    whole = ["a" * 60, "b" * 60, "c" * 60, "d" * 11]
    assert len(format_section_path(tree(*whole), Span(0, 10))) == 60 * 3 + 11 + 3 * 3 == 200
    longer = format_section_path(tree(*whole[:3], "d" * 12), Span(0, 10))
    assert longer == f"{'a' * 60} > … > {'d' * 12}", "the first and the last are kept"
    assert format_section_path(tree("a" * 61), Span(0, 10)) == "a" * 59 + "…"
    assert format_section_path(tree("Oak", "", "Elm"), Span(0, 10)) == "Oak > Elm"
    assert format_section_path(tree("Oak", "Elm"), Span(0, 10), limit=8) == "Oak…"
    assert format_section_path(tree("Oak", "Elm"), Span(0, 10), limit=9) == "Oak > Elm"
    assert format_section_path(Section(Span(0, 9)), Span(0, 4)) == ""


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [
        ("rent is due", 11, "rent is due"),
        ("rent is due", 10, "rent is…"),
        ("rent, it is due", 9, "rent, it…"),
        ("rent, it is due", 8, "rent…"),
        ("ab cdefghijkl", 8, "ab cdef…"),
        ("abcdefgh", 4, "abc…"),
    ],
)
def test_a_text_is_cut_at_a_word_in_its_second_half(text, limit, short):
    assert cut(text, limit) == short


def test_a_section_holds_a_span_by_more_than_half():
    root = Section(Span(0, 30), children=(Section(Span(10, 20), "a"), Section(Span(20, 30), "b")))

    def held(start: int, end: int) -> str:
        return format_section_path(root, Span(start, end))

    assert held(10, 20) == "a" and held(20, 21) == "b" and held(15, 15) == "a" and held(5, 9) == ""
    assert held(5, 5) == "", "before the first there is nothing"
    assert held(14, 25) == "a" and held(15, 25) == "" and held(16, 25) == "b" and held(0, 14) == ""


# ---------------------------------------------------------------- lines


def test_a_full_line_is_as_long_as_nine_of_ten():
    assert find_full_width(iter([])) == 0 == find_full_width(iter([0, 0]))
    assert find_full_width(iter(range(1, 11))) == 10 and find_full_width(iter([*range(1, 20), 159])) == 19
    assert find_full_width(iter([160])) == 160 and find_full_width(iter([161])) == 0


def contents(*pages: int, gap: str = " ") -> str:
    return "CONTENTS\n" + "".join(f"Rent{gap}{page}\n" for page in pages) + "Here it begins."


def test_three_entries_with_rising_pages_are_a_table_of_contents():
    assert find_contents(contents(1, 2)) == (0, 0)
    text = contents(1, 2, 42)
    assert find_contents(text) == (0, text.index("\nHere")) and find_contents("x\n" + text)[0] == 2
    assert find_contents(contents(1, 2, 43)) == (0, 0), "pages go up by forty at most"
    assert find_contents(contents(3, 2, 4)) == (0, 0) and find_contents(contents(2, 2, 2)) != (0, 0)
    assert find_contents(contents(40, 41, 42)) != (0, 0) and find_contents(contents(41, 42, 43)) == (0, 0)
    wide = "CONTENTS\n" + "".join(f"Rent {'.' * dots} {page}\n" for page, dots in ((1, 9), (2, 9), (3, 312)))
    assert find_contents(wide) != (0, 0)
    assert find_contents(wide.replace("." * 312, "." * 313)) == (0, 0), "entries are near each other"


@pytest.mark.parametrize(
    ("line", "entry"),
    [("Rent ..... 7", True), ("Rent . . . . 7", True), ("Rent ... 7", False), ("Rent ……", True), ("Rent  7", True),
     ("Rent 7", False), ("Rent  1234", False), ("." * 4 + "x" * 61, False)],
)  # fmt: skip
def test_a_line_that_leads_to_a_page_is_an_entry(line, entry):
    assert is_entry(line) is entry


def line(text: str, before: str = "", *, fresh: bool = False) -> Line:
    return Line(0, len(text), text, fresh, fresh, before)


def test_lines_of_sixty_characters_run_on():
    for length, mark in ((59, "\n"), (60, " ")):
        assert join_paragraphs([line("a", fresh=True), line("b", "x" * length)]) == f"a{mark}b"
    assert join_paragraphs([line("a", fresh=True), line("b", "x" * 99, fresh=True)]) == "a\nb"
    assert join_paragraphs([line("\ufeffa\u200b ")]) == "a"


# ---------------------------------------------------------------- titles and dates


@pytest.mark.parametrize(
    ("filename", "name"),
    [
        ("dir/OakInc_EX-10.1_Supply Agreement.pdf", "Supply Agreement"),
        ("Supply%20Agreement.TXT", "Supply Agreement"),
        ("Supply_Agreement||second.pdf", "Supply Agreement"),
        ("EX-10.txt", "Ex-10"),
    ],
)
def test_what_the_name_of_a_file_says(filename, name):
    assert find_file_title(filename) == name


def test_titles_of_each_kind_of_document():
    for kind in ("rules", "practice direction", "judgment"):
        assert title_of("Document: Part 36 - Offers\nmore", kind, "the file") == "Part 36 - Offers"
        assert title_of("\nab\nA heading\n", kind, "the file") == "A heading"
        assert title_of("ab", kind, "the file") == "the file" == title_of("x" * 161, kind, "the file")
    assert title_of("Welcome to The Chancery Guide 2022 of it", "court guide", "") == "The Chancery Guide 2022"
    assert (
        title_of("x" * 790 + " The Chancery Guide", "court guide", "") == "" == title_of("a guide", "court guide", "")
    )
    assert title_of("Long title\nHousing Act 1988\n", "legislation", "") == "Housing Act 1988"
    assert title_of("Directive (EU) 2019/790 of the Parliament", "legislation", "").startswith(
        "Directive (EU) 2019/790"
    )
    assert title_of("A heading\n" + "\n" * 2974 + "Housing Act 1988\n", "legislation", "") == "Housing Act 1988"
    assert title_of("A heading\n" + "\n" * 2980 + "Housing Act 1988\n", "legislation", "") == "A heading", (
        "it is looked for that far"
    )
    assert title_of("Oak Maps Privacy Policy\nWe", "privacy policy", "oak") == "Oak Maps Privacy Policy"
    assert title_of("Our Privacy Policy\nWe", "privacy policy", "oak 2") == "oak Privacy Policy"
    assert title_of("Privacy Policy\nWe", "privacy policy", "Elm privacy notice") == "Elm privacy notice"
    assert title_of("nothing here", "contract", "the file") == "the file"


@pytest.mark.parametrize(
    ("line", "short"),
    [
        (" Rent – ", "Rent"),
        ("PRACTICE DIRECTION 7 A", "Practice Direction 7A"),
        ("OAK Ltd", "Oak Ltd"),
        ("OAk ltd", "OAk ltd"),
        ("x" * 100 + " " + "y" * 19, "x" * 100 + " " + "y" * 19),
        ("x" * 100 + " " + "y" * 20, "x" * 100),
    ],
)
def test_a_heading_is_written_calmly_and_cut_at_a_word(line, short):
    assert title_of(f"{line}\n", "rules", "") == short


def test_the_date_of_a_document_is_where_its_kind_has_it():
    assert find_own_date("dated 3 May 2021", "rules") == "" == find_own_date("dated 3 May 2021", "practice direction")
    assert find_own_date("Updated October 2023", "court guide") == "October 2023"
    assert find_own_date("x" * 800 + " October 2023", "court guide") == ""
    assert find_own_date("this 3rd day of may, 2021", "contract") == "3 May 2021"
    assert find_own_date("x" * 3000 + " 3rd day of May, 2021", "contract") == ""


def test_a_title_runs_into_its_paragraph():
    assert run_in("Term. The term is one year.") == ("Term", 5)
    assert run_in("the rent of it. The term")[0] == "" and run_in("") == ("", 0)
    assert is_prose("x" * 200) and not is_prose("RENT AND COSTS")


# ---------------------------------------------------------------- references


def test_a_paragraph_takes_the_place_of_the_last_of_its_kind():
    def paths(text: str) -> list[str]:
        numbers = read_numbers(text, 0, plural=True)
        return [" ".join(path) for path in numbers.paths] if numbers else []

    assert paths("25.2(4)(2 A)") == ["25 2 4 2A"] and paths("25.2(2), (4 A)") == ["25 2 2", "25 2 4A"]
    assert paths("25.2(2), (4)") == ["25 2 2", "25 2 4"]
    assert paths("25.2(2)(a), (b)") == ["25 2 2 a", "25 2 2 b"]
    assert paths("25.2(2)(a), (4)") == ["25 2 2 a", "25 2 4"]
    assert paths("25.2, (4)") == ["25 2"] and paths("25.2(a), (4)") == ["25 2 a"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("section 5 of the Housing Act 1988", "housing act 1988"),
        ("section 5, Housing Act 1988", "housing act 1988"),
        ("Housing Act 1988, section 5", "housing act 1988"),
    ],
)
def test_a_provision_is_of_the_act_beside_it(text, found):
    assert any(found in str(reference).lower() and "5" in str(reference) for reference in find_references(text))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("under, and for Housing Act 1988 s 5", ["housing act 1988 5"]),
        ("paragraph 3 of the and in Rent Act 1977", ["rent act 1977"]),
        ("section 5, the Housing Act 1988", ["housing act 1988"]),
        ("Senior Courts Act 1981, section 5, Housing Act 1988", ["senior courts act 1981", "housing act 1988 5"]),
    ],
)
def test_small_words_before_a_name_are_no_part_of_it(text, found):
    assert [str(reference) for reference in find_references(text)] == found


@pytest.mark.parametrize(
    ("sort", "first", "second", "no", "told", "source"),
    [
        ("decision", "12", "2019", False, False, None),
        ("decision", "2019", "12", False, True, "eu decision 2019/12"),
        ("directive", "2019", "790", False, False, "eu directive 2019/790"),
        ("directive", "95", "46", False, False, "eu directive 1995/46"),
        ("regulation", "2016", "679", False, False, "eu regulation 2016/679"),
        ("regulation", "1215", "2012", False, False, "eu regulation 2012/1215"),
        ("regulation", "2014", "2012", False, False, "eu regulation 2012/2014"),
        ("regulation", "2015", "2012", False, False, "eu regulation 2015/2012"),
        ("regulation", "2016", "2012", True, False, "eu regulation 2012/2016"),
        ("regulation", "5", "2012", False, False, None),
        ("regulation", "5", "2012", False, True, "eu regulation 2012/5"),
        ("regulation", "5", "2012", True, False, "eu regulation 2012/5"),
        ("regulation", "45", "2012", False, False, "eu regulation 2012/45"),
        ("regulation", "45", "123", True, True, None),
        ("directive", "1951", "3", False, True, None),
        ("directive", "1952", "3", False, True, "eu directive 1952/3"),
        ("directive", "2099", "3", False, True, "eu directive 2099/3"),
        ("directive", "2100", "3", False, True, None),
    ],
)
def test_an_act_of_the_union_is_written_year_first(sort, first, second, no, told, source):
    text = f"{sort.title()} {'(EU) ' * told}{'No ' * no}{first}/{second}"
    assert [reference.source for reference in find_references(text)] == ([source] if source else [])


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("Supply Agreement", "Supply Agreement"),
        ("Supply Agreement,", "file"),
        ("Supply", "file"),
        (" ".join("a" * 16), " ".join("a" * 16)),
        (" ".join("a" * 17), "file"),
        ("a " + "b" * 118, "a " + "b" * 118),
        ("a " + "b" * 119, "file"),
        ("Exhibit 10.1 Supply Deed", "Supply Deed"),
    ],
)
def test_a_contracts_title_is_sound_or_its_files_name(monkeypatch, name, title):
    monkeypatch.setattr(profile, "kind_of", lambda text: name)
    assert title_of("text", "contract", "file") == title


def test_a_refusal_is_known_beside_its_citation():
    assert is_refusal("Not found in [1] provided documents.") and is_refusal("Not found in provided[1] documents.")
    assert not is_refusal("Rent is due. It was not found in the documents.")  # it answers, and regrets
    assert not is_refusal("Rent is due [1]. It was not found in the documents.") and not is_refusal("")


def test_a_bullet_is_taken_off_once():
    for text, words in (
        ("- rent - due", "rent - due"),
        ("(a) rent (b) due", "rent (b) due"),
        ("rent - due", "rent - due"),
        ("**rent** , due", "rent, due"),
    ):
        assert [claim.text for claim in claims_of(text)] == [words]


def heading(style: str, rank: float, kind: str = "section") -> Heading:
    return Heading(0, 0, "", "", style, (1,), rank, kind)


def test_a_bare_heading_holds_counted_ones_below_its_rank():
    bare, counted = sorted(BARE)[0], sorted(COUNTED)[0]

    def level(top: Heading, below: Heading) -> int:
        placed = place([Node(heading("document", 0.0), 0.0, 0), Node(top, top.rank, 1)], below)
        assert placed is not None
        return placed.level

    assert (
        level(heading(bare, 1.0), heading(counted, 2.0)) == 2 and level(heading(bare, 2.0), heading(counted, 2.0)) == 1
    )
    assert level(heading("x", 1.0, "recitals"), heading("1.", 2.0)) == 1
    assert level(heading("x", 1.0, "recitals"), heading("(a)", 2.0)) == 2


def test_a_page_of_a_register_is_read_without_its_entities():
    page = RegisterPage(
        "u", 200, '<!DOCTYPE a [<!ENTITY x "boom">]><feed><entry><title>Rent &x;</title></entry><a>1</a></feed>'
    )
    [entry] = find_page_elements(page, "entry")
    assert "boom" not in "".join(entry.itertext()) and [one.text for one in find_page_elements(page, "a")] == ["1"]
    assert (
        list(find_page_elements(RegisterPage("u", 404, "<a/>"), "a"))
        == list(find_page_elements(RegisterPage("u", 200), "a"))
        == []
    )
    assert len(list(find_page_elements(RegisterPage("u", 300, "<a/>"), "a"))) == 1
