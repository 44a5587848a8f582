"""Check whether a reference exists in the official registers: legislation.gov.uk and Find Case Law.

checked = Register(Client(cache)).check(reference)

To spare the registers, requests are sent one at a time, with a pause, and only to pages that robots.txt
allows. Pages are cached, so that no page is requested twice.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urlsplit

from exhibit.evaluation.registers.client import Client, DisallowedError, RegisterPage, RegisterUnreachableError
from exhibit.law.references import Reference, find_references
from exhibit.law.references.reference import is_same_source
from exhibit.schemas.bundle import numbered_lines
from exhibit.schemas.parsing import parse_json, read_beside
from exhibit.storage.atomic import write_whole

_KNOWN = read_beside(__file__, "registers.toml")
COURTS = frozenset(_KNOWN["courts"])
"""The courts whose judgments Find Case Law has."""
COMPLETE_FROM = 2023
"""Find Case Law is complete from the year after its opening in April 2022; of older judgments it has only a part."""

_NUMBERED = re.compile(r"(?P<series>si|ssi|nisr|wsi|asp|anaw|asc|nia|eu \w+) (?P<year>\d{4})/(?P<number>\d+)")
_LAST_EUROPEAN = 2020
"""EU law made after the end of 2020 is not law of the United Kingdom, and not in its register."""
_TITLED = re.compile(r"(?P<name>.+) (?P<sort>act|regulations|order|rules|measure) \d{4}")
_ANY_UNIT = ("regulation", "article", "rule")


def find_case_path(reference: Reference) -> str | None:
    """Return the path of a judgment, `ewca/civ/2024/123`; None where Find Case Law does not cover the court."""
    if reference.source not in COURTS:
        return None
    court = re.sub(r"[ (]+", "/", reference.source.rstrip(")")).lower()
    return f"{court}/{reference.path[0]}/{reference.path[1]}"


def instrument_path(source: str) -> str | None:
    """Return an instrument's path on legislation.gov.uk: `uksi/2002/618`.

    Return None if the instrument is cited by its title instead of a number, or is not in that register.
    """
    if source == "uk gdpr":
        return "eur/2016/679"
    match = _NUMBERED.fullmatch(source)
    if match is None or not is_covered(source):
        return None
    return f"{_KNOWN['series'].get(match['series'], match['series'])}/{match['year']}/{match['number']}"


def is_covered(source: str) -> bool:
    """Return whether the register of legislation covers this kind of instrument, judged by its name."""
    match = _NUMBERED.fullmatch(source)
    if match:
        return not match["series"].startswith("eu ") or int(match["year"]) <= _LAST_EUROPEAN
    return source == "uk gdpr" or _TITLED.fullmatch(source) is not None


def list_provision_paths(reference: Reference) -> list[str]:
    """Return the possible paths of a provision in its instrument, such as `section/33/1`; may be empty."""
    if not reference.path:
        return []
    first, *rest = reference.path
    word, _, number = first.partition(" ")
    if number:
        return _make_large_path(word, number, rest)
    units = (_find_unit(reference.source),) if _find_unit(reference.source) else _ANY_UNIT
    if units == ("article",) and reference.source.startswith(("eu ", "uk gdpr")):
        return [f"article/{first}"]  # the paragraphs of an article have no addresses
    return ["/".join([unit, first, *rest]) for unit in units]


def _make_large_path(word: str, number: str, rest: list[str]) -> list[str]:
    """Return a list with one path on legislation.gov.uk, for a Schedule, Part, Chapter or Annex.

    The list is empty for any other unit of an instrument, such as a recital.
    """
    if word not in _KNOWN["inside"]:
        return []
    path = f"{_KNOWN['inside'][word]}/{number}"
    if word == "sch" and rest and " " not in rest[0]:
        path = "/".join([path, "paragraph", *rest])
    elif rest and " " in rest[0]:
        inner = rest[0].split(" ", 1)
        more = _make_large_path(inner[0], inner[1], rest[1:])
        return [f"{path}/{more[0]}"] if more else []
    return [path]


def _find_unit(source: str) -> str:
    """Return what an instrument's provisions are called (`section`, `article` …), by its name; empty if unknown."""
    if source.startswith("eu ") or source == "uk gdpr":
        return "article"
    if source.startswith(("asp ", "anaw ", "asc ", "nia ")):
        return "section"
    match = _TITLED.fullmatch(source)
    return _KNOWN["units"][match["sort"]] if match else ""


