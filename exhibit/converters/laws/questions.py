"""Questions about laws, with gold known by construction: a paragraph's text, location and changes."""

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import islice, pairwise

from exhibit.converters import Label, Quote, RawRow
from exhibit.converters.laws.versions import Law, Paragraph
from exhibit.law.provisions import LawName, find_provisions, label_key
from exhibit.law.values import write_day

_MAX_CHANGED_WORDS = 60  # most words of a change that an answer quotes
# the text after a reference to a § of the same law; other words may name another law
_ENDS = re.compile(r"\s*(?:[.,;)]|$)")


Gold = Sequence[tuple[Law, Paragraph]]


@dataclass
class QuestionMaker:
    """Makes the questions on one law in all its versions."""

    editions: Sequence[Law]
    name: LawName
    laws: dict[str, list[Law]]
    names: Sequence[LawName]
    most: int  # most questions of each kind
    ids: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.last = self.editions[-1]
        self.system = self.last.system
        self.dated = [edition for edition in self.editions if edition.version.start]
        self.steps = [(old, new) for old, new in pairwise(self.editions) if new.version.start]

    def rows(self) -> Iterator[RawRow]:
        """Yield all questions, kind by kind; for example, what a provision states and whether it has changed."""
        for kind in (self._says, self._said, self._governs, self._changed, self._leads, self._repealed, self._before):
            yield from kind()

    # ------------------------------------------------------------ kinds

    def _says(self) -> Iterator[RawRow]:
        for paragraph in self._choose("says", self.last.live):
            yield self._make_row("says", paragraph, self.last.words(paragraph), [(self.last, paragraph)])

    def _said(self) -> Iterator[RawRow]:
        for at, edition in enumerate(self.dated):
            share = self.most // len(self.dated) + (at < self.most % len(self.dated))
            for paragraph in self._choose(f"said {edition.version.start}", edition.live)[:share]:
                day = _choose_day(edition, paragraph.label)
                yield self._make_row("said", paragraph, edition.words(paragraph), [(edition, paragraph)], as_of=day)

    def _governs(self) -> Iterator[RawRow]:
        titles = Counter(paragraph.title.casefold() for paragraph in self.last.own)
        alone = [p for p in self.last.live if p.title and titles[p.title.casefold()] == 1]
        for paragraph in self._choose("governs", alone):
            yield self._make_row("governs", paragraph, paragraph.label, [(self.last, paragraph)], title=paragraph.title)

    def _changed(self) -> Iterator[RawRow]:
        pairs: dict[str, list[tuple[tuple[Law, Paragraph], ...]]] = {"changed": [], "same": []}
        for old, new in self.steps:
            for before in old.live if old.version.start else ():
                if after := new.find_paragraph(before.label):
                    kind = "changed" if old.words(before) != new.words(after) else "same"
                    pairs[kind].append(((old, before), (new, after)))
        for kind, most in (("changed", self.most - self.most // 3), ("same", self.most // 3)):
            pairs[kind].sort(key=lambda pair: _order(kind, pair[0][0].filename, pair[0][1].label))
            for pair in pairs[kind][:most]:
                before = pair[0][1]
                answer = self._describe_difference(*(edition.words(paragraph) for edition, paragraph in pair))
                as_of, until = (_choose_day(edition, before.label) for edition, _ in pair)
                yield self._make_row("changed", before, answer, pair, as_of=as_of, until=until)

    def _leads(self) -> Iterator[RawRow]:
        targets = []
        for paragraph in self.last.live:
            others = (other for other in self._find_references(paragraph) if other[2] is not paragraph)
            targets += [(paragraph, *other) for other in islice(others, 1)]
        targets.sort(key=lambda target: _order("leads", self.name.key, target[0].label))
        for paragraph, words, edition, target in targets[: self.most]:
            answer = f"{target.label}: {edition.words(target)}"
            yield self._make_row("leads", paragraph, answer, [(edition, target)], words=words)

    def _repealed(self) -> Iterator[RawRow]:
        gone = []
        for old, new in self.steps:
            still = {label_key(paragraph.label) for paragraph in new.paragraphs}
            gone += [(new, paragraph) for paragraph in old.live if label_key(paragraph.label) not in still]
        gone.sort(key=lambda pair: _order("repealed", pair[0].filename, pair[1].label))
        for edition, paragraph in gone[: self.most]:
            day = _choose_day(edition, paragraph.label)
            yield self._make_row("repealed", paragraph, "", [], about=edition, as_of=day)

    def _before(self) -> Iterator[RawRow]:
        first = self.editions[0]
        start = first.version.start
        for at, paragraph in enumerate(self._choose("before", first.live)[: max(1, self.most // 3)] if start else ()):
            day = (start or date.min) - timedelta(days=365 * (at + 1) + 30)
            yield self._make_row("before", paragraph, "", [], about=first, as_of=day)

    # ------------------------------------------------------------ parts of a question

    def _make_row(
        self, kind: str, paragraph: Paragraph, answer: str, gold: Gold, *, about: Law | None = None,
        as_of: date | None = None, until: date | None = None, **named: str,
    ) -> RawRow:  # fmt: skip
        system, unit, key = self.system, paragraph.label, self.name.key
        day = as_of.isoformat() if as_of else None
        templates = system.data["questions"]["said" if kind in {"repealed", "before"} else kind]
        at = _order(key, kind, unit, day or "", named.get("words", ""))
        law = self.name.codes[0] if self.name.codes else self.last.full_title
        named |= {name: write_day(value, system) for name, value in (("date", as_of), ("date2", until)) if value}
        question = templates[at % len(templates)].format(unit=unit, law=law, name=self.last.full_title, **named)
        while at in self.ids:
            at += 1
        self.ids.add(at)
        labels: dict[str, Label] = {"kind": kind, "law": key, "paragraph": unit, "language": system.language}
        labels |= {"question_language": system.language, "as_of": day, "other_versions": self._list_near_misses(gold)}
        quotes = tuple(_quote(*pair) for pair in gold)
        filename = (gold[0][0] if gold else about or self.last).filename
        place = f"{key} {unit} ({kind})"
        return RawRow(at, question, answer, quotes, filename, is_impossible=not gold, labels=labels, place=place)

    def _list_near_misses(self, gold: Gold) -> str:
        """Return the locations of the gold § in other versions of the law, which are wrong answers."""
        given = {edition.filename for edition, _ in gold}
        return " ".join(
            f"{edition.filename}#{paragraph.start}-{paragraph.end}"
            for edition in (self.laws[gold[0][0].version.law] if gold else ())
            if edition.filename not in given and (paragraph := edition.find_paragraph(gold[0][1].label))
        )

    def _choose(self, kind: str, paragraphs: Sequence[Paragraph]) -> list[Paragraph]:
        """Return some paragraphs spread over a law, the same ones on every machine."""
        return sorted(paragraphs, key=lambda paragraph: _order(kind, self.name.key, paragraph.label))[: self.most]

    def _find_references(self, paragraph: Paragraph) -> Iterator[tuple[str, Law, Paragraph]]:
        """Yield each reference to a § in the corpus: its words, the cited version of the law, and the §."""
        words = self.last.words(paragraph)
        for reference in find_provisions(words, self.last.system, self.names):
            if reference.law is None and not _ENDS.match(words, reference.span.end):
                continue
            editions = self.laws.get(reference.law or self.name.key, [])
            target = editions[-1].find_paragraph(reference.label) if editions else None
            if target is not None and target in editions[-1].live:
                yield words[slice(*reference.span)], editions[-1], target

    def _describe_difference(self, old: str, new: str) -> str:
        """Return the answer to the question whether a paragraph changed, with the added and removed words."""
        texts = self.system.data["questions"]
        if old == new:
            return str(texts["no"])
        before, after = old.split(), new.split()
        edits = difflib.SequenceMatcher(a=before, b=after, autojunk=False).get_opcodes()
        removed = _quote_pieces([before[a:b] for tag, a, b, _, _ in edits if tag != "equal"])
        added = _quote_pieces([after[a:b] for tag, _, _, a, b in edits if tag != "equal"])
        return str(texts["yes"]).format(added=added or "–", removed=removed or "–")


def _quote(law: Law, paragraph: Paragraph) -> Quote:
    """Return a paragraph as gold, with the first and last day of its version as labels."""
    span = (paragraph.start, paragraph.end)
    labels = (("paragraph", paragraph.label), *law.version.days.items())
    return Quote(law.filename, law.text[slice(*span)], (span,), labels)


def _choose_day(law: Law, label: str) -> date:
    """Return a day on which the version is in force; if possible, neither its first nor its last day."""
    start, end = law.version.start or date.min, law.version.end
    length = (end - start).days if end else 700
    after = 1 + _order("day", law.filename, label) % max(1, length - 1) if length else 0
    return start + timedelta(days=after)


def _quote_pieces(pieces: Sequence[Sequence[str]]) -> str:
    """Return fragments of a text in quotation marks, separated by commas; together they have at most 60 words."""
    room = _MAX_CHANGED_WORDS
    shown = []
    for piece in pieces:
        if piece and room > 0:
            shown.append(f"„{' '.join(piece[:room])}{' …' if len(piece) > room else ''}“")
            room -= len(piece)
    return ", ".join(shown)


def _order(*parts: str) -> int:
    """Return a hash that is evenly distributed and the same on every machine."""
    return int(hashlib.sha256("|".join(parts).encode()).hexdigest()[:8], 16)
