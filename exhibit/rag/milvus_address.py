"""Parses the address of a Milvus server or file, with the index type of its collections.

It also writes filter expressions that restrict a search to given row keys.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from exhibit.rag.protocols import Keys
from exhibit.rag.stores import read_options
from exhibit.schemas.errors import ToolkitError

_SERVERS = ("http://", "https://", "tcp://")
_OPTIONS = {"FLAT": (), "AUTOINDEX": (), "HNSW": ("M", "efConstruction", "ef"), "IVF_FLAT": ("nlist", "nprobe")}
_USUAL = {"M": 16, "efConstruction": 80, "ef": 256, "nlist": 1024, "nprobe": 64}
_FORMS = "milvus:http://HOST:19530[/DATABASE], milvus:/PATH/FILE.db, or milvus:lite for a file inside the index"


class Address(NamedTuple):
    """The address of a Milvus server or file, and the index type of its collections."""

    uri: str
    kind: str = "FLAT"
    options: dict[str, int] = {}  # noqa: RUF012 - never changed

    @classmethod
    def parse(cls, argument: str | None, *, own: Path) -> "Address":
        """Parse `URI[?index=HNSW&M=16]`; without a URI, or with `lite`, the vectors are in a file inside the index."""
        place, _, query = (argument or "").partition("?")
        if place.startswith(_SERVERS):
            if "@" in urlsplit(place).netloc:
                raise ToolkitError(
                    "--store milvus: the index saves the URI, so put user:password into MILVUS_TOKEN, not into the URI"
                )
            uri = place
        elif place in ("", "lite"):
            uri = str(own)
        elif place.endswith(".db"):
            uri = str(Path(place).absolute())
        else:
            raise ToolkitError(f"--store milvus:{place}: neither a server nor a .db file; give {_FORMS}")
        settings = dict(parse_qsl(query, keep_blank_values=True))
        kind = settings.pop("index", "FLAT").upper()
        if kind not in _OPTIONS:
            raise ToolkitError(f"--store milvus: no index type {kind!r}; there are {', '.join(_OPTIONS)}")
        return cls(uri, kind, read_options(settings.items(), _OPTIONS[kind], where="milvus", name=f"index={kind}"))

    @property
    def is_server(self) -> bool:
        """Whether the address is a server, not a file."""
        return self.uri.startswith(_SERVERS)

    def build(self) -> dict[str, int]:
        """Return the build parameters of a collection's index."""
        return {name: self._parse_value(name) for name in _OPTIONS[self.kind] if name not in ("ef", "nprobe")}

    def widen(self, k: int) -> dict[str, Any]:
        """Return the search parameters for k results; for HNSW, `ef` (the number of candidates) is at least k."""
        if self.kind == "HNSW":
            return {"ef": max(self._parse_value("ef"), k)}
        return (
            {"nprobe": min(self._parse_value("nprobe"), self._parse_value("nlist"))} if self.kind == "IVF_FLAT" else {}
        )

    def _parse_value(self, name: str) -> int:
        return self.options.get(name, _USUAL[name])


def parse_origin(uri: str) -> tuple[str, str, int | None]:
    """Return the scheme, host and port of a URI; they identify a Milvus server.

    The database in the URI is ignored, because an access token is valid for all databases of a server.
    """
    try:
        parts = urlsplit(uri)
        return parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError:
        return "", uri, None  # an invalid port: such an address equals only itself


def find_named_servers(words: Sequence[str]) -> Iterator[str]:
    """Yield the servers that a command line names with `--store milvus:URI`."""
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        flag, _, value = word.partition("=")
        name, _, place = (value or following if flag == "--store" else "").partition(":")
        if name == "milvus" and place.startswith(_SERVERS):
            yield place.partition("?")[0]


_RANGE = 4
"""The cost of checking a range, as a number of single keys."""
_WEIGHT = 4096
"""The greatest cost of one condition, as a number of single keys; more keys need several conditions."""


def make_conditions(field: str, wanted: Keys) -> Iterator[str]:
    """Yield filter expressions that together select exactly the keys in `wanted`.

    `wanted` is sorted and has no duplicates. Each key is selected by only one of the expressions.
    """
    if not len(wanted):
        return
    breaks = np.flatnonzero(np.diff(wanted) != 1) + 1
    singles: list[int] = []
    ranges: list[str] = []
    for run in np.split(wanted, breaks):
        if len(run) > _RANGE:
            ranges.append(f"({field} >= {run[0]} and {field} <= {run[-1]})")
        else:
            singles += run.tolist()
        if len(ranges) * _RANGE + len(singles) >= _WEIGHT:
            yield _join_conditions(field, ranges, singles)
            ranges, singles = [], []
    if ranges or singles:
        yield _join_conditions(field, ranges, singles)


def _join_conditions(field: str, ranges: list[str], singles: list[int]) -> str:
    """Return one condition that joins ranges and single keys with `or`, in nested pairs.

    A server rejects a flat chain of 50 conditions as nested too deeply.
    """
    parts = [*ranges, *([f"{field} in {singles}"] if singles else [])]
    while len(parts) > 2:
        pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
        parts = [f"({' or '.join(pair)})" if len(pair) > 1 else pair[0] for pair in pairs]
    return " or ".join(parts)
