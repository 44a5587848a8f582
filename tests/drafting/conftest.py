"""A fixture that several modules of this folder use."""

from tests.drafting.test_draft import contracts as contracts
