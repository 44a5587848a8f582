"""Families of contracts in a corpus: an agreement and its amendments, linked by titles, parties and dates."""

from dataclasses import replace

from exhibit.converters.benchmark import Tally
from exhibit.converters.steps.materialise import Done
from exhibit.law.families import link_families

FAMILY = "family"
"""The label with the file name of a family's contract, for a question or a document."""


def mark_families(done: dict[str, Done], tally: Tally) -> dict[str, Done]:
    """Return the documents, with labels added to those that belong to a family of contracts.

    `family` names the contract, or the first amendment if the corpus lacks the contract. `amends` names the
    contract that an amendment changes, if the corpus has it. `effective_from` is the day on which an amendment
    takes effect.
    """
    agreed = {name: one.contract for name, one in done.items() if one.contract is not None}
    amendments = [one.member for one in agreed.values() if one.member.amendment is not None]
    if not amendments:
        return done
    links = link_families(amendments, [one.name for one in agreed.values() if one.member.amendment is None])
    marked = dict(done)
    for name in dict.fromkeys([*links, *links.values()]):
        labels = {FAMILY: links.get(name, name)}
        amendment = agreed[name].member.amendment
        if amendment is not None and name in links:
            if agreed[links[name]].member.amendment is None:
                labels["amends"] = links[name]
                tally.note("amendments of another document of the corpus", f"{name}: amends {links[name]}")
            if amendment.day is not None:
                labels["effective_from"] = amendment.day.isoformat()
        entry = done[name].entry
        marked[name] = replace(done[name], entry=entry.model_copy(update={"labels": {**entry.labels, **labels}}))
    return marked
