"""Load bundles as datasets: the questions to ask, the documents, and the locations of the gold in them."""

import difflib
import glob
import random
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from exhibit.engine import Limits, track
from exhibit.evaluation.cases import Case, GoldPassage, with_choices
from exhibit.evaluation.placement import Documents, settle_ambiguous
from exhibit.evidence import Span, is_readable
from exhibit.evidence.read import ending_of
from exhibit.schemas.bundle import LooseContext, Question, numbered_lines, write_gold, write_train
from exhibit.schemas.errors import BundleError, SourceError, ToolkitError
from exhibit.schemas.layout import ANSWER_FROM, CORPUS, GOLD, INFO, TRAIN
from exhibit.schemas.models import BundleInfo, Gold, Positive, Row
from exhibit.schemas.parsing import format_faults, parse_json
from exhibit.schemas.validate import advise_drafting
from exhibit.storage.bundle import BundleFolder, mirror_bundle, open_bundle, sha256_of
from exhibit.storage.cache import find_cache_folder
from exhibit.storage.locations import Location, Remote, expand, list_file, origin_of, parse_location

Id = int | str


class Selection(BaseModel):
    """The settings of a run that choose the documents and the questions of each dataset."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    file_type: tuple[str, ...] = ()
    """ingest only files with these extensions, and count their pages: pdf, or txt,html"""
    ask_label: str = ""
    """the label that questions ask for, besides their answer"""
    where: dict[str, tuple[str, ...]] = {}
    """only questions with this label, as LABEL=VALUE"""
    limit: Positive | None = None
    """ask at most this many questions of each dataset"""
    sample_seed: int | None = None
    """draw the questions at random with this seed; without a seed, the first questions are asked"""
    allow_changed_corpus: bool = False
    """score questions although their documents differ from bundle.json"""

    @property
    def needs_documents(self) -> bool:
        """Whether a dataset without documents is an error; a server may already have the documents."""
        return True


@dataclass(frozen=True)
class Dataset:
    """A bundle loaded for a run: its questions as cases without replies, and its documents."""

    name: str
    root: Path
    cases: tuple[Case, ...]
    files: Mapping[str, Location]
    documents: Documents = field(compare=False)
    info: BundleInfo | None = None
    origin: str = ""  # the address `hf://OWNER/NAME@COMMIT` of a bundle from the Hub
    changed: tuple[str, ...] = ()  # files that differ from the record in bundle.json
    digests: Mapping[str, str] = field(default_factory=dict)  # the sha256 of each file, by its path in the bundle
    refused: Mapping[Id, str] = field(default_factory=dict)  # the questions that fail before they are asked, and why


def find_datasets(patterns: Iterable[str | Path], notes: list[str], problems: list[str]) -> dict[str, tuple[Path, str]]:
    """Return the dataset folders by name, with the addresses of bundles from the Hub; add notes and problems."""
    matches: list[tuple[Path, str]] = []
    for pattern in map(str, patterns):
        try:
            matches += _expand(pattern, notes)
        except ToolkitError as error:
            problems.append(str(error))
    folders: dict[str, tuple[Path, str]] = {}
    for path, origin in matches:
        if path.name.endswith(".partial") or (path.is_file() and path.name != TRAIN):
            notes.append(f"{path}: not a dataset folder; skipped")
            continue
        remote = origin_of(path)
        name = remote.name if remote else origin.partition("@")[0].rpartition("/")[2] or path.resolve().name
        other, _ = folders.setdefault(name, (path, origin))
        if other.resolve() != path.resolve():
            problems.append(f"{path}: another dataset has the name {name!r}: {other}; rename one of the folders")
    if not folders and not problems:
        problems.append("no dataset given; name a folder, such as datasets_out/cuad")
    return folders


def _expand(pattern: str, notes: list[str]) -> Iterator[tuple[Path, str]]:
    """Yield the folders that a path, a glob pattern or a URL names; copy remote bundles to the cache."""
    if pattern.startswith("hf://"):
        from exhibit.hub import pull  # importing the Hub's client takes half a second

        if pull.is_repository(pattern):
            repository, revision = pull.parse_address(pattern)
            bundle = pull.fetch(repository, revision=revision)
            yield bundle.folder, bundle.address
            return
    location = parse_location(pattern)
    if isinstance(location, Remote):
        paths: Sequence[Location] = expand(location)
    elif glob.has_magic(pattern) and not Path(pattern).exists():
        paths = [Path(path) for path in sorted(glob.glob(pattern, recursive=True))]  # noqa: PTH207  (may be absolute)
    else:
        paths = [Path(pattern)]
    if not paths:
        raise BundleError(f"{pattern}: no file or folder matches; check the path")
    for path in paths:
        if isinstance(path, Remote) and path != location and list_file(path / INFO) is None:
            notes.append(f"{path}: has no {INFO}; skipped")
        else:
            yield mirror_bundle(path), ""


def _open(path: Path) -> BundleFolder:
    if not path.exists():
        others = [other.name for other in path.parent.iterdir() if other.is_dir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, others, n=1)
        raise BundleError(f"{path}: no such folder" + (f"; did you mean {path.parent / near[0]}?" if near else ""))
    if path.is_dir() and not (path / TRAIN).is_file() and not (path / CORPUS).exists():
        if any(path.glob(f"*/{TRAIN}")):
            raise BundleError(f"{path}: a folder with several bundles; name them as {path}/*")
        if any(is_readable(file) for file in path.iterdir() if file.is_file()):
            raise BundleError(f"{path}: {advise_drafting(path)}")
    return open_bundle(path)


def load_datasets(
    patterns: Sequence[str | Path], selection: Selection, *, limits: Limits | None = None
) -> tuple[list[Dataset], list[str]]:
    """Return the datasets that `patterns` name (paths or URLs, such as `datasets_out/*`), and the warnings."""
    warnings, problems, bundles = list[str](), list[str](), list[BundleFolder]()
    left_out: list[str] = []  # `datasets_out/*` may match such datasets: the others are still tested
    opened: list[tuple[Dataset, BundleFolder, list[Question]]] = []
    for name, (path, origin) in find_datasets(patterns, warnings, problems).items():
        try:
            bundle = _open(path)
        except BundleError as error:
            problems.append(str(error))
            continue
        bundles.append(bundle)
        files, questions = choose_files(bundle, selection), choose_questions(bundle, selection)
        if not files and (bundle.files or selection.needs_documents):
            wanted = " or ".join(selection.file_type) or "readable"
            endings = Counter(ending_of(path) or "no ending" for path in bundle.files.values())
            has = ", ".join(f"{count} {ending}" for ending, count in sorted(endings.items()))
            remedy = f", only {has}; choose another --file-type" if has else "; add documents to it"
            left_out.append(f"{bundle.address}: corpus/ has no {wanted} file{remedy}")
        elif not questions:
            left_out.append(f"{bundle.address}: no question matches; check --where and --limit")
        else:
            if not selection.file_type and (others := sum(map(is_readable, bundle.files.values())) - len(files)):
                what = f"{others} files that are not PDFs are left out; use --file-type all to include them"
                warnings.append(f"{bundle.address}: {what}")
            digests, changed = _check_files(bundle, files, selection, warnings, problems)
            documents = Documents(files, limits=limits)
            parts = Dataset(name, bundle.root, (), files, documents, bundle.info, origin, changed, digests)
            opened.append((parts, bundle, questions))
    if not opened:
        selected = any(choose_questions(bundle, selection) for bundle in bundles)
        problems += left_out if selected or not selection.where else [_explain_labels(bundles, selection)]
    if problems:
        raise BundleError("\n".join(problems))
    warnings += [f"{reason}; left out" for reason in left_out]
    datasets = [_add_cases(*parts, selection, warnings) for parts in opened]
    return datasets, [*warnings, *find_lone_variants({dataset.name: dataset.cases[0].labels for dataset in datasets})]


def _explain_labels(bundles: Iterable[BundleFolder], selection: Selection) -> str:
    labels = [row for bundle in bundles for row in bundle.labels.values()]
    known, meant = [], ""
    for label, wanted in selection.where.items():
        values = sorted({str(row[label]) for row in labels if label in row})
        known.append(f"{label}: {list_names(values, _MAX_CHOICES) or 'no such label'}")
        folded = {value.casefold(): value for value in reversed(values)}
        if near := difflib.get_close_matches(wanted[0].casefold(), folded, n=1):
            meant = f" (did you mean --where {label}={folded[near[0]]}?)"
    return f"no question has the labels of --where{meant}; the values are {'; '.join(known)}"


def find_lone_variants(labels: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a warning for each variant whose control is not among the datasets."""
    controls = {known.get("pair") for known in labels.values() if known.get("varied") == "control"}
    variants = {name: known for name, known in labels.items() if known.get("varied") not in (None, "control")}
    lone = {name: known["varied"] for name, known in variants.items() if known.get("pair") not in controls}
    return [f"{name}: a variant ({kind}) without its control, which shows its effect" for name, kind in lone.items()]


