"""Reverses the words that permit, oblige or forbid, where a rule is certain that this reverses the answer.

`may` becomes `may not`, `shall maintain` becomes `shall not be required to maintain`, `shall not sell`
becomes `may sell`, and `exclusive` becomes `non-exclusive` where the question asks about it. The answer yes
becomes no, and no becomes yes.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from exhibit.converters.benchmark import Tally
from exhibit.evidence import Span
from exhibit.law.sentences import split_sentences
from exhibit.vary.corpus import Edit, TextCorpus, TextRow, apply_edits, leave_out_others, replace_answer
from exhibit.vary.kinds import VaryRequest
from exhibit.vary.values import spans_of

TITLE = "may becomes may not, shall becomes shall not, exclusive becomes non-exclusive, where a rule is sure"
MEASURED = ("read_value", "remembered")
NOT_POLAR = "its answer is no yes or no"
UNSURE = "no rule is sure that turning one word round turns the answer"
SHARED = "its gold shares a sentence with another question that is turned by another word"

_MODAL = re.compile(r"\b(may|shall|must|will|can|cannot|could|would|should|might)\b(\s+not\b)?", re.IGNORECASE)
_PRESENT = re.compile(r"\b(?:hereby\s+)?(grants|assigns|warrants|transfers|conveys|agrees|covenants|licenses)\b")
_NEGATIVE = re.compile(
    r"\b(?:no|nor|neither|never|nothing|none|not|except|unless|only|solely|however|notwithstanding|provided that|"
    r"other than|save)\b",
    re.IGNORECASE,
)
_BELOW = re.compile(
    r"\b(?:that|which|who|whom|whose|as)\b[^,;.]{0,60}$",
    re.IGNORECASE,
)
"""Matches the start of a subordinate clause, whose verb does not decide the answer."""
_OPEN = re.compile(
    r"\b(?:if|when|where|whenever|until|before|after|because|while|it|each)\b[^,;.]{0,80}$", re.IGNORECASE
)
"""Matches the start of a clause whose end no comma marks."""
_PARTY = re.compile(r"(?:^|[\s,(“\"])(?:[A-Z][\w&.’'-]*|party|parties)\s+$")
_EITHER = re.compile(r"\b(either|neither)\s+(party)\s+$", re.IGNORECASE)
_ONE_OF_TWO = re.compile(r"\b(?:either|neither|both)\b", re.IGNORECASE)
_EACH = re.compile(r"\b(each)\s+party\s+$", re.IGNORECASE)
_VERB = re.compile(r"\s+(?P<verb>[a-z]{2,})(?P<more>\s+[a-z]+)?")
_STATES = frozenset(
    "mean include consist commence continue expire begin remain survive become bind inure apply exceed constitute "
    "result run only also then thereafter at in to from upon not if when during on for".split()
)
"""Verbs that define or state facts, and words that are no verbs: their negation would be no clause of a contract."""
_ADJECTIVES = frozenset(
    "deemed governed construed effective binding unreasonably considered interpreted made valid an a the in of no any "
    "subject null void determined equal calculated based".split()
)
"""Words after `be` whose negation would be no clause of a contract."""
_REFERS_BACK = re.compile(
    r"\bso\s+(?:informed|notified|requested|required|elected|directed|agreed)\b|\bin\s+(?:which|such|that)\s+(?:event|case)\b"
    r"|\b(?:which|such)\s+consent\b|\bconsent,\s+which\b|\bit\s+being\b|\bwithout\s+prejudice\b|\bconsideration\b"
    r"|\bwho\s+(?:shall|may)\b|^(?:any|every|all|to|for\s+the\s+services|in\s+order\s+to)\b|^each\b(?!\s+party)"
    r"|\bwhich\s+shall\b|\beven\s+if\b|\bprovided\s+(?!by|to|in|under|for|with|from|at|on|herein|hereunder|pursuant)"
    r"|\bpersonal\s+and\b|^(?>(?:(?!\b(?:may|shall|must)\b)[^,])*?\bupon\s)[^,]*\bnotice,|\b(?:agree|agrees|agreed|understood)\s+that\b",
    re.IGNORECASE,
)
"""Matches words that presuppose the act or its price: a clause that denies the act would contradict them."""
_HARM = re.compile(
    r"\b(?:infring|harm|adverse|impair|disparag|violat|damag|breach|dilut|tarnish|jeopardi)\w*", re.IGNORECASE
)
"""Matches a wrong that no contract permits: `may harm` is not what a lawyer writes for `shall not harm`."""
_CONDITION = re.compile(r"\bsubject\s+to\b", re.IGNORECASE)
_EXCLUSIVE = re.compile(r"\b(?:(?:its|a|an|the)\s+)?(?:sole\s+and\s+)?(?<!non[- ])exclusive\b(?!ly)", re.IGNORECASE)
_FLIPPED = {"yes": "No", "no": "Yes"}


@dataclass(frozen=True)
class Reversal:
    """The edits that reverse the meaning of a question's gold, the gold's spans, and the words of the first edit."""

    edits: tuple[Edit, ...]
    spans: tuple[Span, ...]
    """The gold of the question."""
    old: str
    """The first reversed words, as they were."""


def vary(corpus: TextCorpus, request: VaryRequest, tally: Tally) -> TextCorpus:  # noqa: ARG001 - no chance is in it
    """Return the corpus with clauses of reversed meaning: `may sell` becomes `may not sell`.

    Only questions whose gold a rule can reverse with certainty are kept; the other questions are left out.
    """
    turns: dict[int, Reversal] = {}
    taken: dict[str, dict[int, Reversal]] = {}
    for row in corpus.rows:
        if row.is_impossible or len(row.files) > 1:
            continue
        turn = find_turn(row, corpus) if _find_polarity(row) else None
        if turn is None:
            tally.leave_out(UNSURE if _find_polarity(row) else NOT_POLAR, f"row {row.id}")
            continue
        own = taken.setdefault(next(iter(row.files)), {})
        if _shares_sentence(turn, own.values()):
            tally.leave_out(SHARED, f"row {row.id}")
            continue
        own[row.id] = turn
        turns[row.id] = turn
    leave_out_others(corpus, tally)
    edits = {name: sorted({edit for turn in own.values() for edit in turn.edits}) for name, own in taken.items()}
    changed = apply_edits(corpus, edits)
    rows = [_turn_row(row, turns[row.id]) for row in changed.rows if row.id in turns]
    return replace(changed, rows=tuple(rows))


def _shares_sentence(turn: Reversal, others: Iterable[Reversal]) -> bool:
    """Return whether `turn` and one of `others` would change the same gold by different edits.

    A reversal is the edits that reverse the meaning of one question's gold. Gold that is reversed twice could
    have its original meaning again.
    """
    return any(
        edit not in one.edits and any(span.start <= edit.start and edit.end <= span.end for span in one.spans)
        for other in others
        for one, two in ((turn, other), (other, turn))
        for edit in two.edits
    )


def _find_polarity(row: TextRow) -> str:
    """Return the opposite of a question's answer: `No` for yes, and `Yes` for no.

    Return an empty string for any other answer.
    """
    return _FLIPPED.get(row.answer.strip().rstrip(".").lower(), "")


def _strip_question(row: TextRow) -> str:
    """Return the question in lower case, without the document's name that may precede it."""
    return row.question.rpartition("; ")[2].lower()


