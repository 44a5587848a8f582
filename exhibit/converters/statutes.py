"""Versions of laws from a folder or a Git repository, with questions whose gold is known by construction.

exhibit convert statutes --source FOLDER --out datasets_out/statutes
"""

import hashlib
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Sequence
from datetime import date
from itertools import groupby
from pathlib import Path

from exhibit.converters import Benchmark, DatasetInfo, Licence, RawDocument, RawRow, Tally
from exhibit.converters.core.command import main
from exhibit.converters.laws.questions import QuestionMaker
from exhibit.converters.laws.versions import Law, Version, read_law, read_versions
from exhibit.law.provisions import LawName, make_law_name
from exhibit.runtime.command import parse_positive
from exhibit.schemas.errors import SourceError

INFO = DatasetInfo(
    name="statutes",
    title="Versions of laws on PDFs",
    benchmark="Laws in Markdown with their versions",
    summary="""Laws in all their versions, one PDF per version, with questions in the law's language: what a provision
        says, or said on a day; which provision has a heading; what changed; where a reference leads. Some have no
        answer.""",
    expects="a folder with LAW/DATE.md (or LAW.md), or a Git repository of laws in Markdown, bare or not",
    licence=Licence(
        id="other",
        name="texts of laws (usually free of copyright)",
        redistributable=False,
        note="Texts of laws are free in most countries; a collection of them may have a separate licence.",
    ),
    url="https://github.com/legalize-dev",
    version="as given",
    tags=("legal", "legislation", "temporal"),
    annotations=("machine-generated",),
    questions="""Made by rule in the law's own language, in several wordings. `labels.kind` names the kind of question:
        `says` (what a provision says in the last version), `said` (what it said on a day), `governs` (which provision
        has a heading), `changed` (whether it changed between two days), `leads` (where a reference leads). Questions
        of the kinds `repealed` (before that day) and `before` (on a day before the law) are impossible.""",
    limits="""
        - The questions are made by rule from the laws themselves: their gold is certain, but their wording is not a
          lawyer's.
        - A version is in force from its day to the day before the next version in the source; if the source lacks a
          version, its days count as the earlier version's.
        - A question without a day means the last version in the source.
        - The same § of every other version is a near miss: `labels.other_versions` lists them.
        - The answer to a question on a change quotes the words that were added and removed, at most 60 of each.""",
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--from", type=_parse_day, metavar="DATE", help="leave out versions that ended before this day")
    most = "questions of each kind on each law, at most (default: 6)"
    parser.add_argument("--questions", type=parse_positive, default=6, metavar="N", help=most)
    parser.add_argument("--as-of", type=_parse_day, metavar="DATE", help="only the versions in force on this day")


def _parse_day(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError as error:
        raise ArgumentTypeError(f"{text!r} is not a day; write it as 2018-07-01") from error


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read the versions of each law, make a document of each version, and make questions about them."""
    since, as_of = (date.fromisoformat(day) if day else None for day in (vars(options)["from"], options.as_of))
    versions = read_versions(source, tally, since=since, as_of=as_of)
    laws: dict[str, list[Law]] = {}
    for version in versions:
        law = read_law(version)
        if law.paragraphs:
            laws.setdefault(version.law, []).append(law)
        else:
            tally.leave_out("no § or article in it", version.source, item=version.item)
    if not laws:
        raise SourceError(f"{source}: no § or article in any of {len(versions)} files; are these laws in Markdown?")
    names = {key: _name(key, editions[-1]) for key, editions in laws.items()}
    ids: set[int] = set()
    rows: list[RawRow] = []
    for key, editions in laws.items():
        rows += QuestionMaker(editions, names[key], laws, list(names.values()), options.questions, ids).rows()
    digest = {name: _digest(list(group)) for name, group in groupby(versions, lambda version: version.law)}
    return Benchmark([_make_document(law) for editions in laws.values() for law in editions], rows, digest)


def _make_document(law: Law) -> RawDocument:
    days = {name: value for name, value in law.version.days.items() if value}
    title = f"{law.full_title} ({law.dated})" if law.dated else law.full_title
    labels = (("law", law.version.law), *days.items())
    source, items = law.fields.get("source", ""), (law.version.item,)
    return RawDocument(law.filename, title, text=law.text, source=source, items=items, labels=labels)


def _name(key: str, law: Law) -> LawName:
    """Return the names by which references cite a law: its codes, which are abbreviations, and its title."""
    codes = [law.fields.get(name, "") for name in ("official_code", "jurabk", "abbreviation", "short_title")]
    if not any(codes):  # without an abbreviation, use the title
        full = make_law_name(law.title)
        return LawName(key, full.codes[:1], full.title)
    named = law.title.partition(" (")[0] if law.fields.get("jurabk") else law.title
    title = " ".join(named.split()[1:]) if law.fields.get("official_code") else named
    return LawName(key, tuple(dict.fromkeys(filter(None, codes))), title)


def _digest(versions: Sequence[Version]) -> str:
    text = "".join(f"{version.start}\n{version.markdown}\n" for version in versions)
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
