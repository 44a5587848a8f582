"""List every setting of a run, of the pipeline and of a target: its default, its range and its meaning.

examples:
    exhibit settings           all settings
    exhibit settings chunk     the settings with this word in their name or meaning

A setting is given as --set NAME=VALUE, or as a key of a --config file.
"""

import difflib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from pydantic import BaseModel

from exhibit.evaluation.settings import TARGET, Settings
from exhibit.evaluation.targets import list_target_settings
from exhibit.rag.config import PLUGINS, WEIGHT, Config, Weights
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.runtime.plugins import list_plugins
from exhibit.schemas.errors import ToolkitError

RUN, PIPELINE = "run", "pipeline"
_BESIDE = frozenset({"origins", "pipeline", "target_settings"})
"""Fields of a run's settings that are computed and cannot be set by a user."""
_BOUNDS = {
    "minimum": "{} or more",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
}
_WORDS = {"boolean": "true|false", "integer": "a whole number", "number": "a number", "array": "JSON", "object": "JSON"}


class Setting(NamedTuple):
    """A setting in the list that `exhibit settings` prints: its name, default, allowed values and meaning."""

    name: str
    group: str
    """`run`, `pipeline`, or the targets that have the setting."""
    default: str
    values: str
    """The allowed values, in words."""
    meaning: str
    many: bool = False
    """Whether the setting can be given several times."""
    switch: bool = False
    """Whether the setting is a switch, on or off."""


@cache
def list_settings() -> dict[str, Setting]:
    """Return the settings of runs, of the built-in pipeline and of targets, by name, in the order of the help."""
    listed = [one for one in _list_model_settings(Settings, RUN) if one.name not in _BESIDE]
    listed += [one for one in _list_model_settings(Config, PIPELINE) if one.name != "weights"]
    listed += [*_list_model_settings(Weights, PIPELINE, WEIGHT), *_list_target_settings()]
    settings: dict[str, Setting] = {}
    for one in listed:
        settings.setdefault(one.name, one)  # a run's own setting wins over the pipeline's of the same name
    return settings


def _list_target_settings() -> Iterator[Setting]:
    owners: dict[str, list[str]] = {}
    known: dict[str, Setting] = {}
    for target, model in list_target_settings().items():
        for one in _list_model_settings(model, "target", TARGET):
            known.setdefault(one.name, one)
            owners.setdefault(one.name, []).append(target)
    for name in sorted(known, key=lambda name: owners[name]):
        yield known[name]._replace(group=f"target {', '.join(owners[name])}")


def _list_model_settings(model: type[BaseModel], group: str, prefix: str = "") -> Iterator[Setting]:
    """Yield the settings of a pydantic model, read from its JSON Schema."""
    for name, schema in model.model_json_schema()["properties"].items():
        kinds = [kind for kind in schema.get("anyOf", [schema]) if kind.get("type") != "null"]
        meaning, default = schema.get("description", ""), schema.get("default")
        listed = any(kind.get("type") in ("array", "object") for kind in kinds)
        many, switch = listed and (group == RUN or "repeat" in meaning), kinds[0].get("type") == "boolean"
        shown = str(default).lower() if switch else "none" if default in (None, "", [], {}) else str(default)
        values = (
            "may be repeated"
            if many
            else ", ".join(dict.fromkeys(word for kind in kinds for word in _describe_type(kind)))
        )
        if name in PLUGINS:
            values = ", ".join(part.replace("_", "-") for part in list_plugins(PLUGINS[name]))
        yield Setting(prefix + name, group, shown, values, meaning, many, switch)


def _describe_type(kind: dict[str, Any]) -> Iterator[str]:
    choices = kind.get("enum") or [kind["const"]] if "enum" in kind or "const" in kind else []
    yield "|".join(str(one) for one in choices if one != "") or _WORDS.get(kind.get("type", ""), "text")
    yield from (text.format(f"{kind[bound]:g}") for bound, text in _BOUNDS.items() if bound in kind)


# ---------------------------------------------------------------- the command line


def parse_set(pairs: Sequence[str]) -> dict[str, Any]:
    """Return the settings that the `--set NAME=VALUE` flags give; raise an error for an unknown name."""
    given: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not sign:
            raise ToolkitError(f"--set {pair}: write NAME=VALUE, such as --set chunk_size=300")
        known = list_settings().get(name)
        if known is None and not name.startswith(TARGET):  # a user's own target file may define more settings
            near = difflib.get_close_matches(name, list_settings(), n=1)
            meant = f" (did you mean {near[0]}?)" if near else ""
            raise ToolkitError(f"--set {pair}: no setting {name!r}{meant}; `exhibit settings` lists all settings")
        if known and known.many:
            given.setdefault(name, []).append(value)
        else:
            given[name] = value
    return given


_NOW = {
    "--skip-ingestion": ("--ingest", "never"),
    "--force-ingestion": ("--ingest", "fresh"),
    "--all": ("--by", "source_type"),
}
"""Flags without a value that other tools have, each with our equivalent."""
_TRUTHS = frozenset({"true", "false", "on", "off", "yes", "no", "1", "0"})


def translate_flags(argv: Sequence[str], known: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Return a command line with Exhibit's flags in place of other tools' flags and of settings written as flags.

    `say` reports each replacement, such as `--chunk-size is now --set chunk_size=300`.
    """
    words: list[str] = []
    left = list(argv)
    while left:
        word = left.pop(0)
        flag, sign, value = word.partition("=")
        if word == "--":
            return [*words, word, *left]
        if not flag.startswith("--") or flag in known:
            words.append(word)
            continue
        now = list(_NOW.get(flag, ()))
        setting = list_settings().get(flag.removeprefix("--").replace("-", "_"))
        if flag == "--source-type":
            now = ["--where", f"source_type={value if sign else left.pop(0) if left else ''}"]
        elif setting is not None and not now:
            if not sign:
                bare = setting.switch and (not left or left[0].lower() not in _TRUTHS)
                value = "true" if bare else left.pop(0) if left else ""
            now = ["--set", f"{setting.name}={value}"]
        if now:
            say(f"{flag} is now {' '.join(now)}")
        words += now or [word]
    return words


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print all settings, or those that match a word, as text or JSON."""
    parser = build_parser("exhibit settings", __doc__)
    parser.add_argument(
        "word", nargs="?", default="", metavar="WORD", help="list only settings with this word in their name or meaning"
    )
    add_json(parser)
    options = parser.parse_args(argv)
    word = options.word.lower().replace("-", "_")
    chosen = [one for one in list_settings().values() if word in " ".join((one.name, one.group, one.meaning)).lower()]
    if not chosen:
        near = difflib.get_close_matches(word, list_settings(), n=3)
        raise ToolkitError(f"no setting matches {options.word!r}; similar names: {', '.join(near) or 'none'}")
    print_results([one._asdict() for one in chosen], "\n".join(_format_settings(chosen)), as_json=options.json)
    return 0


def _format_settings(settings: Sequence[Setting]) -> Iterator[str]:
    width = max(len(one.name) for one in settings)
    group = ""
    for one in settings:
        if one.group != group:
            yield from ([""] if group else [])
            group = one.group
            yield f"{group}:"
        yield f"  {one.name:<{width}}  {one.meaning} ({one.values}; default {one.default})"
