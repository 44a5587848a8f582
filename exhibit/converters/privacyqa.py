"""PrivacyQA: users' questions about the privacy policies of mobile apps, with the sentences that experts marked
relevant.

python -m converters.privacyqa --source PrivacyQA_EMNLP/data --out datasets_out/privacyqa
"""

import hashlib
import re
import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from exhibit.converters import Benchmark, Quote, RawDocument, RawRow, Tally, read_info
from exhibit.converters.benchmark import Block
from exhibit.converters.raw.records import decode_table, split_cells
from exhibit.converters.raw.source import find_one, refuse_pointer
from exhibit.converters.raw.titles import choose_unique_titles
from exhibit.converters.steps.cli import main
from exhibit.schemas.errors import SourceError

INFO = read_info(__file__)

TRAIN_QUESTIONS = 1_350
"""Number of questions in the release's training set; the ids of the test set begin here."""
MOST_BLANK = 2
"""Most of the six marks of a sentence that may be missing."""

_COLUMNS = ("DocID", "QueryID", "SentID", "Query", "Segment")
_ANNOTATOR = re.compile(r"Ann\d+")
_NO_MARK = frozenset({"", "none", "nan"})
"""Values for a mark that should not be considered; the release writes None."""
_NUMBERED = re.compile(r"(.*?)(?<!\s)\s*_(\d+)")
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')


class _Mark(NamedTuple):
    """The annotators' votes on one sentence for one question.

    The fields count the annotators who voted `relevant`, who voted at all, and who left the vote blank.
    """

    relevant: int
    answered: int
    blank: int


@dataclass
class _Question:
    """A question, and the annotators' votes on each sentence of its policy."""

    id: int
    key: str
    text: str
    marks: dict[str, _Mark] = field(default_factory=dict)


@dataclass
class _Policy:
    """A policy: its sentences by id, and the questions about it."""

    split: str
    key: str
    folder: str
    sentences: dict[str, str] = field(default_factory=dict)
    questions: dict[str, _Question] = field(default_factory=dict)


class _Printed(NamedTuple):
    """A policy as text, and the span of each of its sentences."""

    policy: _Policy
    document: RawDocument
    places: dict[str, tuple[int, int]]


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read the tables, rebuild each policy from its sentences, and derive the gold from the annotators' marks."""
    tables = _find_tables(source)
    sha256: dict[str, str] = {}
    policies: list[_Policy] = []
    for path in tables:
        data = path.read_bytes()
        sha256[path.name] = hashlib.sha256(data).hexdigest()
        table = _read_table(path, data, tally)
        asked = sum(len(policy.questions) for policy in policies)
        policies += _read_policies(table, asked, tally if options.split in (table.split, "all") else Tally())
    # make names unique over the whole source, so that neither a split nor a limit changes a name
    names = {f"{policy.key}, {policy.split}": list(_list_names(policy)) for policy in policies}
    titles = choose_unique_titles(names)
    stems = choose_unique_titles({key: [_UNSAFE.sub("_", name) for name in choices] for key, choices in names.items()})
    ready = [_make_printed(*parts) for parts in zip(policies, titles.values(), stems.values(), strict=True)]
    chosen = [printed for printed in ready if options.split in (printed.policy.split, "all")][: options.limit]
    if not chosen:
        raise SourceError(f"{source}: no {options.split} set in it; expected {INFO.expects}, from {INFO.url}")
    if options.split == "all" and len(tables) == 1:
        tally.note("half of the release: the other table is not there", tables[0].name)
    rows = [row for printed in chosen for row in _make_rows(printed, tally)]
    return Benchmark([printed.document for printed in chosen], rows, sha256)


# ---------------------------------------------------------------- the tables


class _Table(NamedTuple):
    rows: list[dict[str, str]]
    marks: list[str]
    """The columns with the annotators' marks: one in the training set, six in the test set."""

    @property
    def split(self) -> str:
        return "train" if self.marks == ["Label"] else "test"


def _find_tables(source: Path) -> list[Path]:
    """Return the training table and then the test table; one of them may be missing."""
    if source.is_file():
        return [source]
    tables = []
    for split in ("train", "test"):
        name = f"policy_{split}_data.csv"
        tables += [find_one(source, INFO, name)] if any(source.rglob(name)) else []
    return tables or [find_one(source, INFO, "policy_*_data.csv")]


def _read_table(path: Path, data: bytes, tally: Tally) -> _Table:
    """Return a table's rows, each as a dictionary by column; raise for wrong columns and for a Git LFS pointer."""
    refuse_pointer(path, data, INFO)
    header, *records = split_cells(decode_table(path, data, tally), "\t") or [[]]
    header = [name.strip() for name in header]
    missing = [name for name in _COLUMNS if name not in header]
    marks = [name for name in header if _ANNOTATOR.fullmatch(name)] or [name for name in header if name == "Label"]
    if missing or not marks:
        what = repr(missing[0]) if missing else "'Ann1' … 'Ann6' (test) or 'Label' (train)"
        raise SourceError(
            f"{path}: no column {what} (its columns: {', '.join(header) or 'none'}); is this PrivacyQA's table?"
        )
    for number, record in enumerate(records, 2):
        # an editor that removes trailing white space also removes trailing empty cells
        if len(record) > len(header) or (record and len(record) < len(header) - len(marks)):
            raise SourceError(
                f"{path}: line {number} has {len(record)} cells, but the header has {len(header)}; "
                f"get the file again from {INFO.url}"
            )
        record += [""] * (len(header) - len(record)) if record else []
    rows = [dict(zip(header, record, strict=True)) for record in records if record]
    if not rows:
        raise SourceError(f"{path}: the table has no rows; get it again from {INFO.url}")
    return _Table(rows, marks)


