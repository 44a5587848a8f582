"""Removes the form of a reply: JSON around the answer, tags, invisible characters, polite phrases."""

import json
import re
import unicodedata

from exhibit.evidence.fold import with_latin_letters
from exhibit.evidence.parser_markup import without_markup

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,400}>")
_COURTESY = re.compile(r"(?:certainly|sure|of course|(?:great|good) question|(?:short )?answer)[!.:]\s+(?=\S)", re.I)
_OFFER = re.compile(
    r"(?<=[.!?])\s(?:please\s)?(?:let\sme\sknow|feel\sfree|i\shope\s(?:this|that)\shelps)\b[^.!?]{0,120}[.!?]?\s{0,4}$",
    re.I,
)
_ANSWERS = ("answer", "response", "result", "output", "text", "content")
"""Names of the JSON field that contains the answer, the most likely first."""


def plain_reply(text: str) -> str:
    """Return the answer in a reply, without its form."""
    text = _without_frame(text)
    if _TAG.search(text):
        text = without_markup(text)
    if not text.isascii():
        text = with_latin_letters("".join(letter for letter in text if unicodedata.category(letter) != "Cf"))
    courtesy = _COURTESY.match(text)
    return _OFFER.sub("", text[courtesy.end() :] if courtesy else text)


def _without_frame(text: str) -> str:
    """Return the answer inside a JSON object; the text itself if it is not such an object."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return text
    answers = [frame[name] for name in _ANSWERS if isinstance(frame.get(name), str)]
    return answers[0] if answers else text
