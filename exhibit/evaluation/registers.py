"""Check whether a reference exists in the official registers: legislation.gov.uk and Find Case Law.

To spare the registers, requests are sent one at a time, with a pause, and only to pages that robots.txt allows.
References that exist are cached.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from exhibit.converters.pages.fetch import DISALLOWED, TOO_LARGE, Downloader, FetchError, PageReply, Policy
from exhibit.law.references import Reference, find_references
from exhibit.law.references.reference import is_same_source
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.atomic import write_whole
from exhibit.storage.cache import Cache, key_of
from exhibit.storage.http import REDIRECTS

REFERENCES = "references.jsonl"
DELAY_SECONDS = 0.5  # between two requests to a host: the stricter register allows 1,000 in 5 minutes
_LARGEST = 16 << 20  # bytes of a reply

Outcome = Literal["found", "absent", "uncovered", "unreachable"]
"""uncovered: the registers lack this kind of law, or a part of it; unreachable: a register did not answer."""


class Lookup(NamedTuple):
    """The result of checking a reference, with the address at which it was found or last searched."""

    outcome: Outcome
    url: str = ""
    detail: str = ""


class _UndecidedError(Exception):
    """It cannot be decided whether a reference exists; the argument is the lookup."""


LEGISLATION = "https://www.legislation.gov.uk"
CASE_LAW = "https://caselaw.nationalarchives.gov.uk"
_SERIES = {"si": "uksi", "eu regulation": "eur", "eu directive": "eudr", "eu decision": "eudn"}
"""Series of instruments that have another name on legislation.gov.uk."""
# the word for a provision, by the last word of the instrument's title
_UNITS = {"act": "section", "measure": "section", "regulations": "regulation", "order": "article", "rules": "rule"}
_INSIDE = {"sch": "schedule", "part": "part", "chapter": "chapter", "annex": "annex"}
# the courts whose judgments Find Case Law has
_COURT = re.compile(r"EAT|EWCA (Civ|Crim)|(EW(CC|COP|CR|FC|HC)|UK(FTT|IPTrib|PC|SC|UT))( \(\w+\))?")
_COMPLETE_FROM = 2023  # Find Case Law opened in April 2022; it has only some older judgments
_NUMBERED = re.compile(r"(?P<series>si|ssi|nisr|wsi|asp|anaw|asc|nia|eu \w+) (?P<year>\d{4})/(?P<number>\d+)")
_TITLED = re.compile(r".+ (?P<sort>act|regulations|order|rules|measure) \d{4}")
_PATH = re.compile(r"/(?:id/)?(?P<path>[a-z]{2,5}/(?:\d{4}|[A-Za-z0-9]{2,12}/[\d-]{1,9})/\d{1,4})(?:/|$)")
"""The path of an instrument; older Acts are filed by reign: `ukpga/Eliz2/10-11/46`."""


def find_case_path(reference: Reference) -> str | None:
    """Return the path of a judgment, `ewca/civ/2024/123`; None if Find Case Law does not cover the court."""
    if not _COURT.fullmatch(reference.source):
        return None
    court = re.sub(r"[ (]+", "/", reference.source.rstrip(")")).lower()
    return f"{court}/{reference.path[0]}/{reference.path[1]}"


def find_instrument_path(source: str) -> str | None:
    """Return the path of a numbered instrument; "" if it has only a title, None if the register does not cover it."""
    if source == "uk gdpr":
        return "eur/2016/679"
    match = _NUMBERED.fullmatch(source)
    if match is None:
        return "" if _TITLED.fullmatch(source) else None
    if match["series"].startswith("eu ") and int(match["year"]) > 2020:  # later EU law is not UK law
        return None
    return f"{_SERIES.get(match['series'], match['series'])}/{match['year']}/{match['number']}"


def list_provision_paths(reference: Reference) -> list[str]:
    """Return the possible paths of a provision in its instrument, such as `section/33/1`; may be empty."""
    source, path = reference.source, reference.path
    if not path or " " in path[0]:
        return [part for part in [_make_part_path(path)] if part]
    if source.startswith("eu ") or source == "uk gdpr":
        return [f"article/{path[0]}"]  # the paragraphs of an article have no addresses
    match = _TITLED.fullmatch(source)
    units = (_UNITS[match["sort"]],) if match else ("regulation", "article", "rule")
    if source.startswith(("asp ", "anaw ", "asc ", "nia ")):
        units = ("section",)
    return ["/".join([unit, *path]) for unit in units]


def _make_part_path(path: Sequence[str]) -> str:
    """Return the path of a Schedule, Part, Chapter or Annex with the units inside it; empty for anything else."""
    steps, word = [], ""
    for part in path:
        named, _, number = part.partition(" ")
        if number:
            word = named
            if word not in _INSIDE:
                return ""
            steps += [_INSIDE[word], number]
        elif word == "sch":
            steps += [part] if "paragraph" in steps else ["paragraph", part]
    return "/".join(steps)


class Register:
    """The official registers, or a mirror with the pages of both registers; each reference is looked up only once."""

    def __init__(self, folder: Path, mirror: str = "") -> None:
        self._legislation, self._case_law = (mirror.rstrip("/") or address for address in (LEGISLATION, CASE_LAW))
        self._cache = Cache(folder / "found.sqlite")
        policy = Policy(allow_private=bool(mirror), delay=DELAY_SECONDS, timeout=20.0, retries=2)
        self._web = Downloader(policy)
        self._gone: dict[str, _UndecidedError] = {}  # the hosts that did not answer; they are not asked again
        self._find_instrument = cache(self._search_instrument)
        self.checked: dict[Reference, Lookup] = {}  # the results of all references checked so far

    def check(self, reference: Reference) -> Lookup:
        if reference not in self.checked:
            key = key_of(self._legislation, reference.kind, str(reference))
            stored = self._cache.get([key]).get(key)
            self.checked[reference] = lookup = Lookup(*json.loads(stored)) if stored else self._look_up(reference)
            if lookup.outcome == "found" and not stored:
                self._cache.put({key: json.dumps(lookup).encode("ascii")})
        return self.checked[reference]

    def _look_up(self, reference: Reference) -> Lookup:
        try:
            if reference.kind == "case":
                return self._look_up_case(reference)
            if reference.kind == "statute":
                return self._look_up_statute(reference)
        except _UndecidedError as error:
            lookup: Lookup = error.args[0]
            return lookup
        return Lookup("uncovered", detail="court rules, directions and guides are in neither register")

    def _look_up_case(self, reference: Reference) -> Lookup:
        if (path := find_case_path(reference)) is None:
            return Lookup("uncovered", detail=f"Find Case Law has no judgments of {reference.source}")
        url = f"{self._case_law}/{path}"
        if self._ask(f"{url}/data.xml").status == 200:
            return Lookup("found", url)
        # a judgment may have another path, which only a search by citation finds
        feed = self._ask(f"{self._case_law}/atom.xml?query={quote(str(reference))}")
        if any(reference in find_references(element.text or "") for element in _list_elements(feed, "identifier")):
            return Lookup("found", url)
        if int(reference.path[0]) < _COMPLETE_FROM:
            return Lookup("uncovered", url, f"not found, but Find Case Law is complete only from {_COMPLETE_FROM} on")
        return Lookup("absent", url)

    def _look_up_statute(self, reference: Reference) -> Lookup:
        source = reference.source
        if find_instrument_path(source) is None:
            return Lookup("uncovered", detail=f"legislation.gov.uk does not have {source!r} by that name")
        if (instrument := self._find_instrument(source)) is None:
            return Lookup("absent", f"{self._legislation}/id?title={quote(source)}", "no such instrument")
        whole = f"{self._legislation}/{instrument}"
        paths = list_provision_paths(reference)
        for path in paths:
            if self._ask(f"{whole}/{path}/data.xml").status == 200:
                return Lookup("found", f"{whole}/{path}")
        return Lookup("absent", f"{whole}/{paths[0]}", "no such provision") if paths else Lookup("found", whole)

    def _search_instrument(self, source: str) -> str | None:
        """Return an instrument's path, `uksi/2002/618`, by its number or title; None if the register lacks it."""
        if path := find_instrument_path(source):
            page = self._ask(f"{self._legislation}/id/{path}")
            return (_parse_path(page.url) or path) if page.status in (200, 300) else None
        page = self._ask(f"{self._legislation}/id?title={quote(source)}")
        if page.status == 200:
            return _parse_path(page.url)
        listed = [(link.get("href", ""), "".join(link.itertext())) for link in _list_elements(page, "a")]
        if chosen := _find_title(source, listed):
            return chosen
        # this search compares titles with their commas and apostrophes, which our names lack
        feed = self._ask(f"{self._legislation}/all/data.feed?title={quote(source)}")
        entries = _list_elements(feed, "entry")
        return _find_title(source, [(entry.findtext("{*}id", ""), entry.findtext("{*}title", "")) for entry in entries])

    def _ask(self, url: str) -> PageReply:
        scheme, host = urlsplit(url)[:2]
        address = url
        for _ in range(4):  # the registers redirect once or twice
            reply = self._send(address, host)
            location = reply.headers.get("location", "")
            if not location or reply.status not in REDIRECTS:
                return reply
            # the registers' redirects name http:// addresses; only their paths are followed
            address = urlsplit(urljoin(address, location))._replace(scheme=scheme, netloc=host).geturl()
            if reply.status == 303:  # the identifier of an existing item; the document itself is not fetched
                return PageReply(address, 200, {})
        raise _UndecidedError(Lookup("unreachable", detail=f"{url}: redirects endlessly"))

    def _send(self, url: str, host: str) -> PageReply:
        if host in self._gone:
            raise self._gone[host]
        try:
            return self._web.request(url, limit=_LARGEST)
        except FetchError as error:
            if error.status and not error.transient:
                return PageReply(url, error.status, {})
            if error.reason == DISALLOWED:
                raise _UndecidedError(Lookup("uncovered", detail=f"{url}: robots.txt excludes this address")) from error
            if error.reason == TOO_LARGE:
                raise _UndecidedError(Lookup("unreachable", detail=f"{url}: {error.detail}")) from error
            self._gone[host] = _UndecidedError(Lookup("unreachable", detail=f"{host} cannot be queried: {error}"))
            raise self._gone[host] from error


