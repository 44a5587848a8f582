"""Reads whole numbers in English words, and writes a number in words in the style of another number.

For example, `Forty-Five` in the style of `Thirty-One`, but `forty five` in the style of `thirty one`.
"""

import re

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_VALUES = {word: value for value, word in enumerate(_SMALL)} | {word: 10 * value for value, word in enumerate(_TENS, 2)}
_ONE = rf"(?:{'|'.join(sorted([*_SMALL, *_TENS, 'hundred', *_SCALES], key=len, reverse=True))})"
SPELT = rf"{_ONE}(?:(?:\s+and\s+|\s+|-\s?){_ONE}){{0,11}}"
"""A pattern for a number in words, to use in a longer pattern that ignores case."""


def read_words(text: str) -> int | None:
    """Return the number that English words state; None if they are no number. An `and` between words is ignored."""
    words = re.findall(r"[a-z]+", text.lower())
    if not words or "and" in (words[0], words[-1]):
        return None
    total = current = 0
    for word in words:
        if word == "hundred":
            current = (current or 1) * 100
        elif word in _SCALES:
            total, current = total + (current or 1) * _SCALES[word], 0
        elif word in _VALUES:
            current += _VALUES[word]
        elif word != "and":
            return None
    return total + current


def write_words(number: int, like: str) -> str:
    """Return a number in words, with capitals, `and` and hyphens as in `like`, another number in words.

    45 gives `Forty-Five` for `Thirty-One`, and `forty five` for `thirty one`.
    """
    words = _write_words(number, " and " if re.search(r"\band\b", like, re.IGNORECASE) else " ")
    if "-" not in like and re.search(rf"(?:{'|'.join(_TENS)})\s+\w", like, re.IGNORECASE):
        words = words.replace("-", " ")
    parts = re.findall(r"[A-Za-z]+", like)
    if like.isupper():
        return words.upper()
    if parts and parts[0][0].isupper():
        whole = len(parts) > 1 and all(part[0].isupper() for part in parts if part.lower() != "and")
        return re.sub(r"[a-z]+", _capitalise, words) if whole or " " in words else words.capitalize()
    return words


def _capitalise(match: re.Match[str]) -> str:
    return match[0] if match[0] == "and" else match[0].capitalize()


def _write_words(number: int, joint: str) -> str:
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return _TENS[tens - 2] + (f"-{_SMALL[rest]}" if rest else "")
    for name, scale in reversed([("hundred", 100), *_SCALES.items()]):
        if number >= scale:
            count, rest = divmod(number, scale)
            return f"{_write_words(count, joint)} {name}" + (
                f"{joint if rest < 100 else ' '}{_write_words(rest, joint)}" if rest else ""
            )
    raise AssertionError(number)  # hundreds are the last scale, and smaller numbers were returned above


def takes_an(number: int) -> bool:
    """Return whether the article before a number is `an`: eight, eleven, eighteen, eighty, eight hundred."""
    return _write_words(number, " ").startswith(("eight", "eleven"))
