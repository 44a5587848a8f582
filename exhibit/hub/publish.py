"""Checks a bundle, and publishes it in one commit as a dataset on the Hugging Face Hub.

    exhibit publish datasets_out/cuad --repo-id me/cuad-rag --dry-run    # shows what would be sent; needs no token
    exhibit publish datasets_out/cuad --repo-id me/cuad-rag --private
    exhibit publish datasets_out/cuad --repo-id me/cuad-rag --tag v1
    exhibit publish datasets_out/cuad --repo-id lab/cuad-rag --create-pr
    exhibit pull me/cuad-rag --out datasets_out/cuad                     # downloads it

The token is read from HF_TOKEN or from the Hub's own store (`hf auth login`), and never printed.
After an error run the same command again: uploaded files are not sent twice.
"""

import contextlib
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import huggingface_hub  # this package loads its modules lazily
from huggingface_hub import CommitOperationAdd, CommitOperationDelete, errors
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

from exhibit.hub.card import make_card_path
from exhibit.hub.exports import EVAL, QUESTIONS_TASK, RECORD, export, make_shelf_files
from exhibit.hub.tables import PARQUET
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.runtime.secrets import remember_secret, scrub
from exhibit.schemas import __version__
from exhibit.schemas.bundle import CARD, CORPUS, INFO, read_info
from exhibit.schemas.errors import BundleError, ServiceError, ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.validate import raise_problems, validate

_SHOWN = 10  # most lines of a list; more would not fit on one screen
_LOADED = re.compile(rb'load_dataset\("[^"\n]+"')

KIND = "dataset"
TOKEN_PAGE = "https://huggingface.co/settings/tokens"

# The HTTP library of the Hub's client differs between its versions; its errors are always subclasses of this one.
TRANSPORT: type[BaseException] = errors.HfHubHTTPError.__mro__[1]

ADVICE: dict[type[BaseException] | int | None, str] = {
    errors.OfflineModeIsEnabled: "HF_HUB_OFFLINE switches the Hub off; unset this variable",
    errors.GatedRepoError: "the dataset is gated: request access on its page",
    errors.RevisionNotFoundError: "no such revision; the dataset's page lists its branches and tags",
    errors.RepositoryNotFoundError: "no such dataset, or the token may not see it: log in with `hf auth login`",
    401: f"a valid token is needed: log in with `hf auth login`, or set HF_TOKEN ({TOKEN_PAGE})",
    403: f"the token may not do this; it needs write access, see {TOKEN_PAGE}",
    412: "somebody else has published in the meantime; run the same command again to publish a commit after theirs",
    429: "the Hub reports too many requests; wait a few minutes",
    None: "the request failed; run the same command again",
}  # The advice for each error of the Hub's client, by its class or its HTTP status; None for any other error


def connect(repo_id: str) -> huggingface_hub.HfApi:
    """Return the Hub's client with the user's token; raise if the Hub does not allow the repository's name."""
    try:
        validate_repo_id(repo_id)
    except errors.HFValidationError as error:
        raise ToolkitError(f"{repo_id!r} is not the name of a repository: {error}") from error
    if "/" not in repo_id:
        raise ToolkitError(f"{repo_id!r} is not the name of a repository: write OWNER/NAME")
    try:
        token = huggingface_hub.get_token()
    except Exception as error:  # an unreadable store or a failed keyless login; the message may contain the token
        raise ServiceError(scrub(f"the token cannot be read: {error}; log in again with `hf auth login`")) from error
    remember_secret(token)
    return huggingface_hub.HfApi(token=token or False, library_name="exhibit-rag", library_version=__version__)


@contextlib.contextmanager
def explain_errors(doing: str) -> Iterator[None]:
    """Raise errors of the Hub's client as one line, which never contains the token or a signed URL."""
    try:
        yield
    except (TRANSPORT, errors.OfflineModeIsEnabled, errors.EntryNotFoundError, RuntimeError) as error:
        # an upload's RuntimeError only names the file; its cause is the Hub's reply
        cause = error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ else error
        status = getattr(getattr(cause, "response", None), "status_code", None)
        advice = next(ADVICE[kind] for kind in (*type(cause).__mro__, status, None) if kind in ADVICE)
        reason = getattr(cause, "server_message", None) or str(cause).partition("\n")[0]
        raise ServiceError(scrub(f"{doing}: {advice} ({reason[:300]})")) from error
    except ValueError as error:  # a file's name or a card's header that the client rejects
        raise BundleError(f"{doing}: {' '.join(str(error).split())[:300]}; correct the name or the card") from error


