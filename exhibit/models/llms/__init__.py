"""Language models: one file each, selected by `--llm NAME:MODEL`."""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class Prompt:
    """A prompt for a language model: a user message, a system message, and a JSON Schema for the reply."""

    user: str
    system: str = ""
    schema: str = ""
    """The JSON Schema, as JSON, that the reply must follow if the model supports one; empty for a free reply."""


@dataclass(frozen=True)
class Completion:
    """A model's reply: text, or the error in its place; never both."""

    text: str = ""
    error: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    cached: bool = False


class LLM(Protocol):
    """A language model. A module in `models/llms/` has `open(argument: str | None, options) -> LLM`."""

    name: str

    def complete(self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float) -> list[Completion]:
        """Return one completion per prompt, in order; a failure is a Completion with an error."""


Counter = Callable[[str], int]

_PIECES = re.compile(r"[^\W\d_]+|\d+|_+|[^\w\s]|\n+|[^\S\n]{2,}|[^\S\n ]")
_WHOLE = 7
"""The most letters of an English word that tokenizers do not split."""

_VOCABULARIES = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
"""The sha256 of the file of each encoding: tiktoken would download a different file again."""
_VOCABULARY_URL = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"


def estimate(text: str) -> int:
    """Return the approximate number of tokens of a text, from its words alone.

    The estimate was compared with four tokenizers (cl100k, o200k, BERT's word pieces and one more) on 858
    passages of 500 characters from contracts, merger agreements, privacy policies and procedure rules. The
    total of each collection is within 9% of each tokenizer's, and 93 of 100 single passages are within 20%. The
    weights were fitted on these same passages. Languages other than English need more tokens than estimated: a
    Welsh sentence needed 60% more.
    """
    if len(_WEIGHTS) > _MOST:
        _WEIGHTS.clear()
    return round(sum(map(_WEIGHTS.__getitem__, _PIECES.findall(text))))


class _Weights(dict[str, float]):
    """A cache of the estimated token count of each text fragment.

    Without the cache, a search spent a quarter of its time on computing these counts.
    """

    def __missing__(self, piece: str) -> float:
        weight = self[piece] = _weigh_piece(piece)
        return weight


_WEIGHTS = _Weights()
_MOST = 1 << 16
"""The most cached pieces, 8 MB: all words of a few thousand contracts."""


def _weigh_piece(piece: str) -> float:
    first = piece[0]
    if first.isalpha():
        if not piece.isascii():
            return len(piece.encode()) / 2.5
        if piece.isupper() and len(piece) > 3:  # headings in capitals are rare in any vocabulary
            return len(piece) / 3.5
        return 1 + max(0, len(piece) - _WHOLE) / _WHOLE
    if first.isdigit():
        return (len(piece) + 2) // 3
    if first == "_":  # a signature line
        return max(1.0, len(piece) / 8)
    if first.isspace():
        return 0.75 if first == " " else 1.0
    return 0.95 if first.isascii() else 1.5


def choose_counter(model: str | None = None) -> Counter:
    """Return the model's token counter if its vocabulary is on this machine, else `estimate`.

    Nothing is ever downloaded.
    """
    return (_from_tiktoken(model) if model else None) or estimate


def _from_tiktoken(model: str) -> Counter | None:
    """Return a function that counts the tokens of a text as an OpenAI model does.

    Return None if tiktoken is not installed, does not know the model, or would have to download the
    vocabulary.
    """
    if find_spec("tiktoken") is None:
        return None
    try:
        name: str = import_module("tiktoken.model").encoding_name_for_model(model)
    except KeyError:
        return None
    if name not in _VOCABULARIES or not _has_vocabulary(name):
        return None
    return partial(_count_codes, import_module("tiktoken").get_encoding(name))


def _count_codes(encoding: Any, text: str) -> int:
    # a document may contain "<|endoftext|>": it is text, not a control token
    return len(encoding.encode(text, disallowed_special=()))


def _has_vocabulary(name: str) -> bool:
    """Return whether tiktoken's cache has the complete vocabulary file, so that tiktoken downloads nothing."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder == "":  # tiktoken reads an empty value as "no cache"
        return False
    place = Path(folder) if folder else Path(tempfile.gettempdir()) / "data-gym-cache"
    path = place / hashlib.sha1(_VOCABULARY_URL.format(name=name).encode()).hexdigest()
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == _VOCABULARIES[name]
