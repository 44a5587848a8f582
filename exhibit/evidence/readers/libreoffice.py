"""Office files such as .doc, .odt, .rtf, .xls and .pptx, which LibreOffice converts to .docx, .xlsx or HTML."""

import os
import shutil
import subprocess
from pathlib import Path

from exhibit.engine.limits import run_program
from exhibit.evidence.files import head_of
from exhibit.evidence.readers import excel, word
from exhibit.evidence.readers.html import Printable, cut_fragment
from exhibit.evidence.readers.text import decode_file
from exhibit.schemas.errors import DocumentError
from exhibit.storage.atomic import make_scratch_folder
from exhibit.storage.programs import find_program

STARTS_A_PROGRAM = True  # no lower limits for small files: LibreOffice needs much memory even for these

_TARGETS = {
    **dict.fromkeys((".doc", ".wpd", ".odt", ".rtf"), "docx"),
    **dict.fromkeys((".xls", ".ods"), "xlsx"),
    **dict.fromkeys((".ppt", ".pptx", ".odp"), "html"),
}
SUFFIXES = tuple(_TARGETS)
_COMMANDS = ("soffice", "libreoffice", "/Applications/LibreOffice.app/Contents/MacOS/soffice")
_SECONDS = 180  # timeout in seconds for one file, including the start of LibreOffice: 300 pages take a tenth of it
_PROFILE = Path(__file__).with_suffix(".xcu")  # this profile loads nothing from outside the document and runs no macros
_HEADS = (b"\xd0\xcf\x11\xe0", b"{\\rtf", b"PK\x03\x04", b"\xffWPC")


def find_command() -> str | None:
    return next((program for name in _COMMANDS if (program := find_program(name))), None)


def page(path: Path) -> Printable:
    suffix = path.suffix.lower()
    ending = _TARGETS[suffix]
    # check the signature: LibreOffice would print any bytes as text
    head_of(path, kind=f"{suffix} file", starts=_HEADS)
    program = find_command()
    if program is None:
        advice = "apt-get install libreoffice, or libreoffice.org"
        raise DocumentError(f"{path}: needs LibreOffice, which is not installed: {advice}")
    with make_scratch_folder() as folder:
        # a separate profile: a second LibreOffice with the same profile would only pass the file to the first
        profile, source, out = folder / "profile", folder / f"document{suffix}", folder / "out"
        (profile / "user").mkdir(parents=True)
        shutil.copyfile(_PROFILE, profile / "user" / "registrymodifications.xcu")
        shutil.copyfile(path, source)
        flags = ["--headless", "--norestore", f"-env:UserInstallation={profile.as_uri()}", "--convert-to", ending]
        command = [program, *flags, "--outdir", str(out), str(source)]
        try:
            done = run_program(command, seconds=_SECONDS, environment={**os.environ, "HOME": str(folder)})
        except subprocess.TimeoutExpired as error:
            raise DocumentError(f"{path}: LibreOffice did not finish within {_SECONDS} s; is it damaged?") from error
        target = out / f"document.{ending}"
        if not target.is_file():
            lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
            reason = f" ({lines[-1][:120]})" if lines else ""
            raise DocumentError(f"{path}: LibreOffice cannot convert this file{reason}")
        read = {"docx": word.page, "xlsx": excel.page}.get(ending)
        try:
            made = read(target) if read else Printable(cut_fragment(decode_file(target).text))
        except DocumentError as error:
            reason = str(error).removeprefix(f"{target}: ")
            raise DocumentError(f"{path}: LibreOffice's conversion cannot be read: {reason}") from error
    return made._replace(notes=("converted by LibreOffice", *made.notes))
