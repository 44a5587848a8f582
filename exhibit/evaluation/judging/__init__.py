"""Decide whether an answer is right: by a small kernel of rules, or by a language model."""
