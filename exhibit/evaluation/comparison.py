"""Compare a reply with the expected answer, and explain in words where they contradict each other.

Each rule compares one aspect that `law.meaning` reads: figures, dates, polarity, exceptions, who acts, words that
exclude each other, and single words that were replaced.
"""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from difflib import SequenceMatcher

from exhibit.evaluation.word_comparison import (
    find_near,
    find_pairs,
    format_quantity,
    is_among,
    is_rival,
    join_first_words,
    say_the_same,
)
from exhibit.law.language import stem
from exhibit.law.meaning import FIGURE, Meaning, read_meaning
from exhibit.law.meaning_words import denies, find_canonical, is_party, read_contrasts
from exhibit.law.quantities import Quantity
from exhibit.law.sentences import split_sentences

ALIGNED = 400
"""Texts with more words are not aligned word by word: the time is quadratic in the number of words."""
_SAME = 0.6
"""Two texts are about the same thing when they share at least this share of the expected words."""
_FEW = 2  # words: an answer this short consists of the one word that matters
WORDS = 3
"""Two texts count as equal except for a replacement when it has at most this many words."""
_LONGER, _FRAME = 3, 15
"""A reply is compared in detail up to `_LONGER` times the expected words plus `_FRAME` words. A longer reply has
sentences of its own, where another party or another word is no contradiction.
"""
_QUOTED = 30  # words: a longer reply quotes a clause, which may say a word of one thing and deny it of another
_UPPER = frozenset({"maximum", "cap", "highest", "most"})
_LOWER = frozenset({"minimum", "lowest", "least"})
"""Words of a question that asks for an upper or a lower bound."""
_YES_NO = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|can|could|may|must|shall|should|will|would|has|have|had|need)\b", re.IGNORECASE
)
"""The beginning of a question that can be answered with yes or no."""
_UNTRUE = re.compile(
    r"\b(?:not true|untrue|false|incorrect|wrong|not correct|not the case)\b|\bcontrary to\b", re.IGNORECASE
)

Change = tuple[tuple[str, ...], tuple[str, ...]]
"""Words of the expected answer and the words that replace them in the reply; either may be empty."""


