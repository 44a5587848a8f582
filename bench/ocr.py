"""Measures OCR on simulated scans: printed samples at 200 dpi, rotated by two degrees, with noise.

    python -m bench.ocr [--pages 6] [--engine rapidocr tesseract]

For each installed engine and each group of texts: the share of right characters (1 - edit distance / length, without
white space), the share of sentences that are located on the scan, and seconds per page.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageFilter

from bench._table import print_table
from exhibit.converters.printing.press import Printer, make_html
from exhibit.evidence import Document, locate, read_document
from exhibit.evidence.fold import edit_distance, fold
from exhibit.evidence.readers.pdf import render
from exhibit.evidence.scan import Ocr, choose_ocr, list_ocr_engines, read_scan
from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

DPI = 200
SKEW = 2.0
"""The rotation in degrees, alternately to the left and to the right."""
_SAMPLES = Path(__file__).parent.parent / "samples"
_TEXTS = {
    "cs": ("cs", "scans", "*.txt"),
    "en": ("en", "cuad", "**/*.txt"),
    # held out: these texts were written last, and no choice was made with them
    "en-held-out": ("en", "scans/held-out", "*.txt"),
}
"""The language, the folder of samples, and the files, by the name of the group."""
_SENTENCE = re.compile(r"[^.;:]{60,240}[.;:]")
_SPACE = re.compile(r"\s+")


class Result(NamedTuple):
    """The scores of one OCR engine on some pages: shares of right characters and of located sentences, and time."""

    pages: int
    right: float
    located: float
    quotes: int
    seconds: float


def read_texts(name: str) -> Iterator[str]:
    """Yield the sample texts of a group, such as `en` or `cs`, in the order of their paths."""
    _, folder, pattern = _TEXTS[name]
    for path in sorted((_SAMPLES / folder).glob(pattern)):
        yield path.read_text(encoding="utf-8")


def scan_page(picture: Image.Image, *, seed: int, skew: float = SKEW) -> Image.Image:
    """Return the picture of a page as a poor scanner gives it: rotated, grey, grainy, with specks and some blur."""
    chance = np.random.default_rng(seed)
    turned = picture.convert("L").rotate(skew, Image.Resampling.BICUBIC, fillcolor=255)
    pixels = 25 + 0.85 * np.asarray(turned, dtype=float)
    pixels += chance.normal(0, 12, pixels.shape)
    for _ in range(80):
        row, column = (int(chance.integers(0, side - 4)) for side in pixels.shape)
        height, width = (int(size) for size in chance.integers(1, 4, 2))
        pixels[row : row + height, column : column + width] = 60
    return Image.fromarray(np.clip(pixels, 0, 255).astype("uint8")).filter(ImageFilter.GaussianBlur(0.6))


def make_scan(printed: Document, target: Path, *, pages: int, skew: float = SKEW) -> Path:
    """Write a PDF with simulated scans of a document's first pages; return its path."""
    assert printed.path is not None
    pictures = [
        scan_page(render(printed.path, page.number, scale=DPI / 72), seed=page.number, skew=skew * (-1) ** page.number)
        for page in printed.pages[:pages]
    ]
    pictures[0].save(target, save_all=True, append_images=pictures[1:], resolution=DPI)
    return target


def compare(printed: Document, scanned: Document) -> tuple[int, int, int, int]:
    """Return four counts: characters, wrong characters, sentences, and sentences that are located on the scan."""
    characters = wrong = sentences = located = 0
    for truth, page in zip(printed.pages, scanned.pages, strict=False):
        text = printed.text[truth.span.start : truth.span.end]
        given = _SPACE.sub("", fold(text))
        characters += len(given)
        read = _SPACE.sub("", fold(scanned.text[page.span.start : page.span.end]))
        wrong += min(edit_distance(given, read), len(given))
        quotes = [match.group().strip() for match in _SENTENCE.finditer(text)]
        sentences += len(quotes)
        located += sum(bool(locate(quote, scanned)) for quote in quotes)
    return characters, wrong, sentences, located


def measure(how: Ocr, name: str, *, pages: int, folder: Path) -> Result:
    """Return the scores of OCR on simulated scans of sample texts (group `name`), at most `pages` pages."""
    totals = np.zeros(4, dtype=int)
    left, seconds = pages, 0.0
    with Printer() as printer:
        for number, text in enumerate(read_texts(name)):
            if left <= 0:
                break
            printer.print_html(make_html(text), folder / f"{number}.pdf")
            printed = read_document(folder / f"{number}.pdf")
            scan = make_scan(printed, folder / f"{number}-scan.pdf", pages=left)
            started = time.perf_counter()
            result = read_scan(read_document(scan), folder / f"{number}-read.pdf", how)
            seconds += time.perf_counter() - started
            totals += compare(printed, result.document if result else read_document(scan))
            left -= min(left, len(printed.pages))
    characters, wrong, quotes, located = (int(total) for total in totals)
    done = pages - max(left, 0)
    return Result(done, 1 - wrong / max(characters, 1), located / max(quotes, 1), quotes, seconds / max(done, 1))


@guarded()
def main() -> int:
    """Measure each OCR engine on each group of texts.

    Print a line for each engine and group as soon as it is measured, and a table of all results at the end.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=6, metavar="N", help="pages of each group (default: 6)")
    parser.add_argument("--engine", nargs="+", default=list_ocr_engines(), choices=list_ocr_engines())
    parser.add_argument("--texts", nargs="+", default=sorted(_TEXTS), choices=sorted(_TEXTS))
    options = parser.parse_args()
    rows = []
    for engine in options.engine:
        for name in options.texts:
            try:
                how = choose_ocr(_TEXTS[name][0], engine)
            except ToolkitError as error:
                print(f"{engine}, {name}: {error}")
                continue
            with tempfile.TemporaryDirectory() as folder:
                result = measure(how, name, pages=options.pages, folder=Path(folder))
            rows.append([
                engine, name, str(result.pages), f"{result.right:.2%}", f"{result.located:.1%} of {result.quotes}",
                f"{result.seconds:.1f}",
            ])  # fmt: skip
            print(" ".join(rows[-1]), flush=True)
    head = ["engine", "texts", "pages", "characters right", "sentences located", "s a page"]
    print_table("scans read by OCR", head, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
