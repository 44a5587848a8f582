"""One file for each kind of document; a file whose name starts with `_` is machinery.

A reader says everything about itself:

    SUFFIXES = (".docx",)                  # the file endings it reads
    KIND = "Word document"                 # what people call it
    TYPES = {"application/…": ".docx"}     # the media types that servers give it, if there are any
    def page(path) -> Printable: ...       # the HTML that it is printed from, for what has no pages of its own
    def read(path) -> Document: ...        # its text, where that is not the text of `page`
    def attachments(path) -> list: ...     # files inside it, which are documents of their own

It raises nothing but DocumentError, which says what is wrong, where, and what to do next; it takes time in proportion
to the file, and imports what only it needs inside its functions.
"""
