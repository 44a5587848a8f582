"""Kinds of variation: one module each, selected by its name, as in `--kind figures`.

A kind of variation is a module with `TITLE`, one line on what it does; `MEASURED`, the metrics that show its
effect; and `vary(corpus, request, tally)`, which returns the changed corpus. Each row of the changed corpus has a
counterpart in the control, the bundle without the change; `TextRow.control` is the counterpart's id. A
question that no rule can change with certainty is left out by `tally.leave_out`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from exhibit.converters.core.benchmark import Tally
from exhibit.runtime.plugins import import_plugins, load_plugin
from exhibit.vary.corpus import TextCorpus


@dataclass(frozen=True)
class VaryRequest:
    seed: int = 0
    argument: str | None = None  # The argument after the kind's name: `4` in `--kind growth:4`
    others: Path | None = None  # A folder or a bundle with further documents


class KindModule(Protocol):
    """The interface of a kind of variation, such as `figures`; each module in this folder is one kind."""

    TITLE: str
    MEASURED: tuple[str, ...]

    def vary(self, corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:
        """Return the corpus as this kind of variation changes it."""


def load_kind(wanted: str) -> tuple[KindModule, str | None]:
    """Return the module of the kind of variation that `NAME[:ARGUMENT]` names, and the argument."""
    module, argument = load_plugin(__name__, wanted)
    return cast(KindModule, module), argument


def import_kinds() -> dict[str, KindModule]:
    return {name: cast(KindModule, module) for name, module in import_plugins(__name__).items()}
