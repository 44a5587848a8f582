"""URLs to PDFs on this disk: the publisher's own where there is one, else the page printed by Chromium.

Any converter whose source gives links uses it so:

    add_fetch_arguments(parser)                                   # in add_arguments
    fetched = fetch_all(urls, folder=fetch_folder(), policy=policy_from(options))
    report(fetched, tally)                                        # counts what could not be had, by reason
    documents = [RawDocument(f.filename, title, f.path, source=f.url) for f in fetched.values() if f.path]

`fetch_all` never raises for a bad page: each URL comes back as a `Fetched`, with a path or with a reason. It does
raise a SourceError, before anything is downloaded, when two URLs would have one file name or one has none
(`converters._stems`). What was fetched stays in the folder, so that the next run asks only for what is missing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from converters._benchmark import Tally
from converters._source import cache_folder
from converters._stems import corpus_names

Outcome = Literal["pdf", "printed", "refused", "disallowed", "unusable", "failed"]
"""pdf: the publisher's file. printed: by Chromium. refused: an address that may not be reached. disallowed: by
robots.txt. unusable: no page and no PDF, or too large. failed: the server or the network did not give it."""


@dataclass(frozen=True)
class Policy:
    """How to behave towards servers, and what to accept from them."""

    allow_private: bool = False
    ignore_robots: bool = False
    per_host: int = 2
    delay: float = 0.5
    timeout: float = 60.0
    max_bytes: int = 100 << 20
    retries: int = 3
    backoff: float = 1.0
    """Seconds before the first retry; each further one waits twice as long."""
    refetch: bool = False
    pages: int = 4
    """Pages printed at one time."""


@dataclass(frozen=True)
class Fetched:
    """What became of one URL; a line of the manifest."""

    url: str
    filename: str
    """Its name in the corpus, by the URL-stem rule."""
    outcome: Outcome
    path: Path | None = None
    """The PDF on this disk, or None."""
    reason: str = ""
    """Why there is none: a few words that are the same for all URLs with this fate."""
    detail: str = ""
    final_url: str = ""
    status: int | None = None
    bytes: int = 0
    sha256: str = ""
    note: str = ""
    """What a reader of the PDF should know."""
