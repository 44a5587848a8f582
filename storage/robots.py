"""robots.txt as RFC 9309 reads it: the longest rule that fits a path decides, and a tie allows."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import quote

_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")


@dataclass(frozen=True)
class Rule:
    """Allow or disallow paths; `*` stands for anything and a `$` at the end for the path's end."""

    pattern: str
    allow: bool


@dataclass
class Rules:
    """What one robot may do on one host."""

    rules: list[Rule] = field(default_factory=list)
    delay: float = 0.0

    def allow(self, path: str) -> bool:
        """Tell whether a path, with its query, may be fetched."""
        path = _encoded(path)
        fitting = [rule for rule in self.rules if _fits(rule.pattern, path)]
        return not fitting or max(fitting, key=lambda rule: (len(rule.pattern), rule.allow)).allow


def rules_for(robot: str, text: str) -> Rules:
    """Return the rules of a robots.txt for a robot: its own groups, or else those for everybody."""
    own, everybody = Rules(), Rules()
    named = False
    current: list[Rules] = []
    in_agents = False
    for line in text.removeprefix("\ufeff").splitlines():
        key, _, value = (part.strip() for part in line.partition("#")[0].partition(":"))
        key = key.lower()
        if key == "user-agent":
            if not in_agents:
                current = []
            in_agents = True
            if value == "*":
                current.append(everybody)
            elif value.partition("/")[0].strip().lower() == robot.lower():
                current.append(own)
                named = True
        elif key in {"allow", "disallow", "crawl-delay"}:
            in_agents = False
            for rules in current:
                _add(rules, key, value)
    return own if named else everybody


def _add(rules: Rules, key: str, value: str) -> None:
    if key == "crawl-delay":
        try:
            rules.delay = max(0.0, float(value))
        except ValueError:
            return  # not a number: as good as not said
    elif value:  # an empty Disallow forbids nothing
        rules.rules.append(Rule(_encoded(value), key == "allow"))


def _encoded(path: str) -> str:
    """Return a path in one spelling: non-ASCII percent-encoded, escapes in capitals."""
    return _ESCAPE.sub(lambda match: match.group().upper(), quote(path, safe="%/?&=:@!$'()*+,;~#[]"))


def _fits(pattern: str, path: str) -> bool:
    """Match without regular expressions, whose worst case a hostile file could choose."""
    to_end = pattern.endswith("$")
    first, *rest = (pattern[:-1] if to_end else pattern).split("*")
    if not path.startswith(first):
        return False
    position = len(first)
    if to_end and not rest:
        return position == len(path)
    for piece in rest[:-1] if to_end else rest:
        position = path.find(piece, position)
        if position < 0:
            return False
        position += len(piece)
    return not to_end or (path.endswith(rest[-1]) and len(path) - len(rest[-1]) >= position)
