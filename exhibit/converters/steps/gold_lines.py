"""Makes the lines of gold.jsonl, and notes gold that is absent, ambiguous or invisible on the page."""

from collections.abc import Iterator, Sequence

from exhibit.converters.benchmark import Label, RawRow, Tally
from exhibit.converters.steps.families import FAMILY
from exhibit.converters.steps.materialise import NOWHERE, Done, QuotePlace
from exhibit.evidence.place import is_ambiguous
from exhibit.schemas import Gold, Row
from exhibit.schemas.errors import SourceError


def make_gold(rows: Sequence[RawRow], done: dict[str, Done]) -> Iterator[Gold]:
    """Yield the lines of gold.jsonl: one per gold passage of each row.

    A row without gold passages has one line, which holds its labels.
    """
    for row in rows:
        if not row.quotes:
            yield gold_of(row.id, None, row.filename, NOWHERE, {**row.labels, **_label_family(row.filename, done)})
        for index, quote in enumerate(row.quotes):
            place = done[quote.filename].places[quote]
            family = _label_family(quote.filename, done)
            labels = {**row.labels, **family, **_label_near_misses(row, done), **dict(quote.labels)}
            yield gold_of(row.id, index, quote.filename, place, labels)


def _label_family(filename: str | None, done: dict[str, Done]) -> dict[str, Label]:
    own = done[filename].entry.labels if filename in done else {}
    return {FAMILY: own[FAMILY]} if FAMILY in own else {}


def _label_near_misses(row: RawRow, done: dict[str, Done]) -> dict[str, Label]:
    """Return the label `other_versions`: where the same clause is in versions of the document from other days.

    A location has the form `file#start-end`. The result is an empty dictionary if there are no locations.
    """
    places = [
        f"{quote.filename}#{start}-{end}"
        for quote in row.near_misses
        if quote.filename in done
        for start, end in done[quote.filename].places[quote].spans
    ]
    return {"other_versions": " ".join(places)} if places else {}


def gold_of(id: int, context: int | None, filename: str | None, place: QuotePlace, labels: dict[str, Label]) -> Gold:
    """Return a line of gold.jsonl: the gold of question `id`, located at `place` in the file `filename`.

    If words of the gold are invisible on the page, the label `hidden` states the reason.
    """
    fields = {"id": id, "context": context, "filename": filename, **vars(place)}
    hidden = fields.pop("hidden")
    del fields["text"], fields["remark"], fields["not_accepted"]
    return Gold.model_validate({**fields, "labels": {**labels, "hidden": hidden} if hidden else labels})


def note_hidden(gold: Sequence[Gold], tally: Tally) -> None:
    """Record a note for each line of gold.jsonl whose gold has words that are invisible on the page."""
    for line in gold:
        if "hidden" in line.labels:
            name = f"{line.filename}: row {line.id}: {line.labels['hidden']}"
            tally.note("gold with words that nobody sees on the page", name)


def note_absent(gold: Sequence[Gold], rows: Sequence[Row], tally: Tally) -> None:
    """Record a note for each quote that was not found in its document, and for one of few words and many locations.

    With `--strict`, raise SourceError for a quote that was not found.
    """
    words = {row.id: row.contexts for row in rows}
    for line in gold:
        if line.context is not None and line.how == "absent":
            quote = words[line.id][line.context].text
            if not quote:
                continue  # a file without a quote: nothing to locate
            name = f"{line.filename}: row {line.id}: {quote[:80]!r}"
            if tally.strict:
                raise SourceError(f"{name}: quote not found in the document; fix the source, or remove --strict")
            tally.note("quote not found in the document (kept in train.json, marked absent in gold.jsonl)", name)
        elif line.context is not None and is_ambiguous(
            quote := words[line.id][line.context].text or "", 1 + len(line.alternatives)
        ):
            name = f"{line.filename}: row {line.id}: {quote!r} on {1 + len(line.alternatives)} places"
            tally.note("ambiguous gold: few words on many places", name)
