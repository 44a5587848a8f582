"""Compares the time of `exhibit draft` with the time of `exhibit index` on the same documents.

python -m bench.draft_time contracts

Each command has a cache of its own, which contains none of the documents.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench._table import print_table
from bench.mixed_folder import time_command
from exhibit.runtime.command import guarded
from exhibit.storage.atomic import make_scratch_folder


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the time of `exhibit draft`, the time of `exhibit index`, and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m bench.draft_time", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--playbook", default="contract", metavar="NAME", help="the playbook for every document")
    options = parser.parse_args(argv)
    with make_scratch_folder() as scratch:
        folder, asked = str(options.folder), ["--playbook", options.playbook]
        commands = {
            "index": ["index", folder, "--out", str(scratch / "index-out"), "--preset", "careful"],
            "draft": ["draft", folder, "--out", str(scratch / "draft-out"), *asked],
        }
        (scratch / "one").mkdir()
        text = "SUPPLY AGREEMENT\n\nThis Agreement is made between Alder Ltd and Birch Ltd under the laws of Ohio.\n"
        (scratch / "one" / "one.txt").write_text(text, encoding="utf-8")
        for name in commands:  # the graphs are built before: they are built once per machine, not once per folder
            time_command(["draft", str(scratch / "one"), "--out", str(scratch / f"{name}-one"), *asked], scratch / name)
        took = {name: time_command(command, scratch / name) for name, command in commands.items()}
    rows = [[name, *(f"{seconds:.0f}" for seconds in took[name])] for name in commands]
    ratio = [f"{draft / index:.2f}" for index, draft in zip(took["index"], took["draft"], strict=True)]
    print_table("drafts beside an index", ["command", "seconds", "of processor"], [*rows, ["ratio", *ratio]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
