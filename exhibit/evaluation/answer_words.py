"""Split texts into words for exact match and F1, and compare the names of cited sources."""

import json
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePath

from exhibit.evaluation.cases import Case
from exhibit.evaluation.metrics import list_gold_texts
from exhibit.law.citations import BRACKETED, find_citations, rewrite_citations, without_places
from exhibit.law.editions import without_changes
from exhibit.law.figures import stands_in
from exhibit.law.language import list_word_runs
from exhibit.law.names import normalise_name, without_ending
from exhibit.law.refusals import is_refusal

_APART = re.compile(
    r"[;@#$%&?!()\[\]{}<>\"“”‘’«»„`*]|--+|\.{3}|[:,](?!\d)|'(?:s|m|d|ll|re|ve)?(?=\s|$)|n't\b|\.(?=\s|$)"
)
"""The punctuation that NLTK's word tokenizer separates from a word; a full stop counts as the end of a sentence."""
_PAGE_CITATION = re.compile(r"\[[^\[\]\n]*#page=[^\[\]\n]*\]")


def split_words(text: str) -> list[str]:
    """Return the words of a text, lower-cased, in order."""
    return list_word_runs(text.lower())


def compute_f1(shared: int, predicted: int, expected: int) -> float:
    """Return F1 from the numbers of shared, predicted and expected words; 0 if no word is shared."""
    return 2 * shared / (predicted + expected) if shared else 0.0


def split_seed_words(text: str) -> list[str]:
    """Return the lower-cased tokens of NLTK's tokenizer that consist of letters and digits only.

    `non-exclusive` is dropped, for example. The option parity "seed" uses these tokens, to reproduce the scores
    of another project.
    """
    return [word for word in _APART.sub(" ", text.lower()).split() if word.isalnum()]


def set_f1(answer: str, expected: str, cut: Callable[[str], list[str]] = split_words) -> float:
    """Return the F1 of the sets of words of two texts."""
    one, other = set(cut(answer)), set(cut(expected))
    return compute_f1(len(one & other), len(one), len(other))


def compute_multiset_f1(answer: str, expected: str) -> float:
    """Return the F1 of the words of two texts; a repeated word counts each time."""
    one, other = Counter(split_words(answer)), Counter(split_words(expected))
    return compute_f1((one & other).total(), one.total(), other.total())


def compare_words(answer: str, expected: str) -> float:
    """Return 1 where two texts have the same words in the same order and are not empty, else 0."""
    return float(bool(split_words(answer)) and split_words(answer) == split_words(expected))


def score_against(case: Case, expected: Iterable[str], score: Callable[[str, str], float]) -> float | None:
    """Return the best score of the answer against any of the expected texts.

    Citations are removed from the answer and from the expected texts first. Expected texts without a word are
    ignored; the result is None if no expected text is left.
    """
    answer = without_citations(case.reply.answer or "")
    return max((score(answer, text) for text in map(without_citations, expected) if split_words(text)), default=None)


def without_citations(text: str) -> str:
    """Return a text without its citations, such as `[1]`, its notes on amendments, and its list of sources."""
    return _PAGE_CITATION.sub("", rewrite_citations(without_changes(without_places(text)), lambda *_: ""))


_ARTICLE = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def split_squad_words(text: str) -> list[str]:
    """Return the words that SQuAD compares: lower-cased, without ASCII punctuation and articles."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def make_squad_prediction(answer: str) -> str:
    """Return an answer as SQuAD's metric expects it: without citations, and empty where the answer is a refusal."""
    return "" if is_refusal(answer) else without_citations(answer)


def list_squad_golds(case: Case) -> list[str]:
    """Return the texts with which SQuAD's metric compares an answer.

    They are the texts of the gold passages or, without gold texts, the expected answer. The list is empty for
    an impossible question.
    """
    return [] if case.is_impossible else list_gold_texts(case) or [case.truth]


def score_squad_exact(answer: str, golds: list[str]) -> float:
    """Return 1 where the answer equals one of the gold texts; without gold texts, 1 where the answer is empty."""
    predicted = split_squad_words(make_squad_prediction(answer))
    return float(any(predicted == words for words in _split_golds(golds)))


def score_squad_f1(answer: str, golds: list[str]) -> float:
    """Return the best SQuAD F1 of the answer against any of the gold texts.

    If neither the answer nor the gold text has words, F1 is 1; if only one of the two has words, it is 0.
    """
    predicted = split_squad_words(make_squad_prediction(answer))
    return max(_compute_f1(predicted, words) for words in _split_golds(golds))


def _split_golds(golds: list[str]) -> list[list[str]]:
    return [words for gold in golds if (words := split_squad_words(gold))] or [[]]


def _compute_f1(predicted: list[str], expected: list[str]) -> float:
    if not predicted or not expected:
        return float(predicted == expected)
    return compute_f1((Counter(predicted) & Counter(expected)).total(), len(predicted), len(expected))


