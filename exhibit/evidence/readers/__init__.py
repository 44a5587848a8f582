"""Readers, one file for each kind of document; a file whose name starts with `_` is not a reader.

A reader describes itself:

    SUFFIXES = (".docx",)                  # the file suffixes that it reads
    KIND = "Word document"                 # the name of the kind in messages
    def page(path) -> Printable: ...       # the HTML to print, for files without pages of their own
    def read(path) -> Document: ...        # its text, if it differs from the text of `page`
    def attachments(path) -> list: ...     # files inside it, which are separate documents

A reader may raise DocumentError, which says what is wrong, where, and what to do next; any other exception becomes
a DocumentError that calls the file damaged. Reading takes time proportional to the file's size. Libraries that only
one reader needs are imported inside its functions.
"""