class AnswerComparison:
    """The comparison of a reply with the expected answer, given the question and the gold passages."""

    def __init__(
        self, question: str, wanted: Meaning, given: Meaning, *, gold: Meaning, scale: Decimal = Decimal(1)
    ) -> None:
        """Compare a reply with the expected answer; `scale` is 1,000 if the question asks for amounts in thousands."""
        self.question, asked = question, read_meaning(question)
        self.wanted, self.given, self.asked, self.gold, self.scale = wanted, given, asked, gold, scale
        self.missing = wanted.terms - given.terms
        self.close = len(given.tokens) <= _LONGER * len(wanted.tokens) + _FRAME
        self.changes = list(self._find_changes())
        self.extra = given.terms - wanted.terms - asked.terms - gold.terms

    def faults(self, text: str) -> Iterator[str]:
        """Yield a message for each contradiction that makes the reply wrong; `text` is the text of the reply."""
        yield from self._check_echo(text)
        yield from self._check_yes_or_no()
        yield from self._check_figures()
        yield from self._check_dates()
        yield from self._check_polarity(text)
        yield from self._check_limits()
        if self.close:
            yield from self._check_rivals()
            yield from self._check_roles()
            yield from self._check_swaps()
            yield from self._check_edits()
            yield from self._list()

    def _check_echo(self, text: str) -> Iterator[str]:
        new = self.given.terms - self.asked.terms
        figures = [one for one in self.given.quantities if not is_among(one, self.asked.quantities)]
        told = self.wanted.terms - self.asked.terms or self.wanted.quantities or self.wanted.dates
        plain = not new and not figures and not self.given.dates and not self.given.lead
        # for a yes-or-no question, a statement in the question's own words is an answer
        if told and plain and (text.rstrip().endswith("?") or not _YES_NO.match(self.question)):
            yield "The reply repeats the question."

    def _check_yes_or_no(self) -> Iterator[str]:
        wanted = self.wanted.lead
        given = self.given.lead if self.wanted.terms else self.find_stance(self.given)  # only for a bare yes or no
        if wanted and given and wanted != given:
            yield f"The reply says {given}, the expected answer {wanted}."

    def find_stance(self, meaning: Meaning) -> str:
        """Return a text's answer to the question, `yes` or `no`; an empty string if the answer is unclear.

        If the text begins with yes or no, return that word. Otherwise return `yes` if the text affirms the words of
        the question, and `no` if it denies them.
        """
        if meaning.lead:
            return meaning.lead
        signs, asked = meaning.list_signs(), self.asked.list_signs()
        shared = [
            signs[term] * asked[term]
            for term in signs.keys() & asked.keys()
            if signs[term] and asked[term] and not is_party(term)
        ]
        about = [term for term in self.asked.terms if not is_party(term)]
        if not shared or 2 * len([t for t in about if t in meaning.terms]) < len(about) or len(set(shared)) > 1:
            return ""
        return "yes" if shared[0] > 0 else "no"

    def _check_figures(self) -> Iterator[str]:
        for one in self.wanted.quantities:
            if one.is_place and len(self.wanted.terms) > WORDS and not self._is_label(one):
                continue
            same = [other for other in self.given.quantities if one.equals(other, self.scale)]
            if same:
                alike = [other.bound for other in self.wanted.quantities if one.equals(other)]
                bounded = one._replace(bound=one.bound or self._find_asked_bound())
                contradicted = all(bounded.contradicts_bound(other) for other in same)
                if contradicted and len(set(alike)) == 1 and not self.has_gold_bound(one, same):
                    yield f"The expected figure is {one.bound or 'exact'}, that of the reply {same[0].bound}."
                continue
            known = (*self.wanted.quantities, *self.asked.quantities, *self.gold.quantities)
            rivals = [other for other in self.given.quantities if is_rival(one, other) and not is_among(other, known)]
            crossed = [other for other in self.given.quantities if is_rival(one, other)]
            if rivals or (crossed and not is_among(one, self.asked.quantities) and len(self.wanted.quantities) == 1):
                yield f"The reply has another figure than {format_quantity(one)}."

    def has_gold_bound(self, one: Quantity, same: Sequence[Quantity]) -> bool:
        """Return whether the gold passage bounds an expected figure that has no bound as the reply does.

        For example, the expected answer is `£500`, and both the passage and the reply say `at least £500`.
        """
        stated = {other.bound for other in self.gold.quantities if other.bound and one.equals(other)}
        return not one.bound and any(other.bound in stated for other in same)

    def _find_asked_bound(self) -> str:
        """Return the bound that the question asks for, `at most` or `at least`; empty if it asks for none."""
        terms = self.asked.terms
        return "at most" if terms & _UPPER else "at least" if terms & _LOWER else ""

    def _is_label(self, one: Quantity) -> bool:
        return any(other.dimension == one.dimension for other in self.given.quantities)

    def _check_dates(self) -> Iterator[str]:
        known = [day for readings in self.given.dates for day in readings]
        for readings in self.wanted.dates:
            if known and not any(day.is_within(other) for day in readings for other in known):
                yield "The reply has another date."

    def _check_polarity(self, text: str) -> Iterator[str]:
        agree, differ = self.compare_signs(self.given)
        untrue = self._calls_untrue(text)
        if len(differ) > len(agree) and set(differ) & (self.wanted.heads | self.given.heads) and not untrue:
            yield f"The reply denies what the expected answer says, or the other way round: {join_first_words(differ)}."
        spans = split_sentences(text)
        if len(spans) > 1:
            stances = set()
            for span in spans:
                one = read_meaning(text[span.start : span.end])
                if len(one.terms & self.wanted.terms) >= _SAME * len(self.wanted.terms) > 0:
                    same, other = self.compare_signs(one)
                    waived = "neednot" in one.modals - self.wanted.modals and "must" in self.wanted.modals
                    stances |= {-1} if waived else {1} if same and not other else {-1} if other and not same else set()
            if len(stances) > 1:
                yield "The reply says it and its opposite."
        if untrue and not self.missing and not self.compare_signs(read_meaning(_UNTRUE.sub(" ", text)))[1]:
            yield "The reply calls the expected answer untrue."  # that the opposite is untrue is not judged

    def _calls_untrue(self, text: str) -> bool:
        return bool(_UNTRUE.search(" ".join(text.split()))) and not _UNTRUE.search(" ".join(self.wanted.tokens))

    def compare_signs(self, given: Meaning) -> tuple[list[str], list[str]]:
        """Compare which words the expected answer and the text `given` affirm or deny.

        Return two lists: the words that both texts affirm or both deny, and the words that one text affirms and the
        other denies. If either text denies a shared word, the first list has only words that both texts deny.
        """
        mine, other = self.wanted.list_signs(), given.list_signs()
        shared = sorted(term for term in mine.keys() & other.keys() if mine[term] and other[term])
        denied = any(mine[term] < 0 or other[term] < 0 for term in shared)
        agree = [term for term in shared if mine[term] == other[term] and (mine[term] < 0 or not denied)]
        return agree, [term for term in shared if mine[term] != other[term]]

    def find_said_both_ways(self) -> list[str]:
        """Return the words of the expected answer that the reply both affirms and denies.

        An example is "exclusive or non-exclusive".
        """
        mine = self.wanted.list_signs() if len(self.given.words) <= _QUOTED else {}
        signs: dict[str, set[int]] = {}
        for word in self.given.words:
            signs.setdefault(word.term, set()).add(word.sign)
        return sorted(term for term, told in signs.items() if {1, -1} <= told and mine.get(term))

    def _check_limits(self) -> Iterator[str]:
        mine, other = self.wanted.marks, self.given.marks
        if "except" in mine and "even" in other - mine and "except" not in other:
            yield "The expected answer has an exception, which the reply denies."
        if "even" in mine and "except" in other - mine and "even" not in other:
            yield "The reply has an exception, which the expected answer denies."
        if "only" in mine and "notonly" in other:
            yield "The expected answer limits what the reply does not."
        wanted, given = self.wanted.modals, self.given.modals
        denied = any(word.sign < 0 for word in (*self.wanted.words, *self.given.words))
        if (
            wanted
            and given
            and not denied
            and not wanted & given
            and len(self.missing) < _SAME * len(self.wanted.terms)
        ):
            words = {"must": "required", "maybe": "allowed", "neednot": "not required"}
            yield f"What is {words[min(wanted)]} is {words[min(given)]} in the reply."

    def _check_rivals(self) -> Iterator[str]:
        known = self.wanted.terms | self.asked.terms
        only = self.asked.terms - self.given.terms if not self.wanted.terms - self.asked.terms else frozenset[str]()
        for term in sorted(self.missing | only):
            told = self.asked.terms if term in self.asked.terms and term not in only else frozenset[str]()
            for group in read_contrasts().get(term, ()):
                others = sorted(group & self.given.terms - self.wanted.terms - told)
                if others and not group & self.given.terms & self.wanted.terms and self._is_instead(term, others[0]):
                    yield f"The reply says “{others[0]}” where “{term}” is expected."
        parties = [term for term in self.given.parties if term not in known and term not in self.gold.terms]
        absent = [term for term in self.wanted.parties if term in self.missing]
        if parties and absent:
            yield f"The reply names the {parties[0]} where the {absent[0]} is expected."
        names = self.given.names - known - self.gold.terms - self.wanted.names
        lost = self.wanted.names & self.missing
        if names and lost and not any(is_party(name) for name in names | lost):
            said, expected = (join_first_words(sorted(words)) for words in (names, lost))
            yield f"The reply names {said} where {expected} is expected."

    def _is_instead(self, term: str, other: str) -> bool:
        """Return whether the reply's word `other` stands in place of the expected word `term`.

        It does if the expected answer has only a few words. It also does if some third word is near `term` in the
        expected answer and near `other` in the reply.
        """
        few = len(self.wanted.terms) <= _FEW
        return few or bool(find_near(self.wanted, term) & find_near(self.given, other))

    def _check_roles(self) -> Iterator[str]:
        mine, other = self.wanted.agent, self.given.agent
        said = mine in self.given.parties or mine not in self.asked.parties  # else the question says who acts
        if (
            mine
            and other
            and mine != other
            and said
            and other in self.wanted.parties
            and not self._are_side_by_side(mine, other)
        ):
            yield f"The {other} acts in the reply, the {mine} in the expected answer."

    def _are_side_by_side(self, one: str, other: str) -> bool:
        """Return whether the expected answer lists two parties together: "employees and advisers"."""
        tokens = [find_canonical(token)[0] for token in self.wanted.tokens]
        return any(
            {tokens[at], tokens[at + 2]} == {one, other} and tokens[at + 1] in ("and", "or")
            for at in range(len(tokens) - 2)
        )

    def _check_swaps(self) -> Iterator[str]:
        """Yield a message for each pair of figures that the reply swaps, compared with the expected answer.

        For example, the reply gives the buyer's period to the seller, and the seller's period to the buyer. Pairs
        of opposite words are checked, too.
        """
        for one, two, mine, other in find_pairs(self.wanted, self.given):
            straight = len(mine[0] & other[0]) + len(mine[1] & other[1])
            crossed = len(mine[0] & other[1]) + len(mine[1] & other[0])
            if crossed > straight:
                yield f"“{one}” and “{two}” have changed places."

    def _find_changes(self) -> Iterator[Change]:
        """Yield each difference as a pair: some expected words, and the words that the reply has instead.

        Yield nothing if the texts are long, or if the reply does not have most of the expected words in order.
        """
        mine, other = self.wanted.tokens, self.given.tokens
        if not 3 <= len(mine) <= ALIGNED or len(other) > min(ALIGNED, len(mine) + 2 * WORDS):
            return
        steps = SequenceMatcher(None, mine, other, autojunk=False).get_opcodes()
        if sum(end - start for tag, start, end, _, _ in steps if tag == "equal") >= _SAME * len(mine):
            yield from (
                (mine[start:end], other[begin:stop]) for tag, start, end, begin, stop in steps if tag != "equal"
            )

    def _check_edits(self) -> Iterator[str]:
        """Yield a message for each replaced word, missing list item or denial in a nearly correct reply.

        A reply is nearly correct if it differs from the expected answer in one or two places.
        """
        changes = self.changes
        if not changes or len(changes) > 2:
            return
        yield from self._check_denials_and_swaps(changes)
        for lost, new in changes:
            if len(set(changes)) == 1 and max(len(lost), len(new)) <= WORDS and say_the_same(lost, new) is False:
                yield f"The reply says “{' '.join(new)}” where “{' '.join(lost)}” is expected."
            if (
                lost
                and not new
                and self._is_item(lost)
                and not {find_canonical(one)[0] for one in lost} & self.given.terms
            ):
                yield f"The reply leaves out “{' '.join(lost)}”."

    def _check_denials_and_swaps(self, changes: Sequence[Change]) -> Iterator[str]:
        known = {stem(token) for token in (*self.wanted.tokens, *self.given.tokens)}
        counts = [[sum(denies(token, known) for token in side) for side in change] for change in changes]
        short = [count for count, change in zip(counts, changes, strict=True) if max(map(len, change)) <= WORDS]
        differ = sum(one for one, _ in short) != sum(other for _, other in short)
        odd = sum(map(sum, counts)) % 2 or len(short) == len(counts)
        if differ and odd and not self.given.lead:
            yield "The reply denies what the expected answer says, or the other way round."
        if (
            len(changes) == 2
            and changes[0] == changes[1][::-1]
            and all(changes[0])
            and not all(map(self._is_item, changes[0]))
        ):
            yield f"“{' '.join(changes[0][0])}” and “{' '.join(changes[0][1])}” have changed places."

    def _list(self) -> Iterator[str]:
        """Yield a message if the reply omits an item of a list in the expected answer.

        There is a message only if the reply states another part of the expected answer, adds no content of its
        own, and does not begin with yes or no.
        """
        items = self.find_items_left_out()
        if items and not self.extra and not self.given.lead and self.given.terms & self.wanted.terms - self.asked.terms:
            yield f"The reply leaves out {join_first_words(sorted(items[0]))}."

    def find_items_left_out(self) -> list[frozenset[str]]:
        """Return the items of the expected answer's list that share no word with the reply or the question."""
        known = self.given.terms | self.asked.terms
        return [item for item in self._find_items() if not item & known] if len(self._find_items()) > 1 else []

    def _find_items(self) -> list[frozenset[str]]:
        items: dict[int, set[str]] = {}
        for word in self.wanted.words:
            if not word.term.startswith(FIGURE):
                items.setdefault(word.segment, set()).add(word.term)
        return [frozenset(item) for item in items.values()]

    def _is_item(self, tokens: Sequence[str]) -> bool:
        """Return whether the words contain a whole item of the expected answer's list."""
        terms = {find_canonical(token)[0] for token in tokens}
        return len(self._find_items()) > 1 and any(item <= terms for item in self._find_items())
