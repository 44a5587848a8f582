"""Publish a bundle as a dataset on the Hugging Face Hub: it is checked first, and sent in one commit.

    exhibit publish datasets_out/cuad --repo-id me/cuad-rag --dry-run    # what would be sent; needs no token
    exhibit publish datasets_out/cuad --repo-id me/cuad-rag --private
    exhibit publish datasets_out/cuad --repo-id me/cuad-rag --tag v1 --message "First release"
    exhibit publish datasets_out/cuad --repo-id lab/cuad-rag --create-pr
    exhibit pull me/cuad-rag --out datasets_out/cuad                     # and back

The token is read from HF_TOKEN or from the Hub's own store (`hf auth login`), and never printed.
After an error run the same command again: uploaded files are not sent twice, and no commit is made twice.
"""

import argparse
import contextlib
import re
import sys
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path, PureWindowsPath
from typing import Any, NamedTuple

from huggingface_hub.errors import EntryNotFoundError
from huggingface_hub.utils import get_session, hf_raise_for_status  # type: ignore[attr-defined]

from exhibit.hub.commit import (
    CommitRequest,
    Plan,
    SentCommit,
    check_tag,
    compare,
    contents_of,
    describe_plan,
    find_pull_request,
    load_lines,
    metadata_of,
    send,
    set_tag,
)
from exhibit.hub.remote import KIND, BranchState, Hub, HubError, is_unreachable
from exhibit.runtime.command import add_json, build_parser, guarded, print_note, print_results
from exhibit.schemas.bundle import CARD, CORPUS, INFO, TRAIN, read_info, read_questions
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.validate import validate

MAIN = "main"
_SHOWN = 10  # more problems would not fit one screen
_NOT_ON_WINDOWS = re.compile(
    r'[<>:"\\|?*\x00-\x1f]|[. ](?=/|$)|(?:^|/)(?:con|prn|aux|nul|(?:com|lpt)[1-9])(?=[ ./]|$)', re.IGNORECASE
)
_LONGEST_PATH = 200
"""Longest path in characters: Windows allows 260 including the parent folder, which rarely has fewer than 60."""
_NEVER_OURS = (".git", f"{CORPUS}/")
"""Path prefixes that need no look at the bundle on the Hub: git's files never belong to a bundle, the corpus always
does.
"""


class Published(NamedTuple):
    """The address of a bundle on the Hub; after a dry run, the address that it would have."""

    repo_id: str
    url: str
    commit: str | None = None


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
) -> Published:
    """Publish a bundle on the Hugging Face Hub; print the changes, the address and how to load it."""
    return run(argparse.Namespace(**{**locals(), "bundle": Path(bundle)}))


def run(options: argparse.Namespace) -> Published:
    """Publish a bundle on the Hugging Face Hub with the options of the command line.

    Print the changed files, the dataset's address, and how to load the dataset.
    """
    root: Path = options.bundle
    info = check_bundle(root)
    check_reviewed(info, root, as_drafted=options.as_drafted)
    check_licence(info, root, rights=options.i_have_the_rights, corpus=options.include_corpus)
    hub = Hub(options.repo_id, say=print_note)
    contents = contents_of(root, info, repo_id=hub.repo_id, corpus=options.include_corpus)
    _check_names(contents)
    author = None if options.dry_run else hub.check_writer()
    try:
        state, branch_is_new = look(hub, options.revision)
    except HubError as error:
        if not options.dry_run or not is_unreachable(error):
            raise
        state, branch_is_new = None, False
        print_note(f"{error}")
        print_note(f"the files of {hub.repo_id} could not be compared: all files are listed as new")
    plan = compare(contents, state.files if state else {}, recorded=_read_recorded_files(hub, state, set(contents)))
    check_visibility(hub, state, private=options.private)
    _show(hub, info, plan, options, state)
    if options.dry_run:
        print("dry run: nothing was sent")
        return Published(hub.repo_id, hub.url)
    tagged = check_tag(hub, options.tag) if options.tag and state else None
    held = (state.commit or "") if state and plan.is_empty and not branch_is_new else None
    if tagged and tagged != held:
        raise ToolkitError(
            f"the tag {options.tag} already exists, on {tagged[:12]}; a tag is never moved: choose another"
        )
    if held is not None:
        sent = SentCommit(held)
        print(f"nothing to do: {hub.url} already has exactly this content (commit {held[:12]})")
    else:
        check_card(hub, contents[CARD].data())
        state = prepare(hub, state, options, branch_is_new=branch_is_new)
        plan = compare(contents, state.files, recorded=_read_recorded_files(hub, state, set(contents)))
        sent = _deliver(hub, plan, state, options, author)
    if tagged:
        print(f"the tag {options.tag} is already set on this commit")
    elif options.tag:
        set_tag(hub, options.tag, sent.commit)
    _report(hub, root, sent, options)
    return Published(hub.repo_id, sent.pull_request or hub.url, sent.commit)


# ---------------------------------------------------------------- before anything is sent


