"""Makes variants of a bundle that keep its gold: with other questions, or with numbers as file names."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from exhibit.schemas.bundle import CARD, CORPUS, GOLD, INFO, TRAIN, Question, write_gold, write_info, write_train
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import BundleInfo, Context, Counts, FileEntry, Gold, Row
from exhibit.storage.atomic import replace_folder
from exhibit.storage.bundle import BundleFolder, open_bundle, sha256_of
from exhibit.storage.locations import fetch_file


def rewrite(
    bundle: Path,
    out: Path,
    *,
    word: Callable[[str], str | None] = lambda question: question,
    nameless: bool = False,
    force: bool = False,
) -> int:
    """Write a copy of a bundle with each question rewritten by `word`; return the number of questions.

    A question for which `word` returns None is left out. With `nameless`, the files are renamed to numbers.
    """
    old = open_bundle(bundle)
    if old.info is None:
        raise BundleError(f"{bundle}: no {INFO}; make it with a converter")
    names = number_files(old) if nameless else {name: name for name in old.files}
    with replace_folder(out, force=force) as folder:
        (folder / CORPUS).mkdir()
        for name, path in old.files.items():
            with fetch_file(path) as here:
                shutil.copyfile(here, folder / CORPUS / names[name])
        asked = [(question, text) for question in old.questions if (text := word(question.question)) is not None]
        write_train([_make_row(question, text, names) for question, text in asked], folder / TRAIN)
        kept = {int(question.id) for question, _ in asked}
        lines = [line for line in old.gold if line.id in kept]
        renamed = [line.model_copy(update={"filename": names.get(line.filename or "")}) for line in lines]
        write_gold(renamed, folder / GOLD)
        (folder / CARD).write_text(_make_card(old.info, nameless=nameless), encoding="utf-8")
        counted = _count_again(old.info.counts, [question for question, _ in asked], renamed)
        write_info(_make_info(old.info, names, folder).model_copy(update={"counts": counted}), folder / INFO)
    return len(asked)


def number_files(bundle: BundleFolder) -> dict[str, str]:
    """Return a new name for each file: a number in the order of the checksums, with the old suffix.

    The number reveals neither the file's name nor its folder nor its benchmark.
    """
    ordered = sorted(bundle.files, key=lambda name: (sha256_of(bundle.files[name]), name))
    width = len(str(len(ordered)))
    return {name: f"{number:0{width}}{Path(name).suffix}" for number, name in enumerate(ordered, 1)}


def _make_row(question: Question, text: str, names: Mapping[str, str]) -> Row:
    contexts = [Context(filename=names[passage.filename or ""], text=passage.text) for passage in question.contexts]
    return Row(
        id=int(question.id),
        question=text,
        answer=question.answer,
        is_impossible=question.is_impossible,
        contexts=contexts,
    )


def _count_again(counts: Counts, asked: Sequence[Question], gold: Sequence[Gold]) -> Counts:
    """Return a bundle's counts, computed again for the questions and gold that the variant contains."""
    impossible = sum(question.is_impossible for question in asked)
    return counts.model_copy(
        update={
            "questions": len(asked),
            "answerable": len(asked) - impossible,
            "impossible": impossible,
            "contexts": sum(len(question.contexts) for question in asked),
            "located": dict(Counter(line.how for line in gold)),
        }
    )


def _make_info(info: BundleInfo, names: Mapping[str, str], folder: Path) -> BundleInfo:
    documents = [
        entry
        if names[entry.filename] == entry.filename
        else entry.model_copy(update={"filename": names[entry.filename], "title": Path(names[entry.filename]).stem})
        for entry in info.documents
    ]
    files = {
        path.relative_to(folder).as_posix(): FileEntry(sha256=sha256_of(path), bytes=path.stat().st_size)
        for path in sorted(p for p in folder.rglob("*") if p.is_file())
    }
    documents.sort(key=lambda entry: entry.filename)
    return info.model_copy(update={"documents": documents, "files": files})


def _make_card(info: BundleInfo, *, nameless: bool) -> str:
    files = "its files are numbered" if nameless else "its questions are reworded"
    return f"# {info.title}\n\nMade from the bundle `{info.name}` for a measurement: {files}. Not for publication.\n"
