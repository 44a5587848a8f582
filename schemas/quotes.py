"""How a bundle's quote says that words of the document are left out of it: `the rent <omitted> and the deposit`.

A converter whose source marks it otherwise writes this mark, or makes a quote of each part.
"""

from __future__ import annotations

import re

_OMITTED = re.compile(r"<\s*omitted\s*>", re.IGNORECASE)


def quote_parts(quote: str) -> list[str]:
    """Return what stands before, between and after the marks, as it is written; one part where there is none."""
    return _OMITTED.split(quote)
