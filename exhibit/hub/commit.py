"""Make one atomic commit or pull request on the Hub.

Even if the Hub's reply is lost, the same commit is not made twice. If another user has changed the branch
meanwhile, no commit is made.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import huggingface_hub

from exhibit.hub.card import holds_documents
from exhibit.hub.remote import KIND, Hub, HubError, RemoteFile
from exhibit.runtime.secrets import scrub
from exhibit.schemas.bundle import CARD, CORPUS, INFO
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.storage.bundle import sha256_of


class ConflictError(HubError):
    """Another user committed to the branch meanwhile, so nothing was published."""


@dataclass(frozen=True)
class SentCommit:
    """The result of publishing: the commit, the revision to load, and the pull request if there is one."""

    commit: str
    revision: str | None = None
    pull_request: str | None = None


@dataclass(frozen=True)
class CommitRequest:
    """A commit to send: the planned file changes, the branch, the parent commit and the commit message."""

    plan: "Plan"
    branch: str
    parent: str | None
    message: str
    author: str | None = None
    pull_request: bool = False


def send(hub: Hub, request: CommitRequest) -> SentCommit:
    """Upload the files that the Hub lacks, then commit all of them at once; nothing is visible before the commit."""
    operations = _list_operations(request.plan)
    additions = [one for one in operations if isinstance(one, huggingface_hub.CommitOperationAdd)]
    _upload(hub, request, additions)
    _refuse_ignored(additions)

    def commit() -> SentCommit:
        info = hub.api.create_commit(
            hub.repo_id,
            operations,
            commit_message=request.message,
            repo_type=KIND,
            revision=request.branch,
            create_pr=request.pull_request,
            parent_commit=request.parent,
        )
        return SentCommit(info.oid, info.pr_revision, info.pr_url)

    def find_landed() -> SentCommit | None:
        return find_pull_request(hub, request) if request.pull_request else _find_commit(hub, request)

    try:
        return hub.ask(commit, doing="committing", landed=find_landed)
    except ConflictError:
        raise
    except HubError as error:
        advice = "run the same command again: it first checks whether the commit arrived"
        raise HubError(f"{error}; {advice}", status=error.status) from error


def _list_operations(plan: "Plan") -> list[huggingface_hub.CommitOperationAdd | huggingface_hub.CommitOperationDelete]:
    try:
        return [
            *(huggingface_hub.CommitOperationAdd(name, _find_source(plan, name)) for name in plan.sent),
            *(huggingface_hub.CommitOperationDelete(name, is_folder=False) for name in plan.removed),
        ]
    except ValueError as error:  # the Hub's client refuses a folder named .git or .cache
        raise ToolkitError(f"the Hub does not accept a file name: {error}; rename the file") from error


def _find_source(plan: "Plan", name: str) -> str | bytes:
    source = plan.contents[name].source
    return source if isinstance(source, bytes) else str(source.absolute())


def _upload(hub: Hub, request: CommitRequest, additions: list[huggingface_hub.CommitOperationAdd]) -> None:
    """Upload large files to the Hub's storage; files that are already there are not sent again."""
    try:
        hub.api.preupload_lfs_files(
            hub.repo_id,
            additions,
            repo_type=KIND,
            revision=request.branch,
            create_pr=request.pull_request,
            free_memory=False,
        )
    except Exception as error:
        explained = hub.explain(error, doing="uploading")
        if explained is None and not isinstance(error, OSError | RuntimeError | ValueError):
            raise
        # the client of the storage raises plain errors, whose messages may contain signed URLs
        explained = explained or HubError(scrub(f"uploading: {error}", hub.token))
        raise HubError(
            f"{explained}; nothing was published; run the same command again (uploaded files are not sent twice)",
            status=explained.status,
        ) from error


def _refuse_ignored(additions: list[huggingface_hub.CommitOperationAdd]) -> None:
    """Raise if the client would skip files because a .gitignore in the repository names them."""
    ignored = [one.path_in_repo for one in additions if getattr(one, "_should_ignore", False)]
    if ignored:
        raise ToolkitError(
            f".gitignore in the repository excludes {len(ignored)} files, such as {ignored[0]}; nothing was "
            "published: remove .gitignore there, or publish to another repository"
        )


def _find_commit(hub: Hub, request: CommitRequest) -> SentCommit | None:
    """Return the branch's newest commit if it has the content that we sent; None if the branch is unchanged.

    Raise ConflictError if another user has changed the branch.
    """
    head, _ = hub.commit_of(request.branch)
    if head is None or head == request.parent:
        return None
    if request.plan.is_at(hub.list_files(head)):
        return SentCommit(head)
    raise ConflictError(
        f"{hub.repo_id} ({request.branch}): another user has published the commit {head[:12]} in the meantime; "
        "run the same command again to build on it"
    )


