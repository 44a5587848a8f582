"""Load bundles as datasets: the questions to ask, the documents, and the locations of the gold in them."""

import difflib
import glob
import json
import random
import unicodedata
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from exhibit.engine import Limits, track
from exhibit.evaluation.cases import Case, GoldPassage, Turn, with_choices
from exhibit.evaluation.placement import Documents, settle_ambiguous
from exhibit.evidence import Span, is_readable
from exhibit.evidence.read import ending_of
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN, LooseContext, Question
from exhibit.schemas.errors import BundleError, SourceError, ToolkitError
from exhibit.schemas.layout import ANSWER_FROM
from exhibit.schemas.models import Gold
from exhibit.schemas.parsing import LazyLines, parse_json
from exhibit.storage.atomic import write_whole
from exhibit.storage.bundle import BundleFolder, mirror_bundle, open_bundle, sha256_of
from exhibit.storage.cache import find_cache_folder
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
    """Return the dataset folders by name, the notes about skipped paths, and the problems."""
    problems: list[str] = []
    notes: list[str] = []
    folders: dict[str, Path] = {}
    for path in _expand(patterns, problems, notes):
        if path.name.endswith(".partial") or (path.is_file() and path.name != TRAIN):
            notes.append(f"{path}: not a dataset folder; skipped")
            continue
        if problem := _explain_no_bundle(path):
            problems.append(problem)
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
        elif not glob.has_magic(given) or Path(given).exists():
            yield Path(given)
        else:
            # hidden files and folders are not datasets, and glob skips them
            paths = sorted(glob.glob(given, recursive=True))  # noqa: PTH207  (patterns may be absolute)
            if not paths:
                problems.append(f"{given}: matches nothing")
            yield from map(Path, paths)


def _explain_no_bundle(path: Path) -> str:
    """Return why a path is not a bundle, and what to do; empty if it may be one."""
    if path.is_file():
        return f"{path}: a file of a bundle; name the folder: {path.parent}"
    if not path.exists():
        others = [other.name for other in path.parent.iterdir() if other.is_dir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, others, n=1)
        return f"{path}: no such folder" + (f"; did you mean {path.parent / near[0]}?" if near else "")
    if (path / TRAIN).is_file() or (path / CORPUS).exists():
        return ""
    if any(path.glob(f"*/{TRAIN}")):
        return f"{path}: a folder of bundles, not a bundle; name them as {path}/*"
    if any(is_readable(file) for file in path.iterdir() if file.is_file()):
        return (
            f"{path}: documents without questions ({TRAIN}); draft questions first: exhibit draft {path} --out "
            f"datasets_out/{path.resolve().name}"
        )
    return ""


def _mirror_bundles(pattern: Remote, problems: list[str], notes: list[str]) -> Iterator[Path]:
    """Yield a local cached folder for each remote bundle that a pattern matches."""
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
    """Return the datasets that `patterns` name (paths or URLs, such as `datasets_out/*`), and the warnings."""
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
    """Return a warning for each dataset that is a variant without its control among the datasets."""
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
    known, meant = [], []
    for label, wanted in selection.where.items():
        values = sorted({str(row[label]) for bundle in bundles for row in bundle.labels.values() if label in row})
        known.append(f"{label}: {', '.join(values[:12]) or 'no such label'}")
        by_case = {value.casefold(): value for value in values}
        near = difflib.get_close_matches(wanted[0].casefold(), by_case, n=1)
        meant += [f"--where {label}={by_case[near[0]]}"] if near else []
    hint = f" (did you mean {' '.join(meant)}?)" if meant else ""
    return f"no question has the labels of --where{hint}; the values are {'; '.join(known)}"


# ---------------------------------------------------------------- which files and questions


def choose_files(bundle: BundleFolder, selection: Selection) -> dict[str, Location]:
    """Return the files to ingest: those of the selected file types."""
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
    offers = offers_of(selection.label, bundle.labels, where=bundle.address) if selection.label else {}
    cases = []
    quoted = 0
    for question in track(questions, total=len(questions), label=f"{name}: gold", unit="question"):
        golds = [
            _find_gold(context, lines.get((question.id, index)), documents)
            for index, context in enumerate(question.contexts)
        ]
        if not question.is_impossible and len(golds) == 1 and not golds[0].worded and not golds[0].absent:
            golds = _find_quoted_answer(question.answer, golds[0], documents)
            quoted += bool(golds[0].places)
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
    if quoted:
        note = "the expected answer is the gold, because their document has it word for word and no other gold is given"
        warnings = (*warnings, f"{bundle.address}: {quoted} questions: {note}")
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


