"""A document as a tree of articles, sections, clauses, recitals and schedules."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from exhibit.evidence import Document, Span
from exhibit.law.language import FREE
from exhibit.law.structure.headings import BARE, COUNTED, Heading, find_headings, parse_roman
from exhibit.law.structure.lines import Outline, make_typed_outline

_NOWHERE = Span(0, 0)


@dataclass(frozen=True)
class Section:
    """A range of a document under a heading; the leaves of the tree cover the text without gaps or overlaps."""

    span: Span
    heading: str = ""
    kind: str = "section"  # document, recitals, definitions, article, part, section, clause, schedule, signature …
    level: int = 0
    children: "tuple[Section, ...]" = ()
    label: str = ""  # the label of its heading, `§ 12` or `Section 2.01`
    title: Span = _NOWHERE  # the span of the section's heading; the section's span may begin with headings above it

    def walk(self) -> "Iterator[Section]":
        yield self
        for child in self.children:
            yield from child.walk()


_MAX_LEVELS = 9  # levels: lists may be nested more deeply, headings are not
_LISTS = frozenset({"1.", "A.", "a.", "i.", "(a)", "(i)", "(1)", "(A)", "(I)", "I."})
"""Styles of lists, whose order of levels differs between documents."""
_CLOSED = frozenset({"title", "agreement", "signature"})  # parts that contain no numbered section
_UNIT = 4.9  # every unit of a law has a lower rank
_MAX_MISSING_NUMBERS = 3  # most numbers that may be missing from a count: text files lose some


def read_structure(document: Document, outline: Outline | None = None) -> Section:
    """Return the tree of sections; the root is the whole text, and the leaves cover it without gaps or overlaps."""
    root = Node(Heading("", "", "document", (), 0, "document"), 0, 0)
    stack = [root]
    learnt: dict[str, float] = {}
    outline = make_typed_outline(document) if outline is None else outline
    headings = find_headings(document, outline)
    for heading, ahead in zip_longest(headings, headings[1:]):
        if heading.rank == FREE:
            heading = replace(heading, rank=_learn_rank(stack, heading, learnt))
        node = place(stack, as_roman(stack, heading, ahead), counted=not outline.rules)
        if node is not None:
            stack[-1].children.append(node)
            stack.append(node)
    return to_section(root, 0, len(document.text), document.text)


def format_section_path(root: Section, span: Span, *, limit: int = 200) -> str:
    headings, section = [], root
    while section.children:
        child = _find_holder(section.children, span)
        if child is None:
            break
        if child.heading:
            headings.append(cut(child.heading, 60))
        section = child
    if len(" > ".join(headings)) > limit and len(headings) > 2:
        headings = [headings[0], "…", headings[-1]]
    return cut(" > ".join(headings), limit)


def cut(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters; a longer text is cut, at a word if possible, and ends with `…`."""
    if len(text) <= limit:
        return text
    whole = text[:limit]
    at = whole.rfind(" ", 0, limit)
    return whole[: at if at > limit // 2 else limit - 1].rstrip(" ,;:-–—>") + "…"


def _find_holder(children: Sequence[Section], span: Span) -> Section | None:
    middle = (span.start + max(span.end - 1, span.start)) // 2
    at = bisect_right(children, middle, key=lambda child: child.span.start) - 1
    if at < 0:
        return None
    child = children[at]
    overlap = min(span.end, child.span.end) - max(span.start, child.span.start)
    return child if 2 * overlap > span.end - span.start or span.start == span.end else None


@dataclass
class Node:
    heading: Heading
    rank: float
    level: int
    children: "list[Node]" = field(default_factory=list)


def place(stack: list[Node], heading: Heading, *, counted: bool) -> Node | None:
    """Return the node of a heading; None if its line is no heading.

    Without `counted`, a decimal number may be far from the number before it, as in a law with repealed rules.
    """
    recited = any(node.heading.kind == "recitals" for node in stack)
    if heading.kind == ("recitals" if recited else "agreement"):
        return None  # each WHEREAS after the first belongs to the same recitals
    if heading.style in _LISTS:
        return _place_in_list(stack, heading)
    if heading.style == "decimal" and counted and not _goes_on(stack, heading):
        return None
    return _place_by_rank(stack, heading)


def _place_in_list(stack: list[Node], heading: Heading) -> Node | None:
    for at in range(len(stack) - 1, 0, -1):
        node = stack[at]
        if node.heading.style == heading.style and 0 < heading.value[0] - node.heading.value[0] <= (
            1 if at < len(stack) - 1 and not heading.sure else _MAX_MISSING_NUMBERS
        ):
            del stack[at:]
            return Node(heading, node.rank, node.level)
    if heading.value[0] != 1:
        return _place_by_rank(stack, heading) if heading.sure else None
    while len(stack) > 1 and not _may_hold(stack[-1].heading, heading):
        stack.pop()
    if stack[-1].level >= _MAX_LEVELS:
        stack.pop()
    top = stack[-1]
    return Node(heading, max(heading.rank, top.rank + 0.1), top.level + 1)


def _learn_rank(stack: Sequence[Node], heading: Heading, ranks: dict[str, float]) -> float:
    """Return the rank of a heading whose level differs from law to law, such as the German `Abschnitt`."""
    if heading.style not in ranks:
        divisions = [node.rank for node in stack if node.heading.style != "unit" and node.rank < _UNIT]
        ranks[heading.style] = max(FREE, max(divisions) + 0.05)
    return ranks[heading.style]


def _place_by_rank(stack: list[Node], heading: Heading) -> Node:
    while len(stack) > 1 and (
        stack[-1].rank >= heading.rank or stack[-1].heading.kind in _CLOSED or stack[-1].level >= _MAX_LEVELS
    ):
        stack.pop()
    return Node(heading, heading.rank, stack[-1].level + 1)


def _may_hold(top: Heading, heading: Heading) -> bool:
    if top.kind in _CLOSED:
        return False
    if top.style in BARE and heading.style in COUNTED:
        return top.rank < heading.rank  # the title was directly above the number
    return not (top.kind == "recitals" and heading.style == "1.")


def _goes_on(stack: list[Node], heading: Heading) -> bool:
    last = next((node.heading.value for node in reversed(stack) if node.heading.style == "decimal"), None)
    if last is None:
        major = next(
            (node.heading.value for node in reversed(stack) if node.heading.style in {"1.", "article", "part"}), None
        )
        return heading.sure or major is None or major[0] == heading.value[0]
    if heading.value[0] == 1 and heading.value[1:2] <= (1,):
        return True
    return heading.value > last and heading.value[0] - last[0] <= (_MAX_MISSING_NUMBERS if heading.sure else 1)


def as_roman(stack: Sequence[Node], heading: Heading, ahead: Heading | None) -> Heading:
    style = {"(a)": "(i)", "a.": "i.", "(A)": "(I)", "A.": "I."}.get(heading.style)
    number = re.sub(r"[^a-z]", "", heading.label.lower())
    value = parse_roman(number)
    if style is None or not value:
        return heading
    counted = replace(heading, style=style, value=(value,))
    for node in reversed(stack):
        if node.heading.style == style and node.heading.value[0] + 1 == value:
            return counted
        if node.heading.style == heading.style and node.heading.value[0] + 1 == heading.value[0]:
            follows = ahead is not None and ahead.style == heading.style and re.sub(r"[^a-z]", "", ahead.label.lower())
            return counted if value == 1 and follows == "ii" else heading
    return counted if value == 1 or len(number) > 1 else heading


def to_section(node: Node, start: int, end: int, text: str) -> Section:
    """Return a node as the section from `start` to `end`; the text before its first child is a separate leaf."""
    starts = [child.heading.start for child in node.children]
    children: list[Section] = []
    if starts:
        if text[max(node.heading.end, start) : starts[0]].strip():
            children.append(Section(Span(start, starts[0]), "", "opening", node.level + 1))
        else:
            starts[0] = start  # a heading without text is not a leaf, but belongs to the section below it
        bounds = [*starts, end]
        children += [to_section(child, bounds[at], bounds[at + 1], text) for at, child in enumerate(node.children)]
    heading, span = node.heading, Span(start, end)
    title = Span(heading.start, heading.end)
    return Section(span, heading.text, heading.kind, node.level, tuple(children), heading.label, title)
