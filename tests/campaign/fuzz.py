"""Random and damaged input for all readers of external data: `make fuzz`, `python -m tests.campaign.fuzz`.

Every call must return or raise a ToolkitError within its limits of time and memory. The same seed makes the
same input, so that a failure can be reproduced: `python -m tests.campaign.fuzz --only html --seed 1234
--batches 1`.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import shutil
import signal
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from dataclasses import dataclass
from importlib import import_module
from itertools import count, cycle
from pathlib import Path
from typing import Any

from exhibit.converters import Tally
from exhibit.converters.civil_procedure.layout import read_outline
from exhibit.converters.raw.source import unpack
from exhibit.converters.raw.titles import read_title
from exhibit.engine import Limits, open_engine
from exhibit.evaluation.judge import read_mark
from exhibit.evaluation.servers.shapes import PassagesError, read_passages
from exhibit.evidence import Document, fold, locate, read_document
from exhibit.evidence.readers.html import extract_text
from exhibit.evidence.readers.pdf import render
from exhibit.law.citations import find_citations
from exhibit.law.profile import read_profile
from exhibit.law.references import find_references
from exhibit.law.structure import read_structure
from exhibit.models.llms.openai import text_of
from exhibit.rag.questions import understand
from exhibit.schemas.bundle import read_gold, read_questions
from exhibit.schemas.errors import LimitError, ToolkitError
from exhibit.schemas.parsing import parse_json
from exhibit.storage.http import Rules
from exhibit.storage.http_policy import Body, HttpError
from tests.campaign.replies import ask
from tests.campaign.table import Result, added, as_markdown, together, write_table
from tests.conversion import options_of
from tests.evidence import files as kinds
from tests.hostile.files import FILES, page_pdf

ROOT = Path(__file__).parent.parent.parent
CALLS = 20
"""Calls of one batch, which a worker makes within one limit."""
_LIMITS = Limits(seconds=1800, memory=1 << 30)
_PROCESSOR = 60.0
"""Seconds of processor time for one batch, of which it takes a few; the clock is no measure on a machine that is busy
with other things, and stops only what waits for ever."""
_PIECES = [
    "<!--", "-->", "<a ", "<p>", "</p>", "<script>", "</", "<![x[", "&#", "&amp;", '"', "'", "=", "[", "]", "{", "}",
    "(", ")", "section 1 of the Act 1980", "CPR 3.4(2)(a)", "[2024] EWCA Civ 1", "1.1", "ARTICLE IV", "Exhibit A",
    "(a)", "ii.", "\n", "\n\n", " ", "\t", "\x00", "\ud800", "\u2028", "\ufeff", "ß", "İ", "ﬁ", "é", "\u0301",
    "________", "......", "99999999", "the Tenant shall pay", "This Agreement is made between A Ltd and B plc",
    "<think>", "</think>", "Consider ", ";", "?", "[1]", "[1-3]", "“", "”", "‘", "’", "page 1 of 2", "$1,000", "1e999",
    "null", "true", '"text":', ",", ":", "-", "–",
]  # fmt: skip


def words(chance: random.Random, most: int = 400) -> str:
    """Return a random text of fragments that mean something to some parser; a few are repeated many times."""
    parts = []
    for _ in range(chance.randrange(most)):
        piece = chance.choice(_PIECES)
        parts.append(piece * (chance.randrange(1, 3000) if chance.random() < 0.02 else 1))
    return "".join(parts)


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Return the bytes with random bytes changed, deleted, repeated or inserted, sometimes cut off at the end."""
    out = bytearray(data)
    for _ in range(chance.randrange(1, 12)):
        at = chance.randrange(len(out) + 1)
        kind = chance.randrange(4)
        if kind == 0 and at < len(out):
            out[at] = chance.randrange(256)
        elif kind == 1:
            del out[at : at + chance.randrange(1, 40)]
        elif kind == 2:
            out[at:at] = out[at : at + chance.randrange(1, 200)] * chance.randrange(1, 5)
        else:
            out[at:at] = chance.randbytes(chance.randrange(1, 8))
    return bytes(out[: chance.randrange(len(out) + 1)] if chance.random() < 0.1 else out)