def _find_gold(context: LooseContext, line: Gold | None, documents: Documents) -> GoldPassage:
    """Return the gold passage of a context, at the place that gold.jsonl gives, or located by its words."""
    filename = context.filename
    known = line is not None and (bool((context.text or "").strip()) or bool(line.spans))
    if filename and filename not in documents.files:  # é may be written in another Unicode form
        composed = {unicodedata.normalize("NFC", name): name for name in documents.files}
        loose = None if known else documents.named(filename)
        filename = composed.get(unicodedata.normalize("NFC", filename)) or loose or filename
    gold = _make_placed_gold(line) if line and known else _locate_gold(filename, context.text, documents)
    pages = gold.pages or (tuple(line.pages) if line else ())
    return replace(gold, filename=filename or gold.filename, text=context.text, pages=pages)


MIN_QUOTED_WORDS = 8  # a shorter answer may occur in its document by chance


def _find_quoted_answer(answer: str, gold: GoldPassage, documents: Documents) -> list[GoldPassage]:
    """Return the expected answer as gold where the named document has it word for word; else the gold unchanged."""
    if not gold.filename or gold.filename not in documents.files or len(answer.split()) < MIN_QUOTED_WORDS:
        return [gold]
    quoted = _locate_gold(gold.filename, answer, documents)
    return [replace(quoted, text=answer) if quoted.places and quoted.how in ("exact", "folded") else gold]


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
    """Yield the earlier turns of a conversation, from a list of messages with a role or of plain texts."""
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
    """Search for a gold passage whose position gold.jsonl does not give; return the passage with its position."""
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
    pages = document.pages_of(*first.spans) if document else []
    return GoldPassage(name, None, tuple(match.spans for _, match in matches), tuple(pages), how=first.how)


# ---------------------------------------------------------------- grades

GRADE = "grade"
"""The label with the grade of a gold passage's file."""
GRADES = "grades"
"""The label, on one line of a row, with all grades of the row: a JSON object from file name to grade."""


GRADE_RANGE = range(5)
"""Other numbers belong to another grading scale, which the metrics do not know."""


def read_grades(lines: Iterable[Gold], *, where: str) -> dict[int | str, dict[str, int]]:
    """Return the relevance grades: a mapping from question id to a mapping from file to grade."""
    by_question: dict[int | str, dict[str, int]] = {}
    for line in lines:
        grades = _read_all_grades(line, where)
        own = line.labels.get(GRADE)
        if type(own) is int and own in GRADE_RANGE and line.filename:
            grades[line.filename] = max(own, grades.get(line.filename, own))
        for file, grade in grades.items():
            row = by_question.setdefault(line.id, {})
            row[file] = max(grade, row.get(file, grade))
    return by_question


def _read_all_grades(line: Gold, where: str) -> dict[str, int]:
    label = line.labels.get(GRADES)
    if not isinstance(label, str):
        return {}
    try:
        grades = json.loads(label)
    except ValueError:
        grades = None
    if not isinstance(grades, dict) or not all(
        type(grade) is int and grade in GRADE_RANGE for grade in grades.values()
    ):
        raise BundleError(
            f"{where}: row {line.id}: labels.{GRADES} must be a JSON object from file name to a grade of 0 to 4"
        )
    return grades


# ---------------------------------------------------------------- files, and questions that cannot be scored on them

_MAX_LISTED = 3  # file names in one message
_ALLOW_FLAG = "--set allow_changed_corpus=true"
_CHANGED_FILE = f"not the file that {INFO} records (sha256 differs), so its gold may be anywhere"


@dataclass(frozen=True)
class CorpusFiles:
    """The documents that an evaluation uses, and the differences between the files and bundle.json."""

    used: Mapping[str, Location]
    digests: Mapping[str, str]
    """The sha256 of each document in use, and of train.json, gold.jsonl and bundle.json."""
    changed: tuple[str, ...] = ()
    """Files whose content differs from the record in bundle.json."""
    stray: tuple[str, ...] = ()
    """Files that bundle.json does not list."""


