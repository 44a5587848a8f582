"""Hostile mails: `.msg` files with circular tables, nested mails, attachments with paths as names."""

from __future__ import annotations

import struct

import pytest

from exhibit.engine import Limits, open_engine
from exhibit.evidence import read_document
from exhibit.evidence.read import list_folder
from exhibit.schemas.errors import DocumentError, LimitError
from tests.evidence.files import ole

pytestmark = pytest.mark.slow

_SECTOR = 512
_START, _SIZE = 116, 120  # offsets of two fields of a directory entry, [MS-CFB] 2.6.1
_LIMITS = Limits(seconds=60, memory=256 << 20)


def encode_utf16(text: str) -> bytes:
    return text.encode("utf-16-le")


def mail(*inside: dict[str, object], head: int = 32) -> dict[str, object]:
    """Return the properties of a mail with these attachments, as a tree for an OLE file."""
    attached = {f"__attach_version1.0_#{number:08X}": entry for number, entry in enumerate(inside)}
    return {
        "__properties_version1.0": bytes(head),
        "__substg1.0_0037001F": encode_utf16("Lease"),
        "__substg1.0_1000001F": encode_utf16("The rent is due."),
        **attached,
    }


def attached(content: bytes | dict[str, object], name: str = "a.txt") -> dict[str, object]:
    """Return an attachment that is a file (bytes) or a mail (a dict), as a tree for an OLE file."""
    tag = "__substg1.0_37010102" if isinstance(content, bytes) else "__substg1.0_3701000D"
    return {"__properties_version1.0": bytes(8), "__substg1.0_3707001F": encode_utf16(name), tag: content}


def mails_in_mails(depth: int) -> bytes:
    inner = mail(head=24)
    for _ in range(depth):
        inner = mail(attached(inner, "mail"), head=24)
    return ole(mail(attached(inner, "mail")))


class PatchedOleFile:
    """An OLE file whose directory and sector table can be changed."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        (self._directory,) = struct.unpack_from("<I", data, 48)
        (self._table,) = struct.unpack_from("<I", data, 76)

    def entry(self, number: int, field: int, value: int, form: str = "<I") -> PatchedOleFile:
        """Change a field of an entry of the directory."""
        struct.pack_into(form, self.data, _SECTOR * (self._directory + 1) + 128 * number + field, value)
        return self

    def next_sector(self, sector: int, value: int) -> PatchedOleFile:
        """Set the successor of a sector in the sector table."""
        struct.pack_into("<I", self.data, _SECTOR * (self._table + 1) + 4 * sector, value)
        return self


def circle() -> bytes:
    """Return a mail whose first stream has circular sectors and a stated length of two gigabytes."""
    return bytes(PatchedOleFile(ole(mail())).next_sector(7, 0).entry(1, _SIZE, 2 << 30, "<Q").data)


MAILS = {
    "deep": lambda: mails_in_mails(40),
    "deeper": lambda: mails_in_mails(300),
    "circle": circle,
    "sizes": lambda: bytes(PatchedOleFile(ole(mail())).entry(1, _SIZE, (1 << 63) - 1, "<Q").data),
    # the missing subject is not shown
    "starts": lambda: bytes(PatchedOleFile(ole(mail())).entry(1, _START, 0x7FFF_FFFF).data),
    "sectors": lambda: ole(mail())[:30] + struct.pack("<H", 28) + ole(mail())[32:],
    "difat": lambda: ole(mail())[:68] + struct.pack("<II", 0, 1 << 20) + ole(mail())[76:],
    "codes": lambda: ole(mail() | {"__substg1.0_10130102": b"<meta charset=utf-7>+ADw-script+AD4-" * 99}),
}


def test_mail_after_a_hostile_mail_is_still_read(tmp_path):
    paths = []
    for name, make in MAILS.items():
        paths += [tmp_path / f"{name}.msg", tmp_path / f"{name}-good.msg"]
        paths[-2].write_bytes(make())
        paths[-1].write_bytes(ole(mail()))
    read = set()
    for path, outcome in zip(
        paths, open_engine("local", jobs=1, limits=_LIMITS).map(read_document, paths), strict=True
    ):
        if outcome.error is not None:
            assert isinstance(outcome.error, DocumentError | LimitError) and path.name in str(outcome.error)
        else:
            assert ("Lease" in outcome.value.text or path.stem == "starts") and "<script" not in outcome.value.text
            read.add(path.stem)
    assert read >= {f"{name}-good" for name in MAILS} | {"deep", "codes"}
    assert "deeper" not in read


@pytest.mark.parametrize(
    "name", ["../../outside.txt", "..\\..\\outside.txt", "/etc/outside.txt", "C:\\outside.txt", "a\0b.txt", ".."]
)
def test_list_folder_never_uses_an_attachment_name_as_path(tmp_path, name):
    folder = tmp_path / "mails"
    folder.mkdir()
    (folder / "a.msg").write_bytes(ole(mail(attached(b"The notice is given.".ljust(4096), name))))
    first, second = list_folder(folder)
    assert first.name == "a.msg" and second.path.name.startswith("a.msg - ")
    assert second.path.resolve().is_relative_to(second.path.parent.resolve()) and second.path.parent.parent != tmp_path
    assert list(tmp_path.iterdir()) == [folder] and list(folder.iterdir()) == [folder / "a.msg"]
