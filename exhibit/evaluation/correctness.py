"""Decide by rules whether a reply says what the expected answer says.

Polarity, who acts, figures with their units and bounds, dates, permissions and duties, exceptions, and lists are
compared (`law.meaning`). A reply that differs in one of them is wrong. A reply that agrees in all of them and has the
words of the expected answer, or words of the same meaning, is right. Any other reply is not judged.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from exhibit.evaluation.answer_words import without_citations, without_named
from exhibit.evaluation.cases import Case, without_choices
from exhibit.evaluation.comparison import ALIGNED, WORDS, AnswerComparison
from exhibit.evaluation.metrics import list_gold_texts
from exhibit.evaluation.word_comparison import format_quantity, is_among, join_first_words, say_the_same
from exhibit.law.citations import claims_of
from exhibit.law.figures import Figures, find_figures, has_missing_figures
from exhibit.law.language import is_content, language_of
from exhibit.law.meaning import read_meaning
from exhibit.law.meaning_words import carries_meaning, is_party, read_contrasts, read_soft_words
from exhibit.law.plain_reply import strip_reply
from exhibit.law.quantities import Quantity, find_quantities
from exhibit.law.refusals import is_refusal
from exhibit.law.sentences import split_sentences

_READ = 20_000
"""At most this many characters of a reply are read: ten pages, more than any answer has."""
_DOCUMENT = 6000
"""A reply of this many characters, if also `_TIMES` as long as the expected answer, is a document and no answer."""
_TIMES = 12  # a detailed answer has up to ten times the words of a short expected one
_LISTED = 12
"""Numbers up to a dozen may count list items; sums and periods are rarely so small and missing from all passages."""
_LEFT_OUT = 0.34
"""A right reply may lack this share of the expected words, if other words may express them."""
_PLACE = re.compile(
    r"\(?\b(?:(?:see|in|under|per|according to|pursuant to|cf\.?)\s+)?"
    r"(?:sections?|clauses?|articles?|pages?|paragraphs?|§+|footnotes?|pp?\.)"
    r"\s*\d[\w.]*(?:\([\w]{1,4}\))*(?:\s?(?:,|and|;)\s?(?:sections?|clauses?|pages?|paragraphs?|footnotes?|pp?\.)\s*\d[\w.]*)*\)?[,:]?",
    re.IGNORECASE,
)
_RELATED = 0.3
"""Share of a sentence's words that the question, the expected answer or the gold has; clauses on other matters share
the parties' names and a word or two, 0.1 to 0.2 of theirs."""
_HEAP = 4  # words: fewer are a name or a figure in one of its usual orders
_SEVERAL = 3  # sentences: an answer with one sentence of explanation is an answer
_FOREIGN = 3  # words: a shorter text is a name, whose language cannot be known
_ARTICLES = frozenset({"the", "a", "an", "each", "any", "every", "all"})
_SCALE = re.compile(
    r"\bin (?:\w+ )?(thousand|million|billion)s?\b|\((?:\w+ )?(?:in )?(?:\w+ )?(thousand|million|billion)s?\)",
    re.IGNORECASE,
)
_SCALES = {"thousand": Decimal(10**3), "million": Decimal(10**6), "billion": Decimal(10**9)}


class Decision(NamedTuple):
    """Whether a reply is right (None where the rules cannot decide), and why."""

    right: bool | None
    reason: str


def decide(question: str, expected: str, reply: str, gold: Sequence[str] = ()) -> Decision:
    """Decide whether a reply states the expected answer, and give the reason.

    `gold` has the passages that support the expected answer.
    """
    longest = max([len(expected), *map(len, gold)])
    if len(reply) > max(_DOCUMENT, _TIMES * longest):
        return Decision(False, "The reply is as long as a document, and many times as long as the expected answer.")
    wanted_text = without_named(without_citations(expected))
    reply = _without_question(strip_reply(reply[:_READ]), question)
    given_text = without_citations(reply)
    if is_refusal(reply):
        if is_refusal(expected):
            return Decision(True, "The documents do not say it, and the reply says so.")
        return Decision(False, "The reply refuses.")
    if not _PLACE.search(wanted_text):
        given_text = _PLACE.sub(" ", given_text)
    wanted, given = read_meaning(wanted_text), read_meaning(given_text)
    if not (wanted.tokens or wanted.dates or wanted.lead):
        return Decision(None, "The expected answer has no words.")
    if not (given.tokens or given.dates or given.lead):
        return Decision(False, "The reply has no words.")
    told = read_meaning("\n".join(gold)[:_READ])
    found = AnswerComparison(question, wanted, given, gold=told, scale=_find_scale(question))
    if _is_in_another_language(expected, given_text) and not (given.lead or given.quantities or given.dates):
        return Decision(None, "The reply is in another language than the expected answer.")
    fault = next(found.faults(given_text), None)
    if fault is not None:
        return Decision(False, fault)
    if _is_among_others(found, given_text):
        return Decision(None, "Most of the reply is about other matters than the question.")
    return _accept(found)


