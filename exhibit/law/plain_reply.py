"""Extracts the answer from a reply, without JSON, code blocks, thoughts, question, tags and polite phrases."""

import json
import re
import unicodedata

from exhibit.evidence.fold import with_latin_letters
from exhibit.evidence.parser_markup import without_markup

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,400}>")
_COURTESY = re.compile(r"(?:certainly|sure|of course|(?:great|good) question|(?:short )?answer)[!.:]\s+(?=\S)", re.I)
_OFFER = re.compile(
    r"\s(?:please\s)?(?:let\sme\sknow|feel\sfree|i\shope\s(?:this|that)\shelps)\b[^.!?]{0,120}[.!?]?\s{0,4}$",
    re.I,
)
_THOUGHTS = ("think", "thinking", "reasoning", "scratchpad")
"""Tags around what a model writes before it answers."""
_ASKED = re.compile(r"\s{0,9}(?:q|question)\s?:\s[^\n]{1,600}\n\s{0,9}(?:a|answer)\s?:\s", re.I)
"""The question in front of the answer: "Q: … A: …"."""
_NO_ANSWER = "N/A"
"""The words for an answer that is null in a frame of JSON."""
_DEEP = 3  # frames inside each other; an answer that is deeper is not looked for
_ANSWERS = ("answer", "response", "result", "output", "text", "content")
"""Names of the JSON field that contains the answer, the most likely first."""


def strip_reply(text: str) -> str:
    """Return the answer in a reply, without the JSON, code block, thoughts, tags and polite phrases around it."""
    text = _without_frame(_without_fence(_without_thoughts(text)))
    asked = _ASKED.match(text)
    text = text[asked.end() :] if asked else text
    if _TAG.search(text):
        text = without_markup(text)
    if not text.isascii():
        text = with_latin_letters("".join(letter for letter in text if unicodedata.category(letter) != "Cf"))
    courtesy = _COURTESY.match(text)
    return _OFFER.sub("", text[courtesy.end() :] if courtesy else text)


def _without_thoughts(text: str) -> str:
    """Return a reply without what the model wrote between tags such as <think> before it answered."""
    for tag in _THOUGHTS:
        while (start := text.find(f"<{tag}>")) >= 0 and (end := text.find(f"</{tag}>", start)) >= 0:
            text = f"{text[:start]} {text[end + len(tag) + 3 :]}".strip()
    return text


def _without_fence(text: str) -> str:
    """Return the text inside a Markdown code block if the whole reply is one block; else the reply itself."""
    plain = text.strip()
    if not (plain.startswith("```") and plain.endswith("```") and plain.count("```") == 2):
        return text
    return plain[3:-3].partition("\n")[2] or text


def _without_frame(text: str) -> str:
    """Return the answer in a JSON reply, or `N/A` if the answer is null; return any other reply unchanged."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        frame = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for _ in range(_DEEP):
        name = next((name for name in _ANSWERS if name in frame and isinstance(frame[name], str | dict | None)), None)
        if name is None:
            return text
        if not isinstance(frame[name], dict):
            return _NO_ANSWER if frame[name] is None else frame[name]
        frame = frame[name]
    return text
