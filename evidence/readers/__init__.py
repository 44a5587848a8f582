"""One file per kind of document: `SUFFIXES` names the file endings, `read(path)` returns the Document."""
