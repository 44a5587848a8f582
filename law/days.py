"""Days as laws and questions about them write them, in the languages of the legal systems: read, and written."""

import re
from datetime import date
from functools import cache

from exhibit.law.language import System, systems

MONTHS = tuple("January February March April May June July August September October November December".split())
MONTH = f"(?:{'|'.join(MONTHS)})"
"""A month as part of a longer expression, which says itself whether case matters."""
SHORT_MONTHS = (*(month[:3].lower() for month in MONTHS if len(month) > 3), "sept")
"""What stands before a full stop and a day, `Jan. 5`; May is never cut."""


_ISO = r"(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})"
_NUMERIC = r"(?P<d2>\d{1,2})[./][ \xa0]?(?P<m2>\d{1,2})[./][ \xa0]?(?P<y2>\d{4})"


@cache
def month_names() -> dict[str, int]:
    """Return the months by their names in every system, in small letters."""
    return {
        name: number
        for system in systems()
        for number, name in enumerate(system.data.get("months", "").split(), start=1)
    }


@cache
def _pattern() -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, month_names()), key=len, reverse=True))
    worded = rf"(?P<d3>\d{{1,2}})(?:st|nd|rd|th|er|º|°|\.)?[ \xa0]+(?:de[ \xa0]+|of[ \xa0]+)?(?P<n3>{names})"
    american = rf"(?P<n4>{names})[ \xa0]+(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?,[ \xa0]+(?P<y4>\d{{4}})"
    year = r",?[ \xa0]+(?:de[ \xa0]+)?(?P<y3>\d{4})(?!\w)"
    return re.compile(
        rf"(?<![\w.]){_ISO}(?!\w)|(?<![\w.]){_NUMERIC}(?!\w)|(?<!\w){worded}{year}|(?<!\w){american}",
        re.IGNORECASE,
    )


def find_days(text: str) -> list[date]:
    """Return the full dates that a text names, in order; what is no day of the calendar is none."""
    days = []
    for match in _pattern().finditer(text):
        parts = {name: value for name, value in match.groupdict().items() if value}
        month = next((int(parts[key]) for key in ("m", "m2") if key in parts), 0)
        month = month or month_names()[next(parts[key] for key in ("n3", "n4") if key in parts).lower()]
        year, day = (next(int(value) for name, value in parts.items() if name[0] == key) for key in "yd")
        try:
            days.append(date(year, month, day))
        except ValueError:
            continue
    return days


def write_day(day: date, system: System) -> str:
    """Return a day as a law of this system writes it."""
    months = system.data.get("months", "").split()
    name = months[day.month - 1].title() if months else ""
    pattern: str = system.data.get("date", "{year}-{month}-{day}")
    return pattern.format(day=day.day, month=day.month, Month=name, year=day.year)
