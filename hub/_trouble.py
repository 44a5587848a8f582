"""What goes wrong with the Hub: in words that say what to do, and whether another try may help."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from exhibit.schemas.errors import ServiceError
from exhibit.storage.http import seconds_asked

FIRST_WAIT = 1.0  # seconds; each later wait is twice as long
PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Replies that another try may change."""
CONFLICTS = frozenset({409, 412})
SETTINGS = "https://huggingface.co/settings/tokens"

# The HTTP library of the Hub's client has changed between its versions; its errors are always the parents of this one.
TRANSPORT: type[BaseException] = HfHubHTTPError.__mro__[1]


class HubError(ServiceError):
    """The Hub refused, or could not be reached; `status` is its reply's, where there was one."""

    def __init__(self, message: str, *, status: int | None = None, missing: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.missing = missing
        """Whether the repository is not there, or not to be seen with this token."""


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what it came from."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def root_cause(error: BaseException) -> BaseException:
    """Return the reply or the broken connection behind an error, or the error itself."""
    known = (HfHubHTTPError, TRANSPORT, OfflineModeIsEnabled)
    return next((one for one in chain(error) if isinstance(one, known)), error)


def is_missing(error: BaseException) -> bool:
    """Return whether there is no such repository, as far as the token may see."""
    return isinstance(error, RepositoryNotFoundError) and not isinstance(error, GatedRepoError)


def status_of(error: BaseException) -> int | None:
    """Return the status of the Hub's reply, where there was one."""
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None)


def is_unreachable(error: HubError) -> bool:
    """Return whether the Hub gave no reply at all: no network, no such host, or switched off."""
    cause = root_cause(error)
    return error.status is None and isinstance(cause, TRANSPORT | ConnectionError | OfflineModeIsEnabled)


def is_passing(error: BaseException) -> bool:
    """Return whether another try may succeed."""
    cause = root_cause(error)
    if isinstance(cause, HfHubHTTPError):
        return status_of(cause) in PASSING
    return isinstance(cause, TRANSPORT | json.JSONDecodeError)


def wait_for(error: BaseException, tries: int) -> float:
    """Return how long to wait: as the Hub asks, or longer each time."""
    headers = getattr(getattr(root_cause(error), "response", None), "headers", None) or {}
    asked = str(headers.get("retry-after") or "")
    if wait := seconds_asked(asked):
        return wait
    window = re.search(r"\br=0\s*;\s*t=(\d+)", str(headers.get("ratelimit") or ""))
    return float(window[1]) if window else FIRST_WAIT * 2 ** (tries - 1)


def words_for(error: BaseException, *, repo_id: str, url: str, token: bool) -> str | None:
    """Return what an error means and what helps; None for what is no matter of the Hub."""
    if isinstance(error, OfflineModeIsEnabled):
        return "the Hub is switched off by HF_HUB_OFFLINE; unset it"
    if isinstance(error, GatedRepoError):
        return f"{repo_id} is gated: ask for access on {url}"
    if isinstance(error, RevisionNotFoundError):
        return f"{repo_id} has no such revision; its branches and tags are on {url}"
    if isinstance(error, RemoteEntryNotFoundError):
        return f"no such file in {repo_id}: {_said(error)}"
    if isinstance(error, RepositoryNotFoundError):
        seen = (
            "that this token may see"
            if token
            else "that can be seen without a token; if it is private, `hf auth login`"
        )
        return f"there is no dataset {repo_id} {seen}"
    if isinstance(error, HfHubHTTPError):
        return _reply(error, repo_id=repo_id, token=token)
    if isinstance(error, json.JSONDecodeError):
        return "the Hub's reply is no JSON"
    if isinstance(error, TRANSPORT):
        return f"the connection failed ({type(error).__name__}: {str(error) or 'no reason given'})"
    return None


def _reply(error: HfHubHTTPError, *, repo_id: str, token: bool) -> str:
    status = status_of(error)
    if status == 401:
        if not token:
            return f"a token is needed: log in with `hf auth login`, or set HF_TOKEN ({SETTINGS})"
        return f"the Hub does not know the token: it has expired or was revoked; make a new one at {SETTINGS}"
    if status == 403:
        return f"the token may not do this in {repo_id} ({_said(error)}); it needs write access, see {SETTINGS}"
    if status == 429:
        return "the Hub says there were too many requests (429)"
    if status in PASSING:
        return f"the Hub is in trouble ({status}: {_said(error)})"
    return f"the Hub refused ({status}: {_said(error)})"


def _said(error: HfHubHTTPError) -> str:
    said = error.server_message or str(error).strip().partition("\n")[0]
    return " ".join(said.split())[:300]
