"""Applies trained networks to a pack, the file of training data.

The embedder computes vectors of passages and questions, and ranks the passages of each question's
document. The reranker then scores the first 32 of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from training.measure import Ask, Scores
from training.network import Encoder, Judge, Texts
from training.pack import Ints, Pack

RERANKED = 32
"""The number of passages that are reranked."""


def embed_all(encoder: Encoder, texts: Texts, pack: Pack, *, strength: float = 1.0) -> tuple[Tensor, Tensor]:
    """Return the vectors of all passages and of all queries of a pack (a file of training data).

    `strength` is the factor of the adapter's weights.
    """
    merged = encoder.merged(strength)
    device = texts.ids.device
    with torch.no_grad():
        passages = encoder.embed(texts, torch.arange(len(pack.passages), device=device), merged=merged)
        queries = encoder.embed(texts, torch.from_numpy(pack.queries[:, 0]).to(device), merged=merged)
    return passages, queries


def rank_passages(
    pack: Pack, wanted: Sequence[Ask], passages: Tensor, queries: Tensor
) -> Iterator[tuple[Ints, Scores]]:
    """Yield the passages of each question's document, best first, and their scores."""
    for ask in wanted:
        span = pack.passages_of(ask.document)
        near = (passages[span] @ queries[ask.query]).double().cpu().numpy()
        order = np.argsort(-near, kind="stable")
        yield order + span.start, near[order]


def rerank(
    judge: Judge, texts: Texts, pack: Pack, wanted: Sequence[Ask], ranked: Sequence[Ints], *, first: int = RERANKED
) -> list[Scores]:
    """Return the reranker's scores for the best passages of each question.

    `ranked` has the passage numbers of each question, best first. The first `first` of them are scored, and
    the scores are in the same order.
    """
    heads = [order[:first] for order in ranked]
    texts_of = [int(pack.queries[ask.query, 0]) for ask in wanted]
    pairs = [(question, passage) for question, head in zip(texts_of, heads, strict=True) for passage in head.tolist()]
    questions, passages = torch.tensor(pairs, device=texts.ids.device).T
    with torch.no_grad():
        scores = judge.score(texts, questions, passages).double().cpu().numpy()
    return np.split(scores, np.cumsum([len(head) for head in heads])[:-1])
