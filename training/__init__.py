"""Trains three models on bundles: the embedder's adapter, the reranker, and the reader (answer extraction).

Each consists of low-rank weights that are added to all-MiniLM-L6-v2; the last two also have heads.
"""
