"""Names of documents in questions, wording by wording: the extent of a name, and the remaining question."""

from __future__ import annotations

import re

import pytest

from exhibit.evidence import Span
from exhibit.rag.questions import find_references, is_written_as_name, understand


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("what does the Lease say", []),
        ("Lease", []),
        ("the Lease of Oak", [("the Lease of Oak", True)]),
        ("the lease of oak", []),
        ("does Oak Lease end", [("Oak Lease", True)]),
        ("Does the Oak Lease end", [("the Oak Lease", True)]),
        ("May the Oak and Elm Lease end", [("the Oak and Elm Lease", True)]),
        ("the Department of Health Lease", [("the Department of Health Lease", True)]),
        ("is Oak, Inc. Lease due", [("Oak, Inc. Lease", True)]),
        ("is Oak, Elm Lease due", [("Elm Lease", True)]),
        ("is it (Oak Lease) due", [("(Oak Lease", True)]),
        ("is it Elm (Oak Lease) due", [("(Oak Lease", True)]),
        ("see [Oak Lease]", [("[Oak Lease", True)]),
        ("a (small Oak Lease)", [("Oak Lease", True)]),
        ("who? Oak Lease", [("Oak Lease", True)]),
        ("very long content license agreement", [("content license agreement", False)]),
        ("content license agreement", [("content license agreement", False)]),
        ("x1 license agreement", [("license agreement", False)]),
        ("non-exclusive license agreement", [("non-exclusive license agreement", False)]),
        ("which other agreement", []),
        ("any new agreement", []),
        ("agreement between Oak and Elm for resin, who pays", [("agreement between Oak and Elm", True)]),
        ("agreement between oak and elm, who pays", [("agreement between oak and elm", True)]),
        ("agreement between oak and elm; who pays", [("agreement between oak and elm", True)]),
        ("agreement between Oak? Elm", [("agreement between Oak", True)]),
        ("agreement among Oak, Elm and Fir", [("agreement among Oak, Elm and Fir", True)]),
        ("agreement with Oak", [("agreement with Oak", False)]),
        ("agreement with Oak dated May 2020", [("agreement with Oak", False)]),
        ("agreement for Oak of Elm", [("agreement for Oak of Elm", False)]),
        ("agreement between “Oak, Inc.” and “Elm; Co” now", [("agreement between “Oak, Inc.” and “Elm; Co”", True)]),
        ("agreement between 'oak' and elm trees", [("agreement between 'oak'", True)]),
        ("agreement between Oak: who pays", [("agreement between Oak", True)]),
        ("agreement between Oak, What pays", [("agreement between Oak", True)]),
        ("agreement between Oak, Elm: what is due", [("agreement between Oak, Elm", True)]),
        ("agreement from the Oak", [("agreement from the Oak", False)]),
        ("agreement dated 3 May 2020 between Oak and Elm", [("agreement dated 3 May 2020 between Oak and Elm", True)]),
        ("Amendment No. 3", [("Amendment No. 3", True)]),
        ("the policy", []),
        ("insurance policies", [("insurance policies", False)]),
        ("Oak's policy", [("Oak's policy", True)]),
        ("oak's policy and elm's lease", [("oak's policy", True), ("elm's lease", True)]),
        ("Oak Lease Agreement", [("Oak Lease", True)]),
        ("Oak Lease of Elm Agreement", [("Oak Lease of Elm Agreement", True)]),
        ("privacy policy of oak", []),
        ("the Act 1996", [("the Act 1996", True)]),
        ("an act", []),
        ("the act of 1996", [("the act of 1996", True)]),
        ("Oak & Elm Lease", [("Oak & Elm Lease", True)]),
        ("oak & elm lease", [("oak & elm lease", True)]),
        ("the “Oak” Lease", [("“Oak” Lease", False)]),
        ("“Oak” and “Elm” Lease", [("“Elm” Lease", False)]),
        ("in “Oak, Hill” big Lease", [("in “Oak, Hill” big Lease", True)]),
        ("under the terms of service of Kestrel, is it", [("under the terms of service of Kestrel", True)]),
        ("on Oak. Lease", [("on Oak. Lease", True)]),
        ("agreement between Oak and Elm. Who pays", [("agreement between Oak and Elm.", True)]),
        ("agreement of the parties", []),
        ("rules of Oak and the court", [("rules of Oak", True)]),
        ("agreement titled “X”", [("agreement titled “X”", True)]),
        ("agreement called oak", []),
        ("According to the Oak Lease, is", [("According to the Oak Lease", True)]),
        ("as set out in the Oak Lease", [("as set out in the Oak Lease", True)]),
        ("in Oak Lease", [("in Oak Lease", True)]),
        ("Oak of the Lease", []),
        ("List of Oak Lease", [("of Oak Lease", True)]),  # what a question begins with is no name
    ],
)
def test_how_far_a_name_reaches_and_whether_it_surely_is_one(text, named):
    quotes = [Span(*match.span()) for match in re.finditer(r"“[^”]*”|(?<!\w)'[^']*'", text)]
    assert [(text[slice(*span)], sure) for span, sure in find_references(text, quotes)] == named


def carried(text: str) -> bool:
    """Return whether a text contains one of the collection's two names."""
    return any(name in text.lower() for name in ("kenway", "alder"))


