"""Language models: one file each; its name is its name on the command line (`--llm openai:MODEL`)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Prompt:
    """What a language model is asked."""

    user: str
    system: str = ""
    schema: str = ""
    """The JSON Schema, as JSON, that the reply must follow where the model can be held to one; none leaves it free."""


@dataclass(frozen=True)
class Completion:
    """What it replied: text, or the error that took its place; never both."""

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
