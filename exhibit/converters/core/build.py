"""Builds a bundle from a benchmark, and applies reviewers' corrections of the gold to a bundle."""

import shutil
from argparse import Namespace
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from exhibit.converters import PAST_A_LIMIT, UNREADABLE, Benchmark, DatasetInfo, Label, Quote, RawRow, Tally
from exhibit.converters.core.documents import NOWHERE, Done, Finder, QuotePlace, make_tasks, materialise, settle_pages
from exhibit.converters.pages.chromium import describe_printing, start_printing
from exhibit.engine import Engine, open_engine, read_limits, track
from exhibit.evidence.locate import is_ambiguous
from exhibit.evidence.read import read_within
from exhibit.evidence.scan import read_ocr_flags
from exhibit.hub.card import find_sample, write_card
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas import IMPOSSIBLE_ANSWER, __version__
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN, drafts_text, write_gold, write_info, write_train
from exhibit.schemas.errors import BundleError, LimitError, ServiceError, SourceError, escape_surrogates
from exhibit.schemas.layout import DRAFTS
from exhibit.schemas.models import FORMAT, HOWS, BundleInfo, CardText, Context, Gold, PatchEntry, Row, SourceEntry, Tool
from exhibit.schemas.review import MarkedPassage, Patch, digest_gold, read_patch
from exhibit.schemas.validate import count_gold, describe_file, raise_problems, read_drafts, validate
from exhibit.storage.atomic import make_scratch_folder, remove_below, replace_folder
from exhibit.storage.bundle import BundleFolder, open_bundle, sha256_of
from exhibit.storage.locations import check_out, fetch_file

Asked = tuple[Row, list[Gold]]  # a question with its lines of gold.jsonl
# options that do not affect the content; bundle.json records patches by their content
_MACHINE_OPTIONS = frozenset(
    "out source documents jobs engine item_timeout item_memory force strict json delay timeout refetch patch".split()
)


def build(info: DatasetInfo, benchmark: Benchmark, tally: Tally, options: Namespace, folder: Path) -> BundleInfo:
    # the user chooses the name of a table's bundle: ignore a known dataset with the same name
    text = make_card_text(replace(benchmark.info, derived="") if benchmark.info else info, info.name, options)
    info = benchmark.info or info
    (folder / CORPUS).mkdir()
    engine = open_engine(options.engine, jobs=options.jobs, items=len(benchmark.documents), limits=read_limits(options))
    with make_scratch_folder() as texts:
        done = _materialise_all(benchmark, folder / CORPUS, texts, engine, tally, options)
        rows = [row for row in benchmark.rows if _is_usable(row, benchmark, done, tally)]
        settle_pages(done, (quote for row in rows for quote in row.quotes), tally)
        questions, drafts = list[Asked](), list[Asked]()
        for row in rows:
            places = [done[quote.filename].places[quote] for quote in row.quotes]
            asked = (_make_row(row, places), list(_make_gold(row, places, done)))
            if benchmark.draft and row.labels.get("draft") == "unsure":  # a person must review it
                drafts.append(asked)
            else:
                questions.append(asked)
                _note_gold(row, places, tally)
        kept = [item for raw in benchmark.documents if raw.filename in done for item in raw.items]
        account = tally.account([*kept, *(item for row in rows for item in row.items)])
        # only benchmarks that cite headings have sections, and only tables have answers that replace quotes
        hows = [how for how in HOWS if how not in ("section", "answer")]
        same = ("name", "title", "summary", "licence", "citation", "groups", "headline")
        bundle = BundleInfo(
            **{name: getattr(info, name) for name in same},
            format=FORMAT,
            source=SourceEntry(name=info.benchmark, url=info.url, version=info.version, sha256=benchmark.sha256),
            counts=count_gold([], [], documents=len(done), hows=hows),
            left_out=tally.left_out,
            noted=tally.noted,
            account=account,
            documents=[done[name].entry for name in sorted(done)],
            files={},
            tool=Tool(name="exhibit-rag", version=__version__),
            options=_list_content_options(options),
            draft=benchmark.draft,
            printing=describe_printing(document.printer for document in done.values()),
        )
        return write_bundle(bundle, questions, drafts, folder, engine=engine, text=text, texts=texts)


