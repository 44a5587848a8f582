"""Answers: whether they are right, have the expected words and refuse correctly, a judge's marks, and the cost."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from exhibit.evaluation import metrics
from exhibit.evaluation.metrics import Case, Function, Need, Options, Values, cache_by_case
from exhibit.evaluation.metrics.retrieval import split_words
from exhibit.evaluation.outcomes import find_chosen_label, find_outcome, score_outcome
from exhibit.law.citations import BRACKETED, rewrite_citations, without_places
from exhibit.law.refusals import is_refusal
from exhibit.law.values import states_answer
from exhibit.models.llms import Completion, Prompt
from exhibit.schemas.layout import MUST_CONTAIN, MUST_NOT_CONTAIN
from exhibit.schemas.parsing import read_beside
from exhibit.schemas.run import ANSWERED_RIGHTLY, AT_MOST

metric = partial(metrics.metric, group="Answers", needs=("answer",))
on_truth = partial(metric, needs=("answer", "truth"))


@cache_by_case
def _score_outcome(case: Case) -> dict[str, float | None]:
    return score_outcome(find_outcome(case).outcome, impossible=case.is_impossible)


def _add_share(name: str, title: str, meaning: str, **about: Any) -> None:
    metric(title, meaning, name=name, **about)(lambda case: _score_outcome(case)[name])


_RIGHT = "answerable questions whose answer is certainly right; refused, failed and unjudged ones count as not right"
_MOST = "answerable questions whose answer is right or is not judged"
_REFUSED = "answerable questions that were refused"
_add_share(ANSWERED_RIGHTLY, "Answered correctly", _RIGHT)
_add_share(AT_MOST, "Answered correctly, at most", _MOST, short=False, gate=False)
_add_share("abstention_accuracy", "Refused when impossible", "impossible questions that were refused")
_add_share("false_refusal_rate", "Refused when answerable", _REFUSED, higher_is_better=False)


@metric("Labels that are right", "replies that choose the label that the source gives", needs=("answer", "label"))
def label_accuracy(case: Case) -> float:
    return float(find_chosen_label(case.reply.answer or "", case.choices) == case.label)


# neither direction is better: a system that is sure of everything has few flags
@metric("Flagged for review", "answers whose confidence is below the threshold", needs=(), higher_is_better=None)
def flagged(case: Case, options: Options) -> float | None:
    confidence = case.reply.confidence
    return None if options.flag_below is None or confidence is None else float(confidence < options.flag_below)


_PAGE_CITATION = re.compile(r"\[[^\[\]\n]*#page=[^\[\]\n]*\]")
_NO_NAME = re.compile(r"[\W\d_]+|(?:\d+\s+and\s+)*\d+")  # `[1, 2]`, the year in `[2024] EWCA Civ 123`, `[…]`


def without_citations(text: str) -> str:
    """Return a text without its citations, such as `[1]`, its notes on amendments, and its list of sources."""
    return _PAGE_CITATION.sub("", rewrite_citations(without_places(text), lambda *_: ""))


def find_cited_names(text: str) -> list[str]:
    """Return the sources that a text cites by name, each once, as written: `Part 36#page=Offers to Settle`."""
    names = (" ".join(match.split()) for match in BRACKETED.findall(text))
    return list(dict.fromkeys(name for name in names if name and not _NO_NAME.fullmatch(name)))


def without_named(text: str) -> str:
    """Return a text without citations that name a source in brackets, such as `[Part 36#page=Offers to Settle]`."""
    return BRACKETED.sub(lambda match: match.group() if _NO_NAME.fullmatch(match[1]) else " ", text)


@on_truth("Expected words contained", "replies with the words or values of the expected answer; some are wrong")
def answer_contained(case: Case) -> float | None:
    """Return whether the answer contains the expected words; None if that cannot be decided, as for a bare yes."""
    contained = states_answer(without_named(without_citations(case.truth)), case.reply.answer or "")
    return None if contained is None else float(contained)


@on_truth("Answer overlap (F1)", "overlap between the words of the answer and those of the expected answer")
def answer_f1(case: Case) -> float | None:
    words, expected = map(Counter, _split_both(case))
    return 2 * (words & expected).total() / (words.total() + expected.total()) if expected else None


@on_truth("Answer is the expected one", "answers that equal the expected answer word for word", short=False)
def answer_exact_match(case: Case) -> float | None:
    words, expected = _split_both(case)
    return float(words == expected) if expected else None


def _split_both(case: Case) -> tuple[list[str], list[str]]:
    """Return the words of the answer and of the expected answer, both without citations."""
    return split_words(without_citations(case.reply.answer or "")), split_words(without_citations(case.truth))


@metric("Required text stated", "share of the test set's required words, figures and dates that the answer contains")
def answer_must_contain(case: Case) -> float | None:
    return _share_stated(case, MUST_CONTAIN, strict=False)


@metric(
    "Forbidden text stated", "share of the test set's forbidden words, figures and dates that the answer contains",
    higher_is_better=False,
)  # fmt: skip
def answer_must_not(case: Case) -> float | None:
    return _share_stated(case, MUST_NOT_CONTAIN, strict=True)


def _share_stated(case: Case, label: str, *, strict: bool) -> float | None:
    """Return the share of a label's items that the answer states; for an item, one of its alternatives is enough."""
    text = str(case.labels.get(label) or "[]")
    try:
        items = json.loads(text)
    except ValueError:
        items = text
    items = items if isinstance(items, list) else [text]
    choices = [item if isinstance(item, list) else [item] for item in items]
    stated = [any(_says_item(str(words), case.reply.answer or "", strict=strict) for words in each) for each in choices]
    return sum(stated) / len(stated) if stated else None


