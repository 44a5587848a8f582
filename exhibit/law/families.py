"""A contract with its amendments: the version of a section on a given day, and the document it comes from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Generic

from exhibit.evidence import Document, Span
from exhibit.law.amendments import Amendment, ContractName, Key, SectionChange, find_amended_contract
from exhibit.law.names import normalise_name
from exhibit.law.provision_places import ProvisionIndex
from exhibit.law.provisions import read_provisions

_SHARED = 40  # characters that a passage and a section must share; fewer are only a heading or a word at the edge
_ISSUER = 12  # characters that the file names of one issuer share: `GluMobileInc`


@dataclass(frozen=True)
class FamilyMember(Generic[Key]):
    """A contract or an amendment of it."""

    key: Key
    filename: str
    text: str
    amendment: Amendment | None = None

    def holds(self, day: date) -> bool:
        """Return whether the document is in force on a day.

        A contract is always in force. An amendment is in force from the day that it states, or always if it states
        no day.
        """
        return self.amendment is None or self.amendment.day is None or self.amendment.day <= day


@dataclass(frozen=True)
class SectionVersion(Generic[Key]):
    """A section of a contract as it reads on a given day, after the amendments up to that day.

    It has the section's text and the document that contains the section or changed it last. `is_deleted` says
    whether an amendment deleted the section.
    """

    section: str
    source: FamilyMember[Key]
    """The document that contains the section, or that changed it last."""
    span: Span
    text: str
    """The section's words; they differ from the words of the span if an amendment replaced some of them."""
    is_deleted: bool = False

    @property
    def note(self) -> str:
        """A sentence that names the document that changed the section; empty if none did."""
        if self.source.amendment is None:
            return ""
        day = self.source.amendment.day
        since = f", in force from {day.day} {day:%B %Y}" if day else ""
        done = "was deleted by" if self.is_deleted else "as changed by"
        return f"Section {self.section} {done} {self.source.filename}{since}"


class Family(Generic[Key]):
    """A contract and its amendments, which are sorted from the oldest to the newest.

    The contract is None if only amendments are known.
    """

    def __init__(self, contract: FamilyMember[Key] | None, amendments: Iterable[FamilyMember[Key]]) -> None:
        self.contract = contract
        self.amendments = tuple(sorted(amendments, key=_rank_age))
        self.members = {member.key: member for member in (*filter(None, [contract]), *self.amendments)}

    @cached_property
    def _changes(self) -> list[tuple[FamilyMember[Key], SectionChange]]:
        return [(one, change) for one in self.amendments if one.amendment for change in one.amendment.changes]

    @cached_property
    def _places(self) -> dict[str, Span]:
        """The changed sections: a mapping from the number of a section that an amendment changes to its span.

        The span is in the text of the contract.
        Sections that are not found are left out. Without a contract, the mapping is empty.
        """
        if self.contract is None:
            return {}
        index = ProvisionIndex(Document(self.contract.filename, self.contract.text))
        places: dict[str, Span] = {}
        for section in dict.fromkeys(change.section for _, change in self._changes):
            named = read_provisions(f"Section {section}")
            found = [place for place in index.find(named[0]) if not place.whole] if named else []
            spans = [Span(place.spans[0].start, place.spans[-1].end) for place in found]
            # of two sections with one number, the longer one is the section and the shorter one a line of the contents
            if spans:
                places[section] = max(spans, key=lambda span: span.end - span.start)
        return places

    def find_changed_places(self, key: Key, span: Span) -> list[tuple[str, Span]]:
        """Return the sections that amendments changed and that a passage overlaps, the longest first.

        Each result is the section's number and a span in the passage's document (`key`). In the contract, it is
        the span of the section; in an amendment, it is the span of the text that changes the section.
        """
        member = self.members[key]
        places = list(self._places.items())
        if member.amendment is not None:
            places = [(change.section, change.span) for change in member.amendment.changes]
        touched = [(section, place) for section, place in places if _touches(span, place)]
        return sorted(touched, key=lambda one: one[1].start - one[1].end)

    def is_superseded(self, key: Key, day: date) -> bool:
        """Return whether a later document that is in force on the day restates the whole contract."""
        later = list(self.members).index(key) + 1
        return any(one.amendment and one.amendment.restates and one.holds(day) for one in self._members[later:])

    @property
    def _members(self) -> list[FamilyMember[Key]]:
        return list(self.members.values())

    def find_changed_parts(self, section: str, day: date) -> list[SectionVersion[Key]]:
        """Return the changes to single parts of a section that are in force on a day, the newest first."""
        return [
            SectionVersion(section, one, change.span, one.text[slice(*change.span)])
            for one, change in reversed(self._changes)
            if change.section == section and change.kind == "part" and one.holds(day)
        ]

    def find_version(self, section: str, day: date) -> SectionVersion[Key] | None:
        """Return the version of a section on a day; None if no document in force contains the whole section."""
        version: SectionVersion[Key] | None = None
        if self.contract is not None and section in self._places:
            place = self._places[section]
            version = SectionVersion(section, self.contract, place, self.contract.text[slice(*place)])
        for one, change in self._changes:
            if change.section != section or not one.holds(day):
                continue
            if change.kind in ("replaced", "deleted"):
                words = one.text[slice(*change.new)]
                version = SectionVersion(section, one, change.new, words, change.kind == "deleted")
            elif change.kind == "words" and version is not None:
                words = change.apply(version.text)
                if words != version.text:
                    version = SectionVersion(section, one, change.span, words)
        return version


def _rank_age(member: FamilyMember[Key]) -> tuple[int, date]:
    amendment = member.amendment
    return (amendment.number if amendment else 0), (amendment.day if amendment else None) or date.max


def _touches(span: Span, place: Span) -> bool:
    shared = min(span.end, place.end) - max(span.start, place.start)
    return shared >= min(_SHARED, place.end - place.start, (span.end - span.start) / 2) > 0


def link_families(amendments: Sequence[FamilyMember[Key]], contracts: Sequence[ContractName[Key]]) -> dict[Key, Key]:
    """Return a mapping from the key of each amendment to the key of its contract.

    If a contract is not among `contracts`, all its amendments are mapped to the key of the first of these
    amendments. An amendment is left out if neither its contract nor another amendment of the same contract is
    found.
    """
    linked: dict[Key, Key] = {}
    alone: list[FamilyMember[Key]] = []
    for one in amendments:
        assert one.amendment is not None
        contract = find_amended_contract(one.amendment, one.filename, contracts)
        if contract is None:
            alone.append(one)
        else:
            linked[one.key] = contract
    for at, one in enumerate(alone):
        for other in alone[:at]:
            if _amend_the_same(one, other):
                linked[other.key] = linked.get(other.key, other.key)
                linked[one.key] = linked[other.key]
                break
    return linked


def _amend_the_same(one: FamilyMember[Key], other: FamilyMember[Key]) -> bool:
    """Return whether two amendments seem to amend the same contract.

    They do if their openings name the same date (usually the contract's) and their file names begin alike.
    """
    shared = normalise_name(one.filename)[:_ISSUER] == normalise_name(other.filename)[:_ISSUER]
    days = [member.amendment.contract_days for member in (one, other) if member.amendment]
    return shared and bool(days[0] & days[1])
