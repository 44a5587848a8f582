"""Estimates which documents a query means, from the names in it; if it names none, all are equally likely.

A word that occurs in the names of `df` of `N` documents makes each of them N/df times as likely to be
meant, so its weight is log(N/df). The word counts once, in the field (title, file name, parties …) where it
is most informative. The sum over all words is the log-likelihood of a document up to a constant;
normalised, it is the document's probability.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from exhibit.law.names import Word, list_pairs, name_words
from exhibit.law.profile import AGREED, Profile
from exhibit.rag.database import Database
from exhibit.rag.lexicon.name_words import NAME_FIELDS, NameWords, read_names
from exhibit.rag.lexicon.postings import Postings
from exhibit.rag.protocols import Keys
from exhibit.rag.questions import Query

Weights = npt.NDArray[np.float64]

_REMEMBERED = 200_000
"""The number of names whose likelihoods over all documents are cached: 10 MB."""
_MENTION = 2 / 3
"""The exponent of N for a word that only looks like a name: it counts if fewer than the cube root of N documents
contain it. A defined term is in more documents.
"""
_TELLING = 1.5
"""The factor on the weight of a name's word. By its rarity alone, a word of one of N documents would leave this
document less likely than all others together, but nobody writes `Groupon` by chance. On 200 questions about
LegalBench-RAG-mini in free words, with 1, 1.25 and 1.5, 12.8, 2.1 and 1.6% of the first eight passages are in a
wrong document; questions that name no document lose 0.3 of their R@64.
"""
_HALF_TITLE = 0.5
"""The share of a title's weight that a question may contain by chance (`guide`, `agreement`)."""
_OTHER_KIND = 2.3
"""The log of ten: a document of another kind is ten times less likely, since kinds are sometimes misread or
misnamed.
"""


@dataclass(frozen=True)
class Choice:
    """The probability, for each document, that the query means it.

    `log_weights` are the logarithms of these probabilities, in the order of the document numbers in `numbers`.
    """

    numbers: Keys
    log_weights: Weights
    evidence: dict[str, Weights] = field(default_factory=dict)
    """The weight that each signal adds to each document."""

    @property
    def sure(self) -> float:
        """The probability of the likeliest document; 0 if there are no documents.

        If the query names no document, all N documents are equally likely, and the probability is 1 / N.
        """
        return float(np.exp(self.log_weights.max())) if len(self.log_weights) else 0.0

    def choose_best(self, most: int, *, share: float = math.inf) -> list[int]:
        """Return the ids of the documents with the highest probabilities, the most probable first.

        The list ends after `most` documents, or earlier, when the sum of its probabilities reaches `share`.
        """
        order = np.argsort(-self.log_weights, kind="stable")[:most]
        before = np.cumsum(np.exp(self.log_weights[order])) - np.exp(self.log_weights[order])
        return [int(number) for number in self.numbers[order[before < share]]]

    def add_signal(self, name: str, given: Weights) -> "Choice":
        """Return a new choice whose probabilities also depend on another signal, `name`.

        `given` has the signal's log-weight for each document in `numbers`; it is added to the present log-weights.
        """
        return Choice(self.numbers, _normalise(self.log_weights + given), {**self.evidence, name: given})

    def trace(self, most: int = 3) -> dict[str, Any]:
        """Return a record of how documents were chosen for a query, for the trace of the search.

        `sure` is the probability of the likeliest document. `documents` maps the numbers of the `most` likeliest
        documents to their probability (`weight`) and to the weight that each signal added.
        """
        shown = {}
        for at in np.argsort(-self.log_weights, kind="stable")[:most]:
            gave = {name: round(float(given[at]), 2) for name, given in self.evidence.items() if given[at]}
            shown[int(self.numbers[at])] = {"weight": round(float(np.exp(self.log_weights[at])), 4), **gave}
        return {"sure": round(self.sure, 4), "documents": shown}


