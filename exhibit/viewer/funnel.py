"""The funnel of a run: how many questions still have all their gold after each stage, and why the others do not."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from exhibit.evaluation.metrics import CEILING, describe_metric
from exhibit.evaluation.stage_losses import STAGE_TITLES, StageCounts
from exhibit.schemas.run import Estimate

_TONES = ("bad", "near", "unused", "bold")
"""The colours of a stage's reasons, the most frequent first."""


class FunnelPart(NamedTuple):
    """One reason why a stage loses gold, with its number of questions, as a segment of the stage's bar."""

    reason: str
    questions: int
    tone: str
    x: float
    width: float


class FunnelRow(NamedTuple):
    """A row of the funnel: a stage of the tested system, such as `retrieved`, with two counts of questions.

    `left` questions still have all their gold after the stage; `lost` questions first lose gold at the stage.
    """

    stage: str
    title: str
    left: int
    share: float
    """The questions that are left, in per cent of all."""
    lost: int
    parts: list[FunnelPart]
    ceiling: str
    """The share of gold that is left, with its interval; empty where it is unknown."""


def make_funnel_rows(counts: StageCounts, means: Mapping[str, Estimate]) -> list[FunnelRow]:
    """Return a row for each known stage of a run; `means` contains the mean share of gold left after each stage."""
    rows: list[FunnelRow] = []
    left = counts.questions
    for stage in counts.list_stages():
        lost = counts.lost.get(stage, Counter[str]())
        left -= sum(lost.values())
        at, parts = 100 * left / counts.questions, []
        for number, (reason, count) in enumerate(sorted(lost.items(), key=lambda one: (-one[1], one[0]))):
            width = 100 * count / counts.questions
            parts.append(FunnelPart(reason, count, _TONES[min(number, len(_TONES) - 1)], at, width))
            at += width
        share = 100 * left / counts.questions
        rows.append(
            FunnelRow(stage, STAGE_TITLES[stage], left, share, sum(lost.values()), parts, _format_left(stage, means))
        )
    return rows


def _format_left(stage: str, means: Mapping[str, Estimate]) -> str:
    one = means.get(name := f"{CEILING}{stage}")
    if one is None or one.mean is None:
        return ""
    described = describe_metric(name)
    ends = f" ({described.in_words(one.ci95[0])}–{described.in_words(one.ci95[1])})" if one.ci95 else ""
    return f"{described.in_words(one.mean)}%{ends}"


def describe_case_stages(gold_stages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a dict for each gold passage: its result at every stage, the stage that lost it, and the reason.

    The keys are `gold` (a number), `stages`, `lost`, `reason`, `missing` (text) and `cut` (by a chunk).
    """
    shown = []
    for gold in gold_stages:
        stages = [[stage, _describe_stage(stage, gold)] for stage in STAGE_TITLES if stage in gold]
        text, chunks = gold.get("text") or {}, gold.get("chunks") or {}
        one = {"gold": gold.get("gold", 0), "lost": gold.get("lost_at"), "reason": gold.get("reason") or ""}
        one |= {"stages": stages, "missing": text.get("missing") or [], "cut": chunks.get("cut")}
        shown.append(one)
    return shown


def _describe_stage(stage: str, gold: Mapping[str, Any]) -> str:
    """Return a gold passage's result at a stage in a few words, such as `whole`, `rank 3` or `not located`."""
    value = gold[stage]
    if stage == "page":
        return "" if value else "not located"
    if stage in ("text", "chunks"):
        share = min(99, int(100 * value["share"]))  # a part is never shown as 100%
        return value["how"] if value["how"] in ("whole", "absent", "none") else f"{value['how']}, {share}%"
    if stage == "answered":
        return str(value)
    rank, before = value.get("rank"), value.get("before")
    moved = f" (before: {before})" if before is not None and before != rank else ""
    return "not there" + moved if rank is None else f"rank {rank}{moved}"