def _turn_row(row: TextRow, turn: Reversal) -> TextRow:
    words = " ".join(turn.edits[0].new.split())
    answer = _find_polarity(row)
    return replace_answer(
        row, answer, old=row.answer, new=answer, value="polarity", old_words=turn.old, new_words=words
    )


def find_turn(row: TextRow, corpus: TextCorpus) -> Reversal | None:
    """Return the edits that reverse the gold of a yes-or-no question; None if no rule is certain."""
    edits: list[Edit] = []
    text = corpus.documents[next(iter(row.files))].text
    for passage in row.passages:
        if len(passage.spans) != 1 or passage.alternatives:
            return None
        start, end = passage.spans[0]
        words = text[start:end]
        if words.isupper() or ";" in words[:-1] or not words.rstrip().endswith((".", ";")) or not words[:1].isupper():
            return None
        if len(split_sentences(words)) != 1:
            return None
        found = _negate_exclusive(words, row)
        if not found and not _REFERS_BACK.search(words):
            found = _reverse_modals(words) or _negate_present(words, row)
        if not found:
            return None
        edits += [Edit(start + at, start + to, new) for at, to, new in found]
    first = edits[0]
    return Reversal(tuple(edits), tuple(spans_of(row)), " ".join(text[first.start : first.end].split()))


def _negate_exclusive(words: str, row: TextRow) -> list[Edit]:
    """Return the edit from `exclusive` to `non-exclusive`, if the question asks whether something is exclusive."""
    found = list(_EXCLUSIVE.finditer(words))
    if (
        not re.search(r"\bexclusive(?:ly)?\b", _strip_question(row))
        or len(found) != 1
        or not row.answer.lower().startswith("yes")
    ):
        return []
    match = found[0]
    after = words[match.end() : match.end() + 25]
    if "Exclusive" in match[0] or re.search(r"jurisdiction|remed|property|^\s*\(", after):
        return []
    article = re.match(r"(its|a|an|the)\s", match[0], re.IGNORECASE)
    new = "non-exclusive"
    if article and not re.match(r"\s+(?:rights|licen[sc]es|distributors|agents)\b", after):
        new = f"{_match_case(article[1], 'a')} {new}"
    return [Edit(*match.span(), new)]


