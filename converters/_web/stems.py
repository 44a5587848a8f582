"""File names from URLs: the last segment of the path and the fragment, exactly as they are written."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlparse

from exhibit.schemas.errors import SourceError

_LONGEST = 255
"""Bytes of a file name that every common file system can hold."""


def stem_of(url: str) -> str:
    """Return the last path segment, plus `#fragment` if there is one; nothing unquoted, nothing replaced."""
    parts = urlparse(url)
    segment = parts.path.rpartition("/")[2]
    return f"{segment}#{parts.fragment}" if parts.fragment else segment


def filename_of(url: str) -> str:
    """Return the name of a URL's PDF in the corpus, or raise a SourceError that names the URL."""
    stem = stem_of(url)
    if not stem:
        raise SourceError(f"{url}: no file name in it, its path ends in '/'; use the address of one page")
    if "/" in stem or "\0" in stem:
        raise SourceError(f"{url}: its fragment holds a '/', which no file name can; leave the fragment off")
    name = stem if stem.lower().endswith(".pdf") else f"{stem}.pdf"
    size = len(name.encode("utf-8", "surrogatepass"))
    if size > _LONGEST:
        raise SourceError(f"{url}: its file name would have {size} bytes, more than the {_LONGEST} a disk can hold")
    return name


def corpus_names(urls: Iterable[str]) -> dict[str, str]:
    """Return the file name of each URL; two URLs with one name are a SourceError that names both."""
    names: dict[str, str] = {}
    owners: dict[str, str] = {}
    for url in dict.fromkeys(urls):
        name = filename_of(url)
        if name in owners:
            raise SourceError(
                f"{owners[name]} and {url}: both would be {name!r} in the corpus; "
                "leave one of them out, or convert them into two bundles"
            )
        owners[name] = url
        names[url] = name
    return names
