"""Drafted questions, and the phrases that add a document's name to a question: `In the NDA: who pays?`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from exhibit.converters import Label
from exhibit.evidence import Span
from exhibit.storage.cache import key_of

Status = Literal["sure", "absent", "unsure"]  # the passages answer; the document has no answer; a person must decide

_FRAMES = (
    "According to the {title}, {lower}",
    "In the {title}: {question}",
    "{question} (the {title})",
    "Regarding the {title}, {lower}",
)  # Phrases by which people name a document


@dataclass(frozen=True)
class Draft:
    """A question about one document, with the passages that are proposed as its gold."""

    filename: str
    asks: str  # The question without the document's name; `{title}` marks the position of that name
    kind: str  # The source of the question: `playbook`, `definition`, `heading`, `parties`, `value` or `llm`
    status: Status
    name: str = ""  # The topic of the question, such as the name of the playbook's question, the term or the heading
    spans: tuple[Span, ...] = ()  # The spans of the passages in the document's text; empty if no passage answers
    confidence: float = 1.0  # The probability that the passages answer; without passages, the probability of an absence
    labels: dict[str, Label] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The draft's identity, the same in every run: a hash of its document, its source and its topic."""
        return digest(self.filename, self.kind, self.name)


def digest(*words: str) -> str:
    """Return a short hash that is the same on every machine."""
    return key_of(*words).hex()[:16]


def pick(options: Sequence[str], *seed: str) -> str:
    """Return one of several wordings, chosen by a hash and therefore deterministic."""
    return options[int(digest(*seed), 16) % len(options)]


def word_question(draft: Draft, title: str) -> str:
    if "{title}" in draft.asks:
        return draft.asks.replace("{title}", title)
    lower = draft.asks[0].lower() + draft.asks[1:]
    frame = pick(_FRAMES, draft.key, "frame")
    return frame.format(title=title, question=draft.asks, lower=lower)
