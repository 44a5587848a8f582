"""Rewords questions, by rule or by hand, to test whether retrieval depends on one form of question.

    python -m bench.reword datasets_out/legalbenchrag --out datasets_out/legalbenchrag-reworded
    python -m bench.reword datasets_out/legalbenchrag --out datasets_out/legalbenchrag-unnamed --unnamed
    python -m bench.reword datasets_out/legalbenchrag --out datasets_out/legalbenchrag-free --free

LegalBench-RAG asks "Consider the X; Y". Here the name is at the start, in the middle or at the end, with and without
its quotation marks, in one of twelve frames that a hash of the question chooses, so that a question is always reworded
in the same way. No word of the name or of the question is lost. With --unnamed the name is left out and only Y is
asked. With --free 200 questions are asked in words that were written by hand, and the others are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from bench.legalbenchrag.variants import rewrite
from exhibit.runtime.command import guarded

_FORM = re.compile(r"\s*consider\s+(?P<name>[^;]*\w[^;]*?)\s*;\s*(?P<ask>.*\w.*)", re.IGNORECASE | re.DOTALL)
_SAFE = frozenset(
    "about according after all am any are at before by can could describe did do does during explain for from give "
    "had has have how if in information is list must of on shall should state summarise summarize tell that the there "
    "these this those to under was were what when where whether which who whom whose why will with would".split()
)
"""First words that are neither names nor acronyms: they lose their capital inside a sentence."""
_ASKING = frozenset(
    "am are can could did do does had has have how is must shall should was were what when where which who whom whose "
    "why will would".split()
)
_DOCUMENT = re.compile(r"\b(?:the|this) (?:document|agreement|contract|policy|nda)\b(?!['’])", re.IGNORECASE)
"""Matches the words for the document in a question: its name can follow them, between commas."""
_QUOTED = re.compile(r"(?<!\w)['‘]([^'’]*\w[^'’]*)['’](?!\w)|[\"“”]")
_MARKS = (".", "?", "!")
FREE = Path(__file__).parent / "legalbenchrag" / "free.json"

Place = Literal["front", "middle", "end"]


class NamedQuestion(NamedTuple):
    """A question of the form `Consider X; Y`, split into the document's name X and the question Y itself."""

    name: str
    """The document's name, with its article or its possessive."""
    ask: str


class Frame(NamedTuple):
    """A template that puts a document's name into a question.

    It says where the name stands in the question, and whether the name keeps its quotation marks.
    """

    place: Place
    """The position of the name."""
    quotes: bool
    """Whether the name keeps its quotation marks."""
    write: Callable[[NamedQuestion], str]


def split(question: str) -> NamedQuestion | None:
    """Return the name and the question of "Consider the X; Y"; None if it has another form."""
    match = _FORM.fullmatch(question.strip())
    return NamedQuestion(match["name"].strip(), match["ask"].strip()) if match else None


def reword(question: str) -> str:
    """Return a question of the form `Consider the X; Y` in one of twelve other forms, chosen by its hash.

    A question of any other form only gets `Please tell me:` in front of it.
    """
    query = split(question)
    if query is None:
        return f"Please tell me: {_lower_first(question.strip())}"
    return write(frame_of(question), query)


def free(question: str) -> str | None:
    """Return the question as a person reworded it; None if it is not one of the 200 reworded questions.

    The 200 are fifty questions of each benchmark of LegalBench-RAG-mini, stored by the SHA-256 of the published
    question. They are worded as lawyers, laymen, students and people in a hurry would ask, and name the
    document informally. No model was trained on them. But they are not held out: constants of the retrieval,
    such as the weights of lexical matches and of document names, were chosen with them in view.
    """
    digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).hexdigest()
    return _free_words().get(digest)


@cache
def _free_words() -> dict[str, str]:
    written: dict[str, str] = json.loads(FREE.read_text(encoding="utf-8"))
    return written


def unname(question: str) -> str:
    """Return the question without its document's name; unchanged if none is recognised."""
    query = split(question)
    return question if query is None else _raise_first(query.ask)


def frame_of(question: str) -> Frame:
    """Return the sentence template in which a question is reworded.

    A hash of the question's text chooses the template, so that a question always gets the same one.
    """
    digest = hashlib.sha256(question.encode("utf-8", "surrogatepass")).digest()
    return FRAMES[int.from_bytes(digest[:8]) % len(FRAMES)]