@pytest.mark.parametrize(
    ("question", "lead", "names", "asks", "kind"),
    [
        ("Is the Oak Lease void", "", "the Oak Lease", "Is it void", "contract"),
        ("The Oak Lease: void?", ":", "The Oak Lease", "void?", "contract"),
        ("Is it void (the Oak Lease", "", "the Oak Lease", "Is it void", "contract"),
        ("Is it void, the Oak Lease?", "", "the Oak Lease", "Is it void?", "contract"),
        ("Fees, under the Oak Lease, due when?", "", "under the Oak Lease", "Fees, due when?", "contract"),
        (
            "Under the Oak Lease and the Elm Lease, who pays?",
            "Under",
            "the Oak Lease and the Elm Lease",
            "who pays?",
            "contract",
        ),
        ("Who pays the Oak Lease, the Elm Lease?", "", "the Oak Lease the Elm Lease", "Who pays?", "contract"),
        ("the Oak Lease - who pays", "-", "the Oak Lease", "who pays", "contract"),
        ("Consider the Oak Lease, who pays", "Consider", "the Oak Lease", "who pays", "contract"),
        ("Consider the Oak Lease; who pays", "Consider", "the Oak Lease", "who pays", "contract"),
        ("Consider the Oak Lease? who pays", "Consider ?", "the Oak Lease", "who pays", "contract"),
        ("Consider “Oak; Elm” Lease; who pays", "Consider", "“Oak; Elm” Lease", "who pays", "contract"),
        ("Consider “Oak”; who pays", "Consider", "“Oak”", "who pays", ""),
        ("Under Kenway, who pays?", "Under", "Kenway", "who pays?", ""),
        ("Under the Kenway and Alder, who pays?", "Under", "the Kenway and Alder", "who pays?", ""),
        ("Kenway and Alder: is it due?", "", "Kenway and Alder", "is it due?", ""),
        ("kenway; it is due", "", "kenway", "it is due", ""),
        ("kenway; what", "", "kenway", "what", ""),
        ("In the NDA, does kenway pay Alder?", "In", "the NDA Alder", "does kenway pay Alder?", "nda"),
        ("In the kenway NDA, does Alder pay?", "In", "the kenway NDA", "does Alder pay?", "nda"),
        ("CONSIDER THE OAK LEASE; WHO PAYS?", "consider", "the oak lease", "who pays?", "contract"),
        ("under the agreement, who pays?", "under", "the agreement", "who pays?", "contract"),
        ("Kenway , who pays?", "", "Kenway", "who pays?", ""),
        ("Who pays? In the Oak Lease.", ".", "In the Oak Lease", "Who pays?", "contract"),
        ("Per Kenway: who pays", "Per", "Kenway", "who pays", ""),
        ("Re: the Oak Lease, who pays?", "Re:", "the Oak Lease", "who pays?", "contract"),
        ("As to kenway – who pays?", "As to", "kenway", "who pays?", ""),
        (
            "Under the Oak Lease, if kenway pays, what?",
            "Under",
            "the Oak Lease kenway",
            "if kenway pays, what?",
            "contract",
        ),
        ("Does kenway’s 2020 lease end", "", "kenway’s 2020 lease", "Does it end", "contract"),
        ("Tell me about the Oak Lease.", "", "about the Oak Lease", "Tell me.", "contract"),
    ],
)
def test_names_apart_from_what_is_asked(question, lead, names, asks, kind):
    query = understand(question, carried)
    assert (query.lead, query.names, query.asks, query.kind, query.apart) == (lead, names, asks, kind, True)


@pytest.mark.parametrize(
    ("question", "names", "kind", "quoted"),
    [
        ("Outline what Kenway pays", "Kenway", "", ()),
        ("Who pays? Outline Kenway", "Kenway", "", ()),
        ("who pays; please Kenway", "Kenway", "", ()),
        ("who pays: name Kenway", "Kenway", "", ()),
        ("kenway’s fee", "kenway’s", "", ()),
        ("What is kenway!", "kenway", "", ()),
        ("Consider oak; who pays", "", "", ()),
        ("Under Kenway law, who pays?", "Kenway", "", ()),
        ("Under Kenway (the firm), who pays?", "Kenway", "", ()),
        ("Kenway's fees: is it due?", "Kenway's", "", ()),
        ("kenway, it is due", "kenway", "", ()),
        ("What of kenway; what", "kenway", "", ()),
        ("is there an agreement?", "", "", ()),
        ("is there an NDA?", "NDA", "nda", ()),
        ("Which merger is it?", "", "merger agreement", ()),
        ("What “a” and 'b c' say", "“a” 'b c'", "", ("a", "b c")),
    ],
)
def test_names_among_the_words_that_ask(question, names, kind, quoted):
    query = understand(question, carried)
    assert (query.lead, query.names, query.asks, query.apart) == ("", names, question, False)
    assert (query.kind, query.quoted) == (kind, quoted)


def test_a_word_is_written_as_a_name_unless_questions_begin_with_it():
    assert is_written_as_name("the Oak") and is_written_as_name("oak's") and is_written_as_name("A&B")
    assert not is_written_as_name("Which, What? The.") and not is_written_as_name("oak") and not is_written_as_name("")


def test_only_the_sentence_that_a_name_stands_in_may_be_its_frame():
    assert understand("Who pays? Is rent due? See the Oak Lease.").asks == "Who pays? Is rent due?"


def test_parties_in_lower_case_are_looked_at_for_four_hundred_characters():
    plain = "lease between " + "aa " * 133 + "a"
    for text in (plain, plain + "X", plain + " X"):
        [(span, sure)] = find_references(text, [])
        assert (span, sure) == ((0, len(plain)), True)
