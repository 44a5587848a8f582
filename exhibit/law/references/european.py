"""The law of the European Union: acts by number or by name, and their articles, recitals and annexes."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise

from exhibit.law.patterns import Patterns
from exhibit.law.references.reference import Mention, Named, NumberedUnit, mentioned, read_units

_P = Patterns(__file__)
_OLDEST, _NEWEST = 1952, 2099
"""The first acts are those of the Coal and Steel Community."""
_YEAR_FIRST_FROM = 2015
"""Regulations have been numbered year first since 2015; before, `No 44/2001` had the year last."""
_NEAR = 100
"""Acts back that `the Directive` may be found among: a bound on what a hostile text can cost."""


def find_european(text: str) -> Iterator[Mention]:
    """Yield articles, recitals and annexes with the act they are of, and acts that are named as a whole."""
    acts = sorted([*_numbered(text), *_named(text)])
    by_start = {act.start: act for act in acts}
    units = list(read_units(text, _P.provision, roman=("annex",)))
    owners: dict[int, Named] = {}
    # an act's other name may stand in brackets after it: `Regulation (EU) 2016/679 (GDPR)`
    used = {b.start for a, b in pairwise(acts) if a.name == b.name and _P.alias.fullmatch(text, a.end, b.start)}
    for unit in reversed(units):  # "Article 3 and Article 5 of the Directive": the later one knows
        owner, end = _owner(text, unit, acts, by_start) or (None, unit.end)
        if owner is None:
            beside = _P.list.match(text, unit.end)
            owner = owners.get(beside.end()) if beside else None
        if owner is None:
            continue
        owners[unit.start] = owner
        if not _P.again.search(text, unit.end, end):
            used.add(owner.start)  # "the Directive" is another mention; "of Directive 95/46/EC" is this one
        point = _P.point.match(text, unit.start)
        paths = [(*path, point[1]) if point else path for path in unit.paths]
        yield mentioned("statute", owner.name, paths, unit.start, end)
    for act in acts:
        yield mentioned("statute", act.name, [] if act.start in used else [()], act.start, act.end)


def _owner(text: str, unit: NumberedUnit, acts: list[Named], by_start: dict[int, Named]) -> tuple[Named, int] | None:
    """Return the act that a provision is of, and where the whole reference ends."""
    before = bisect_left(acts, unit.start, key=lambda act: act.start)
    gap = _P.of.match(text, unit.end)
    if gap and (act := by_start.get(gap.end())):
        return act, act.end
    again = _P.of_again.match(text, unit.end)
    if again:
        sort = again["sort"].lower()
        near = reversed(acts[max(0, before - _NEAR) : before])
        last = next((act for act in near if _sort(act) == sort), None)
        return (last, again.end()) if last else None
    for act in reversed(acts[max(0, before - 2) : before]):  # its other name may stand between, in brackets
        after = _P.after.match(text, act.end)
        if after and after.end() == unit.start:
            return act, unit.end
    return None


def _sort(act: Named) -> str:
    """Return what an act is called later on: the GDPR is `the Regulation`."""
    return "regulation" if act.name == "uk gdpr" else act.name.split()[1] if " " in act.name else ""


def _numbered(text: str) -> Iterator[Named]:
    for match in _P.act.finditer(text):
        sort, known = match["sort"].lower(), bool(match["body"] or match["suffix"] or match["maker"])
        start, number = match.start(), match
        while source := _eu_source(sort, number["first"], number["second"], no=bool(match["no"]), known=known):
            yield Named(start, number.end(), source)
            another = _P.another.match(text, number.end())
            if another is None:
                break
            start, number = another.start("first"), another
    for match in _P.celex.finditer(text):
        sort = {"R": "regulation", "L": "directive", "D": "decision", "F": "decision"}[match["sort"]]
        yield Named(*match.span(), f"eu {sort} {match['year']}/{int(match['number'])}")


def _eu_source(sort: str, first: str, second: str, *, no: bool, known: bool) -> str | None:
    """Return an act in one form, year first; None for what is no act, as `Decision 12/2019` of a board."""
    if sort == "decision" and not known:
        return None
    year, number = _year(first), second
    if sort != "directive" and (no or (sort == "regulation" and not (year and year >= _YEAR_FIRST_FROM))):
        year, number = _year(second), first
    if year is None or (not known and not no and len(first) < 2):
        return None
    return f"eu {sort} {year}/{int(number)}"


def _year(digits: str) -> int | None:
    """Return the year that four or two digits are; acts of this century write it in full."""
    year = int(digits) + (1900 if len(digits) == 2 else 0)
    return year if len(digits) in (2, 4) and _OLDEST <= year <= _NEWEST else None


def _named(text: str) -> Iterator[Named]:
    for match in _P.named.finditer(text):
        yield Named(*match.span(), _P.key("names", match))
