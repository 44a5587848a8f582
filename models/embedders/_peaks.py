"""How large the numbers get that MiniLM multiplies with its weights: what 8-bit integers have to leave room for.

A few channels of this network are ten times as large as the rest, on any text. What integers lose by them is won back
by dividing such channels, and multiplying their weights by the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from exhibit.models.embedders._network import EPSILON, HEADS, LAYERS

TEXTS = (
    'This Agreement is entered into as of March 3, 2021 (the "Effective Date") by and between Harrow & Pike, Inc., '
    'a Delaware corporation ("Supplier"), and Lindqvist GmbH ("Customer").',
    "8.2 Limitation of Liability. EXCEPT FOR BREACH OF SECTION 6, IN NO EVENT SHALL EITHER PARTY BE LIABLE FOR "
    "INDIRECT, INCIDENTAL OR CONSEQUENTIAL DAMAGES; total liability shall not exceed $250,000.",
    "The Receiving Party shall not, without the prior written consent of the Disclosing Party, disclose Confidential "
    "Information to any third party, except to its employees who need to know it.",
    "Either party may terminate this Agreement upon thirty (30) days' written notice if the other party materially "
    "breaches it and fails to cure the breach within that period.",
    "We collect your e-mail address, device identifiers and location when you use the app, and share them with "
    "advertisers only if you allow it.",
    "Consider the Non-Disclosure Agreement between Alder and Birch; Does the document allow assignment without "
    "consent?",
    "Page 12 of 40",
)
"""Texts that are measured: contracts, a policy, a question. The large channels are the same on 60 real chunks."""

_Single = npt.NDArray[np.float32]
_Weights = Mapping[str, _Single]


def read_peaks(weights: _Weights, samples: Sequence[Sequence[int]]) -> dict[str, _Single]:
    """Return, for each product of the network, how large each channel of its input gets on these token ids."""
    runs = [_run(weights, np.array(ids)) for ids in samples]
    return {name: np.max([run[name] for run in runs], axis=0) for name in runs[0]}


def balance(peaks: _Single, weight: _Single) -> _Single:
    """Return what each channel is divided by, so that it is as hard on the states as on the weights.

    Powers of two: they cost no digit, and the last bits of a sum, which differ between processors, do not move them.
    """
    shares = np.sqrt(np.maximum(peaks, 1e-6) / np.maximum(np.abs(weight).max(axis=0), 1e-6))
    rounded: _Single = np.exp2(np.rint(np.log2(shares / np.median(shares)))).astype(np.float32)
    return rounded


def _run(weights: _Weights, ids: npt.NDArray[np.int64]) -> dict[str, _Single]:
    """Return the largest number of each channel, by the product that it goes into."""
    peaks: dict[str, _Single] = {}

    def linear(state: _Single, name: str) -> _Single:
        product: _Single = state @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        return product

    def seen(state: _Single, name: str) -> _Single:
        peaks[name] = np.abs(state).max(axis=0)
        return state

    tables = (weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type"))
    places = (ids, np.arange(len(ids)), np.zeros_like(ids))
    *_, state = accumulate(table[place] for table, place in zip(tables, places, strict=True))
    state = _normalise(weights, state, "embeddings.LayerNorm")
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        given = seen(state, f"{layer}.attention.self")
        parts = [linear(given, f"{layer}.attention.self.{part}") for part in ("query", "key", "value")]
        mixed = seen(_mix(*parts), f"{layer}.attention.output.dense")
        state = linear(mixed, f"{layer}.attention.output.dense") + state
        state = seen(_normalise(weights, state, f"{layer}.attention.output.LayerNorm"), f"{layer}.intermediate.dense")
        wide = seen(_gelu(linear(state, f"{layer}.intermediate.dense")), f"{layer}.output.dense")
        state = _normalise(weights, linear(wide, f"{layer}.output.dense") + state, f"{layer}.output.LayerNorm")
    return peaks


def _mix(*parts: _Single) -> _Single:
    query, key, value = (part.reshape(len(part), HEADS, -1).transpose(1, 0, 2) for part in parts)
    scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(query.shape[2]))
    shares = np.exp(scores - scores.max(axis=2, keepdims=True))
    mixed: _Single = (shares / shares.sum(axis=2, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(parts[0]), -1)
    return mixed


def _normalise(weights: _Weights, state: _Single, name: str) -> _Single:
    centred = state - state.mean(axis=1, keepdims=True)
    unit = centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + EPSILON)
    normal: _Single = (unit * weights[f"{name}.weight"] + weights[f"{name}.bias"]).astype(np.float32)
    return normal


def _gelu(state: _Single) -> _Single:
    # by its usual approximation: how large a number gets needs no more
    raised: _Single = state * (1 + np.tanh(np.float32(0.7978845608) * (state + np.float32(0.044715) * state**3))) / 2
    return raised
