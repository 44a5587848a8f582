"""Publish a bundle as a dataset on the Hugging Face Hub: it is checked first, and sent in one commit.

    exhibit publish datasets_out/cuad --repo-id me/cuad-rag --dry-run    # what would be sent; needs no token
    exhibit publish datasets_out/cuad --repo-id me/cuad-rag --private
    exhibit publish datasets_out/cuad --repo-id me/cuad-rag --tag v1 --message "First release"
    exhibit publish datasets_out/cuad --repo-id lab/cuad-rag --create-pr
    exhibit pull me/cuad-rag --out datasets_out/cuad                     # and back

The token is read from HF_TOKEN or from the Hub's own store (`hf auth login`), and never printed.
After an error run the same command again: uploaded files are not sent twice.
"""

import argparse
import contextlib
import hashlib
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import huggingface_hub
from huggingface_hub import CommitOperationAdd, CommitOperationDelete
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

from exhibit.hub.card import holds_documents
from exhibit.hub.export import RECORD, export
from exhibit.hub.remote import KIND, TOKEN_PAGE, HubError, connect, explain_errors
from exhibit.hub.shelves import EVAL, QUESTIONS_TASK, make_shelf_files
from exhibit.hub.tables import PARQUET
from exhibit.runtime.command import add_json, build_parser, guarded, print_note, print_results
from exhibit.schemas.bundle import CARD, CORPUS, INFO, TRAIN, read_info, read_questions
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.validate import validate

MAIN = "main"
_SHOWN = 10  # lines of a list; more would not fit one screen
PLACEHOLDER = "PATH_OR_REPO"
"""The card's placeholder for a folder or repository; a bundle does not know where it will be published."""
_CORPUS_CONFIG = re.compile(rf"^- config_name: {CORPUS}\n(?:[ ].*\n)*", re.MULTILINE)
_DOCUMENT_PARTS = re.compile(r"<!-- documents -->\n.*?<!-- /documents -->\n\n?", re.DOTALL)


class Published(NamedTuple):
    """The address of a bundle on the Hub; after a dry run, the address that it would have."""

    repo_id: str
    url: str
    commit: str | None = None


class Remote(NamedTuple):
    """A branch on the Hub: its last commit, and the names of its files."""

    commit: str | None
    private: bool
    files: list[str]


def publish(
    bundle: Path | str,
    repo_id: str,
    *,
    private: bool = False,
    revision: str | None = None,
    tag: str | None = None,
    message: str | None = None,
    create_pr: bool = False,
    dry_run: bool = False,
    include_corpus: bool = True,
    i_have_the_rights: bool = False,
    as_drafted: bool = False,
    mteb: bool = False,
) -> Published:
    """Publish a bundle on the Hugging Face Hub; print the changes, the address and how to load it."""
    return run(argparse.Namespace(**{**locals(), "bundle": Path(bundle)}))


def run(options: argparse.Namespace) -> Published:
    """Check a bundle, send it in one commit, and print how to load it."""
    root, repo_id = options.bundle, options.repo_id
    info = check_bundle(options)
    api = connect(repo_id)
    url = f"{api.endpoint}/datasets/{repo_id}"
    if not options.dry_run and not api.token:
        raise HubError(f"no token: log in with `hf auth login`, or set HF_TOKEN to one that may write ({TOKEN_PAGE})")
    try:
        remote = read_remote(api, repo_id, options.revision) or read_remote(api, repo_id, MAIN)
    except HubError as error:
        if not (options.dry_run and error.unreachable):
            raise
        print_note(str(error))
        remote = None
    if remote and options.private and not remote.private:
        raise ToolkitError(f"{repo_id} is public, so nothing was sent: make it private on {url}/settings")
    card = prepare_card((root / CARD).read_bytes(), repo_id, corpus=options.include_corpus)
    files = {name: root / name for name in (*info.files, INFO) if options.include_corpus or not holds_documents(name)}
    removed = [name for name in remote.files if name not in files] if remote else []
    removed = [name for name in removed if name.startswith((f"{CORPUS}/", f"{PARQUET}/"))]
    contents: dict[str, Path | bytes] = {
        **files,
        CARD: card,
        **make_shelf_files(info, documents=options.include_corpus),
    }
    _print_plan(options, info, contents, removed, remote)
    if options.dry_run:
        print("dry run: nothing was sent")
        return Published(repo_id, url)
    commit = _send(api, options, contents, removed, remote)
    if options.tag:
        with explain_errors(f"published as {commit.oid[:12]}, but the tag {options.tag} was not set"):
            api.create_tag(repo_id, tag=options.tag, revision=commit.oid, repo_type=KIND)
    revision = commit.pr_revision or options.tag or options.revision
    address = commit.pr_url or (f"{url}/tree/{revision}" if revision else url)
    at = f', revision="{revision}"' if revision else ""
    print(f"\n{address}\ncommit {commit.oid}\n\nfrom datasets import load_dataset\n")
    print(f'load_dataset("{repo_id}", split="train"{at})')
    if EVAL in contents:
        print(f"\ninspect eval hf/{repo_id}/{QUESTIONS_TASK} --model MODEL")
    if options.mteb:
        _publish_mteb(api, options)
    return Published(repo_id, address, commit.oid)


