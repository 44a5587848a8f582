"""Turns a log of questions, replies and feedback into draft test cases, which a person then completes.

exhibit convert log LOG.jsonl --documents contracts/ --out datasets_out/complaints
"""

import hashlib
import re
import sys
from argparse import Namespace
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.converters import Benchmark, Quote, RawRow, Tally, read_info
from exhibit.converters.benchmark import Label
from exhibit.converters.fetching.fetch import Policy
from exhibit.converters.raw.cells import list_cell_values, read_cell_text, read_cell_words
from exhibit.converters.raw.documents import Shelf
from exhibit.converters.raw.records import ENDINGS, Record, read_records
from exhibit.converters.raw.source import find_one
from exhibit.converters.steps.cli import main
from exhibit.evidence.fields import FIELDS, choose_name, flatten_object, name_key
from exhibit.law.language import list_content_words, list_numbers, stem
from exhibit.schemas.errors import SourceError
from exhibit.schemas.models import DraftInfo

INFO = read_info(__file__)
_ALIKE = 0.8
"""Share of common content words from which two questions are the same; their numbers must be equal."""
_DOWN = {name_key(name) for name in FIELDS["complaint"]}
_UP = {name_key(name) for name in FIELDS["praise"]}
_RATING = re.compile(r"([+-]?\d{1,15}(?:\.\d{1,15})?)(?:\s*(?:/|(?:out )?of)\s*(\d{1,3}))?")
"""A number, with or without its scale: `-1`, `4/5`, `4 out of 5`."""
_POOR, _GOOD = 0.4, 0.8
"""Shares of the best rating up to which a rating is a complaint, and from which it is praise: 2 and 4 of 5."""
_MASKS = {
    "[e-mail]": re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"),
    "[IBAN]": re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,4})?\b"),
    "[telephone]": re.compile(r"(?<![\w.,])\+?\(?\d{2,4}\)?[ /-]\d{2,4}[ /-]?\d{2,4}(?:[ /-]?\d{2,4})?(?![\w.,]\d)"),
    "[number]": re.compile(r"(?<![\w.,])\d{8,}(?!\w)"),
}


class _Opinion(NamedTuple):
    """A user's opinion on a reply, such as a thumb or a rating.

    `value` is the opinion as the log states it. `series` is the same for all opinions that use one rating
    scale. `best` is the best rating of the scale; None if it is unknown.
    """

    value: str
    series: str
    best: float | None

    @property
    def rating(self) -> tuple[float | None, float | None]:
        """The opinion's value as a number, and the best rating of its scale: `4/5` gives 4 and 5.

        Both are None if the value is not a number. The best rating is None if the scale is unknown.
        """
        match = _RATING.fullmatch(self.value)
        if match is None:
            return None, None
        return float(match[1]), float(match[2]) if match[2] else self.best


class _Logged(NamedTuple):
    question: str
    answer: str
    sources: tuple[str, ...]
    feedback: str
    record: Record


def run(argv: Sequence[str]) -> int:
    """Run the converter of logs; the path of the log may be the first argument, instead of `--source PATH`."""
    given = list(argv)
    if given and not given[0].startswith("-"):
        given.insert(0, "--source")
    return main(sys.modules[__name__], given)


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:
    """Read the log; each distinct question becomes a draft with its reply and the source files that the log names."""
    path = find_one(source, INFO, *(f"*{ending}" for ending in ENDINGS))
    data = path.read_bytes()
    records = read_records(path, data, tally)
    shelf = Shelf(path, options.documents, True, Policy())
    logged = list(_read_logged(records, shelf, options, tally))
    if records and not logged and not tally.left_out:
        columns = ", ".join(dict.fromkeys(name for record in records for name in record.cells))
        raise SourceError(f"{path}: no row has a question (its fields: {columns}); rename the field to `question`")
    names = list(dict.fromkeys(name for one in logged for name in one.sources))
    documents = shelf.find(names, tally) if shelf.folder else {}
    others = shelf.find_others(documents, take=True, limited=False, tally=tally) if shelf.folder else {}
    rows = []
    for group in _group_by_question(logged):
        first = next((one for one in group if one.feedback == "down"), group[0])
        files = list(dict.fromkeys(name for one in group for name in one.sources if name in documents))
        labels: dict[str, Label] = {"draft": "unsure", "asked": len(group), "feedback": first.feedback}
        labels["complaints"] = sum(one.feedback == "down" for one in group)
        rows.append(
            RawRow(
                id=first.record.index,
                question=first.question,
                answer=first.answer,
                quotes=tuple(Quote(documents[name].filename, None) for name in files),
                filename=documents[files[0]].filename if files else None,
                labels=labels,
                items=tuple(one.record.item for one in group),
                place=first.record.place,
            )
        )
    kept = {document.filename: document for document in (*documents.values(), *others.values())}
    name = options.name or path.stem
    info = replace(INFO, name=name, title=name, benchmark=name)
    sha256 = {path.name: hashlib.sha256(data).hexdigest()}
    return Benchmark(list(kept.values()), rows, sha256, info=info, draft=DraftInfo())


