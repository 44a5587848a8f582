"""Citations claim by claim: whether the passages that a sentence cites support it.

A claim is a sentence of the answer. A cited passage supports a claim when it has enough of the claim's words and all
its numbers and dates (`law.citations.verify`). The check finds citations that are plainly wrong; it proves nothing.

    claim_citation_precision = citations whose passage supports their claim / all citations
    claim_citation_recall    = claims that a cited passage supports / all claims

A citation of a passage that does not exist supports nothing. A refusal claims nothing, so neither figure applies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from exhibit.evaluation.metrics import Case, Options, Values
from exhibit.law.citations import claims_of, verify
from exhibit.law.refusals import is_refusal

NAMES = ("claim_citation_precision", "claim_citation_recall")


@dataclass(frozen=True)
class _Source:
    """A retrieved passage in the form that the citation check needs."""

    number: int
    text: str
    document: str
    section: str = ""
    page: int | None = None


def measure(cases: Sequence[Case], options: Options) -> dict[str, Values]:
    """Return, for each case, the precision and the recall of the citations in the reply's claims.

    Precision is None without a citation, and recall is None without a claim. Both are None for a refusal, and
    for a reply without answer or passages.
    """
    scores = list(map(_score_claims, cases))
    return {name: [score[column] for score in scores] for column, name in enumerate(NAMES)}


def _score_claims(case: Case) -> tuple[float | None, float | None]:
    answer = case.reply.answer
    if not answer or not case.reply.passages or is_refusal(answer):
        return None, None
    sources = [_Source(n, p.text, p.filename or "") for n, p in enumerate(case.reply.passages, 1)]
    claims = claims_of(answer)
    holding = [len(verify([claim], sources, given=case.question).citations) for claim in claims]
    cited = sum(len(claim.citations) for claim in claims)
    precision = sum(holding) / cited if cited else None
    return precision, sum(map(bool, holding)) / len(claims) if claims else None
