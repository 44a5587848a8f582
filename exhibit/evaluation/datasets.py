"""Load bundles as datasets: the questions to ask, the documents, and the locations of the gold in them."""

import glob
import json
import random
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from exhibit.engine import Limits, track
from exhibit.evaluation.ambiguity import settle_ambiguous
from exhibit.evaluation.cases import Case, GoldPassage, Turn, with_choices
from exhibit.evaluation.corpus_files import check_files, check_questions, find_changed_tables
from exhibit.evaluation.documents import GRADE, GRADES, Documents, read_grades
from exhibit.evaluation.label_choices import offers_of
from exhibit.evidence import Span, is_readable
from exhibit.evidence.read import ending_of
from exhibit.schemas.bundle import GOLD, INFO, Question
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.layout import ANSWER_FROM
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import BundleFolder, mirror_bundle, open_bundle
from exhibit.storage.locations import Location, Remote, expand, list_file, origin_of, parse_location

ALL_TYPES = "all"


@dataclass(frozen=True)
class Selection:
    """Which documents and questions of each dataset are used."""

    file_types: tuple[str, ...] = ()
    """The file extensions, without the dot; empty = PDF where all gold is in PDFs, else `all`.

    A file without an extension counts by its content.
    """
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The wanted values of each label; a question must have one of them for every label."""
    limit: int | None = None
    sample_seed: int | None = None
    """Draw the limited questions at random with this seed; None = take the first ones."""
    allow_changed_corpus: bool = False
    """Whether questions are scored although their documents differ from bundle.json."""
    label: str = ""
    """The label that systems are asked to choose; empty = none."""
    needs_documents: bool = True
    """Whether a dataset without documents is an error; a server may already have them."""


@dataclass(frozen=True)
class Dataset:
    """A bundle loaded for a run: its questions as cases without replies, and its documents."""

    name: str
    root: Path
    cases: tuple[Case, ...]
    files: Mapping[str, Location]
    documents: Documents = field(compare=False)
    groups: str | None = None
    warnings: tuple[str, ...] = ()
    refused: Mapping[int | str, str] = field(default_factory=dict)
    """The questions that fail before they are asked, by id with the reason."""
    changed: tuple[str, ...] = ()
    """Files that differ from the record in bundle.json."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The sha256 of every file that was read, by its path in the bundle."""
    headline: str | None = None
    """The main metric of the benchmark."""


# ---------------------------------------------------------------- which folders


def find_datasets(
    patterns: Sequence[str | Path], origins: Mapping[str, str] | None = None
) -> tuple[dict[str, Path], list[str], list[str]]:
    """Return the dataset folders by name, the notes about skipped paths, and the problems.

    A downloaded folder is named after its origin, `hf://owner/name@commit`: its own name is a commit hash.

    A shell expands `datasets_out/*` to everything there, so files and unfinished folders are skipped with a note.
    """
    problems: list[str] = []
    notes: list[str] = []
    folders: dict[str, Path] = {}
    for path in _expand(patterns, problems, notes):
        if path.is_file() or path.name.endswith(".partial"):
            notes.append(f"{path}: not a dataset folder; skipped")
            continue
        origin = (origins or {}).get(str(path), "").partition("@")[0]
        remote = origin_of(path)
        name = remote.name if remote else origin.rpartition("/")[2] or path.resolve().name
        other = folders.setdefault(name, path)
        if other.resolve() != path.resolve():
            problems.append(f"{path}: another dataset has the name {name!r}: {other}; rename one of the folders")
    if not folders and not problems:
        problems.append("no dataset given; name a folder with train.json and corpus/, such as datasets_out/cuad")
    return folders, notes, problems


def _expand(patterns: Iterable[str | Path], problems: list[str], notes: list[str]) -> Iterator[Path]:
    for given in map(str, patterns):
        location = parse_location(given)
        if isinstance(location, Remote):
            yield from _mirror_bundles(location, problems, notes)
            continue
        pattern = str(location)
        if not glob.has_magic(pattern) or Path(pattern).exists():
            yield Path(pattern)
            continue
        # hidden files and folders are not datasets, and glob skips them
        paths = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207  (patterns may be absolute)
        if not paths:
            problems.append(f"{pattern}: matches nothing")
        yield from map(Path, paths)


def _mirror_bundles(pattern: Remote, problems: list[str], notes: list[str]) -> Iterator[Path]:
    """Yield a local cached folder for each remote bundle that a pattern matches.

    With `*`, matches without a bundle.json are skipped with a note.
    """
    try:
        roots = expand(pattern)
        if not roots:
            problems.append(f"{pattern}: matches nothing")
        for root in roots:
            if root != pattern and list_file(root / INFO) is None:
                notes.append(f"{root}: has no {INFO}; skipped")
            else:
                yield mirror_bundle(root)
    except ToolkitError as error:
        problems.append(str(error))