# ---------------------------------------------------------------- policies


def _read_policies(table: _Table, asked: int, tally: Tally) -> list[_Policy]:
    """Group the rows of a table by policy and question, and number the questions from `asked`.

    Questions are numbered in the order of their first appearance. `asked` is the number of questions in earlier
    tables. Test questions are always numbered as in the whole release, even if the training table is missing.
    """
    # without the training set, the test questions keep their ids of the whole release
    first = max(TRAIN_QUESTIONS, asked) if table.split == "test" else asked
    policies: dict[str, _Policy] = {}
    count = 0
    for row in table.rows:
        key = row["DocID"].strip()
        policy = policies.setdefault(key, _Policy(table.split, key, row.get("Folder", "")))
        query, sentence, words = row["QueryID"].strip(), row["SentID"].strip(), row["Segment"].strip()
        place = f"{key}: question {query}, sentence {sentence}"
        if query not in policy.questions:
            policy.questions[query] = _Question(first + count, query, " ".join(row["Query"].split()))
            count += 1
        if policy.sentences.setdefault(sentence, words) != words:
            tally.fault("sentence with other words than before under its id", place)
        elif policy.questions[query].marks.setdefault(sentence, mark := _mark(row, table.marks, place, tally)) != mark:
            tally.fault("second, different marks for a sentence", place)
    return list(policies.values())


def _mark(row: dict[str, str], columns: Sequence[str], place: str, tally: Tally) -> _Mark:
    marks = Counter(row[column].strip().casefold() for column in columns)
    for odd in sorted(marks.keys() - _NO_MARK - {"relevant", "irrelevant"}):
        tally.fault(f"mark {odd!r} that is neither Relevant nor Irrelevant, counted as blank", place)
    answered = marks["relevant"] + marks["irrelevant"]
    return _Mark(marks["relevant"], answered, len(columns) - answered)


def _list_names(policy: _Policy) -> Iterator[str]:
    """Yield candidate names of a policy, from the shortest to the most precise.

    The app's name is the first: `Fiverr` for the policy `Fiverr _1`.
    """
    numbered = _NUMBERED.fullmatch(policy.key)
    name = " ".join((numbered[1] if numbered else policy.key).split()) or policy.key
    yield name
    parts = [part for part in re.split(r"[/\\]", policy.folder) if part not in ("", ".", "..", "policies")]
    if parts:
        yield f"{name} ({parts[-1]})"
    yield f"{name} ({policy.split} {numbered[2]})" if numbered else f"{name} ({policy.split})"


def _make_printed(policy: _Policy, name: str, stem: str) -> _Printed:
    """Return a policy as text: its title on top, then one sentence per line."""
    title = name if name.casefold().endswith("privacy policy") else f"{name} privacy policy"
    text = f"{title}\n"
    places: dict[str, tuple[int, int]] = {}
    for key in _sort_keys(policy.sentences):
        if policy.sentences[key]:
            places[key] = (len(text) + 1, len(text) + 1 + len(policy.sentences[key]))
            text += f"\n{policy.sentences[key]}"
    blocks = (Block("h1", title), Block("p", text.removeprefix(title).lstrip("\n")))
    return _Printed(policy, RawDocument(f"{stem}.pdf", title, text=text, blocks=blocks), places)


def _sort_keys(keys: Iterable[str]) -> list[str]:
    """Return sentence ids sorted by the number at their end (`_10` after `_9`); ids without a number come last."""
    numbers = {key: _NUMBERED.fullmatch(key) for key in keys}
    return sorted(numbers, key=lambda key: int(match[2]) if (match := numbers[key]) else sys.maxsize)


# ---------------------------------------------------------------- questions


def _make_rows(printed: _Printed, tally: Tally) -> Iterator[RawRow]:
    policy, document, places = printed
    for question in policy.questions.values():
        name = f"{policy.key}: question {question.key}"
        if not question.text:
            tally.fault("question without words", name)
            continue
        if any(mark.blank > MOST_BLANK or not mark.answered for mark in question.marks.values()):
            tally.leave_out(f"a sentence with more than {MOST_BLANK} annotators blank, or with no mark at all", name)
            continue
        half = {key for key, mark in question.marks.items() if mark.relevant and 2 * mark.relevant >= mark.answered}
        gold = [key for key in places if key in half]
        yield RawRow(
            id=question.id,
            question=f"Consider the {document.title}; {question.text}",
            answer=" ".join(policy.sentences[key] for key in gold),
            quotes=tuple(_quote(printed, key, question.marks[key]) for key in gold),
            filename=document.filename,
            is_impossible=not gold,
            labels={"split": policy.split, "policy": policy.key, "query": question.key},
            place=name,
        )


def _quote(printed: _Printed, key: str, mark: _Mark) -> Quote:
    words = printed.policy.sentences[key]
    labels = (("sentence", key), ("relevant", mark.relevant), ("annotators", mark.answered))
    return Quote(printed.document.filename, words, spans=(printed.places[key],), labels=labels)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
