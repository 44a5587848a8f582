"""Embeddings of Azure OpenAI: `azure:DEPLOYMENT`, or `azure:DEPLOYMENT@256` for shorter vectors."""

from exhibit.models.openai import OpenAIEmbedder, open_embedder


def open(argument: str | None, *, timeout: float | None = None) -> OpenAIEmbedder:
    return open_embedder("azure", argument, timeout)
