"""Validates bundles in folders and at URLs: `exhibit validate datasets_out/* s3://bucket/cuad`."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.runtime.command import Parser, add_json, guarded, print_error, print_note, print_results, rename_commands
from exhibit.schemas.bundle import GOLD, INFO, TRAIN
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import FileEntry
from exhibit.schemas.run import CONFIG
from exhibit.schemas.run_folder import RunFolder
from exhibit.schemas.validate import Problem, validate
from exhibit.storage.bundle import describe_missing_parts, mirror_bundle, open_bundle, sha256_of
from exhibit.storage.locations import Location, Remote, choose_folders, list_files, parse_location


def validate_at(root: Location) -> list[Problem]:
    """Return every problem of a bundle in a folder or at a URL; empty if it is valid."""
    folder = mirror_bundle(root) if isinstance(root, Remote) else root
    return validate(folder, elsewhere=_list_remote_entries(root) if isinstance(root, Remote) else None)


def _list_remote_entries(root: Remote) -> dict[str, FileEntry]:
    """Return the checksum and size of each file of a remote bundle, by name.

    train.json, gold.jsonl and bundle.json are left out, because the local mirror already contains them. Every
    other file is downloaded, hashed and removed again.
    """
    files = list_files(root)
    return {
        name: FileEntry(sha256=sha256_of(root / name), bytes=listed.bytes)
        for name, listed in files.items()
        if name not in {TRAIN, GOLD, INFO}  # the local mirror has these files
    }


def _check_minimal(root: Location) -> list[Problem]:
    """Return the problems that prevent an evaluation; a missing optional part is only a note."""
    try:
        bundle = open_bundle(mirror_bundle(root))
    except BundleError as error:
        lines = [line.partition(": ") for line in str(error).splitlines()]
        return [Problem(file, "", "", message) for file, _, message in lines]
    for lack in describe_missing_parts(bundle):
        print_note(f"{root}: {lack}")
    return []


def _find_problems(root: Location, *, minimal: bool) -> list[Problem]:
    if isinstance(root, Path) and (root / CONFIG).is_file() and not (root / INFO).is_file():
        faults = RunFolder(root).faults()
        return [Problem("", "", "", line.removeprefix(f"{root}/")) for line in faults]
    return _check_minimal(root) if minimal else validate_at(root)


class CheckedBundle(NamedTuple):
    """The result of checking one bundle: its problems, a summary line, and both as JSON."""

    faults: Sequence[str]
    summary: str
    record: dict[str, Any]


def check_each(bundles: Sequence[Location], check: Callable[[Location], CheckedBundle], *, as_json: bool) -> int:
    """Check bundles one by one and print each result; return exit code 1 if any bundle has a problem."""
    failed, records = False, []
    roots, notes = choose_folders(bundles)
    for note in notes:
        print_note(note)
    for root in roots:
        try:
            faults, summary, record = check(root)
        except ToolkitError as error:
            print_error(error)
            failed = True
            continue
        failed |= bool(faults)
        records.append({"bundle": str(root), **record})
        if not as_json:
            print("\n".join(f"{root}: {line}" for line in (*faults, summary)))
    if as_json:
        print_results(records, "", as_json=True)
    return 1 if failed else 0


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Validate each bundle; return 1 if any has a problem."""
    parser = Parser(
        prog=rename_commands("exhibit validate"),
        description="Checks bundles and runs against their schemas, and prints every problem.",
        epilog=rename_commands("example: exhibit validate datasets_out/*"),
    )
    parser.add_argument(
        "bundles", nargs="+", type=parse_location, metavar="DIR", help="a bundle's folder or URL, or a run's folder"
    )
    parser.add_argument(
        "--minimal",
        action="store_true",
        help="check only the files that an evaluation needs: corpus/ and a train.json in any accepted format",
    )
    add_json(parser)
    options = parser.parse_args(argv)

    def validate_one(root: Location) -> CheckedBundle:
        faults = [str(problem) for problem in _find_problems(root, minimal=options.minimal)]
        outcome = f"{len(faults)} problems" if faults else "sound"
        return CheckedBundle(faults, outcome, {"sound": not faults, "problems": faults})

    return check_each(options.bundles, validate_one, as_json=options.json)


if __name__ == "__main__":
    sys.exit(main())
