"""How things are worded, as data: a module's expressions and word lists in the TOML file beside it."""

import re
from functools import cached_property
from typing import Any

from exhibit.schemas.parsing import read_beside

_OTHER = re.compile(r"@([|+]?)(\w+)@")


class Patterns:
    """The entries of the file beside a module; as attributes they are expressions, compiled when first used.

    An entry is a text, a list of texts in a row, or a table of texts. In one `@name@` stands for another, `@|name@` for
    any word of another, and `@+name@` for any text of a table, of which `key` says which it was.
    """

    def __init__(self, module: str, **given: str) -> None:
        self._module, self._given = module, given

    @cached_property
    def entries(self) -> dict[str, Any]:
        """All that the file says."""
        return read_beside(self._module) | self._given

    def __getattr__(self, name: str) -> re.Pattern[str]:
        if name.startswith("_") or name not in self.entries:
            raise AttributeError(name)
        pattern = self.__dict__[name] = re.compile(self.text(name))
        return pattern

    def text(self, name: str) -> str:
        """Return an entry with those that it names in their places."""
        return self.filled(self.entries[name])

    def filled(self, text: str | list[str]) -> str:
        """Return a text with the entries that it names in their places."""
        return _OTHER.sub(lambda other: self._other(other[1], other[2]), "".join(text))

    def _other(self, sign: str, name: str) -> str:
        if sign == "+":
            return "|".join(
                f"(?P<n{at}>{self.filled(''.join(one))})" for at, one in enumerate(self.entries[name].values())
            )
        if sign:
            return "|".join(sorted(map(re.escape, self.row(name)), key=len, reverse=True))
        return self.text(name)

    def key(self, name: str, match: re.Match[str]) -> str:
        """Return under which key of a table the text stands that was matched."""
        return str([*self.entries[name]][int((match.lastgroup or "n0")[1:])])

    def first(self, name: str, text: str) -> str:
        """Return the first key of a table whose expression is in a text; empty where none is."""
        return next((key for key, one in self.entries[name].items() if re.search(self.filled(one), text)), "")

    def row(self, name: str) -> tuple[str, ...]:
        """Return the words of an entry, in order."""
        return tuple(self.entries[name].split())

    def words(self, name: str) -> frozenset[str]:
        """Return the words of an entry."""
        return frozenset(self.row(name))
