"""A question is split into the name of a document and the question itself."""

import re

import pytest

from exhibit.evidence import Span
from exhibit.rag.questions import find_references, understand


def has_collection_name(text: str) -> bool:
    """Return whether a text contains one of the two document names in the collection."""
    return any(name in text.lower() for name in ("kenway", "alder"))


APART = [
    # question, names, words that ask, kind
    ("Is the Oak Lease void", "the Oak Lease", "Is it void", "contract"),
    ("The Oak Lease: void?", "The Oak Lease", "void?", "contract"),
    ("Is it void, the Oak Lease?", "the Oak Lease", "Is it void?", "contract"),
    ("Under the Oak Lease and the Elm Lease, who pays?", "the Oak Lease and the Elm Lease", "who pays?", "contract"),
    ("Consider the Oak Lease; who pays", "the Oak Lease", "who pays", "contract"),
    ("Consider “Oak; Elm” Lease; who pays", "“Oak; Elm” Lease", "who pays", "contract"),
    ("Consider “Oak”; who pays", "“Oak”", "who pays", ""),
    ("Kenway and Alder: is it due?", "Kenway and Alder", "is it due?", ""),
    ("kenway; it is due", "kenway", "it is due", ""),
    ("In the NDA, does kenway pay Alder?", "the NDA Alder", "does kenway pay Alder?", "nda"),
    ("CONSIDER THE OAK LEASE; WHO PAYS?", "the oak lease", "who pays?", "contract"),
    ("under the agreement, who pays?", "the agreement", "who pays?", "contract"),
    ("Under the Oak Lease, if kenway pays, what?", "the Oak Lease kenway", "if kenway pays, what?", "contract"),
    ("Does kenway’s 2020 lease end", "kenway’s 2020 lease", "Does it end", "contract"),
    ("Tell me about the Oak Lease.", "about the Oak Lease", "Tell me.", "contract"),
    ("Does the lease of Alder, Inc. and Birch end?", "the lease of Alder, Inc. and Birch", "Does it end?", "contract"),
    ("Under the Lease dated 3 May 2021, who pays?", "the Lease dated 3 May 2021", "who pays?", "contract"),
    ("What does Amendment No. 3 say?", "Amendment No. 3", "What does it say?", ""),
    ("Kenway NDA: who pays?", "Kenway NDA", "who pays?", "nda"),
    ("lease between alder and birch ore, who pays?", "lease between alder and birch ore", "who pays?", "contract"),
    ("Does Oak Ltd, Inc. agreement end?", "Oak Ltd, Inc. agreement", "Does it end?", "contract"),
]


@pytest.mark.parametrize(("question", "names", "asks", "kind"), APART)
def test_understand_separates_document_name_from_question(question, names, asks, kind):
    query = understand(question, has_collection_name)
    assert (query.names, query.asks, query.kind, query.apart) == (names, asks, kind, True)


TOCK, SUPPLY = '"Tock: Lists, with Reminders"\'s privacy policy', "the Supply Agreement between Alder, LLC and Elm, LLC"
WORDINGS = [
    (f"Consider {TOCK}; is it sold?", TOCK, "is it sold?", "privacy policy"),
    (
        f"May Alder end {SUPPLY} for Tin if Elm fails?",
        f"{SUPPLY} for Tin",
        "May Alder end it if Elm fails?",
        "contract",
    ),
    ("In Fenway's NDA, does it survive?", "Fenway's NDA", "does it survive?", "nda"),
    ("Under Practice Direction 7A, who asks?", "Practice Direction 7A", "who asks?", "practice direction"),
]


@pytest.mark.parametrize(("question", "names", "asks", "kind"), WORDINGS)
def test_understand_separates_unknown_document_name_from_question(question, names, asks, kind):
    query = understand(question)
    assert (query.names, query.asks, query.kind, query.apart) == (names, asks, kind, True)


WITHIN = [
    # question, names, kind
    ("Who pays? Outline Kenway", "Kenway", ""),
    ("Consider oak; who pays", "", ""),
    ("Under Kenway law, who pays?", "Kenway", ""),
    ("Under Kenway (the firm), who pays?", "Kenway", ""),
    ("kenway, it is due", "kenway", ""),
    ("is there an NDA?", "NDA", "nda"),
    ("Which merger is it?", "", "merger agreement"),
    ("What “a” and 'b c' say", "“a” 'b c'", ""),
    ("Does the agreement with Third Parties end?", "agreement with Third Parties Third", "contract"),
    ("What does the contract say?", "", ""),
    ("Who signs the “Oak” content license agreement?", "“Oak” content license agreement “Oak”", "contract"),
    ("is there a cap in the very long content license agreement?", "content license agreement", "contract"),
    ("If Kenway is sold, who pays?", "Kenway", ""),
    ("In the event of termination, who pays?", "", ""),
    ("Under Delaware law, who pays?", "Delaware", ""),
    ("Consider Kenway; !", "Kenway", ""),
    ("What does kenway pay?", "kenway", ""),
]


