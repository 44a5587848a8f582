"""A dataset repository on the Hub: requests with timeouts and retries, and errors that say what to do."""

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import huggingface_hub  # loads its own modules lazily
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from exhibit.runtime.secrets import remember_secret, scrub
from exhibit.schemas import __version__
from exhibit.schemas.errors import ServiceError, ToolkitError
from exhibit.schemas.parsing import read_beside
from exhibit.storage.http_policy import parse_retry_after

Answer = TypeVar("Answer")
Say = Callable[[str], None]

TRIES = 5  # attempts; with doubling waits they take fifteen seconds: a longer fault is not transient
LONGEST_WAIT = 300.0
"""Longest wait in seconds; if the Hub asks for more, the command stops with an error."""
KIND = "dataset"


class RemoteFile(NamedTuple):
    """A file on the Hub with its checksum: either its sha256 or its Git hash is known."""

    size: int
    sha256: str | None
    """The sha256 of a file in large-file storage."""
    blob: str | None
    """Git's hash of an ordinary file."""


@dataclass(frozen=True)
class BranchState:
    """The files of a branch; `commit` is None if there is no commit yet."""

    commit: str | None
    files: dict[str, RemoteFile] = field(default_factory=dict)
    private: bool | None = None


class Hub:
    """A dataset repository on the Hugging Face Hub, with the user's access token.

    The token comes from the environment, or from the file that `hf auth login` wrote.
    """

    def __init__(self, repo_id: str, *, say: Say) -> None:
        self.repo_id = check_repo_id(repo_id)
        self.say = say
        self.token = read_token()
        remember_secret(self.token)
        self.api = huggingface_hub.HfApi(
            token=self.token or False, library_name="exhibit-rag", library_version=__version__
        )

    @property
    def url(self) -> str:
        """The URL of the dataset's page."""
        return f"{self.api.endpoint}/datasets/{self.repo_id}"

    # ---------------------------------------------------------------- requests

    def ask(
        self,
        question: Callable[[], Answer],
        *,
        doing: str,
        landed: Callable[[], Answer | None] | None = None,
        most: int = TRIES,
    ) -> Answer:
        """Send a request and return its result; retry a few times after a transient error.

        Args:
            landed: checks whether a request whose reply was lost has succeeded, so that it is not sent twice.
            most: the number of attempts; 1 for requests that the Hub's client itself retries.
        """
        for tries in range(1, most + 1):
            try:
                return question()
            except Exception as error:
                explained = self.explain(error, doing=doing)
                if explained is None:
                    raise
                done = landed() if landed and (is_passing(error) or explained.status in CONFLICTS) else None
                if done is not None:
                    return done
                wait = wait_for(error, tries)
                if not is_passing(error) or tries == most or wait > LONGEST_WAIT:
                    raise explained from error
                self.say(f"{explained}; retrying in {wait:.0f} s ({tries} of {most - 1})")
                time.sleep(wait)
        raise AssertionError("the last attempt neither returned nor raised; please report this bug")

    def explain(self, error: Exception, *, doing: str) -> "HubError | None":
        """Return a HubError whose message says what to do next; None if the error does not come from the Hub."""
        if isinstance(error, HubError):
            return error
        if isinstance(error, ToolkitError):
            return None
        cause = find_root_cause(error)
        words = explain_error(cause, repo_id=self.repo_id, url=self.url, token=self.token is not None)
        if words is None:
            return None
        message = scrub(f"{doing}: {words}", self.token)
        return HubError(message, status=status_of(cause), missing=is_missing(cause))

    # ---------------------------------------------------------------- questions

    def commit_of(self, revision: str | None) -> tuple[str | None, bool | None]:
        """Return the commit hash of a revision, and whether the repository is private; None for an unknown value."""
        info = self.ask(
            lambda: self.api.repo_info(self.repo_id, repo_type=KIND, revision=revision),
            doing=f"looking at {self.repo_id}",
        )
        return info.sha, getattr(info, "private", None)

    def list_files(self, commit: str) -> dict[str, RemoteFile]:
        """Return every file of a commit by path; nothing is downloaded."""

        def list_entries() -> dict[str, RemoteFile]:
            tree = self.api.list_repo_tree(self.repo_id, repo_type=KIND, revision=commit, recursive=True)
            return {
                entry.path: RemoteFile(
                    entry.size, entry.lfs.sha256 if entry.lfs else None, None if entry.lfs else entry.blob_id
                )
                for entry in tree
                if isinstance(entry, huggingface_hub.hf_api.RepoFile)
            }

        return self.ask(list_entries, doing=f"listing the files of {self.repo_id}", most=1)

    def read_state(self, revision: str | None) -> BranchState | None:
        """Return the state of a branch; None if the repository does not exist or is not visible with this token."""
        try:
            commit, private = self.commit_of(revision)
        except HubError as error:
            if error.missing or (error.status == 401 and self.token is None):
                return None
            raise
        return BranchState(commit, self.list_files(commit) if commit else {}, private)

    def check_writer(self) -> str | None:
        """Raise if the token is missing, unknown or read-only; return the user's name if it is known."""
        owner = self.repo_id.partition("/")[0]
        if self.token is None:
            raise HubError(
                "no token: log in with `hf auth login`, or set HF_TOKEN to a token that may write to "
                f"{owner} ({SETTINGS})"
            )
        try:
            me: dict[str, Any] = self.ask(self.api.whoami, doing="checking the token")
        except HubError as error:
            if error.status == 429:  # this request has a strict rate limit; the Hub checks the token again later
                return None
            raise
        access = (me.get("auth") or {}).get("accessToken") or {}
        if access.get("role") == "read":
            raise HubError(f"the token can only read: create one that may write to {owner}, at {SETTINGS}")
        return me.get("name")  # the Hub reports the rights of a fine-grained token only at the first write