def write_bundle(
    info: BundleInfo, questions: Sequence[Asked], drafts: Sequence[Asked], folder: Path, *, engine: Engine,
    text: CardText, texts: Path | None = None,
) -> BundleInfo:  # fmt: skip
    """Write questions, drafts, card and finally bundle.json, which lists the other files; then validate the bundle."""
    rows, gold = [row for row, _ in questions], [line for _, lines in questions for line in lines]
    write_train(rows, folder / TRAIN)
    write_gold(gold, folder / GOLD)
    counts = count_gold(rows, gold, documents=len(info.documents), hows=info.counts.located)
    info = info.model_copy(update={"counts": counts})
    if info.draft is not None:
        (folder / DRAFTS).write_text(drafts_text(drafts), encoding="utf-8")
        draft = info.draft.model_copy(update={"sure": len(rows), "unsure": len(drafts)})
        info = info.model_copy(update={"draft": draft})
    write_card(info, folder, rows=rows, gold=gold, engine=engine, text=text, texts=texts)
    paths = sorted((path.relative_to(folder) for path in folder.rglob("*") if path.is_file()), key=PurePosixPath)
    info = info.model_copy(update={"files": {path.as_posix(): describe_file(folder / path) for path in paths}})
    write_info(info, folder / INFO)
    problems = validate(folder)
    raise_problems(problems, f"the new bundle has {len(problems)} problems; please report this bug")
    return info


def _materialise_all(
    benchmark: Benchmark, corpus: Path, texts: Path, engine: Engine, tally: Tally, options: Namespace
) -> dict[str, Done]:
    documents = []
    for raw in benchmark.documents:
        if escape_surrogates(raw.filename) == raw.filename:
            documents.append(raw)
        else:
            tally.fault("document's name is not UTF-8; rename it", escape_surrogates(raw.filename), item=raw.file)
    done: dict[str, Done] = {}
    with start_printing(corpus, read_limits(options)) as press:
        work = partial(materialise, corpus, texts, read_ocr_flags(options))
        tasks = make_tasks(documents, benchmark.rows, press)
        outcomes = track(engine.map(work, tasks), total=len(documents), label="documents")
        for raw, outcome in zip(documents, outcomes, strict=True):
            name, error = raw.filename, outcome.error
            if isinstance(error, ServiceError):
                raise error  # the store is unreachable, and the document is not to blame
            if error is not None:
                reason = PAST_A_LIMIT if isinstance(error, LimitError) else UNREADABLE
                line = f"{name}: {str(error).removeprefix(f'{raw}: ')}"
                tally.fault(reason, line, item=raw.file)
                tally.leave_out_all(reason, [item for item in raw.items if item.kind == "rows"], more=line)
                remove_below(corpus, name)
                continue
            done[name] = outcome.unwrap()
            for remark in done[name].notes:
                tally.note("remarks on documents", f"{name}: {remark}")
    if not done and (documents or not benchmark.rows):
        reasons = "; ".join(f"{reason}: {', '.join(names[:3])}" for reason, names in tally.left_out.items())
        raise SourceError(f"no document can be used; correct the source: {reasons}")
    return done


def _is_usable(row: RawRow, benchmark: Benchmark, done: dict[str, Done], tally: Tally) -> bool:
    more = min((name for name in row.files if name not in done), default="")
    labels = [*row.labels.values(), *(label for quote in row.quotes for label in dict(quote.labels).values())]
    words = [row.question, row.answer, *(quote.text for quote in row.quotes), *labels]
    fault = not more and any(isinstance(text, str) and escape_surrogates(text) != text for text in words)
    if more:
        reason = "question about a document that cannot be read"
    elif fault:
        reason = "row with half a surrogate pair, which is not a character"
    elif (benchmark.draft or benchmark.by_construction) and not all(
        done[quote.filename].places[quote].spans for quote in row.quotes if quote.text
    ):
        reason, more = "passage not found in the document", str(row.filename)
    else:
        return True
    tally.leave_out_all(reason, row.items, name=row.name, more=more, fault=fault)
    return False


def _make_row(row: RawRow, places: Sequence[QuotePlace]) -> Row:
    found = zip(row.quotes, places, strict=True)
    contexts = [Context(filename=quote.filename, text=where.get_text(quote)) for quote, where in found]
    answer = IMPOSSIBLE_ANSWER if row.is_impossible else row.answer
    return Row(id=row.id, question=row.question, answer=answer, is_impossible=row.is_impossible, contexts=contexts)


def _make_gold(row: RawRow, places: Sequence[QuotePlace], done: dict[str, Done]) -> Iterator[Gold]:
    """Yield one line per gold passage; a row without gold has one line with its labels."""
    if not row.quotes:
        yield NOWHERE.make_gold(row.id, None, row.filename, dict(row.labels))
    misses = [(near.filename, done[near.filename].places[near]) for near in row.near_misses if near.filename in done]
    other_versions = " ".join(f"{name}#{start}-{end}" for name, place in misses for start, end in place.spans)
    for index, (quote, where) in enumerate(zip(row.quotes, places, strict=True)):
        labels = {**row.labels, **({"other_versions": other_versions} if other_versions else {}), **dict(quote.labels)}
        yield where.make_gold(row.id, index, quote.filename, labels)


