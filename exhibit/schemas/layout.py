"""What the files of a bundle are called, and words and marks in them: for those who need no models."""

import re
from typing import Literal, get_args

CORPUS = "corpus"
TRAIN = "train.json"
GOLD = "gold.jsonl"
INFO = "bundle.json"
CARD = "README.md"
ORIGIN = ".exhibit-origin.json"
"""In a folder of the cache: the URL of the bundle whose small files it holds."""
PARTIAL = "bundle.partial"
"""An object that stands beside the files while they are written: what a killed run leaves is known by it."""

How = Literal["exact", "folded", "parts", "fuzzy", "section", "answer", "absent"]
"""How a gold passage was found, best first; `section`: under the heading or the number that the source cites;
`answer`: the source quotes nothing, and the words of its answer stand once in the document that it names."""

HOWS: tuple[How, ...] = get_args(How)

MUST_CONTAIN, MUST_NOT_CONTAIN = "must_contain", "must_not_contain"
"""Labels: what an answer must say, and must not, as lists in JSON; of a list in such a list one is enough."""
ANSWER_FROM = "answer_from"
"""A label: the source gives no answer, and what stands for it is made of this; no reply is compared with it."""

_OMITTED = re.compile(r"<\s*omitted\s*>", re.IGNORECASE)


def quote_parts(quote: str) -> list[str]:
    """Return the parts of a quote that says what is left out of it: `the rent <omitted> and the deposit`."""
    return _OMITTED.split(quote)
