"""Which datasets a run has, and where their documents are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from exhibit.evaluation.datasets import find_datasets
from exhibit.evaluation.records import CONFIG, read_json
from exhibit.evaluation.report.run import ROWS
from exhibit.schemas.errors import ToolkitError
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
        if is_url(path):
            try:
                bundles, _, problems = find_datasets([path])
            except ToolkitError as error:
                bundles, problems = {}, [str(error)]
            if bundles:
                roots[name] = next(iter(bundles.values()))
            gone = "; ".join(problems)
        else:
            if path and Path(path).is_dir():
                roots[name] = Path(path)
            gone = f"{path or 'its folder'}: not there"
        if name not in roots:
            say(f"{name}: the pages of its documents are not drawn: {gone}; give its bundle with --dataset-paths")
    return roots
