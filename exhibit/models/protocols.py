"""The protocols of the models of each kind."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Role = Literal["query", "passage"]


class Embedder(Protocol):
    """Embeds texts as unit vectors. A module in `models/embedders/` has `open(argument: str | None) -> Embedder`.

    An embedder that is fastest on many texts at once, as on a device, has the number in `many`. One that knows few
    languages has their codes in `languages`: documents in others are found by their words alone.
    """

    name: str
    """Model and variant: vectors are cached under this name, so it changes whenever a vector would."""
    dimensions: int

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        """Return one normalised row per text, in order."""
