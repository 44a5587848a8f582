"""How long a server asks to be left alone."""

from __future__ import annotations

import email.utils
import time

LONGEST_WAIT = 120.0
"""Seconds; a server that asks for more is reported rather than waited for."""


def seconds_asked(retry_after: str) -> float:
    """Return how long a Retry-After header asks to wait, in seconds or until a date; 0 when it does not."""
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError):
        return 0.0
