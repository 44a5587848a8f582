"""Validates bundles wherever they are: `python -m schemas.validate datasets_out/* s3://bucket/cuad`."""

from __future__ import annotations

import sys
from pathlib import Path

from exhibit.schemas.bundle import GOLD, INFO, PARTIAL, TRAIN
from exhibit.schemas.command import Parser, add_json, guarded, print_error, print_note, print_results, spelled
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import FileEntry
from exhibit.schemas.run import CONFIG
from exhibit.schemas.run_folder import RunFolder
from exhibit.schemas.validate import Problem, validate
from exhibit.storage.bundle import mirrored, missing_parts, open_bundle, sha256_of
from exhibit.storage.locations import Location, Remote, folders_among, list_files, parse_location


def validate_at(root: Location) -> list[Problem]:
    """Return every broken promise of a bundle in a folder or at a URL, empty when sound."""
    folder = mirrored(root) if isinstance(root, Remote) else root
    return validate(folder, elsewhere=_elsewhere(root) if isinstance(root, Remote) else None)


def _elsewhere(root: Remote) -> dict[str, FileEntry]:
    """Return what a store has of a bundle, each file fetched, hashed and removed again."""
    files = list_files(root)
    return {
        name: FileEntry(sha256=sha256_of(root / name), bytes=listed.bytes)
        for name, listed in files.items()
        if name not in {TRAIN, GOLD, INFO, PARTIAL}  # which the mirror has
    }


def _minimal(root: Location) -> list[Problem]:
    """Return what keeps the evaluator from reading a folder; what it may lack is said, and no problem."""
    try:
        bundle = open_bundle(mirrored(root))
    except BundleError as error:
        lines = [line.partition(": ") for line in str(error).splitlines()]
        return [Problem(file, "", "", message) for file, _, message in lines]
    for lack in missing_parts(bundle):
        print_note(f"{root}: {lack}")
    return []


def _problems(root: Location, *, minimal: bool) -> list[Problem]:
    if isinstance(root, Path) and (root / CONFIG).is_file() and not (root / INFO).is_file():
        faults = RunFolder(root).faults()
        return [Problem("", "", "", line.removeprefix(f"{root}/")) for line in faults]
    return _minimal(root) if minimal else validate_at(root)


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Validate each folder; exit 1 when any promise is broken."""
    parser = Parser(
        prog=spelled("python -m schemas.validate"),
        description="Checks bundles, and runs, against their contract and prints every broken promise.",
        epilog=spelled("example: python -m schemas.validate datasets_out/*"),
    )
    parser.add_argument(
        "bundles", nargs="+", type=parse_location, metavar="DIR", help="a bundle's folder or URL, or a run's folder"
    )
    parser.add_argument(
        "--minimal",
        action="store_true",
        help="only what an evaluation needs: corpus/ and a train.json in any accepted shape",
    )
    add_json(parser)
    arguments = parser.parse_args(argv)
    broken = 0
    records = []
    roots, notes = folders_among(arguments.bundles)
    for note in notes:
        print_note(note)
    for root in roots:
        try:
            problems = _problems(root, minimal=arguments.minimal)
        except ToolkitError as error:
            print_error(error)
            broken += 1
            continue
        broken += len(problems)
        records.append({"bundle": str(root), "sound": not problems, "problems": [str(one) for one in problems]})
        if not arguments.json:
            for problem in problems:
                print(f"{root}: {problem}")
            print(f"{root}: {'sound' if not problems else f'{len(problems)} broken promises'}")
    if arguments.json:
        print_results(records, "", as_json=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