def decide_case(case: Case) -> Decision:
    """Decide whether a case's reply is right, and give the reason.

    `right` is None (not judged) if the documents do not answer the question, if the reply or the expected
    answer is missing, or if the reply is right but adds a figure that no passage has.
    """
    answer = case.reply.answer
    if case.reply.error or answer is None or case.is_impossible or not case.truth.strip():
        return Decision(None, "There is no answer to compare, or none to compare it with.")
    decision = _decide_cached(without_choices(case), case.truth, answer, tuple(list_gold_texts(case)))
    if decision.right and (invented := find_invented_figures(case)):
        return Decision(None, f"The reply says what is expected, and {invented[0]}, which no passage has.")
    return decision


@lru_cache(maxsize=512)  # the metric, the verdict and the row each ask for the same case
def _decide_cached(question: str, expected: str, answer: str, gold: tuple[str, ...]) -> Decision:
    return decide(question, expected, answer, gold)


def _without_question(reply: str, question: str) -> str:
    """Return a reply without the question, if the reply begins by repeating it.

    If nothing follows the repeated question, the reply is returned unchanged.
    """
    said, asked = reply.lstrip('"“ '), question.strip()
    rest = said[len(asked) :].lstrip('"”: ')
    return rest if asked and said[: len(asked)].lower() == asked.lower() and rest.strip() else reply


def _is_in_another_language(expected: str, reply: str) -> bool:
    """Return whether the expected answer is in English and the reply is in another language.

    A reply of fewer than three words, or with an English stop word such as `the`, is not called foreign.
    """
    reply = unicodedata.normalize("NFKC", reply)
    words = re.findall(r"[^\W\d_]{2,}", reply.lower())
    if len(words) < _FOREIGN or not all(map(is_content, words)):
        return False
    return language_of(expected) == "en" != language_of(reply)


def _is_among_others(found: AnswerComparison, text: str) -> bool:
    """Return whether a reply of three or more sentences is mostly about other matters.

    A sentence is about other matters if few of its words are in the question, the expected answer or the gold.
    """
    spans = split_sentences(text)
    if len(spans) < _SEVERAL:
        return False
    known = found.asked.terms | found.wanted.terms | found.gold.terms
    related = unrelated = 0
    for span in spans:
        terms = read_meaning(text[span.start : span.end]).terms
        if len(terms & known) < _RELATED * len(terms):
            unrelated += len(terms)
        else:
            related += len(terms)
    return unrelated > related


def _find_scale(question: str) -> Decimal:
    match = _SCALE.search(question)
    return _SCALES[(match[1] or match[2]).lower()] if match else Decimal(1)


def _accept(found: AnswerComparison) -> Decision:
    """Return the decision for a reply in which no contradiction was found: right, wrong or not decidable."""
    if found.compare_signs(found.given)[1]:
        return Decision(None, "The reply denies some of the words of the expected answer, or the other way round.")
    if both := found.find_said_both_ways():
        return Decision(None, f"The reply says “{both[0]}” and denies it.")
    unsaid = _find_unsaid(found)
    if unsaid:
        return Decision(None, unsaid)
    if not found.wanted.terms and not found.wanted.quantities and not found.wanted.dates:
        if found.find_stance(found.given) == found.wanted.lead:
            return Decision(True, f"The reply says {found.wanted.lead}.")
        return Decision(None, "The reply says neither yes nor no.")
    if _is_reordered(found):
        return Decision(None, "The reply has the same words in another order.")
    if _have_other_subjects(found):
        return Decision(None, "Another word of the expected answer is the subject of the reply.")
    if (
        any(len(new) <= WORDS and say_the_same(lost, new) is not True for lost, new in found.changes)
        and found.extra
        and found.missing
    ):
        return Decision(None, "The reply is the expected answer but for some words, which may say the same or not.")
    if found.given.lead and not found.given.terms:
        told = found.find_stance(found.wanted)
        return Decision(told == found.given.lead if told else None, f"The reply says {found.given.lead} alone.")
    needed = found.wanted.terms - found.asked.terms
    lost = (found.missing & needed) - read_soft_words()
    return _decide_by_words(found, needed, lost)


