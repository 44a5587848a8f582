"""Keeps keys, tokens and signed addresses out of everything that is printed, logged or written."""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

HIDDEN = "***"
_MIN_SECRET_CHARS = 8  # least characters of a variable's secret: a shorter value would match ordinary words
_NAME = re.compile(r"key|token|secret|password|credential|authorization|signature", re.IGNORECASE)
_AUTHORIZATION = re.compile(r"(authorization\W{1,6}(?:basic|key)\s+)[^\s'\",)]+", re.IGNORECASE)
_TOKEN = re.compile(r"\b(hf|api_org)_[A-Za-z0-9_.-]{8,}")
_KEY = re.compile(
    r"\bbearer \S{4,}|\b(?:sk|pk|key)-[\w*-]{6,}|\bgh[pousr]_\w{16,}|\bAKIA\w{12,}|"
    r"\beyJ[\w-]{8,}\.[\w-]+(?:\.[\w-]*)?",
    re.IGNORECASE,
)  # the forms of the providers' API keys, complete or partly masked by asterisks as servers repeat them
_SIGNED = re.compile(
    r"(https?://[^\s?'\"<>]{1,400})\?[^\s'\"<>]{0,400}(?:signature|credential|token|expires)[^\s'\"<>]*", re.IGNORECASE
)
_USER = re.compile(r"(https?://)[^\s/@'\"<>]+@")

_known: set[str] = set()


def is_secret_name(name: str) -> bool:
    return _NAME.search(name) is not None


def remember_secret(value: str | None) -> None:
    """Remember a secret, such as a token from a file, so that it is hidden in all later output."""
    if value:
        _known.add(value)


def scrub(text: str, *secrets: str | None) -> str:
    """Return a text without the given secrets, the environment's secrets and anything that looks like a key."""
    environment = (
        v for n, v in os.environ.items() if len(v) >= _MIN_SECRET_CHARS and is_secret_name(n) and not v.isalpha()
    )
    for secret in sorted({*filter(None, secrets), *_known, *environment}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _SIGNED.sub(rf"\1?{HIDDEN}", text)
    text = _USER.sub(rf"\1{HIDDEN}@", text)
    text = _AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
    return _TOKEN.sub(rf"\1_{HIDDEN}", _KEY.sub(HIDDEN, text))


@contextmanager
def scrub_logs() -> Iterator[None]:
    ordinary = logging.getLogRecordFactory()

    def record(*args: object, **kwargs: object) -> logging.LogRecord:
        made = ordinary(*args, **kwargs)
        try:
            message = made.getMessage()
        except (TypeError, ValueError):
            return made  # logging itself reports a malformed record
        clean = scrub(message)
        if clean != message:
            made.msg, made.args = clean, None
        if made.exc_info:
            # format the traceback now, because logging would format it later, when it cannot be scrubbed
            made.exc_text = scrub(logging.Formatter().formatException(made.exc_info))
            made.exc_info = None
        return made

    logging.setLogRecordFactory(record)
    try:
        yield
    finally:
        logging.setLogRecordFactory(ordinary)
