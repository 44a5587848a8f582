"""Measures how well a reader finds the exact words of an answer, within the right document.

python -m training.reading --pack pack.npz --measure held.npz --adapter FILE --reranker FILE --reader FILE

The reader gets the passages that the embedder ranks first; the rest of the pipeline is not used.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from exhibit.models.reader import best_range, decode
from exhibit.runtime.command import guarded
from training import _cli
from training.hints import Kinds, learn
from training.measure import Ask, compute_auroc, group_of, list_asks
from training.network import Encoder, Reader, Texts, load, merge
from training.pack import Pack, Role, load_pack
from training.published import Predicted, compute_published
from training.scoring import embed_all, rank_passages
from training.tensors import Array, read_tensors
from training.windows import OUTSIDE, Tokens, Window, Windows

_READ = 400
"""The most passages that are read for CUAD's own metrics: the whole contract, as its authors' systems do."""
FIRST = 6
"""The number of passages that are read, as many as an answer is made from."""
_ROOM = 400
"""The number of windows in one batch."""
ROLES: tuple[Role, ...] = ("own", "test", "asked")
"""The roles of wordings: the benchmark's, those outside the training data, and questions without a kind."""
REFUSALS = (0.05, 0.10, 0.15)
"""The shares of false refusals at which right abstentions are reported."""

Floats = npt.NDArray[np.float64]
Span = tuple[int, int]


class Reading(NamedTuple):
    """The output of the reader model for a window (a piece of a document's text).

    It has the window's score, the answer spans with their scores, the spans of short answers, and the log-odds
    that the answer is yes.
    """

    score: float
    spans: tuple[tuple[Span, float], ...]
    short: tuple[Span, ...] = ()
    yes: float = 0.0


