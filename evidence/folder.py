"""Every file of a folder, and the files inside mails as files of their own: nothing is passed over."""

import atexit
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import NamedTuple

from exhibit.engine import guarded
from exhibit.evidence.read import attachments, has_attachments
from exhibit.schemas.errors import DocumentError
from exhibit.storage.place import files_below, scratch_folder

_DEEPEST = 5
"""Mails in mails; people forward a forwarded mail, not a sixth one."""
_MOST = 1000
"""Attachments of one mail."""
_UNFIT = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_LONGEST = 200
"""Bytes of an attachment's name, so that `.pdf` and the beginning of the mail's name still fit."""
_WHOLE = 251  # bytes of a name with `.pdf` behind it: file systems take 255
UNREAD = ".unread"
"""The ending of what stands for an attachment that is not read: there is no reader for it, so it is counted by name."""
_DEEP = f"in a mail that {_DEEPEST} others enclose; not read"
_MANY = f"more than {_MOST} attachments; not read"


class Listed(NamedTuple):
    """A file to be read: where it is, what it is called, and the names by which a table may mean it."""

    path: Path
    name: str
    """Its path in the folder; of an attachment, the mail's with its own behind it."""
    aliases: tuple[str, ...] = ()


def list_folder(folder: Path) -> list[Listed]:
    """Return the files of a folder at any depth, in order, each mail followed by what is attached to it.

    Links that lead out of the folder are not followed, and pipes not opened; `storage.folders.left_out` names them.
    """
    return list(with_attachments(Listed(path, path.relative_to(folder).as_posix()) for path in files_below(folder)))


def with_attachments(files: Iterable[Listed], depth: int = 0) -> Iterator[Listed]:
    """Yield files, each mail followed by what is attached to it, written to a folder that ends with this program."""
    for file in files:
        yield file
        if not has_attachments(file.path):
            continue
        try:
            inside = guarded(attachments, file.path)
        except DocumentError:
            continue  # the mail itself cannot be read, which whoever reads it says
        taken: dict[str, int] = {}  # how often each name has been given
        for number, (name, data) in enumerate(inside, 1):
            plain = _distinct(_plain(name), taken)
            path = _room(file.path, depth) / _joined(file.path, plain)
            refusal = _DEEP if depth >= _DEEPEST else _MANY if number > _MOST else ""
            if refusal:
                path = path.with_name(f"{number}{UNREAD}")
                path.touch()
                yield Listed(path, f"{file.name}/{plain}: {refusal}", (plain, name))
                continue
            path.write_bytes(data)
            yield from with_attachments([Listed(path, f"{file.name}/{plain}", (plain, name))], depth + 1)


def _distinct(name: str, taken: dict[str, int]) -> str:
    """Return a name that no other attachment of the mail has, in any case: they may be called alike."""
    number = taken.setdefault(name.casefold(), 0)
    if not number:
        taken[name.casefold()] = 1
        return name
    while (plain := f"{number + 1} {name}").casefold() in taken:
        number += 1
    taken[name.casefold()], taken[plain.casefold()] = number + 1, 1
    return plain


def _joined(mail: Path, plain: str) -> str:
    """Return the name of an attachment's file, the mail's in front; a long one is cut, and kept apart by a digest."""
    name = f"{mail.name} - {plain}"
    if len(os.fsencode(name)) <= _WHOLE:
        return name
    digest = hashlib.sha256(os.fsencode(mail)).hexdigest()[:8]
    room = _WHOLE - len(plain.encode()) - len(digest) - 4
    return f"{mail.name.encode('utf-8', 'replace')[:room].decode('utf-8', 'ignore')} {digest} - {plain}"


def _plain(name: str) -> str:
    """Return an attachment's name as one that any file system takes, its ending kept."""
    name = _UNFIT.sub("_", name).strip(" .") or "attachment"
    stem, ending = name[: -len(Path(name).suffix)] if Path(name).suffix else name, Path(name).suffix[:20]
    return stem.encode("utf-8", "replace")[: _LONGEST - 2 * len(ending)].decode("utf-8", "ignore") + ending


def _room(path: Path, depth: int) -> Path:
    key = hashlib.sha256(f"{depth} {path.resolve()}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    room = _temporary() / key
    room.mkdir(exist_ok=True)
    return room


@cache
def _temporary() -> Path:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(scratch_folder())
