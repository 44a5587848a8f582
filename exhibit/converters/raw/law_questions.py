"""Questions about laws, with gold known by construction: a paragraph's text, location and changes."""

import difflib
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property

from exhibit.converters.benchmark import Label, Quote, RawRow
from exhibit.converters.raw.law_files import Version
from exhibit.converters.raw.laws import Law, Paragraph
from exhibit.law.editions import LawName, find_provisions, label_key, list_english_names, make_law_name
from exhibit.law.figures import write_day
from exhibit.law.language import LegalSystem

_SHORTEST = 40
"""Fewest characters of a §: a shorter one was repealed, or only refers to another."""
_WORD = re.compile(r"\w+")
_MOST_WORDS = 60  # words of a change that an answer quotes
_ENDS = re.compile(r"\s*(?:[.,;)]|$)")
"""The text after a reference to the law's own §; other words may name another law."""


@dataclass(frozen=True)
class PrintedEdition:
    """A version of a law as a document of the bundle: its name and dates, and below them the text of the law."""

    version: Version
    law: Law
    filename: str
    shift: int
    """The number of characters printed above the law's text: its name and the days of its version."""

    def span(self, paragraph: Paragraph) -> tuple[int, int]:
        """Return the span of a paragraph in the printed text."""
        return paragraph.start + self.shift, paragraph.end + self.shift

    def find_paragraph(self, label: str) -> Paragraph | None:
        """Return a § by its label; None if this version does not have it, or has it twice."""
        found = self._by_label.get(label_key(label), ())
        return found[0] if len(found) == 1 else None

    @cached_property
    def _by_label(self) -> dict[tuple[str, str], list[Paragraph]]:
        index: dict[tuple[str, str], list[Paragraph]] = defaultdict(list)
        for paragraph in self.own:
            index[label_key(paragraph.label)].append(paragraph)
        return index

    @cached_property
    def own(self) -> list[Paragraph]:
        """The paragraphs of the law itself, without paragraphs (§) that are quoted inside an article.

        A § inside an article belongs to another law, which the article amends.
        """
        units = {word for level in self.law.system.units for word in level.words}
        return [p for p in self.law.paragraphs if not any(part.split()[0].lower() in units for part in p.path)]

    @cached_property
    def live(self) -> list[Paragraph]:
        """The paragraphs that are not repealed."""
        return [paragraph for paragraph in self.own if self.says(paragraph)]

    def says(self, paragraph: Paragraph) -> bool:
        """Return whether a paragraph has a text of sufficient length and is not marked as repealed."""
        words = self.law.words(paragraph)
        gone = set(self.law.system.data.get("repealed", "").split())
        return len(words) >= _SHORTEST and not gone & set(
            _WORD.findall(f"{paragraph.title} {words[:_SHORTEST]}".lower())
        )

    def quote(self, paragraph: Paragraph) -> Quote:
        """Return a paragraph as gold, with the first and last day of its version as labels."""
        start, end = self.span(paragraph)
        text = self.law.text[paragraph.start : paragraph.end]
        version = self.version
        labels: tuple[tuple[str, Label], ...] = (
            ("paragraph", paragraph.label),
            ("effective_from", version.start.isoformat() if version.start else None),
            ("effective_to", version.end.isoformat() if version.end else None),
        )
        return Quote(self.filename, text, ((start, end),), labels)


