"""One file for each kind of document; a file whose name starts with `_` is not a reader.

A reader describes itself:

    SUFFIXES = (".docx",)                  # the file suffixes it reads
    KIND = "Word document"                 # the name of the kind for people
    TYPES = {"application/…": ".docx"}     # the media types that servers use for it, if there are any
    def page(path) -> Printable: ...       # the HTML to print, for files without pages of their own
    def read(path) -> Document: ...        # its text, if that is not the text of `page`
    def attachments(path) -> list: ...     # files inside it, which are documents of their own

It raises only DocumentError, which says what is wrong, where, and what to do next; its time is proportional to the
file, and it imports libraries that only it needs inside its functions.
"""
