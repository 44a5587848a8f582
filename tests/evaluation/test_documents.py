"""Documents are selected by their names in a query; a query without a name treats all documents equally."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exhibit.law.names import count_proper_words, list_acronyms, list_pairs, name_words, split_filename
from exhibit.law.profile import Profile
from exhibit.rag.database import Database
from exhibit.rag.lexicon.documents import DocumentNames
from exhibit.rag.questions import understand

NDA = "Non-Disclosure Agreement"
POLICY = "Privacy Policy\nThis Privacy Policy tells how we handle personal information. "
SECRET = f"{NDA}\nThis Agreement protects Confidential Information. You must keep it safe. "
OAK_PINE = ("Oak, Inc.", "Pine Ltd.")
RIVAL = "Supply Agreement\nby Oak, Inc. and Elm Ltd. Fenway is a rival. "
CORPUS = [
    (
        "Lodger.txt",
        Profile("Lodger Privacy Policy", "privacy policy"),
        POLICY + "We at Lodger keep it. Ask Lodger. " * 9,
    ),
    (
        "Keep.txt",
        Profile("Keep Privacy Policy", "privacy policy"),
        POLICY + "When you use Keep you share it with Keep. ",
    ),
    ("Tock.txt", Profile("Tock Privacy Policy", "privacy policy"), POLICY + "Keep your password safe. We keep lists. "),
    ("nda_form_fenway.txt", Profile(NDA, "nda"), SECRET + "The visitor agrees that Fenway owns it. Ask Fenway. "),
    ("x17.pdf", Profile(NDA, "nda", ("First Alder Health Authority",)), SECRET + "It may disclose. "),
    ("AG-form.txt", Profile(NDA, "nda"), SECRET + "The discloser is AG Projects of Utrecht. "),
    ("supply1.txt", Profile("Supply Agreement", "contract", ("Oak, Inc.", "Elm Ltd.")), RIVAL),
    ("HOLIDAYCARSINC_EX-10.txt", Profile("Endorsement Agreement", "contract"), "Endorsement Agreement\nThey endorse. "),
    ("Moët%20NDA.txt", Profile(NDA, "nda"), SECRET + "between MOËT Maison and the visitor. "),
    (
        "a3.txt",
        Profile("Amendment No. 3", "contract", OAK_PINE),
        "Amendment No. 3\nOak, Inc. and Pine Ltd. See Clause 2. ",
    ),
    (
        "a2.txt",
        Profile("Amendment No. 2", "contract", OAK_PINE),
        "Amendment No. 2\nOak, Inc. and Pine Ltd. See Clause 3. ",
    ),
]


@pytest.fixture(scope="module")
def documents() -> DocumentNames:
    return build(range(len(CORPUS)))


def build(numbers, database: Database | None = None) -> DocumentNames:
    found = DocumentNames(database)
    for number in numbers:
        filename, profile, text = CORPUS[number]
        found.add(number, filename=filename, profile=profile, text=text)
    return found


@pytest.mark.parametrize(
    ("question", "filename"),
    [
        ('Consider "Lodger"\'s privacy policy; is it sold?', "Lodger.txt"),
        ("does lodger's privacy policy mention cookies", "Lodger.txt"),
        ("Does Lodger sell my data?", "Lodger.txt"),
        ("What does Keep's privacy policy say?", "Keep.txt"),
        ("In Fenway's NDA, does it survive?", "nda_form_fenway.txt"),
        ("In FAHA's NDA, does it survive?", "x17.pdf"),
        ("Does AGProjects' Non-Disclosure Agreement survive?", "AG-form.txt"),
        ("does agprojects's nondisclosure agreement survive", "AG-form.txt"),
        ("Who pays under the Supply Agreement between Oak, Inc. and Elm Ltd.?", "supply1.txt"),
        ("Under Moet's NDA, who may know?", "Moët%20NDA.txt"),
        ("What is the date of Amendment No. 3 to the Agreement between Oak, Inc. and Pine Ltd.?", "a3.txt"),
        ("What is the date of Amendment No. 2 to the Agreement between Oak, Inc. and Pine Ltd.?", "a2.txt"),
    ],
)
@pytest.mark.parametrize("filenames", [True, False])
def test_a_document_is_known_by_its_names_wherever_they_stand(documents, question, filename, filenames):
    choice = documents.score(understand(question), filenames=filenames)
    assert CORPUS[choice.choose_best(most=1)[0]][0] == filename
    assert choice.sure > 2 / len(CORPUS)


def test_a_name_that_only_the_file_has_is_found_there_alone(documents):
    query = understand("Consider Holiday Cars' Endorsement Agreement; who pays?")
    assert CORPUS[documents.score(query).choose_best(most=1)[0]][0] == "HOLIDAYCARSINC_EX-10.txt"
    tock = understand("Consider Tock's privacy policy; who pays?")
    assert CORPUS[documents.score(tock).choose_best(most=1)[0]][0] == "Tock.txt"
    weights = np.exp(documents.score(tock, filenames=False).log_weights)
    assert weights[2] == pytest.approx(weights[0]) and weights[2] < 0.5  # the title was read off the file's name


@pytest.mark.parametrize(
    ("question", "filename"),
    [
        ("does lodger sell my data", "Lodger.txt"),
        ("cookies lodger", "Lodger.txt"),
        ("endorsement: who pays?", "HOLIDAYCARSINC_EX-10.txt"),
        ("Having read Fenway; who pays?", "nda_form_fenway.txt"),
    ],
)
def test_the_collection_knows_a_name_in_any_case_and_wording(documents, question, filename):
    choice = documents.score(understand(question, documents.has_rare_name))
    assert CORPUS[choice.choose_best(most=1)[0]][0] == filename and choice.sure > 0.4


def test_a_word_is_carried_by_names_and_in_capitals_by_texts_too(documents):
    assert (
        documents.has_rare_name("endorsement") and documents.has_rare_name("Tock") and documents.has_rare_name("tock")
    )
    assert not documents.has_rare_name("tock", filenames=False)  # its title was read off the file's name
    several = build(range(len(CORPUS)))
    several.add(99, filename="99.txt", profile=Profile("Deed"), text="Deed\n" + "we ask Zephyr of it. " * 9)
    assert several.has_rare_name("Zephyr") and not several.has_rare_name("zephyr")  # in a text alone
    assert not documents.has_rare_name("privacy disclosure agreement Confidential the")
    assert not DocumentNames().has_rare_name("Tock")


@pytest.mark.parametrize(("holders", "counts"), [(2, True), (3, False)])
def test_a_mention_counts_when_fewer_than_the_cube_root_of_all_documents_hold_it(holders, counts):
    many = DocumentNames()
    for number in range(26):  # 27 is 3 cubed: log(27 / 2.5) is above two thirds of log(27), log(27 / 3.5) below
        name = "Zephyr" if number < holders else "Plain"
        many.add(number, filename=f"{number}.txt", profile=Profile(f"{name} Lease"), text=f"{name} Lease\nIt is let.")
    assert many.has_rare_name("zephyr") == counts
    query = understand("Does Zephyr pay?")
    assert not query.apart and bool(many.score(query).evidence["names"].any()) == counts


def test_a_name_in_running_text_counts_the_more_the_oftener_it_stands_there():
    rivals = DocumentNames()
    for number, times in enumerate((1, 3, 0)):
        text = "Lease\n" + "we sell to Zephyr now. " * times
        rivals.add(number, filename=f"{number}.txt", profile=Profile("Lease"), text=text)
    names = rivals.score(understand("In Zephyr's deed, who pays?")).evidence["names"]
    whole = 1.5 * math.log(4 / 2.5)
    assert names.tolist() == pytest.approx([whole / 2, whole * 3 / 4, 0.0])


@pytest.mark.parametrize(("before", "stated"), [(5900, True), (6100, False)])
def test_a_title_counts_where_a_document_says_it_on_its_first_pages(before, stated):
    found = DocumentNames()
    text = "x " * (before // 2) + "zephyr lease. " + "y " * 200
    found.add(0, filename="1.txt", profile=Profile("Zephyr Lease"), text=text)
    for number in range(1, 9):
        found.add(number, filename="2.txt", profile=Profile("Deed"), text="Deed")
    assert found.has_rare_name("zephyr", filenames=False) == stated


def test_another_kind_of_document_is_ten_times_less_likely(documents):
    kinds = documents.score(understand("Under the NDA, who may know?")).evidence["kind"]
    assert kinds[3] == 0.0 and math.exp(kinds[0]) == pytest.approx(1 / 10, abs=0.001)


def test_two_words_of_a_name_have_at_most_a_mark_and_a_space_between_them():
    assert [(a.term, b.term) for a, b in list_pairs(list(name_words("Oak, Inc. No. 3")))] == [
        ("oak", "inc"), ("inc", "no"), ("no", "3"),
    ]  # fmt: skip
    assert not list(list_pairs(list(name_words("Oak – Inc and Elm"))))


def test_a_query_that_names_nothing_leaves_all_alike(documents):
    choice = documents.score(understand("who can see it?"))
    assert choice.log_weights == pytest.approx(np.full(len(CORPUS), -math.log(len(CORPUS))))
    assert choice.sure == pytest.approx(1 / len(CORPUS))
    assert len(choice.choose_best(99)) == len(CORPUS)


def test_defined_terms_are_no_names(documents):
    choice = documents.score(understand("Must the visitor return Confidential Information?"), filenames=False)
    assert choice.sure == pytest.approx(1 / len(CORPUS))


def test_a_kind_alone_keeps_all_documents_of_that_kind_in_play(documents):
    choice = documents.score(understand("Under the NDA, who may know?"), filenames=False)
    kinds = {CORPUS[number][1].kind for number in choice.choose_best(most=4)}
    assert kinds == {"nda"} and choice.sure < 0.5


def test_words_that_all_documents_have_say_nothing(documents):
    choice = documents.score(understand("Consider the Agreement; who pays?"), filenames=False)
    assert choice.evidence["names"].max() < 1 and choice.sure < 0.25


def test_the_trace_says_which_signal_gave_what(documents):
    trace = documents.score(understand("Consider Fenway's Non-Disclosure Agreement; who pays?")).trace()
    best = next(iter(trace["documents"]))
    assert CORPUS[best][0] == "nda_form_fenway.txt"
    assert trace["documents"][best]["names"] > 1 and trace["documents"][best]["weight"] == trace["sure"]
    policies = documents.score(understand("Consider Fenway's Non-Disclosure Agreement; who pays?")).trace(most=99)
    assert policies["documents"][0]["kind"] < 0


def test_another_signal_can_be_added_and_is_traced(documents):
    passages = np.zeros(len(CORPUS))
    passages[4] = 3.0
    choice = documents.score(understand("who can see it?")).add_signal("passages", passages)
    assert choice.choose_best(most=1) == [4] and np.exp(choice.log_weights).sum() == pytest.approx(1.0)
    assert choice.trace(most=1)["documents"][4]["passages"] == 3.0


QUESTIONS = st.one_of(
    st.text(max_size=80), st.sampled_from(["Does Lodger pay?", "Consider Fenway's NDA; who?", "In the agreement, who?"])
)


@given(QUESTIONS, st.booleans())
def test_weights_are_a_distribution_for_any_question(documents, question, filenames):
    choice = documents.score(understand(question), filenames=filenames)
    assert np.exp(choice.log_weights).sum() == pytest.approx(1.0)
    assert list(choice.numbers) == list(range(len(CORPUS)))
    assert 1 / len(CORPUS) <= choice.sure + 1e-9


@settings(max_examples=10)
@given(st.permutations(range(len(CORPUS))), st.integers(1, len(CORPUS) - 1))
def test_a_document_added_and_removed_leaves_no_mark(order, kept):
    plain, changed = build(sorted(order[:kept])), build(order)
    for number in order[kept:]:
        changed.remove(number)
    assert len(changed) == kept
    for question in ("Consider Fenway's NDA; who pays?", "Does Lodger sell it?", "Amendment No. 3 of Oak and Pine?"):
        query = understand(question)
        assert changed.score(query).log_weights.tolist() == plain.score(query).log_weights.tolist()


def test_what_is_saved_is_what_is_opened(tmp_path):
    database = Database(tmp_path / "index.sqlite")
    documents = build(range(len(CORPUS)), database)
    documents.save()
    database.save()
    opened = DocumentNames(Database(tmp_path / "index.sqlite"))
    for question in ("Consider Fenway's NDA; who pays?", "Does Lodger sell it?", "who?"):
        query = understand(question)
        assert opened.score(query).log_weights.tolist() == documents.score(query).log_weights.tolist()
    assert len(opened) == len(CORPUS)


def test_no_documents_is_no_choice():
    choice = DocumentNames().score(understand("Consider Fenway's NDA; who pays?"))
    assert (len(choice.numbers), choice.sure, choice.choose_best(1)) == (0, 0.0, [])


def test_numbers_may_have_gaps():
    found = build([2, 7, 9])
    choice = found.score(understand("Consider Tock's privacy policy; who pays?"))
    assert list(choice.numbers) == [2, 7, 9] and choice.choose_best(most=1) == [2]


def test_words_of_names_are_folded():
    assert [word.term for word in name_words("MOËT’s R-Tech & Papa John's Nondisclosure")] == [
        "moet", "r", "tech", "papa", "john", "non", "disclosure",
    ]  # fmt: skip
    assert next(name_words("AGProjects")).parts == ("ag", "projects")
    assert list_acronyms("First Nations Health Authority") == {"fnha", "fnh"}
    assert split_filename("cuad/Grind%20SA_NDA||Second.pdf") == ("grindsandasecond", ("grind", "sa", "nda", "second"))


def test_a_word_is_proper_when_no_sentence_begins_with_it():
    counts = count_proper_words("Keep it. Keep on. We ask Keep, and iTock, to keep. KEEP")
    assert counts == {"keep": 1, "itock": 1}


GUIDES = {
    "p47": ("Practice Direction 47 – Detailed Assessment", "practice direction"),
    "p44": ("Practice Direction 44 – Costs", "practice direction"),
    "r47": ("Part 47 – Detailed Assessment", "rules"),
    "kings": ("The Kings Bench Guide", "court guide"),
    "ships": ("The Admiralty Court Guide", "court guide"),
    "lease": ("Lease", "contract"),
}


def guides() -> DocumentNames:
    """Names of documents whose texts all mention each other, so that only the title distinguishes them."""
    found = DocumentNames()
    everything = " See Practice Direction 47, Part 44, the Kings Bench Division, the Admiralty Court and its Guide." * 4
    for number, (name, (title, kind)) in enumerate(GUIDES.items()):
        found.add(number, filename=f"{name}.pdf", profile=Profile(title, kind), text=f"{title}\n{everything}")
    return found


@pytest.mark.parametrize(
    ("question", "meant"),
    [
        ("What does Practice Direction 47 cover?", "p47"),
        ("What does Practice Direction 44 say of bills?", "p44"),
        ("What is the scope of detailed assessment under CPR Part 47?", "r47"),
        ("What is a litigant in person according to the Kings Bench Division Guide?", "kings"),
        ("How does one arrest a ship under the Admiralty Court Guide?", "ships"),
    ],
)
def test_a_title_that_is_said_in_full_is_meant(question, meant):
    choice = guides().score(understand(question))
    assert choice.choose_best(1) == [list(GUIDES).index(meant)]
    assert choice.evidence["title"][list(GUIDES).index(meant)] == choice.evidence["title"].max() > 0


def test_half_a_title_says_nothing_and_a_title_of_many_says_little():
    choice = guides().score(understand("What does the Guide say of costs?"))
    assert choice.evidence["title"].max() < 0.8
    many = DocumentNames()
    for number in range(6):
        many.add(number, filename=f"{number}.txt", profile=Profile(NDA, "nda"), text=f"{NDA}\nIt is secret.")
    assert many.score(understand(f"Consider the {NDA}; who pays?")).evidence["title"].max() < 0.2
