"""What the models of each kind promise."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Role = Literal["query", "passage"]


class Embedder(Protocol):
    """Texts to unit vectors. A module in `models/embedders/` has `open(argument: str | None) -> Embedder`.

    One that runs best on many texts at once, as on a device, says how many in `many`.
    """

    name: str
    """Model and variant: vectors are cached under it, so it changes whenever a vector would."""
    dimensions: int

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        """Return one normalised row per text, in order."""
