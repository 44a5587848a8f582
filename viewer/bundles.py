"""Where the documents of a run are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from exhibit.evaluation.datasets import find_datasets
from exhibit.schemas.bundle import CORPUS, TRAIN
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
                root, gone = _root(entry.origin, entry.path)
                if root is not None:
                    roots[name] = root
                else:
                    say(f"{name}: the pages of its documents are not drawn: {gone}; give it with --dataset-paths")
    return roots


def _root(*addresses: str | None) -> tuple[Path | None, str]:
    """Return where a bundle is on this machine, or why it is not to be had.

    A run may come from elsewhere: it names no server to ask, and no folder that is not a bundle.
    """
    here = [Path(address) for address in addresses if address and not is_url(address)]
    root = next((path for path in here if (path / TRAIN).is_file() and (path / CORPUS).is_dir()), None)
    named = next(filter(None, addresses), "its folder")
    return root, "" if root else f"{named}: {'not on this machine' if is_url(named) else 'not there'}"