def choose_files(bundle: BundleFolder, selection: Selection) -> dict[str, Location]:
    """Return the files of the selected types; by default the PDFs or, if other files have gold, all readable files."""
    if selection.file_type and selection.file_type != ("all",):
        return {n: path for n, path in bundle.files.items() if ending_of(path).lstrip(".") in selection.file_type}
    files = {name: path for name, path in bundle.files.items() if is_readable(path)}
    pdfs = {name: path for name, path in files.items() if ending_of(path) == ".pdf"}
    named = {context.filename for question in bundle.questions for context in question.contexts} - {None}
    return pdfs if not selection.file_type and pdfs and named <= pdfs.keys() else files


def choose_questions(bundle: BundleFolder, selection: Selection) -> list[Question]:
    labels: Mapping[Any, Mapping[str, Any]] = bundle.labels
    questions = list(bundle.questions)
    for name, values in selection.where.items():
        questions = [question for question in questions if str(labels.get(question.id, {}).get(name)) in values]
    if selection.limit is None or selection.limit >= len(questions) or selection.sample_seed is None:
        return questions[: selection.limit]
    drawn = random.Random(selection.sample_seed).sample(range(len(questions)), selection.limit)
    return [questions[index] for index in sorted(drawn)]


def _add_cases(
    dataset: Dataset, bundle: BundleFolder, questions: list[Question], selection: Selection, warnings: list[str]
) -> Dataset:
    documents = dataset.documents
    lines: dict[tuple[Id, int | None], Gold] = {(line.id, line.context): line for line in bundle.gold}
    labels: Mapping[Any, Mapping[str, Any]] = bundle.labels
    grades = read_grades(bundle.gold, where=f"{bundle.address}/{GOLD}")
    offers = offers_of(selection.ask_label, labels, where=bundle.address) if selection.ask_label else {}
    cases: list[Case] = []
    quoted = 0
    for question in track(questions, total=len(questions), label=f"{dataset.name}: gold", unit="question"):
        contexts = enumerate(question.contexts)
        golds = [_find_gold(context, lines.get((question.id, at)), documents) for at, context in contexts]
        if not question.is_impossible and len(golds) == 1 and not golds[0].worded and not golds[0].absent:
            golds = _find_quoted_answer(question.answer, golds[0], documents)
            quoted += bool(golds[0].places)
        golds = settle_ambiguous(golds, documents)
        line, row_labels = lines.get((question.id, None)), labels.get(question.id, {})
        named = [gold.filename for gold in golds] + ([line.filename] if line else [])
        filename, truth = next(filter(None, named), None), "" if row_labels.get(ANSWER_FROM) else question.answer
        # grades describe files, not the question; as a label they would list up to a thousand names
        others = {label: value for label, value in row_labels.items() if label not in (GRADE, GRADES)}
        case = Case(question.id, question.question, truth, tuple(golds), question.is_impossible, filename, others)
        if offer := offers.get(question.id):
            asked = with_choices(question.question, offer.choices, offer.asked)
            case = replace(case, question=asked, choices=offer.choices, label=offer.label)
        cases.append(replace(case, grades=grades.get(question.id, {})))
    if quoted:
        note = "the expected answer is used as gold, because the document contains it word for word"
        warnings.append(f"{bundle.address}: {quoted} questions without gold: {note}")
    refused = _refuse_questions(dataset, cases, bundle, selection, warnings)
    return replace(dataset, cases=tuple(cases), refused=refused)


