"""Where the documents of a run are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from exhibit.evaluation.datasets import find_datasets
from exhibit.hub.pull import fetch, is_repository, parse_address
from exhibit.schemas.command import print_note
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.locations import is_url


def dataset_roots(
    runs: Sequence[RunFolder], *, given: Iterable[str] = (), say: Callable[[str], None]
) -> dict[str, Path]:
    """Return the bundles of some runs: those given, else where the runs had them; say which are gone."""
    folders, notes, problems = find_datasets(list(given)) if given else ({}, [], [])
    if problems:
        raise ToolkitError("\n".join(problems))
    for note in notes:
        say(note)
    roots: dict[str, Path] = {}
    for run in runs:
        for name, entry in run.config.datasets.items():
            if name in folders:
                roots[name] = folders[name]
            elif name not in roots:
                root, gone = _root(entry.origin or entry.path)
                if root is not None:
                    roots[name] = root
                else:
                    say(f"{name}: the pages of its documents are not drawn: {gone}; give it with --dataset-paths")
    return roots


def _root(address: str) -> tuple[Path | None, str]:
    """Return where a bundle is now, or why it is not to be had."""
    try:
        if is_repository(address):
            repo_id, revision = parse_address(address)
            return fetch(repo_id, revision=revision, say=print_note).folder, ""
        if is_url(address):
            bundles, _, problems = find_datasets([address])
            return next(iter(bundles.values()), None), "; ".join(problems)
    except ToolkitError as error:
        return None, str(error)
    path = Path(address)
    return (path, "") if address and path.is_dir() else (None, f"{address or 'its folder'}: not there")
