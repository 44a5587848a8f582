"""Pages of a public register, asked for politely and kept: a pause between requests, robots.txt, one try at a time."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from exhibit.schemas import __version__
from exhibit.schemas.errors import ServiceError
from exhibit.storage.cache import Cache, key_of
from exhibit.storage.http import REDIRECTS, TRANSIENT, HttpClient, Rules
from exhibit.storage.http_policy import BodyError, Deadline, HttpError, Retries

ROBOT = "exhibit-rag"
USER_AGENT = f"{ROBOT}/{__version__}"
DELAY = 0.5
"""Seconds between two requests to a host: half of what the slower of the two registers allows (1,000 in 5 minutes)."""
TIMEOUT = 20.0
"""Seconds for one reply, whole."""
_LARGEST = 2 << 20
"""Bytes of a list or a feed that are read; of a law or a judgment only the status is."""
_ROBOTS_LARGEST = 500 << 10  # bytes, as RFC 9309 asks
_HOPS = 4  # redirects: the registers make one or two
_RETRIES = 2  # of one request; a register that is down stays so for longer
_SEE_OTHER = 303
"""What the name of a thing that exists answers with; the document that it leads to need not be asked for."""
_KEPT = frozenset({200, 300, 404, 410})
"""Answers that are kept; any other says nothing about the law."""
_ABSENT_FOR = 30 * 24 * 3600.0
"""Seconds after which what was not there is asked for again: new judgments come every day."""


class RegisterUnreachableError(ServiceError):
    """A register that cannot be asked now; the rest of the run does not ask it again."""


class DisallowedError(ServiceError):
    """An address that robots.txt asks robots to leave alone."""


@dataclass(frozen=True)
class RegisterPage:
    """What an address gave in the end."""

    url: str
    status: int
    text: str = ""
    asked: float = 0.0
    """When, in seconds since 1970."""


class Client:
    """Asks for pages, one at a time, and keeps what came."""

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
        """Keep pages in `folder`; `pause`, `clock` and `pool` are the machine's unless a test has its own."""
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
        """Return what an address gives, redirects on its own host followed; its text only where `body` is asked for.

        Raises UnreachableError where the register does not answer, DisallowedError where robots.txt says no.
        """
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
            self._allowed(address)
            # what a redirect leads to is a law or a judgment, which may be large: that it is there is enough
            status, location, text = self._ask(address, most=_LARGEST if body and not hop else 0)
            target = urljoin(address, location) if location and status in REDIRECTS else ""
            if not target:
                return RegisterPage(address, status, text, self._clock())
            # registers name things by http:// addresses of their own; only their paths are followed
            address = urlsplit(target)._replace(scheme=urlsplit(url).scheme, netloc=host).geturl()
            if status == _SEE_OTHER:
                return RegisterPage(address, 200, "", self._clock())
        raise RegisterUnreachableError(f"{url}: redirects without end")

    def _allowed(self, url: str) -> None:
        parts = urlsplit(url)
        rules = self._robots.get(parts.netloc)
        if rules is None:
            status, _, text = self._ask(f"{parts.scheme}://{parts.netloc}/robots.txt", most=_ROBOTS_LARGEST)
            rules = self._robots[parts.netloc] = Rules(ROBOT, text if status == 200 else "")
        if not rules.allow(parts.path + (f"?{parts.query}" if parts.query else "")):
            raise DisallowedError(f"{url}: robots.txt asks robots to leave it alone")

    def _ask(self, url: str, *, most: int) -> tuple[int, str, str]:
        """Return status, Location and text; a register that is away once is not asked again."""
        host = urlsplit(url).netloc
        if host in self._gone:
            raise self._gone[host]
        try:
            return self._retries(lambda: self._once(url, host, most))
        except BodyError as error:
            raise RegisterUnreachableError(f"{url}: {error}") from error
        except HttpError as error:
            self._gone[host] = RegisterUnreachableError(f"{host} cannot be asked: {error}")
            raise self._gone[host] from error

    def _once(self, url: str, host: str, most: int) -> tuple[int, str, str]:
        self._wait(host)
        with self._http.send("GET", url, deadline=Deadline(self._timeout), most=most or 1 << 16) as response:
            if response.status in TRANSIENT:
                response.check()
            text = ""
            if most and response.status in (200, 300):
                text = response.read().decode("utf-8", errors="replace")
            return response.status, response.headers.get("location", ""), text

    def _wait(self, host: str) -> None:
        """Leave a pause after the last request to the host: ours, or what its robots.txt asks for."""
        delay = max(self._delay, self._robots[host].delay if host in self._robots else 0.0)
        last = self._last.get(host)
        left = delay - (self._clock() - last) if last is not None else 0.0
        if left > 0:
            self._pause(left)
        self._last[host] = self._clock()
