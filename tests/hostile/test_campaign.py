"""The campaign itself runs: one call of each kind of input that `make fuzz` makes, and the trials of `make faults`."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from schemas.errors import ToolkitError
from tests.campaign import faults, fuzz


@pytest.mark.parametrize("kind", sorted(fuzz.KINDS))
def test_each_kind_of_input_is_made_and_read(kind):
    with suppress(ToolkitError):
        fuzz.KINDS[kind](random.Random("campaign"))


def test_every_trial_runs_so_many_times():
    assert all(times > 0 and trial.__doc__ for trial, times in faults.TRIALS.values())
