"""Embeddings of Azure OpenAI: `azure:DEPLOYMENT`, or `azure:DEPLOYMENT@256` for shorter vectors.

The environment has the address and the key, as for `--llm azure:DEPLOYMENT` (models/llms/azure.py).
"""

from exhibit.models.embedders.openai import OpenAIEmbedder, parse_model_name
from exhibit.schemas.errors import ToolkitError


def open(argument: str | None, *, timeout: float | None = None) -> OpenAIEmbedder:
    """Return an embedder for the deployment that the argument names.

    `timeout` is the number of seconds for one request, with its retries.
    """
    if not argument:
        raise ToolkitError("azure: no deployment is named; give azure:DEPLOYMENT")
    deployment, dimensions = parse_model_name(argument)
    return OpenAIEmbedder(deployment, dimensions=dimensions, total=timeout, azure=True)
