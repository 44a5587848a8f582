"""Writes the extracted text of every document: `exhibit text datasets_out/cuad --out texts/cuad`.

The files have the documents' names with .txt at the end, and contain exactly the characters to which gold offsets
refer.
"""

import sys
from pathlib import Path

from tqdm import tqdm

from exhibit.engine import add_limit_arguments, apply_limits, read_limits
from exhibit.evidence.read import read_within
from exhibit.runtime.command import Parser, add_json, guarded, print_results, rename_commands
from exhibit.schemas.layout import fit_name
from exhibit.storage.atomic import FolderKind, replace_folder
from exhibit.storage.bundle import list_corpus_files, mirror_bundle
from exhibit.storage.locations import Location, parse_location

KIND = FolderKind("texts", lambda folder: all(path.is_file() and path.suffix == ".txt" for path in folder.iterdir()))


def write_texts(root: Location, out: Path, *, force: bool = False) -> int:
    """Write the text of each document of a bundle; return the number of documents."""
    files = list_corpus_files(mirror_bundle(root))
    with replace_folder(out, force=force, kind=KIND) as folder:
        for name in tqdm(sorted(files), desc="documents", unit="doc", delay=2.0, leave=False, disable=None):
            text = read_within(files[name]).text
            # UTF-8 cannot encode a lone surrogate, which a broken PDF may contain
            data = text.encode("utf-8", "replace")
            (folder / fit_name(name, ".txt")).write_bytes(data)
    return len(files)


@guarded("stopped; nothing was written")
def main(argv: list[str] | None = None) -> int:
    """Write the texts of a bundle's documents."""
    parser = Parser(
        prog=rename_commands("exhibit text"),
        description="Writes every document's extracted text, to which the spans in gold.jsonl refer.",
        epilog=rename_commands("example: exhibit text datasets_out/cuad --out texts/cuad"),
    )
    parser.add_argument("bundle", type=parse_location, metavar="DIR", help="a bundle's folder or URL")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write the texts to")
    parser.add_argument("--force", action="store_true", help="replace an earlier folder of texts")
    add_limit_arguments(parser)
    add_json(parser)
    options = parser.parse_args(argv)
    with apply_limits(read_limits(options)):
        count = write_texts(options.bundle, options.out, force=options.force)
    print_results({"texts": count, "out": str(options.out)}, f"{count} texts -> {options.out}", as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
