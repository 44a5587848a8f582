"""Texts to spans: one file per way of splitting, named by `--splitter`."""

from exhibit.rag.splitters._tiling import Splitter, tile

__all__ = ["Splitter", "tile"]
