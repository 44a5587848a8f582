"""The file names of a bundle and other constants, for modules that do not need the pydantic models."""

import os
import re
from hashlib import sha256
from typing import Literal, get_args

CORPUS = "corpus"
TRAIN = "train.json"
GOLD = "gold.jsonl"
INFO = "bundle.json"
CARD = "README.md"
DRAFTS = "drafts.jsonl"  # the file of a drafted bundle with the questions that a person has not yet reviewed
ORIGIN = ".exhibit-origin.json"  # The file in a cache folder that contains the URL of the cached bundle

How = Literal["exact", "folded", "parts", "fuzzy", "section", "answer", "absent"]
"""How a gold passage was located, best first.
`section`: under the heading or number that the source cites.
`answer`: the source has no quote, but the words of its answer occur exactly once in the named document.
"""

LONGEST_NAME = 255  # the longest file name in bytes that every file system in use accepts


def fit_name(name: str, ending: str = "") -> str:
    """Return a name with an ending; a name that is too long is cut and gets a digest, which keeps it unique."""
    data, most = os.fsencode(name), LONGEST_NAME - len(os.fsencode(ending))
    if len(data) > most:
        digest = sha256(data).hexdigest()[:16]
        return f"{data[: most - len(digest)].decode('utf-8', 'ignore')}{digest}{ending}"
    return f"{name}{ending}"


HOWS: tuple[How, ...] = get_args(How)

IMPOSSIBLE_ANSWER = "Not found in provided documents"
MUST_CONTAIN, MUST_NOT_CONTAIN = "must_contain", "must_not_contain"
"""Labels: JSON lists of texts that an answer must contain or must not contain; one text of a nested list is enough."""
# a label for questions without an answer in the source: it names the item from which `answer` was made; no reply is
# compared with such an answer
ANSWER_FROM = "answer_from"

_OMITTED = re.compile(r"<\s*omitted\s*>", re.IGNORECASE)


def quote_parts(quote: str) -> list[str]:
    """Return the parts of a quote between omission marks: `the rent <omitted> and the deposit` has two parts."""
    return _OMITTED.split(quote)
