"""Texts to spans: one file per way of splitting, named by `--splitter`."""