class Published(NamedTuple):
    """The address of a bundle on the Hub; after a dry run, it is the address that the bundle would get."""

    repo_id: str
    url: str
    commit: str | None = None


def publish(
    bundle: Path | str, repo_id: str, *, private: bool = False, tag: str | None = None, create_pr: bool = False,
    dry_run: bool = False, i_have_the_rights: bool = False, as_drafted: bool = False, mteb: bool = False,
) -> Published:  # fmt: skip
    """Check a bundle, publish it on the Hugging Face Hub in one commit, and print its changes and how to load it."""
    root = Path(bundle)
    info = check_bundle(root, rights=i_have_the_rights, as_drafted=as_drafted)
    api = connect(repo_id)
    url = f"{api.endpoint}/datasets/{repo_id}"
    if not dry_run and not api.token:
        raise ServiceError(f"no token: run `hf auth login`, or set HF_TOKEN to one with write access ({TOKEN_PAGE})")
    remote, missing = None, (errors.RepositoryNotFoundError, errors.RevisionNotFoundError)
    with explain_errors(f"cannot look up {repo_id}"), contextlib.suppress(*missing):
        remote = None if dry_run else api.dataset_info(repo_id, revision="main")
    if remote and private and not remote.private:
        raise ToolkitError(f"{repo_id} is public, so nothing was sent: make it private on {url}/settings")
    card = (root / CARD).read_bytes()
    published = name_in_card(card, repo_id)
    if name_in_card(published, make_card_path(info.name)) != card:
        published = card  # `exhibit pull` must be able to restore the card
    contents: dict[str, Path | bytes] = {name: root / name for name in (*info.files, INFO)}
    contents |= {CARD: published, **make_shelf_files(info)}
    files = [file.rfilename for file in (remote and remote.siblings) or ()]
    removed = [name for name in files if name not in contents and name.startswith((f"{CORPUS}/", f"{PARQUET}/"))]
    print(f"{root} → {repo_id}")
    _print_plan(info, contents, removed)
    if dry_run:
        print("dry run: nothing was sent")
        return Published(repo_id, url)
    if remote is None and create_pr:
        raise ToolkitError(f"{repo_id} does not exist; publish it without --create-pr first")
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        CommitOperationAdd(name, content if isinstance(content, bytes) else str(content.absolute()))
        for name, content in contents.items()
    ]
    operations += [CommitOperationDelete(name, is_folder=False) for name in removed]
    with explain_errors(f"cannot publish to {repo_id}"):
        if remote is None:
            api.create_repo(repo_id, repo_type=KIND, private=private, exist_ok=True)
        title, parent = f"Publish {root.resolve().name}", remote.sha if remote else None
        commit = api.create_commit(
            repo_id, operations, commit_message=title, repo_type=KIND, create_pr=create_pr, parent_commit=parent
        )
    if tag:
        with explain_errors(f"published as {commit.oid[:12]}, but the tag {tag} was not set"):
            api.create_tag(repo_id, tag=tag, revision=commit.oid, repo_type=KIND)
    revision = commit.pr_revision or tag
    address = commit.pr_url or (f"{url}/tree/{revision}" if revision else url)
    at = f', revision="{revision}"' if revision else ""
    print(f"\n{address}\ncommit {commit.oid}\n\nfrom datasets import load_dataset\n")
    print(f'load_dataset("{repo_id}", split="train"{at})')
    if EVAL in contents:
        print(f"\ninspect eval hf/{repo_id}/{QUESTIONS_TASK} --model MODEL")
    if mteb:
        _publish_mteb(api, root, f"{repo_id}-mteb", private=private)
    return Published(repo_id, address, commit.oid)


