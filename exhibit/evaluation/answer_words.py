"""Words as they are counted for exact match and F1: lower-cased runs of letters and digits."""

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics import gold_texts
from exhibit.law.citations import BRACKETED, find_citations, rewrite_citations, without_places
from exhibit.law.figures import stands_in
from exhibit.law.language import word_runs
from exhibit.law.names import plain, without_ending
from exhibit.law.refusals import is_refusal

_APART = re.compile(
    r"[;@#$%&?!()\[\]{}<>\"“”‘’«»„`*]|--+|\.{3}|[:,](?!\d)|'(?:s|m|d|ll|re|ve)?(?=\s|$)|n't\b|\.(?=\s|$)"
)
"""What NLTK's word tokenizer parts from a word, with a full stop taken for the end of a sentence."""
_PAGE_CITATION = re.compile(r"\[[^\[\]\n]*#page=[^\[\]\n]*\]")


def words(text: str) -> list[str]:
    """Return the words of a text, in order."""
    return word_runs(text.lower())


def f1(shared: int, predicted: int, expected: int) -> float:
    """Return the harmonic mean of precision and recall, 0 where nothing is shared."""
    return 2 * shared / (predicted + expected) if shared else 0.0


def seed_words(text: str) -> list[str]:
    """Return the words as NLTK's tokenizer cuts them, those alone that are letters and digits: no `non-exclusive`."""
    return [word for word in _APART.sub(" ", text.lower()).split() if word.isalnum()]


def set_f1(answer: str, expected: str, cut: Callable[[str], list[str]] = words) -> float:
    """Return F1 over the different words of two texts."""
    one, other = set(cut(answer)), set(cut(expected))
    return f1(len(one & other), len(one), len(other))


def multiset_f1(answer: str, expected: str) -> float:
    """Return F1 over the words of two texts, repeats counted."""
    one, other = Counter(words(answer)), Counter(words(expected))
    return f1((one & other).total(), one.total(), other.total())


def same_words(answer: str, expected: str) -> float:
    """Return 1 where two texts have the same words in the same order, and any at all."""
    return float(bool(words(answer)) and words(answer) == words(expected))


def score_against(case: Case, expected: Iterable[str], score: Callable[[str, str], float]) -> float | None:
    """Return the best score of an answer against one of some texts, citations removed; None where none has words."""
    answer = without_citations(case.reply.answer or "")
    return max((score(answer, text) for text in map(without_citations, expected) if words(text)), default=None)


def without_citations(text: str) -> str:
    """Return a text without `[1]`, `[Document#page=Section]` and the list of places, which are not what it says."""
    return _PAGE_CITATION.sub("", rewrite_citations(without_places(text), lambda *_: ""))


_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def squad_words(text: str) -> list[str]:
    """Return the words that are compared: lower-cased, without ASCII punctuation and articles."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def squad_prediction(answer: str) -> str:
    """Return an answer as it is handed to SQuAD's metric: without citations, and empty where it refuses."""
    return "" if is_refusal(answer) else without_citations(answer)


def squad_golds(case: Case) -> list[str]:
    """Return what SQuAD's metric compares with: the gold's words, else the truth; nothing for an impossible row."""
    return [] if case.is_impossible else gold_texts(case) or [case.truth]


def squad_exact(answer: str, golds: list[str]) -> float:
    """Return 1 where the answer is one of the golds; without golds, where there is none."""
    predicted = squad_words(squad_prediction(answer))
    return float(any(predicted == words for words in _words(golds)))


def squad_f1(answer: str, golds: list[str]) -> float:
    """Return the best F1; where either side has no words, 1 when both have none."""
    predicted = squad_words(squad_prediction(answer))
    return max(_f1(predicted, words) for words in _words(golds))


def _words(golds: list[str]) -> list[list[str]]:
    return [words for gold in golds if (words := squad_words(gold))] or [[]]


def _f1(predicted: list[str], expected: list[str]) -> float:
    if not predicted or not expected:
        return float(predicted == expected)
    return f1((Counter(predicted) & Counter(expected)).total(), len(predicted), len(expected))


_NO_NAME = re.compile(r"[\W\d_]+|(?:\d+\s+and\s+)*\d+")
"""`[1]`, `[1, 2]`, the year of `[2024] EWCA Civ 123` and gaps such as `[…]` or `[***]` cite nothing by name."""
_PAGES = re.compile(r"(?<!\s)\s*\(pp?\.\s*+[\d\s,–-]+\)\s*$")