def load_datasets(
    patterns: Sequence[str | Path],
    selection: Selection,
    *,
    origins: Mapping[str, str] | None = None,
    limits: Limits | None = None,
) -> tuple[list[Dataset], list[str]]:
    """Return the datasets that `patterns` name (paths or URLs, such as `datasets_out/*`), and the warnings.

    All bundles are checked first. If there are problems, raise one error that lists all problems.
    """
    folders, warnings, problems = find_datasets(patterns, origins)
    bundles: dict[str, BundleFolder] = {}
    for name, folder in folders.items():
        try:
            bundles[name] = open_bundle(folder)
            problems += [] if selection.allow_changed_corpus else find_changed_tables(bundles[name])
        except BundleError as error:
            problems.append(str(error))
    wanted = " or ".join(selection.file_types) or "readable"
    without = {
        name: f"{bundle.address}: no {wanted} file in corpus/; it has {_list_endings(bundle)}"
        for name, bundle in bundles.items()
        if not choose_files(bundle, selection) and (bundle.files or selection.needs_documents)
    }
    if without and len(without) == len(bundles):
        problems += without.values()
    elif without:  # `datasets_out/*` may include a dataset without such files: the others are still tested
        warnings += [f"{reason}; left out" for reason in without.values()]
        bundles = {name: bundle for name, bundle in bundles.items() if name not in without}
    everything = replace(selection, file_types=(ALL_TYPES,))
    for bundle in bundles.values():
        others = len(choose_files(bundle, everything)) - len(choose_files(bundle, selection))
        if others and not selection.file_types:
            warnings.append(
                f"{bundle.address}: {others} files that are not PDFs are left out; use --file-type all to include them"
            )
    asked = {name: choose_questions(bundle, selection) for name, bundle in bundles.items()}
    if not problems and not any(asked.values()):
        problems.append(_explain_nothing_asked(list(bundles.values()), selection))
    if problems:
        raise BundleError("\n".join(problems))
    warnings += [f"{bundles[name].address}: no question is selected; left out" for name in bundles if not asked[name]]
    datasets = [_make_dataset(name, bundles[name], asked[name], selection, limits) for name in bundles if asked[name]]
    warnings += find_lone_variants({one.name: one.cases[0].labels for one in datasets if one.cases})
    return datasets, [*warnings, *(warning for dataset in datasets for warning in dataset.warnings)]


