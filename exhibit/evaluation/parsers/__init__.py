"""PDF parsers to compare: one file per library, named by `exhibit ceiling --parser`.

Each has `read(path)`, which returns the texts of the pages as the library gives them, in order.
"""
