"""Every verb of the one command: which function does it, how that is called by itself, and a line of help."""

from __future__ import annotations

from typing import NamedTuple

from exhibit.schemas.plugins import plugin_names

PROGRAM = "exhibit"


class Verb(NamedTuple):
    """A verb; its module is imported only when it is asked for."""

    module: str
    attribute: str
    help: str
    usual: str = ""
    """How the same is called without the one command."""
    words: tuple[str, ...] = ()
    """What the function wants in front of the user's own words."""


VERBS = {
    "convert": Verb("exhibit.conversion", "main", "turn a benchmark, a table or a list of URLs into a bundle"),
    "draft": Verb("exhibit.draft.__main__", "main", "draft questions on a folder of documents", "python -m draft"),
    "playbook": Verb("exhibit.draft.__main__", "playbook_main", "list and check the questions that drafts ask"),
    "evaluate": Verb(
        "exhibit.viewer.evaluate",
        "main",
        "test a RAG system on bundles, and write a report",
        "python evaluate_rag.py",
    ),
    "settings": Verb("exhibit.evaluation.catalogue", "main", "list what evaluate --set takes: default, range, meaning"),
    "demo": Verb("exhibit.demo", "main", "convert the samples that come with it, test the pipeline on them, and show"),
    "results": Verb(
        "exhibit.viewer.results",
        "main",
        "draw and compare runs, follow them over time; say how sound the gold is",
        "python -m evaluation.results",
    ),
    "review": Verb(
        "exhibit.viewer.review.__main__", "main", "let an expert check gold and answers", "python -m review"
    ),
    "score": Verb(
        "exhibit.evaluation.score", "main", "score a file of predictions against a gold file", "python score.py"
    ),
    "validate": Verb(
        "exhibit.storage.validate", "main", "check bundles against their contract", "python -m schemas.validate"
    ),
    "check": Verb(
        "exhibit.evidence.check", "main", "read the documents again: is the gold there?", "python -m evidence.check"
    ),
    "show": Verb("exhibit.evidence.show", "main", "draw a question's gold on its page", "python -m evidence.show"),
    "publish": Verb("exhibit.hub.publish", "main", "publish a bundle on the Hugging Face Hub", "python -m hub.publish"),
    "pull": Verb("exhibit.hub.pull", "main", "bring a published bundle back", "python -m hub.pull"),
    "export": Verb("exhibit.hub.export", "main", "write a bundle in another format", "python -m schemas.export"),
    "index": Verb("exhibit.rag.__main__", "main", "build an index of documents", "python -m rag index", ("index",)),
    "search": Verb(
        "exhibit.rag.__main__", "main", "show the best passages of an index", "python -m rag search", ("search",)
    ),
    "ask": Verb(
        "exhibit.rag.__main__", "main", "answer from an index, with citations", "python -m rag answer", ("ask",)
    ),
    "inspect": Verb("exhibit.rag.inspect", "main", "look into an index", "python -m rag.inspect"),
    "text": Verb("exhibit.evidence.text", "main", "write the texts that gold counts in", "python -m evidence.text"),
    "prepare": Verb("exhibit.prepare", "main", "get the browser and the embedder's model"),
    "doctor": Verb("exhibit.doctor", "main", "say what is installed, what is missing and how to get it"),
    "completion": Verb("exhibit.completion", "main", "print the completion script of bash, zsh or fish"),
}

EXIT_CODES = {
    0: "fine",
    1: "an error, which stderr explains; or a check that does not hold",
    2: "the command cannot be understood",
    3: "too many questions failed (evaluate --max-failures)",
    4: "what was watched for is so: a source changed (convert web --refresh), or a run fell (results index --fail-on)",
    130: "stopped by Ctrl-C",
    141: "the reader of the output closed the pipe",
}

FLAGS = {
    "--help": "this text; after a verb, that verb's",
    "--version": "the version",
    "--quiet": "nothing but results: no notes, no progress; errors are still shown",
    "--verbose": "log what happens, and show where an error was raised",
}


_PREPARED = {
    "python -m converters._browser": "browser",
    "python -m models.embedders.minilm --prepare": "model",
    "python -m models.embedders.legal --prepare": "model",
}
"""What prepares a part by itself, which messages name."""


def spellings() -> dict[str, str]:
    """Return how commands are called here, by how they are called by themselves."""
    names = {verb.usual: f"{PROGRAM} {name}" for name, verb in VERBS.items() if verb.usual}
    names |= {
        f"python -m converters.{name}": f"{PROGRAM} convert {name}" for name in plugin_names("exhibit.converters")
    }
    names |= {"python -m converters.draft": f"{PROGRAM} draft"}
    names |= {command: f"{PROGRAM} prepare {part}" for command, part in _PREPARED.items()}
    return {**names, "python -m rag": PROGRAM}


def help_text() -> str:
    """Return the table of verbs, the flags and the exit codes."""
    lines = [
        f"usage: {PROGRAM} [--quiet|--verbose] VERB …",
        "",
        "Legal benchmarks as document bundles a RAG system can be tested on, with gold located on the page.",
        "",
        *_listed("verbs", {name: verb.help for name, verb in VERBS.items()}),
        *_listed("flags", FLAGS),
        *_listed("exit codes", {str(code): told for code, told in EXIT_CODES.items()}),
        "examples:",
        f"  {PROGRAM} demo",
        f"  {PROGRAM} convert cuad --out datasets_out/cuad",
        f"  {PROGRAM} evaluate datasets_out/cuad",
        f"  {PROGRAM} evaluate --help",
    ]
    return "\n".join(lines)


def _listed(title: str, told: dict[str, str]) -> list[str]:
    width = max(map(len, told))
    return [f"{title}:", *(f"  {name:<{width}}  {text}" for name, text in told.items()), ""]
