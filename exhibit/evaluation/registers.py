"""Check whether a reference exists in the official registers: legislation.gov.uk and Find Case Law.

    checked = Register(Client(cache)).check(reference)

To spare the registers, requests are sent one at a time, with a pause, and only to pages that robots.txt allows. Pages
are cached, so that no page is requested twice.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urljoin, urlsplit

from exhibit.law.references import Reference, find_references
from exhibit.law.references.reference import is_same_source
from exhibit.schemas import __version__
from exhibit.schemas.bundle import numbered_lines
from exhibit.schemas.errors import ServiceError
from exhibit.schemas.parsing import parse_json
from exhibit.storage.atomic import write_whole
from exhibit.storage.cache import Cache, key_of
from exhibit.storage.http import REDIRECTS, TRANSIENT, BodyError, Deadline, HttpClient, HttpError, Retries, Rules

# ---------------------------------------------------------------- pages

ROBOT = "exhibit-rag"
USER_AGENT = f"{ROBOT}/{__version__}"
DELAY = 0.5
"""Seconds between two requests to a host: the stricter register allows 1,000 in 5 minutes, one every 0.3 seconds."""
TIMEOUT = 20.0
"""Seconds for one complete reply."""
_LARGEST = 2 << 20
"""At most this many bytes of a list or a feed are read; of a law or a judgment only the status is."""
_ROBOTS_LARGEST = 500 << 10  # bytes, the minimum that RFC 9309 requires
_HOPS = 4  # redirects: the registers use one or two
_RETRIES = 2  # per request; a register that is down stays down for longer
_SEE_OTHER = 303
"""The status for the identifier of an existing item; the document that it redirects to is not fetched."""
_KEPT = frozenset({200, 300, 404, 410})
"""Statuses that are cached; any other says nothing about the law."""
_ABSENT_FOR = 30 * 24 * 3600.0
"""Seconds after which a missing item is requested again: new judgments are added every day."""


class RegisterUnreachableError(ServiceError):
    """An error: a register cannot be reached, and is not queried again in this run."""


class DisallowedError(ServiceError):
    """An error: robots.txt forbids an address."""


@dataclass(frozen=True)
class RegisterPage:
    """The final response for an address, after redirects."""

    url: str
    status: int
    text: str = ""
    asked: float = 0.0
    """The time of the request, in seconds since 1970."""


class Client:
    """An HTTP client that fetches the pages of registers, one at a time, and caches them."""

    def __init__(
        self,
        folder: Path,
        *,
        delay: float = DELAY,
        timeout: float = TIMEOUT,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        pool: Any = None,
    ) -> None:
        """Cache pages in `folder`; tests may replace `pause`, `clock` and `pool`."""
        self._cache = Cache(folder / "pages.sqlite")
        self._delay, self._pause, self._clock = delay, pause, clock
        self._timeout = min(timeout, TIMEOUT)
        self._http = HttpClient({"User-Agent": USER_AGENT}, connections=1, pool=pool)
        self._retries = Retries(_RETRIES, 1.0, sleep=pause)
        self._robots: dict[str, Rules] = {}
        self._last: dict[str, float] = {}
        self._gone: dict[str, RegisterUnreachableError] = {}

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def page(self, url: str, *, body: bool = False) -> RegisterPage:
        """Return the page at an address, from the cache or from the register; redirects stay on the same host."""
        key = key_of(url, str(body))
        for kept in self._cache.get([key]).values():
            page = RegisterPage(**json.loads(kept))
            if page.status < 400 or self._clock() - page.asked < _ABSENT_FOR:
                return page
        page = self._fetch(url, body)
        if page.status in _KEPT:
            self._cache.put({key: json.dumps(asdict(page)).encode("ascii")})
        return page

    # ---------------------------------------------------------------- asking

    def _fetch(self, url: str, body: bool) -> RegisterPage:
        host = urlsplit(url).netloc
        address = url
        for hop in range(_HOPS):
            self._check_allowed(address)
            # a redirect leads to a law or a judgment, which may be large: its status is enough
            status, location, text = self._ask(address, most=_LARGEST if body and not hop else 0)
            target = urljoin(address, location) if location and status in REDIRECTS else ""
            if not target:
                return RegisterPage(address, status, text, self._clock())
            # the registers' redirects name http:// addresses; only their paths are followed
            address = urlsplit(target)._replace(scheme=urlsplit(url).scheme, netloc=host).geturl()
            if status == _SEE_OTHER:
                return RegisterPage(address, 200, "", self._clock())
        raise RegisterUnreachableError(f"{url}: redirects without end")

    def _check_allowed(self, url: str) -> None:
        parts = urlsplit(url)
        rules = self._robots.get(parts.netloc)
        if rules is None:
            status, _, text = self._ask(f"{parts.scheme}://{parts.netloc}/robots.txt", most=_ROBOTS_LARGEST)
            rules = self._robots[parts.netloc] = Rules(ROBOT, text if status == 200 else "")
        if not rules.allow(parts.path + (f"?{parts.query}" if parts.query else "")):
            raise DisallowedError(f"{url}: robots.txt excludes this address")

    def _ask(self, url: str, *, most: int) -> tuple[int, str, str]:
        """Return the status, the Location header and the text; raise at once if the register has failed before."""
        host = urlsplit(url).netloc
        if host in self._gone:
            raise self._gone[host]
        try:
            return self._retries(lambda: self._ask_once(url, host, most))
        except BodyError as error:
            raise RegisterUnreachableError(f"{url}: {error}") from error
        except HttpError as error:
            self._gone[host] = RegisterUnreachableError(f"{host} cannot be asked: {error}")
            raise self._gone[host] from error

    def _ask_once(self, url: str, host: str, most: int) -> tuple[int, str, str]:
        self._wait(host)
        with self._http.send("GET", url, deadline=Deadline(self._timeout), most=most or 1 << 16) as response:
            if response.status in TRANSIENT:
                response.check()
            text = ""
            if most and response.status in (200, 300):
                text = response.read().decode("utf-8", errors="replace")
            return response.status, response.headers.get("location", ""), text

    def _wait(self, host: str) -> None:
        """Wait until enough time has passed since the last request to a host."""
        delay = max(self._delay, self._robots[host].delay if host in self._robots else 0.0)
        last = self._last.get(host)
        left = delay - (self._clock() - last) if last is not None else 0.0
        if left > 0:
            self._pause(left)
        self._last[host] = self._clock()


# ---------------------------------------------------------------- addresses

_SERIES = {"si": "uksi", "eu regulation": "eur", "eu directive": "eudr", "eu decision": "eudn"}
"""Series of instruments that legislation.gov.uk calls otherwise."""
_UNITS = {"act": "section", "measure": "section", "regulations": "regulation", "order": "article", "rules": "rule"}
"""What a provision is called, by the last word of an instrument's title."""
_INSIDE = {"sch": "schedule", "part": "part", "chapter": "chapter", "annex": "annex"}
COURTS = frozenset({
    "EAT", "EWCA Civ", "EWCA Crim", "EWCC", "EWCOP", "EWCOP (T1)", "EWCOP (T2)", "EWCOP (T3)", "EWCR", "EWFC",
    "EWFC (B)", "EWHC (Admin)", "EWHC (Admlty)", "EWHC (Ch)", "EWHC (Comm)", "EWHC (Costs)", "EWHC (Fam)",
    "EWHC (IPEC)", "EWHC (KB)", "EWHC (Mercantile)", "EWHC (Pat)", "EWHC (QB)", "EWHC (SCCO)", "EWHC (TCC)",
    "UKFTT (GRC)", "UKFTT (PC)", "UKFTT (TC)", "UKIPTrib", "UKPC", "UKSC", "UKUT (AAC)", "UKUT (IAC)", "UKUT (LC)",
    "UKUT (TCC)",
})  # fmt: skip
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
    """Return an instrument's path on legislation.gov.uk: `uksi/2002/618`."""
    if source == "uk gdpr":
        return "eur/2016/679"
    match = _NUMBERED.fullmatch(source)
    if match is None or not is_covered(source):
        return None
    return f"{_SERIES.get(match['series'], match['series'])}/{match['year']}/{match['number']}"


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
    """Return a list with one path on legislation.gov.uk, for a Schedule, Part, Chapter or Annex."""
    if word not in _INSIDE:
        return []
    path = f"{_INSIDE[word]}/{number}"
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
    return _UNITS[match["sort"]] if match else ""


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
        """Return `found`, `absent`, `uncovered` or `unreachable`: whether a register has a reference."""
        return self.check(reference).outcome

    def check(self, reference: Reference) -> Lookup:
        """Check whether the official registers have a reference; each reference is looked up only once."""
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
