"""Any citation: whether an answer cites anything, in any form.

`[1]` and malformed variants of it count. So do document names in square brackets:
`[Part 36#page=Offers to Settle]`, `[contract.pdf]`, and the name of a file that was retrieved or has gold,
with or without its extension. A placeholder of a contract (`[amount]`) and the year of a judgment do not
count. The metric does not apply to a refusal, which has nothing to cite.
"""

import re
from pathlib import PurePath

from exhibit.evaluation.metrics import Case, score_per_case
from exhibit.law.citations import BRACKETED, find_citations
from exhibit.law.refusals import is_refusal

_DOCUMENT = re.compile(r".*\S#page=.*|.*\w\.(?:pdf|txt|html?|docx?|json|md)(?:#.*)?", re.IGNORECASE)


def _score(case: Case) -> float | None:
    """Return 1 if the answer has a citation, else 0; None if there is no answer or it is a refusal."""
    answer = case.reply.answer
    if answer is None or is_refusal(answer):
        return None
    names = _list_names(case)
    brackets = (match.strip() for match in BRACKETED.findall(answer))
    documents = any(_DOCUMENT.fullmatch(text) or text.casefold() in names for text in brackets)
    return float(documents or bool(find_citations(answer)))


def _list_names(case: Case) -> set[str]:
    files = {gold.filename for gold in case.gold} | {passage.filename for passage in case.reply.passages}
    return {name.casefold() for file in files if file for name in (file, PurePath(file).stem)}


NAMES, measure = score_per_case(any_citation=_score)
