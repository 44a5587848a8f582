"""Traces a gold quote from the benchmark's files to the report, and a question to its first scored passage.

python -m bench.trace             print the two traces
python -m bench.trace --write     write them into docs/architecture.md

A trace is a list of Python files. A file is in the trace if one of its functions gets the traced text as
an argument, alone or within a row or a reply, but not within a whole document. Code that only runs at the
same time (settings, progress, other questions) is not in the trace.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import textwrap
import threading
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from exhibit.converters import cuad
from exhibit.converters.steps.cli import main as convert
from exhibit.runtime.command import guarded
from exhibit.viewer.report import main as evaluate

ROOT = Path(__file__).resolve().parent.parent
PRODUCT = ROOT / "exhibit"
PAGE = ROOT / "docs" / "architecture.md"
SAMPLE = ROOT / "samples" / "cuad"
BEGIN, END = "<!-- ways -->\n", "<!-- /ways -->"
QUOTE = "laws of the State of Delaware"
METRIC = "char_recall@8"
LIMIT = ["--item-timeout", "3600"]
"""Tracing makes a document many times slower, above all on a busy machine."""
MOST_FOR_A_QUOTE, MOST_FOR_A_QUESTION = 39, 26
"""The most files on the two ways; a test compares them."""

_LONGEST = 3000
"""The most characters of a traced value: a row or a reply, not a whole document."""
_PLAIN = (int, float, Path, type, ModuleType, FunctionType)
_DEEPEST, _MOST = 4, 60
"""The depth within an argument, and the number of members of a collection, that are searched for the words."""


class Way:
    """A tracer that records which files have a function that gets a given text as an argument.

    It is a context manager. The files are in the order in which they first get the text; one thread is traced
    at a time.
    """

    def __init__(self, words: str, *, until: str = "") -> None:
        self.words, self.until = words, until
        self.files: dict[str, str] = {}
        """The first function of each file that got the words."""
        self._names: dict[CodeType, str] = {}

    def __enter__(self) -> Way:
        threading.settrace(self._trace_call)
        sys.settrace(self._trace_call)
        return self

    def __exit__(self, *_: object) -> None:
        threading.settrace(None)
        sys.settrace(None)

    def _trace_call(self, frame: FrameType, *_: object) -> None:
        code = frame.f_code
        name = self._names.get(code)
        if name is None:
            name = self._names[code] = _file_of(code)
        ended = self.until and any(file.startswith(self.until) for file in self.files)
        if not name or name in self.files or ended:
            return
        sys.settrace(None)
        try:
            given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            if any(self._holds(frame.f_locals.get(one)) for one in given):
                self.files[name] = code.co_qualname
        finally:
            sys.settrace(self._trace_call)

    def _holds(self, value: Any, depth: int = 0) -> bool:
        if isinstance(value, str | bytes):
            words = self.words if isinstance(value, str) else self.words.encode()
            return len(value) < _LONGEST and words in value  # type: ignore[operator]
        if depth == _DEEPEST or value is None or isinstance(value, _PLAIN):
            return False
        if isinstance(value, Mapping | list | tuple | set | frozenset):
            members = value.values() if isinstance(value, Mapping) else value
            return any(self._holds(one, depth + 1) for one in islice(members, _MOST))
        names = (*getattr(value, "__dict__", {}), *getattr(type(value), "__slots__", ()))
        return any(self._holds(getattr(value, name, None), depth + 1) for name in names)


def _file_of(code: CodeType) -> str:
    """Return the path of a function's file below `exhibit/`; an empty string for other files."""
    path = Path(code.co_filename)
    if code.co_name.startswith("<") or not path.is_relative_to(PRODUCT):
        return ""
    return path.relative_to(PRODUCT).as_posix()


def quote_way(folder: Path) -> Way:
    """Run a conversion and an evaluation with a report, and trace one gold quote through both.

    Return the tracer, which has the Python files whose functions received the quote. The evaluated replies are
    invented and have no passages.
    """
    bundle, replies = folder / "cuad", folder / "replies.jsonl"
    with Way(QUOTE) as way:
        convert(
            cuad, ["--source", str(SAMPLE), "--out", str(bundle), "--max-documents", "1", "--engine", "serial", *LIMIT]
        )
    ids = [row["id"] for row in _read_rows(bundle)]
    replies.write_text("".join(json.dumps({"id": one, "answer": "Unknown."}) + "\n" for one in ids), encoding="utf-8")
    with way:
        evaluate([*_run(bundle, folder / "runs"), "--target", f"predictions:{replies}"])
    return way


def trace_question(folder: Path) -> Way:
    """Trace a question of the bundle in `folder` through the code, until the first metric gets it.

    The result lists the Python files in which a function gets the question as an argument.
    """
    bundle = folder / "cuad"
    with Way(_read_rows(bundle)[0]["question"], until="evaluation/metrics/") as way:
        evaluate([*_run(bundle, folder / "once"), "--limit", "1"])
    return way


def _read_rows(bundle: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((bundle / "train.json").read_text(encoding="utf-8"))
    return rows


def _run(bundle: Path, out: Path) -> list[str]:
    return [str(bundle), "--output-dir", str(out), "--metrics", METRIC, "--set", "engine=serial"]


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the trace of a gold quote and the trace of a question: the Python files that each passes through.

    With --write, also write both traces into docs/architecture.md.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.trace", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help="write docs/architecture.md again")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        ways = quote_way(Path(folder)), trace_question(Path(folder))
    text = format_block(*ways)
    if options.write:
        before, after = PAGE.read_text(encoding="utf-8").split(BEGIN)[0], PAGE.read_text(encoding="utf-8").split(END)[1]
        PAGE.write_text(before + BEGIN + text + END + after, encoding="utf-8")
    print(text)
    return 0


def format_block(quote: Way, question: Way) -> str:
    """Return the trace of a gold quote and the trace of a question as Markdown.

    A trace lists the source files of the project in the order in which their functions first get the quote or
    the question.
    """
    titles = {
        "A gold quote, from the archive to the report": quote,
        "A question, to its first scored passage": question,
    }
    parts = []
    for title, way in titles.items():
        files = textwrap.fill(" → ".join(way.files), width=118, break_on_hyphens=False)
        parts.append(f"{title}, {len(way.files)} files:\n\n```text\n{files}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
