"""Summaries are one line within the limit, and use the document's words if a model fails."""

from collections.abc import Callable, Sequence

import pytest

from exhibit.evidence import Document
from exhibit.law.profile import read_profile
from exhibit.law.structure import read_structure
from exhibit.models.llms import Completion, Prompt
from exhibit.rag.config import Config
from exhibit.rag.summaries import Summary
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError

TEXT = """SUPPLY AGREEMENT
This Supply Agreement is made on 3 May 2021 between Alder Mills Limited (“Alder”) and Birch Foods plc (“Birch”).
RECITALS
A. Alder desires to sell flour to mills in Kent.
B. Birch bakes bread.
NOW, THEREFORE, the parties agree:
1. Term. The term of this Agreement is five years. It may be renewed.
2. Price. The price of the flour is set out in Schedule 1.
"""


class StubLlm:
    """A model whose replies are a function of the prompt, and which records its prompts."""

    name = "scripted"

    def __init__(self, reply: Callable[[Prompt], Completion]) -> None:
        self.reply = reply
        self.prompts: list[Prompt] = []
        self.options: list[tuple[int, float]] = []

    def complete(self, prompts: Sequence[Prompt], *, max_tokens: int, temperature: float) -> list[Completion]:
        self.prompts += prompts
        self.options.append((max_tokens, temperature))
        return [self.reply(prompt) for prompt in prompts]


def summarise(text: str, llm: StubLlm | None = None, **settings) -> Summary:
    document = Document("a.txt", text)
    config = Config(**settings)
    module, argument = load_plugin("exhibit.rag.summaries", config.summaries)
    summariser = module.open(argument, config=config, llm=llm)
    return summariser.summarise(document, read_structure(document), read_profile(document))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TEXT, "Supply Agreement between Alder Mills Limited and Birch Foods plc: "
               "Alder desires to sell flour to mills in Kent"),
        ("NON-DISCLOSURE AGREEMENT\n1. Definitions. X.\n2. Return of Information. Y.\n3. No Warranty. Z.\n",
         "Non-Disclosure Agreement: Return of Information; No Warranty"),
        ("PART 30 - TRANSFER\n\n---\n\nScope\n\n30.1\n\n(1) This Part deals with the transfer of claims.\n",
         "Part 30 - Transfer: This Part deals with the transfer of claims"),
    ],
)  # fmt: skip
def test_extractive_summary_has_title_parties_and_subject(text, line):
    assert summarise(text) == Summary(line)


def test_summariser_summarises_sections_when_setting_layers_is_all():
    lines = summarise(TEXT, layers="all").sections
    assert "1. Term: The term of this Agreement is five years." in lines and all(len(line) <= 95 for line in lines)


def test_summary_of_a_long_recital_stays_within_the_limit():
    long = TEXT.replace("Alder desires to sell flour", "Alder desires to sell " + "very " * 60 + "fine flour")
    assert 100 < len(summarise(long).document) <= 150 + 20


def test_llm_summary_request_uses_token_temperature_and_input_settings():
    llm = StubLlm(lambda prompt: Completion('**Summary:** "Flour for Kent"'))
    settings = {"summary_tokens": 50, "summary_temperature": 0.3, "summary_input_characters": 30}
    assert summarise(TEXT, llm, summaries="llm", **settings).document == "Flour for Kent"
    assert llm.options == [(50, 0.3)] and TEXT[:30] in llm.prompts[0].user and TEXT[30:60] not in llm.prompts[0].user


def test_long_llm_summary_is_requested_again_then_cut():
    llm = StubLlm(lambda prompt: Completion("word " * 60))
    line = summarise(TEXT, llm, summaries="llm").document
    assert len(llm.prompts) == 3 and len(line) <= 170
    assert "At most 150" in llm.prompts[0].user and "At most 90" in llm.prompts[2].user


def test_llm_summary_falls_back_to_extractive_summary_on_model_error():
    llm = StubLlm(lambda prompt: Completion(error="down"))
    assert summarise(TEXT, llm, summaries="llm", layers="all") == summarise(TEXT, layers="all")


def test_llm_summary_prompt_requests_the_configured_style():
    llm = StubLlm(lambda prompt: Completion("x"))
    summarise(TEXT, llm, summaries="llm:expert")
    assert "specialist lawyer" in llm.prompts[0].user
    with pytest.raises(ToolkitError, match="no style 'poet'"):
        summarise(TEXT, llm, summaries="llm:poet")
    with pytest.raises(ToolkitError, match="needs a language model"):
        summarise(TEXT, summaries="llm")
