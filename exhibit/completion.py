"""Completion for shells, from the table of verbs: `exhibit completion bash`.

bash:  eval "$(exhibit completion bash)"          in ~/.bashrc
zsh:   eval "$(exhibit completion zsh)"           in ~/.zshrc, after compinit
fish:  exhibit completion fish | source           in ~/.config/fish/config.fish

The flags of a verb are asked for when they are first completed, of the verb itself: exhibit completion flags VERB; what
follows --set is asked for in the same way: exhibit completion settings
"""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path

from exhibit.commands import FLAGS, PROGRAM, VERBS, kept_help
from exhibit.runtime.command import documented, guarded
from exhibit.runtime.plugins import plugin_names

_LISTED = re.compile(r"(?<!\s)\s++((?:-\w(?: \S+)?, )?--[a-z].*?)(?:  |$)")
"""A line of argparse's help that lists a flag, up to what it says of it."""
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def _bash() -> str:
    words: dict[str, Iterable[str]] = {"PROGRAM": [PROGRAM], "VERBS": VERBS, "FLAGS": FLAGS, "SHELLS": SCRIPTS}
    words |= {"CONVERTERS": plugin_names("exhibit.converters")}
    text = Path(__file__).with_name("completion.bash").read_text(encoding="utf-8")
    return re.sub("|".join(words), lambda place: " ".join(words[place[0]]), text)


def _fish() -> str:
    none = f"complete -c {PROGRAM} -n __fish_use_subcommand"
    lines = [f"{none} -f -a {name} -d {_quoted(verb.help)}" for name, verb in VERBS.items()]
    lines += [
        f"complete -c {PROGRAM} -l {flag.removeprefix('--')} -d {_quoted(meaning)}" for flag, meaning in FLAGS.items()
    ]
    for verb, words in (("convert", plugin_names("exhibit.converters")), ("completion", list(SCRIPTS))):
        unnamed = f"__fish_seen_subcommand_from {verb}; and not __fish_seen_subcommand_from {' '.join(words)}"
        lines.append(f"complete -c {PROGRAM} -n {_quoted(unnamed)} -f -a {_quoted(' '.join(words))}")
    settings = f"({PROGRAM} completion settings 2>/dev/null)"
    lines.append(f"complete -c {PROGRAM} -n '__fish_seen_subcommand_from evaluate' -l set -x -a {_quoted(settings)}")
    dashed = "not __fish_use_subcommand; and string match -q -- '-*' (commandline -ct)"
    asked = f"({PROGRAM} completion flags (commandline -opc)[2..-1] 2>/dev/null)"
    lines.append(f"complete -c {PROGRAM} -n {_quoted(dashed)} -f -a {_quoted(asked)}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS: dict[str, Callable[[], str]] = {
    "bash": _bash,
    # zsh reads bash's own completions, once told to
    "zsh": lambda: "autoload -U +X bashcompinit && bashcompinit\n" + _bash(),
    "fish": _fish,
}


def flags_of(words: Sequence[str]) -> list[str]:
    """Return the flags of the verb that is among some words of a command line, as its own help lists them."""
    named = [word for word in words if word and not word.startswith("-")]
    if not named or named[0] not in VERBS:
        return list(FLAGS)
    help_lines = kept_help(named[:2] if named[0] == "convert" else named[:1]).splitlines()
    listed = (match[1] for match in map(_LISTED.match, help_lines) if match)
    return sorted({flag for entry in listed for flag in _FLAG.findall(entry)} | set(FLAGS) - {"--version"})


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the script of a shell, or the flags of a verb."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["flags"]:
        sys.stdout.write("\n".join(flags_of(given[1:])) + "\n")
        return 0
    if given[:1] == ["settings"]:
        settings = import_module("exhibit.evaluation.catalogue").catalogue()
        sys.stdout.write("\n".join(f"{name}=" for name in settings) + "\n")
        return 0
    parser = documented(f"{PROGRAM} completion", __doc__)
    parser.add_argument("shell", choices=list(SCRIPTS))
    sys.stdout.write(SCRIPTS[parser.parse_args(given).shell]())
    return 0
