"""Brings a published bundle back from the Hugging Face Hub: byte for byte, checked, whole or not at all.

    python -m hub.pull me/cuad-rag --out datasets_out/cuad
    python -m hub.pull me/cuad-rag --revision v1 --out datasets_out/cuad --force
    python -m hub.pull me/cuad-rag@v1                                            # to datasets_out/cuad-rag
    python evaluate_rag.py --dataset-paths hf://me/cuad-rag@v1                   # without a folder of its own

Downloads go through the Hub's own cache, so that one that was cut off goes on where it stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from exhibit.engine import track
from exhibit.hub._fetch import SCHEME, Fetched, fetch, is_repository, parse_address, peek
from exhibit.schemas.bundle import CARD, INFO, read_info
from exhibit.schemas.command import Parser, add_json, guarded, print_note, print_results, spelled
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.validate import validate
from exhibit.storage.place import check_free, placed

__all__ = ["SCHEME", "Fetched", "fetch", "is_repository", "main", "parse_address"]


def run(options: argparse.Namespace) -> Path:
    """Bring the bundle into its folder, which is returned; print where it is and what it is."""
    repo_id, revision = parse_address(options.repo)
    if revision and options.revision:
        raise ToolkitError(f"two revisions: {revision} and {options.revision}; give one")
    out = options.out or Path("datasets_out") / repo_id.rpartition("/")[2]
    wanted = revision or options.revision
    if (there := _bundle_in(out)) and there == peek(repo_id, revision=wanted, say=print_note) and not validate(out):
        print(f"{out}: holds exactly what {repo_id} does, byte for byte; nothing was changed")
        return out
    check_free(out, force=options.force)
    fetched = fetch(repo_id, revision=wanted, say=print_note)
    with placed(out, force=options.force) as folder:
        copy(fetched, folder)
    counts = fetched.info.counts
    print(f"{out}: {counts.questions:,} questions, {counts.documents:,} documents; every checksum is as recorded")
    print(f"from {fetched.address}")
    return out


def _bundle_in(folder: Path) -> BundleInfo | None:
    """Return what bundle.json of a folder says; None where there is none, or none that can be read."""
    try:
        return read_info(folder / INFO)
    except (BundleError, OSError):
        return None


def copy(fetched: Fetched, folder: Path) -> None:
    """Write a fetched bundle into an empty folder, and check it there as a whole."""
    files = [*(name for name in fetched.info.files if name != CARD), INFO]
    for name in track(files, total=len(files), label="copying", unit="file"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(fetched.folder / name, folder / name)
    (folder / CARD).write_bytes(fetched.card)
    problems = validate(folder)
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems[:10])
        raise BundleError(f"{fetched.address}: breaks {len(problems)} promises of a bundle:\n{listed}")


@guarded("stopped; run the same command again: what has arrived is kept")
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; exit 1 with one line on what to do when it cannot be done."""
    options = _parser().parse_args(argv)
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        out = run(options)
    if options.json:
        print_results({"bundle": str(out), "repo": options.repo}, "", as_json=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    what, _, examples = (__doc__ or "").partition("\n\n")
    parser = Parser(
        prog=spelled("python -m hub.pull"),
        description=what,
        epilog=spelled(f"examples:\n{examples}"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("repo", metavar="OWNER/NAME[@REVISION]", help="the dataset on the Hub; hf:// in front is fine")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the bundle's folder (default: datasets_out/NAME)")
    parser.add_argument("--revision", metavar="NAME", help="a branch, a tag or a commit (default: main)")
    parser.add_argument("--force", action="store_true", help="replace a bundle that is there")
    add_json(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
