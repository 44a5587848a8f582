"""Check whether a reference exists in the official registers: legislation.gov.uk and Find Case Law.

    checked = Register(Client(cache)).check(reference)

To spare the registers, requests are sent one at a time, with a pause, and only to pages that robots.txt allows. Pages
that exist are cached.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
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
DELAY_SECONDS = 0.5  # between two requests to a host: the stricter register allows 1,000 in 5 minutes
_TIMEOUT_SECONDS = 20.0  # for one complete reply
_LARGEST = 2 << 20  # bytes of robots.txt, a list or a feed; of a law or a judgment only the status is read
_REDIRECTS = 3  # the registers use one or two
_RETRIES = 2  # per request; a register that is down stays down for longer
_SEE_OTHER = 303  # the status for the identifier of an existing item; the document itself is not fetched


class RegisterUnreachableError(ServiceError):
    """A register cannot be reached, and is not queried again in this run."""


class DisallowedError(ServiceError):
    """robots.txt forbids an address."""


class RegisterPage(NamedTuple):
    """The final response for an address, after redirects."""

    url: str
    status: int
    text: str = ""


class Client:
    """An HTTP client that fetches the pages of registers, one at a time, and caches those that exist."""

    def __init__(
        self,
        folder: Path,
        *,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.time,
        pool: Any = None,
    ) -> None:
        self._cache = Cache(folder / "pages.sqlite")
        self._pause, self._clock = pause, clock
        self._http = HttpClient({"User-Agent": f"{ROBOT}/{__version__}"}, connections=1, pool=pool)
        self._retries = Retries(_RETRIES, 1.0, sleep=pause)
        self._robots: dict[str, Rules] = {}
        self._last: dict[str, float] = {}
        self._gone: dict[str, RegisterUnreachableError] = {}

    def page(self, url: str, *, body: bool = False) -> RegisterPage:
        """Return the page at an address, from the cache or from the register; redirects stay on the same host."""
        key = key_of(url, str(body))
        for stored in self._cache.get([key]).values():
            return RegisterPage(*json.loads(stored))
        page = self._fetch(url, body)
        if page.status in (200, 300):
            self._cache.put({key: json.dumps(page).encode("ascii")})
        return page

    def _fetch(self, url: str, body: bool) -> RegisterPage:
        scheme, host = urlsplit(url)[:2]
        address = url
        for hop in range(_REDIRECTS + 1):
            self._check_allowed(address)
            # a redirect leads to a law or a judgment, which may be large: its status is enough
            status, location, text = self._ask(address, body=body and not hop)
            if not location or status not in REDIRECTS:
                return RegisterPage(address, status, text)
            # the registers' redirects name http:// addresses; only their paths are followed
            address = urlsplit(urljoin(address, location))._replace(scheme=scheme, netloc=host).geturl()
            if status == _SEE_OTHER:
                return RegisterPage(address, 200)
        raise RegisterUnreachableError(f"{url}: redirects without end")

    def _check_allowed(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.netloc not in self._robots:
            status, _, text = self._ask(f"{parts.scheme}://{parts.netloc}/robots.txt", body=True)
            self._robots[parts.netloc] = Rules(ROBOT, text if status == 200 else "")
        if not self._robots[parts.netloc].allow(parts.path + (f"?{parts.query}" if parts.query else "")):
            raise DisallowedError(f"{url}: robots.txt excludes this address")

    def _ask(self, url: str, *, body: bool) -> tuple[int, str, str]:
        """Return the status, the Location header and the text; raise at once if the register has failed before."""
        host = urlsplit(url).netloc
        if host in self._gone:
            raise self._gone[host]

        def ask_once() -> tuple[int, str, str]:
            self._wait(host)
            deadline = Deadline(_TIMEOUT_SECONDS)
            with self._http.send("GET", url, deadline=deadline, most=_LARGEST) as response:
                if response.status in TRANSIENT:
                    response.check()
                read = body and response.status in (200, 300)
                text = response.read().decode("utf-8", errors="replace") if read else ""
                return response.status, response.headers.get("location", ""), text

        try:
            return self._retries(ask_once)
        except BodyError as error:
            raise RegisterUnreachableError(f"{url}: {error}") from error
        except HttpError as error:
            self._gone[host] = RegisterUnreachableError(f"{host} cannot be asked: {error}")
            raise self._gone[host] from error

    def _wait(self, host: str) -> None:
        """Wait until enough time has passed since the last request to a host."""
        delay = max(DELAY_SECONDS, self._robots[host].delay if host in self._robots else 0.0)
        if (left := self._last.get(host, -delay) + delay - self._clock()) > 0:
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
COMPLETE_FROM = 2023  # Find Case Law opened in April 2022; of older judgments it has only a part

_NUMBERED = re.compile(r"(?P<series>si|ssi|nisr|wsi|asp|anaw|asc|nia|eu \w+) (?P<year>\d{4})/(?P<number>\d+)")
_LAST_EUROPEAN = 2020  # later EU law is not law of the United Kingdom, and not in its register
_TITLED = re.compile(r".+ (?P<sort>act|regulations|order|rules|measure) \d{4}")


def find_case_path(reference: Reference) -> str | None:
    """Return the path of a judgment, `ewca/civ/2024/123`; None where Find Case Law does not cover the court."""
    if reference.source not in COURTS:
        return None
    court = re.sub(r"[ (]+", "/", reference.source.rstrip(")")).lower()
    return f"{court}/{reference.path[0]}/{reference.path[1]}"


def instrument_path(source: str) -> str | None:
    """Return the path of an instrument with a number on legislation.gov.uk: `uksi/2002/618`."""
    if source == "uk gdpr":
        return "eur/2016/679"
    match = _NUMBERED.fullmatch(source)
    if match is None or not is_covered(source):
        return None
    return f"{_SERIES.get(match['series'], match['series'])}/{match['year']}/{match['number']}"


def is_covered(source: str) -> bool:
    """Return whether the register of legislation covers this kind of instrument, judged by its name."""
    if match := _NUMBERED.fullmatch(source):
        return not match["series"].startswith("eu ") or int(match["year"]) <= _LAST_EUROPEAN
    return source == "uk gdpr" or _TITLED.fullmatch(source) is not None


def list_provision_paths(reference: Reference) -> list[str]:
    """Return the possible paths of a provision in its instrument, such as `section/33/1`; may be empty."""
    if not reference.path:
        return []
    first, *rest = reference.path
    source = reference.source
    if " " in first:
        path = _make_large_path(first, rest)
        return [path] if path else []
    if source.startswith("eu ") or source == "uk gdpr":
        return [f"article/{first}"]  # the paragraphs of an article have no addresses
    match = _TITLED.fullmatch(source)
    units = (_UNITS[match["sort"]],) if match else ("regulation", "article", "rule")
    if source.startswith(("asp ", "anaw ", "asc ", "nia ")):
        units = ("section",)
    return ["/".join([unit, first, *rest]) for unit in units]


def _make_large_path(first: str, rest: list[str]) -> str:
    """Return the path of a Schedule, Part, Chapter or Annex and of what is inside it; empty for anything else."""
    word, _, number = first.partition(" ")
    if word not in _INSIDE:
        return ""
    path = f"{_INSIDE[word]}/{number}"
    if rest and " " in rest[0]:
        inner = _make_large_path(rest[0], rest[1:])
        return f"{path}/{inner}" if inner else ""
    return "/".join([path, "paragraph", *rest]) if word == "sch" and rest else path


# ---------------------------------------------------------------- looking references up

LEGISLATION = "https://www.legislation.gov.uk"
CASE_LAW = "https://caselaw.nationalarchives.gov.uk"

Outcome = Literal["found", "absent", "uncovered", "unreachable"]
"""uncovered: the registers do not have such law, or not all of it; unreachable: a register did not answer."""

_PATH = re.compile(r"/(?:id/)?(?P<path>[a-z]{2,5}/(?:\d{4}|[A-Za-z0-9]{2,12}/[\d-]{1,9})/\d{1,4})(?:/|$)")
"""The path of an instrument; older Acts are filed by reign: `ukpga/Eliz2/10-11/46`."""


class Lookup(NamedTuple):
    """The result of checking one reference, with the address where it was found or searched last."""

    outcome: Outcome
    url: str = ""
    detail: str = ""


class Register:
    """The official registers, in which references are checked; the results are stored in memory."""

    def __init__(self, client: Client, mirror: str = "") -> None:
        """Use the registers themselves, or a mirror that has the pages of both."""
        self._client = client
        self._legislation, self._case_law = (mirror.rstrip("/") or own for own in (LEGISLATION, CASE_LAW))
        self._instruments: dict[str, str | None] = {}
        self.checked: dict[Reference, Lookup] = {}
        """The results of all references checked so far."""

    def outcome(self, reference: Reference) -> Outcome:
        """Return whether a register has a reference."""
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
        links = ((link.get("href", ""), "".join(link.itertext())) for link in find_page_elements(page, "a"))
        if chosen := _find_title(source, links if page.status == 300 else ()):
            return chosen
        # this search compares titles with their commas and apostrophes, which our names lack
        feed = self._client.page(f"{self._legislation}/all/data.feed?title={quote(source)}", body=True)
        entries = (
            {_name(child): "".join(child.itertext()) for child in entry} for entry in find_page_elements(feed, "entry")
        )
        return _find_title(source, ((entry.get("id", ""), entry.get("title", "")) for entry in entries))


def _find_title(source: str, listed: Iterable[tuple[str, str]]) -> str | None:
    """Return the path of the first entry with this title, ignoring punctuation; None if there is none."""
    for address, title in listed:
        named = [one for one in find_references(title) if one.kind == "statute" and not one.path]
        if len(named) == 1 and is_same_source("statute", source, named[0].source):
            return _parse_path(address)
    return None


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


def write_account(results: Iterable[Path], register: Register, *, say: Callable[[str], None]) -> None:
    """Write each reference of each answer to `references.jsonl` beside its results; report those not checked."""
    for path in results:
        lines = [json.dumps(line, ensure_ascii=False) + "\n" for line in _list_references(path, register)]
        write_whole(path.with_name(REFERENCES), "".join(lines))
    away = [lookup.detail for lookup in register.checked.values() if lookup.outcome == "unreachable"]
    if away:
        say(f"{len(away)} of {len(register.checked)} references not checked: {'; '.join(dict.fromkeys(away))}")


def _list_references(path: Path, register: Register) -> Iterator[dict[str, Any]]:
    for _, text in numbered_lines(path):
        row = parse_json(text, where=path)
        if row["reply"]["error"]:
            continue
        for reference in dict.fromkeys(find_references(row["reply"]["answer"] or "", context=row["question"])):
            looked_up = register.check(reference)._asdict()
            yield {"id": row["id"], "reference": str(reference), "kind": reference.kind, **looked_up}