class DocumentNames:
    """The words that can name documents, in the database of an index."""

    def __init__(self, database: Database | None = None) -> None:
        self._database = database or Database()
        self._fields = {name: Postings(self._database, name) for name in NAME_FIELDS}
        self._layout: _Layout | None = None
        self._choices: dict[tuple[str, str, bool, bool], Choice] = {}
        """A cache of recent choices: questions about one document name it in the same words."""

    # ---------------------------------------------------------------- the content

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def numbers(self) -> Keys:
        """The documents' numbers in the index, in the order in which this class returns a weight for each document."""
        return self._lay_out().numbers

    def add(self, number: int, *, filename: str, profile: Profile, text: str) -> None:
        """Add the words that can name a document: those of its file name, title, parties and opening.

        The document's number must be unused.
        """
        self.add_named(number, read_names(filename, profile, text))

    def add_named(self, number: int, named: NameWords) -> None:
        """Add a document by the words that `read_names` returned for it."""
        for name, table in self._fields.items():
            terms, counts = named.fields[name]
            table.add(terms, np.full(len(terms), number), counts)
        self._database.write("INSERT INTO names VALUES (?, ?, ?, ?)", [(number, named.kind, named.run, named.amends)])
        self._forget()

    def remove(self, number: int) -> None:
        """Remove a document and all its words."""
        for table in self._fields.values():
            table.remove(np.array([number]))
        self._database.write("DELETE FROM names WHERE number = ?", [(number,)])
        self._forget()

    def save(self) -> None:
        """Write all additions to the database."""
        for table in self._fields.values():
            table.save()

    def _forget(self) -> None:
        self._layout = None
        self._choices.clear()

    def _lay_out(self) -> "_Layout":
        if self._layout is None:
            rows = self._database.read("SELECT number, kind, run FROM names ORDER BY number")
            with self._database.report_damage():
                self._layout = _Layout(rows)
        return self._layout

    # ---------------------------------------------------------------- scores

    def score(self, query: Query, *, filenames: bool = True) -> Choice:
        """Return, for each document, the probability that the query means it; all are equal if the query names none."""
        key = (query.names, query.kind, query.apart, filenames)
        if key not in self._choices:
            if len(self._choices) * len(self) >= _REMEMBERED:
                self._choices.clear()
            with self._database.report_damage():
                self._choices[key] = self._score(query, filenames=filenames)
        return self._choices[key]

    def _score(self, query: Query, *, filenames: bool) -> Choice:
        layout = self._lay_out()
        if not len(self):
            return Choice(layout.numbers, np.zeros(0))
        typed = list(name_words(query.names))
        lower = query.names.islower()  # in a question without capitals, lower case carries no information
        given = {
            word.term: self._keep_certain(self._weigh_word(word, lower=lower, filenames=filenames), query)
            for word in typed
        }
        named = np.sum(list(given.values()), axis=0) if given else np.zeros(len(self))
        joined = {first.term + second.term: (first, second) for first, second in list_pairs(typed, lower=lower)}
        phrases = np.zeros(len(self))
        for pair, (first, second) in joined.items():
            # two adjacent words add the information that they carry beyond the single words
            more = np.maximum(0.0, self._weigh_pair(pair) - given[first.term] - given[second.term])
            phrases += self._keep_certain(more, query)
        evidence = {
            "names": _TELLING * named,
            "phrases": _TELLING * phrases,
            "title": _TELLING * self._weigh_title({word.term for word in typed}),
            "kind": self._weigh_kind(query.kind),
        }
        return Choice(layout.numbers, _normalise(np.sum(list(evidence.values()), axis=0)), evidence)

    def _weigh_title(self, said: set[str]) -> Weights:
        """Return the weight that each document gains if the question contains most words of the document's title.

        The weight is 0 if the question contains at most half of the title's words, and then grows with this share.
        Rare words count more. The weight is lower if the question fits the titles of many documents.
        """
        shared = np.zeros(len(self))
        layout = self._lay_out()
        for term in sorted(said):
            numbers, _ = self._fields["title"].find(term)
            shared[np.searchsorted(layout.numbers, numbers)] += self._compute_rarity(len(numbers))
        if layout.titles is None:
            layout.titles = self._sum_title_weights(layout.numbers)
        share = np.divide(shared, layout.titles, out=np.zeros(len(self)), where=layout.titles > 0)
        said_so = np.clip((share - _HALF_TITLE) / (1 - _HALF_TITLE), 0.0, 1.0)
        return said_so * self._compute_rarity(float(said_so.sum())) if said_so.any() else said_so

    def _sum_title_weights(self, numbers: Keys) -> Weights:
        """Return the sum of the weights of all words of each document's title."""
        sums = np.zeros(len(numbers))
        for terms, owners, _ in self._fields["title"].blocks():
            _, place, holders = np.unique(terms, return_inverse=True, return_counts=True)
            weights = np.array([self._compute_rarity(float(count)) for count in holders])
            np.add.at(sums, np.searchsorted(numbers, owners), weights[place])
        return sums

    def _weigh_word(self, word: Word, *, lower: bool, filenames: bool) -> Weights:
        """Return the weight that a word adds to each document.

        If no document has the word, as with `AGProjects`, look for two adjacent words that give it when joined
        (`AG Projects`). If there are none, add up the weights of the word's parts.
        """
        whole = self._weigh_term(word.term, capital=word.capital, lower=lower, filenames=filenames)
        if not whole.any() and len(word.term) >= _JOINED:
            whole = self._weigh_pair(word.term)
        if word.parts and not whole.any():
            for part in word.parts:
                whole = whole + self._weigh_term(part, capital=True, lower=lower, filenames=filenames)
        return whole

    def _keep_certain(self, given: Weights, query: Query) -> Weights:
        """Return the weights that a word gives to documents; weights that are too low become 0.

        A low weight means that many documents contain the word, so that the word hardly identifies a document. No
        weight becomes 0 if the question states the document's name separately from what it asks (`query.apart`),
        because then the word certainly belongs to a name.
        """
        least = 0.0 if query.apart else self._few
        return np.where(given > least, given, 0.0)

    @property
    def _few(self) -> float:
        """The threshold that a word's weight must exceed, so that the word counts as a document's name.

        A word has a low weight if many documents contain it.
        """
        return _MENTION * math.log(len(self) + 1)

    def has_rare_name(self, text: str, *, filenames: bool = True) -> bool:
        """Return whether a text has a word that only a few documents have in their names.

        A capitalised word also counts if only a few documents have it as a proper noun in their text.
        """
        return any(self._is_rare_name(word, filenames=filenames) for word in name_words(text))

    def _is_rare_name(self, word: Word, *, filenames: bool) -> bool:
        if word.capital:
            return bool(self._weigh_word(word, lower=False, filenames=filenames).max(initial=0.0) > self._few)
        given = np.zeros(len(self))
        limit = self._compute_rarity(self._count_holders("opening", word.term))
        for place in ("stated", "file") if filenames else ("stated",):
            self._place(given, place, word.term, limit)
        return bool(given.max(initial=0.0) > self._few)

    def _weigh_term(self, term: str, *, capital: bool, lower: bool, filenames: bool) -> Weights:
        """Return, for each document, how strongly a word of the query indicates that the document is meant.

        A rare word weighs more. The word is looked up in the title, the parties, the file name and the proper
        nouns of each document; the largest weight counts.
        """
        given = np.zeros(len(self))
        # a word's rarity in running text, in the query's spelling, limits its weight: `and` is rare in titles
        limit = self._compute_rarity(self._count_holders("proper" if capital else "opening", term))
        self._place(given, "stated", term, limit)
        self._place(given, "proper", term, limit, mentions=True)
        if capital or lower:
            self._place(given, "initials", term, limit)
        if filenames:
            self._place(given, "file", term, limit)
            rows = self._lay_out().find_rows(term)
            given[rows] = np.maximum(given[rows], min(limit, self._compute_rarity(len(rows))))
        return given

    def _weigh_pair(self, joined: str) -> Weights:
        """Return the weight that a pair of adjacent words adds to each document whose opening contains the pair."""
        given = np.zeros(len(self))
        self._place(given, "pairs", joined, math.inf)
        return given

    def _place(self, given: Weights, name: str, term: str, limit: float, *, mentions: bool = False) -> None:
        """Increase, in place, the weights (`given`) of the documents that have the word `term` in the field `name`.

        The new weight is the word's rarity in the field, at most `limit`; a greater weight stays as it is. With
        `mentions`, a document that has the word once gets half of the new weight, and a document that has it twice
        gets two thirds: a contract names a competitor once, but its own party often.
        """
        numbers, counts = self._fields[name].find(term)
        most = min(limit, self._compute_rarity(len(numbers)))
        if most <= 0:
            return
        rows = np.searchsorted(self._lay_out().numbers, numbers)
        given[rows] = np.maximum(given[rows], most * counts / (counts + 1) if mentions else most)

    def _count_holders(self, name: str, term: str) -> int:
        """Return the number of documents that have the word `term` in the field `name`, such as the title."""
        owners, _ = self._fields[name].find(term)
        return len(owners)

    def _compute_rarity(self, holders: float) -> float:
        return max(0.0, math.log((len(self) + 1) / (holders + 0.5)))

    def _weigh_kind(self, kind: str) -> Weights:
        """Return the log-weight of each document by its kind: 0 for the kind that the question names, else negative.

        The weight is also 0 for a document of unknown kind, for every kind of agreement if the question names a
        `contract`, and for all documents if the question names no kind.
        """
        if not kind:
            return np.zeros(len(self))
        meant = AGREED if kind == "contract" else {kind}
        return np.array([0.0 if one in meant or not one else -_OTHER_KIND for one in self._lay_out().kinds])


