"""Azure OpenAI: `azure:DEPLOYMENT`, at `AZURE_OPENAI_ENDPOINT`, in the version `OPENAI_API_VERSION`.

The key is in `AZURE_OPENAI_API_KEY`, or a token of Microsoft Entra in `AZURE_OPENAI_AD_TOKEN`.
"""

import os
from collections.abc import Mapping

from exhibit.models.llms.openai import OpenAI, options_of
from exhibit.schemas.errors import ToolkitError


def open(argument: str | None, options: Mapping[str, object]) -> OpenAI:
    """Return a client for the deployment that the argument names; without an argument, the one in OPENAI_MODEL."""
    deployment = argument or os.environ.get("OPENAI_MODEL")
    if not deployment:
        raise ToolkitError("azure: no deployment is named; give azure:DEPLOYMENT, or set OPENAI_MODEL")
    return OpenAI(deployment, options_of(options), azure=True)
