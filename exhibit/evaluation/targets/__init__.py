"""Systems under test: a TOML file in `systems/` or of your own (`--target my-system.toml`), or a Python file here.

Most systems are a TOML file with their request, the paths of answer and passages in the reply, and their interface for
documents (docs/targets.md; `systems/langserve.toml` is short, `systems/nvidia.toml` has documents). Code is needed only
where there is no server: a Python file in this folder is a target when it has

    class MySettings(BaseModel):            # its settings beyond `TargetOptions`; optional
        url: str = Field("", description="the address for questions")
    SETTINGS = MySettings

    def open(argument: str | None, options: TargetOptions, settings: MySettings) -> Target: ...

`url` is then `--set target_url=URL`, the key `target_url` of a config file, and a line of `exhibit settings`. Without
SETTINGS, a target is opened as `open(argument, options)`. `argument` is the part after the colon in `--target
NAME:ARGUMENT`.

The target itself has `probe`, `ingest` and `ask`, which are called in this order for each dataset. Optional are
`forget`, which deletes the documents that `ingest` uploaded, and `text(filename)` and `chunks(filename)`, which return
a document's text and the spans of its chunks.
"""

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from exhibit.evaluation.asking import ask_all as ask_all
from exhibit.evaluation.servers.server import Server
from exhibit.evaluation.servers.system import ServerSettings, list_systems, settings_of
from exhibit.evaluation.target_protocol import NumberedReply as NumberedReply
from exhibit.evaluation.target_protocol import Target as Target
from exhibit.evaluation.target_protocol import TargetOptions as TargetOptions
from exhibit.evaluation.target_protocol import count_only as count_only
from exhibit.runtime.plugins import list_plugins, load_plugin
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import format_faults
from exhibit.schemas.run import Ingestion as Ingestion


def list_targets() -> list[str]:
    """Return the names of all targets: Python plug-ins, and systems that a TOML file of this package describes."""
    return sorted({*list_plugins(__name__), *list_systems()})


def is_system(wanted: str) -> str | None:
    """Return the name or the TOML file of the system that `--target` means; None if it means a Python file."""
    name = wanted if wanted.endswith(".toml") else wanted.partition(":")[0].replace("-", "_")
    return name if wanted.endswith(".toml") or name in list_systems() else None


def open_target(wanted: str, options: TargetOptions, given: Mapping[str, Any] | None = None) -> Target:
    """Open the target that `NAME[:ARGUMENT]` or a TOML file names; `given` are the target's own settings."""
    settings = read_target_settings(wanted, given or {})
    system = is_system(wanted)
    if system is not None:
        address = wanted.removeprefix(system).lstrip(":") or None
        return Server(system, address, options, cast(ServerSettings, settings))
    module, argument = load_plugin(__name__, wanted)
    opened = module.open(argument, options) if settings is None else module.open(argument, options, settings)
    return cast(Target, opened)


def _find_settings_model(wanted: str) -> type[BaseModel] | None:
    system = is_system(wanted)
    if system is not None:
        return settings_of(system)
    if wanted.partition(":")[0].replace("-", "_") not in list_plugins(__name__):
        names = ", ".join(name.replace("_", "-") for name in list_targets() if name != "function")
        raise ToolkitError(
            f"no target {wanted.partition(':')[0]!r}; the targets are {names}, or a file of your own: FILE.toml"
        )
    module, _ = load_plugin(__name__, wanted)
    return cast("type[BaseModel] | None", getattr(module, "SETTINGS", None))


def read_target_settings(wanted: str, given: Mapping[str, Any]) -> BaseModel | None:
    """Return a target's own settings, validated; None if the target has no settings of its own.

    Raise one error that lists all unknown settings or, if all are known, all invalid ones.
    """
    model = _find_settings_model(wanted)
    name = wanted if wanted.endswith(".toml") else wanted.partition(":")[0]
    known = {} if model is None else model.model_fields
    unknown = [f"target_{key}" for key in given if key not in known]
    if unknown:
        there = ", ".join(f"target_{key}" for key in known) or "none"
        raise ToolkitError(f"{', '.join(unknown)}: not a setting of the target {name}; its settings are {there}")
    if model is None:
        return None
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise ToolkitError(format_faults(error, under="target_")) from error


def list_target_settings() -> dict[str, type[BaseModel]]:
    """Return the settings model of each target, by its name."""
    models = {name: _find_settings_model(name) for name in list_targets()}
    return {name: model for name, model in models.items() if model is not None}
