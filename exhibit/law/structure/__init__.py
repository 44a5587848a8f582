"""A document's own order: a tree of sections that tiles its text, and what it says of itself."""

from exhibit.law.structure.tree import cut, read_structure, section_path

__all__ = ["cut", "read_structure", "section_path"]