# ---------------------------------------------------------------- before anything is sent


def check_bundle(options: argparse.Namespace) -> BundleInfo:
    """Return what bundle.json says; raise if the bundle is not sound, not reviewed, or must not be redistributed."""
    root = options.bundle
    if problems := validate(root):
        listed = [f"  {problem}" for problem in problems[:_SHOWN]]
        raise BundleError("\n".join([f"{root}: not published: the bundle has {len(problems)} problems:", *listed]))
    info = read_info(root / INFO)
    if info.draft is not None and not info.draft.reviewed and not options.as_drafted:
        raise ToolkitError(
            f"{root}: not published: its questions are {info.draft.words(info.counts.questions)}\nreview some with "
            "`exhibit review`, or add --as-drafted to publish them as drafts"
        )
    licence = info.licence
    if licence.redistributable or options.i_have_the_rights:
        return info
    reason = licence.note or "its terms do not say that the documents may be redistributed"
    if not options.include_corpus:
        quotes = [len(c.text) for question in read_questions(root / TRAIN) for c in question.contexts if c.text]
        reason += (
            f"\n--no-corpus does not help: train.json itself quotes {len(quotes):,} passages ({sum(quotes):,} "
            "characters) of the documents, under the same terms"
        )
    raise ToolkitError(
        f"{root}: not published: {info.source.name} is under {licence.name}. {reason}\nif you have the right to "
        "publish it anyway, add --i-have-the-rights"
    )


def prepare_card(card: bytes, repo_id: str, *, corpus: bool) -> bytes:
    """Return the card with the repository's name; without the documents, it shows none, and says so."""
    if not corpus:
        text = _CORPUS_CONFIG.sub("", _DOCUMENT_PARTS.sub("", card.decode("utf-8")))
        note = "The documents are not in this repository; the command under *How it was made* creates them."
        card = re.sub(r"^# .*\n", lambda title: f"{title[0]}\n{note}\n", text, count=1, flags=re.MULTILINE).encode()
    named = card.replace(f'"{PLACEHOLDER}"'.encode(), f'"{repo_id}"'.encode())
    undone = named.replace(f'"{repo_id}"'.encode(), f'"{PLACEHOLDER}"'.encode())
    return named if undone == card else card  # `exhibit pull` must be able to undo it


def restore_card(card: bytes, sha256: str) -> bytes | None:
    """Return a published card as it was before publishing; None if no such card has the given SHA-256."""
    names = dict.fromkeys(re.findall(rb'load_dataset\("([^"\n]+)"', card))
    for candidate in (card, *(card.replace(b'"%b"' % name, f'"{PLACEHOLDER}"'.encode()) for name in names)):
        if hashlib.sha256(candidate).hexdigest() == sha256:
            return candidate
    return None


# ---------------------------------------------------------------- the repository


def read_remote(api: huggingface_hub.HfApi, repo_id: str, revision: str | None) -> Remote | None:
    """Return the files of a branch; None if the repository or the branch does not exist or is not visible."""
    with explain_errors(f"looking at {repo_id}"):
        try:
            info = api.dataset_info(repo_id, revision=revision)
        except (RepositoryNotFoundError, RevisionNotFoundError):
            return None
        except HfHubHTTPError as error:
            if error.response.status_code == 401 and not api.token:  # a private or missing repository
                return None
            raise
        return Remote(info.sha, bool(info.private), [file.rfilename for file in info.siblings or ()])


def _send(
    api: huggingface_hub.HfApi, options: argparse.Namespace, contents: dict[str, Path | bytes], removed: Sequence[str],
    remote: Remote | None,
) -> huggingface_hub.CommitInfo:  # fmt: skip
    """Create the repository and the branch where they are missing, and commit all changes at once."""
    repo_id, branch = options.repo_id, options.revision or MAIN
    if remote is None and options.create_pr:
        raise ToolkitError(f"there is no {repo_id} to open a pull request on; publish it without --create-pr first")
    with explain_errors(f"publishing to {repo_id}, run the same command again"):
        if remote is None:
            api.create_repo(repo_id, repo_type=KIND, private=options.private, exist_ok=True)
        if branch != MAIN:
            api.create_branch(repo_id, branch=branch, repo_type=KIND, exist_ok=True)
        try:
            operations: list[CommitOperationAdd | CommitOperationDelete] = [
                CommitOperationAdd(name, content if isinstance(content, bytes) else str(content.absolute()))
                for name, content in contents.items()
            ]
            operations += [CommitOperationDelete(name, is_folder=False) for name in removed]
            return api.create_commit(
                repo_id,
                operations,
                commit_message=options.message or f"Publish {options.bundle.resolve().name}",
                repo_type=KIND,
                revision=branch,
                create_pr=options.create_pr,
                parent_commit=remote.commit if remote else None,
            )
        except ValueError as error:  # a folder named .git, or a card's header that the Hub does not know
            raise BundleError(f"the Hub does not accept a file name or the card: {error}") from error