def _decide_by_words(found: AnswerComparison, needed: frozenset[str], lost: frozenset[str]) -> Decision:
    """Return the decision on a reply, right or undecided, from the expected words that the reply lacks.

    `needed` are the words of the expected answer that are not in the question. `lost` are the words in `needed`
    that the reply lacks, except for words that any reply may omit.
    """
    if not lost:
        if found.missing and (_is_silent(found) or (not needed and found.extra)):
            return Decision(None, "The reply may say it in other words.")
        return Decision(True, "The reply says what is expected.")
    known = bool(found.find_items_left_out()) or any(
        term in read_contrasts() or is_party(term) or term in found.wanted.names for term in lost
    )
    if not known and len(lost) <= _LEFT_OUT * len(needed) and len(found.extra) <= len(lost):
        return Decision(True, "The reply says what is expected, some of it in other words.")
    return Decision(None, f"The reply lacks {join_first_words(sorted(lost))}, or says it in other words.")


def _is_reordered(found: AnswerComparison) -> bool:
    """Return whether the reply has the content words of the expected answer in a clearly different order.

    Always return False if the expected answer is a list, because the items of a list may be in any order.
    """
    mine, other = (
        [token for token in one.tokens if carries_meaning(token) or token[0].isdigit()]
        for one in (found.wanted, found.given)
    )
    if _is_heap(found):
        return True
    if mine == other or len(mine) > ALIGNED or Counter(mine) != Counter(other):
        return False
    steps = SequenceMatcher(None, mine, other, autojunk=False).get_opcodes()
    kept = sum(end - start for tag, start, end, _, _ in steps if tag == "equal")
    listed = len({word.segment for word in found.wanted.words}) > 1
    return (len([step for step in steps if step[0] != "equal"]) > 2 or 2 * kept < len(mine)) and not listed


def _is_heap(found: AnswerComparison) -> bool:
    """Return whether a reply has only words of the expected answer, in a mostly unrelated order.

    That is: most pairs of neighbouring words in the reply are not neighbours in the expected answer.
    """
    mine, other = found.wanted.tokens, found.given.tokens
    if len(other) < _HEAP or Counter(other) - Counter(mine) or len({word.segment for word in found.wanted.words}) > 1:
        return False
    pairs = set(pairwise(mine))
    return 2 * sum(pair in pairs for pair in pairwise(other)) < len(other) - 1


def _have_other_subjects(found: AnswerComparison) -> bool:
    """Return whether the subject of the expected answer and the subject of the reply are swapped.

    Example: "The buyer pays the seller" and "The seller pays the buyer". False if one of the texts does not
    begin with a word such as `the` or `each`, or if the reply contains `by`, which may be a passive.
    """
    texts = found.wanted, found.given
    if "by" in found.given.tokens or any(not one.words or one.tokens[0] not in _ARTICLES for one in texts):
        return False
    mine, other = (one.words[0].term for one in texts)
    return mine != other and mine in found.given.terms and other in found.wanted.terms


def _is_silent(found: AnswerComparison) -> bool:
    """Return whether nothing shows that the reply means the same as the expected answer.

    That is: no word has the same polarity in both texts, the expected answer has no figure or date, and the
    reply has no yes or no that agrees with it.
    """
    agree, _ = found.compare_signs(found.given)
    told = (
        found.wanted.quantities
        or found.wanted.dates
        or (found.given.lead and found.find_stance(found.wanted) == found.given.lead)
    )
    return not agree and not told


def _find_unsaid(found: AnswerComparison) -> str:
    """Return a message about a figure, date or condition that the reply omits or changes; else an empty text."""
    for one in found.wanted.quantities:
        if one.is_place and len(found.wanted.terms) > WORDS:
            continue
        same = [other for other in found.given.quantities if one.equals(other, found.scale)]
        if not same and not is_among(one, found.asked.quantities):
            return f"The reply does not give {format_quantity(one)}."
        if same and all(other.bound != one.bound for other in same) and not _may_differ_in_bound(found, one, same):
            return f"The reply does not say whether {format_quantity(one)} is {one.bound or same[0].bound}."
    days = [day for readings in found.given.dates for day in readings]
    if any(not any(day.is_within(other) for day in readings for other in days) for readings in found.wanted.dates):
        return "The reply does not give the date."
    return _find_unlike_limits(found)


