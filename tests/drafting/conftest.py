"""A fixture for several modules of this folder."""

from tests.drafting.test_draft import contracts as contracts