@dataclass(frozen=True)
class Models:
    """The models that answer a question: an embedder, a reader and a classifier of question kinds.

    The embedder (its weights are `adapted`) ranks the passages that the reader reads. The classifier `kinds`
    gives the reader hints; if it is None, the reader gets no hints.
    """

    adapted: Mapping[str, Array]
    reader: Reader
    kinds: Kinds | None = None

    def vectors(self, pack: Pack) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the embedding vectors of all passages and of all queries in the training data."""
        device = self.reader.spans.weight.device
        encoder = Encoder(self.adapted, rank=1, seed=0).to(device)
        return embed_all(encoder, Texts(pack.tokens, pack.ends, device), pack)

    def words(self, pack: Pack, wanted: Sequence[Ask], queries: torch.Tensor) -> list[Tokens]:
        """Return the tokens of each question, with a hint after them if there is a classifier of question kinds.

        The hint is the benchmark's wording for the kind of question that the classifier predicts. A question
        without a predicted kind, or already in that wording, gets no hint.
        """
        own = [pack.text(int(pack.queries[ask.query, 0])) for ask in wanted]
        if self.kinds is None:
            return own
        kinds = self.kinds.of(queries[[ask.query for ask in wanted]]).tolist()
        return [self.kinds.add_hint(tokens, kind) for tokens, kind in zip(own, kinds, strict=True)]


def read(
    reader: Reader, windows: Windows, asked: Sequence[tuple[Tokens, Window]], *, lean: float = 0.0
) -> Iterator[Reading]:
    """Run the reader on pairs of a question and a window; yield its output for each pair, in order.

    `lean` is added to the log-odds of every token to be inside an answer, so that spans get longer.
    """
    device = reader.spans.weight.device
    merged = reader.encoder.merged()
    order = sorted(range(len(asked)), key=lambda at: asked[at][1].end - asked[at][1].start)
    found: dict[int, Reading] = {}
    for start in range(0, len(order), _ROOM):
        some = order[start : start + _ROOM]
        batch = windows.make_batch([(-1, *asked[at]) for at in some], device)
        with torch.no_grad():
            parts = reader(batch.ids, batch.mask, batch.types, merged)
            scores, yes, tokens = (part.float().cpu().numpy() for part in parts)
        known = (batch.labels[:, :, 0] >= 0).cpu().numpy()
        for row, at in enumerate(some):
            found[at] = _make_reading((scores[row], yes[row]), tokens[row][known[row]], asked[at][1], windows, lean)
    yield from (found[at] for at in range(len(asked)))


def _make_reading(
    scores: tuple[float, float],
    tokens: npt.NDArray[np.float32],
    window: Window,
    windows: Windows,
    lean: float,
) -> Reading:
    low, high = windows.low[window.start :], windows.high[window.start :]
    spans = tuple(
        ((int(low[first]), int(high[last - 1])), float(tokens[first:last, 0].mean()))
        for first, last in decode(tokens[:, :3], lean=lean)
    )
    short = best_range(tokens[:, 3:], decode(tokens[:, :3], lean=lean))
    value = ((int(low[short[0]]), int(high[short[1] - 1])),) if short else ()
    return Reading(float(scores[0]), spans, value, float(scores[1]))


def measure_overlap(spans: Sequence[Span], gold: Sequence[Span]) -> float:
    """Return the higher of two character F1s of `spans`: against all gold spans, or against the best gold span."""
    taken = sum(end - start for start, end in spans)
    best = 0.0
    for wanted in [list(gold), *([one] for one in gold)]:
        shared = sum(max(0, min(e, high) - max(s, low)) for s, e in spans for low, high in wanted)
        size = sum(high - low for low, high in wanted)
        best = max(best, 2 * shared / (taken + size) if taken + size else 0.0)
    return best


def report(title: str, pack: Pack, models: Models, *, role: Role, split: str | None) -> None:
    """Print, by source of the questions, how well the reader model finds answers and recognises absent ones.

    The first figure is the F1 of the answers against gold. The other figures are the shares of unanswerable
    questions that are refused, if 5%, 10% or 15% of the answerable questions are refused.
    """
    wanted = list_asks(pack, role=role, split=split)
    if not wanted:
        return
    windows = Windows(pack)
    vectors = models.vectors(pack)
    orders = [order for order, _ in rank_passages(pack, wanted, *vectors)]
    words = models.words(pack, wanted, vectors[1])
    pairs = [(w, windows.make_window(int(p))) for w, o in zip(words, orders, strict=True) for p in o[:FIRST]]
    readings = read(models.reader, windows, pairs)
    groups: dict[str, list[tuple[Ask, list[Reading]]]] = defaultdict(list)
    for ask, order in zip(wanted, orders, strict=True):
        groups[group_of(pack, ask)].append((ask, [next(readings) for _ in order[:FIRST]]))
    for group, some in sorted(groups.items()):
        told = [(ask, *_choose_answer(few)) for ask, few in some if few]
        f1 = [measure_overlap(spans, ask.gold) for ask, _, spans in told if not ask.impossible]
        yes, no = ([score for ask, score, _ in told if ask.impossible == kind] for kind in (False, True))
        area = compute_auroc(yes, no)
        line = f"{title}: {group}: {len(told)} questions, F1 {np.mean(f1) if f1 else 0:.3f}"
        if area is not None:
            at = (f"{share:g}: {np.mean(np.array(no) < np.quantile(yes, share)):.2f}" for share in REFUSALS)
            line += f", AUROC {area:.3f}, right abstentions at false refusals of {', '.join(at)}"
        print(line)
        for figures in _format_short_figures(pack, windows, some):
            print(f"  {figures}")


def _format_short_figures(pack: Pack, windows: Windows, read: Sequence[tuple[Ask, list[Reading]]]) -> Iterator[str]:
    """Yield lines of figures on the best-scored window of each answerable question.

    They state how often the marked spans overlap gold, and how often the short answer and the yes-or-no answer
    are right.
    """
    best = [(ask, max(few, key=lambda one: one.score)) for ask, few in read if few and not ask.impossible]
    chosen = [any(measure_overlap([span], ask.gold) for span, _ in one.spans) for ask, one in best]
    yield f"the best window has gold: {np.mean(chosen):.3f} of {len(chosen)}"
    short = [(one.short, windows.short[ask.row].tolist()) for ask, one in best if ask.row in windows.short]
    if short:
        exact = np.mean([list(map(list, ours)) == gold for ours, gold in short])
        f1 = np.mean([measure_overlap(ours, gold) for ours, gold in short])
        yield f"short answers: F1 {f1:.3f}, exact {exact:.3f} of {len(short)}"
    said = [(one.yes, windows.verdict(ask.row, int(pack.queries[ask.query, 0]))) for ask, one in best]
    known = np.array([(odds, truth) for odds, truth in said if truth != OUTSIDE]).reshape(-1, 2)
    for least in (0.0, 0.5, 1.0, 2.0) if len(known) else ():
        sure = known[np.abs(known[:, 0]) >= least]
        right = np.mean((sure[:, 0] > 0) == (sure[:, 1] == 1)) if len(sure) else float("nan")
        yield f"yes or no at odds of {least:g}: {right:.3f} right of {len(sure)} decided of {len(known)}"


def report_published(title: str, pack: Pack, models: Models, words: Sequence[str]) -> None:
    """Print the metrics of CUAD's authors for the reader's answers; `words` is the tokenizer's vocabulary."""
    wanted = [ask for ask in list_asks(pack, role="own", split=None) if group_of(pack, ask) == "cuad"]
    windows, vectors = Windows(pack), models.vectors(pack)
    orders = [order[:_READ] for order, _ in rank_passages(pack, wanted, *vectors)]
    asked = zip(models.words(pack, wanted, vectors[1]), orders, strict=True)
    pairs = [(tokens, windows.make_window(int(passage))) for tokens, order in asked for passage in order]
    readings = read(models.reader, windows, pairs, lean=1.0)

    def read_said(document: int, span: Span) -> str:
        here = windows.tokens_of(document)
        inside = (windows.low[here] < span[1]) & (windows.high[here] > span[0])
        return " ".join(words[token] for token in pack.tokens[here][inside].tolist()).replace(" ##", "")

    predicted = []
    for ask, order in zip(wanted, orders, strict=True):
        found = [
            (span, 1 / (1 + np.exp(-few.score))) for few in (next(readings) for _ in order) for span, _ in few.spans
        ]
        gold = [] if ask.impossible else [read_said(ask.document, span) for span in ask.gold]
        told = [(read_said(ask.document, span), float(likely)) for span, likely in found]
        predicted.append(Predicted(gold, told, pack.kinds[ask.kind].endswith("/Parties")))
    print(f"{title}: {len(predicted)} questions, {_READ} passages each: {compute_published(predicted)}")


