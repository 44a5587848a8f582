"""Drafts a benchmark on a folder of documents, or lists and checks playbooks: `exhibit draft --help`."""

import sys
from collections.abc import Sequence

from exhibit.converters.core.command import main as convert
from exhibit.drafting import folder
from exhibit.drafting.playbook import find_playbooks
from exhibit.evidence.scan import choose_ocr
from exhibit.runtime.command import Parser, guarded
from exhibit.schemas.errors import ToolkitError


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Draft a bundle from a folder; the first argument may be the folder, without `--source`."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and not words[0].startswith("-"):
        words = ["--source", *words]  # the first argument is the folder
    return convert(folder, add_ocr(words))


def add_ocr(words: list[str]) -> list[str]:
    """Return the arguments with `--ocr` if an OCR engine is installed: many folders contain scans."""
    if any(word.startswith("--ocr") for word in words):
        return words
    try:
        choose_ocr()
    except ToolkitError:
        return words
    return [*words, "--ocr"]


@guarded()
def playbook_main(argv: Sequence[str] | None = None) -> int:
    """List the playbooks, or check one and show its questions."""
    parser = Parser(prog="exhibit draft --playbooks", description="List playbooks, or check yours.")
    parser.add_argument("playbook", nargs="*", metavar="NAME|FILE.toml", help="show the questions of these playbooks")
    options = parser.parse_args(argv)
    playbooks = find_playbooks(options.playbook)
    for playbook in playbooks:
        print(f"{playbook.name}: {playbook.title}")
        print(f"  {len(playbook.questions)} questions, for {', '.join(playbook.kinds)}")
        for question in playbook.questions if options.playbook else []:
            print(f"  {question.name}: {question.ask}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