# ---------------------------------------------------------------- looking references up

LEGISLATION = "https://www.legislation.gov.uk"
CASE_LAW = "https://caselaw.nationalarchives.gov.uk"

Outcome = Literal["found", "absent", "uncovered", "unreachable"]
"""uncovered: the registers do not have such law, or not all of it; unreachable: a register did not answer."""

_PATH = re.compile(r"/(?:id/)?(?P<path>[a-z]{2,5}/(?:\d{4}|[A-Za-z0-9]{2,12}/[\d-]{1,9})/\d{1,4})(?:/|$)")
"""The path of an instrument; older Acts are filed by reign: `ukpga/Eliz2/10-11/46`."""


class Lookup(NamedTuple):
    """The result of checking one reference: the outcome, and the address that was checked."""

    outcome: Outcome
    url: str = ""
    """The address where the reference was found, or where it was searched last."""
    detail: str = ""


class Register:
    """The official registers, in which references are checked; the results are stored in memory."""

    def __init__(self, client: Client, *, legislation: str = LEGISLATION, case_law: str = CASE_LAW) -> None:
        self._client = client
        self._legislation, self._case_law = legislation.rstrip("/"), case_law.rstrip("/")
        self._instruments: dict[str, str | None] = {}
        self.checked: dict[Reference, Lookup] = {}
        """The results of all references checked so far."""

    def outcome(self, reference: Reference) -> Outcome:
        """Return `found`, `absent`, `uncovered` or `unreachable`: whether a register has a reference.

        `uncovered` means that the registers do not cover such a reference, `unreachable` that a register did not
        answer.
        """
        return self.check(reference).outcome

    def check(self, reference: Reference) -> Lookup:
        """Check whether the official registers have a reference; each reference is looked up only once.

        Return the outcome, such as `found` or `absent`, and the web address that was checked.
        """
        if reference not in self.checked:
            self.checked[reference] = self._look_up(reference)
        return self.checked[reference]

    def _look_up(self, reference: Reference) -> Lookup:
        try:
            if reference.kind == "case":
                return self._look_up_case(reference)
            if reference.kind == "statute":
                return self._look_up_statute(reference)
        except RegisterUnreachableError as error:
            return Lookup("unreachable", detail=str(error))
        except DisallowedError as error:
            return Lookup("uncovered", detail=str(error))
        return Lookup("uncovered", detail="court rules, practice directions and guides are in neither register")

    # ---------------------------------------------------------------- judgments

    def _look_up_case(self, reference: Reference) -> Lookup:
        path = find_case_path(reference)
        if path is None:
            return Lookup("uncovered", detail=f"Find Case Law has no judgments of {reference.source}")
        url = f"{self._case_law}/{path}"
        if self._client.page(f"{url}/data.xml").status == 200 or self._is_in_feed(reference):
            return Lookup("found", url)
        if int(reference.path[0]) < COMPLETE_FROM:
            return Lookup("uncovered", url, f"not found, but Find Case Law is complete only from {COMPLETE_FROM} on")
        return Lookup("absent", url)

    def _is_in_feed(self, reference: Reference) -> bool:
        """Return whether Find Case Law's search by citation finds a judgment that is not at the expected path."""
        feed = self._client.page(f"{self._case_law}/atom.xml?query={quote(str(reference))}", body=True)
        identifiers = [element.text or "" for element in find_page_elements(feed, "identifier")]
        return any(reference in find_references(citation) for citation in identifiers)

    # ---------------------------------------------------------------- legislation

    def _look_up_statute(self, reference: Reference) -> Lookup:
        if not is_covered(reference.source):
            return Lookup("uncovered", detail=f"legislation.gov.uk does not have {reference.source!r} by that name")
        if reference.source not in self._instruments:
            self._instruments[reference.source] = self.path_of_instrument(reference.source)
        instrument = self._instruments[reference.source]
        if instrument is None:
            return Lookup("absent", f"{self._legislation}/id?title={quote(reference.source)}", "no such instrument")
        whole = f"{self._legislation}/{instrument}"
        paths = list_provision_paths(reference)
        if not paths:
            return Lookup("found", whole)
        for path in paths:
            if self._client.page(f"{whole}/{path}/data.xml").status == 200:
                return Lookup("found", f"{whole}/{path}")
        return Lookup("absent", f"{whole}/{paths[0]}", "no such provision")

    def path_of_instrument(self, source: str) -> str | None:
        """Return the legislation.gov.uk path (`uksi/2002/618`) of an instrument, by number or title; None if absent."""
        path = instrument_path(source)
        if path is not None:
            page = self._client.page(f"{self._legislation}/id/{path}")
            return (_parse_path(page.url) or path) if page.status in (200, 300) else None
        page = self._client.page(f"{self._legislation}/id?title={quote(source)}", body=True)
        if page.status == 200:
            return _parse_path(page.url)
        listed = _list_links(page) if page.status == 300 else iter(())
        if chosen := _find_title(source, listed):
            return chosen
        # this search compares titles with their commas and apostrophes, which our names lack
        feed = self._client.page(f"{self._legislation}/all/data.feed?title={quote(source)}", body=True)
        return _find_title(source, _list_entries(feed))


