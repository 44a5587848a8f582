"""The structure of a document: a tree of sections that tiles its text."""

from exhibit.law.structure.tree import cut, read_structure, section_path

__all__ = ["cut", "read_structure", "section_path"]
