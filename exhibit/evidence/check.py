"""Checks gold against the documents: every span must contain the words of its quote."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from exhibit.engine import add_limit_arguments, apply_limits, read_limits
from exhibit.evidence.document import Document, Span
from exhibit.evidence.fold import align, fold
from exhibit.evidence.locate import MIN_SIMILARITY
from exhibit.evidence.place import place_pieces
from exhibit.evidence.read import read_within
from exhibit.runtime.command import Parser, add_json, guarded
from exhibit.schemas.bundle import Question
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.layout import quote_parts
from exhibit.schemas.models import Gold
from exhibit.storage.bundle import CheckedBundle, check_each, mirror_bundle, open_bundle
from exhibit.storage.locations import Location, parse_location


def check_gold(root: Location) -> tuple[int, list[str]]:
    """Return the number of located gold passages, and a message for each fault in the gold."""
    bundle = open_bundle(mirror_bundle(root))
    questions = {question.id: question for question in bundle.questions}
    by_file: dict[str, list[Gold]] = defaultdict(list)
    for line in bundle.gold:
        if line.spans and line.filename is not None:
            by_file[line.filename].append(line)
    wrong = [f"gold.jsonl: row {line.id} is not in train.json" for line in bundle.gold if line.id not in questions]
    for name, lines in by_file.items():
        if name not in bundle.files:
            wrong.append(f"{name}: not in corpus/")
            continue
        try:
            document = read_within(bundle.files[name])
        except DocumentError as error:
            wrong.append(str(error))
            continue
        for line in (line for line in lines if line.id in questions):
            wrong += [f"{name}: row {line.id}: {fault}" for fault in faults_of(line, questions[line.id], document)]
    return sum(map(len, by_file.values())), wrong


def faults_of(line: Gold, question: Question, document: Document) -> Iterator[str]:
    if (line.context or 0) >= len(question.contexts):
        yield f"there is no context {line.context} in train.json"
        return
    quote = question.contexts[line.context or 0].text or ""
    least = 1.0 if line.how in {"exact", "folded"} else MIN_SIMILARITY
    heading = fold(str(line.labels.get("heading") or ""), loose=True)
    for place in [line.spans, *line.alternatives]:
        if place[-1][1] > len(document.text):
            yield f"span {place[-1]} is beyond the end of the text, which has {len(document.text)} characters"
            continue
        if line.how == "section" and not fold(document.text[slice(*place[0])], loose=True).startswith(heading):
            yield f"span {place[0]} does not begin with the heading {line.labels.get('heading')!r}"
        accepted = line.labels.get("accepted") or (line.how == "section" and not heading)
        if accepted and place is not line.spans:
            continue  # the source also accepts this provision, whose words differ from the quote
        likeness = _compare_quote(quote, place, document)
        if likeness < least:
            yield f"span {place} contains other words than the quote (similarity {likeness:.2f}, {line.how})"
    pages = document.pages_of(*line.spans)
    if pages != line.pages:
        yield f"gold is on pages {pages}, not {line.pages}"


def _compare_quote(quote: str, place: Sequence[tuple[int, int]], document: Document) -> float:
    """Return how similar a quote is to the words at a location; the quote may also contain the pages' running heads."""
    words = "".join(document.text[start:end] for start, end in place)
    likeness = compute_similarity([fold(piece, loose=True) for piece in quote_parts(quote)], fold(words, loose=True))
    if likeness >= MIN_SIMILARITY:
        return likeness
    pages = set(document.pages_of(Span(place[0][0], place[-1][1])))
    heads = [line for line in document.furniture if pages.issuperset(document.pages_of(line))]
    words = "".join(document.text[start:end] for start, end in sorted([*place, *heads]))
    return max(likeness, place_pieces(quote, replace(document, text=words, pages=())).share)


def compute_similarity(pieces: Sequence[str], words: str) -> float:
    """Return the similarity, 0 to 1, of a quote and a text; the quote's parts may occur in any order."""
    if "".join(pieces) == words:
        return 1.0
    total = max(len(words), sum(map(len, pieces)), 1)
    edits = 0
    for piece in sorted(pieces, key=len, reverse=True):
        part = align(piece, words, most=len(piece)) if piece else None
        edits += part.distance if part else len(piece)
        words = words[: part.start] + words[part.end :] if part else words
    return 1 - min(edits + len(words), total) / total


@guarded()
def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="exhibit validate --documents", description=__doc__)
    parser.add_argument("bundles", nargs="+", type=parse_location, metavar="DIR", help="a bundle's folder or URL")
    add_limit_arguments(parser)
    add_json(parser)
    options = parser.parse_args(argv)

    def check_bundle(root: Location) -> CheckedBundle:
        count, wrong = check_gold(root)
        outcome = f"{count} located passages, {len(wrong)} wrong locations"
        return CheckedBundle(wrong, outcome, {"located": count, "misplaced": wrong})

    with apply_limits(read_limits(options)):
        return check_each(options.bundles, check_bundle, as_json=options.json)
