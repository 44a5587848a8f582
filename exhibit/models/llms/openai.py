"""Any server with OpenAI's API: `openai:MODEL`, at OPENAI_BASE_URL, with OPENAI_API_KEY."""

from functools import partial

from exhibit.models.openai import open_model

open = partial(open_model, "openai")