def look(hub: Hub, branch: str | None) -> tuple[BranchState | None, bool]:
    """Return the state of a branch, and whether the branch still has to be created.

    For a branch that does not exist yet, return the state of `main`. The state is None if there is no
    repository.
    """
    try:
        return hub.read_state(branch or MAIN), False
    except HubError as error:
        if error.status != 404 or error.missing or not branch or branch.startswith("refs/"):
            raise
    return hub.read_state(MAIN), True


def _read_recorded_files(hub: Hub, state: BranchState | None, sent: set[str]) -> frozenset[str]:
    """Return the paths that the bundle.json on the Hub lists; empty if bundle.json is missing or invalid.

    bundle.json is downloaded only if the Hub has files that are not in `sent`; otherwise the result is empty.
    """
    others = [name for name in state.files if name not in sent and not name.startswith(_NEVER_OURS)] if state else []
    if state is None or INFO not in state.files or not others:
        return frozenset()
    try:
        path = hub.ask(
            lambda: hub.api.hf_hub_download(hub.repo_id, INFO, repo_type=KIND, revision=state.commit),
            doing=f"reading {INFO} of {hub.repo_id}",
            most=1,
        )
        return frozenset(read_info(Path(path)).files)
    except (BundleError, EntryNotFoundError):
        return frozenset()  # not one of our bundles: none of its files is deleted


def check_bundle(root: Path) -> BundleInfo:
    """Return bundle.json of a valid bundle; refuse an invalid one and name its first problems."""
    problems = validate(root)
    if not problems:
        return read_info(root / INFO)
    listed = [f"  {problem}" for problem in problems[:_SHOWN]]
    if len(problems) > _SHOWN:
        listed.append(f"  … and {len(problems) - _SHOWN} more: exhibit validate {root}")
    raise BundleError("\n".join([f"{root}: not published: the bundle has {len(problems)} problems:", *listed]))


def check_licence(info: BundleInfo, root: Path, *, rights: bool, corpus: bool) -> None:
    """Raise if the source's licence does not allow redistribution, unless `rights` is set.

    `rights` means that the user claims the right to publish. `corpus` only affects the error message.
    """
    licence = info.licence
    if licence.redistributable or rights:
        return
    reason = licence.note or "its terms do not say that the documents may be redistributed"
    quoted = [len(c.text) for question in read_questions(root / TRAIN) for c in question.contexts if c.text]
    without = (
        "" if corpus else
        f"\n--no-corpus does not help: train.json itself quotes {len(quoted):,} passages ({sum(quoted):,} "
        "characters) of the documents, under the same terms"
    )  # fmt: skip
    raise ToolkitError(
        f"{root}: not published: {info.source.name} is under {licence.name}. {reason}{without}\nif you have the "
        "right to publish it anyway, add --i-have-the-rights"
    )


def check_reviewed(info: BundleInfo, root: Path, *, as_drafted: bool) -> None:
    """Raise if a program drafted the questions and no person reviewed any of them, unless `as_drafted` is set."""
    if info.draft is None or as_drafted or info.draft.reviewed:
        return
    raise ToolkitError(
        f"{root}: not published: its questions are {info.draft.words(info.counts.questions)}\nreview some with "
        "`exhibit review`, or add --as-drafted to publish them as drafts"
    )


def check_card(hub: Hub, card: bytes) -> None:
    """Ask the Hub to validate the card, before anything is created or uploaded; raise if the card is refused."""

    def ask() -> dict[str, Any]:
        # not DatasetCard.validate: its older versions ignore HF_ENDPOINT and ask huggingface.co
        body = {"content": card.decode("utf-8"), "repoType": KIND}
        reply = get_session().post(f"{hub.api.endpoint}/api/validate-yaml", json=body)
        if reply.status_code != 400:
            hf_raise_for_status(reply)
        content = reply.json()
        return content if isinstance(content, dict) else {}

    verdict = hub.ask(ask, doing="checking the card")
    errors = [str(one.get("message")) for one in verdict.get("errors") or []]
    if errors:
        raise BundleError(f"{CARD}: the Hub does not accept this card: {'; '.join(errors)}")
    for one in verdict.get("warnings") or []:
        hub.say(f"{CARD}: {one.get('message')}")


def check_visibility(hub: Hub, state: BranchState | None, *, private: bool) -> None:
    """Raise if --private was given and the repository is public."""
    if state is not None and private and state.private is False:
        raise ToolkitError(
            f"{hub.repo_id} is public, so nothing was sent: make it private on {hub.url}/settings, choose another "
            "--repo-id, or leave out --private"
        )


def _check_names(names: Iterable[str]) -> None:
    names = list(names)
    refused = find_refused_paths(names)
    if refused:
        more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
        raise ToolkitError(
            f"{refused[0]}{more}: the path may lead out of its folder, so clients refuse to download it: rename it"
        )
    warnings = list_warnings(names)
    for line in warnings[:_SHOWN]:
        print_note(line)
    if len(warnings) > _SHOWN:
        print_note(f"… and {len(warnings) - _SHOWN} more names that not every system can store")


