"""Small changes to a source file, each of which some test should notice."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Edit = Callable[[], ast.AST | None]
"""Returns what stands in a node's place; None takes a statement away."""

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
_DELETED = (ast.AugAssign, ast.Continue, ast.Delete, ast.Raise)


@dataclass(frozen=True, order=True)
class Change:
    """One change: where, which of those possible there, and in words; `code` is the line as it stands."""

    file: str
    line: int
    number: int
    words: str
    code: str


def changes_of(file: str, source: str) -> list[Change]:
    """Return every change of a file, in reading order."""
    lines = source.splitlines()
    return sorted(
        Change(file, node.lineno, number, words, lines[node.lineno - 1].strip())
        for number, (node, words, _) in enumerate(_edits(ast.parse(source)))
    )


def changed(source: str, change: Change) -> str:
    """Return the source with one change made; comments are lost, which no test reads."""
    return ast.unparse(changed_tree(source, change))


def changed_tree(source: str, change: Change) -> ast.Module:
    """Return the source as a tree with one change made, in which every line has the number that it had."""
    tree = ast.parse(source)
    for number, (node, _, edit) in enumerate(_edits(tree)):
        if number == change.number:
            _Put(node, edit()).visit(tree)
            return ast.fix_missing_locations(tree)
    raise ValueError(f"{change.file}: no change of number {change.number}")


class _Put(ast.NodeTransformer):
    """Puts one node in another's place."""

    def __init__(self, old: ast.AST, new: ast.AST | None) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        if node is not self._old:
            return super().visit(node)  # type: ignore[no-any-return]
        return self._new or ast.copy_location(ast.Pass(), node)


# ---------------------------------------------------------------- what can be changed


def _edits(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str, Edit]]:
    for node in _seen(tree):
        if isinstance(node, ast.stmt):
            yield from _of_statement(node)
        elif isinstance(node, ast.expr):
            yield from _of_expression(node)


def _seen(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes below one that run: no annotations, decorators, protocols, docstrings, `__main__`, `strict`."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _silent(child):
                yield child
                yield from _seen(child)


def _silent(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    if isinstance(node, ast.If):
        return "__name__" in ast.unparse(node.test) or "TYPE_CHECKING" in ast.unparse(node.test)
    if isinstance(node, ast.keyword):
        return node.arg == "strict"  # of zip: it guards against our own mistakes and decides nothing
    # the text of an error may be worded in any way
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _of_statement(node: ast.stmt) -> Iterator[tuple[ast.stmt, str, Edit]]:
    # None in place of False or "" is as false: what calls it seldom tells them apart
    if isinstance(node, ast.Return) and node.value is not None and getattr(node.value, "value", True):
        yield node, "return None", lambda: ast.Return(ast.Constant(None))
    if isinstance(node, _DELETED) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield node, f"without `{ast.unparse(node).splitlines()[0][:60]}`", lambda: None


def _of_expression(node: ast.expr) -> Iterator[tuple[ast.expr, str, Edit]]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            yield _swapped(node, operator, lambda new, at=place: _compare(node, at, new))
    elif isinstance(node, ast.BoolOp):
        yield _swapped(node, node.op, lambda new: ast.BoolOp(new, node.values))
    elif isinstance(node, ast.BinOp) and type(node.op) in _SWAPS and not _joins_text(node):
        yield _swapped(node, node.op, lambda new: ast.BinOp(node.left, new, node.right))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, "without `not`", lambda: node.operand
    elif isinstance(node, ast.Constant):
        for value in _near(node.value):
            yield node, f"{node.value!r} → {value!r}", lambda new=value: ast.Constant(new)  # type: ignore[misc]
    elif isinstance(node, ast.Slice) and node.upper is not None and not isinstance(node.upper, ast.Constant):
        upper = node.upper
        one_more = ast.BinOp(upper, ast.Add(), ast.Constant(1))
        yield upper, f"[: {ast.unparse(upper)}] → [: {ast.unparse(one_more)}]", lambda: one_more


def _swapped(
    node: ast.expr, operator: ast.AST, put: Callable[..., ast.expr]
) -> tuple[ast.expr, str, Callable[[], ast.expr]]:
    other = _SWAPS[type(operator)]()
    words = f"{type(operator).__name__} → {type(other).__name__} in `{ast.unparse(node)[:60]}`"
    return node, words, lambda: put(other)


def _compare(node: ast.Compare, place: int, new: ast.cmpop) -> ast.Compare:
    return ast.Compare(node.left, [new if at == place else op for at, op in enumerate(node.ops)], node.comparators)


def _joins_text(node: ast.BinOp) -> bool:
    """Whether it is text that is added: every test of it would fail on the type, which proves nothing."""
    sides = (node.left, node.right)
    return any(
        isinstance(s, ast.JoinedStr) or (isinstance(s, ast.Constant) and isinstance(s.value, str)) for s in sides
    )


def _near(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1] if value < 4 else [value * 2, value - 1]
    return [value * 2, value / 2] if isinstance(value, float) and value else []
