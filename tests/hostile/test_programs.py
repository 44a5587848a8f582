"""External programs that misbehave: OCR and LibreOffice that hang, flood, fork, or write invalid output."""

from __future__ import annotations

import io
import os
import shutil
import sys
import time
import zipfile
from functools import partial
from pathlib import Path

import pytest
from PIL import Image

from exhibit.engine import Limits, open_engine, run_in_worker, shutdown_idle
from exhibit.evidence import read_document
from exhibit.evidence.ocr import tesseract
from exhibit.evidence.scan import Ocr
from exhibit.schemas.errors import DocumentError, LimitError, ToolkitError
from tests.campaign.elsewhere import recording_server
from tests.evidence.files import scan
from tests.hostile.work import read_page

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="stand-ins are shell scripts, and limits are Linux's")
_LANGUAGES = 'case "$*" in *--list-langs*) printf "List (1):\\neng\\n"; exit 0;; esac\n'
_HEAD = "level\tpage_num\tblock_num\tpar_num\tline_num\tword_num\tleft\ttop\twidth\theight\tconf\ttext"
_WORD = f"printf '{_HEAD}\\n5\\t1\\t1\\t1\\t1\\t1\\tLEFT\\t0\\t9\\t9\\t9\\tw\\n'"
_MADE = 'for last; do :; done; out="$(dirname "$last")/out"; mkdir -p "$out"'
HANGS = "sleep 3600"


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """A function that writes a stub command and puts it first in PATH."""

    def write(name: str, script: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    shutdown_idle()  # workers remember where a program was
    tesseract._list_installed.cache_clear()
    tesseract.open.cache_clear()
    yield write
    tesseract._list_installed.cache_clear()
    tesseract.open.cache_clear()


@pytest.mark.parametrize(
    ("script", "limits", "error", "why"),
    [
        (HANGS, Limits(seconds=1), LimitError, "not done after 1 s"),
        (f"{HANGS} & {HANGS}", Limits(seconds=1), LimitError, "not done after 1 s"),
        ("exec cat /dev/zero", Limits(memory=64 << 20), LimitError, "needs more than 64 MiB"),
        ("exec cat /dev/zero >&2", Limits(memory=64 << 20), LimitError, "needs more than 64 MiB"),
        ("echo gone wrong >&2; exit 1", Limits(), ToolkitError, "Tesseract failed: gone wrong"),
        ("kill -SEGV $$", Limits(), ToolkitError, "Tesseract failed: .*SIGSEGV"),
        ("printf 'no\\ttable\\n1\\t2\\n'", Limits(), DocumentError, "not a table of words"),
        (f"printf '{_HEAD}\\n5\\t1\\n'", Limits(), None, ""),
        (_WORD.replace("LEFT", "x"), Limits(), DocumentError, "not a table"),
        (_WORD.replace("LEFT", "nan"), Limits(), DocumentError, "nan pixels"),
        ("exit 0", Limits(), None, ""),
        ("exec head -c 5000000 /dev/urandom", Limits(), DocumentError, "not a table of words"),
    ],
)  # fmt: skip
def test_a_page_that_an_ocr_program_does_not_read_is_set_aside_by_name(stand_in, script, limits, error, why):
    stand_in("tesseract", _LANGUAGES + script)
    # a limit is the worker's; what needs none is read here, where no worker has to be started
    read = partial(run_in_worker, read_page, limits=limits) if limits != Limits() else read_page
    if error is None:
        assert read(40) == 0
        return
    with pytest.raises(error, match=why):
        read(40)


def test_what_an_ocr_program_says_in_a_worker_is_told_here(stand_in):
    stand_in("tesseract", f"{_LANGUAGES}echo gone wrong >&2; exit 1")
    with pytest.raises(ToolkitError, match="Tesseract failed: gone wrong"):
        run_in_worker(read_page, 40)


def test_a_program_that_hangs_over_its_languages_reads_none(stand_in, monkeypatch):
    stand_in("tesseract", HANGS)
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract._LISTING", 1)
    assert "Tesseract is not installed" in tesseract.missing("en")


def running(mark: str) -> list[str]:
    """Return the command lines of all processes that contain a given text."""
    lines = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                lines.append((entry / "cmdline").read_bytes().decode("utf-8", "replace"))
            except OSError:
                continue
    return [line for line in lines if mark in line]


@pytest.mark.parametrize("name", ["tesseract", "soffice"])
def test_what_a_program_started_ends_with_it(stand_in, tmp_path, monkeypatch, name):
    """A shell that starts other processes, as LibreOffice's command does: the deadline ends all of them."""
    mark = "3599.25" if name == "soffice" else "3599.75"
    stand_in(name, f"{_LANGUAGES}sleep {mark} & sleep {mark}")
    if name == "tesseract":
        monkeypatch.setattr("exhibit.evidence.ocr.tesseract._SECONDS", 1)
        with pytest.raises(DocumentError, match="did not read a page within 1 s"):
            read_page(40)
    else:
        monkeypatch.setattr("exhibit.evidence.readers.libreoffice._SECONDS", 1)
        (tmp_path / "a.doc").write_bytes(rb"{\rtf1 The rent is due.}")
        with pytest.raises(DocumentError, match="did not finish within 1 s"):
            read_document(tmp_path / "a.doc")
    until = time.monotonic() + 120
    while running(mark) and time.monotonic() < until:
        time.sleep(0.05)
    assert running(mark) == []


OFFICES = {
    HANGS: "not done after 1 s",
    "exec cat /dev/zero": "needs more than 256 MiB",
    "exit 0": "LibreOffice cannot convert this file",
    "kill -9 $$": "LibreOffice cannot convert this file",
    f'{_MADE}; echo no zip > "$out/document.docx"': "LibreOffice's conversion cannot be read",
    f'{_MADE}; ln -s /etc/hostname "$out/document.docx"': "LibreOffice's conversion cannot be read",
}  # fmt: skip


@pytest.mark.parametrize("script", OFFICES)
def test_a_file_that_an_office_program_does_not_convert_is_set_aside_by_name(stand_in, tmp_path, script):
    stand_in("soffice", script)
    for name in ("a.doc", "b.doc"):
        (tmp_path / name).write_bytes(rb"{\rtf1 The rent is due.}")
    paths = [tmp_path / "a.doc", tmp_path / "b.doc"]
    seconds = 1 if script == HANGS else 60
    # one worker, but for the script that keeps it: to start a worker takes longer than all that it does here
    engine = open_engine("local", jobs=2 if script == HANGS else 1, limits=Limits(seconds=seconds, memory=256 << 20))
    for path, outcome in zip(paths, engine.map(read_document, paths), strict=True):
        assert str(path) in str(outcome.error) and OFFICES[script] in str(outcome.error)


# ---------------------------------------------------------------- the real programs, where they are


def hostile_pictures() -> dict[str, Image.Image]:
    """Return images that are not normal pages: a line of pixels, noise, text upside down, thousands of boxes."""
    noise = Image.effect_noise((900, 900), 200)
    letters = Image.open(io.BytesIO(scan("The rent is due on the first day of each month."))).convert("L")
    boxes = Image.new("L", (1200, 1200), "white")
    for at in range(0, 1200, 6):
        boxes.paste(0, (at, 0, at + 3, 1200))
        boxes.paste(255, (0, at, 1200, at + 3))
    return {
        "one": Image.new("L", (1, 1)), "wide": Image.new("L", (4000, 1), "black"), "high": Image.new("L", (1, 4000)),
        "black": Image.new("L", (600, 800), "black"), "noise": noise, "boxes": boxes,
        "upside": letters.rotate(180), "tiny": letters.resize((30, 30)), "stretched": letters.resize((4000, 20)),
    }  # fmt: skip


class ReadPicture:
    """Read one of the hostile pictures in a worker."""

    def __init__(self, engine: str) -> None:
        self.how = Ocr(engine, "en")

    def __call__(self, name: str) -> int:
        """Return the number of recognised lines."""
        return len(self.how.read(hostile_pictures()[name]))


def survives(engine: str) -> None:
    names = list(hostile_pictures())
    limits = Limits(seconds=120, memory=2 << 30)
    for name, outcome in zip(
        names, open_engine("local", jobs=1, limits=limits).map(ReadPicture(engine), names), strict=True
    ):
        assert outcome.error is None or isinstance(outcome.error, LimitError | DocumentError | ToolkitError), name


@pytest.mark.extra
def test_hostile_pictures_are_read_or_refused_by_rapidocr():
    survives("rapidocr")


@pytest.mark.skipif(shutil.which("tesseract") is None, reason="there is no Tesseract here")
def test_hostile_pictures_are_read_or_refused_by_tesseract():
    survives("tesseract")


def packed(parts: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name, content in parts.items():
            file.writestr(name, content)
    return data.getvalue()


def linking(kind: str, address: str) -> bytes:
    """Return an OpenDocument text, to be named as an older format, that embeds a resource from this address."""
    names = {"office": "office", "text": "text", "draw": "drawing", "svg": "svg-compatible"}
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{full}:1.0"' for name, full in names.items()
    )
    link = f'xlink:href="{address}" xlink:type="simple" xlink:show="embed" xlink:actuate="onLoad"'
    sized = 'text:anchor-type="as-char" svg:width="5cm" svg:height="5cm"'
    inside = {
        "image": f"<draw:image {link}/>", "object": f"<draw:object {link}/>", "frame": f"<draw:floating-frame {link}/>",
    }  # fmt: skip
    shown = f"<text:p><draw:frame {sized}>{inside.get(kind, '')}</draw:frame></text:p>"
    if kind == "section":
        shown = f'<text:section text:name="s"><text:section-source {link} text:filter-name="Text"/></text:section>'
    media = "application/vnd.oasis.opendocument.text"
    listed = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{what}"/>'
        for path, what in (("/", media), ("content.xml", "text/xml"))
    )
    space = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    return packed({
        "mimetype": media,
        "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{space}">{listed}</manifest:manifest>',
        "content.xml": f'<office:document-content {spaces} xmlns:xlink="http://www.w3.org/1999/xlink"><office:body>'
        f"<office:text><text:p>The rent is due.</text:p>{shown}</office:text></office:body></office:document-content>",
    })  # fmt: skip


