"""Downloads a published bundle from the Hugging Face Hub and checks it; the result is byte for byte the original.

    exhibit pull me/cuad-rag --out datasets_out/cuad
    exhibit pull me/cuad-rag --revision v1 --out datasets_out/cuad --force
    exhibit pull me/cuad-rag@v1                                            # to datasets_out/cuad-rag
    python evaluate_rag.py --dataset-paths hf://me/cuad-rag@v1                   # without a folder of its own

Downloads go through the Hub's own cache, so an interrupted download continues where it stopped.
"""

import argparse
import contextlib
import glob
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

from exhibit.engine import track
from exhibit.hub.commit import remove_address
from exhibit.hub.remote import KIND, TRANSPORT, Hub, HubError, Say, find_root_cause
from exhibit.runtime.command import add_json, build_parser, guarded, print_note, print_results
from exhibit.schemas.bundle import CARD, CORPUS, INFO, read_info
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.validate import validate
from exhibit.storage.atomic import check_free, replace_folder
from exhibit.storage.bundle import sha256_of

__all__ = ["SCHEME", "PulledBundle", "fetch", "is_repository", "main", "parse_address"]


def run(options: argparse.Namespace) -> Path:
    """Download the bundle into its folder and return the folder; print its path and a summary."""
    repo_id, revision = parse_address(options.repo)
    if revision and options.revision:
        raise ToolkitError(f"two revisions, {revision} and {options.revision}; give only one")
    out = options.out or Path("datasets_out") / repo_id.rpartition("/")[2]
    wanted = revision or options.revision
    if (there := _read_bundle(out)) and there == peek(repo_id, revision=wanted, say=print_note) and not validate(out):
        print(f"{out}: already equals {repo_id}, byte for byte; nothing was changed")
        return out
    check_free(out, force=options.force)
    fetched = fetch(repo_id, revision=wanted, say=print_note)
    with replace_folder(out, force=options.force) as folder:
        copy(fetched, folder)
    counts = fetched.info.counts
    print(f"{out}: {counts.questions:,} questions, {counts.documents:,} documents; all checksums match")
    print(f"from {fetched.address}")
    return out


def _read_bundle(folder: Path) -> BundleInfo | None:
    """Return bundle.json of a folder; None if it is missing or unreadable."""
    try:
        return read_info(folder / INFO)
    except (BundleError, OSError):
        return None


def copy(fetched: "PulledBundle", folder: Path) -> None:
    """Write a downloaded bundle into an empty folder, and validate it there."""
    files = [*(name for name in fetched.info.files if name != CARD), INFO]
    for name in track(files, total=len(files), label="copying", unit="file"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(fetched.folder / name, folder / name)
    (folder / CARD).write_bytes(fetched.card)
    problems = validate(folder)
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems[:10])
        raise BundleError(f"{fetched.address}: not a valid bundle, it has {len(problems)} problems:\n{listed}")


@guarded("stopped; run the same command again: downloaded files are kept")
def main(argv: Sequence[str] | None = None) -> int:
    """Download a bundle; if that fails, return 1 and print one line that says what to do."""
    parser = build_parser("exhibit pull", __doc__, module=__file__)
    add_json(parser)
    options = parser.parse_args(argv)
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        out = run(options)
    if options.json:
        print_results({"bundle": str(out), "repo": options.repo}, "", as_json=True)
    return 0


SCHEME = "hf://"
_BELOW = re.compile(r"hf://(datasets|buckets)/[^/@]+/[^/@]+(@(?!refs/)[^/]+)?/[^/]")
_TURNS = 3
"""Attempts to download a bundle whose branch changes meanwhile or whose download fails."""


@dataclass(frozen=True)
class PulledBundle:
    """A bundle in the cache: `folder` has its files, and `card` is its dataset card as it was before publication."""

    folder: Path
    repo_id: str
    commit: str
    info: BundleInfo
    card: bytes

    @property
    def address(self) -> str:
        """The bundle's permanent address: with the commit instead of a branch."""
        return f"{SCHEME}{self.repo_id}@{self.commit}"


def is_repository(text: str) -> bool:
    """Return whether an `hf://` address names a whole repository, and not a folder inside one."""
    return text.startswith(SCHEME) and not _BELOW.match(text)


def parse_address(text: str) -> tuple[str, str | None]:
    """Return the repository and revision of OWNER/NAME[@REVISION], optionally after hf:// and datasets/."""
    plain = text.removeprefix(SCHEME).removeprefix("datasets/")
    repo_id, sign, revision = plain.partition("@")
    if sign and not revision:
        raise ToolkitError(f"{text}: no revision after the @; give a branch, a tag or a commit")
    return repo_id.rstrip("/"), revision or None


def fetch(repo_id: str, *, revision: str | None = None, say: Say) -> PulledBundle:
    """Download a bundle into the Hub's cache and return it; an interrupted download continues where it stopped."""
    hub = Hub(repo_id, say=say)
    for _ in range(_TURNS):
        commit = _commit(hub, revision)
        info = _read_info(hub, commit)
        folder = _download(hub, revision or "main", commit, info)
        if folder.name == commit:
            return PulledBundle(folder, hub.repo_id, commit, info, _verify(hub, folder, info))
    raise HubError(f"{hub.repo_id}: the branch changed during each download; give --revision with a commit")


