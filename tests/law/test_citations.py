"""Citations: found in any form, assigned to their claims, and checked against the sources."""

import pytest

from exhibit.evidence import Span
from exhibit.law.citations import Claim, claims_of, verify
from exhibit.law.refusals import is_refusal
from exhibit.rag.answerers import Source
from exhibit.schemas import IMPOSSIBLE_ANSWER


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The term [1] is two years.", [("The term is two years.", (1,))]),
        ("The term is two years [1].", [("The term is two years.", (1,))]),
        ("The term is two years. [1]", [("The term is two years.", (1,))]),
        ("The term is two years.[1][3]", [("The term is two years.", (1, 3))]),
        ("Yes. The licence is exclusive [2].", [("The licence is exclusive.", (2,))]),
        ("Yes [2].", [("Yes.", (2,))]),
        ("Yes.", []),
        (
            "The term is two years [doc 42], see https://example.org/2024/17 [1].",
            [("The term is two years, see.", (1,))],
        ),
        (
            "Acme Inc. pays 5% [1]. Under s. 33 it stops [2].",
            [("Acme Inc. pays 5%.", (1,)), ("Under s. 33 it stops.", (2,))],
        ),
        ("The duties are:\n- to pay rent [1]\n- to **insure** [2]", [("to pay rent", (1,)), ("to insure", (2,))]),
        (
            "1. Rent is due monthly [1]\n2. Deposit is due at once [1, 2]",
            [("Rent is due monthly", (1,)), ("Deposit is due at once", (1, 2))],
        ),
        ("# Term\n\nThe term is two years.\n\n[1]", [("The term is two years.", (1,))]),
        ("The term is two years. The fee is fixed [1].", [("The term is two years.", ()), ("The fee is fixed.", (1,))]),
    ],
)
def test_citations_are_assigned_to_their_claims(answer, expected):
    assert [(claim.text, claim.citations) for claim in claims_of(answer)] == expected


def source(
    number: int, text: str, *, document: str = "lease.pdf", section: str = "", page: int | None = None
) -> Source:
    return Source(document, Span(0, len(text)), text, 0.5, section, page, number=number)


SOURCES = (
    source(1, "The initial term of this Lease shall commence on March 14, 2019 and continue for two (2) years."),
    source(2, "Tenant shall pay a late charge of five percent (5%) of any instalment overdue by more than ten days."),
    source(
        3, "Landlord may terminate this Lease upon thirty days' written notice.", section="9 > 9.2 Termination", page=7
    ),
    source(4, "The aggregate liability of either party shall not exceed $10,000,000."),
)


def test_verify_citations_removes_citations_that_do_not_support_their_claim():
    verdict = verify([Claim("The initial term of the Lease commences on March 14, 2019.", (1, 2))], SOURCES)
    assert verdict.citations == (1,) and not verdict.unsupported


@pytest.mark.parametrize(
    ("claim", "text", "supported"),
    [
        ("The notice period is 10 days.", "The notice period is ten (10) days.", True),
        ("The notice period is 10 days.", "The notice period is 10 calendar days.", True),
        ("The notice period is 10 days.", "The notice period is 10 business days.", False),
        ("The notice period is 10 business days.", "The notice period is 10 days.", False),
        ("The notice period is 10 working days.", "The notice period is ten (10) Business Days.", True),
        ("The notice period is 10 days.", "The notice period is 10 days, and 10 business days for fees.", True),
        ("The notice period is 10 days.", "The notice period in days: 10.", True),
    ],
)
def test_claim_of_days_is_not_supported_by_business_days(claim, text, supported):
    assert bool(verify([Claim(claim, (1,))], (source(1, text),)).citations) is supported


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (IMPOSSIBLE_ANSWER, True),
        (IMPOSSIBLE_ANSWER + ".", True),
        ('"not found in provided documents"', True),
        ("**Not found in the provided documents.**", True),
        ("The answer is not found in the provided sources.", True),
        ("The information was not found in the documents provided. They concern rent only [1].", True),
        ("Not found in provided documents [1].", True),
        ("I am sorry. Not found in provided documents.", True),
        ("The term is two years [1]. The fee was not found in the provided documents.", False),
        ("Goods not found in the documents of title are excluded from the sale [1].", False),
        ("The term is two years [1].", False),
        ("", False),
        ("Das steht nicht in den bereitgestellten Dokumenten.", True),
        ("V poskytnutých dokumentech to není uvedeno.", True),
        ("Odpoveď sa v dokumentoch nenachádza.", True),
        ("Je n'ai pas trouvé cette information dans les documents.", True),
        ("No se encontró en los documentos proporcionados.", True),
        ("La risposta non si trova nei documenti forniti.", True),
        ("Nie znaleziono odpowiedzi w dokumentach.", True),
        ("A resposta não consta dos documentos.", True),
        ("No, I cannot find that in the documents.", True),
        ("No, the agreement does not mention a cap.", True),
        ("Unanswerable from the context.", True),
        ("There's no cap anywhere in the documents I have.", True),
        ("Sorry, this one can't be answered on what I've been given.", True),
        ("The NDA makes no reference to residuals.", True),
        ("I searched the agreement but found no clause about audit rights.", True),
        ("Ich konnte dazu leider nichts finden.", True),
        ("Aucune clause ne traite de cette question.", True),
        ("This matter is not dealt with in the lease.", True),
        ("Das weiß ich nicht.", True),
        ("Je l'ignore.", True),
        ("V dokumentech jsem nic nenašel.", True),
        ("The agreement does not provide for a renewal, so it ends on 1 May 2026.", False),
        ("No.", False),
        ("No, the tenant may not sublet.", False),
        ("The document does not specify a date, but it states that notice is due within 30 days.", False),
        ("No licence of any trade secret is granted by this Agreement.", False),
        ("This Non-Disclosure Agreement may be amended only in writing.", False),
        ("The Buyer agrees not to disclose the terms to anyone.", False),
        ("Nothing contained in this Agreement shall require a payment.", False),
    ],
)
def test_is_refusal_recognises_refusal_wordings(text, refused):
    assert is_refusal(text) is refused


def test_standalone_citations_are_assigned_to_the_last_claim():
    first, second = claims_of("Rent is due [1]. Fees are due [2, 3].\n\n[4, 5]\n\n[5][2].")
    assert (first.citations, second.citations) == ((1,), (2, 3, 4, 5))
    assert claims_of("[1]") == [] and claims_of("5 [1].")[0].text == "5."
    assert claims_of("Terms [1]:")[0].text == "Terms:" and claims_of("Terms due:") == [] and claims_of("# Terms") == []


def test_verify_citations_ignores_words_of_the_question_as_support_for_a_claim():
    words = (source(1, "Alder mills flour."),)
    assert verify([Claim("Alder mills flour, oats, barley.", (1,))], words, given="flour alder mills?").unsupported
    assert not verify([Claim("Alder mills flour, oats.", (1,))], words, given="flour alder mills?").unsupported
