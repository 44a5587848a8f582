"""Readers, one file for each kind of document; a file whose name starts with `_` is not a reader.

A reader has:

    SUFFIXES = (".docx",)                  # the file suffixes that it reads
    KIND = "Word document"                 # the name of the kind in messages
    def page(path) -> Printable: ...       # the HTML to print, for files without pages of their own
    def read(path) -> Document: ...        # its text, if it differs from the text of `page`
    def attachments(path) -> list: ...     # files inside it, which are separate documents

Any exception but a DocumentError is reported as a damaged file. Heavy libraries are imported inside the functions.
"""
