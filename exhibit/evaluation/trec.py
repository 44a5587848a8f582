"""The rankings of a run in TREC's format, for `ir_measures`, `ranx` and `trec_eval`."""

from urllib.parse import quote

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics import Options, describe_metric, limit_gold
from exhibit.evaluation.metrics.retrieval import ranking_of

RUN = "run.trec"
QRELS = "qrels.trec"


def format_trec(case: Case, *, tag: str) -> tuple[str, str]:
    """Return a question's lines for TREC's run and qrels files, with percent-encoded names."""
    known = limit_gold(case, describe_metric("ndcg").needs, Options())
    ranking = ranking_of(known) if known else None
    if ranking is None:
        return "", ""
    query, name = _name(str(case.id)), _name(tag)
    units = len(ranking.order)
    # derived from the rank, because the system's own scores may have ties
    run = (f"{query} Q0 {_name(u)} {rank} {units - rank + 1} {name}\n" for rank, u in enumerate(ranking.order, 1))
    judged = (f"{query} 0 {_name(unit)} {grade}\n" for unit, grade in ranking.grades.items())
    return "".join(run), "".join(judged)


def _name(text: str) -> str:
    """Return a percent-encoded name, which has no spaces: spaces separate the columns of TREC's files."""
    return quote(text, safe="")