@dataclass
class QuestionMaker:
    """Makes the questions on one law in all its versions."""

    editions: Sequence[PrintedEdition]
    name: LawName
    title: str
    laws: dict[str, Sequence[PrintedEdition]]
    names: Sequence[LawName]
    most: int
    """Most questions of each kind."""
    system: LegalSystem
    """The legal system whose language the questions use: the law's own, or another."""
    ids: set[int] = field(default_factory=set)

    @property
    def last(self) -> PrintedEdition:
        """The last of the law's versions."""
        return self.editions[-1]

    @property
    def foreign(self) -> bool:
        """Whether the questions are in a language other than the law's."""
        return self.system.language != self.last.law.system.language

    def rows(self) -> Iterator[RawRow]:
        """Yield all questions, grouped by kind, such as what a provision says, what it said, and whether it changed."""
        for make in (
            self._ask_says,
            self._ask_said,
            self._ask_governs,
            self._ask_changed,
            self._ask_leads,
            self._ask_repealed,
            self._ask_before,
        ):
            yield from make()

    # ------------------------------------------------------------ kinds

    def _ask_says(self) -> Iterator[RawRow]:
        for paragraph in self._choose_paragraphs("says", self.last.live):
            words = self.last.law.words(paragraph)
            yield self._make_row("says", paragraph.label, words, [(self.last, paragraph)])

    def _ask_said(self) -> Iterator[RawRow]:
        dated = [edition for edition in self.editions if edition.version.start]
        for at, edition in enumerate(dated):
            share = self.most // len(dated) + (at < self.most % len(dated))
            for paragraph in self._choose_paragraphs(f"said {edition.version.start}", edition.live)[:share]:
                day = self._choose_day(edition, paragraph.label)
                words = edition.law.words(paragraph)
                yield self._make_row("said", paragraph.label, words, [(edition, paragraph)], as_of=day)

    def _ask_governs(self) -> Iterator[RawRow]:
        if self.foreign:
            return  # a heading cannot be translated by rule
        titles = Counter(paragraph.title.casefold() for paragraph in self.last.own)
        alone = [p for p in self.last.live if p.title and titles[p.title.casefold()] == 1]
        for paragraph in self._choose_paragraphs("governs", alone):
            yield self._make_row(
                "governs", paragraph.label, paragraph.label, [(self.last, paragraph)], title=paragraph.title
            )

    def _ask_changed(self) -> Iterator[RawRow]:
        pairs = list(zip(self.editions, self.editions[1:], strict=False))
        both = [
            (old, new, before, after)
            for old, new in pairs
            for before in old.live
            if (after := new.find_paragraph(before.label)) and old.version.start and new.version.start
        ]
        moved = [pair for pair in both if pair[0].law.words(pair[2]) != pair[1].law.words(pair[3])]
        same = [pair for pair in both if pair[0].law.words(pair[2]) == pair[1].law.words(pair[3])]
        changed = sorted(moved, key=lambda pair: _order("changed", pair[0].filename, pair[2].label))
        unchanged = sorted(same, key=lambda pair: _order("same", pair[0].filename, pair[2].label))
        for old, new, before, after in [*changed[: self.most - self.most // 3], *unchanged[: self.most // 3]]:
            answer = self._describe_difference(old.law.words(before), new.law.words(after))
            days = self._choose_day(old, before.label), self._choose_day(new, before.label)
            gold = [(old, before), (new, after)]
            yield self._make_row("changed", before.label, answer, gold, as_of=days[0], until=days[1])

    def _ask_leads(self) -> Iterator[RawRow]:
        targets = []
        for paragraph in self.last.live:
            for words, edition, target in self._find_references(paragraph):
                if target is not paragraph:
                    targets.append((paragraph, words, edition, target))
                    break
        targets.sort(key=lambda target: _order("leads", self.name.key, target[0].label))
        for paragraph, words, edition, target in targets[: self.most]:
            answer = f"{target.label}: {edition.law.words(target)}"
            yield self._make_row("leads", paragraph.label, answer, [(edition, target)], words=words)

    def _ask_repealed(self) -> Iterator[RawRow]:
        gone = []
        for old, new in zip(self.editions, self.editions[1:], strict=False):
            still = {label_key(paragraph.label) for paragraph in new.law.paragraphs}
            gone += [(p, new) for p in old.live if new.version.start and label_key(p.label) not in still]
        gone.sort(key=lambda pair: _order("repealed", pair[1].filename, pair[0].label))
        for paragraph, edition in gone[: self.most]:
            yield self._make_row(
                "repealed", paragraph.label, "", [], about=edition, as_of=self._choose_day(edition, paragraph.label)
            )

    def _ask_before(self) -> Iterator[RawRow]:
        first = self.editions[0]
        if first.version.start is None:
            return
        for at, paragraph in enumerate(self._choose_paragraphs("before", first.live)[: max(1, self.most // 3)]):
            day = first.version.start - timedelta(days=365 * (at + 1) + 30)
            yield self._make_row("before", paragraph.label, "", [], about=first, as_of=day)

    # ------------------------------------------------------------ parts of a question

    def _make_row(
        self,
        kind: str,
        unit: str,
        answer: str,
        gold: Sequence[tuple[PrintedEdition, Paragraph]],
        *,
        about: PrintedEdition | None = None,
        as_of: date | None = None,
        until: date | None = None,
        title: str = "",
        words: str = "",
    ) -> RawRow:
        system = self.system
        templates = system.data["questions"]["said" if kind in {"repealed", "before"} else kind]
        key = "|".join((self.name.key, kind, unit, as_of.isoformat() if as_of else "", words))
        key += f"|{system.language}" if self.foreign else ""
        at = int(hashlib.sha256(key.encode()).hexdigest()[:8], 16)
        question = templates[at % len(templates)].format(
            unit=self._name_unit(unit, at),
            law=self._name_law(at),
            name=self.title,
            date=write_day(as_of, system) if as_of else "",
            date2=write_day(until, system) if until else "",
            title=title,
            words=words,
        )
        while at in self.ids:
            at += 1
        self.ids.add(at)
        labels: dict[str, Label] = {
            "kind": kind,
            "law": self.name.key,
            "paragraph": unit,
            "language": self.last.law.system.language,
            "question_language": system.language,
            "as_of": as_of.isoformat() if as_of else None,
            "other_versions": self._list_near_misses(gold),
        }
        quotes = tuple(edition.quote(paragraph) for edition, paragraph in gold)
        edition = gold[0][0] if gold else about or self.last
        return RawRow(
            id=at,
            question=question,
            answer=answer,
            quotes=quotes,
            filename=edition.filename,
            is_impossible=not quotes,
            labels=labels,
            place=f"{self.name.key} {unit} ({kind})",
        )

    def _name_law(self, at: int) -> str:
        """Return a name of the law for a question: a code such as `BGB` or, if it has no code, the title.

        If the question is in English and the law is foreign, the law's English name is also possible. The hash `at`
        selects one of the possible names.
        """
        names = (
            list_english_names(make_law_name(self.title).codes) if self.foreign and self.system.language == "en" else ()
        )
        codes = (*names[:1], *self.name.codes[:1]) or (self.title,)
        return codes[at // 7 % len(codes)]

    def _name_unit(self, unit: str, at: int) -> str:
        """Return a provision's label as the law writes it, or in the language of the question: `§ 8`, `section 8`.

        If the question and the law are in different languages, the label is in the question's language for some
        questions, and as the law writes it for the others. `at`, a hash of the question's data, decides this.
        """
        level = self.last.law.system.by_word.get(unit.partition(" ")[0].lower())
        words = self.system.data.get("units", {}).get(level.kind, []) if self.foreign and level else []
        word = [None, *words][at // 11 % (1 + len(words))]
        return f"{word} {unit.partition(' ')[2]}" if word else unit

    def _list_near_misses(self, gold: Sequence[tuple[PrintedEdition, Paragraph]]) -> str:
        """Return where the gold § is in the other versions of the law; these locations are wrong answers.

        The result is a text of locations in the form `file#start-end`, separated by spaces.
        """
        if not gold:
            return ""
        given = {edition.filename for edition, _ in gold}
        editions = next((all_ for all_ in self.laws.values() if gold[0][0] in all_), ())
        places = [
            (edition.filename, *edition.span(paragraph))
            for edition in editions
            if edition.filename not in given and (paragraph := edition.find_paragraph(gold[0][1].label))
        ]
        return " ".join(f"{name}#{start}-{end}" for name, start, end in places)

    def _choose_paragraphs(self, kind: str, paragraphs: Sequence[Paragraph]) -> list[Paragraph]:
        """Return some paragraphs spread over a law, the same ones on every machine."""
        ordered = sorted(paragraphs, key=lambda paragraph: _order(kind, self.name.key, paragraph.label))
        return ordered[: self.most]

    def _choose_day(self, edition: PrintedEdition, label: str) -> date:
        """Return a day on which a version is in force; if possible, neither its first nor its last day."""
        start = edition.version.start or date.min
        length = (edition.version.end - start).days if edition.version.end else 700
        return (
            start + timedelta(days=1 + _order("day", edition.filename, label) % max(1, length - 1)) if length else start
        )

    def _find_references(self, paragraph: Paragraph) -> Iterator[tuple[str, PrintedEdition, Paragraph]]:
        """Yield each reference of a paragraph to a § in the corpus: the reference's text, the cited version and
        the §.
        """
        words = self.last.law.words(paragraph)
        for reference in find_provisions(words, self.last.law.system, self.names):
            if reference.law is None and not _ENDS.match(words, reference.span.end):
                continue
            editions = self.laws.get(reference.law or self.name.key, ())
            target = editions[-1].find_paragraph(reference.label) if editions else None
            if target is not None and editions[-1].says(target):
                yield words[slice(*reference.span)], editions[-1], target

    def _describe_difference(self, old: str, new: str) -> str:
        """Return the answer to the question whether a paragraph changed, with the added and removed words."""
        texts = self.system.data["questions"]
        if old == new:
            return str(texts["no"])
        before, after = old.split(), new.split()
        matcher = difflib.SequenceMatcher(a=before, b=after, autojunk=False)
        edits = [edit for edit in matcher.get_opcodes() if edit[0] != "equal"]
        removed = _quote_pieces([before[a:b] for _, a, b, _, _ in edits])
        added = _quote_pieces([after[a:b] for _, _, _, a, b in edits])
        return str(texts["yes"]).format(added=added or "–", removed=removed or "–")


def _quote_pieces(pieces: Sequence[Sequence[str]]) -> str:
    """Return fragments of a text in quotation marks, separated by commas; together they have at most 60 words."""
    room = _MOST_WORDS
    shown = []
    for piece in pieces:
        if piece and room > 0:
            shown.append(f"„{' '.join(piece[:room])}{' …' if len(piece) > room else ''}“")
            room -= len(piece)
    return ", ".join(shown)


def _order(*parts: str) -> int:
    """Return a hash of the arguments, which is evenly distributed and the same on every machine."""
    return int(hashlib.sha256("|".join(parts).encode()).hexdigest()[:8], 16)