def _find_unlike_limits(found: AnswerComparison) -> str:
    """Return a message if an exception, a figure or a condition of the reply differs from the expected answer.

    Return an empty string otherwise. A figure of the reply is no difference if the question or the gold has it.
    """
    if "except" in found.wanted.marks - found.given.marks and found.missing:
        return "The reply leaves out the exception, or words it otherwise."
    known = (*found.wanted.quantities, *found.asked.quantities, *found.gold.quantities)
    more = [one for one in found.given.quantities if not is_among(one, known) and not one.is_place]
    if (
        more
        and found.missing
        and not any(one.equals(other, found.scale) for one in more for other in found.wanted.quantities)
    ):
        return f"The reply gives {format_quantity(more[0])}, which neither the expected answer nor the gold has."
    rivals = [one for one in more if any(one.dimension == other.dimension for other in found.wanted.quantities)]
    if any(not any(one.equals(other, found.scale) for other in found.wanted.quantities) for one in rivals):
        return "The reply gives a further figure of the kind that is expected, which the gold does not have."
    if found.extra & {"before", "prior"} and any(one.kind == "time" for one in found.wanted.quantities):
        return "The reply may count the time to an event, the expected answer from it."
    return _find_unlike_conditions(found)


def _find_unlike_conditions(found: AnswerComparison) -> str:
    """Return a message about a limit, an exception or a condition that only the reply has; empty if there is none."""
    if (
        "only" in found.given.marks - found.wanted.marks - found.asked.marks - found.gold.marks
        and not found.wanted.marks
    ):
        return "The reply has a limit that the expected answer does not have."
    if (
        found.given.marks & {"except", "notonly"} - found.wanted.marks - found.gold.marks
        and "only" not in found.wanted.marks
    ):
        return "The reply has an exception that the expected answer does not have."
    if "except" in found.given.marks - found.wanted.marks and found.extra:
        return "The reply has an exception in words that the gold does not have."
    own = found.given.marks - found.wanted.marks - found.gold.marks - found.asked.marks
    if "noteven" in own:
        return "The reply denies an exception, which the expected answer does not mention."
    if "if" in own and found.extra:
        return "The reply has a condition that the expected answer does not have."
    return ""


def _may_differ_in_bound(found: AnswerComparison, one: Quantity, same: Sequence[Quantity]) -> bool:
    """Return whether a reply may give an expected figure with a different bound, such as "at most".

    Different bounds are accepted if the question asks for a maximum or minimum, or if the gold passage has the
    reply's bound. They are also accepted for a period that has no bound in one text, and "at most" or "more
    than" in the other.
    """
    bounds = {one.bound, *(other.bound for other in same)}
    asked = bool(found.asked.terms & {"minimum", "maximum", "cap", "highest", "lowest", "limit", "most", "least"})
    period = one.kind == "time" and "" in bounds and bounds <= {"", "at most", "more than"}
    return asked or period or found.has_gold_bound(one, same)


# ---------------------------------------------------------------- figures that nothing bears out


def find_invented_figures(case: Case) -> list[str]:
    """Return the numbers of an answer that no source supports, and `a date` if it has an unsupported date.

    A number is supported if it occurs in a passage, a file name, the question or the expected answer, also in
    another unit. Section and page numbers need no support.
    """
    said = "\n".join(claim.text for claim in claims_of(strip_reply((case.reply.answer or "")[:_READ])))
    stated, units = find_figures(said), find_quantities(said).quantities
    with_units = {one.written for one in units if one.kind not in ("count", "label")}
    numbers = {number for number in stated.loose if number in with_units or not _may_count(number)}
    dates = tuple(dict.fromkeys(stated.dates))
    numbers -= {one.written for one in units if one.is_place}
    if not any(passage.text.strip() for passage in case.reply.passages):
        return []
    read = (f"{passage.text}\n\n{passage.filename or ''}" for passage in case.reply.passages)
    for part in (case.question, case.truth, *read):
        if not numbers and not dates:  # most numbers occur in the first passage; then the others need not be read
            break
        given = find_figures(part)
        numbers -= given.numbers
        if numbers:
            read_units = find_quantities(part).quantities
            numbers -= {one.written for one in units if any(one.equals(other) for other in read_units)}
        dates = tuple(one for one in dates if has_missing_figures(Figures(frozenset(), frozenset(), (one,)), given))
    return [*sorted(numbers), *(["a date"] if dates else [])]


def _may_count(number: str) -> bool:
    """Return whether a number is small enough to be a count of list items in the answer: "the following three"."""
    return number.isdecimal() and int(number) <= _LISTED
