"""Embeddings of Azure OpenAI: `azure:DEPLOYMENT`, or `azure:DEPLOYMENT@256` for shorter vectors."""

from functools import partial

from exhibit.models.openai import open_embedder

open = partial(open_embedder, "azure")
