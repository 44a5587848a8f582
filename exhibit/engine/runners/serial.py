"""Runs one item after another in this process: for debugging, and for work that is too small for several processes."""

from collections.abc import Callable, Iterable, Iterator

from exhibit.engine.limits import UNLIMITED, Limits, limit_time
from exhibit.engine.outcome import In, Out, Outcome, attempt_within, name_item
from exhibit.schemas.errors import LimitError


class Runner:
    """An engine's runner without worker processes: it handles one item after another in this process."""

    takes_address = False

    def __init__(self, *, jobs: int | None = None, address: str = "", limits: Limits | None = None) -> None:  # noqa: ARG002 - as all runners
        # memory is not limited here: a failed allocation in a library would end the whole run, not only one worker
        self._limits = Limits(limits.seconds, None) if limits else UNLIMITED

    def map(self, function: Callable[[In], Out], items: Iterable[In]) -> Iterator[Outcome[Out]]:
        """Yield one outcome per item, in order."""
        for item in items:
            try:
                with limit_time(self._limits, name_item(item)):
                    outcome = attempt_within(self._limits, function, item)
            # the limit was reached between two attempts, where no other code catches the error
            except LimitError as error:
                outcome = Outcome(None, error)
            yield outcome
