"""The one HTTP client: a deadline for the whole exchange, limits on size, retries, and errors without secrets.

    client = HttpClient({"Authorization": "Bearer …"}, connections=16, secrets=Secrets([…]))
    with client.send("POST", "http://host/ask", {"question": "…"}, deadline=Deadline(60)) as response:
        response.check()            # raises HttpError with the server's own words unless it is 2xx
        data = response.read()      # or: for line in response.lines(): …

Whatever goes wrong is an `HttpError` that says whether asking again may help; `Retries` asks again.
"""

from __future__ import annotations

from exhibit.storage.http.body import (
    ACCEPT,
    STREAMED,
    Body,
    BodyError,
    Event,
    TooLargeError,
    body_blocks,
    read_events,
    read_texts,
)
from exhibit.storage.http.client import HttpClient, Response
from exhibit.storage.http.deadline import Deadline, download_deadline
from exhibit.storage.http.errors import HttpError, Secrets, UnreachableError, plain_address
from exhibit.storage.http.retries import LONGEST_WAIT, Retries, seconds_asked

__all__ = [
    "ACCEPT",
    "LONGEST_WAIT",
    "STREAMED",
    "Body",
    "BodyError",
    "Deadline",
    "Event",
    "HttpClient",
    "HttpError",
    "Response",
    "Retries",
    "Secrets",
    "TooLargeError",
    "UnreachableError",
    "body_blocks",
    "download_deadline",
    "plain_address",
    "read_events",
    "read_texts",
    "seconds_asked",
]
