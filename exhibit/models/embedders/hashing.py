"""An embedder without a model, the lexical baseline for trained embedders: it hashes words into a vector."""

import zlib
from collections.abc import Sequence

import numpy as np

from exhibit.law.language import list_word_runs
from exhibit.models.protocols import Role, Vectors
from exhibit.schemas.errors import ToolkitError

LOCAL = True


def open(argument: str | None) -> "Hashing":
    argument = argument or "256"
    # at least one dimension for words, and one for texts without words
    if not argument.isdecimal() or int(argument) < 2:
        raise ToolkitError(f"--embedder hashing:{argument}: the number of dimensions must be 2 or more, such as 256")
    return Hashing(int(argument))


class Hashing:
    """A hashing embedder: each word adds or subtracts 1 in the dimension that its checksum selects."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.name = f"hashing-{dimensions}"

    def embed(self, texts: Sequence[str], *, role: Role) -> Vectors:  # noqa: ARG002  (the same for both roles)
        """Return one unit vector per text; the last dimension is reserved for texts without words."""
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in list_word_runs(text.casefold()):
                code = zlib.crc32(word.encode("utf-8", "surrogatepass"))
                vectors[row, code % (self.dimensions - 1)] += 1 if code >> 31 else -1
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[lengths[:, 0] == 0, -1] = 1
        lengths[lengths == 0] = 1
        vectors /= lengths
        return vectors