def find_pull_request(hub: Hub, request: CommitRequest) -> SentCommit | None:
    """Return our open pull request with exactly this content, if there is one."""
    discussions = hub.ask(
        lambda: list(
            hub.api.get_repo_discussions(
                hub.repo_id, repo_type=KIND, discussion_type="pull_request", discussion_status="open"
            )
        ),
        doing="looking for the pull request",
    )
    for one in discussions:
        if one.title != request.message.partition("\n")[0] or request.author not in (None, one.author):
            continue
        revision = one.git_reference or f"refs/pr/{one.num}"
        commit, _ = hub.commit_of(revision)
        if commit and request.plan.is_at(hub.list_files(commit)):
            return SentCommit(commit, revision, one.url)
    return None


# ---------------------------------------------------------------- tags


def check_tag(hub: Hub, tag: str) -> str | None:
    """Return the commit of a tag, or None if there is no such tag."""
    refs = hub.ask(lambda: hub.api.list_repo_refs(hub.repo_id, repo_type=KIND), doing="listing the tags")
    return next((one.target_commit for one in refs.tags if one.name == tag), None)


def set_tag(hub: Hub, tag: str, commit: str) -> None:
    """Set a tag on a commit; an existing tag is never moved."""
    how: dict[str, Any] = {"tag": tag, "revision": commit, "repo_type": KIND, "exist_ok": True}
    try:
        hub.ask(lambda: hub.api.create_tag(hub.repo_id, **how), doing=f"setting the tag {tag}")
    except HubError as error:
        raise HubError(
            f"published as {commit[:12]}, but without the tag: {error}; run the same command again"
        ) from error


_SHOWN = 12
"""The most files of one kind that are listed by name."""
_UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9}


@dataclass(frozen=True)
class Content:
    """The content of a file to send to the Hugging Face Hub, with its size and sha256."""

    source: Path | bytes
    size: int
    sha256: str

    def is_at(self, remote: RemoteFile) -> bool:
        """Return whether the file `remote` on the Hub has exactly this content."""
        if remote.sha256 is not None:
            return remote.sha256 == self.sha256
        if remote.size != self.size:
            return False
        data = self.data()
        # Git's own hash of a file: not used for security
        return remote.blob == hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()

    def data(self) -> bytes:
        """Return the file's bytes."""
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()


Contents = Mapping[str, Content]


def contents_of(root: Path, info: BundleInfo, *, repo_id: str, corpus: bool) -> dict[str, Content]:
    """Return the content of every file to send, by path.

    These are the files that bundle.json lists, the card with the repository's name in it, and bundle.json
    itself. Without `corpus`, files that contain documents are left out.
    """
    own = (root / CARD).read_bytes()
    tables = () if corpus else read_corpus_patterns(own)
    sent = {}
    for name, entry in info.files.items():
        shown = holds_documents(name) or any(fnmatchcase(name, pattern) for pattern in tables)
        if corpus or not shown:
            sent[name] = Content(root / name, entry.bytes, entry.sha256)
    card = insert_address(own if corpus else without_documents(own), repo_id)
    sent[CARD] = Content(card, len(card), hashlib.sha256(card).hexdigest())
    sent[INFO] = Content(root / INFO, (root / INFO).stat().st_size, sha256_of(root / INFO))
    return dict(sorted(sent.items()))


@dataclass(frozen=True)
class Plan:
    """The difference between a bundle and a branch on the Hub."""

    contents: Contents
    new: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]

    @property
    def sent(self) -> tuple[str, ...]:
        """The paths of the files that are uploaded."""
        return tuple(sorted((*self.new, *self.changed)))

    @property
    def is_empty(self) -> bool:
        """Whether the Hub already has exactly this content."""
        return not (self.new or self.changed or self.removed)

    def is_at(self, files: Mapping[str, RemoteFile]) -> bool:
        """Return whether these files on the Hub are what the plan produces: all its contents, and no removed file."""
        there = all(name in files and content.is_at(files[name]) for name, content in self.contents.items())
        return there and not any(name in files for name in self.removed)


def compare(contents: Contents, remote: Mapping[str, RemoteFile], *, recorded: Collection[str]) -> Plan:
    """Return the differences between a bundle and the files on the Hub.

    A file on the Hub is deleted only if it is below corpus/, or if the bundle.json on the Hub lists it.
    """
    there = [name for name in contents if name in remote]
    same = {name for name in there if contents[name].is_at(remote[name])}
    ours = [name for name in remote if name not in contents and (name.startswith(f"{CORPUS}/") or name in recorded)]
    return Plan(
        contents,
        new=tuple(name for name in contents if name not in remote),
        changed=tuple(name for name in there if name not in same),
        unchanged=tuple(name for name in there if name in same),
        removed=tuple(sorted(ours)),
    )


