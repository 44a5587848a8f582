"""The structure of a document: a tree of sections, whose leaves cover the text without gaps or overlaps."""

from exhibit.law.structure.tree import cut, read_structure, section_path

__all__ = ["cut", "read_structure", "section_path"]