def find_changed_tables(bundle: BundleFolder) -> list[str]:
    """Return an error message for each of `train.json` and `gold.jsonl` that was changed."""
    recorded = bundle.info.files if bundle.info else {}
    return [
        f"{bundle.address}/{name}: not the file that {INFO} records (sha256 differs): convert the bundle again, or "
        f"score it as it is with {_ALLOW_FLAG}"
        for name in (TRAIN, GOLD)
        if name in recorded and _compute_digest(bundle.root / name) != recorded[name].sha256
    ]


def check_files(bundle: BundleFolder, files: Mapping[str, Location], *, allow_changed: bool) -> CorpusFiles:
    """Compare the files with their checksums in bundle.json, and return the files to use."""
    entries = bundle.info.files.items() if bundle.info else ()
    recorded = {PurePosixPath(name).name: entry.sha256 for name, entry in entries if name.startswith(f"{CORPUS}/")}
    digests = {name: _compute_digest(path) for name, path in sorted(files.items())}
    stray = tuple(name for name in digests if recorded and name not in recorded)
    changed = tuple(name for name in digests if digests[name] != recorded.get(name, digests[name]))
    used = {name: path for name, path in files.items() if allow_changed or name not in stray}
    tables = {name: sha256_of(bundle.root / name) for name in (INFO, TRAIN, GOLD) if (bundle.root / name).is_file()}
    return CorpusFiles(used, tables | {f"{CORPUS}/{name}": digests[name] for name in sorted(used)}, changed, stray)


def _compute_digest(path: Location) -> str:
    """Return the sha256 of a file; empty where the file cannot be opened."""
    try:
        return sha256_of(path)
    except OSError:
        return ""


# ---------------------------------------------------------------- questions that cannot be scored


def check_questions(
    bundle: BundleFolder,
    files: CorpusFiles,
    ends: Mapping[int | str, Mapping[str, int]],
    documents: Documents,
    *,
    allow_changed: bool,
    needs_documents: bool,
) -> tuple[dict[int | str, str], tuple[str, ...]]:
    """Return the questions that cannot be scored, as a mapping from id to reason, and the warnings."""
    entries = bundle.info.documents if bundle.info else []
    lengths = {entry.filename: entry.characters for entry in entries if entry.filename not in files.changed}
    available = files.used if needs_documents else bundle.files
    refused: dict[int | str, str] = {}
    lost: dict[str, list[tuple[str, int | str]]] = {}
    """By reason, the files and the questions about them."""
    beyond = 0
    for id, last in ends.items():
        for name in sorted(last):
            if reason := _explain_unusable(name, bundle, files, available, allow_changed):
                consequence = "" if reason == _CHANGED_FILE else ", so no system can find it there"
                refused.setdefault(id, f"{name}: {reason}{consequence}")
                lost.setdefault(reason, []).append((name, id))
        for name, end in last.items() if id not in refused else ():
            if end and name not in lengths and (document := documents.get(name)):
                lengths[name] = len(document.text)
            if end > lengths.get(name, end):
                fault = f"the gold ends at character {end}, but the document has {lengths[name]}"
                refused[id] = f"{name}: {fault}; convert the bundle again"
                beyond += 1
    return refused, tuple(_make_warnings(bundle, files, len(ends), beyond, lost, allow_changed))


def _explain_unusable(
    name: str, bundle: BundleFolder, files: CorpusFiles, available: Collection[str], allow_changed: bool
) -> str:
    """Return the reason why no question about a document can be scored; empty if there is no such reason."""
    if name in files.changed and not allow_changed:
        return _CHANGED_FILE
    if name in available or not bundle.files:
        return ""
    by_type = name in bundle.files and name not in files.stray
    return "left out by their type (--file-type)" if by_type else "not in corpus/"


def _make_warnings(
    bundle: BundleFolder,
    files: CorpusFiles,
    cases: int,
    beyond: int,
    lost: Mapping[str, Sequence[tuple[str, int | str]]],
    allow_changed: bool,
) -> Iterator[str]:
    if files.changed:
        what = "scored nevertheless" if allow_changed else "failed"
        yield (
            f"{bundle.address}: {len(files.changed)} files differ from {INFO} ({_list_names(files.changed)}); their "
            f"questions are {what} ({_ALLOW_FLAG})"
        )
    if files.stray:
        what = "used nevertheless" if allow_changed else "left out"
        listed = f"{len(files.stray)} files that {INFO} lacks ({_list_names(files.stray)})"
        yield f"{bundle.address}: {listed} are {what} ({_ALLOW_FLAG})"
    for reason, pairs in sorted(lost.items()):
        if reason != _CHANGED_FILE:
            names, ids = sorted({name for name, _ in pairs}), {id for _, id in pairs}
            yield (
                f"{bundle.address}: the gold of {len(ids)} of {cases} questions is in {len(names)} files that are "
                f"{reason}: {_list_names(names)}; they are failed"
            )
    if beyond:
        yield f"{bundle.address}: {beyond} questions have gold beyond the end of their document; they are failed"
    known = {question.id for question in bundle.questions}
    if stray := sum(line.id not in known for line in bundle.gold):
        yield f"{bundle.address}: {stray} lines of {GOLD} have an id that {TRAIN} does not have; they are left out"


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:_MAX_LISTED]) + (" …" if len(names) > _MAX_LISTED else "")


