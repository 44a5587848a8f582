"""Every reader of external data accepts damaged input or raises a ToolkitError.

FUZZ_CALLS sets the number of damaged inputs for each reader (`make fuzz`); the inputs are the same in every run.
"""

import gzip
import io
import json
import os
import random
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from exhibit.converters.core.source import unpack
from exhibit.evidence import Document, fold, locate, read_document
from exhibit.evidence.readers.html import extract_text
from exhibit.law.profile import read_profile
from exhibit.law.structure import read_structure
from exhibit.schemas.bundle import read_gold
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import parse_json
from exhibit.storage.http import decode_body
from tests.evidence import files as kinds
from tests.hostile.files import FILES, page_pdf

CALLS = int(os.environ.get("FUZZ_CALLS", "20"))
_PIECES = [
    "<!--", "-->", "<a ", "<p>", "</p>", "<script>", "</", "<![x[", "&#", "&amp;", '"', "'", "=", "[", "]", "{", "}",
    "(", ")", "section 1 of the Act 1980", "CPR 3.4(2)(a)", "[2024] EWCA Civ 1", "1.1", "ARTICLE IV", "Exhibit A",
    "(a)", "ii.", "\n", "\n\n", " ", "\t", "\x00", "\ud800", "\u2028", "\ufeff", "ß", "İ", "ﬁ", "é", "\u0301",
    "________", "......", "99999999", "the Tenant shall pay", "This Agreement is made between A Ltd and B plc",
    "<think>", "</think>", "Consider ", ";", "?", "[1]", "[1-3]", "“", "”", "‘", "’", "page 1 of 2", "$1,000", "1e999",
    "null", "true", '"text":', ",", ":", "-", "–",
]  # fmt: skip


def words(chance: random.Random, most: int = 400) -> str:
    """Return a random text of fragments that have a meaning for a parser; a few are repeated many times."""
    parts = []
    for _ in range(chance.randrange(most)):
        piece = chance.choice(_PIECES)
        parts.append(piece * (chance.randrange(1, 3000) if chance.random() < 0.02 else 1))
    return "".join(parts)


def damage(chance: random.Random, data: bytes) -> bytes:
    """Return the bytes with random bytes changed, deleted, repeated or inserted, sometimes cut off at the end."""
    out = bytearray(data)
    for _ in range(chance.randrange(1, 12)):
        at = chance.randrange(len(out) + 1)
        kind = chance.randrange(4)
        if kind == 0 and at < len(out):
            out[at] = chance.randrange(256)
        elif kind == 1:
            del out[at : at + chance.randrange(1, 40)]
        elif kind == 2:
            out[at:at] = out[at : at + chance.randrange(1, 200)] * chance.randrange(1, 5)
        else:
            out[at:at] = chance.randbytes(chance.randrange(1, 8))
    return bytes(out[: chance.randrange(len(out) + 1)] if chance.random() < 0.1 else out)


def value(chance: random.Random, depth: int = 4) -> Any:
    """Return a random value as a JSON parser can return it, nested up to `depth` levels."""
    kind = chance.randrange(9 if depth else 7)
    plain: list[Any] = [None, True, chance.choice([0, -1, 10**30, 10**400]), 1.5, float("inf"), words(chance, 6), ""]
    if kind < 7:
        return plain[kind]
    keys = ["text", "content", "filename", "document", "span", "start", "end", "page", "score", "id", words(chance, 2)]
    size = chance.randrange(5)
    if kind == 7:
        return [value(chance, depth - 1) for _ in range(size)]
    return {chance.choice(keys): value(chance, depth - 1) for _ in range(size)}


