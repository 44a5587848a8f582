"""Whether a cluster's machines see what this one sees: documents that only it has are refused before any work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from exhibit.schemas.errors import ServiceError

_DEEP = 4
"""How far inside an item its paths may stand."""
_PATIENCE = 120.0
"""Seconds that the machines may take to look; one that is busy is not blind, and is not waited for."""


def check_seen(item: Any, function: Any, address: str) -> None:
    """Raise where a machine of the cluster does not have a file or folder that an item or its function names."""
    paths = sorted({str(path.absolute()) for one in (item, function) for path in paths_in(one)})
    if not paths:
        return
    nodes = {node["NodeID"]: str(node["NodeManagerHostname"]) for node in ray.nodes() if node["Alive"]}
    look = ray.remote(unseen)
    refs = {}
    for node, name in nodes.items():
        there = NodeAffinitySchedulingStrategy(node, soft=False)
        refs[look.options(num_cpus=0, max_retries=0, scheduling_strategy=there).remote(paths)] = name
    ready, _ = ray.wait(list(refs), num_returns=len(refs), timeout=_PATIENCE)
    blind = [(refs[ref], missing) for ref in ready if (missing := _answer(ref))]
    if blind:
        name, missing = blind[0]
        raise ServiceError(
            f"--engine ray:{address}: {len(blind)} of {len(nodes)} machines do not see {missing[0]} ({name}); "
            "put the documents on a disk that all of them have under the same path, or give them as an s3:// URL"
        )


def _answer(ref: Any) -> list[str]:
    try:
        missing: list[str] = ray.get(ref)
    except ray.exceptions.RayError:
        return []  # the machine is gone: others do its work
    return missing


def unseen(paths: list[str]) -> list[str]:
    """Return the paths that are not there; runs on each machine."""
    return [path for path in paths if not Path(path).exists()]


def paths_in(value: Any, deep: int = _DEEP) -> Iterator[Path]:
    """Yield the paths inside a value that lead somewhere on this machine; of a file to be, its folder."""
    if isinstance(value, Path):
        existing = next((one for one in (value, value.parent) if one.exists()), None)
        if existing is not None:
            yield existing
        return
    inside: Any = ()
    if deep and is_dataclass(value) and not isinstance(value, type):
        inside = [getattr(value, field.name) for field in fields(value)]
    elif deep and isinstance(value, list | tuple):
        inside = value
    elif deep and isinstance(value, Mapping):
        inside = value.values()
    for one in inside:
        yield from paths_in(one, deep - 1)
