"""What an index knows by words: of its chunks, of its headings, and those by which documents are named."""

from exhibit.rag.lexicon.lexicon import DocumentWords, Lexicon, read_words

__all__ = ["DocumentWords", "Lexicon", "read_words"]