def _note_gold(row: RawRow, places: Sequence[QuotePlace], tally: Tally) -> None:
    """Record a note if gold was not found, is ambiguous or is invisible; with --strict, raise if it was not found."""
    for quote, where in zip(row.quotes, places, strict=True):
        text, count = where.get_text(quote) or "", 1 + len(where.alternatives)
        name = f"{quote.filename}: question {row.id}"
        if text and where.how == "absent":
            remark = "quote not found in the document (kept in train.json, marked absent in gold.jsonl)"
            tally.note(remark, f"{name}: {text[:80]!r}", fault=True)
        elif is_ambiguous(text, count):
            tally.note("ambiguous gold: few words with many locations", f"{name}: {text!r} has {count} locations")
        if where.hidden:
            tally.note("gold with words that are invisible on the page", f"{name}: {where.hidden}")
        if where.remark:
            cited = f"{row.name}: {(quote.provision or text)[:80]} in {quote.filename}"
            tally.note(where.remark, cited, fault=not where.spans)
        for accepted in where.not_accepted:
            tally.note("accepted alternative not located, or ambiguous", f"{row.name}: {accepted} in {quote.filename}")


def _list_content_options(options: Namespace) -> dict[str, Label]:
    chosen = {name: value for name, value in sorted(vars(options).items()) if name not in _MACHINE_OPTIONS}
    if (ocr := read_ocr_flags(options)) is None:
        return {name: value for name, value in chosen.items() if not name.startswith("ocr")}
    return chosen | {"ocr_engine": ocr.engine}  # record the engine, because `auto` may choose another engine elsewhere


def make_card_text(info: DatasetInfo, converter: str, options: Namespace | None = None) -> CardText:
    given = vars(options or Namespace())
    sample = find_sample(given.get("source"))
    source = sample or ("" if info.downloads else "PATH")
    command = [f"exhibit convert {converter}", *([f"--source {source}"] if source else [])]
    command += ["--documents DIR"] if given.get("documents") else []
    command += [f"--patch {' '.join(Path(name).name for name in given['patch'])}"] if given.get("patch") else []
    return replace(info, converter=converter, command=info.command or " ".join(command), sample=sample)


SHIPPED = "shipped"  # the flag's value for the patch or the list of addresses that is shipped with a converter
CORRECTED = "gold corrected by review"
UNFIT = "correction not applied: the gold has changed since the review"
ELSEWHERE = "question or document of a patch that the bundle does not have"


def find_patch(name: str, info: DatasetInfo) -> Path:
    if name != SHIPPED or Path(name).exists():
        return Path(name)
    path = Path(__file__).parents[1] / "_known" / f"{info.name}.json"
    if not path.is_file():
        raise SourceError(f"--patch {SHIPPED}: no patch is shipped for {info.name}; give a file, or leave --patch out")
    return path


def read_asked(bundle: BundleFolder) -> tuple[list[Asked], list[Asked]]:
    lines: dict[int, list[Gold]] = defaultdict(list)
    for line in bundle.gold:
        lines[line.id].append(line)
    rows = [Row.model_validate(question, from_attributes=True, strict=False) for question in bundle.questions]
    drafts = read_drafts(bundle.root, bundle.files, [row.id for row in rows])
    return [(row, lines[row.id]) for row in rows], [(draft.row, draft.gold) for draft in drafts]


def apply_patches(
    paths: Sequence[Path], root: Path, out: Path, *, force: bool = False, strict: bool = False,
    must_fit: bool = False, text: CardText | None = None,
) -> BundleInfo:  # fmt: skip
    """Write a bundle with patches applied in order; with `must_fit`, a patch that changes nothing raises an error."""
    bundle = open_bundle(root)
    info = bundle.info
    if info is None:
        raise BundleError(f"{root}: no {INFO}; patches apply only to bundles that a converter made")
    questions, drafts = read_asked(bundle)
    tally = Tally(strict=strict)
    for path in paths:
        patch = read_patch(path)
        if patch.dataset != info.name:
            raise SourceError(f"{path}: is a patch for {patch.dataset}, not for {info.name}; give another patch")
        aside = {document.filename: document.reason for document in patch.documents}
        documents = [document for document in info.documents if document.filename not in aside]
        known = {document.filename for document in info.documents}
        for name, reason in aside.items():
            if name in known:
                tally.leave_out(f"set aside by a patch: {reason}", name)
            else:
                tally.note(ELSEWHERE, f"{path.name}: {name}")
        named = {question.id for question in patch.questions} | {fix.id for fix in patch.corrections}
        for id in sorted(named - {row.id for row, _ in (*questions, *drafts)}):
            tally.note(ELSEWHERE, f"{path.name}: question {id}")
        before, noted = len(questions) + len(drafts), len(tally.noted.get(CORRECTED, ()))
        questions, drafts = (_correct(pairs, patch, aside, bundle, tally) for pairs in (questions, drafts))
        changes = {
            "documents": len(info.documents) - len(documents),
            "questions": before - len(questions) - len(drafts),
            "corrections": len(tally.noted.get(CORRECTED, ())) - noted,
        }
        entry = PatchEntry(name=path.name, sha256=sha256_of(path), about=patch.about, **changes)
        if must_fit and not any(changes.values()):
            raise BundleError(f"{path}: none of its corrections matches {root}; was the patch applied already?")
        info = info.model_copy(update={"documents": documents, "patches": [*info.patches, entry]})
    return write_changed(bundle, info, questions, drafts, tally, out, force=force, text=text)


