"""The structure of a document: a tree of sections, whose leaves cover the text without gaps or overlaps."""

from exhibit.law.structure.tree import cut, format_section_path, read_structure

__all__ = ["cut", "format_section_path", "read_structure"]
