"""Locate provisions in the documents: those that passages name without quoting, and those that answers cite."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from exhibit.evaluation.cases import GoldPassage, Passage, PlacedProvision
from exhibit.evaluation.documents import Documents
from exhibit.evidence import Span
from exhibit.law.provision_places import ProvisionIndex, ProvisionPlace
from exhibit.law.provisions import NamedProvision, find_cited_provisions, read_provisions
from exhibit.law.sentences import split_sentences

_LONGEST = 400
"""Provisions are read only in sentences of at most this many characters; longer ones are tables or lists."""
_QUOTED = re.compile(r"“[^”]{0,5000}”|„[^“]{0,5000}“|\"[^\"]{0,5000}\"")
_OPENING = 1000
"""The name of a law is searched in this many characters at the beginning of its file."""


class ProvisionPlacer:
    """A search for provisions in the documents of a dataset; the index of each document is built once."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._indexes: dict[str, ProvisionIndex] = {}

    def place(self, passage: Passage) -> Passage:
        """Return a passage with the text and position of the provision that it names.

        A passage that already has text or a span, or whose provision is not located, is returned unchanged.
        """
        if not passage.told_provision or passage.text.strip() or passage.span:
            return passage
        named = read_provisions(passage.told_provision)
        files = [passage.filename] if passage.filename else []
        for file, places in self._find_places(named[0], files) if named else ():
            spans = places[0].spans
            document = self._documents.get(file)
            text = "\n".join(document.text[start:end] for start, end in spans) if document else ""
            return replace(passage, text=text, filename=file, span=Span(spans[0].start, spans[-1].end))
        return passage

    def cited(self, answer: str, golds: Sequence[GoldPassage]) -> tuple[PlacedProvision, ...]:
        """Return the provisions that an answer cites, with their file and spans.

        A provision that is not located, such as one of an unknown law, has no file and no spans.
        """
        files = list(dict.fromkeys(gold.filename for gold in golds if gold.filename))
        cited: dict[str, PlacedProvision] = {}
        own = _QUOTED.sub(" ", answer)  # a reference inside a quotation is not a citation of the answer
        for start, end in split_sentences(own):
            for named in find_cited_provisions(own[start:end]) if end - start <= _LONGEST else ():
                found = next(self._find_places(named, files), None)
                spans = found[1][0].spans if found else ()
                placed = PlacedProvision(named.label, found[0] if found else None, spans)
                cited.setdefault(named.label.casefold(), placed)
        return tuple(cited.values())

    def _find_places(self, named: NamedProvision, files: Sequence[str]) -> Iterator[tuple[str, list[ProvisionPlace]]]:
        """Yield the file and the position of a provision, if it is located in exactly one file, exactly once.

        If the provision names its law, only the file of that law is searched; otherwise `files` are searched.
        """
        law = self._find_law(named.source) if named.source else None
        if named.source and law is None:
            return
        places = [(file, self._get_index(file).find(named)) for file in ([law] if law else files)]
        sure = [(file, found) for file, found in places if len(found) == 1]
        if len(sure) == 1:
            yield sure[0]

    def _find_law(self, source: str) -> str | None:
        """Return the file of a law by the file's name, or by the law's name at the beginning of its text."""
        if file := self._documents.named(source):
            return file
        word = re.compile(rf"(?<!\w){re.escape(source)}(?!\w)")
        having = [one.filename for one in self._documents.all() if word.search(one.text[:_OPENING])]
        return having[0] if len(having) == 1 else None

    def _get_index(self, file: str) -> ProvisionIndex:
        if file not in self._indexes:
            document = self._documents.get(file)
            self._indexes[file] = ProvisionIndex(document) if document else ProvisionIndex.make_empty(file)
        return self._indexes[file]