def read_token() -> str | None:
    """Return the user's Hub token from the environment or from the last `hf auth login`; None if there is none."""
    try:
        return huggingface_hub.get_token()
    except Exception as error:
        # the store may be unreadable, or a keyless login may fail; the message may contain the token
        raise HubError(scrub(f"the token cannot be read: {error}; log in again with `hf auth login`")) from error


def check_repo_id(text: str) -> str:
    """Return a repository's id; raise if the Hub does not allow it."""
    try:
        validate_repo_id(text)
    except HFValidationError as error:
        raise ToolkitError(f"{text!r} is not a repository: {error}") from error
    if "/" not in text:
        raise ToolkitError(f"{text!r} is not a repository: give its owner and name, as OWNER/NAME")
    return text


FIRST_WAIT = 1.0  # seconds; each later wait is twice as long
PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Status codes for which a retry may help."""
CONFLICTS = frozenset({409, 412})
SETTINGS = "https://huggingface.co/settings/tokens"

# The HTTP library of the Hub's client differs between its versions; its errors are always subclasses of this one.
TRANSPORT: type[BaseException] = HfHubHTTPError.__mro__[1]


class HubError(ServiceError):
    """The Hub refused a request, or was unreachable; `status` is the reply's status, if any."""

    def __init__(self, message: str, *, status: int | None = None, missing: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.missing = missing
        """Whether the repository does not exist, or is not visible with this token."""


def iterate_causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its causes."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or (None if seen.__suppress_context__ else seen.__context__)


def find_root_cause(error: BaseException) -> BaseException:
    """Return the HTTP error or the connection error that caused an error, or the error itself."""
    known = (HfHubHTTPError, TRANSPORT, OfflineModeIsEnabled)
    return next((one for one in iterate_causes(error) if isinstance(one, known)), error)


def is_missing(error: BaseException) -> bool:
    """Return whether the error means that the repository does not exist or is not visible."""
    return isinstance(error, RepositoryNotFoundError) and not isinstance(error, GatedRepoError)


def status_of(error: BaseException) -> int | None:
    """Return the status of the Hub's reply, if any."""
    response = getattr(error, "response", None)
    return getattr(response, "status_code", None)


def is_unreachable(error: HubError) -> bool:
    """Return whether the Hub sent no reply at all: no network, no such host, or offline mode."""
    cause = find_root_cause(error)
    return error.status is None and isinstance(cause, TRANSPORT | ConnectionError | OfflineModeIsEnabled)


def is_passing(error: BaseException) -> bool:
    """Return whether an error of the Hugging Face Hub is temporary, so that a retry may succeed."""
    cause = find_root_cause(error)
    if isinstance(cause, HfHubHTTPError):
        return status_of(cause) in PASSING
    return isinstance(cause, TRANSPORT | json.JSONDecodeError)


def wait_for(error: BaseException, tries: int) -> float:
    """Return the seconds to wait before a retry: what the Hub asks for, else a time that doubles at each attempt."""
    headers = getattr(getattr(find_root_cause(error), "response", None), "headers", None) or {}
    asked = str(headers.get("retry-after") or "")
    if wait := parse_retry_after(asked):
        return wait
    window = re.search(r"\br=0\s*;\s*t=(\d+)", str(headers.get("ratelimit") or ""))
    return float(window[1]) if window else FIRST_WAIT * 2 ** (tries - 1)


_WORDS = read_beside(__file__)
_KINDS = {
    OfflineModeIsEnabled: "offline",
    GatedRepoError: "gated",
    RevisionNotFoundError: "revision",
    RemoteEntryNotFoundError: "file",
    RepositoryNotFoundError: "repository",
    HfHubHTTPError: "reply",
    json.JSONDecodeError: "json",
    TRANSPORT: "connection",
}
"""Error classes and their explanations; the first match decides, because some are subclasses of others."""


def explain_error(error: BaseException, *, repo_id: str, url: str, token: bool) -> str | None:
    """Return an explanation of an error and the next step; None for an error that does not concern the Hub."""
    name = next((name for kind, name in _KINDS.items() if isinstance(error, kind)), None)
    if name is None:
        return None
    status = status_of(error)
    if name == "reply":
        name = str(status) if str(status) in _WORDS else "passing" if status in PASSING else "refused"
    words: str = _WORDS[name] if token else _WORDS.get(f"{name} without a token", _WORDS[name])
    said = " ".join((getattr(error, "server_message", None) or str(error).strip().partition("\n")[0]).split())[:300]
    kind = f"{type(error).__name__}: {str(error) or 'no reason given'}"
    return words.format(repo_id=repo_id, url=url, status=status, said=said, kind=kind, settings=SETTINGS)