def peek(repo_id: str, *, revision: str | None = None, say: Say) -> BundleInfo:
    """Download and return only the bundle.json of a published bundle."""
    hub = Hub(repo_id, say=say)
    return _read_info(hub, _commit(hub, revision))


def _commit(hub: Hub, revision: str | None) -> str:
    """Return the commit of a revision; if the Hub is unreachable, the last commit in the cache."""
    try:
        commit, _ = hub.commit_of(revision)
    except HubError as error:
        kept = (
            _find_cached_commit(hub, revision)
            if isinstance(find_root_cause(error), TRANSPORT | ConnectionError) and not error.status
            else None
        )
        if kept is None:
            raise
        hub.say(f"{error}; using commit {kept[:12]} of {hub.repo_id} from the cache, which may not be the newest")
        return kept
    if commit is None:
        raise HubError(f"{hub.repo_id} is empty: nothing has been published there yet")
    return commit


def _find_cached_commit(hub: Hub, revision: str | None) -> str | None:
    try:
        path = hub.api.hf_hub_download(hub.repo_id, INFO, repo_type=KIND, revision=revision, local_files_only=True)
    except (EntryNotFoundError, OSError, ValueError):
        return None
    return Path(path).parent.name


def _read_info(hub: Hub, commit: str) -> BundleInfo:
    """Return the content of a commit's bundle.json; raise BundleError if the repository is not a bundle."""
    try:
        path = hub.ask(
            lambda: hub.api.hf_hub_download(hub.repo_id, INFO, repo_type=KIND, revision=commit),
            doing=f"fetching {INFO}",
        )
    except LocalEntryNotFoundError as error:
        raise HubError(f"{hub.repo_id}: {INFO} cannot be downloaded: {error}") from error
    except HubError as error:
        if error.status != 404 or error.missing:
            raise
        raise BundleError(
            f"{hub.repo_id} is not a bundle: it has no {INFO}; load it with datasets.load_dataset"
        ) from error
    try:
        return read_info(Path(path))
    except BundleError as error:
        raise BundleError(f"{hub.repo_id} is not a bundle: {str(error).removeprefix(f'{path}: ')} ({INFO})") from error


def _download(hub: Hub, revision: str, commit: str, info: BundleInfo) -> Path:
    """Download every file that bundle.json lists, and return the snapshot's folder."""
    # patterns of whole folders: with one pattern per file, matching would take quadratic time
    tops = {f"{glob.escape(n.partition('/')[0])}/*" if "/" in n else glob.escape(n) for n in info.files}

    def download() -> Path:
        folder = hub.api.snapshot_download(
            hub.repo_id, repo_type=KIND, revision=revision, allow_patterns=[INFO, CARD, *tops]
        )
        return Path(folder)

    try:
        return hub.ask(download, doing=f"downloading {hub.repo_id} ({commit[:12]})", most=_TURNS)
    except HubError as error:
        raise HubError(f"{error}; run the command again: downloaded files are kept", status=error.status) from error
    except (ValueError, OSError) as error:
        if getattr(error, "errno", None) is not None:  # a disk error: the caller explains it
            raise
        reason = " ".join(str(error).split())[:300]
        raise BundleError(f"{hub.repo_id}: its files cannot be downloaded: {reason}") from error


def _verify(hub: Hub, folder: Path, info: BundleInfo) -> bytes:
    """Compare every file's checksum with bundle.json; raise if a file is missing or differs.

    Return the dataset card as it was before publication, without the repository's name that publication
    inserts.
    """
    missing = {name for name in info.files if not (folder / name).is_file()}
    if missing and {name for name in info.files if name.startswith(f"{CORPUS}/")} <= missing:
        raise BundleError(
            f"{hub.repo_id} was published without its documents; make the bundle from its source with "
            f"python -m converters.{info.name}, or load the questions with datasets.load_dataset"
        )
    wrong = [f"{name}: listed in {INFO}, but missing" for name in missing]
    for name, entry in track(info.files.items(), total=len(info.files), label="checksums", unit="file"):
        if name != CARD and name not in missing and sha256_of(folder / name) != entry.sha256:
            wrong.append(f"{name}: the content differs from the sha256 in {INFO}")
    card = (folder / CARD).read_bytes() if (folder / CARD).is_file() else b""
    recorded = remove_address(card, info.files[CARD].sha256) if CARD in info.files else card
    if recorded is None and CARD not in missing:
        wrong.append(f"{CARD}: differs from the card that {INFO} records; was it edited on the Hub?")
    if wrong:
        listed = "\n".join(f"  {line}" for line in wrong[:10])
        raise BundleError(
            f"{hub.repo_id} differs from its own bundle.json: {len(wrong)} files are wrong:\n{listed}\npublish it "
            "again from its folder, or choose an earlier --revision"
        )
    return recorded or b""


if __name__ == "__main__":
    sys.exit(main())