def _list_elements(reply: PageReply, name: str) -> list[Any]:
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    parser = etree.XMLParser(recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    root = etree.fromstring(reply.data, parser) if reply.data else None
    return [] if root is None else root.findall(f".//{{*}}{name}")


def _find_title(source: str, listed: Iterable[tuple[str, str]]) -> str | None:
    """Return the path of the first entry with the title `source`, ignoring punctuation."""
    for address, title in listed:
        named = [found for found in find_references(title) if found.kind == "statute" and not found.path]
        if len(named) == 1 and is_same_source("statute", source, named[0].source):
            return _parse_path(address)
    return None


def _parse_path(address: str) -> str | None:
    match = _PATH.match(urlsplit(address).path)
    return match["path"] if match else None


def write_account(run: RunFolder, register: Register, *, say: Callable[[str], None]) -> None:
    """Write each answer's legal references to `references.jsonl`; report unchecked references."""
    for name in run.datasets:
        lines = []
        for row in run.rows_of(name):
            answer = "" if row.reply.error else row.reply.answer or ""
            for reference in dict.fromkeys(find_references(answer, context=row.question)):
                line = {"id": row.id, "reference": str(reference), "kind": reference.kind}
                lines.append(json.dumps(line | register.check(reference)._asdict(), ensure_ascii=False) + "\n")
        write_whole(run.folder / name / REFERENCES, "".join(lines))
    if away := [lookup.detail for lookup in register.checked.values() if lookup.outcome == "unreachable"]:
        say(f"{len(away)} of {len(register.checked)} references not checked: {'; '.join(dict.fromkeys(away))}")
