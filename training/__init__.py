"""Trains the legal adapter and the reranker on bundles: low-rank weights on all-MiniLM-L6-v2."""