@pytest.mark.skipif(shutil.which("soffice") is None, reason="there is no LibreOffice here")
@pytest.mark.parametrize("kind", ["image", "object", "frame", "section"])
def test_libreoffice_asks_nobody_for_what_a_document_names(tmp_path, kind):
    secret = tmp_path / "secret.txt"
    secret.write_text("the private words of this machine", encoding="utf-8")
    with recording_server() as (server, sent):
        for number, address in enumerate((f"{server}/a.png", secret.as_uri())):
            path = tmp_path / f"{number}.doc"
            path.write_bytes(linking(kind, address))
            text = read_document(path).text
            assert "The rent is due." in text and "private words" not in text
    assert sent == []


def test_libreoffice_is_given_a_profile_in_which_nothing_is_asked_for(stand_in, tmp_path):
    """Works without LibreOffice: the settings are checked as LibreOffice would read them."""
    kept = tmp_path / "kept.xcu"
    stand_in(
        "soffice",
        f'for a; do case "$a" in -env:*) cp "${{a#*file://}}/user/registrymodifications.xcu" {kept};; esac; done',
    )
    (tmp_path / "a.doc").write_bytes(rb"{\rtf1 The rent is due.}")
    with pytest.raises(DocumentError, match="cannot convert"):
        read_document(tmp_path / "a.doc")
    told = kept.read_text(encoding="utf-8")
    for name, value in {
        "BlockUntrustedRefererLinks": "true",
        "ooInetProxyType": "2",
        "ooInetHTTPProxyName": "127.0.0.1",
    }.items():
        assert f'oor:name="{name}" oor:op="fuse"><value>{value}</value>' in told
