"""Every setting of a run, of the pipeline and of a target: its default, its range and what it means.

examples:
    exhibit settings           all of them
    exhibit settings chunk     those whose name or meaning has the word

Each is given as --set NAME=VALUE, or as a key of a --config file.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from exhibit.evaluation.settings import TARGET, Settings
from exhibit.evaluation.targets import target_settings
from exhibit.rag.config import PLUGINS, WEIGHT, Config, Weights
from exhibit.schemas.command import add_json, documented, guarded, print_results
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.plugins import plugin_names

RUN, PIPELINE = "run", "pipeline"
_BESIDE = frozenset({"origins", "pipeline", "target_settings"})
"""Fields of a run's settings that are made, not given."""
_BOUNDS = {"ge": "{} or more", "gt": "above {}", "le": "at most {}", "lt": "below {}"}


class Setting(NamedTuple):
    """A setting as a user sees it."""

    name: str
    group: str
    """`run`, `pipeline`, or the targets that have it."""
    default: str
    values: str
    """What it may be, in words."""
    meaning: str
    many: bool = False
    """Whether it can be given several times."""
    switch: bool = False
    """Whether it is on or off."""


@cache
def catalogue() -> dict[str, Setting]:
    """Return every setting by its name, in the order in which help lists them."""
    listed = [_setting(name, RUN, told) for name, told in Settings.model_fields.items() if name not in _BESIDE]
    listed += [_setting(name, PIPELINE, told) for name, told in Config.model_fields.items() if name != "weights"]
    listed += [_setting(WEIGHT + name, PIPELINE, told) for name, told in Weights.model_fields.items()]
    listed += list(_of_targets())
    settings: dict[str, Setting] = {}
    for one in listed:
        settings.setdefault(one.name, one)  # a run's own comes before the pipeline's of the same name
    return settings


def _of_targets() -> Iterator[Setting]:
    fields: dict[str, FieldInfo] = {}
    owners: dict[str, list[str]] = {}
    models: dict[str, type[BaseModel]] = target_settings()
    for target, model in models.items():
        for name, told in model.model_fields.items():
            fields.setdefault(name, told)
            owners.setdefault(name, []).append(target)
    for name in sorted(fields, key=lambda name: owners[name]):
        yield _setting(TARGET + name, f"target {', '.join(owners[name])}", fields[name])


def _setting(name: str, group: str, told: FieldInfo) -> Setting:
    default = told.get_default(call_default_factory=True)
    plain = [kind for kind in _kinds(told.annotation) if kind is not type(None)]
    listed = any(get_origin(kind) in (dict, list, tuple) for kind in plain)
    meaning = told.description or ""
    many = listed and (group == RUN or "repeat" in meaning)
    shown = "none" if default in (None, "", (), [], {}) else str(default)
    shown = str(default).lower() if plain == [bool] else shown
    return Setting(name, group, shown, _values(name, told, plain, many), meaning, many, plain == [bool])


def _kinds(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _values(name: str, told: FieldInfo, kinds: Sequence[Any], many: bool) -> str:
    if name in PLUGINS:
        return ", ".join(part.replace("_", "-") for part in plugin_names(PLUGINS[name]))
    metadata = [*told.metadata, *(one for kind in kinds for one in getattr(kind, "__metadata__", ()))]
    bases = [get_args(kind)[0] if hasattr(kind, "__metadata__") else kind for kind in kinds]
    words = ["may be repeated" if many else _word(base) for base in bases]
    metadata = [inner for one in metadata for inner in (one, *getattr(one, "metadata", ()))]
    for bound, text in _BOUNDS.items():
        words += [text.format(f"{getattr(one, bound):g}") for one in metadata if getattr(one, bound, None) is not None]
    return ", ".join(dict.fromkeys(filter(None, words)))


def _word(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return "|".join(str(one) for one in get_args(kind) if one != "")
    if get_origin(kind) in (dict, list, tuple):
        return "JSON"
    return {bool: "true|false", int: "a whole number", float: "a number"}.get(kind, "text")


# ---------------------------------------------------------------- the command line


def parse_set(pairs: Sequence[str]) -> dict[str, Any]:
    """Return what several `--set NAME=VALUE` say; one that is not known is an error that names the nearest."""
    told: dict[str, Any] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not sign:
            raise ToolkitError(f"--set {pair}: write NAME=VALUE, such as --set size=300")
        known = catalogue().get(name)
        if known is None and not name.startswith(TARGET):  # a user's own target file has settings of its own
            near = difflib.get_close_matches(name, catalogue(), n=1)
            meant = f"; did you mean {near[0]}?" if near else ""
            raise ToolkitError(f"--set {pair}: no setting {name!r}{meant} exhibit settings lists them")
        if known and known.many:
            told.setdefault(name, []).append(value)
        else:
            told[name] = value
    return told


_NOW = {
    "--skip-ingestion": ("--ingest", "never"),
    "--force-ingestion": ("--ingest", "fresh"),
    "--all": ("--by", "source_type"),
}
"""Flags of earlier versions without a value, and what says the same."""
_TRUTHS = frozenset({"true", "false", "on", "off", "yes", "no", "1", "0"})


def modern(argv: Sequence[str], known: Sequence[str], say: Callable[[str], None]) -> list[str]:
    """Return a command line in which flags of earlier versions are written as they are now, after saying how."""
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
        setting = catalogue().get(flag.removeprefix("--").replace("-", "_"))
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
    """Print the settings, those that a word is about, or as JSON."""
    parser = documented("exhibit settings", __doc__)
    parser.add_argument("word", nargs="?", default="", metavar="WORD", help="only settings about this")
    add_json(parser)
    options = parser.parse_args(argv)
    word = options.word.lower().replace("-", "_")
    chosen = [one for one in catalogue().values() if word in " ".join((one.name, one.group, one.meaning)).lower()]
    if not chosen:
        near = difflib.get_close_matches(word, catalogue(), n=3)
        raise ToolkitError(f"no setting about {options.word!r}; near it are {', '.join(near) or 'none'}")
    print_results([one._asdict() for one in chosen], "\n".join(_lines(chosen)), as_json=options.json)
    return 0


def _lines(settings: Sequence[Setting]) -> Iterator[str]:
    width = max(len(one.name) for one in settings)
    group = ""
    for one in settings:
        if one.group != group:
            yield from ([""] if group else [])
            group = one.group
            yield f"{group}:"
        yield f"  {one.name:<{width}}  {one.meaning} ({one.values}; default {one.default})"