@pytest.mark.parametrize(("question", "names", "kind"), WITHIN)
def test_understand_does_not_remove_a_name_inside_the_question(question, names, kind):
    query = understand(question, has_collection_name)
    assert (query.names, query.asks, query.apart, query.kind) == (names, question, False, kind)


REFERENCES = [
    # text, the references in it, and whether each is certainly a name
    ("what does the Lease say", []),
    ("the Lease of Oak", [("the Lease of Oak", True)]),
    ("the lease of oak", []),
    ("May the Oak and Elm Lease end", [("the Oak and Elm Lease", True)]),
    ("the Department of Health Lease", [("the Department of Health Lease", True)]),
    ("is Oak, Inc. Lease due", [("Oak, Inc. Lease", True)]),
    ("is it (Oak Lease) due", [("(Oak Lease", True)]),
    ("is it Elm (Oak Lease) due", [("(Oak Lease", True)]),
    ("who? Oak Lease", [("Oak Lease", True)]),
    ("very long content license agreement", [("content license agreement", False)]),
    ("non-exclusive license agreement", [("non-exclusive license agreement", False)]),
    ("which other agreement", []),
    ("agreement between Oak and Elm for resin, who pays", [("agreement between Oak and Elm", True)]),
    ("agreement between oak and elm, who pays", [("agreement between oak and elm", True)]),
    ("agreement among Oak, Elm and Fir", [("agreement among Oak, Elm and Fir", True)]),
    ("agreement between “Oak, Inc.” and “Elm; Co” now", [("agreement between “Oak, Inc.” and “Elm; Co”", True)]),
    ("agreement between 'oak' and elm trees", [("agreement between 'oak'", True)]),
    ("agreement between Oak, What pays", [("agreement between Oak", True)]),
    ("agreement dated 3 May 2020 between Oak and Elm", [("agreement dated 3 May 2020 between Oak and Elm", True)]),
    ("insurance policies", [("insurance policies", False)]),
    ("oak's policy and elm's lease", [("oak's policy", True), ("elm's lease", True)]),
    ("Oak Lease of Elm Agreement", [("Oak Lease of Elm Agreement", True)]),
    ("Oak & Elm Lease", [("Oak & Elm Lease", True)]),
    ("“Oak” and “Elm” Lease", [("“Elm” Lease", False)]),
    ("under the terms of service of Kestrel, is it", [("under the terms of service of Kestrel", True)]),
    ("agreement between Oak and Elm. Who pays", [("agreement between Oak and Elm.", True)]),
    ("rules of Oak and the court", [("rules of Oak", True)]),
    ("According to the Oak Lease, is", [("According to the Oak Lease", True)]),
]


@pytest.mark.parametrize(("text", "references"), REFERENCES)
def test_find_references_returns_the_whole_document_name(text, references):
    quotes = [Span(*match.span()) for match in re.finditer(r"“[^”]*”|(?<!\w)'[^']*'", text)]
    assert [(text[slice(*span)], sure) for span, sure in find_references(text, quotes)] == references


def test_find_references_limits_name_to_400_characters():
    for length, missing in ((399, 0), (400, 1), (402, 3)):
        [(span, sure)] = find_references(f"{'X' * length} Lease", [])
        assert (span.end - span.start, sure) == (length + len(" Lease") - missing, True)
    for length in (400, 401):
        [(span, _)] = find_references(f"lease between {'X' * length}", [])
        assert span.end == len("lease between ") + 400


def test_understand_examines_at_most_fifty_quotations_and_fifty_commas():
    many = " ".join(f"“n{number}”" for number in range(51))
    assert understand(f"what is {many}?").names.split()[-1] == "“n49”"
    for commas, separated in ((49, True), (50, False)):
        assert (understand(f"Under the Oak Lease{', x' * commas}, who pays?").asks == "who pays?") == separated


def test_understand_does_not_split_questions_over_10000_characters():
    start = "Consider the Kenway Lease; who pays? "
    assert understand(start + "x" * (10_000 - len(start))).apart
    assert not understand(start + "x" * (10_001 - len(start))).apart


def test_understand_prefers_a_name_in_capitals_to_words_in_lower_case():
    known = {"viber", "agency"}
    has_name = lambda text: any(word.strip(",?").lower() in known for word in text.split())  # noqa: E731
    assert understand("If some state agency asked Viber for it, would they give it?", has_name).names == "Viber"
    assert understand("if some state agency asked viber for it, would they give it?", has_name).names == "agency viber"


@pytest.mark.parametrize(
    ("question", "asks"),
    [
        ("As of May 3, 2022: Under the Alder lease, who pays the rent?", "who pays the rent?"),
        ("As at 1 March 2021; who pays the rent?", "who pays the rent?"),
    ],
)
def test_understand_removes_a_date_before_the_question(question, asks):
    query = understand(question)
    assert (query.question, query.asks) == (question, asks) and "20" not in query.names