def _read_logged(records: Sequence[Record], shelf: Shelf, options: Namespace, tally: Tally) -> Iterator[_Logged]:
    flat = [
        {name.removeprefix("attributes."): cell for name, cell in flatten_object(_parse_cells(record.cells)).items()}
        for record in records
    ]
    opinions = [list(_opinions(record.cells, cells)) for record, cells in zip(records, flat, strict=True)]
    graded = {one.series for some in opinions for one in some if (one.rating[0] or 0) > 1}
    for record, cells, stated in zip(records, flat, opinions, strict=True):
        question = _find_said(record.cells, cells, "logged-question", "question")
        answer = _find_said(record.cells, cells, "logged-answer", "answer")
        if not question or not answer:
            tally.fault("row of the log without a question or a reply", record.place, item=record.item)
            continue
        feedback = next(filter(None, (_read_verdict(one, graded) for one in stated)), "")
        if options.complaints and feedback != "down":
            tally.leave_out("no complaint (--complaints)", record.place, item=record.item)
            continue
        if options.mask:
            question, answer = _mask(question), _mask(answer)
        yield _Logged(question, answer, tuple(_find_sources(cells, record.cells, shelf)), feedback, record)


def _parse_cells(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its JSON strings parsed: exports write inputs and outputs as strings."""
    opened = {}
    for name, cell in cells.items():
        held = list_cell_values(cell) if isinstance(cell, str) and cell.strip().startswith("{") else []
        opened[name] = held[0] if len(held) == 1 and isinstance(held[0], dict) else cell
    return opened


def _find_said(row: Mapping[str, Any], cells: Mapping[str, Any], field: str, role: str) -> str:
    name = choose_name(cells, field)
    if name is not None:
        return read_cell_text(cells[name], role)
    whole = choose_name(row, field)
    return read_cell_text(row[whole], role) if whole is not None else ""


def _find_sources(cells: Mapping[str, Any], row: Mapping[str, Any], shelf: Shelf) -> Iterator[str]:
    """Yield the files of the documents folder that the log names as the sources of a reply."""
    for mapping in (cells, row):
        name = choose_name(mapping, "logged-sources")
        for value in list_cell_values(mapping[name]) if name is not None else ():
            texts = flatten_object(value).values() if isinstance(value, dict) else [value]
            found = next((one for text in texts if (one := shelf.find_named(read_cell_words(text))) is not None), None)
            if found is not None:
                yield found[0]


def _opinions(row: Mapping[str, Any], cells: Mapping[str, Any]) -> Iterator[_Opinion]:
    """Yield the users' ratings of a reply that a row of the log contains.

    A rating may be a word, a number or a named score.
    """
    for mapping in (cells, row):
        name = choose_name(mapping, "feedback")
        if name is None:
            continue
        parent = name.rpartition(".")[0]
        beside = {key: held for key, held in mapping.items() if key.rpartition(".")[0] == parent}
        for value in list_cell_values(mapping[name]):
            fields = flatten_object(value) if isinstance(value, dict) else {name: value}
            stated = [key for key in fields if choose_name([key], "opinion") is not None]
            best = _best_rating(fields if isinstance(value, dict) else beside)
            for key in stated or fields:
                if words := read_cell_words(fields[key]):
                    yield _Opinion(words, f"{name} {key} {fields.get('name')}", best)


def _best_rating(fields: Mapping[str, Any]) -> float | None:
    name = choose_name(fields, "best-rating")
    match = _RATING.fullmatch(read_cell_words(fields[name])) if name is not None else None
    return float(match[1]) if match else None


def _read_verdict(opinion: _Opinion, graded: Container[str]) -> str:
    """Return `up` or `down` for a user's opinion of a reply; empty if the opinion is neither.

    If the best rating of the scale is unknown, a rating of 0 or less is `down`, and a rating of 1 is `up`. But
    1 is not `up` if the log has higher ratings on the same scale, because 1 may then be the lowest rating.
    `graded` has the `series` (the scale's name) of every scale with ratings above 1.
    """
    number, best = opinion.rating
    if number is None:
        key, sign = name_key(opinion.value), {"👍": "up", "👎": "down"}.get(opinion.value[:1], "")
        return sign or ("down" if key in _DOWN else "up" if key in _UP else "")
    if best is None:
        return "down" if number <= 0 else "up" if number == 1 and opinion.series not in graded else ""
    return "down" if number <= _POOR * best else "up" if number >= _GOOD * best else ""


def _mask(text: str) -> str:
    for mark, pattern in _MASKS.items():
        text = pattern.sub(mark, text)
    return text


def _group_by_question(logged: Sequence[_Logged]) -> list[list[_Logged]]:
    """Group the rows by question.

    Two wordings are one question if they have the same numbers and nearly the same content words.
    """
    groups: list[tuple[frozenset[str], tuple[str, ...], list[_Logged]]] = []
    exact: dict[tuple[frozenset[str], tuple[str, ...]], list[_Logged]] = {}
    for one in logged:
        key = frozenset(map(stem, list_content_words(one.question))), tuple(sorted(list_numbers(one.question)))
        group = exact.get(key)
        if group is None:
            near = (
                rows for terms, figures, rows in groups if figures == key[1] and _compute_share(terms, key[0]) >= _ALIKE
            )
            group = next(near, None)
        if group is None:
            group = []
            groups.append((*key, group))
        exact.setdefault(key, group).append(one)
    return [rows for _, _, rows in groups]


def _compute_share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
