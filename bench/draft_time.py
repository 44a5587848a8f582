"""What drafts take beside the index of the same documents, in one run, each from an empty cache.

python -m bench.draft_time contracts
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench._table import print_table
from bench.mixed_folder import timed
from exhibit.schemas.command import guarded
from exhibit.storage.place import scratch_folder


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print both times and their ratio."""
    parser = argparse.ArgumentParser(prog="python -m bench.draft_time", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--playbook", default="contract", metavar="NAME", help="what is asked of every document")
    options = parser.parse_args(argv)
    with scratch_folder() as scratch:
        commands = {
            "index": ["index", str(options.folder), "--out", str(scratch / "out1"), "--preset", "careful"],
            "draft": [
                "draft",
                str(options.folder),
                "--out",
                str(scratch / "out2"),
                "--playbook",
                options.playbook,
            ],
        }
        (scratch / "one").mkdir()
        (scratch / "one" / "one.txt").write_text("This Agreement is governed by the laws of Ohio.", encoding="utf-8")
        for name in commands:  # the networks are built before: once on a machine, not once a folder
            warm = ["draft", str(scratch / "one"), "--out", str(scratch / f"warm-{name}")]
            timed([*warm, "--playbook", options.playbook], scratch / name)
        took = {name: timed(command, scratch / name) for name, command in commands.items()}
    rows = [[name, *(f"{seconds:.0f}" for seconds in took[name])] for name in commands]
    ratio = [f"{draft / index:.2f}" for index, draft in zip(took["index"], took["draft"], strict=True)]
    print_table("drafts beside an index", ["command", "seconds", "of processor"], [*rows, ["ratio", *ratio]])
    return 0


if __name__ == "__main__":
    sys.exit(main())