def describe_plan(plan: Plan) -> Iterator[str]:
    """Yield lines that describe an upload to the Hub: its size, and the new, changed and removed files."""
    size = sum(plan.contents[name].size for name in plan.sent)
    total = sum(content.size for content in plan.contents.values())
    yield f"to send: {len(plan.sent):,} of {len(plan.contents):,} files, {format_size(size)} of {format_size(total)}"
    for word, names in (("new", plan.new), ("changed", plan.changed), ("removed", plan.removed)):
        for name in names[:_SHOWN]:
            yield f"  {word:<9} {name}" + (
                f"  ({format_size(plan.contents[name].size)})" if name in plan.contents else ""
            )
        if len(names) > _SHOWN:
            yield f"  {word:<9} … and {len(names) - _SHOWN:,} more"
    if plan.unchanged:
        yield f"  unchanged {len(plan.unchanged):,} files"


def format_size(size: float) -> str:
    """Return a number of bytes as text with a unit: 1500 as "1.5 kB"."""
    if size < 1000:
        return f"{size:.0f} bytes"
    unit = next((unit for unit in ("kB", "MB") if size < 1000 * _UNITS[unit]), "GB")
    return f"{size / _UNITS[unit]:.1f} {unit}"


# ---------------------------------------------------------------- the card's load_dataset calls


PLACEHOLDER = "PATH_OR_REPO"
"""The card's placeholder for a folder or repository; a bundle does not know where it will be published."""

_DOCUMENTS = ("<!-- documents -->\n", "<!-- /documents -->\n")
"""Invisible marks in a card around the parts that show documents."""
_CORPUS_CONFIG = re.compile(rf"^- config_name: {CORPUS}\n(?:[ ].*\n)*", re.MULTILINE)
_LOADED = re.compile(r'load_dataset\("([^"\n]+)"')


def insert_address(card: bytes, repo_id: str) -> bytes:
    """Return the dataset card with the repository's name in place of the placeholder.

    If replacing the name by the placeholder would not give the original card again, for example because the
    card already contains the name, return the card unchanged.
    """
    named = card.replace(_quote_name(PLACEHOLDER), _quote_name(repo_id))
    undone = named.replace(_quote_name(repo_id), _quote_name(PLACEHOLDER))
    return named if undone == card else card


def remove_address(card: bytes, sha256: str) -> bytes | None:
    """Return a published dataset card as it was before publishing, with `PATH_OR_REPO` as the repository's name.

    Return None if the SHA-256 of that card is not `sha256`.
    """
    names = dict.fromkeys(_LOADED.findall(card.decode("utf-8", "replace")))
    for candidate in [card, *(card.replace(_quote_name(name), _quote_name(PLACEHOLDER)) for name in names)]:
        if hashlib.sha256(candidate).hexdigest() == sha256:
            return candidate
    return None


def without_documents(card: bytes) -> bytes:
    """Return the card for a bundle that is published without its documents.

    The parts that show documents (a config, the image and the example) are removed, and a note says so.
    """
    text = _CORPUS_CONFIG.sub("", _without_documents(card.decode("utf-8")))
    note = "The documents are not in this repository; the command under *How it was made* creates them."
    return re.sub(r"^# .*\n", lambda title: f"{title[0]}\n{note}\n", text, count=1, flags=re.MULTILINE).encode()


def read_corpus_patterns(card: bytes) -> list[str]:
    """Return the file patterns of the card's config `corpus`, the Parquet tables that contain the documents."""
    configs = [one for one in metadata_of(card).get("configs") or [] if one["config_name"] == CORPUS]
    return [str(file["path"]) for config in configs for file in config["data_files"]]


def metadata_of(card: bytes) -> dict[str, Any]:
    """Return the metadata in the YAML header of a dataset card."""
    try:
        return dict(huggingface_hub.DatasetCard(card.decode("utf-8")).data.to_dict())  # type: ignore[no-untyped-call]
    except Exception as error:
        # the Hub's client chooses the YAML library, and thereby the error classes
        raise BundleError(f"{CARD}: its header is not valid YAML: {' '.join(str(error).split())}") from error


def load_lines(metadata: Mapping[str, Any], repo_id: str, revision: str | None) -> list[str]:
    """Return one `load_dataset` call for each config of the card, the default first."""
    ordered = sorted(metadata.get("configs") or [], key=lambda config: not config.get("default"))
    tail = f', revision="{revision}")' if revision else ")"
    return [f'load_dataset("{repo_id}", "{config["config_name"]}", split="train"{tail}' for config in ordered]


def _quote_name(name: str) -> bytes:
    return f'"{name}"'.encode()


def _without_documents(card: str) -> str:
    begin, end = _DOCUMENTS
    kept, *shown = card.split(begin)
    for part in shown:
        inside, mark, rest = part.partition(end)
        kept += rest.removeprefix("\n") if mark else begin + inside
    return kept
