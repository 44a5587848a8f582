"""Which datasets a run has, and where their documents are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from exhibit.evaluation.records import CONFIG, read_json
from exhibit.evaluation.report.run import ROWS
from exhibit.schemas.bundle import CORPUS, TRAIN
from exhibit.storage.locations import is_url


def dataset_names(folder: Path) -> list[str]:
    """Return the datasets of a run, as its settings name them, or its folders."""
    told = read_json(folder / CONFIG).get("datasets") if (folder / CONFIG).is_file() else None
    if isinstance(told, dict) and told:
        return list(told)
    return sorted(path.parent.name for path in folder.glob(f"*/{ROWS}"))


def dataset_roots(folder: Path, say: Callable[[str], None]) -> dict[str, Path]:
    """Return the bundles of a run where they were when it ran; those that are gone are told, and left out."""
    told = read_json(folder / CONFIG).get("datasets") if (folder / CONFIG).is_file() else None
    roots: dict[str, Path] = {}
    for name, about in told.items() if isinstance(told, dict) else ():
        path = str((about or {}).get("path") or "")
        # a run may come from elsewhere: it names no server to ask, and no folder that is not a bundle
        gone = f"{path or 'its folder'}: {'no folder of this machine' if is_url(path) else 'not there'}"
        if not is_url(path) and (Path(path) / TRAIN).is_file() and (Path(path) / CORPUS).is_dir():
            roots[name] = Path(path)
        if name not in roots:
            say(f"{name}: the pages of its documents are not drawn: {gone}; give its bundle with --dataset-paths")
    return roots
