"""Tesseract, if its command is installed; each language has its own package (`tesseract-ocr-ces` …)."""

import csv
import io
import subprocess
from collections.abc import Callable
from functools import cache

import numpy as np
from PIL import Image

from exhibit.engine.limits import run_program
from exhibit.evidence.ocr import TextLine
from exhibit.schemas.errors import DocumentError, ToolkitError
from exhibit.storage.programs import find_program

CODES = {
    "bg": "bul", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "et": "est",
    "fi": "fin", "fr": "fra", "hr": "hrv", "hu": "hun", "it": "ita", "ja": "jpn", "lt": "lit", "lv": "lav",
    "nb": "nor", "nl": "nld", "no": "nor", "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sk": "slk",
    "sl": "slv", "sv": "swe", "tr": "tur", "uk": "ukr", "zh": "chi_sim",
}  # fmt: skip
LANGUAGES = frozenset(CODES)

_SECONDS = 300  # timeout in seconds; a page of A4 takes a few seconds


def missing(language: str) -> str:
    absent = [code for code in _list_codes(language) if code not in _list_installed()]
    packages = " ".join(f"tesseract-ocr-{code.replace('_', '-')}" for code in absent)
    return f"Tesseract is not installed: apt-get install tesseract-ocr {packages}" if absent else ""


def _list_codes(language: str) -> list[str]:
    return [CODES.get(code, code) for code in language.split("+")]


@cache
def _list_installed() -> frozenset[str]:
    program = find_program("tesseract")
    if program is None:
        return frozenset()
    listed = run_program([program, "--list-langs"], seconds=_SECONDS)
    return frozenset(listed.stdout.decode("utf-8", "replace").split()[1:])


@cache
def open(language: str) -> Callable[[Image.Image], list[TextLine]]:
    program, code = find_program("tesseract") or "tesseract", "+".join(_list_codes(language))

    def read(picture: Image.Image) -> list[TextLine]:
        data = io.BytesIO()
        picture.convert("L").save(data, "PNG", compress_level=1)
        # use one thread, because several workers read pages at the same time
        command = [program, "stdin", "stdout", "-l", code, "--dpi", "200", "--psm", "3", "tsv"]
        try:
            done = run_program(command, seconds=_SECONDS, given=data.getvalue())
            done.check_returncode()
        except subprocess.TimeoutExpired as error:
            raise DocumentError(f"Tesseract did not read a page within {_SECONDS} s") from error
        except (OSError, subprocess.CalledProcessError) as error:
            message = getattr(error, "stderr", b"") or str(error).encode()
            raise ToolkitError(f"Tesseract failed: {message.decode('utf-8', 'replace').strip()[-200:]}") from error
        return parse_table(done.stdout.decode("utf-8", "replace"))

    return read


def parse_table(table: str) -> list[TextLine]:
    lines: dict[tuple[str, ...], list[TextLine]] = {}
    for row in csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE):
        if row["level"] == "5" and (row["text"] or "").strip():  # the level of words
            left, top, width, height = (float(row[name]) for name in ("left", "top", "width", "height"))
            word = TextLine(left, top, left + width, top + height, row["text"].strip(), float(row["conf"]) / 100)
            lines.setdefault((row["block_num"], row["par_num"], row["line_num"]), []).append(word)
    joined = []
    for lefts, tops, rights, bottoms, words, confidences in (zip(*line, strict=True) for line in lines.values()):
        # weigh by length: the confidence of a long word counts more
        sure = float(np.average(confidences, weights=[len(word) for word in words]))
        box = min(lefts), min(tops), max(rights), max(bottoms)
        joined.append(TextLine(*box, " ".join(words), max(0.0, min(sure, 1.0))))
    return joined