def _find_title(source: str, listed: Iterable[tuple[str, str]]) -> str | None:
    """Return the path of the first entry with this title, ignoring punctuation; None if there is none."""
    for address, title in listed:
        named = [one for one in find_references(title) if one.kind == "statute" and not one.path]
        if len(named) == 1 and is_same_source("statute", source, named[0].source):
            return _parse_path(address)
    return None


def _list_links(page: RegisterPage) -> Iterator[tuple[str, str]]:
    for link in find_page_elements(page, "a"):
        yield link.get("href", ""), "".join(link.itertext())


def _list_entries(page: RegisterPage) -> Iterator[tuple[str, str]]:
    for entry in find_page_elements(page, "entry"):
        elements = {_name(child): "".join(child.itertext()) for child in entry}
        yield elements.get("id", ""), elements.get("title", "")


def find_page_elements(page: RegisterPage, name: str) -> Iterator[Any]:
    """Yield the XML elements of a page that have a given name, in any namespace; nothing if the page is not XML."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    root = etree.fromstring(page.text.encode("utf-8"), parser) if page.status in (200, 300) and page.text else None
    for element in root.iter() if root is not None else ():
        if _name(element) == name:
            yield element


def _name(element: Any) -> str:
    """Return an element's name without its namespace; empty for a comment."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def _parse_path(address: str) -> str | None:
    match = _PATH.match(urlsplit(address).path)
    return match["path"] if match else None


# ---------------------------------------------------------------- the references of a run

REFERENCES = "references.jsonl"
"""The file with one line for each reference of each answer."""


def write_account(results: Iterable[Path], register: Register, *, say: Callable[[str], None]) -> None:
    """Write `references.jsonl` beside each results file; report the number of references that were not checked."""
    for path in results:
        lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in _list_references(path, register)]
        write_whole(path.with_name(REFERENCES), "".join(lines))
    checked = register.checked.values()
    away = [one.detail for one in checked if one.outcome == "unreachable"]
    if away:
        say(f"{len(away)} of {len(checked)} references not checked: {'; '.join(dict.fromkeys(away))}")


def _list_references(path: Path, register: Register) -> Iterator[dict[str, Any]]:
    for _, text in numbered_lines(path):
        row = parse_json(text, where=path)
        if row["reply"]["error"]:
            continue
        for one in dict.fromkeys(find_references(row["reply"]["answer"] or "", context=row["question"])):
            yield {"id": row["id"], "reference": str(one), "kind": one.kind, **register.check(one)._asdict()}
