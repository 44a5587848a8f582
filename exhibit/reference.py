"""Store the help of every verb in `help.json`, so that `--help` imports nothing.

python -m exhibit.reference [--check]
"""

import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from exhibit.commands import VERBS, list_spellings
from exhibit.runtime.command import Invocation, Parser, guarded, set_invocation
from exhibit.runtime.plugins import list_own_plugins

FILE = Path(__file__).parent / "help.json"
_COLUMNS = "100"  # argparse wraps at the width of the terminal; a file needs a fixed one


def help_of(*words: str) -> str:
    """Return the output of `exhibit WORDS --help`."""
    verb = VERBS[words[0]]
    text = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _COLUMNS
    try:
        with (
            set_invocation(Invocation(list_spellings())),
            contextlib.redirect_stdout(text),
            contextlib.suppress(SystemExit),
        ):
            getattr(import_module(verb.module), verb.attribute)([*verb.words, *words[1:], "--help"])
    finally:
        os.environ.pop("COLUMNS") if before is None else os.environ.update(COLUMNS=before)
    return text.getvalue()


def generate() -> str:
    """Return the text of `help.json`: the help of each verb and each converter."""
    asked = [(verb,) for verb in VERBS] + [("convert", name) for name in sorted(list_own_plugins("exhibit.converters"))]
    texts = {" ".join(words): help_of(*words) for words in asked}
    return json.dumps(texts, ensure_ascii=False, indent=0, sort_keys=True) + "\n"


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Write `help.json` with the help of every verb; with --check, only report whether it is out of date."""
    parser = Parser(prog="python -m exhibit.reference", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the file is out of date")
    check = parser.parse_args(argv).check
    text = generate()
    if FILE.is_file() and FILE.read_text(encoding="utf-8") == text:
        return 0
    if not check:
        FILE.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{'out of date' if check else 'written'}: {FILE.name}\n")
    return int(check)


if __name__ == "__main__":
    sys.exit(main())
