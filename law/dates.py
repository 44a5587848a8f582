"""The names of the months."""

from __future__ import annotations

MONTHS = tuple("January February March April May June July August September October November December".split())
MONTH = f"(?:{'|'.join(MONTHS)})"
"""A month as part of a longer expression, which says itself whether case matters."""
SHORT_MONTHS = (*(month[:3].lower() for month in MONTHS if len(month) > 3), "sept")
"""What stands before a full stop and a day, `Jan. 5`; May is never cut."""
