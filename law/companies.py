"""The legal forms of companies, as names carry them: `Acme Corp.`, `Bolt L.L.C.`, `Vogel GmbH`."""

from __future__ import annotations

import re
from functools import cache

from exhibit.law.language import systems

ABBREVIATED = tuple("Inc Ltd Corp Co".split())
SPELT = tuple("Incorporated Limited Corporation Company".split())
INITIALS = tuple("LLC LLP LP plc".split())
SHORT_INITIALS = tuple("AG BV NA NV SA Ltda".split())
MIXED = tuple("GmbH ApS AB".split())
BESIDE = tuple("Pte Pty SAS SpA".split())
"""Forms that prove no company by themselves: Pte and Pty stand before Ltd, SAS is a name and a spa a place."""
DOTTED = tuple("L.L.C L.P N.A S.A N.V B.V".split())
"""Forms as some write them; the last full stop is optional in every form."""

SHOUTED = frozenset(form.lower() for form in (*INITIALS, *SHORT_INITIALS, *BESIDE))
"""Forms that stay in capitals when a shouted name is written in title case."""
STOPPED = frozenset(form.lower() for form in (*ABBREVIATED, *INITIALS, *BESIDE[:2]))
"""Forms that people end with a full stop, so that it need not end a sentence."""

_FORMS = (*ABBREVIATED, *SPELT, *INITIALS, *SHORT_INITIALS, *MIXED, *DOTTED)
FORM = rf"(?:{'|'.join(re.escape(form) for word in _FORMS for form in (word, word.upper()))})\b\.?"
"""A form as it is written after a name, as part of a longer expression that heeds case."""

# AG, NA and SA without their dots may letter an exhibit or a column: they end no name by themselves
_ENDINGS = (*ABBREVIATED, *SPELT, *INITIALS, "GmbH", *DOTTED)


@cache
def _ending() -> re.Pattern[str]:
    """A form at the end of a line, those of the legal systems' files with their dots among them."""
    others = (form for system in systems() for form in system.data.get("companies", "").split())
    dotted = dict.fromkeys(form.rstrip(".") for form in others if "." in form)
    return re.compile(rf"\b(?:{'|'.join(map(re.escape, (*_ENDINGS, *dotted)))})\.?,?$", re.IGNORECASE)


_FOLLOWING = re.compile(
    rf"\W*(?:{'|'.join(map(re.escape, (*ABBREVIATED, *INITIALS, *SHORT_INITIALS, *MIXED, *DOTTED)))})\b", re.IGNORECASE
)
"""No form that is spelt out: a company may follow the comma of any sentence."""

DESCRIBED = re.compile(
    r"(?:,\s*|(?<!\s)\s*)\ban?\s+(?:[\w.]+\s+){1,3}?(?:limited\s+liability\s+|limited\s+|statutory\s+|real\s+estate\s+)?"
    r"(?:corporation|company|partnership|trust|bank|association|entity)\b.*$",
    re.IGNORECASE,
)
"""What a contract says of a party after its name, to the end of the line: `, a Delaware corporation`."""


def ends_in_form(line: str) -> bool:
    """Return whether a line ends as a company's name does, in capitals or not."""
    return _ending().search(line) is not None


def form_follows(text: str, at: int) -> bool:
    """Return whether a legal form stands after a place, whatever its case: after the comma of `Alder, Inc.` it does."""
    return _FOLLOWING.match(text, at) is not None
