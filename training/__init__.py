"""Trains the embedder's adapter, the reranker and the reader on bundles: low-rank weights on all-MiniLM-L6-v2."""
