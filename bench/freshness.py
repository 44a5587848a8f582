"""Lists the pages of results that are out of date: `python -m bench.freshness [--mark|--renew PAGE]`.

A page is out of date if the measured code has changed since the measurement. Each page has a comment that
names the folders of that code, with a digest of their files:

    <!-- measured-with: exhibit/law exhibit/rag sha256:… -->
"""

import argparse
import hashlib
import re
import sys
from pathlib import Path

from exhibit.runtime.command import guarded
from exhibit.schemas.errors import ToolkitError

ROOT = Path(__file__).parents[1]
WARNING = "*Measured before the code changed: `python -m bench.freshness` says which.*"
_MARK = re.compile(r"<!-- measured-with: ([\w./ -]{1,400}) sha256:([0-9a-f]{0,64}) -->\n")


def digest_of(root: Path, places: str) -> str:
    """Return a SHA-256 over the names and contents of all Python and TOML files in some folders.

    `places` are paths below `root`, separated by spaces.
    """
    digest = hashlib.sha256()
    for place in sorted(places.split()):
        folder = root / place
        if not folder.exists():
            raise ToolkitError(f"{place}: no such file or folder in {root}; correct the page's measured-with comment")
        files = [folder] if folder.is_file() else [one for one in folder.rglob("*") if one.suffix in (".py", ".toml")]
        for path in sorted(files):
            content = path.read_bytes().replace(b"\r\n", b"\n")
            digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def find_stale_pages(root: Path) -> dict[Path, str]:
    """Return the pages of results that are out of date, each with the folders of the code that it measures.

    A page is out of date if this code has changed since the measurement. A comment in the page names the
    folders.
    """
    pages = sorted([*(root / "docs").glob("*.md"), *(root / "bench" / "results").glob("*.md")])
    marks = [(page, mark) for page in pages for mark in _MARK.finditer(page.read_text(encoding="utf-8"))]
    return {page: mark[1] for page, mark in marks if digest_of(root, mark[1]) != mark[2]}


def mark_page(page: Path) -> None:
    """Add a warning to a Markdown page of results: the code has changed since the measurement.

    The warning is below the page's `measured-with` comment; an earlier warning is replaced.
    """
    text = page.read_text(encoding="utf-8").replace(f"\n{WARNING}\n", "")
    page.write_text(_MARK.sub(lambda mark: f"{mark[0]}\n{WARNING}\n", text, count=1), encoding="utf-8")


def renew_page(root: Path, page: Path) -> None:
    """Declare a Markdown page of results up to date: renew its digest of the measured code, remove its warning."""
    text = page.read_text(encoding="utf-8").replace(f"\n{WARNING}\n", "")
    if not _MARK.search(text):
        raise ToolkitError(f"{page}: no measured-with comment; add <!-- measured-with: exhibit/FOLDER sha256: -->")
    renewed = _MARK.sub(lambda m: f"<!-- measured-with: {m[1]} sha256:{digest_of(root, m[1])} -->\n", text)
    page.write_text(renewed, encoding="utf-8")


@guarded()
def main(argv: list[str] | None = None) -> int:
    """List the results pages in docs/ and bench/results/ that were measured with older code.

    With --mark, write a warning into each of these pages. With --renew PAGE, record that PAGE was measured with
    the present code.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.freshness", description=__doc__)
    parser.add_argument("--mark", action="store_true", help="write a visible line into each stale page")
    parser.add_argument(
        "--renew", type=Path, metavar="PAGE", help="record that this page was measured with the present code"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the project (default: this one)")
    options = parser.parse_args(argv)
    if options.renew:
        renew_page(options.root, options.renew)
    for page, places in find_stale_pages(options.root).items():
        sys.stdout.write(f"{page.relative_to(options.root).as_posix()}: {places} changed since it was measured\n")
        if options.mark:
            mark_page(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