def list_warnings(paths: Iterable[str]) -> list[str]:
    """Return a warning for each path that Windows cannot store, and for paths that differ only in case."""
    listed = sorted(paths)
    odd = [path for path in listed if _NOT_ON_WINDOWS.search(path) or len(path) > _LONGEST_PATH]
    alike: dict[str, list[str]] = defaultdict(list)
    for path in listed:
        alike[unicodedata.normalize("NFC", path).casefold()].append(path)
    twins = [" and ".join(same) for same in alike.values() if len(same) > 1]
    one_file = "the same file on a system that ignores case"
    return [*(f"{path}: not a valid file name on Windows" for path in odd), *(f"{same}: {one_file}" for same in twins)]


def find_refused_paths(paths: Collection[str]) -> list[str]:
    """Return the paths that the Hub's clients refuse to download, because they could lead out of a folder."""
    outside = [path for path in paths if ".." in path.replace("\\", "/").split("/")]
    rooted = [path for path in paths for part in map(PureWindowsPath, path.split("/")) if part.drive or part.root]
    return sorted({*outside, *rooted})


# ---------------------------------------------------------------- sending


def prepare(hub: Hub, state: BranchState | None, options: argparse.Namespace, *, branch_is_new: bool) -> BranchState:
    """Create the repository and the branch if they are missing; return the state of the branch."""
    if state is None:
        if options.create_pr:
            raise ToolkitError(
                f"there is no {hub.repo_id} to open a pull request on; publish it without --create-pr first"
            )
        # a repository that was created meanwhile may have another visibility than requested: it is checked below
        hub.ask(
            lambda: hub.api.create_repo(hub.repo_id, repo_type=KIND, private=options.private, exist_ok=True),
            doing=f"creating {hub.repo_id}",
        )
        branch_is_new = options.revision not in (None, MAIN)
    if branch_is_new:
        hub.ask(
            lambda: hub.api.create_branch(hub.repo_id, branch=options.revision, repo_type=KIND, exist_ok=True),
            doing=f"creating the branch {options.revision}",
        )
    if state is None or branch_is_new:
        state = hub.read_state(options.revision or MAIN)
    if state is None:
        raise HubError(f"{hub.repo_id} was created, but is not visible; look at {hub.url}")
    check_visibility(hub, state, private=options.private)
    return state


def _deliver(hub: Hub, plan: Plan, state: BranchState, options: argparse.Namespace, author: str | None) -> SentCommit:
    request = CommitRequest(
        plan,
        branch=options.revision or MAIN,
        parent=state.commit,
        message=options.message or f"Publish {options.bundle.resolve().name}",
        author=author,
        pull_request=options.create_pr,
    )
    if plan.is_empty:  # the branch was just created from the same content
        return SentCommit(state.commit or "")
    if request.pull_request:
        before = find_pull_request(hub, request)
        if before:
            print(f"nothing to do: a pull request with exactly this content is open: {before.pull_request}")
            return before
    return send(hub, request)


# ---------------------------------------------------------------- output


def _show(hub: Hub, info: BundleInfo, plan: Plan, options: argparse.Namespace, state: BranchState | None) -> None:
    """Print the files to send, their target, the licence, and the changes."""
    private = options.private if state is None else state.private
    there = "new" if state is None else "there already"
    print(f"{options.bundle} → {hub.repo_id} ({there}, {'private' if private else 'public'})")
    if state is None and hub.token is None:
        print("without a token a private repository is not visible: it may exist")
    if state is not None and state.private and not options.private:
        print_note(f"{hub.repo_id} is private and stays private; to make it public: {hub.url}/settings")
    rights = "" if info.licence.redistributable else "; published under the rights that you state to have"
    print(f"licence: {info.licence.name} ({info.licence.id}){rights}")
    if not options.include_corpus:
        print(
            "without the documents: train.json and gold.jsonl still quote them, and the config `corpus` will be empty"
        )
    for line in describe_plan(plan):
        print(line)


def _report(hub: Hub, root: Path, sent: SentCommit, options: argparse.Namespace) -> None:
    revision = sent.revision or options.tag or (options.revision if options.revision != MAIN else None)
    where = sent.pull_request or (f"{hub.url}/tree/{revision}" if revision else hub.url)
    print(f"\n{where}\ncommit {sent.commit}\n\nfrom datasets import load_dataset\n")
    for line in load_lines(metadata_of((root / CARD).read_bytes()), hub.repo_id, revision):
        print(line)


# ---------------------------------------------------------------- the command


@guarded("stopped; run the same command again: it first checks what has arrived")
def main(argv: Sequence[str] | None = None) -> int:
    """Publish a bundle; if that fails, return 1 and print one line that says what to do."""
    parser = build_parser("exhibit publish", __doc__, module=__file__)
    add_json(parser)
    options = parser.parse_args(argv)
    if options.create_pr and options.tag:
        parser.error("--tag needs a commit, and a pull request has none yet: set the tag after the merge")
    if options.create_pr and options.revision:
        parser.error("--create-pr works only for main; remove --revision")
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        published = run(options)
    if options.json:
        print_results(published._asdict(), "", as_json=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