def _find_gold(context: LooseContext, line: Gold | None, documents: Documents) -> GoldPassage:
    """Return a context as a gold passage, with its location from gold.jsonl or else from a search for its words."""
    filename, known = context.filename, line is not None and (bool((context.text or "").strip()) or bool(line.spans))
    if filename and filename not in documents.files and (found := documents.named(filename)):
        # with known offsets, only the Unicode form of the name may differ
        same = unicodedata.normalize("NFC", found) == unicodedata.normalize("NFC", filename)
        filename = found if same or not known else filename
    if line and known:
        places = [line.spans, *line.alternatives] if line.spans else []
        spans = tuple(tuple(Span(*span) for span in place) for place in places)
        gold = GoldPassage(line.filename, None, spans, tuple(line.pages), absent=not places, how=line.how)
    else:
        gold = _locate_gold(filename, context.text, documents)
    pages = gold.pages or (tuple(line.pages) if line else ())
    return replace(gold, filename=filename or gold.filename, text=context.text, pages=pages)


def _locate_gold(filename: str | None, text: str | None, documents: Documents) -> GoldPassage:
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


MIN_QUOTED_WORDS = 8  # a shorter answer may occur in its document by chance


def _find_quoted_answer(answer: str, gold: GoldPassage, documents: Documents) -> list[GoldPassage]:
    """Return the expected answer as gold if the named document contains it verbatim, else the unchanged gold."""
    if gold.filename not in documents.files or len(answer.split()) < MIN_QUOTED_WORDS:
        return [gold]
    quoted = _locate_gold(gold.filename, answer, documents)
    return [replace(quoted, text=answer) if quoted.places and quoted.how in ("exact", "folded") else gold]


