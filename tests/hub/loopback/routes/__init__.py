"""The Hub's routes, one module for each subject; importing them fills the table of routes."""

from . import commits, discussions, files, lfs, refs, repos, site, xet

__all__ = ["commits", "discussions", "files", "lfs", "refs", "repos", "site", "xet"]
