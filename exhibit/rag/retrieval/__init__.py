"""Retrieval of passages for questions, in stages; each stage has a name, a setting and an entry in the trace."""
