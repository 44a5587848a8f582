"""Retrieval of passages for questions, in stages that have names, switches and a trace."""
