"""The command `exhibit VERB …`, the same as `python -m exhibit VERB …`."""

import difflib
import logging
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple

from exhibit.runtime.command import USAGE, Invocation, guarded, print_usage_error, set_invocation
from exhibit.schemas import __version__

PROGRAM = "exhibit"


class Verb(NamedTuple):
    module: str  # the module's name; it is imported only when the subcommand is called
    help: str
    words: Sequence[str] = ()  # arguments that the function gets before the user's arguments
    # flags that another function, `module:function`, handles: it gets the other arguments
    modes: Mapping[str, str] = {}


VERBS = {
    "convert": Verb("exhibit.conversion", "turn a benchmark, a table or a list of URLs into a bundle"),
    "draft": Verb(
        "exhibit.drafting.folder",
        "draft questions on a folder of documents; --playbooks lists and checks the lists of standard questions",
        modes={"--playbooks": "exhibit.drafting.folder:playbook_main"},
    ),
    "vary": Verb(
        "exhibit.vary.make", "copy a bundle with changes: other figures, a removed clause, an amendment, an injection"
    ),
    "evaluate": Verb(
        "exhibit.viewer.report",
        "test a RAG system on bundles and write a report; --settings [WORD] lists what --set takes",
        modes={"--settings": "exhibit.evaluation.settings:main"},
    ),
    "results": Verb("exhibit.viewer.results", "report on, compare and export runs, and follow them over time"),
    "view": Verb("exhibit.viewer.server.app", "show, review and evaluate bundles and runs in the browser"),
    "review": Verb("exhibit.viewer.review.make", "let experts judge gold passages and answers"),
    "validate": Verb(
        "exhibit.storage.bundle",
        "check the files of bundles; --documents also reads the documents and checks the gold's locations",
        modes={"--documents": "exhibit.evidence.check:main"},
    ),
    "show": Verb("exhibit.evidence.show", "draw a question's gold on the page of its document"),
    "publish": Verb("exhibit.hub.publish", "publish a bundle on the Hugging Face Hub"),
    "pull": Verb("exhibit.hub.pull", "download a published bundle"),
    "export": Verb(
        "exhibit.hub.exports", "write a bundle in another format; --to text writes the texts that gold offsets refer to"
    ),
    "index": Verb(
        "exhibit.rag.__main__",
        "build an index of documents; --inspect INDEX inspects an index",
        words=("index",),
        modes={"--inspect": "exhibit.rag.inspect:main"},
    ),
    "search": Verb("exhibit.rag.__main__", "find the passages of an index that answer a question", words=("search",)),
    "ask": Verb("exhibit.rag.__main__", "answer questions from an index, with citations", words=("ask",)),
    "demo": Verb("exhibit.demo", "convert the samples, test the built-in pipeline on them, and write a report"),
    "doctor": Verb("exhibit.doctor", "report what is installed and missing; --fix installs browser and model"),
}
EXIT_CODES = {
    0: "success",
    1: "an error (see stderr), or a failed check",
    2: "an unknown verb or flag, or a wrong value",
    3: "too many questions failed (evaluate --max-failures)",
    4: "a source changed (convert web --refresh), or a check of results index --fail-on failed",
    130: "stopped by Ctrl-C",
    141: "the program that reads the output closed the pipe",
}
_FLAGS = {
    "--help": "show this help, or the help of the verb before it",
    "--version": "the version",
    "--quiet": "print results and errors only: no notes, no progress",
    "--verbose": "log what happens, and show where an error was raised",
}


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Run a command of `exhibit`, such as `evaluate`, in this process and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    end = words.index("--") if "--" in words else len(words)  # `--` ends the search for the flags of every verb
    verbosity = {"--quiet", "--verbose"} & set(words[:end])
    words = [word for word in words[:end] if word not in verbosity] + words[end:]
    if not words or words[0] in ("--help", "-h", "help"):
        (sys.stdout if words else sys.stderr).write(format_help() + "\n")
        return 0 if words else USAGE
    name, *after_verb = words
    if name == "--version":
        sys.stdout.write(f"{PROGRAM} {__version__}\n")
        return 0
    if name not in VERBS:
        # `check` was the name of this verb in version 1.0
        near = ["validate --documents"] if name == "check" else difflib.get_close_matches(name, VERBS, n=1)
        meant = f"did you mean {PROGRAM} {near[0]}?" if near else f"usage: {PROGRAM} VERB …"
        return print_usage_error(f"no verb {name!r}", meant, PROGRAM)
    if "--verbose" in verbosity:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s: %(message)s")
    verb = VERBS[name]
    module, function, arguments = verb.module, "main", [*verb.words, *after_verb]
    before_dashes = after_verb[: after_verb.index("--")] if "--" in after_verb else after_verb
    if flag := next((flag for flag in verb.modes if flag in before_dashes), ""):
        module, _, function = verb.modes[flag].partition(":")
        after_verb.remove(flag)
        arguments = after_verb
    with set_invocation(Invocation(quiet="--quiet" in verbosity, verbose="--verbose" in verbosity)):
        return int(getattr(import_module(module), function)(arguments))


def format_help() -> str:
    lines = [f"usage: {PROGRAM} [--quiet|--verbose] VERB …", ""]
    lines += ["Legal benchmarks as document bundles for testing RAG systems, with gold located on the page.", ""]
    verbs = {name: verb.help for name, verb in VERBS.items()}
    codes = {str(code): meaning for code, meaning in EXIT_CODES.items()}
    for title, meanings in {"verbs": verbs, "flags": _FLAGS, "exit codes": codes}.items():
        width = max(map(len, meanings))
        lines += [f"{title}:", *(f"  {name:<{width}}  {text}" for name, text in meanings.items()), ""]
    examples = ("demo", "convert cuad --out datasets_out/cuad", "evaluate datasets_out/cuad", "evaluate --help")
    return "\n".join([*lines, "examples:", *(f"  {PROGRAM} {words}" for words in examples)])


if __name__ == "__main__":
    sys.exit(main())