GRADE, GRADES = "grade", "grades"  # labels of gold: the grade of a line's file; on one line, all grades of a question
_GRADES = TypeAdapter(dict[str, Annotated[int, Field(strict=True, ge=0, le=4)]])


def read_grades(lines: Iterable[Gold], *, where: str) -> dict[Id, dict[str, int]]:
    """Return, for each question, the best relevance grade of each file; grades outside 0 to 4 are ignored."""
    by_question: dict[Id, dict[str, int]] = defaultdict(dict)
    for line in lines:
        label, grade = line.labels.get(GRADES), line.labels.get(GRADE)
        try:
            grades = _GRADES.validate_json(label if isinstance(label, str) else "{}")
        except ValidationError as error:
            raise BundleError(f"{where}: row {line.id}: labels.{GRADES}: {format_faults(error, most=1)}") from error
        if line.filename and type(grade) is int and 0 <= grade <= 4:
            grades.setdefault(line.filename, grade)
        for file, file_grade in grades.items():
            by_question[line.id][file] = max(file_grade, by_question[line.id].get(file, 0))
    return dict(by_question)


def _check_files(
    bundle: BundleFolder, files: dict[str, Location], selection: Selection, warnings: list[str], problems: list[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the sha256 of each file, and the documents that differ from bundle.json; remove those it does not list."""
    recorded = {name: entry.sha256 for name, entry in bundle.info.files.items()} if bundle.info else {}
    recorded = {f"{CORPUS}/{name.rpartition('/')[2]}" if "/" in name else name: sha for name, sha in recorded.items()}
    stray = [name for name in files if recorded and f"{CORPUS}/{name}" not in recorded]
    if stray and not selection.allow_changed_corpus:
        warnings.append(f"{bundle.address}: {len(stray)} files not listed in {INFO} ({list_names(stray)}) are left out")
        for name in stray:
            del files[name]
    paths: dict[str, Location] = {name: bundle.root / name for name in (INFO, TRAIN, GOLD)}
    paths = {name: path for name, path in paths.items() if path.is_file()}  # type: ignore[union-attr]  # a local folder
    paths |= {f"{CORPUS}/{name}": files[name] for name in sorted(files)}
    digests = {name: sha256_of(path) for name, path in paths.items()}
    changed = [name for name in digests if digests[name] != recorded.get(name, digests[name])]
    what = f"{bundle.address}: {len(changed)} files differ from {INFO} ({list_names(changed)})"
    if changed and selection.allow_changed_corpus:
        warnings.append(what)
    elif changed:
        advice = "convert the bundle again, or score the changed files with --set allow_changed_corpus=true"
        problems.append(f"{what}, so the positions of the gold may be wrong: {advice}")
    return digests, tuple(name.removeprefix(f"{CORPUS}/") for name in changed if name.startswith(CORPUS))


def _refuse_questions(
    dataset: Dataset, cases: Sequence[Case], bundle: BundleFolder, selection: Selection, warnings: list[str]
) -> dict[Id, str]:
    """Return, by question id, why the question cannot be scored with the selected files."""
    available = dataset.files if selection.needs_documents else bundle.files
    entries = bundle.info.documents if bundle.info else []
    lengths = {entry.filename: entry.characters for entry in entries if entry.filename not in dataset.changed}

    def explain(name: str, end: int) -> str:
        if bundle.files and name not in available:
            return "left out by their type (--file-type)" if name in bundle.files else "not in corpus/"
        if end and name not in lengths and (document := dataset.documents.get(name)):
            lengths[name] = len(document.text)
        return "shorter than the offsets of the gold; convert the bundle again" if end > lengths.get(name, end) else ""

    refused: dict[Id, tuple[str, str]] = {}
    for case in cases:
        faults = ((name, fault) for name, end in sorted(case.ends.items()) if (fault := explain(name, end)))
        refused |= {case.id: first} if (first := next(faults, None)) else {}
    for fault, count in sorted(Counter(fault for _, fault in refused.values()).items()):
        names = sorted({name for name, other in refused.values() if other == fault})
        where = f"the gold is in {len(names)} files that are {fault}: {list_names(names)}"
        warnings.append(f"{bundle.address}: {count} of {len(cases)} questions fail: {where}")
    return {id: f"{name}: {fault}" for id, (name, fault) in refused.items()}


def list_names(names: Sequence[str], most: int = 3) -> str:
    """Return the first names, and the number of the others."""
    omitted = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + omitted


_MAX_CHOICES = 12  # most values of a label to choose from; a label with more values is an id, not a choice


class Offer(NamedTuple):
    choices: tuple[str, ...]  # the labels from which the system must choose
    label: str  # the right label
    asked: str = ""  # the subject of the choice, if the label names one


def offers_of(label: str, rows: Mapping[Any, Mapping[str, Any]], *, where: str) -> dict[Any, Offer]:
    """Return the choices to offer for each question with a label: `CHOICE` or `SUBJECT: CHOICE; SUBJECT: CHOICE`."""
    labels = {id: str(row[label]) for id, row in rows.items() if row.get(label) is not None}
    pairs = {id: [pair.split(": ", 1) for pair in text.split("; ") if ": " in pair] for id, text in labels.items()}
    if not all(pairs.values()):
        pairs = {id: [["", value]] for id, value in labels.items()}
    values: dict[str, set[str]] = defaultdict(set)
    for subject, value in chain(*pairs.values()):
        values[subject].add(value)
    offered: dict[Any, Offer] = {}
    for id, row_pairs in pairs.items():
        for subject, value in row_pairs:
            if 1 < len(values[subject]) <= _MAX_CHOICES:
                offered.setdefault(id, Offer(tuple(sorted(values[subject])), value, subject))
    if not offered:
        counts = ", ".join(str(len(choices)) for choices in values.values()) or "no"
        possible = f"but must have 2 to {_MAX_CHOICES}; choose another label"
        raise BundleError(f"{where}: --ask-label {label}: it has {counts} different values, {possible}")
    return offered


_TRUTHS = ("truth", "ground_truth", "answer")


def write_testdata(path: Path) -> Path:
    """Write a bundle from a JSONL file of questions and expected answers; return the bundle's folder."""
    folder = find_cache_folder() / "testdata" / sha256_of(path)[:16] / path.stem
    rows, gold = list[Row](), list[Gold]()
    nowhere: dict[str, Any] = {"context": None, "filename": None, "pages": [], "spans": [], "alternatives": []}
    for number, text in numbered_lines(path):
        line = parse_json(text.removeprefix("\ufeff"), where=f"{path}: line {number}")
        fields = line if isinstance(line, dict) else {}
        question, *truths = (str(fields.get(name) or "") for name in ("question", *_TRUTHS))
        truth = next(filter(str.strip, truths), "")
        if not question.strip() or not truth:
            raise SourceError(f"{path}: line {number}: 'question' and 'truth' must be texts that are not empty")
        rows.append(Row(id=len(rows), question=question, answer=truth, is_impossible=False, contexts=[]))
        others = {name: value for name, value in fields.items() if name not in ("question", *_TRUTHS)}
        labels: dict[str, Any] = {n: value for n, value in others.items() if isinstance(value, str | int | float)}
        gold.append(Gold(id=rows[-1].id, how="absent", labels=labels, **nowhere))
    if not rows:
        raise SourceError(f'{path}: has no questions; a line must be {{"question": …, "truth": …}}')
    (folder / CORPUS).mkdir(parents=True, exist_ok=True)
    write_gold(gold, folder / GOLD)
    write_train(rows, folder / TRAIN)
    return folder
