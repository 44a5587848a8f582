"""Fixtures that several modules of this folder use."""

from tests.drafting.test_draft import contracts as contracts
from tests.drafting.test_generated import prepared as prepared