CONTAINED = 0.95
"""What a name is worth that holds the expected one, or is held by it."""
_SHARED = 0.9
"""What names are worth that share all their words in another order; in proportion when they share some."""
_SEED = 0.75
"""What the seed gives to names of one topic, and at least to those that share a word."""
_TOPICS = (("hearings", "open justice", "media"), ("disclosure", "documents", "inspection"))
"""The topics that the seed prints; of others it only says that there are some."""


def cited_names(text: str) -> list[str]:
    """Return what a text cites by name, each once, as written: `Part 36#page=Offers to Settle`."""
    names = (" ".join(match.split()) for match in BRACKETED.findall(text))
    return list(dict.fromkeys(name for name in names if name and not _NO_NAME.fullmatch(name)))


def cited_files(case: Case) -> list[str]:
    """Return the files of the passages that an answer cites by number, in the order of the citations."""
    passages = case.reply.passages
    numbers = [n for citation in find_citations(case.reply.answer or "") for n in citation.numbers]
    files = [passages[n - 1].filename for n in numbers if 1 <= n <= len(passages)]
    return list(dict.fromkeys(file for file in files if file))


def without_named(text: str) -> str:
    """Return a text without the sources that it cites by name."""
    return BRACKETED.sub(lambda match: match.group() if _NO_NAME.fullmatch(match[1]) else " ", text)


def plain_source(name: str) -> str:
    """Return a source's name as it is compared: without pages, a file's ending, case, accents and punctuation."""
    text = _PAGES.sub("", re.sub(r"#page=\d+$", "", name.strip()))
    return plain(without_ending(text).replace("#page=", " # "))  # the mark keeps `PD 5#page=A Party` from being PD 5A


def likeness(expected: str, given: str, *, seed: bool = False) -> float:
    """Return how near two names are: 1 when equal, 0.95 when one holds the other, else by the words they share.

    `seed` gives 0.75 to names of one topic, and from there to 0.9 to those that share words.
    """
    one, other = plain_source(expected).split(), plain_source(given).split()
    if not one or not other:
        return 0.0
    if one == other:
        return 1.0
    short, long = sorted((one, other), key=len)
    if any(long[at : at + len(short)] == short for at in range(len(long) - len(short) + 1)):
        return CONTAINED
    shared = len(_telling(one) & _telling(other)) / len(_telling(one) | _telling(other))
    if not seed:
        return _SHARED * shared
    return _SEED + (_SHARED - _SEED) * shared if shared or _topics(one) & _topics(other) else 0.0


def _topics(words: list[str]) -> set[int]:
    text = f" {' '.join(words)} "
    return {at for at, topic in enumerate(_TOPICS) if any(f" {term} " in text for term in topic)}


def _telling(words: list[str]) -> frozenset[str]:
    """Return the words that tell one source from another; all of them where there are no others."""
    kept = frozenset(words) - {"the", "of", "in", "and", "a", "to", "for", "on", "about", "by", "or", "at", "p", "pp"}
    return kept or frozenset(words)


def file_names(file: str) -> Iterator[str]:
    """Yield the names that a file can be cited by."""
    yield file
    yield PurePath(file).stem


def listed_items(case: Case, label: str) -> list[list[str]]:
    """Return the items that a label lists in JSON, each as the list of words of which one is enough."""
    held = case.labels.get(label)
    try:
        items = json.loads(held) if isinstance(held, str) else held
    except ValueError:
        items = [held]
    found = [one if isinstance(one, list) else [one] for one in items] if isinstance(items, list) else []
    texts = [[str(one) for one in item if str(one).strip()] for item in found]
    return [item for item in texts if item]


def says_item(item: str, answer: str, *, strict: bool = False) -> bool:
    """Return whether an answer says something: word for word or, if not `strict`, with all its figures and terms.

    What has a figure in it is compared by its value in any case.
    """
    wanted, given = words(item), words(answer)
    if wanted and any(given[at : at + len(wanted)] == wanted for at in range(len(given) - len(wanted) + 1)):
        return True
    figured = any(character.isdigit() for character in item)
    return bool(stands_in(item, answer)) if figured or not strict else False
