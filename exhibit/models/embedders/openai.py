"""Embeddings of a server with OpenAI's API: `openai:MODEL`, or `openai:MODEL@256` for shorter vectors."""

from functools import partial

from exhibit.models.openai import open_embedder

open = partial(open_embedder, "openai")
