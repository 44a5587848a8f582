"""The notes on the results page: the limits of our figures, and the sources of the published figures."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from bench.legalbenchrag.papers import Paper
from bench.legalbenchrag.runs import Condition, Measured

_SMALLER = (
    "The embedders differ: ours has 22 million parameters and runs on a laptop, the published figures are with "
    "text-embedding-3-large behind an API. `naive` and `rcts` show what the smaller one costs by the same recipe."
)
_TRAINED = (
    "The embedder `legal` and its reranker were trained on other documents of three of these benchmarks (CUAD, "
    "ContractNLI, MAUD), none of them in this set, and on nothing of PrivacyQA; the embedders of the papers were not."
)
_NAMED = (
    "The questions name their document. A preset that makes use of it gains more here than where nobody says which "
    "document is meant"
)


def write_caveats(groups: Sequence[tuple[Condition, Sequence[Measured]]]) -> Iterator[str]:
    """Yield the Markdown section of the results page on the limits of its figures.

    Only the limits that apply to the given runs are listed.
    """
    conditions = [condition for condition, _ in groups]
    embedders = {str(run.config["config"]["embedder"]) for _, runs in groups for run in runs}
    unnamed = any(condition.wording == "unnamed" for condition in conditions)
    nameless = not all(condition.filenames for condition in conditions)
    told = [_SMALLER] if {"minilm", "legal"} & embedders else []
    if "legal" in embedders:
        told.append(_TRAINED)
    told.append(_NAMED + ("; the rows *unnamed* show how much." if unnamed else "."))
    told.append(
        "A file's name can help to find it"
        + ("; under *no file names* every file is renamed to a number, for all presets." if nameless else ".")
    )
    told.append("The intervals are over the documents of this sample; the published figures come without any.")
    if any(condition.file_type == "pdf" for condition in conditions):
        told.append("As PDF the texts are printed anew: their pages are not the originals'.")
    yield "## What the figures do not say"
    yield ""
    for caveat in told:
        yield from wrap_text(f"- {caveat}")
    yield ""


def write_provenance(papers: Sequence[Paper]) -> Iterator[str]:
    """Yield the Markdown section of the results page on the sources of the published figures.

    For each paper, the section names its methods, its embedder, and the form of its passages, such as their
    length.
    """
    yield "## Where the published figures come from"
    yield ""
    for paper in papers:
        names = ", ".join(method.name for method in paper.method)
        source = f"{paper.authors}, [{paper.paper}]({paper.url}), {paper.date}, {paper.place}"
        with_what = f"Embedder {paper.embedder}; passages: {paper.passages}."
        yield from wrap_text(f"- **{names}**: {source}. {with_what} {paper.note}")


def wrap_text(text: str) -> list[str]:
    """Return the text of a list item, wrapped into lines of at most 118 characters."""
    return textwrap.wrap(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
