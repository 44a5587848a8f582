"""The protocol of embedders."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
Role = Literal["query", "passage"]


class Embedder(Protocol):
    """Embeds texts as unit vectors. A module in `models/embedders/` has `open(argument: str | None) -> Embedder`.

    An embedder that supports only some languages has their codes in the attribute `languages`: documents in other
    languages are found by their words alone.
    """

    name: str  # model and variant; vectors are cached under this name
    dimensions: int

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:
        """Return one unit vector per text, in order."""
