"""Measures whether each paragraph of a law gets the right path: the labels of all parts above it, in order.

python -m bench.paths FOLDER [--json FILE] [--show N]

An example of a path is `ČÁST PRVNÍ > HLAVA I > Díl 1`. The path that this project reads from the law's
plain text is compared with the right one, which the headings of the law's Markdown file give. FOLDER has
LAW/DATE.md, or LAW.md, at any depth.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from exhibit.converters.raw.laws import Law, read_law
from exhibit.evidence import Document
from exhibit.law.structure import read_structure
from exhibit.law.structure.tree import Section
from exhibit.runtime.command import guarded
from exhibit.storage.atomic import write_whole


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print a table by language: the number of paragraphs of laws, the share found, and the share with the right path.

    Both shares are of all paragraphs. A path is the list of the labels of all parts above a paragraph.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.paths", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, help="also write the table to this file")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N wrong paths of each law")
    options = parser.parse_args(argv)
    right: Counter[str] = Counter()
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    laws: Counter[str] = Counter()
    for path in sorted(options.folder.rglob("*.md")):
        law = read_law(path.read_text(encoding="utf-8"))
        key = law.system.language
        laws[key] += 1
        wrong = 0
        for label, wanted, given in compare(law):
            total[key] += 1
            found[key] += given is not None
            right[key] += given == wanted
            if given != wanted and wrong < options.show:
                wrong += 1
                print(f"{path.name}: {label}: {wanted} read as {given}")
    print(f"{'language':<10}{'versions':>9}{'paragraphs':>12}{'found':>9}{'right path':>12}")
    for key in sorted(total):
        shares = f"{found[key] / total[key]:>9.2%}{right[key] / total[key]:>12.2%}"
        print(f"{key:<10}{laws[key]:>9,}{total[key]:>12,}{shares}")
    if options.json:
        table = {
            key: {"versions": laws[key], "paragraphs": total[key], "found": found[key], "right": right[key]}
            for key in sorted(total)
        }
        write_whole(options.json, json.dumps(table, indent=1) + "\n")
    return 0


def compare(law: Law) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...] | None]]:
    """Yield each paragraph's label, its path by the Markdown headings, and its path as read from the plain text.

    The second path is None if the plain text's structure does not have the paragraph.
    """
    tree = read_structure(Document("law.txt", law.text))
    paths = dict(_list_paths(tree, ()))
    for paragraph in law.paragraphs:
        given = paths.get(paragraph.start)
        yield paragraph.label, paragraph.path, given[:-1] if given else None


def _list_paths(section: Section, above: tuple[str, ...]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield, for each section with a label, its heading's offset and the labels on the path from the top to it."""
    path = (*above, section.label) if section.label else above
    if section.label:
        yield section.title.start, path
    for child in section.children:
        yield from _list_paths(child, path)


if __name__ == "__main__":
    sys.exit(main())
