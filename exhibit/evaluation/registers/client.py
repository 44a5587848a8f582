"""Fetch and cache the pages of a public register, with a pause between requests, and as robots.txt allows."""

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
        """Return the page at an address, from the cache or from the register; redirects stay on the same host.

        The page has its text only if `body` is set.

        Raises RegisterUnreachableError if the register does not answer, DisallowedError if robots.txt forbids the
        address.
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
        """Wait until enough time has passed since the last request to a host.

        The necessary time is this client's delay or the delay in the host's robots.txt, whichever is longer.
        """
        delay = max(self._delay, self._robots[host].delay if host in self._robots else 0.0)
        last = self._last.get(host)
        left = delay - (self._clock() - last) if last is not None else 0.0
        if left > 0:
            self._pause(left)
        self._last[host] = self._clock()
