"""One atomic commit, or one pull request: sent once, found again when its reply is lost, refused on a conflict."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import huggingface_hub

from exhibit.hub._plan import Plan
from exhibit.hub._remote import KIND, Hub
from exhibit.hub._trouble import HubError
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.secrets import scrubbed

_COMMITS_BACK = 20
"""Commits after ours that are looked through when a reply is lost."""


class ConflictError(HubError):
    """Others committed meanwhile, so nothing was published."""


class UnclearError(HubError):
    """A reply was lost, and the Hub cannot be asked what came of the request."""


@dataclass(frozen=True)
class Sent:
    """What came of it: the commit, the revision that loads it, and the pull request if it is one."""

    commit: str
    revision: str | None = None
    pull_request: str | None = None


@dataclass(frozen=True)
class Letter:
    """A plan with its address: the branch, the commit it builds on, and what is said about it."""

    plan: Plan
    branch: str
    parent: str | None
    message: str
    author: str | None = None
    pull_request: bool = False


def send(hub: Hub, letter: Letter) -> Sent:
    """Upload what the Hub lacks, then commit all of it at once; nothing is seen on the Hub before that."""
    operations = _operations(letter.plan)
    additions = [one for one in operations if isinstance(one, huggingface_hub.CommitOperationAdd)]
    _upload(hub, letter, additions)
    _refuse_ignored(additions)

    def commit() -> Sent:
        info = hub.api.create_commit(
            hub.repo_id,
            operations,
            commit_message=letter.message,
            repo_type=KIND,
            revision=letter.branch,
            create_pr=letter.pull_request,
            parent_commit=letter.parent,
        )
        return Sent(info.oid, info.pr_revision, info.pr_url)

    def landed() -> Sent | None:
        try:
            return find_pull_request(hub, letter) if letter.pull_request else _find_commit(hub, letter)
        except ConflictError:
            raise
        except HubError as error:
            raise UnclearError(
                f"{error}; whether the commit before that arrived is not known: run the same command again, and it "
                "looks first"
            ) from error

    try:
        return hub.ask(commit, doing="committing", landed=landed)
    except (ConflictError, UnclearError):
        raise
    except HubError as error:
        raise HubError(f"{error}; nothing was published: run the same command again", status=error.status) from error


def _operations(plan: Plan) -> list[huggingface_hub.CommitOperationAdd | huggingface_hub.CommitOperationDelete]:
    try:
        return [
            *(huggingface_hub.CommitOperationAdd(name, _source(plan, name)) for name in plan.sent),
            *(huggingface_hub.CommitOperationDelete(name, is_folder=False) for name in plan.removed),
        ]
    except ValueError as error:  # a folder named .git or .cache
        raise ToolkitError(f"the Hub holds no file of that name: {error}") from error


def _source(plan: Plan, name: str) -> str | bytes:
    source = plan.contents[name].source
    return source if isinstance(source, bytes) else str(source.absolute())


def _upload(hub: Hub, letter: Letter, additions: list[huggingface_hub.CommitOperationAdd]) -> None:
    """Put large files into the Hub's storage; those that are there already are not sent again."""
    try:
        hub.api.preupload_lfs_files(
            hub.repo_id,
            additions,
            repo_type=KIND,
            revision=letter.branch,
            create_pr=letter.pull_request,
            free_memory=False,
        )
    except Exception as error:
        told = hub.explain(error, doing="uploading")
        if told is None and not isinstance(error, OSError | RuntimeError | ValueError):
            raise
        # the storage's own client raises plain errors; their words may hold addresses that are signed
        told = told or HubError(scrubbed(f"uploading: {error}", hub.token))
        raise HubError(
            f"{told}; nothing was published: run the same command again, and what is uploaded is not sent again",
            status=told.status,
        ) from error


def _refuse_ignored(additions: list[huggingface_hub.CommitOperationAdd]) -> None:
    """Refuse to publish a part: the client leaves out what a .gitignore in the repository names."""
    ignored = [one.path_in_repo for one in additions if getattr(one, "_should_ignore", False)]
    if ignored:
        raise ToolkitError(
            f".gitignore in the repository keeps {len(ignored)} files out, first {ignored[0]}; remove it there, "
            "or publish to another repository: nothing was published"
        )


def _find_commit(hub: Hub, letter: Letter) -> Sent | None:
    """Return our commit when it is on the branch; None when the branch has not moved; raise when others moved it."""
    head, _ = hub.commit_of(letter.branch)
    if head is None or head == letter.parent:
        return None
    commits = hub.ask(
        lambda: hub.api.list_repo_commits(hub.repo_id, repo_type=KIND, revision=letter.branch),
        doing="looking for the commit",
    )
    for commit in islice(commits, _COMMITS_BACK):
        if commit.commit_id == letter.parent:
            break
        if commit.title == letter.message.partition("\n")[0] and letter.plan.is_at(hub.files_at(commit.commit_id)):
            return Sent(commit.commit_id)
    raise ConflictError(
        f"somebody else committed to {hub.repo_id} ({letter.branch}) meanwhile, now at {head[:12]}; nothing was "
        "published: run the same command again, and it will build on that"
    )


def find_pull_request(hub: Hub, letter: Letter) -> Sent | None:
    """Return an open pull request of ours that holds exactly this."""
    discussions = hub.ask(
        lambda: list(
            hub.api.get_repo_discussions(
                hub.repo_id, repo_type=KIND, discussion_type="pull_request", discussion_status="open"
            )
        ),
        doing="looking for the pull request",
    )
    for one in discussions:
        if one.title != letter.message.partition("\n")[0] or letter.author not in (None, one.author):
            continue
        revision = one.git_reference or f"refs/pr/{one.num}"
        commit, _ = hub.commit_of(revision)
        if commit and letter.plan.is_at(hub.files_at(commit)):
            return Sent(commit, revision, one.url)
    return None


# ---------------------------------------------------------------- tags


def check_tag(hub: Hub, tag: str) -> str | None:
    """Return the commit that a tag stands on, None where there is no such tag."""
    refs = hub.ask(lambda: hub.api.list_repo_refs(hub.repo_id, repo_type=KIND), doing="listing the tags")
    return next((one.target_commit for one in refs.tags if one.name == tag), None)


def set_tag(hub: Hub, tag: str, commit: str) -> None:
    """Set a tag on a commit; a tag that stands elsewhere is never moved."""

    def create() -> bool:
        hub.api.create_tag(hub.repo_id, tag=tag, revision=commit, repo_type=KIND)
        return True

    try:
        hub.ask(create, doing=f"setting the tag {tag}", landed=lambda: check_tag(hub, tag) == commit or None)
    except HubError as error:
        raise HubError(
            f"published as {commit[:12]}, but without the tag: {error}; run the same command again"
        ) from error