def _reverse_modals(words: str) -> list[Edit]:
    """Return the edits that reverse the modal verbs of the main clauses, such as `may sell` to `may not sell`.

    Return an empty list if a modal cannot be reversed, or if the result might not mean the opposite.
    """
    edits: list[Edit] = []
    rest = words
    for modal in _MODAL.finditer(words):
        before = words[: modal.start()]
        either = _EITHER.search(before)
        if _BELOW.search(before) and not either:
            continue
        if (_OPEN.search(before) or _ONE_OF_TWO.search(before)) and not either:
            return []
        following = _VERB.match(words, modal.end())
        # "shall keep and shall show": both verbs have one subject
        again = bool(edits) and "required to" in edits[0].new and bool(re.search(r"\b(?:and|or)\s+$", before))
        new = _reverse_modal(modal, following, before, acts=again or bool(_PARTY.search(before))) if following else None
        if following is None or new is None:
            return []
        start, end = modal.start(), following.end("verb")
        if either:
            changed = _of_either(either, modal, following["verb"])
            if changed is None:
                return []
            start, new = either.start(), changed
        edits.append(Edit(start, end, new))
        rest = rest.replace(words[start:end], " ", 1)
    if edits and _CONDITION.search(words, edits[0].end):
        return []  # "may terminate, subject to payment of a fee"
    forbids = {bool(re.search(r"\bnot\b|\bneither\b", words[e.start : e.end], re.I)) for e in edits}
    if len(forbids) > 1 or (True in forbids and _HARM.search(words)):
        return []
    return [] if _NEGATIVE.search(rest) or _PRESENT.search(rest) else edits


def _of_either(either: re.Match[str], modal: re.Match[str], verb: str) -> str | None:
    """Return `neither party may` for `either party may`, and the reverse; None if no rule is certain."""
    word, party = either[1], either[2]
    if modal[2] or modal[1].lower() not in ("may", "shall"):
        return None
    if word.lower() == "neither":
        return (
            f"{_match_case(word, 'each')} {party} shall be"
            if verb == "be"
            else f"{_match_case(word, 'either')} {party} may {verb}"
        )
    return f"{_match_case(word, 'neither')} {party} may {verb}" if modal[1].lower() == "may" else None


def _reverse_modal(modal: re.Match[str], following: re.Match[str], before: str, *, acts: bool) -> str | None:
    """Return the reversed modal with its verb: `may not sell` for `may sell`; None if no rule is certain.

    `acts` states that the subject of the verb is a party to the contract.
    """
    word, verb, more = modal[1].lower(), following["verb"], (following["more"] or "").strip()
    if (
        verb.endswith("ly")
        or verb in _STATES
        or re.search(r"\bwithout\b", before, re.IGNORECASE)
        or (verb == "be" and more in _ADJECTIVES)
        or (verb == "have" and more not in ("the", "a", "an", "any", "access"))
    ):
        return None
    if modal[2]:
        is_state = verb == "be" and not more.endswith(
            ("ed", "sold", "made", "given")
        )  # "shall be liable", "may be sold"
        return {"may": f"may {verb}", "shall": f"shall {verb}" if is_state else f"may {verb}"}.get(word)
    if word == "may":
        return f"may not {verb}" if more != "one" else None  # "may not keep one copy" would be "any copy"
    if word not in ("shall", "must"):
        return None
    if verb in ("be", "have"):
        return f"shall not {verb}" if word == "shall" else None
    if not acts:
        return None  # "the Tenant and its agents shall use" and "the rent shall rise" need different words
    return f"shall not be required to {verb}"


def _negate_present(words: str, row: TextRow) -> list[Edit]:
    """Return the edit that negates what the contract itself does: `hereby grants` becomes `does not grant`."""
    found = list(_PRESENT.finditer(words))
    if len(found) != 1 or _NEGATIVE.search(words) or _MODAL.search(words):
        return []
    match = found[0]
    if (
        re.search(r"\band\s+$", words[: match.start()])
        or _BELOW.search(words[: match.start()])
        or match[1][:5] not in _strip_question(row)
        or _EXCLUSIVE.search(words)
    ):
        return []  # the denial answers only a question about that act, and "no exclusive licence" may be a plain one
    each = _EACH.search(words[: match.start()])
    if each:
        return [Edit(*each.span(1), _match_case(each[1], "neither"))] if match[0] == match[1] else []
    return [Edit(*match.span(), f"does not {match[1].removesuffix('s')}")]


def _match_case(old: str, new: str) -> str:
    return new.upper() if old.isupper() else new.capitalize() if old[0].isupper() else new
