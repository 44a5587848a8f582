"""Reads the facts by which contracts and their amendments are linked."""

from typing import NamedTuple

from exhibit.evidence import Document
from exhibit.law.amendments import ContractName, is_amendment, read_amendment
from exhibit.law.families import FamilyMember
from exhibit.law.profile import AGREED, read_profile


class ContractFacts(NamedTuple):
    """The facts by which contracts and their amendments are linked, without the text."""

    name: ContractName[str]
    member: FamilyMember[str]


def find_contract_facts(name: str, document: Document) -> ContractFacts | None:
    """Return the names of a contract, or the facts of an amendment; None for other documents."""
    profile = read_profile(document)
    if profile.kind not in AGREED:
        return None
    amendment = read_amendment(document.text, profile.title) if is_amendment(document.text, profile.title) else None
    named = ContractName(name, name, profile.title, profile.parties, profile.date)
    return ContractFacts(named, FamilyMember(name, name, "", amendment))
