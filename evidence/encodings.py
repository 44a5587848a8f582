"""Bytes to characters where nothing says the encoding: UTF-8 first, then what office programs write."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from typing import NamedTuple

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_SHARED = frozenset("‘’“”„‚–—…•§©®°·€£«»†‡™½¼¾\u00a0")
_LETTERS = (
    ("cp1252", "àâæçèéêëîïôùûüÿœ"),  # French
    ("cp1252", "äöüß"),  # German
    ("cp1252", "áéíóúüñçãõâêôàªº¿¡"),  # Spanish, Portuguese
    ("cp1252", "àèéìíîòóùú"),  # Italian
    ("cp1252", "åäöæøéðþáíóúý"),  # the Nordic languages
    ("cp1250", "áčďéěíňóřšťúůýžäľĺŕô"),  # Czech, Slovak
    ("cp1250", "ąćęłńóśźż"),  # Polish
    ("cp1250", "áéíóöőúüű"),  # Hungarian
    ("cp1250", "čćđšž"),  # Croatian, Slovene
    ("cp1251", "абвгдежзийклмнопрстуфхцчшщъыьэюяёіїєґў№"),  # Cyrillic
    ("iso8859_2", "áčďéěíňóřšťúůýžäľĺŕôąćęłńśźż"),
)
"""Letters beyond ASCII that languages are written with, by the code page for them; the first of equals is taken."""
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_MOST_CONTROLS = 0.01
"""Share of control characters above which bytes are no text: in text there are none but for a stray one."""


class Decoded(NamedTuple):
    """A text and the encoding that it was read by; a BOM is the text's first character."""

    text: str
    encoding: str


def decode_bytes(data: bytes) -> Decoded | None:
    """Return the text of some bytes; None where they are no text."""
    encoding = next((name for mark, name in _MARKS.items() if data.startswith(mark)), None) or _unmarked_utf16(data)
    try:
        return Decoded(data.decode(encoding or "utf-8"), encoding or "utf-8")
    except UnicodeDecodeError:
        pass
    if encoding is not None or len(_CONTROLS.findall(data)) > _MOST_CONTROLS * len(data):
        return None
    return _by_letters(data)


def _unmarked_utf16(data: bytes) -> str | None:
    """Return the byte order of UTF-16 without its mark: Latin text has a zero in every second byte."""
    if b"\0" not in data:
        return None
    zeros = [data[start::2].count(0) for start in (0, 1)]
    half = len(data) // 2
    if len(data) % 2 or half < 2 or max(zeros) < 0.4 * half or min(zeros) > 0.05 * half:
        return None
    encoding = "utf-16-le" if zeros[1] > zeros[0] else "utf-16-be"
    # the other half must be letters and marks, or any bytes with zeros among them would be text
    other = data[0::2] if zeros[1] > zeros[0] else data[1::2]
    return encoding if sum(32 <= byte < 127 or byte in b"\t\r\n" for byte in other) > 0.8 * half else None


def _by_letters(data: bytes) -> Decoded | None:
    """Return the reading whose letters beyond ASCII are the likeliest."""
    best: tuple[int, Decoded] | None = None
    for encoding, letters in _LETTERS:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        times = Counter(text)
        likely = sum(times[character] for character in times if character.lower() in letters or character in _SHARED)
        if best is None or likely > best[0]:
            best = likely, Decoded(text, encoding)
    return best[1] if best else None
