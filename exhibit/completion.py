"""Completion for shells, from the table of verbs: `exhibit completion bash`.

bash:  eval "$(exhibit completion bash)"          in ~/.bashrc
zsh:   eval "$(exhibit completion zsh)"           in ~/.zshrc, after compinit
fish:  exhibit completion fish | source           in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from exhibit.commands import FLAGS, PROGRAM, VERBS
from schemas.plugins import plugin_names

_BASH = """_{program}() {{
  local word verb="" next="" at=0 i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in -*) ;; *) if [ -z "$verb" ]; then verb=${{COMP_WORDS[i]}} at=$i; fi ;; esac
  done
  word=${{COMP_WORDS[COMP_CWORD]}}
  if [ -z "$verb" ]; then next="{verbs} {flags}"
  elif [ "$verb" = convert ] && [ $((at + 1)) -eq "$COMP_CWORD" ]; then next="{converters}"
  elif [ "$verb" = completion ]; then next="{shells}"
  fi
  COMPREPLY=($(compgen -W "$next" -- "$word"))
}}
complete -o default -F _{program} {program}
"""

_ZSH = "autoload -U +X bashcompinit && bashcompinit\n" + _BASH
"""zsh reads bash's own completions, once told to."""


def _bash(template: str) -> str:
    return template.format(
        program=PROGRAM,
        verbs=" ".join(VERBS),
        flags=" ".join(FLAGS),
        converters=" ".join(plugin_names("converters")),
        shells=" ".join(SCRIPTS),
    )


def _fish() -> str:
    none = f"complete -c {PROGRAM} -n __fish_use_subcommand"
    lines = [f"{none} -f -a {name} -d {_quoted(verb.help)}" for name, verb in VERBS.items()]
    lines += [f"complete -c {PROGRAM} -l {flag.removeprefix('--')} -d {_quoted(told)}" for flag, told in FLAGS.items()]
    for verb, words in (("convert", plugin_names("converters")), ("completion", list(SCRIPTS))):
        unnamed = f"__fish_seen_subcommand_from {verb}; and not __fish_seen_subcommand_from {' '.join(words)}"
        lines.append(f"complete -c {PROGRAM} -n {_quoted(unnamed)} -f -a {_quoted(' '.join(words))}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


SCRIPTS = {"bash": lambda: _bash(_BASH), "zsh": lambda: _bash(_ZSH), "fish": _fish}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the script of a shell."""
    parser = argparse.ArgumentParser(
        prog=f"{PROGRAM} completion", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shell", choices=list(SCRIPTS))
    sys.stdout.write(SCRIPTS[parser.parse_args(argv).shell]())
    return 0
