"""Texts to unit vectors: one file per embedder, named by `--embedder`."""
