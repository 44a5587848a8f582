"""The lists of words for comparing answers: words that deny, and the lists of `meaning.toml`.

`meaning.toml` lists synonyms, opposites, and words for parties to a contract, such as `buyer`.
"""

from functools import cache, lru_cache

from exhibit.law.language import is_content, stem
from exhibit.schemas.parsing import read_beside

_LISTS = read_beside(__file__, "meaning.toml")
_DENIALS = frozenset("not never non without nicht kein keine keinen nie ne pas není nejsou nesmí nie nunca não".split())
WIDE_DENIALS = frozenset("no neither nor none nobody".split())
"""Denials of a subject, whose scope is the rest of the clause; other denials end at the next finite verb."""
DENIALS = _DENIALS | WIDE_DENIALS
_SMALL = frozenset({"before", "after", "below", "all", "both"})
"""Function words that have a meaning of their own."""
_PREFIXES = ("non", "un", "in", "im", "ir", "il", "dis")
_SHORTEST = 4  # letters that must remain without the prefix: "until" is not a denial of "til"


def _read_row(name: str) -> list[str]:
    """Return the words of the list `name` in the file `meaning.toml`."""
    return str(_LISTS[name]).split()


@cache
def _read_lexicon() -> dict[str, tuple[str, int]]:
    """Return, for each word listed in `meaning.toml`, its canonical word and its sign.

    The sign is -1 if the word is the opposite of its canonical word, else 1.
    """
    listed: dict[str, tuple[str, int]] = {}
    for line in _LISTS["same"]:
        first, *others = line.split()
        for word in (first, *others):
            listed[word] = (first, 1)
    for pair in _read_row("opposites"):
        word, _, other = pair.partition("=")
        listed[word] = (other.lstrip("+"), 1 if other.startswith("+") else -1)
    parties = dict(pair.split("=") for pair in _read_row("party_names"))
    for word in (*_read_row("parties"), *parties):
        listed[word] = (parties.get(word, word), 1)
    return listed


@cache
def _read_parties() -> frozenset[str]:
    return frozenset(_read_lexicon()[word][0] for word in _read_row("parties"))


@cache
def read_contrasts() -> dict[str, tuple[frozenset[str], ...]]:
    """Return, for each word, the groups of mutually exclusive words that contain it."""
    groups: dict[str, tuple[frozenset[str], ...]] = {}
    for line in _LISTS["contrasts"]:
        group = frozenset(find_canonical(word)[0] for word in line.split())
        for word in group:
            groups[word] = (*groups.get(word, ()), group)
    return groups


@cache
def read_soft_words() -> frozenset[str]:
    """Return the words of an expected answer that a reply may omit, unless the reply contradicts them."""
    return frozenset(find_canonical(word)[0] for word in _read_row("soft")) | frozenset(_read_row("soft"))


@cache
def read_small_contrasts() -> tuple[frozenset[str], ...]:
    """Return pairs of function words that exclude each other, such as `before` and `after`."""
    return tuple(frozenset(pair.split("|")) for pair in _read_row("small_contrasts"))


@lru_cache(maxsize=65536)
def find_canonical(word: str) -> tuple[str, int]:
    """Return a word's canonical form and a sign: -1 if the word is the opposite of this form, else 1.

    `void` gives `valid` and -1.
    """
    listed = _read_lexicon()
    plain = word.removesuffix("'s").removesuffix("'")
    if plain in listed:
        return listed[plain]
    if plain.endswith("s") and plain[:-1] in listed:
        return listed[plain[:-1]]
    return stem(plain[:-1] if plain.endswith("ys") else plain), 1  # Saturdays


def denies(token: str, known: set[str]) -> bool:
    """Return whether a word denies, like "not" or "non", or has a negative prefix, like "unlimited".

    Args:
        known: stems of words. A prefix counts as negative only if the rest of the word is listed in
            `meaning.toml` or has one of these stems.
    """
    return token in DENIALS or sign_word(token, known)[1] < 0


def is_party(term: str) -> bool:
    """Return whether a word names a party."""
    return term in _read_parties()


def carries_meaning(token: str) -> bool:
    """Return whether a word adds to the meaning of a text.

    Such a word is a content word, a word in `meaning.toml`, or one of before, after, below, all and both.
    """
    plain = token.removesuffix("'s")
    return plain in _read_lexicon() or is_content(plain) or plain in _SMALL


def sign_word(token: str, known: set[str]) -> tuple[str, int]:
    """Return a word's canonical form, and -1 if the word negates that form, else 1: `unpaid` gives `pay` and -1.

    A prefix such as `un` negates only if the rest of the word is in the lexicon, or its stem is in `known`.
    """
    term, sign = find_canonical(token)
    if token in _read_lexicon():
        return term, sign
    for prefix in _PREFIXES:
        rest = token.removeprefix(prefix)
        if rest != token and len(rest) >= _SHORTEST and (rest in _read_lexicon() or stem(rest) in known):
            term, own = find_canonical(rest)
            return term, -own
    return term, sign
