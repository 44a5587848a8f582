"""Every verb of the one command: which function does it, how that is called by itself, and a line of help."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.runtime.plugins import brought_names, plugin_names
from exhibit.schemas.parsing import read_beside

PROGRAM = "exhibit"


class Verb(NamedTuple):
    """A verb; its module is imported only when it is asked for."""

    module: str
    help: str
    attribute: str = "main"
    usual: str = ""
    """How the same is called without the one command."""
    words: Sequence[str] = ()
    """What the function wants in front of the user's own words."""


_TEXTS: dict[str, Any] = read_beside(__file__)
VERBS = {name: Verb(**fields) for name, fields in _TEXTS["verbs"].items()}
EXIT_CODES: dict[int, str] = {int(code): meaning for code, meaning in _TEXTS["exit_codes"].items()}
FLAGS: dict[str, str] = _TEXTS["flags"]


def spellings() -> dict[str, str]:
    """Return how commands are called here, by how they are called by themselves."""
    names = {verb.usual: f"{PROGRAM} {name}" for name, verb in VERBS.items() if verb.usual}
    names |= {
        f"python -m converters.{name}": f"{PROGRAM} convert {name}" for name in plugin_names("exhibit.converters")
    }
    return names | {"python -m converters.draft": f"{PROGRAM} draft"}


def help_text() -> str:
    """Return the table of verbs, the flags and the exit codes."""
    lines = [
        f"usage: {PROGRAM} [--quiet|--verbose] VERB …",
        "",
        "Legal benchmarks as document bundles a RAG system can be tested on, with gold located on the page.",
        "",
        *_listed("verbs", {name: verb.help for name, verb in VERBS.items()}),
        *_listed("flags", FLAGS),
        *_listed("exit codes", {str(code): meaning for code, meaning in EXIT_CODES.items()}),
        "examples:",
        f"  {PROGRAM} demo",
        f"  {PROGRAM} convert cuad --out datasets_out/cuad",
        f"  {PROGRAM} evaluate datasets_out/cuad",
        f"  {PROGRAM} evaluate --help",
    ]
    return "\n".join(lines)


def _listed(title: str, meanings: dict[str, str]) -> list[str]:
    width = max(map(len, meanings))
    return [f"{title}:", *(f"  {name:<{width}}  {text}" for name, text in meanings.items()), ""]


def kept_help(words: Sequence[str]) -> str:
    """Return the help that is kept for a verb, with what other distributions bring; nothing where none is kept."""
    try:
        kept = json.loads((Path(__file__).parent / "help.json").read_text(encoding="utf-8"))
    except OSError:
        return ""
    text: str = kept.get(" ".join(words), "")
    brought = [f"  {kind}: {', '.join(names)}" for kind, names in brought_names().items()] if text else []
    return text + ("\n".join(["\nfrom other distributions:", *brought, ""]) if brought else "")
