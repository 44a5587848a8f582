"""A dataset repository on the Hugging Face Hub: the client, and errors that say what to do next."""

from collections.abc import Iterator
from contextlib import contextmanager

import huggingface_hub  # loads its own modules lazily
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from exhibit.runtime.secrets import remember_secret, scrub
from exhibit.schemas import __version__
from exhibit.schemas.errors import ServiceError, ToolkitError

KIND = "dataset"
TOKEN_PAGE = "https://huggingface.co/settings/tokens"

# The HTTP library of the Hub's client differs between its versions; its errors are always subclasses of this one.
TRANSPORT: type[BaseException] = HfHubHTTPError.__mro__[1]

ADVICE: dict[type[BaseException], str] = {
    OfflineModeIsEnabled: "the Hub is switched off by HF_HUB_OFFLINE; unset it",
    GatedRepoError: "the dataset is gated: ask for access on its page",
    RevisionNotFoundError: "no such revision; the dataset's page lists its branches and tags",
    RepositoryNotFoundError: "no such dataset, or the token may not see it; if it is private, `hf auth login`",
}
STATUS_ADVICE: dict[int | None, str] = {
    401: f"a valid token is needed: log in with `hf auth login`, or set HF_TOKEN ({TOKEN_PAGE})",
    403: f"the token may not do this; it needs write access, see {TOKEN_PAGE}",
    **dict.fromkeys(
        (409, 412), "somebody else has published in the meantime; run the same command again to build on it"
    ),
    429: "the Hub reports too many requests; wait a few minutes",
}


class HubError(ServiceError):
    """The Hub refused a request, or was unreachable."""

    unreachable = False


def connect(repo_id: str) -> huggingface_hub.HfApi:
    """Return the Hub's client with the user's token; raise if the Hub does not allow the repository's name."""
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise ToolkitError(f"{repo_id!r} is not a repository: {error}") from error
    if "/" not in repo_id:
        raise ToolkitError(f"{repo_id!r} is not a repository: give its owner and name, as OWNER/NAME")
    try:
        token = huggingface_hub.get_token()
    except Exception as error:  # an unreadable store or a failed keyless login; the message may contain the token
        raise HubError(scrub(f"the token cannot be read: {error}; log in again with `hf auth login`")) from error
    remember_secret(token)
    return huggingface_hub.HfApi(token=token or False, library_name="exhibit-rag", library_version=__version__)


@contextmanager
def explain_errors(doing: str) -> Iterator[None]:
    """Raise errors of the Hub's client as HubError; a message never contains the token or a signed URL."""
    try:
        yield
    except ToolkitError:
        raise
    except Exception as error:
        cause = _find_cause(error)
        if cause is None:
            raise
        advice = next((text for kind, text in ADVICE.items() if isinstance(cause, kind)), "")
        status = getattr(getattr(cause, "response", None), "status_code", None)
        reason = getattr(cause, "server_message", None) or str(cause).partition("\n")[0] or type(cause).__name__
        details = advice or f"{STATUS_ADVICE.get(status, 'the request failed')} ({reason[:300]})"
        explained = HubError(scrub(f"{doing}: {details}"))
        explained.unreachable = status is None
        raise explained from error


def _find_cause(error: BaseException) -> BaseException | None:
    """Return the HTTP or connection error behind an error; None if the Hub has nothing to do with it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, HfHubHTTPError | TRANSPORT | OfflineModeIsEnabled | EntryNotFoundError):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None
