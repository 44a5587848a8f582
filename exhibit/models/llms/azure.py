"""Azure OpenAI: `azure:DEPLOYMENT`, at AZURE_OPENAI_ENDPOINT, in the version OPENAI_API_VERSION."""

from functools import partial

from exhibit.models.openai import open_model

open = partial(open_model, "azure")
