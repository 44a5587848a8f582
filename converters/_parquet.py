"""Tables in Parquet: a few bytes of one may stand for a great many rows, so these are weighed before they are made."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.engine.limits import memory_left, reading
from exhibit.schemas.errors import DocumentError

_ROWS = 1024
"""Rows that are decoded at once: of contracts of 50 KB each, 50 MB."""
_LEAST_ROW, _LEAST_VALUE = 184, 8
"""Bytes of a row and of each value in it, at the least: a dictionary of up to five columns; a reference to None."""
_MOST_VALUE = 256
"""Bytes of a value at the most, text apart: a dictionary within a list; a decimal number among columns takes 150."""
_WIDEST = 4
"""Bytes of memory for a byte of text: one rare character makes all characters of its text as wide as itself."""
_STEP = 1 << 20
"""Bytes that Python takes from the system at a time: two of them stay free, and no part is made smaller than one."""


def read_parquet(path: Path) -> list[Any]:
    """Return the rows of a Parquet file. Called in a worker."""
    import pyarrow  # it takes a third of a second, and tables are seldom Parquet
    from pyarrow import parquet

    # what is freed is free for all; Arrow's own allocator keeps it, and takes 32 MiB at a time
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    rows: list[Any] = []
    try:
        with reading(str(path), path.stat().st_size), pyarrow.OSFile(str(path)) as file:
            room, taken = memory_left(), 0
            # no reading ahead, no threads: a reader waits for ever for one of them that finds no memory left for itself
            table = parquet.ParquetFile(file, pre_buffer=False)
            _refuse(_said(table.metadata), room)
            for batch in table.iter_batches(batch_size=_ROWS, use_threads=False):
                # by this count, too: what a worker has used before and freed is not taken from what is left
                taken += _weigh(batch).least(batch.num_rows)
                _refuse(taken, room)
                for part in _fitting(batch):
                    rows += part.to_pylist()
    except pyarrow.ArrowMemoryError as error:
        raise MemoryError(str(error)) from error
    except pyarrow.ArrowException as error:
        raise DocumentError(f"{path}: not a Parquet file, or damaged: {error}") from error
    return rows


def _refuse(taken: int, room: int | None) -> None:
    if room is not None and taken > room:
        raise MemoryError(f"rows that take {taken} bytes or more, with {room} left")


def _said(metadata: Any) -> int:
    """Return the bytes that a file's rows take at the least, as it says itself, which may be less than the truth."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    values = sum(group.column(number).num_values for group in groups for number in range(group.num_columns))
    size: int = sum(group.total_byte_size for group in groups)
    return max(_Weight(values, 0).least(metadata.num_rows), size)


def _fitting(batch: Any) -> Iterator[Any]:
    """Yield a batch in parts of which each, when it is taken, needs less memory than is left.

    Memory that ends while Arrow makes objects of a part ends the process, or damages it.
    """
    left, most = memory_left(), _weigh(batch).most
    if left is None or most + 2 * _STEP <= left:
        yield batch
    elif batch.num_rows == 1 or most <= _STEP:
        raise MemoryError(f"{left} bytes are left, and the next {batch.num_rows} rows may take {most}")
    else:
        half = batch.num_rows // 2
        yield from _fitting(batch.slice(0, half))
        yield from _fitting(batch.slice(half))


class _Weight(NamedTuple):
    """What is held by rows: how many values, one in another counted apart, and the bytes of what they say."""

    values: int
    size: int

    @property
    def most(self) -> int:
        return self.values * _MOST_VALUE + self.size * _WIDEST

    def least(self, rows: int) -> int:
        return rows * _LEAST_ROW + self.values * _LEAST_VALUE + self.size


def _weigh(batch: Any) -> _Weight:
    """Return what the rows of a batch hold."""
    columns = [_weigh_values(column) for column in batch.columns]
    return _Weight(batch.num_rows + sum(weight.values for weight in columns), sum(weight.size for weight in columns))


def _weigh_values(values: Any) -> _Weight:
    """Return what the values of a column hold, with all that is nested in them."""
    inner = [_weigh_values(held) for held in _within(values)]
    if not inner:
        return _Weight(len(values), values.nbytes)
    return _Weight(len(values) + sum(weight.values for weight in inner), sum(weight.size for weight in inner))


def _within(values: Any) -> list[Any]:
    """Return the values that are nested in those of a column: none in numbers and texts."""
    from pyarrow import ExtensionArray, types

    if isinstance(values, ExtensionArray):
        return [values.storage]
    if types.is_dictionary(values.type):
        return [values.dictionary_decode()]  # each row gets a copy of its own
    if types.is_map(values.type):  # a list of pairs
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        return [side.slice(first, last - first) for side in (values.keys, values.items)]
    if types.is_struct(values.type):
        return list(values.flatten())
    return [values.flatten()] if types.is_nested(values.type) else []