def _correct(
    pairs: Sequence[Asked], patch: Patch, aside: dict[str, str], bundle: BundleFolder, tally: Tally
) -> list[Asked]:
    """Return the questions that a patch keeps, with corrected gold; `aside` has the reason for each excluded file."""
    dropped = {question.id: question.reason for question in patch.questions}
    fixes = {fix.id: fix for fix in patch.corrections}
    kept: list[Asked] = []
    for row, gold in pairs:
        name, fix = f"question {row.id}", fixes.get(row.id)
        reason = dropped.get(row.id) or next((aside[f] for line in gold if (f := line.filename) in aside), None)
        if reason:
            tally.leave_out(f"set aside by a patch: {reason}", name)
            continue
        if fix is not None and fix.was == digest_gold((context.filename, context.text) for context in row.contexts):
            reviewers = ", ".join(fix.reviewers)
            tally.note(CORRECTED, f"{name}: by {reviewers}" + (f": {fix.reason}" if fix.reason else ""))
            answer = fix.answer or ("" if row.is_impossible else row.answer)
            answer = answer or " […] ".join(passage.text for passage in fix.contexts)
            row, gold = replace_gold(row, gold, fix.contexts, answer, dict(gold[0].labels) if gold else {}, bundle)
        elif fix is not None:
            tally.note(UNFIT, name, fault=True)
        kept.append((row, gold))
    return kept


def replace_gold(
    row: Row, lines: Sequence[Gold], passages: Sequence[MarkedPassage], answer: str, labels: dict[str, Label],
    bundle: BundleFolder,
) -> Asked:  # fmt: skip
    """Return a row with corrected gold, and its lines of gold.jsonl; without passages, the row becomes impossible."""
    if not passages:
        name = next((line.filename for line in lines if line.filename), None)
        impossible = {"answer": IMPOSSIBLE_ANSWER, "is_impossible": True, "contexts": []}
        return row.model_copy(update=impossible), [NOWHERE.make_gold(row.id, None, name, labels)]
    gold = []
    for at, passage in enumerate(passages):
        name = passage.filename
        if name not in bundle.files:
            missing = f"the document {name} is not in {bundle.root}/{CORPUS}; is this the right bundle?"
            raise BundleError(f"question {row.id}: {missing}")
        marked = Quote(name, passage.text, marked=tuple(passage.spans))
        # a document that was read or printed again may have the words at different offsets
        place = Finder("", read_within(bundle.files[name])).place(marked)
        gold.append(place.make_gold(row.id, at, name, labels))
    contexts = [Context(filename=passage.filename, text=passage.text) for passage in passages]
    return row.model_copy(update={"answer": answer, "is_impossible": False, "contexts": contexts}), gold


def write_changed(
    bundle: BundleFolder, info: BundleInfo, questions: Sequence[Asked], drafts: Sequence[Asked], tally: Tally,
    out: Path, *, force: bool, text: CardText | None = None,
) -> BundleInfo:  # fmt: skip
    """Write a copy of a bundle with other questions and, if it is a drafted bundle, with the drafts in `waiting`."""
    check_out(out, force=force)
    old, new = info.left_out, tally.left_out
    left_out = {reason: [*old.get(reason, ()), *new.get(reason, ())] for reason in {**old, **new}}
    info = info.model_copy(update={"left_out": left_out, "noted": {**info.noted, **tally.noted}})
    documents = [document.filename for document in info.documents]
    if text is None:
        text = CardText(converter="table")  # if no converter has this name, it is the name of a table
        if info.name in list_plugins("exhibit.converters"):
            text = make_card_text(load_plugin("exhibit.converters", info.name)[0].INFO, info.name)
    with replace_folder(out, force=force) as folder:
        (folder / CORPUS).mkdir()
        for name in track(documents, total=len(documents), label="documents"):
            with fetch_file(bundle.files[name]) as local_path:
                shutil.copyfile(local_path, folder / CORPUS / name)
        engine = open_engine("local", jobs=1, items=len(documents))
        return write_bundle(info, questions, drafts, folder, engine=engine, text=text)
