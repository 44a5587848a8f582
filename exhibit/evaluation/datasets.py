"""Load bundles as datasets: the questions to ask, the documents, and the locations of the gold in them."""

import difflib
import glob
import json
import random
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, TypeGuard

from exhibit.engine import Limits, track
from exhibit.evaluation.cases import Case, GoldPassage, Turn, with_choices
from exhibit.evaluation.placement import Documents, settle_ambiguous
from exhibit.evidence import Span, is_readable
from exhibit.evidence.read import ending_of
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN, LooseContext, Question, numbered_lines
from exhibit.schemas.errors import BundleError, SourceError, ToolkitError
from exhibit.schemas.layout import ANSWER_FROM
from exhibit.schemas.models import Gold
from exhibit.schemas.parsing import parse_json
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
    without: list[str] = []
    wanted = " or ".join(selection.file_types) or "readable"
    for name, folder in folders.items():
        try:
            bundle = open_bundle(folder)
        except BundleError as error:
            problems.append(str(error))
            continue
        problems += [] if selection.allow_changed_corpus else find_changed_tables(bundle)
        files = choose_files(bundle, selection)
        if not files and (bundle.files or selection.needs_documents):
            without.append(f"{bundle.address}: no {wanted} file in corpus/; it has {_list_endings(bundle)}")
            continue
        bundles[name] = bundle
        others = len(choose_files(bundle, replace(selection, file_types=(ALL_TYPES,)))) - len(files)
        if others and not selection.file_types:
            left_out = f"{others} files that are not PDFs are left out; use --file-type all to include them"
            warnings.append(f"{bundle.address}: {left_out}")
    if bundles:  # `datasets_out/*` may include a dataset without such files: the others are still tested
        warnings += [f"{reason}; left out" for reason in without]
    else:
        problems += without
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
    known, meant = [], ""
    for label, wanted in selection.where.items():
        values = sorted({str(row[label]) for bundle in bundles for row in bundle.labels.values() if label in row})
        known.append(f"{label}: {', '.join(values[:12]) or 'no such label'}")
        by_case = {value.casefold(): value for value in values}
        if near := difflib.get_close_matches(wanted[0].casefold(), by_case, n=1):
            meant = f" (did you mean --where {label}={by_case[near[0]]}?)"
    return f"no question has the labels of --where{meant}; the values are {'; '.join(known)}"


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
    refused, warnings = check_questions(bundle, files, {case.id: case.ends for case in cases}, documents, selection)
    if quoted:
        note = "the expected answer is the gold, because their document has it word for word and no other gold is given"
        warnings = (*warnings, f"{bundle.address}: {quoted} questions: {note}")
    return Dataset(
        name=name,
        root=bundle.root,
        cases=tuple(cases),
        files=files.used,
        documents=documents,
        groups=bundle.info.groups if bundle.info else None,
        warnings=warnings,
        refused=refused,
        changed=files.changed,
        digests=files.digests,
        headline=bundle.info.headline if bundle.info else None,
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
    """Yield the earlier turns of a conversation, from a list of messages or from its JSON."""
    if isinstance(turns, str):
        with suppress(ValueError):
            turns = json.loads(turns)
    for one in turns if isinstance(turns, list) else ():
        if isinstance(one, Mapping) and isinstance(one.get("content"), str):
            yield Turn(str(one.get("role") or "user"), one["content"])


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
        if _is_grade(own) and line.filename:
            grades[line.filename] = max(own, grades.get(line.filename, own))
        row = by_question.setdefault(line.id, {})
        for file, grade in grades.items():
            row[file] = max(grade, row.get(file, grade))
    return {id: grades for id, grades in by_question.items() if grades}


def _is_grade(value: Any) -> TypeGuard[int]:
    return type(value) is int and value in GRADE_RANGE


def _read_all_grades(line: Gold, where: str) -> dict[str, int]:
    label = line.labels.get(GRADES)
    if not isinstance(label, str):
        return {}
    with suppress(ValueError):
        grades = json.loads(label)
        if isinstance(grades, dict) and all(map(_is_grade, grades.values())):
            return grades
    raise BundleError(
        f"{where}: row {line.id}: labels.{GRADES} must be a JSON object from file name to a grade of 0 to 4"
    )


# ---------------------------------------------------------------- files, and questions that cannot be scored on them

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


def check_questions(
    bundle: BundleFolder,
    files: CorpusFiles,
    ends: Mapping[int | str, Mapping[str, int]],
    documents: Documents,
    selection: Selection,
) -> tuple[dict[int | str, str], tuple[str, ...]]:
    """Return the questions that cannot be scored, as a mapping from id to reason, and the warnings.

    `ends` has, for each question, the documents that it is about and where its last gold passage ends in each.
    """
    entries = bundle.info.documents if bundle.info else []
    lengths = {entry.filename: entry.characters for entry in entries if entry.filename not in files.changed}
    refused: dict[int | str, str] = {}
    lost: dict[str, dict[str, None]] = {}
    """By reason, the files that no question can be scored on."""
    counts: Counter[str] = Counter()
    for id, last in ends.items():
        for name in sorted(last):
            if reason := _explain_unusable(name, bundle, files, selection):
                if id not in refused:
                    counts[reason] += 1
                    refused[id] = f"{name}: {reason}"
                lost.setdefault(reason, {})[name] = None
        for name, end in last.items() if id not in refused else ():
            if end and name not in lengths and (document := documents.get(name)):
                lengths[name] = len(document.text)
            if end > lengths.get(name, end):
                fault = f"the gold ends at character {end}, but the document has {lengths[name]}"
                refused[id] = f"{name}: {fault}; convert the bundle again"
                counts["beyond"] += 1
    warnings = []
    if files.stray:
        what = "used nevertheless" if selection.allow_changed_corpus else "left out"
        warnings.append(f"{len(files.stray)} files that {INFO} lacks ({_list_names(files.stray)}) are {what}")
    if files.changed and selection.allow_changed_corpus:
        warnings.append(f"{len(files.changed)} files differ from {INFO} ({_list_names(files.changed)})")
    warnings += [
        f"{counts[reason]} of {len(ends)} questions fail: the gold is in {len(names)} files that are {reason}: "
        f"{_list_names(sorted(names))}"
        for reason, names in sorted(lost.items())
    ]
    if counts["beyond"]:
        warnings.append(f"{counts['beyond']} questions fail: their gold is beyond the end of the document")
    known = {question.id for question in bundle.questions}
    if strange := sum(line.id not in known for line in bundle.gold):
        warnings.append(f"{strange} lines of {GOLD} have an id that {TRAIN} does not have; they are left out")
    return refused, tuple(f"{bundle.address}: {warning}" for warning in warnings)


def _explain_unusable(name: str, bundle: BundleFolder, files: CorpusFiles, selection: Selection) -> str:
    """Return the reason why no question about a document can be scored; empty if there is no such reason."""
    if name in files.changed and not selection.allow_changed_corpus:
        return f"{_CHANGED_FILE} ({_ALLOW_FLAG})"
    available: Collection[str] = files.used if selection.needs_documents else bundle.files
    if name in available or not bundle.files:
        return ""
    by_type = name in bundle.files and name not in files.stray
    return "left out by their type (--file-type)" if by_type else "not in corpus/"


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")


# ---------------------------------------------------------------- labels to choose from

_MAX_CHOICES = 12
"""A label with more values than this identifies a question; systems are not asked to choose from so many."""


class Offer(NamedTuple):
    """The labels from which a question asks the system to choose one, and the right label."""

    choices: tuple[str, ...]
    label: str
    asked: str = ""
    """The subject of the choice, where the label names one."""


def offers_of(label: str, rows: Mapping[Any, Mapping[str, Any]], *, where: str) -> dict[Any, Offer]:
    """Return, for each question that has the label, the choices to offer and the right choice.

    A label may have several choices, each with its subject: `SUBJECT: CHOICE; SUBJECT: CHOICE`.
    """
    labels = {id: str(row[label]) for id, row in rows.items() if row.get(label) is not None}
    pairs = {
        id: [tuple(pair.split(": ", 1)) for pair in text.split("; ") if ": " in pair] for id, text in labels.items()
    }
    if not all(pairs.values()):
        pairs = {id: [("", value)] for id, value in labels.items()}
    values: dict[str, set[str]] = {}
    for subject, value in (pair for own in pairs.values() for pair in own):
        values.setdefault(subject, set()).add(value)
    offered: dict[Any, Offer] = {}
    for id, own in pairs.items():
        for subject, value in own:
            if 1 < len(values[subject]) <= _MAX_CHOICES:
                offered.setdefault(id, Offer(tuple(sorted(values[subject])), value, subject))
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
    rows, gold = list[dict[str, Any]](), list[dict[str, Any]]()
    nowhere: dict[str, Any] = {"pages": [], "spans": [], "alternatives": [], "how": "absent", "score": None}
    for id, (number, text) in enumerate(numbered_lines(path)):
        parsed = parse_json(text.removeprefix("\ufeff"), where=f"{path}: line {number}")
        line: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
        truth = next((line[name] for name in _TRUTHS if isinstance(line.get(name), str)), "")
        question = line.get("question")
        if not isinstance(question, str) or not question.strip() or not truth.strip():
            raise SourceError(f"{path}: line {number}: 'question' and 'truth' must be texts that are not empty")
        rows.append({"id": id, "question": question, "answer": truth, "is_impossible": False, "contexts": []})
        labels = {
            name: value
            for name, value in line.items()
            if name not in ("question", *_TRUTHS) and isinstance(value, str | int | float | bool)
        }
        gold.append({"id": id, "context": None, "filename": None, **nowhere, "labels": labels})
    if not rows:
        raise SourceError(f'{path}: has no questions; a line must be {{"question": …, "truth": …}}')
    (folder / CORPUS).mkdir(parents=True, exist_ok=True)
    write_whole(folder / GOLD, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in gold))
    write_whole(folder / TRAIN, json.dumps(rows, ensure_ascii=False, indent=1) + "\n")
    return folder