# ---------------------------------------------------------------- labels to choose from

_MAX_CHOICES = 12
"""A label with more values than this identifies a question; systems are not asked to choose from so many."""


class Offer(NamedTuple):
    """The labels from which a question asks the system to choose one, and the right label."""

    choices: tuple[str, ...]
    label: str
    """The label that the source gives."""
    asked: str = ""
    """The subject of the choice, where the label names one."""


def offers_of(label: str, rows: Mapping[Any, Mapping[str, Any]], *, where: str) -> dict[Any, Offer]:
    """Return, for each question that has the label, the choices to offer and the right choice."""
    labels = {id: str(row[label]) for id, row in rows.items() if row.get(label) is not None}
    finer = {
        id: [tuple(pair.split(": ", 1)) for pair in value.split("; ") if ": " in pair] for id, value in labels.items()
    }
    if not all(finer.values()) or not labels:
        finer = {id: [("", value)] for id, value in labels.items()}
    values: dict[str, set[str]] = {}
    for name, value in (pair for pairs in finer.values() for pair in pairs):
        values.setdefault(name, set()).add(value)
    offered = {}
    for id, pairs in finer.items():
        open_pairs = [pair for pair in pairs if 1 < len(values[pair[0]]) <= _MAX_CHOICES]
        if open_pairs:
            name, value = open_pairs[0]
            offered[id] = Offer(tuple(sorted(values[name])), value, name)
    if not offered:
        counts = ", ".join(str(len(one)) for one in values.values()) or "no"
        raise BundleError(
            f"{where}: --ask-label {label}: it has {counts} different values, but only a label with "
            f"2 to {_MAX_CHOICES} values can be asked for; choose another label"
        )
    return offered


# ---------------------------------------------------------------- a bundle of questions alone

_TRUTHS = ("truth", "ground_truth", "answer")


def write_testdata(path: Path) -> Path:
    """Write a bundle from a JSONL file of questions and expected answers; return the bundle's folder."""
    folder = find_cache_folder() / "testdata" / sha256_of(path)[:16] / path.stem
    rows, gold = [], []
    for id, line in enumerate(LazyLines(path, _parse_line)):
        truth = next((line[name] for name in _TRUTHS if isinstance(line.get(name), str)), "")
        if not isinstance(line.get("question"), str) or not line["question"].strip() or not truth.strip():
            raise SourceError(f"{path}: line {id + 1}: 'question' and 'truth' must be texts that are not empty")
        rows.append({"id": id, "question": line["question"], "answer": truth, "is_impossible": False, "contexts": []})
        gold.append(_make_gold_line(id, line))
    if not rows:
        raise SourceError(f'{path}: has no questions; a line must be {{"question": …, "truth": …}}')
    (folder / CORPUS).mkdir(parents=True, exist_ok=True)
    write_whole(folder / GOLD, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in gold))
    write_whole(folder / TRAIN, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    return folder


def _parse_line(line: bytes, where: str) -> Mapping[str, Any]:
    content = parse_json(line.removeprefix(BOM_UTF8), where=where)
    if not isinstance(content, dict):
        raise SourceError(f"{where}: must be a JSON object")
    return content


def _make_gold_line(id: int, line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of gold.jsonl that stores the labels of a question but no gold passage."""
    labels = {
        name: value
        for name, value in line.items()
        if name not in ("question", *_TRUTHS) and isinstance(value, str | int | float | bool)
    }
    nowhere: dict[str, Any] = {"pages": [], "spans": [], "alternatives": [], "how": "absent", "score": None}
    return {"id": id, "context": None, "filename": None, **nowhere, "labels": labels}