def _file(chance: random.Random, name: str, data: bytes, read: Callable[[Path], Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        read(path)


def fuzz_html(chance: random.Random) -> None:
    extract_text(words(chance))


def _damaged_pdf(chance: random.Random) -> bytes:
    quick = [file.make() for file in FILES if file.name.endswith(".pdf") and not file.slow and file.name != "pages.pdf"]
    good = page_pdf(
        b"BT /H 9 Tf 9 9 Td (The rent is due on the first day of each month.) Tj ET", packed=chance.random() < 0.5
    )
    return damage(chance, chance.choice([*quick, good, good]))


def fuzz_pdf(chance: random.Random) -> None:
    _file(chance, "a.pdf", _damaged_pdf(chance), read_document)


def fuzz_office(chance: random.Random) -> None:
    """Read a damaged office document, mail, table or image.

    Archives are mostly damaged inside their members, because random damage would rarely reach them.
    """
    text = "The rent is due on the first day of each month."
    name, data = chance.choice(
        [
            ("a.docx", kinds.docx(kinds.paragraph(text) * 3)),
            ("a.xlsx", kinds.xlsx(["Term", "Rent"], [text, 5])),
            ("a.eml", kinds.eml(text, html=f"<p>{text}</p>", attachments={"a.txt": b"x"})),
            ("a.msg", kinds.msg(subject="Lease", body=text)),
            ("a.md", words(chance).encode("utf-8", "replace")),
            ("a.csv", words(chance).encode("utf-8", "replace")),
            ("a.png", kinds.scan(text)),
        ]
    )
    inside = zipfile.is_zipfile(io.BytesIO(data)) and chance.random() < 0.8
    _file(chance, name, _damaged_inside(chance, data) if inside else damage(chance, data), read_document)


def _damaged_inside(chance: random.Random, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        hurt = chance.choice(old.namelist())
        for part in old.namelist():
            new.writestr(part, damage(chance, old.read(part)) if part == hurt else old.read(part))
    return out.getvalue()


_LONGEST_IN_ZIP = 65_535  # the most bytes of a name


def fuzz_archive(chance: random.Random) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for _ in range(chance.randrange(1, 5)):
            odd = words(chance, 3).partition("\0")[0].encode("utf-8", "replace").decode("utf-8") or "d"
            # a longer name does not fit into an archive
            odd = odd.encode("utf-8")[:_LONGEST_IN_ZIP].decode("utf-8", "ignore")
            name = chance.choice(["a.txt", "A.txt", "../a", "/etc/x", "b/" * 90 + "c", odd])
            if name not in file.namelist():
                file.writestr(name, "x")
    _file(chance, "a.zip", damage(chance, out.getvalue()), lambda path: unpack(path, path.parent / "out"))


def fuzz_gold(chance: random.Random) -> None:
    line = {"id": 1, "context": 0, "filename": "a.pdf", "pages": [1], "spans": [[1, 10**30]], "alternatives": [],
            "how": "exact", "score": 1.0, "labels": {"x": value(chance, 0)}}  # fmt: skip
    _file(chance, "gold.jsonl", damage(chance, json.dumps(line).encode()), lambda path: list(read_gold(path)))


def fuzz_json(chance: random.Random) -> None:
    parse_json(damage(chance, json.dumps(value(chance, 8)).encode()), where="here")


def fuzz_body(chance: random.Random) -> None:
    data = damage(chance, gzip.compress(chance.randbytes(50) * chance.randrange(1, 20_000)))
    blocks = (data[start : start + 777] for start in range(0, len(data), 777))
    assert sum(map(len, decode_body(blocks, chance.choice(["gzip", "br", ""]), most=100_000))) <= 100_000


def fuzz_locate(chance: random.Random) -> None:
    document = Document("a.txt", words(chance, 1500))
    start = chance.randrange(len(document.text) + 1)
    quote = document.text[start : start + chance.randrange(1, 3000)]
    if chance.random() < 0.5:
        quote = quote.replace(chance.choice(_PIECES), chance.choice(_PIECES))
    for match in locate(quote, document):
        assert 0 <= match.span.start < match.span.end <= len(document.text)
        if match.how in ("exact", "folded"):
            held = fold("".join(document.text[s.start : s.end] for s in match.spans), loose=True)
            assert held == fold(quote, loose=True), "the located span must contain the quote"


def fuzz_structure(chance: random.Random) -> None:
    document = Document("a.txt", words(chance, 1500))
    read_structure(document)
    read_profile(document)


KINDS: dict[str, Callable[[random.Random], None]] = {
    name.removeprefix("fuzz_"): made for name, made in list(globals().items()) if name.startswith("fuzz_")
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_damaged_input_is_read_or_refused_with_a_toolkit_error(kind):
    for number in range(CALLS):
        with suppress(ToolkitError):
            KINDS[kind](random.Random(f"{kind} {number}"))