def _says_item(item: str, answer: str, *, strict: bool) -> bool:
    """Return whether an answer has an item's words in sequence or, unless `strict`, its terms and numbers."""
    wanted, words = (f" {' '.join(split_words(text))} " for text in (item, answer))
    if wanted.strip() and wanted in words:
        return True
    return (not strict or bool(re.search(r"\d", item))) and bool(states_answer(item, answer))


_MAX_SOURCE_CHARS = 24_000  # the judge reads at most this many characters of the passages, best first
_FIELD = re.compile(r'"(?:score|mark|rating|grade)"\s*:\s*"?([^,}"]*)')
_SCORE = re.compile(
    r"\b(?:score|mark|rating|grade)\b\W{0,6}(?:is\W{0,3}|of\W{0,3})?([1-5])(?!\d|\.[1-9])(?:\s*/\s*5)?", re.IGNORECASE
)
_ALONE = re.compile(r"[^\w-]*([1-4](?:\.\d+)?|5(?:\.0+)?)(?:\s*(?:/|out of)\s*5)?[^\w%]*", re.IGNORECASE)
_PROMPTS = read_beside(__file__)
Texts = dict[str, str]  # the texts that the judge reads, by their titles


def _fence_text(title: str, text: str) -> str:
    """Return a text between delimiters that do not occur in it."""
    fence = "~" * max([3, *(len(run) + 1 for run in re.findall("~+", text))])
    return f"{title}\n{fence}\n{text.strip()}\n{fence}"


def read_mark(text: str) -> float | None:
    """Return the mark, 1 to 5, in a judge's reply; None if the reply has no mark or several different marks."""
    stated = set(_FIELD.findall(text)) or {text}  # the reason beside a JSON field may name other marks
    alone = _ALONE.fullmatch(min(stated)) if len(stated) == 1 else None
    marks = {alone[1]} if alone else set(_SCORE.findall(text) if stated == {text} else ())
    return float(marks.pop()) if len(marks) == 1 else None


def judged(title: str, meaning: str, *needs: Need) -> Callable[[Function], Function]:
    """Register a metric with marks from 1 to 5; the function returns the texts to judge, or None for no mark."""

    def decorate(choose_texts: Function) -> Function:
        name = choose_texts.__name__

        def ask_judge(cases: Sequence[Case], options: Options) -> Values:
            chosen: list[Texts | None] = list(map(choose_texts, cases))
            fenced = ("\n\n".join(map(_fence_text, texts, texts.values())) for texts in chosen if texts)
            prompts = [Prompt(text, system=f"{_PROMPTS[name]}\n{_PROMPTS['reply']}") for text in fenced]
            if not prompts or options.judge is None:
                return [None] * len(cases)
            replies = iter(options.judge.complete(prompts, max_tokens=300, temperature=0.0))
            return [_take_mark(next(replies), options.judge_faults) if texts else None for texts in chosen]

        version = f"{name}-1"  # the version of the instructions in answers.toml
        metric(title, meaning, name=name, unit="mark", needs=(*needs, "judge"), prompt_version=version)(ask_judge)
        return choose_texts

    return decorate


def _take_mark(reply: Completion, faults: Counter[str]) -> float | None:
    mark = None if reply.error else read_mark(reply.text)
    if mark is None:
        faults[reply.error or f"its reply has no mark from 1 to 5: {' '.join(reply.text.split())[:80]!r}"] += 1
    return mark


@judged("Groundedness", "how well the passages support the answer: a judge's mark from 1 to 5", "answer", "passages")
def groundedness(case: Case) -> Texts | None:
    # a refusal claims nothing, and an answer without passages cannot be supported
    passages, answer = case.reply.read(len(case.reply.passages)), case.reply.answer
    if not answer or not passages or is_refusal(answer):
        return None
    sources = "\n\n".join(f"[{number}] {passage.text.strip()}" for number, passage in enumerate(passages, 1))
    return {"SOURCES": sources[:_MAX_SOURCE_CHARS], "ANSWER": answer}


@judged("Relevance", "how well the answer fits the question: a judge's mark from 1 to 5", "answer")
def relevance(case: Case) -> Texts | None:
    answer = "" if case.is_impossible else case.reply.answer
    return {"QUESTION": case.question, "ANSWER": answer} if answer else None


@judged(
    "Correctness", "how well the answer agrees with the expected answer: a judge's mark from 1 to 5", "answer", "truth"
)
def answer_correctness(case: Case) -> Texts | None:
    answer = case.reply.answer
    texts = {"QUESTION": case.question, "EXPERT'S ANSWER": case.truth, "ANSWER TO JUDGE": answer or ""}
    return texts if answer else None


# not a gate: the time also depends on other work of the machine, and a more expensive answer may be better
cost_metric = partial(metrics.metric, group="Cost", higher_is_better=False, gate=False)


@cost_metric("Time to reply", "seconds from the question to the last word of the reply", unit="seconds")
def latency(case: Case) -> float | None:
    return case.reply.seconds


@cost_metric("Cost of a reply", "cost of a question, reported by the system or from your prices", unit="currency")
def cost(case: Case, options: Options) -> float | None:
    usage = case.reply.usage
    if "cost" in usage:
        return float(usage["cost"])
    if options.prices is None or not (usage.get("tokens_in") or usage.get("tokens_out")):
        return None
    price_in, price_out = options.prices  # of a million tokens
    return float((usage.get("tokens_in", 0) * price_in + usage.get("tokens_out", 0) * price_out) / 1_000_000)


@metric(
    "Answer length", "number of characters in an answer", group="Cost", unit="characters", higher_is_better=None,
    short=False,
)  # fmt: skip
def answer_length(case: Case) -> float:
    return float(len(case.reply.answer or ""))