def find_lone_variants(labels: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning for each dataset that is a variant without its control among the datasets.

    A variant is a bundle with altered documents; its control is the same bundle without the alterations.
    `labels` maps the name of each dataset to the labels of one of its questions.
    """
    controls = {own.get("pair") for own in labels.values() if own.get("varied") == "control"}
    return [
        f"{name}: a variant ({own['varied']}) without its control; evaluate the control as well: the difference "
        "between the two is the effect"
        for name, own in labels.items()
        if own.get("varied") not in (None, "control") and own.get("pair") not in controls
    ]


def _list_endings(bundle: BundleFolder) -> str:
    counts = Counter(ending_of(path) or "no ending" for path in bundle.files.values())
    return ", ".join(f"{count} {ending}" for ending, count in sorted(counts.items())) or "none"


def _explain_nothing_asked(bundles: Sequence[BundleFolder], selection: Selection) -> str:
    if not selection.where:
        return "no dataset has a question"
    seen = [
        f"{label}: {', '.join(sorted(values)[:12]) or 'no such label'}"
        for label in selection.where
        for values in [{str(row[label]) for bundle in bundles for row in bundle.labels.values() if label in row}]
    ]
    return f"no question has the labels of --where; the values are {'; '.join(seen)}"


# ---------------------------------------------------------------- which files and questions


def choose_files(bundle: BundleFolder, selection: Selection) -> dict[str, Location]:
    """Return the files to ingest: those of the selected file types.

    If no type is selected, they are the PDFs if all gold is in PDFs, else all readable files.
    """
    if selection.file_types and selection.file_types != (ALL_TYPES,):
        return {n: p for n, p in bundle.files.items() if ending_of(p).lstrip(".") in selection.file_types}
    files = {name: path for name, path in bundle.files.items() if is_readable(path)}
    pdfs = {name: path for name, path in files.items() if ending_of(path) == ".pdf"}
    named = {context.filename for question in bundle.questions for context in question.contexts} - {None}
    return pdfs if not selection.file_types and pdfs and named <= pdfs.keys() else files


def choose_questions(bundle: BundleFolder, selection: Selection) -> list[Question]:
    """Return the selected questions, in the order of train.json."""
    labels: Mapping[Any, Mapping[str, Any]] = bundle.labels
    questions = [
        question
        for question in bundle.questions
        if all(str(labels.get(question.id, {}).get(name)) in values for name, values in selection.where.items())
    ]
    if selection.limit is None or selection.limit >= len(questions):
        return questions
    if selection.sample_seed is None:
        return questions[: selection.limit]
    drawn = random.Random(selection.sample_seed).sample(range(len(questions)), selection.limit)
    return [questions[index] for index in sorted(drawn)]


# ---------------------------------------------------------------- cases


def _make_dataset(
    name: str, bundle: BundleFolder, questions: Sequence[Question], selection: Selection, limits: Limits | None
) -> Dataset:
    files = check_files(bundle, choose_files(bundle, selection), allow_changed=selection.allow_changed_corpus)
    lines: dict[tuple[int | str, int | None], Gold] = {(line.id, line.context): line for line in bundle.gold}
    grades = read_grades(bundle.gold, where=f"{bundle.address}/{GOLD}")
    documents = Documents(files.used, limits=limits)
    composed = {unicodedata.normalize("NFC", name): name for name in files.used}
    offers = offers_of(selection.label, bundle.labels, where=bundle.address) if selection.label else {}
    cases = []
    for question in track(questions, total=len(questions), label=f"{name}: gold", unit="question"):
        golds = []
        for index, context in enumerate(question.contexts):
            line = lines.get((question.id, index))
            has_words = bool(context.text and context.text.strip())
            known = line is not None and (has_words or bool(line.spans))  # a section is a place without a quote
            filename = context.filename
            if filename and filename not in files.used:  # else é may be written in another Unicode form
                loose = None if known else documents.named(filename)
                filename = composed.get(unicodedata.normalize("NFC", filename)) or loose or filename
            gold = _make_placed_gold(line) if line and known else _locate_gold(filename, context.text, documents)
            pages = gold.pages or (tuple(line.pages) if line else ())
            golds.append(replace(gold, filename=filename or gold.filename, text=context.text, pages=pages))
        golds = settle_ambiguous(golds, documents)
        case = _make_case(question, golds, lines.get((question.id, None)), bundle.labels, grades.get(question.id, {}))
        if offer := offers.get(question.id):
            asked = with_choices(case.question, offer.choices, offer.asked)
            case = replace(case, question=asked, choices=offer.choices, label=offer.label)
        cases.append(case)
    refused, warnings = check_questions(
        bundle, files, {case.id: case.ends for case in cases}, documents,
        allow_changed=selection.allow_changed_corpus, needs_documents=selection.needs_documents,
    )  # fmt: skip
    return Dataset(
        name,
        bundle.root,
        tuple(cases),
        files.used,
        documents,
        bundle.info.groups if bundle.info else None,
        warnings,
        refused,
        files.changed,
        files.digests,
        bundle.info.headline if bundle.info else None,
    )


def _make_case(
    question: Question,
    golds: Sequence[GoldPassage],
    line: Gold | None,
    labels: Mapping[Any, Any],
    grades: dict[str, int],
) -> Case:
    named = [gold.filename for gold in golds] + ([line.filename] if line else [])
    return Case(
        id=question.id,
        question=question.question,
        truth="" if labels.get(question.id, {}).get(ANSWER_FROM) else question.answer,
        gold=tuple(golds),
        is_impossible=question.is_impossible,
        filename=next((name for name in named if name), None),
        history=tuple(read_history(labels.get(question.id, {}).get("history"))),
        # grades describe files, not the question; as a label they would list up to a thousand names
        labels={name: value for name, value in labels.get(question.id, {}).items() if name not in (GRADE, GRADES)},
        grades=grades,
    )


def read_history(turns: Any) -> Iterator[Turn]:
    """Yield the earlier turns of a conversation, from a list of messages with a role or of plain texts.

    Plain texts are from the user and the assistant in turn; the first is the user's. The list may be a JSON
    string, as in the labels of gold.jsonl. A string that is not JSON is one message.
    """
    if isinstance(turns, str):
        try:
            turns = json.loads(turns) if turns.lstrip().startswith("[") else [turns]
        except ValueError:
            turns = [turns]
    for number, one in enumerate(turns if isinstance(turns, list) else ()):
        if isinstance(one, Mapping) and isinstance(one.get("content"), str):
            yield Turn(str(one.get("role") or "user"), one["content"])
        elif isinstance(one, str):
            yield Turn("assistant" if number % 2 else "user", one)


def _make_placed_gold(line: Gold) -> GoldPassage:
    """Return the gold passage that a line of gold.jsonl describes."""
    places = [line.spans, *line.alternatives] if line.spans else []
    spans = tuple(tuple(Span(*span) for span in place) for place in places)
    return GoldPassage(line.filename, None, spans, tuple(line.pages), absent=not places, how=line.how)


def _locate_gold(filename: str | None, text: str | None, documents: Documents) -> GoldPassage:
    """Search for a gold passage whose position gold.jsonl does not give; return the passage with its position.

    The search covers the document `filename`, or all documents if `filename` is None. If several documents
    contain the text, the result has no file and no position.
    """
    if not text or not text.strip():
        return GoldPassage(filename, None)
    matches = documents.find_matches(text, filename)
    if not matches:
        searched = bool(documents.files) if filename is None else documents.get(filename) is not None
        return GoldPassage(filename, None, absent=searched, how="absent")
    name, first = matches[0]
    if len({name for name, _ in matches}) > 1:
        return GoldPassage(None, None, how=first.how)
    document = documents.get(name)
    pages = sorted({page for span in first.spans for page in document.pages_of(span)}) if document else []
    return GoldPassage(name, None, tuple(match.spans for _, match in matches), tuple(pages), how=first.how)
