"""Fixtures that several modules of this folder use."""

from tests.draft.test_draft import contracts as contracts
from tests.draft.test_generated import prepared as prepared
