"""The campaigns themselves run: one call of each kind of input of `make fuzz`, the trials of `make faults`."""

from __future__ import annotations

import random

import pytest

from exhibit.schemas.errors import ToolkitError
from tests.campaign import faults, fuzz


@pytest.mark.parametrize("kind", sorted(fuzz.KINDS))
def test_each_kind_of_input_is_made_and_read(kind):
    refusal = None
    try:
        fuzz.KINDS[kind](random.Random("campaign"))
    except ToolkitError as error:
        refusal = str(error)
    assert refusal is None or refusal.strip(), "what is refused is refused with a reason"


def test_every_trial_runs_so_many_times():
    assert all(times > 0 and trial.__doc__ for trial, times in faults.TRIALS.values())
