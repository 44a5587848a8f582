"""What a server can be told, and how that is read: its address, its key, its headers, its own settings."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field, field_validator

from exhibit.schemas.errors import ToolkitError

WAIT = 3600.0
"""Seconds that a system may take over a corpus: hundreds of contracts are read, split and embedded in that time."""


class ServerSettings(BaseModel):
    """What every server can be told."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str = Field("", description="the server's address")
    key: str | None = Field(None, description="VARIABLE of the environment that holds the server's API key")
    header: dict[str, str] = Field({}, description="NAME=VARIABLE: a header, from the environment; repeat")
    parameters: dict[str, Any] = Field({}, description="JSON for the system's own settings, sent with every question")

    @field_validator("header", mode="before")
    @classmethod
    def _variables(cls, value: Any) -> Any:
        return (
            dict(map(_pair, [value] if isinstance(value, str) else value)) if not isinstance(value, Mapping) else value
        )

    @field_validator("parameters", mode="before")
    @classmethod
    def _template(cls, value: Any) -> Any:
        return read_template(value) if isinstance(value, str) else value


class CorpusSettings(ServerSettings):
    """What a server that takes documents can be told."""

    collection: str = Field("", description="the system's name for the documents (default: the dataset's)")
    ingest_timeout: float = Field(WAIT, gt=0, description="seconds until --ingest must have every file in")


def _pair(told: Any) -> tuple[str, str]:
    name, sign, variable = str(told).partition("=")
    if not sign or not name.strip():
        raise ValueError(f"{told!r} is not NAME=VARIABLE, such as Authorization=TOKEN")
    return name.strip(), variable.strip()


def read_template(value: str) -> Any:
    """Return JSON that is given as such, or as the name of a file with it."""
    text = value
    if not value.lstrip().startswith(("{", "[")):
        try:
            text = Path(value).read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{value}: cannot be read: {error.strerror}; give JSON, or a file with it") from error
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error


def parse_url(address: str, example: str) -> httpx.URL:
    """Return an address; raise one that is none."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise ToolkitError(f"--target-url {address!r} is not an address; it looks like {example}")
    return url


def headers_of(variables: Mapping[str, str]) -> dict[str, str]:
    """Return headers with their values from the environment; raise an error that names the variables, never a value."""
    missing = [variable for variable in variables.values() if variable not in os.environ]
    if missing:
        raise ToolkitError(f"--target-header: the environment has no {', '.join(sorted(missing))}")
    values = {name: os.environ[variable] for name, variable in variables.items()}
    odd = [variables[name] for name, value in values.items() if not (value.isprintable() and value.isascii())]
    if odd:
        raise ToolkitError(f"--target-header: {', '.join(sorted(set(odd)))} cannot be sent: not printable ASCII")
    return values
