"""Bundles made from a bundle: the same gold, with other questions or with files that have no telling name."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from schemas.bundle import CARD, CORPUS, GOLD, INFO, TRAIN, Question, write_gold, write_info, write_train
from schemas.errors import BundleError
from schemas.models import BundleInfo, Context, FileEntry, Row
from storage.bundle import Bundle, open_bundle, sha256_of
from storage.locations import fetched
from storage.place import placed


def rewrite(
    bundle: Path,
    out: Path,
    *,
    word: Callable[[str], str] = lambda question: question,
    nameless: bool = False,
    force: bool = False,
) -> int:
    """Write the bundle with each question put through `word`, and files that are numbers where `nameless`.

    Return how many questions it has.
    """
    old = open_bundle(bundle)
    if old.info is None:
        raise BundleError(f"{bundle}: no {INFO}; make it with a converter")
    names = number_files(old) if nameless else {name: name for name in old.files}
    with placed(out, force=force) as folder:
        (folder / CORPUS).mkdir()
        for name, path in old.files.items():
            with fetched(path) as here:
                shutil.copyfile(here, folder / CORPUS / names[name])
        write_train([_row(question, word, names) for question in old.questions], folder / TRAIN)
        renamed = [line.model_copy(update={"filename": names.get(line.filename or "")}) for line in old.gold]
        write_gold(renamed, folder / GOLD)
        (folder / CARD).write_text(_card(old.info, nameless=nameless), encoding="utf-8")
        write_info(_info(old.info, names, folder), folder / INFO)
    return len(old.questions)


def number_files(bundle: Bundle) -> dict[str, str]:
    """Return a number for each file, in the order of their checksums: it says nothing of name, kind or place."""
    ordered = sorted(bundle.files, key=lambda name: (sha256_of(bundle.files[name]), name))
    width = len(str(len(ordered)))
    return {name: f"{number:0{width}}{Path(name).suffix}" for number, name in enumerate(ordered, 1)}


def _row(question: Question, word: Callable[[str], str], names: Mapping[str, str]) -> Row:
    contexts = [Context(filename=names[passage.filename or ""], text=passage.text) for passage in question.contexts]
    return Row(
        id=int(question.id),
        question=word(question.question),
        answer=question.answer,
        is_impossible=question.is_impossible,
        contexts=contexts,
    )


def _info(info: BundleInfo, names: Mapping[str, str], folder: Path) -> BundleInfo:
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


def _card(info: BundleInfo, *, nameless: bool) -> str:
    files = "its files are numbered" if nameless else "its questions are reworded by rule"
    return f"# {info.title}\n\nMade from the bundle `{info.name}` for a measurement: {files}. Not for publication.\n"
