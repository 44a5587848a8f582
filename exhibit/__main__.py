"""The command `exhibit VERB …`, the same as `python -m exhibit VERB …`."""

import difflib
import logging
import sys
from collections.abc import Sequence
from importlib import import_module

from exhibit.commands import PROGRAM, VERBS, format_help, list_spellings, read_stored_help
from exhibit.runtime.command import USAGE, Invocation, check_room, guarded, print_usage_error, set_invocation
from exhibit.schemas import __version__

_OURS = ("--quiet", "--verbose")


@guarded()
def main(argv: Sequence[str] | None = None, *, alone: bool = False) -> int:
    """Run a command of `exhibit`, such as `evaluate`, in this process and return its exit code.

    `alone` means that the user called the script `python evaluate_rag.py` instead of `exhibit evaluate`.
    """
    given, own = _split_flags(list(sys.argv[1:] if argv is None else argv))
    if not given:
        sys.stderr.write(format_help() + "\n")
        return USAGE
    verb, *rest = given
    if verb in ("--help", "-h", "help"):
        sys.stdout.write(format_help() + "\n")
        return 0
    if verb == "--version":
        sys.stdout.write(f"{PROGRAM} {__version__}\n")
        return 0
    if verb not in VERBS:
        return _report_unknown(verb)
    if "--verbose" in own:
        logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(name)s: %(message)s")
    check_room()
    chosen = VERBS[verb]
    if rest[-1:] in (["--help"], ["-h"]) and (text := read_stored_help([verb, *rest[:-1]])):
        sys.stdout.write(text.replace(f"{PROGRAM} {verb}", chosen.usual) if alone else text)
        return 0
    with set_invocation(
        Invocation({} if alone else list_spellings(), quiet="--quiet" in own, verbose="--verbose" in own)
    ):
        code: int = getattr(import_module(chosen.module), chosen.attribute)([*chosen.words, *rest])
    return code


def _split_flags(given: list[str]) -> tuple[list[str], set[str]]:
    """Return the arguments without the flags that every verb has (`--quiet`, `--verbose`), and the flags found.

    Arguments after `--` are returned as they are, even if they look like these flags.
    """
    end = given.index("--") if "--" in given else len(given)
    return [word for word in given[:end] if word not in _OURS] + given[end:], set(given[:end]) & set(_OURS)


def _report_unknown(verb: str) -> int:
    near = difflib.get_close_matches(verb, VERBS, n=1)
    meant = f"did you mean {PROGRAM} {near[0]}?" if near else f"usage: {PROGRAM} VERB …"
    return print_usage_error(f"no verb {verb!r}", meant, PROGRAM)


if __name__ == "__main__":
    sys.exit(main())
