"""Families of contracts in an index: an agreement and its amendments, linked by names, parties and dates."""

import re
from weakref import WeakKeyDictionary

from exhibit.law.amendments import ContractName, read_amendment
from exhibit.law.families import Family, FamilyMember, link_families
from exhibit.rag.index import Entry, Index
from exhibit.rag.protocols import Keys
from exhibit.rag.questions import Query

_NEAR = 24
"""The number of documents with the most similar names among which a document's family is searched."""
_AMENDMENT = re.compile(r"(?i)\b(?:amendments?|amended|amending|addendum|restated)\b")
"""Matches the name of an amendment in a question: such a question asks for the amendment itself."""

_FAMILIES: WeakKeyDictionary[Index, tuple[Keys, frozenset[int], dict[int, Family[int] | None]]] = WeakKeyDictionary()
"""A cache for each open index: its amendments, and the families of the documents in questions, until the index
changes.
"""


def add_contracts(documents: dict[int, float], query: Query, index: Index) -> dict[int, float]:
    """Return `documents` with the contract of each amendment added; it maps document numbers to log-weights.

    An amendment repeats its contract's title and parties, so it may match a question about the contract
    better than the contract does. The contract gets at least the amendment's weight. Nothing is added if the
    question names an amendment.
    """
    if not documents or _AMENDMENT.search(query.names) or not index.config.lexicon:
        return documents
    found = dict(documents)
    for number in sorted(find_amendments(index).intersection(documents)):
        family = find_family(index, index.document(number))
        if family is not None and family.contract is not None:
            contract = family.contract.key
            found[contract] = max(found.get(contract, documents[number]), documents[number])
    return found


def find_amendments(index: Index) -> frozenset[int]:
    """Return the numbers of the documents of an index that amend other documents."""
    known = _FAMILIES.get(index)
    if known is None or known[0] is not index.table:
        known = _FAMILIES[index] = index.table, index.amendments, {}
    return known[1]


def find_family(index: Index, entry: Entry) -> Family[int] | None:
    """Return a document's family, which is a contract with its amendments; None if there is no amendment."""
    amendments = find_amendments(index)
    known = _FAMILIES[index][2]
    if entry.number not in known:
        near = find_namesakes(index, entry)
        members = _read_amendments(index, near, amendments)
        contracts = [
            ContractName(number, one.filename, one.profile.title, one.profile.parties, one.profile.date)
            for number, one in near.items()
            if number not in amendments
        ]
        links = link_families(list(members.values()), contracts)
        known[entry.number] = _link(index, entry, members, links)
    return known[entry.number]


def find_namesakes(index: Index, entry: Entry) -> dict[int, Entry]:
    """Return, by document number, the documents whose names are most similar to the title and parties of `entry`.

    `entry` itself is included.
    """
    names = " ".join([entry.profile.title, *entry.profile.parties])
    choice = index.lexicon.documents.score(Query("", names=names, apart=True))
    numbers = dict.fromkeys([entry.number, *choice.choose_best(_NEAR)])
    return {number: index.document(number) for number in numbers}


def _read_amendments(index: Index, near: dict[int, Entry], amendments: frozenset[int]) -> dict[int, FamilyMember[int]]:
    return {
        number: FamilyMember(
            number, one.filename, text := index.text_of(number), read_amendment(text, one.profile.title)
        )
        for number, one in near.items()
        if number in amendments
    }


def _link(
    index: Index, entry: Entry, members: dict[int, FamilyMember[int]], links: dict[int, int]
) -> Family[int] | None:
    base = links.get(entry.number, entry.number)
    own = [members[number] for number, contract in links.items() if contract == base]
    if entry.number in members and members[entry.number] not in own:
        own.append(members[entry.number])
    if not own:
        return None
    contract = None if base in members else FamilyMember(base, index.document(base).filename, index.text_of(base))
    return Family(contract, own)
