"""Run commands one after the other in a separate process, so that shared modules are imported only once."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

RUN = """
import contextlib, io, json, sys
from exhibit.__main__ import main
if __name__ == "__main__":
    for words in json.loads(sys.argv[1]):
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
            try:
                code = main(words)
            except SystemExit as end:
                code = end.code or 0
        print(json.dumps([code, out.getvalue(), err.getvalue()]))
"""


class CommandResult(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


def run_commands(
    folder: Path, commands: Sequence[list[str]], cwd: Path, environment: Mapping[str, str]
) -> list[CommandResult]:
    """Write a program to the folder that runs the commands in one process; return the result of each command."""
    (folder / "run.py").write_text(RUN, encoding="utf-8")
    words = [sys.executable, str(folder / "run.py"), json.dumps(commands)]
    done = subprocess.run(words, cwd=cwd, env=environment, capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    return [CommandResult(*json.loads(line)) for line in done.stdout.splitlines()]