def write(frame: Frame, query: NamedQuestion) -> str:
    """Return a question in the form that a template (`frame`) defines, with the document's name inserted.

    The template decides whether the name keeps its quotation marks.
    """
    return frame.write(query if frame.quotes else NamedQuestion(_unquote(query.name), query.ask))


def _insert_name(query: NamedQuestion) -> str:
    """Return the question with the name inserted after words such as `the document` or `this agreement`.

    A question without such words gets the name in front: `My question is about NAME: …`.
    """
    match = _DOCUMENT.search(query.ask)
    if not match:
        return f"My question is about {query.name}: {_lower_first(query.ask)}"
    after = query.ask[match.end() :]
    comma = "" if not after or after[0] in ",.;:?!)" else ","
    return _raise_first(f"{query.ask[: match.end()]}, {query.name}{comma}{after}")


FRAMES: tuple[Frame, ...] = (
    Frame("front", True, lambda q: f"Under {q.name}, {_lower_first(q.ask)}"),
    Frame("front", False, lambda q: f"In {q.name}: {q.ask}"),
    Frame("front", True, lambda q: f"According to {q.name}, {_lower_first(q.ask)}"),
    Frame("front", False, lambda q: f"{_raise_first(q.name)} – {_lower_first(q.ask)}"),
    Frame("middle", False, lambda q: f"What does {q.name} say: {_lower_first(q.ask)}"),
    Frame("middle", True, lambda q: f"I have {q.name} in front of me and would like to know: {_lower_first(q.ask)}"),
    Frame("middle", False, lambda q: f"Could you look into {q.name} for me? {_raise_first(q.ask)}"),
    Frame("middle", True, _insert_name),
    Frame("end", False, lambda q: f"{_close(q.ask)} This concerns {_stop(q.name)}"),
    Frame("end", True, lambda q: f"{_raise_first(q.ask)} ({q.name})"),
    Frame("end", False, lambda q: f"{_close(q.ask)} Please answer from {_stop(q.name)}"),
    Frame("end", True, lambda q: f"{_raise_first(q.ask)} – I mean {_stop(q.name)}"),
)
"""All frames: four for each of the three positions."""


# ---------------------------------------------------------------- words


def _lower_first(text: str) -> str:
    """Return a text with its first letter in lower case, unless the first word may be a name."""
    first = re.match(r"[A-Za-z]+(?![\w'’-])", text)
    return text[0].lower() + text[1:] if first and first[0].lower() in _SAFE and not text[1:2].isupper() else text


def _raise_first(text: str) -> str:
    # only a word that may lose its capital may get one, unlike "iPhone" or "deltathree.com"
    first = re.match(r"[a-z]+(?![\w'’.-])", text)
    return text[0].upper() + text[1:] if first and first[0] in _SAFE else text


def _close(ask: str) -> str:
    """Return a question or a phrase with a final punctuation mark.

    If there is no mark, `?` is added after a question, and `.` after a phrase such as `Information about …`.
    The first letter becomes a capital if the first word is a common word.
    """
    mark = "?" if ask.split()[0].lower() in _ASKING else "."
    return _raise_first(ask) if ask.endswith(_MARKS) else f"{_raise_first(ask)}{mark}"


def _stop(name: str) -> str:
    return name if name.endswith(".") else f"{name}."


def _unquote(name: str) -> str:
    """Return a name without quotation marks; a possessive keeps its apostrophe."""
    return _QUOTED.sub(lambda match: match[1] or "", name)


# ---------------------------------------------------------------- the command


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Write a copy of a bundle with reworded questions, and print their number."""
    what, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        prog="python -m bench.reword",
        description=what,
        epilog=f"examples:\n{more}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bundle", type=Path, metavar="DIR", help="the bundle whose questions are reworded")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the new bundle")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--unnamed", action="store_true", help="leave out the document's name")
    how.add_argument("--free", action="store_true", help="200 of LegalBench-RAG-mini's questions, reworded by hand")
    parser.add_argument("--force", action="store_true", help="replace an existing bundle")
    options = parser.parse_args(argv)
    word = unname if options.unnamed else free if options.free else reword
    rows = rewrite(options.bundle, options.out, word=word, force=options.force)
    print(f"{rows} questions -> {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
