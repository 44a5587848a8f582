"""Answer correctness: how well an answer agrees with the expected one, marked from 1 to 5 by a language model.

With several votes (`--set judge_votes=3`) the mark is their mean; the agreement of pairs of votes and their variance
are reported with it, because a judge that contradicts itself is unreliable. Every second vote sees the two answers in
reverse order, because judges favour the text that they read first. Impossible questions are None; they are scored by
`abstention_accuracy`.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean, pvariance

from exhibit.evaluation.judge import ask_marks, fence_text, read_system_prompt
from exhibit.evaluation.metrics import Case, Options, Values, Votes
from exhibit.models.llms import Prompt

_TEMPERATURE = 0.7
"""The temperature for several votes: at 0 all votes would be the same."""
PROMPT_VERSION = "answer_correctness-1"
_NAME = "answer_correctness"
NAMES = (_NAME, f"{_NAME}_agreement", f"{_NAME}_variance", f"{_NAME}_unjudged")


def measure(cases: Sequence[Case], options: Options, *, votes: Votes | None = None) -> dict[str, Values]:
    """Return the judge's mean mark, the agreement and variance of its votes, and the share of unreadable votes.

    None where there is nothing to judge.
    """
    options = replace(options, votes=votes) if votes else options
    prompts = [_make_prompts(case, options) for case in cases]
    temperature = _TEMPERATURE if options.votes > 1 else 0.0
    given = ask_marks([prompt for asked in prompts for prompt in asked], options, temperature=temperature)
    columns: dict[str, Values] = {name: [] for name in NAMES}
    start = 0
    for asked in prompts:
        marks = [mark for mark in given[start : start + len(asked)] if mark is not None]
        start += len(asked)
        pairs = list(combinations(marks, 2))
        columns[NAMES[0]].append(fmean(marks) if marks else None)
        columns[NAMES[1]].append(sum(a == b for a, b in pairs) / len(pairs) if pairs else None)
        columns[NAMES[2]].append(pvariance(marks) if len(marks) > 1 else None)
        columns[NAMES[3]].append(1 - len(marks) / len(asked) if asked else None)
    return columns


def _make_prompts(case: Case, options: Options) -> list[Prompt]:
    if not case.reply.answer:
        return []
    question = fence_text("QUESTION", case.question)
    both = [fence_text("EXPERT'S ANSWER", case.truth), fence_text("ANSWER TO JUDGE", case.reply.answer)]
    prompts = []
    for vote in range(options.votes):
        shown = both if vote % 2 == 0 else both[::-1]
        # numbered, so that the cache does not return the first vote for all
        seat = f"\n\nYou are reader {vote + 1} of {options.votes}." if options.votes > 1 else ""
        prompts.append(Prompt("\n\n".join([question, *shown]) + seat, system=read_system_prompt(_NAME)))
    return prompts
