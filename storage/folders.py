"""The files of a folder that are really in it: a link that leads out of it is not followed."""

from __future__ import annotations

from pathlib import Path


def files_below(folder: Path) -> list[Path]:
    """Return the files below a folder, in order, but for links to what is elsewhere."""
    return [path for path in _all_files(folder) if not _leads_out(path, _home(folder))]


def links_out(folder: Path) -> list[Path]:
    """Return the links below a folder that are not followed."""
    return [path for path in _all_files(folder) if _leads_out(path, _home(folder))]


def _all_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _leads_out(path: Path, home: Path) -> bool:
    return path.is_symlink() and not path.resolve().is_relative_to(home)


def _home(folder: Path) -> Path:
    """Return what a link may lead to: the folder, or in the Hub's cache the repository, whose files are links."""
    for parent in (folder, *folder.parents):
        if parent.name == "snapshots" and (parent.parent / "blobs").is_dir():
            return parent.parent.resolve()
    return folder.resolve()