def value(chance: random.Random, depth: int = 4) -> Any:
    """Return a random value as a JSON parser can return it, nested up to `depth` levels."""
    kind = chance.randrange(9 if depth else 7)
    plain: list[Any] = [None, True, chance.choice([0, -1, 10**30, 10**400]), 1.5, float("inf"), words(chance, 6), ""]
    if kind < 7:
        return plain[kind]
    keys = ["text", "content", "filename", "document", "span", "start", "end", "page", "score", "id", words(chance, 2)]
    size = chance.randrange(5)
    if kind == 7:
        return [value(chance, depth - 1) for _ in range(size)]
    return {chance.choice(keys): value(chance, depth - 1) for _ in range(size)}


# ---------------------------------------------------------------- what is called


def _file(chance: random.Random, name: str, data: bytes, read: Callable[[Path], Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        path = Path(folder) / name
        path.write_bytes(data)
        read(path)


def fuzz_html(chance: random.Random) -> None:
    extract_text(words(chance))


def _damaged_pdf(chance: random.Random) -> bytes:
    quick = [one.make() for one in FILES if one.name.endswith(".pdf") and not one.slow and one.name != "pages.pdf"]
    good = page_pdf(
        b"BT /H 9 Tf 9 9 Td (The rent is due on the first day of each month.) Tj ET", packed=chance.random() < 0.5
    )
    return damaged(chance, chance.choice([*quick, good, good]))


def fuzz_pdf(chance: random.Random) -> None:
    _file(
        chance, "a.pdf", _damaged_pdf(chance), lambda path: (read_title(path), read_outline(path), read_document(path))
    )


def fuzz_drawing(chance: random.Random) -> None:
    _file(chance, "a.pdf", _damaged_pdf(chance), lambda path: render(path, 1))


def fuzz_office(chance: random.Random) -> None:
    """Read a damaged office document, mail, table or image.

    Archives are mostly damaged inside their members, since random damage would rarely reach more than the
    directory.
    """
    text = "The rent is due on the first day of each month."
    name, data = chance.choice(
        [
            ("a.docx", kinds.docx(kinds.paragraph(text) * 3)),
            ("a.odt", kinds.odt(f"<text:p>{text}</text:p>")),
            ("a.epub", kinds.epub(f"<p>{text}</p>")),
            ("a.pptx", kinds.pptx("Lease", text)),
            ("a.xlsx", kinds.xlsx(["Term", "Rent"], [text, 5])),
            ("a.eml", kinds.eml(text, html=f"<p>{text}</p>", attachments={"a.txt": b"x"})),
            ("a.msg", kinds.msg(subject="Lease", body=text)),
            ("a.md", words(chance).encode("utf-8", "replace")),
            ("a.csv", words(chance).encode("utf-8", "replace")),
            ("a.png", kinds.scan(text)),
        ]
    )
    inside = zipfile.is_zipfile(io.BytesIO(data)) and chance.random() < 0.8
    _file(chance, name, _damaged_inside(chance, data) if inside else damaged(chance, data), read_document)


def _damaged_inside(chance: random.Random, data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        hurt = chance.choice(old.namelist())
        for part in old.namelist():
            new.writestr(part, damaged(chance, old.read(part)) if part == hurt else old.read(part))
    return out.getvalue()


_LONGEST_IN_ZIP = 65_535  # bytes of a name


def fuzz_archive(chance: random.Random) -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for _ in range(chance.randrange(1, 5)):
            odd = words(chance, 3).partition("\0")[0].encode("utf-8", "replace").decode("utf-8") or "d"
            # no archive can hold a longer name
            odd = odd.encode("utf-8")[:_LONGEST_IN_ZIP].decode("utf-8", "ignore")
            name = chance.choice(["a.txt", "A.txt", "../a", "/etc/x", "b/" * 90 + "c", odd])
            if name not in file.namelist():
                file.writestr(name, "x")
    _file(chance, "a.zip", damaged(chance, out.getvalue()), lambda path: unpack(path, path.parent / "out"))


def fuzz_robots(chance: random.Random) -> None:
    keys = ("User-agent", "Disallow", "Allow", "Crawl-delay")
    lines = [f"{chance.choice(keys)}: {'*' * chance.randrange(9)}{words(chance, 4)}" for _ in range(30)]
    rules = "\n".join(lines).encode("utf-8", "replace").decode("utf-8")  # as bytes are read that came over a wire
    Rules("exhibit", rules).allow("/" + "a*" * 50)


def fuzz_export(chance: random.Random) -> None:
    data = json.dumps(value(chance, 6)).encode()
    _file(chance, "a.json", damaged(chance, data) if chance.random() < 0.5 else data, read_document)


_BENCHMARKS = ("acord", "contractnli", "cpr", "cuad", "legalbenchrag", "maud", "privacyqa", "table")
_BOMBS = (
    b"[" * 50_000,
    b'{"documents": ' * 2_000,
    b'"tests": ' + b"9" * 5_000,
    b"a,b\n" * 2_000,
    b",a1" * 5_000,
    b'"',
    b"",
)


def fuzz_source(chance: random.Random) -> None:
    """Read a benchmark's sample with one file damaged, or replaced by random text or a compression bomb."""
    name = chance.choice(_BENCHMARKS)
    converter = import_module(f"exhibit.converters.{name}")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        source = Path(folder) / "source"
        shutil.copytree(ROOT / "samples" / name, source)
        hurt = chance.choice(sorted(path for path in source.rglob("*") if path.is_file() and path.suffix != ".py"))
        odd = words(chance).encode("utf-8", "replace")
        hurt.write_bytes(chance.choice([damaged(chance, hurt.read_bytes()), odd, chance.choice(_BOMBS)]))
        more = ["--documents", str(source / "documents")] if name == "table" else []
        options = options_of(converter, "--source", source, "--engine", "serial", *more)
        with redirect_stderr(io.StringIO()):
            converter.read(source, options, Tally())


def fuzz_train(chance: random.Random) -> None:
    rows = [{"id": value(chance, 0), "question": words(chance, 5), "answer": "x", "contexts": value(chance)}]
    _file(chance, "train.json", damaged(chance, json.dumps(rows).encode()), read_questions)


def fuzz_gold(chance: random.Random) -> None:
    line = {"id": 1, "context": 0, "filename": "a.pdf", "pages": [1], "spans": [[1, 10**30]], "alternatives": [],
            "how": "exact", "score": 1.0, "labels": {"x": value(chance, 0)}}  # fmt: skip
    _file(chance, "gold.jsonl", damaged(chance, json.dumps(line).encode()), lambda path: list(read_gold(path)))


def fuzz_json(chance: random.Random) -> None:
    parse_json(damaged(chance, json.dumps(value(chance, 8)).encode()), where="here")


def fuzz_body(chance: random.Random) -> None:
    data = damaged(chance, gzip.compress(chance.randbytes(50) * chance.randrange(1, 20_000)))
    body = Body({"content-encoding": chance.choice(["gzip", "deflate", "gzip, gzip", "br", ""])}, most=100_000)
    for start in range(0, len(data), 777):
        body.feed(data[start : start + 777])
    body.close()


def fuzz_locate(chance: random.Random) -> None:
    document = Document("a.txt", words(chance, 1500))
    start = chance.randrange(len(document.text) + 1)
    quote = document.text[start : start + chance.randrange(1, 3000)]
    if chance.random() < 0.5:
        quote = quote.replace(chance.choice(_PIECES), chance.choice(_PIECES))
    for match in locate(quote, document):
        assert 0 <= match.span.start < match.span.end <= len(document.text)
        if match.how in ("exact", "folded"):
            held = fold("".join(document.text[s.start : s.end] for s in match.spans), loose=True)
            assert held == fold(quote, loose=True), "a span that does not hold the quote"


def fuzz_structure(chance: random.Random) -> None:
    document = Document("a.txt", words(chance, 1500))
    read_structure(document)
    read_profile(document)


def fuzz_law(chance: random.Random) -> None:
    text = words(chance, 800)
    find_references(text)
    find_citations(text)


def fuzz_question(chance: random.Random) -> None:
    understand(words(chance, 60))


def fuzz_reply(chance: random.Random) -> None:
    with suppress(PassagesError):  # which the targets turn into a failed question
        read_passages(value(chance), names=lambda name: name)
    text_of({"choices": [{"message": {"content": value(chance)}}]})
    read_mark(words(chance, 40))


def fuzz_target(chance: random.Random) -> None:
    with suppress(PassagesError, HttpError):  # which fail a question
        ask(chance, value)


KINDS: dict[str, Callable[[random.Random], None]] = {
    name.removeprefix("fuzz_"): made for name, made in list(globals().items()) if name.startswith("fuzz_")
}


@dataclass(frozen=True)
class Batch:
    """A number of calls with one kind of input, reproducible by its seed."""

    kind: str
    seed: int

    def __str__(self) -> str:
        """Return the flags that run the batch again."""
        return f"--only {self.kind} --seed {self.seed}"


def run_batch(batch: Batch) -> list[str]:
    """Run the calls of a batch; return one line for each call that raised anything but a ToolkitError."""
    lost = []
    signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends this worker, and is told as too much processor time
    signal.setitimer(signal.ITIMER_PROF, _PROCESSOR)
    for number in range(CALLS):
        try:
            KINDS[batch.kind](random.Random(f"{batch.seed}-{number}"))
        except ToolkitError:
            continue
        except Exception as error:
            lost.append(f"{batch}: call {number}: {type(error).__name__}: {str(error)[:200]}")
    signal.setitimer(signal.ITIMER_PROF, 0)
    return lost


def main(argv: list[str] | None = None) -> int:
    """Run for `--seconds` seconds and print the table of results; return 1 if a call failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=300.0, help="how long (default: 300)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(KINDS), help="one kind of input")
    parser.add_argument("--batches", type=int, help="so many batches rather than so many seconds")
    parser.add_argument("--jobs", type=int, help="workers (default: all processors)")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add to the totals of earlier runs in this file")
    parser.add_argument("--write", action="store_true", help="write the table into bench/results/campaign.md")
    options = parser.parse_args(argv)
    began = time.monotonic()
    results = fuzz(options)
    seconds = time.monotonic() - began
    if options.keep:
        results, seconds = added(options.keep, results, seconds)
    print(as_markdown(results))
    if options.write:
        write_table("fuzz", as_markdown(together(results)), seconds)
    return 1 if any(result.lost for result in results) else 0


def fuzz(options: argparse.Namespace) -> list[Result]:
    """Run batches of every kind of input in turn until the time is over; return the results by kind."""
    kinds = [options.only] if options.only else sorted(KINDS)
    tried = dict.fromkeys(kinds, 0)
    lost: dict[str, list[str]] = {kind: [] for kind in kinds}
    ends = time.monotonic() + options.seconds
    sent: list[Batch] = []

    def batches() -> Any:
        for kind, number in zip(cycle(kinds), count(), strict=False):
            over = number >= options.batches if options.batches else time.monotonic() > ends
            if over:
                return
            sent.append(Batch(kind, options.seed + number // len(kinds)))
            yield sent[-1]

    for number, outcome in enumerate(open_engine("local", jobs=options.jobs, limits=_LIMITS).map(run_batch, batches())):
        batch = sent[number]
        tried[batch.kind] += CALLS
        if outcome.error is not None:
            word = "hang or memory" if isinstance(outcome.error, LimitError) else "death"
            lost[batch.kind].append(f"{word}: {outcome.error}")
        else:
            lost[batch.kind] += outcome.unwrap()
    return [Result(kind, tried[kind], tuple(lost[kind])) for kind in kinds]


if __name__ == "__main__":
    sys.exit(main())
