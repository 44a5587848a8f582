"""Embeddings of a server with OpenAI's API: `openai:MODEL`, or `openai:MODEL@256` for shorter vectors."""

from exhibit.models.openai import OpenAIEmbedder, open_embedder


def open(argument: str | None, *, timeout: float | None = None) -> OpenAIEmbedder:
    return open_embedder("openai", argument, timeout)
