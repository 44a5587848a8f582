"""Makes a folder of twenty mixed documents from the samples, and times the three commands of docs/draft.md on it.

python -m bench.mixed_folder mixed --time

The documents are PDFs, Word files, scans and text. The commands start with an empty cache. The review by a person, and
the application of its judgments, are not timed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import textwrap
import time
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from PIL import Image, ImageDraw, ImageFont

from bench._table import print_table
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import SourceError
from exhibit.storage.atomic import make_scratch_folder

ROOT = Path(__file__).resolve().parent.parent
SAMPLES, LESSONS = ROOT / "samples", ROOT / "training" / "lessons"
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
_LINKS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="a" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>'
)
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_PAGE, _MARGIN, _LINE = (1240, 1754), 120, 34  # pixels of A4 at 150 dots an inch


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Write the folder of mixed documents, and print how many there are.

    With --time, also run `exhibit draft`, `review` and `evaluate` on it, and print the time of each.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.mixed_folder", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--time", action="store_true", help="run draft, review and evaluate on it, and time each")
    parser.add_argument("--each", type=int, metavar="N", help="at most N documents of each kind, for a quick try")
    options = parser.parse_args(argv)
    out: Path = options.folder
    make_folder(out, each=options.each)
    print(f"{out}: {len(list(out.iterdir()))} documents")
    if options.time:
        time_commands(out)
    return 0


def make_folder(out: Path, *, each: int | None = None) -> None:
    """Write twenty documents into a new folder: PDFs, Word files, scans and Markdown texts.

    With `each`, there are at most that many of each kind.
    """
    if out.exists():
        raise SourceError(f"{out}: exists already; name a folder that is not there yet")
    out.mkdir(parents=True)
    for path in sorted(SAMPLES.glob("cuad/CUAD_v1/full_contract_pdf/**/*.[pP][dD][fF]"))[:each]:
        shutil.copy(path, out / path.name.lower())
    texts = [
        *sorted(SAMPLES.glob("contractnli/contracts/0[1-4]*.txt")),
        SAMPLES / "maud/maud-main/data/contracts/contract_7.txt",
        SAMPLES / "maud/maud-main/data/contracts/contract_12.txt",
        SAMPLES / "table/documents/harbour-lease.txt",
    ]
    for path in texts[:each]:
        write_word(path.read_text(encoding="utf-8"), out / f"{path.stem}.docx")
    for path in sorted(SAMPLES.glob("scans/held-out/*.txt"))[:each]:
        write_scan(path.read_text(encoding="utf-8"), out / f"{path.stem}-scan.pdf")
    rest = sorted(LESSONS.glob("documents/*.md"))
    for path in rest[: 20 - len(list(out.iterdir()))][:each]:
        shutil.copy(path, out / path.name)


def time_commands(folder: Path) -> None:
    """Run `exhibit draft`, `review` and `evaluate` with an empty cache, and print the time of each."""
    bundle, run = (folder.with_name(f"{folder.name}-{what}") for what in ("bundle", "run"))
    commands = [
        ["draft", str(folder), "--out", str(bundle), "--ocr"],
        ["review", str(bundle)],
        ["evaluate", str(bundle), "--output-dir", str(run.parent), "--run-name", run.name],
    ]
    with make_scratch_folder() as cache:
        rows = [(f"exhibit {command[0]}", *time_command(command, cache)) for command in commands]
    rows.append(("together", sum(row[1] for row in rows), sum(row[2] for row in rows)))
    shown = [[name, f"{wall:.0f}", f"{processor:.0f}"] for name, wall, processor in rows]
    print_table("from a bare folder to a report", ["command", "seconds", "of processor"], shown)


def time_command(command: Sequence[str], cache: Path) -> tuple[float, float]:
    """Run a command with its own cache; return its seconds of wall-clock time and of processor time."""
    began, used = time.monotonic(), os.times()
    environment = {**os.environ, "EXHIBIT_CACHE": str(cache)}
    subprocess.run([sys.executable, "-m", "exhibit", *command], check=True, env=environment)
    spent = os.times()
    processor = spent.children_user + spent.children_system - used.children_user - used.children_system
    return time.monotonic() - began, processor


def write_word(text: str, path: Path) -> None:
    """Write a text as a Word file with one paragraph per line."""
    lines = (f"<w:p><w:r><w:t>{escape(line)}</w:t></w:r></w:p>" for line in text.splitlines())
    body = f'<w:document xmlns:w="{_WORD}"><w:body>{"".join(lines)}</w:body></w:document>'
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in {"[Content_Types].xml": _TYPES, "_rels/.rels": _LINKS, "word/document.xml": body}.items():
            file.writestr(name, content)


def write_scan(text: str, path: Path) -> None:
    """Write a text as a PDF whose pages are slightly rotated pictures, like those of a scanner."""
    font = ImageFont.load_default(24)
    lines = [part for line in text.splitlines() for part in (textwrap.wrap(line, 84) or [""])]
    most = (_PAGE[1] - 2 * _MARGIN) // _LINE
    pages = []
    for first in range(0, len(lines), most):
        page = Image.new("L", _PAGE, 250)
        for at, line in enumerate(lines[first : first + most]):
            ImageDraw.Draw(page).text((_MARGIN, _MARGIN + at * _LINE), line, font=font, fill=20)
        pages.append(page.rotate(0.4, fillcolor=250))
    pages[0].save(path, save_all=True, append_images=pages[1:], resolution=150)


if __name__ == "__main__":
    sys.exit(main())
