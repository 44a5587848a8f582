"""Whether a reference exists, as the official registers have it: legislation.gov.uk and Find Case Law.

checked = Register(Client(cache)).check(reference)

Asked politely: one request at a time, with a pause, as robots.txt allows, and never twice for the same thing.
"""

from exhibit.law.officials.client import Client
from exhibit.law.officials.register import CASE_LAW, LEGISLATION, Checked, Register

__all__ = ["CASE_LAW", "LEGISLATION", "Checked", "Client", "Register"]
