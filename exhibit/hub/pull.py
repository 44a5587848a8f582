"""Downloads a published bundle from the Hugging Face Hub and checks it; the result is byte for byte the original.

    exhibit pull me/cuad-rag --out datasets_out/cuad
    exhibit pull me/cuad-rag@v1 --out datasets_out/cuad --force
    exhibit pull me/cuad-rag@v1                                            # to datasets_out/cuad-rag
    exhibit evaluate hf://me/cuad-rag@v1                   # reads the Hub's cache

Downloads go through the Hub's own cache, so an interrupted download continues where it stopped.
"""

import contextlib
import glob
import hashlib
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import HfApi
from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

from exhibit.hub.card import make_card_path
from exhibit.hub.publish import KIND, connect, explain_errors, name_in_card
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.schemas.bundle import CARD, INFO, read_info
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import BundleInfo, FileEntry
from exhibit.schemas.validate import check_checksums, describe_file, raise_problems, validate
from exhibit.storage.atomic import check_free, replace_folder

SCHEME = "hf://"
_BELOW = re.compile(r"hf://(datasets|buckets)/[^/@]+/[^/@]+(@(?!refs/)[^/]+)?/[^/]")


class PulledBundle(NamedTuple):
    folder: Path  # in the Hub's cache
    repo_id: str
    info: BundleInfo
    card: bytes  # the dataset card as it was before publication

    @property
    def address(self) -> str:
        """The bundle's permanent address: with the commit instead of a branch."""
        return f"{SCHEME}{self.repo_id}@{self.folder.name}"


def is_repository(text: str) -> bool:
    """Return whether an `hf://` address names a whole repository, not a folder inside a repository."""
    return text.startswith(SCHEME) and not _BELOW.match(text)


def parse_address(text: str) -> tuple[str, str | None]:
    """Return the repository and revision of OWNER/NAME[@REVISION], optionally after hf:// and datasets/."""
    plain = text.removeprefix(SCHEME).removeprefix("datasets/")
    repo_id, sign, revision = plain.partition("@")
    if sign and not revision:
        raise ToolkitError(f"{text}: no revision after the @; give a branch, a tag or a commit")
    return repo_id.rstrip("/"), revision or None


def fetch(repo_id: str, *, revision: str | None = None) -> PulledBundle:
    """Download a bundle into the Hub's cache and check it; without a connection, return the cached bundle."""
    api = connect(repo_id)
    info, commit = _download_info(api, repo_id, revision)
    # name whole folders: one pattern per file would take quadratic time
    patterns = {f"{glob.escape(n.partition('/')[0])}/*" if "/" in n else glob.escape(n) for n in info.files}
    with explain_errors(f"cannot download {repo_id}; finished files are stored"):
        wanted = [INFO, CARD, *patterns]
        folder = Path(api.snapshot_download(repo_id, repo_type=KIND, revision=commit, allow_patterns=wanted))
    found = {name: describe_file(folder / name) for name in info.files if (folder / name).is_file()}
    card = (folder / CARD).read_bytes() if CARD in found else b""
    if CARD in found and found[CARD] != info.files[CARD]:
        card = name_in_card(card, make_card_path(info.name))
        found[CARD] = FileEntry(sha256=hashlib.sha256(card).hexdigest(), bytes=len(card))
    wrong = list(check_checksums(found, info))
    advice = "publish it again from its folder, or choose an earlier revision with @REVISION"
    raise_problems(wrong, f"{repo_id} differs from its own bundle.json: {len(wrong)} files are wrong; {advice}")
    return PulledBundle(folder, repo_id, info, card)


def _download_info(api: HfApi, repo_id: str, revision: str | None) -> tuple[BundleInfo, str]:
    with explain_errors(f"cannot fetch {repo_id}"):
        try:
            path = Path(api.hf_hub_download(repo_id, INFO, repo_type=KIND, revision=revision))
            return read_info(path), path.parent.name
        except LocalEntryNotFoundError:
            raise
        except EntryNotFoundError as error:
            raise BundleError(f"{repo_id} is not a bundle: it has no {INFO}") from error
        except BundleError as error:
            raise BundleError(f"{repo_id} is not a bundle: {str(error).removeprefix(f'{path}: ')} ({INFO})") from error


def pull(repo_id: str, revision: str | None, out: Path, *, force: bool) -> None:
    check_free(out, force=force)
    fetched = fetch(repo_id, revision=revision)
    with replace_folder(out, force=force) as folder:
        for name in (*fetched.info.files, INFO):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(fetched.folder / name, folder / name)
        (folder / CARD).write_bytes(fetched.card)
        problems = validate(folder)
        raise_problems(problems, f"{fetched.address}: not a valid bundle, it has {len(problems)} problems")
    counts = fetched.info.counts
    print(f"{out}: {counts.questions:,} questions, {counts.documents:,} documents; all checksums match")
    print(f"from {fetched.address}")


@guarded("stopped; run the same command again: finished files are not downloaded again")
def main(argv: Sequence[str] | None = None) -> int:
    """Download a bundle; if that fails, return 1 and print one line with the remedy."""
    parser = build_parser("exhibit pull", __doc__)
    parser.add_argument("repo", metavar="OWNER/NAME[@REVISION]", help="the dataset on the Hub, with or without hf://")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the bundle's folder (default: datasets_out/NAME)")
    parser.add_argument("--force", action="store_true", help="replace an existing bundle")
    add_json(parser)
    options = parser.parse_args(argv)
    repo_id, revision = parse_address(options.repo)
    out = options.out or Path("datasets_out") / repo_id.rpartition("/")[2]
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        pull(repo_id, revision, out, force=options.force)
    if options.json:
        print_results({"bundle": str(out), "repo": options.repo}, "", as_json=True)
    return 0
