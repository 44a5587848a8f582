"""Estimates which documents a query means, from the names in the query; without names, all are equally likely.

A word in the names of `df` of `N` documents makes each of these documents N/df times as likely to be meant, so its
weight is log(N/df). A word counts once, in the field (title, file name, parties …) where it is most informative. The
sum over all words is a document's log-likelihood up to a constant; normalised, it is the document's probability.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from exhibit.law.names import (
    Word,
    count_proper_words,
    list_acronyms,
    list_pairs,
    name_terms,
    name_words,
    split_filename,
)
from exhibit.law.profile import AGREED, Profile
from exhibit.rag.lexicon import FIELDS, Database, NameWords, Postings, compute_rarity, count_digests, report_damage
from exhibit.rag.protocols import Keys
from exhibit.rag.questions import Query

Weights = npt.NDArray[np.float64]

NAME_FIELDS = FIELDS[2:]
_OPENING_CHARS = 3000  # a first page, with the title, the parties and the recitals
_TITLE_CHARS = 6000  # characters at a document's start that contain its title; otherwise the title is the file's name
_KIND_WORDS = frozenset("agreement contract guide notice policy rules statement terms the".split())
"""Words for the kind of a document, and articles. "the Commercial Court" means its guide, without the word `guide`."""
_TITLE_BREAK = re.compile(r"\s[-–—]\s")  # people cite a title up to this dash: `Practice Direction 47 – Procedure`
_MAX_CACHED_CHOICES = 16  # a choice has a number for every document
# a word that only looks like a name counts if fewer than the cube root of N documents contain it: defined terms also
# look like names, but many documents contain them
_RARE_SHARE = 2 / 3
# With a weight of 1, a word that only one document contains would leave that document less likely than all others
# together, but a user hardly writes `Groupon` by chance. With 1, 1.25 and 1.5, the share of mini's first eight passages
# that are in a wrong document is 12.8, 2.1 and 1.6%.
_NAME_WEIGHT = 1.5
_HALF_TITLE = 0.5  # the share of a title's weight that a question may contain by chance (`guide`, `agreement`)
# log(10): ten times less likely, not impossible, because the kind may be detected or stated wrongly
_OTHER_KIND_PENALTY = 2.3
_JOINED_LETTERS = 4  # least letters of a word that is searched inside longer words: `inc` is in `since`


def read_names(filename: str, profile: Profile, text: str) -> NameWords:
    run, in_file = split_filename(filename)
    opening = list(name_words(text[:_OPENING_CHARS]))
    wanted, start = name_terms(profile.title), name_terms(text[:_TITLE_CHARS])
    title = profile.title if wanted and f" {' '.join(wanted)} " in f" {' '.join(start)} " else ""
    names = (title, *profile.parties)
    words = set(name_terms(_TITLE_BREAK.split(title, maxsplit=1)[0]))
    counts = {
        "stated": Counter(term for name in names for term in name_terms(name)),
        "title": Counter(words - _KIND_WORDS if len(words - _KIND_WORDS) > 1 else words),
        "initials": Counter(short for name in names for short in list_acronyms(name)),
        "opening": Counter(word.term for word in opening),
        "pairs": Counter(first.term + second.term for first, second in list_pairs(opening)),
        "proper": count_proper_words(text),
        "file": Counter(in_file),
    }
    return NameWords(profile.kind, run, {name: count_digests(counts[name]) for name in NAME_FIELDS})


@dataclass(frozen=True)
class Choice:
    """For each document in `numbers`, the logarithm of the probability that the query means this document."""

    numbers: Keys
    log_weights: Weights

    def choose_best(self, most: int, *, share: float = math.inf) -> dict[int, float]:
        """Return the likeliest documents, at most `most`, until the sum of their probabilities reaches `share`."""
        order = np.argsort(-self.log_weights, kind="stable")[:most]
        before = np.cumsum(np.exp(self.log_weights[order])) - np.exp(self.log_weights[order])
        order = order[before < share]
        return dict(zip(self.numbers[order].tolist(), self.log_weights[order].tolist(), strict=True))


class DocumentNames:
    """The words that can name each document.

    Like `Postings`, an object does not show later changes of the database.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._fields = {name: Postings(database, name) for name in NAME_FIELDS}
        self._choose = lru_cache(_MAX_CACHED_CHOICES)(self._score)  # many questions name a document in the same words

    def __len__(self) -> int:
        return len(self._numbers)

    def add(self, number: int, names: NameWords) -> None:
        """Add a document with the words that `read_names` returned for it; its number must be unused."""
        for name, table in self._fields.items():
            terms, counts = names.fields[name]
            table.add(terms, np.full(len(terms), number), counts)
        self._database.write("INSERT INTO names VALUES (?, ?, ?)", [(number, names.kind, names.run)])

    def remove(self, number: int) -> None:
        for table in self._fields.values():
            table.remove(np.array([number]))
        self._database.write("DELETE FROM names WHERE number = ?", [(number,)])

    def save(self) -> None:
        for table in self._fields.values():
            table.save()

    @cached_property
    def _rows(self) -> list[tuple[int, str, str]]:
        return self._database.read("SELECT number, kind, run FROM names ORDER BY number")

    @cached_property
    def _numbers(self) -> Keys:
        return np.array([number for number, _, _ in self._rows], np.int64)

    def score(self, query: Query) -> Choice:
        with report_damage(self._database.path):
            return self._choose(query.names, query.kind, query.apart)

    def _score(self, names: str, kind: str, apart: bool) -> Choice:
        words = list(name_words(names))
        lower = names.islower()  # in a question without capitals, a name may be in lower case
        single = {word.term: self._keep_certain(self._weigh_word(word, lower=lower), apart) for word in words}
        named, phrases = sum(single.values(), self._zeros), self._zeros
        joined = {first.term + second.term: (first, second) for first, second in list_pairs(words, lower=lower)}
        for pair, (first, second) in joined.items():
            # a pair of adjacent words adds only the information that its single words lack
            weights = self._zeros
            self._raise_weights(weights, "pairs", pair, math.inf)
            added = np.maximum(0.0, weights - single[first.term] - single[second.term])
            phrases = phrases + self._keep_certain(added, apart)
        title = self._weigh_title({word.term for word in words})
        likely = {"", *(AGREED if kind == "contract" else {kind})}  # a document whose kind is unknown may be meant
        others = np.array([_OTHER_KIND_PENALTY * bool(kind and other not in likely) for _, other, _ in self._rows])
        signals = [_NAME_WEIGHT * named, _NAME_WEIGHT * phrases, _NAME_WEIGHT * title, -others]
        return Choice(self._numbers, normalise(np.sum(signals, axis=0)))

    @property
    def _zeros(self) -> Weights:
        return np.zeros(len(self))

    def _find_rows(self, numbers: Keys) -> Keys:
        return np.searchsorted(self._numbers, numbers)

    def _weigh_title(self, terms: set[str]) -> Weights:
        """Return a weight for each document whose title is mostly in the question.

        If the question contains many titles, the weights are lower.
        """
        shared, titles = self._zeros, self._title_weights
        for term in sorted(terms):
            numbers, _ = self._fields["title"].find(term)
            shared[self._find_rows(numbers)] += self._compute_rarity(len(numbers))
        share = np.divide(shared, titles, out=self._zeros, where=titles > 0)
        contained = np.clip((share - _HALF_TITLE) / (1 - _HALF_TITLE), 0.0, 1.0)
        return contained * self._compute_rarity(float(contained.sum())) if contained.any() else contained

    @cached_property
    def _title_weights(self) -> Weights:
        digests, owners, _ = self._fields["title"].entries
        _, word, holders = np.unique(digests, return_inverse=True, return_counts=True)
        weights = np.maximum(0.0, compute_rarity(holders, len(self)))
        return np.bincount(self._find_rows(owners), weights[word], len(self)).astype(np.float64)

    def _keep_certain(self, weights: Weights, apart: bool) -> Weights:
        """Set the weights of frequent words to zero, unless the question states names separately (`apart`)."""
        return np.where(weights > (0.0 if apart else self._least_weight), weights, 0.0)

    @property
    def _least_weight(self) -> float:
        """The weight that a word must exceed to be treated as part of a document's name."""
        return _RARE_SHARE * math.log(len(self) + 1)

    def has_rare_name(self, text: str) -> bool:
        """Return whether a text contains a word that few documents have in their names or as a proper noun."""
        return any(self._is_rare_name(word) for word in name_words(text))

    def _is_rare_name(self, word: Word) -> bool:
        if word.capital:
            weights = self._weigh_word(word, lower=False)
        else:
            weights, limit = self._zeros, self._compute_rarity(self._count_holders("opening", word.term))
            for name in ("stated", "file"):
                self._raise_weights(weights, name, word.term, limit)
        return bool(weights.max(initial=0.0) > self._least_weight)

    def _weigh_word(self, word: Word, *, lower: bool) -> Weights:
        """Return, for each document, a word's greatest rarity among titles, parties, file names and proper nouns."""
        term, weights = word.term, self._zeros
        # a word's rarity in running text, spelt as in the query, limits its weight, because `and` is rare in titles
        limit = self._compute_rarity(self._count_holders("proper" if word.capital else "opening", term))
        for name in ("stated", "file", *(("initials",) if word.capital or lower else ())):
            self._raise_weights(weights, name, term, limit)
        self._raise_weights(weights, "proper", term, limit, mentions=True)
        # the file's name may contain the word inside a longer word
        inside = [term in run for _, _, run in self._rows] if len(term) >= _JOINED_LETTERS else []
        rows = np.flatnonzero(inside)
        weights[rows] = np.maximum(weights[rows], min(limit, self._compute_rarity(len(rows))))
        return weights

    def _raise_weights(self, weights: Weights, name: str, term: str, limit: float, *, mentions: bool = False) -> None:
        """Raise the weight of each document that has the word `term` in the field `name` to the word's rarity.

        The weight is at most `limit`. With `mentions`, one mention gives half of it, and two mentions give two thirds.
        """
        numbers, counts = self._fields[name].find(term)
        most = min(limit, self._compute_rarity(len(numbers)))
        if most > 0:
            rows = self._find_rows(numbers)
            weights[rows] = np.maximum(weights[rows], most * counts / (counts + 1) if mentions else most)

    def _count_holders(self, name: str, term: str) -> int:
        return len(self._fields[name].find(term)[0])

    def _compute_rarity(self, holders: float) -> float:
        return max(0.0, float(compute_rarity(holders, len(self))))


def normalise(scores: Weights) -> Weights:
    """Return scores shifted so that their exponentials sum to one (log-softmax)."""
    if not len(scores):
        return scores
    shifted = scores - scores.max()
    weights: Weights = shifted - np.log(np.exp(shifted).sum())
    return weights