def check_bundle(root: Path, *, rights: bool, as_drafted: bool) -> BundleInfo:
    """Return the content of bundle.json; raise if the bundle is invalid, not reviewed, or not redistributable."""
    problems = validate(root)
    raise_problems(problems, f"{root}: not published: the bundle has {len(problems)} problems")
    info = read_info(root / INFO)
    if info.draft is not None and not info.draft.reviewed and not as_drafted:
        advice = "review some with `exhibit review`, or add --as-drafted to publish them as drafts"
        words = info.draft.words(info.counts.questions)
        raise ToolkitError(f"{root}: not published: its questions are {words}\n{advice}")
    if not info.licence.redistributable and not rights:
        reason = info.licence.note or "its terms do not say that the documents may be redistributed"
        advice = "if you have the right to publish it anyway, add --i-have-the-rights"
        terms = f"{info.source.name} is under {info.licence.name}. {reason}"
        raise ToolkitError(f"{root}: not published: {terms}\n{advice}")
    return info


def name_in_card(card: bytes, path: str) -> bytes:
    """Return a dataset card whose code loads the bundle from this path."""
    return _LOADED.sub(lambda _: f'load_dataset("{path}"'.encode(), card)


def _publish_mteb(api: huggingface_hub.HfApi, root: Path, sibling: str, *, private: bool) -> None:
    title = f"Publish {root.resolve().name} for MTEB"
    with tempfile.TemporaryDirectory() as scratch, explain_errors(f"cannot publish to {sibling}"):
        folder = Path(scratch) / "mteb"
        export(root, "mteb", folder)
        api.create_repo(sibling, repo_type=KIND, private=private, exist_ok=True)
        api.upload_folder(
            folder_path=folder, repo_id=sibling, repo_type=KIND, commit_message=title, ignore_patterns=RECORD
        )
    print(f"\n{api.endpoint}/datasets/{sibling}: task.py runs it with mteb")


def _print_plan(info: BundleInfo, contents: dict[str, Path | bytes], removed: Sequence[str]) -> None:
    rights = "" if info.licence.redistributable else "; you state that you have the right to publish it"
    print(f"licence: {info.licence.name} ({info.licence.id}){rights}")
    size = sum(data.stat().st_size if isinstance(data, Path) else len(data) for data in contents.values())
    print(f"to send: {len(contents):,} files, {size / 1e6:.1f} MB, not counting files that the Hub already has")
    lines = [f"  {name}" for name in sorted(contents)] + [f"  removed   {name}" for name in removed]
    print("\n".join(lines[:_SHOWN]))
    if len(lines) > _SHOWN:
        print(f"  … and {len(lines) - _SHOWN:,} more")


@guarded("stopped; run the same command again: uploaded files are not sent twice")
def main(argv: Sequence[str] | None = None) -> int:
    """Publish a bundle; if that fails, return 1 and print one line with the remedy."""
    parser = build_parser("exhibit publish", __doc__)
    add = parser.add_argument
    add("bundle", type=Path, metavar="DIR", help="a bundle's folder")
    add("--repo-id", required=True, metavar="OWNER/NAME", help="the dataset on the Hub; it is created if missing")
    add("--private", action="store_true", help="create a private dataset; an existing public dataset is refused")
    add("--tag", metavar="NAME", help="set a tag on the commit, such as v1; an existing tag is not moved")
    add("--create-pr", action="store_true", help="open a pull request instead of committing")
    add("--dry-run", action="store_true", help="show what would be sent; send nothing")
    add("--i-have-the-rights", action="store_true", help="publish although the source's licence does not allow it")
    add("--as-drafted", action="store_true", help="publish questions that no person has reviewed, marked as drafts")
    add("--mteb", action="store_true", help="also publish OWNER/NAME-mteb: the passages and a task that mteb runs")
    add_json(parser)
    options = vars(parser.parse_args(argv))
    if options["create_pr"] and options["tag"]:
        parser.error("--create-pr cannot be combined with --tag; omit --tag")
    if options["mteb"] and options["create_pr"]:
        parser.error("--mteb commits the passages of all documents to main; omit --create-pr")
    as_json = options.pop("json")
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        published = publish(**options)
    if as_json:
        print_results(published._asdict(), "", as_json=True)
    return 0