class _Layout:
    """The documents as rows, and all their file names in one string, in which a part of a name can be searched."""

    def __init__(self, rows: Sequence[tuple[int, str, str]]) -> None:
        self.numbers: Keys = np.array([number for number, _, _ in rows], np.int64)
        self.kinds = [kind for _, kind, _ in rows]
        self.titles: Weights | None = None
        """The weight of each document's title, computed at the first use."""
        lines = [run for _, _, run in rows]
        self._text = "\n".join(lines)
        self._starts = np.cumsum([0, *(len(line) + 1 for line in lines)])[:-1]

    def find_rows(self, term: str) -> Keys:
        """Return the row numbers of the documents whose file name contains a word, even inside a longer word.

        For a word of fewer than four letters, return no rows.
        """
        if len(term) < _JOINED:
            return np.zeros(0, dtype=np.int64)
        places = [match.start() for match in re.finditer(re.escape(term), self._text)]
        rows: Keys = np.unique(np.searchsorted(self._starts, np.array(places, dtype=np.int64), side="right") - 1)
        return rows


_JOINED = 4
"""Letters that a word needs for a search inside longer words: `inc` is in `since`."""


def _normalise(scores: Weights) -> Weights:
    """Return scores shifted so that their exponentials sum to one (log-softmax)."""
    if not len(scores):
        return scores
    shifted = scores - scores.max()
    weights: Weights = shifted - np.log(np.exp(shifted).sum())
    return weights