def _publish_mteb(api: huggingface_hub.HfApi, options: argparse.Namespace) -> None:
    """Publish the bundle's passages, questions and relevance in the sibling repository that MTEB reads."""
    sibling = f"{options.repo_id}-mteb"
    with (
        tempfile.TemporaryDirectory() as scratch,
        explain_errors(f"publishing to {sibling}, run the same command again"),
    ):
        folder = Path(scratch) / "mteb"
        export(options.bundle, "mteb", folder)
        api.create_repo(sibling, repo_type=KIND, private=options.private, exist_ok=True)
        api.upload_folder(
            repo_id=sibling,
            repo_type=KIND,
            folder_path=folder,
            commit_message=options.message or f"Publish {options.bundle.resolve().name} for MTEB",
            ignore_patterns=RECORD,
        )
    print(f"\n{api.endpoint}/datasets/{sibling}: task.py runs it with mteb")


def _print_plan(
    options: argparse.Namespace, info: BundleInfo, contents: dict[str, Path | bytes], removed: Sequence[str],
    remote: Remote | None,
) -> None:  # fmt: skip
    private = remote.private if remote else options.private
    exists = "there already" if remote else "new"
    print(f"{options.bundle} → {options.repo_id} ({exists}, {'private' if private else 'public'})")
    if remote and remote.private and not options.private:
        print_note(f"{options.repo_id} is private and stays private")
    rights = "" if info.licence.redistributable else "; published under the rights that you state to have"
    print(f"licence: {info.licence.name} ({info.licence.id}){rights}")
    if not options.include_corpus:
        print("without the documents: train.json and gold.jsonl still quote them; the config `corpus` is left out")
    size = sum(data.stat().st_size if isinstance(data, Path) else len(data) for data in contents.values())
    print(f"to send: {len(contents):,} files, {size / 1e6:.1f} MB, without those that the Hub has already")
    lines = [f"  {name}" for name in sorted(contents)] + [f"  removed   {name}" for name in removed]
    print("\n".join(lines[:_SHOWN]))
    if len(lines) > _SHOWN:
        print(f"  … and {len(lines) - _SHOWN:,} more")


# ---------------------------------------------------------------- the command


@guarded("stopped; run the same command again: uploaded files are not sent twice")
def main(argv: Sequence[str] | None = None) -> int:
    """Publish a bundle; if that fails, return 1 and print one line that says what to do."""
    parser = build_parser("exhibit publish", __doc__)
    add = parser.add_argument
    add("bundle", type=Path, metavar="DIR", help="a bundle's folder")
    add("--repo-id", required=True, metavar="OWNER/NAME", help="the dataset on the Hub; created if missing")
    add("--private", action="store_true", help="make a new dataset private; an existing one stays as it is")
    add("--revision", metavar="BRANCH", help="commit to this branch (default: main); created if missing")
    add("--tag", metavar="NAME", help="set a tag on the commit, such as v1; an existing tag is not moved")
    add("--message", metavar="TEXT", help="the commit message (default: Publish and the folder's name)")
    add("--create-pr", action="store_true", help="open a pull request instead of committing")
    add("--dry-run", action="store_true", help="show what would be sent and changed; send nothing")
    add("--include-corpus", action="store_true", default=True, help="with the documents under corpus/ (default)")
    add("--no-corpus", dest="include_corpus", action="store_false", help="only questions and gold, which quote them")
    add("--i-have-the-rights", action="store_true", help="publish although the source's licence does not allow it")
    add("--as-drafted", action="store_true", help="publish drafted questions that no person has reviewed, as such")
    add("--mteb", action="store_true", help="also publish OWNER/NAME-mteb: the passages and a task that mteb runs")
    add_json(parser)
    options = parser.parse_args(argv)
    if options.create_pr and (options.tag or options.revision):
        parser.error("--create-pr works only for main, without --tag and --revision")
    if options.mteb and (options.create_pr or options.revision or not options.include_corpus):
        parser.error(
            "--mteb publishes the passages of all documents to main: without --create-pr, --revision, --no-corpus"
        )
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        published = run(options)
    if options.json:
        print_results(published._asdict(), "", as_json=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
