"""Keeps tokens and signed addresses out of everything that is printed or logged."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

_AUTHORIZATION = re.compile(r"(authorization\W{1,6}(?:bearer|basic|key)\s+)[^\s'\",)]+", re.IGNORECASE)
_TOKEN = re.compile(r"\b(hf|api_org)_[A-Za-z0-9_.-]{8,}")
_SIGNED = re.compile(
    r"(https?://[^\s?'\"<>]{1,400})\?[^\s'\"<>]{0,400}(?:signature|credential|token|expires)[^\s'\"<>]*", re.IGNORECASE
)
_USER = re.compile(r"(https?://)[^\s/@'\"<>]+@")


def scrubbed(text: str, *secrets: str | None) -> str:
    """Return the text without the secrets, without anything that looks like a token, and without signatures."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    text = _SIGNED.sub(r"\1?***", text)
    text = _USER.sub(r"\1***@", text)
    text = _AUTHORIZATION.sub(r"\1***", text)
    return _TOKEN.sub(r"\1_***", text)


@contextmanager
def scrubbed_logs(*secrets: str | None) -> Iterator[None]:
    """Scrub every log record made meanwhile, whoever logs it: a server may repeat in an error what it was sent."""
    ordinary = logging.getLogRecordFactory()

    def record(*args: object, **kwargs: object) -> logging.LogRecord:
        made = ordinary(*args, **kwargs)
        try:
            message = made.getMessage()
        except (TypeError, ValueError):
            return made  # logging reports a malformed record itself
        clean = scrubbed(message, *secrets)
        if clean != message:
            made.msg, made.args = clean, None
        if made.exc_info:
            # the traceback is formatted later, out of reach: it is formatted here instead
            made.exc_text = scrubbed(logging.Formatter().formatException(made.exc_info), *secrets)
            made.exc_info = None
        return made

    logging.setLogRecordFactory(record)
    try:
        yield
    finally:
        logging.setLogRecordFactory(ordinary)
