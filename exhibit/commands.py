"""The subcommands of `exhibit`: the function, the help and the equivalent command (`python score.py`) of each."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from exhibit.runtime.plugins import list_brought_plugins, list_plugins
from exhibit.schemas.parsing import read_beside

PROGRAM = "exhibit"


class Verb(NamedTuple):
    """A subcommand of `exhibit`, such as `convert`; its module is imported only when the subcommand is called."""

    module: str
    help: str
    attribute: str = "main"
    usual: str = ""
    """The same command without `exhibit`."""
    words: Sequence[str] = ()
    """Arguments that the function gets before the user's own."""


_TEXTS: dict[str, Any] = read_beside(__file__)
VERBS = {name: Verb(**fields) for name, fields in _TEXTS["verbs"].items()}
EXIT_CODES: dict[int, str] = {int(code): meaning for code, meaning in _TEXTS["exit_codes"].items()}
FLAGS: dict[str, str] = _TEXTS["flags"]


def list_spellings() -> dict[str, str]:
    """Return the form with `exhibit` for each command: `exhibit convert cuad` for `python -m converters.cuad`."""
    names = {verb.usual: f"{PROGRAM} {name}" for name, verb in VERBS.items() if verb.usual}
    names |= {
        f"python -m converters.{name}": f"{PROGRAM} convert {name}" for name in list_plugins("exhibit.converters")
    }
    return names | {"python -m converters.draft": f"{PROGRAM} draft"}


def format_help() -> str:
    """Return the help text of `exhibit`: the table of verbs, the flags and the exit codes."""
    lines = [
        f"usage: {PROGRAM} [--quiet|--verbose] VERB …",
        "",
        "Legal benchmarks as document bundles a RAG system can be tested on, with gold located on the page.",
        "",
        *_format_list("verbs", {name: verb.help for name, verb in VERBS.items()}),
        *_format_list("flags", FLAGS),
        *_format_list("exit codes", {str(code): meaning for code, meaning in EXIT_CODES.items()}),
        "examples:",
        f"  {PROGRAM} demo",
        f"  {PROGRAM} convert cuad --out datasets_out/cuad",
        f"  {PROGRAM} evaluate datasets_out/cuad",
        f"  {PROGRAM} evaluate --help",
    ]
    return "\n".join(lines)


def _format_list(title: str, meanings: dict[str, str]) -> list[str]:
    width = max(map(len, meanings))
    return [f"{title}:", *(f"  {name:<{width}}  {text}" for name, text in meanings.items()), ""]


def read_stored_help(words: Sequence[str]) -> str:
    """Return a verb's stored help, plus a list of the plugins that other installed distributions provide.

    The text is empty if no help is stored for these words.
    """
    try:
        kept = json.loads((Path(__file__).parent / "help.json").read_text(encoding="utf-8"))
    except OSError:
        return ""
    text: str = kept.get(" ".join(words), "")
    brought = [f"  {kind}: {', '.join(names)}" for kind, names in list_brought_plugins().items()] if text else []
    return text + ("\n".join(["\nfrom other distributions:", *brought, ""]) if brought else "")