def _choose_answer(readings: Sequence[Reading]) -> tuple[float, list[Span]]:
    """Return the best score of all readings, and the answer spans of the best reading that has spans."""
    best = sorted(readings, key=lambda reading: -reading.score)
    spans = next((r.spans for r in best if r.spans), ())
    return best[0].score, [span for span, _ in spans]


# ---------------------------------------------------------------- the command


def load_reader(judged: Mapping[str, Array], low: Mapping[str, Array]) -> Reader:
    """Return a reader model, made from a reranker's weights (`judged`) and its own trained weights (`low`)."""
    rank = next(int(array.shape[0]) for name, array in low.items() if name.endswith(".down"))
    reader = Reader(judged, rank=rank, seed=0)
    load(reader.encoder, low)
    with torch.no_grad():
        for name, layer in (("head", reader.head), ("says", reader.says), ("spans", reader.spans)):
            layer.weight.copy_(torch.from_numpy(low[f"{name}.weight"]))
            layer.bias.copy_(torch.from_numpy(low[f"{name}.bias"]))
    return reader


@guarded()
def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a trained reader, the model that finds the words of an answer, and print all figures."""
    parser = argparse.ArgumentParser(prog="python -m training.reading", description=__doc__.partition("\n")[0])
    _cli.add_inputs(parser)
    for name in ("adapter", "reranker", "reader"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FILE", help=f"the {name}'s weights")
    parser.add_argument(
        "--words", type=Path, metavar="FILE", help="the tokenizer's vocabulary, one word per line; for CUAD's metrics"
    )
    parser.add_argument("--hints", action="store_true", help="show questions together with the wordings of their kinds")
    options = parser.parse_args(arguments)
    pack, weights, device = _cli.prepare(options)
    adapted, judged = stack_weights(weights, options.adapter, options.reranker)
    reader = load_reader(judged, read_tensors(options.reader)).to(device)
    models = with_hints(pack, Models(adapted, reader)) if options.hints else Models(adapted, reader)
    report_all(pack, models, options)
    if options.words:
        words = options.words.read_text(encoding="utf-8").splitlines()
        for path in options.measure:
            report_published(path.stem, load_pack(path), models, words)
    return 0


def stack_weights(
    weights: Mapping[str, Array], adapter: Path, judge: Path
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Return two sets of weights: those of the embedder, and those of the reranker.

    The embedder's weights are the base network's plus the low-rank weights of the file `adapter`. The
    reranker's weights are the embedder's plus the low-rank weights of the file `judge`, which also has the
    reranker's head.
    """
    adapted, low = merge(weights, read_tensors(adapter)), read_tensors(judge)
    heads = {name: array for name, array in low.items() if name.startswith("head.")}
    return adapted, {**merge(adapted, low), **heads}


def with_hints(pack: Pack, models: Models) -> Models:
    """Return the models with a classifier of questions, trained on the same pack."""
    return replace(models, kinds=learn(pack, models.vectors(pack)[1])[0])


def report_all(pack: Pack, models: Models, options: argparse.Namespace) -> None:
    """Print the reader's figures on the tuning documents of `pack` and on each pack of --measure.

    Questions are divided into three groups with separate figures: `own` (in the benchmark's words), `test` (in
    words that are not in the training data), and `asked` (questions of no known kind).
    """
    sets = [(pack, "dev", "dev"), *((load_pack(path), None, path.stem) for path in options.measure)]
    for measured, split, name in sets:
        for role in ROLES:
            report(f"{name}, {role} words", measured, models, role=role, split=split)


if __name__ == "__main__":
    sys.exit(main())
