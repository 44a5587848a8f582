"""Describes a finished bundle: the options that made it, the texts of its card, and its files in bundle.json."""

from argparse import Namespace
from pathlib import Path, PurePosixPath

from exhibit.converters.benchmark import DatasetInfo, Label
from exhibit.evidence.scan import read_ocr_flags
from exhibit.hub.card import CardText
from exhibit.schemas.bundle import INFO, write_info
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import BundleInfo, FileEntry
from exhibit.schemas.validate import validate
from exhibit.storage.bundle import sha256_of

_MACHINE_OPTIONS = frozenset(
    {"out", "source", "documents", "jobs", "engine", "item_timeout", "item_memory", "force", "strict", "json"}
    | {"per_host", "delay", "timeout", "retries", "refetch"}
    | {"patch"}  # bundle.json records patches by their content
)
"""Options that do not change the bundle: where and how it is made."""


def list_content_options(options: Namespace) -> dict[str, Label]:
    """Return the options of a conversion that change the bundle, for bundle.json."""
    chosen = {name: value for name, value in sorted(vars(options).items()) if name not in _MACHINE_OPTIONS}
    ocr = read_ocr_flags(options)
    if ocr is not None:
        chosen["ocr_engine"] = ocr.engine  # record the engine: `auto` may choose another one elsewhere
    else:
        chosen = {name: value for name, value in chosen.items() if not name.startswith("ocr")}
    if not options.keep_originals:
        del chosen["keep_originals"]
    return chosen


def make_card_text(info: DatasetInfo, converter: str) -> CardText:
    """Return the texts for the dataset card that are not in the bundle's files, such as tags and limits."""
    texts = {name: getattr(info, name) for name in ("tags", "questions", "limits", "annotations", "derived", "command")}
    return CardText(converter=converter, **texts)


def finish(info: BundleInfo, folder: Path) -> BundleInfo:
    """Write bundle.json, which lists every other file, and validate the bundle."""
    info = info.model_copy(update={"files": _list_files(folder)})
    write_info(info, folder / INFO)
    problems = validate(folder)
    if problems:
        listing = "\n".join(f"  {problem}" for problem in problems[:20])
        raise BundleError(f"the new bundle has {len(problems)} problems; please report this bug:\n{listing}")
    return info


def _list_files(folder: Path) -> dict[str, FileEntry]:
    """Return every file of the bundle with its size and checksum."""
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    files = {name: FileEntry(sha256=sha256_of(path), bytes=path.stat().st_size) for name, path in paths.items()}
    return dict(sorted(files.items(), key=lambda item: PurePosixPath(item[0])))
