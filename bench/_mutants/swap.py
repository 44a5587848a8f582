"""A change made to functions that are loaded already: their code is exchanged, and nothing is imported again."""

from __future__ import annotations

import ast
import gc
from collections import Counter
from collections.abc import Iterator, Mapping
from inspect import CO_OPTIMIZED
from types import CodeType, FunctionType
from typing import NamedTuple


class Place(NamedTuple):
    """Where a function is written."""

    name: str
    line: int


def exchanged(path: str, old: ast.Module, new: ast.Module) -> dict[Place, CodeType] | None:
    """Return the code of each function of a file that a change touches; None where it touches more than functions.

    A constant of a module, a field of a class or a default value is set when the file is loaded: such a change needs
    a process that loads it. Both trees have the same line numbers.
    """
    before, after = (compile(tree, path, "exec", dont_inherit=True) for tree in (old, new))
    codes: dict[Place, CodeType] = {}
    pairs = list(_pairs(before, after))
    places = Counter(_place(one) for one, _ in pairs)
    for one, other in pairs:
        if one == other:
            continue
        if not one.co_flags & CO_OPTIMIZED:  # a module or the body of a class
            if _own(one) != _own(other):
                return None
            continue
        if places[_place(one)] > 1 or one.co_freevars != other.co_freevars:
            return None
        codes[_place(one)] = other
    return codes


def exchange(path: str, codes: Mapping[Place, CodeType]) -> None:
    """Give the functions of a file that are loaded their new code."""
    gc.unfreeze()  # tests may keep what is loaded out of the collector's sight, and so out of this list
    for function in gc.get_objects():
        # not isinstance, which asks each object for its class: proxies import what they stand for to answer
        if type(function) is FunctionType and function.__code__.co_filename == path:
            code = codes.get(_place(function.__code__))
            if code is not None:
                function.__code__ = code


def _place(code: CodeType) -> Place:
    return Place(code.co_qualname, code.co_firstlineno)


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _pairs(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield both codes, and those within them, as far as they are the same functions."""
    yield old, new
    inner = _inner(old), _inner(new)
    if [_place(code) for code in inner[0]] == [_place(code) for code in inner[1]]:
        for one, other in zip(*inner, strict=True):
            yield from _pairs(one, other)


def _own(code: CodeType) -> tuple[object, ...]:
    """Return what a block of code does by itself, without the functions in it but for their names."""
    constants = tuple(_place(one) if isinstance(one, CodeType) else (type(one).__name__, one) for one in code.co_consts)
    return code.co_code, constants, code.co_names