_NO_NAME = re.compile(r"[\W\d_]+|(?:\d+\s+and\s+)*\d+")
"""Brackets that name no source: `[1]`, `[1, 2]`, the year of `[2024] EWCA Civ 123`, gaps such as `[…]` or `[***]`."""
_PAGES = re.compile(r"(?<!\s)\s*\(pp?\.\s*+[\d\s,–-]+\)\s*$")

CONTAINED = 0.95
"""The similarity of two names where one contains the other."""
_SHARED = 0.9
"""The similarity of two names with the same words in another order; less in proportion when they share fewer words."""
_SEED = 0.75
"""The similarity that the seed project gives to names of one topic; also its minimum for names that share a word."""
_TOPICS = (("hearings", "open justice", "media"), ("disclosure", "documents", "inspection"))
"""The topics that the seed project prints; it mentions further topics without a list of their words."""


def find_cited_names(text: str) -> list[str]:
    """Return the sources that a text cites by name, each once, as written: `Part 36#page=Offers to Settle`."""
    names = (" ".join(match.split()) for match in BRACKETED.findall(text))
    return list(dict.fromkeys(name for name in names if name and not _NO_NAME.fullmatch(name)))


def find_cited_files(case: Case) -> list[str]:
    """Return the files of the passages that an answer cites by number, in the order of the citations."""
    passages = case.reply.passages
    numbers = [n for citation in find_citations(case.reply.answer or "") for n in citation.numbers]
    files = [passages[n - 1].filename for n in numbers if 1 <= n <= len(passages)]
    return list(dict.fromkeys(file for file in files if file))


def without_named(text: str) -> str:
    """Return a text without citations that name a source in brackets, such as `[Part 36#page=Offers to Settle]`."""
    return BRACKETED.sub(lambda match: match.group() if _NO_NAME.fullmatch(match[1]) else " ", text)


def normalise_source(name: str) -> str:
    """Return a source's name as it is compared: without pages, file extension, case, accents and punctuation."""
    text = _PAGES.sub("", re.sub(r"#page=\d+$", "", name.strip()))
    return normalise_name(without_ending(text).replace("#page=", " # "))  # `PD 5#page=A Party` is not PD 5A


def compare_sources(expected: str, given: str, *, seed: bool = False) -> float:
    """Return the similarity of two source names, from 0 to 1.

    The similarity is 1 for equal names and 0.95 if one name contains the other. Otherwise it is 0.9 times the
    number of words in both names divided by the number of words in either name, without words such as `the`.

    Args:
        expected: The name that the expected answer cites.
        given: The name that the reply cites.
        seed: Reproduce the scores of another project (`--set parity=seed`): from 0.75 to 0.9 for names
            that have a topic or a word in common, and 0 for other names.
    """
    one, other = normalise_source(expected).split(), normalise_source(given).split()
    if not one or not other:
        return 0.0
    if one == other:
        return 1.0
    short, long = sorted((one, other), key=len)
    if any(long[at : at + len(short)] == short for at in range(len(long) - len(short) + 1)):
        return CONTAINED
    shared = len(_select_telling_words(one) & _select_telling_words(other)) / len(
        _select_telling_words(one) | _select_telling_words(other)
    )
    if not seed:
        return _SHARED * shared
    return _SEED + (_SHARED - _SEED) * shared if shared or _find_topics(one) & _find_topics(other) else 0.0


def _find_topics(words: list[str]) -> set[int]:
    text = f" {' '.join(words)} "
    return {at for at, topic in enumerate(_TOPICS) if any(f" {term} " in text for term in topic)}


def _select_telling_words(words: list[str]) -> frozenset[str]:
    """Return the words of a source's name without words such as `the` and `of`; all words if nothing else is left."""
    kept = frozenset(words) - {"the", "of", "in", "and", "a", "to", "for", "on", "about", "by", "or", "at", "p", "pp"}
    return kept or frozenset(words)


def list_file_names(file: str) -> Iterator[str]:
    """Yield the names by which a file can be cited: its name with and without the file extension."""
    yield file
    yield PurePath(file).stem


def read_listed_items(case: Case, label: str) -> list[list[str]]:
    """Return the items of the JSON list that is the value of a question's label.

    Each item is a list of alternative texts; an answer needs to state only one alternative. A text that is
    not JSON is a single item with a single alternative.
    """
    held = case.labels.get(label)
    try:
        items = json.loads(held) if isinstance(held, str) else held
    except ValueError:
        items = [held]
    found = [one if isinstance(one, list) else [one] for one in items] if isinstance(items, list) else []
    texts = [[str(one) for one in item if str(one).strip()] for item in found]
    return [item for item in texts if item]


def says_item(item: str, answer: str, *, strict: bool = False) -> bool:
    """Return whether an answer states an item, such as one entry of an expected list.

    With `strict`, an item without digits must occur word for word. Otherwise it is enough that all its terms
    occur and that its figures have the same values: "thirty (30) days" states "30 days".
    """
    wanted, given = split_words(item), split_words(answer)
    if wanted and any(given[at : at + len(wanted)] == wanted for at in range(len(given) - len(wanted) + 1)):
        return True
    figured = any(character.isdigit() for character in item)
    return bool(stands_in(item, answer)) if figured or not strict else False
