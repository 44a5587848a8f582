"""The lines that load a dataset: in the card under the repository's own name, and on the screen."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import huggingface_hub

from exhibit.schemas.bundle import CARD, CORPUS
from exhibit.schemas.errors import BundleError

PLACEHOLDER = "PATH_OR_REPO"
"""What a card says where a folder or a repository is loaded; a bundle does not know where it will be published."""

_DOCUMENTS = ("<!-- documents -->\n", "<!-- /documents -->\n")
"""What a card shows of the documents themselves stands between these marks, which a reader does not see."""
_CORPUS_CONFIG = re.compile(rf"^- config_name: {CORPUS}\n(?:[ ].*\n)*", re.MULTILINE)
_LOADED = re.compile(r'load_dataset\("([^"\n]+)"')


def addressed(card: bytes, repo_id: str) -> bytes:
    """Return the card with the repository's name for the placeholder, in a way that can be undone; else unchanged."""
    named = card.replace(_quoted(PLACEHOLDER), _quoted(repo_id))
    undone = named.replace(_quoted(repo_id), _quoted(PLACEHOLDER))
    return named if undone == card else card


def unaddressed(card: bytes, sha256: str) -> bytes | None:
    """Return the card as the bundle records it, whatever name it was published under; None when it is another."""
    names = dict.fromkeys(_LOADED.findall(card.decode("utf-8", "replace")))
    for candidate in [card, *(card.replace(_quoted(name), _quoted(PLACEHOLDER)) for name in names)]:
        if hashlib.sha256(candidate).hexdigest() == sha256:
            return candidate
    return None


def without_documents(card: bytes) -> bytes:
    """Return the card of a bundle whose documents stay at home: no config, picture or example shows one."""
    text = _CORPUS_CONFIG.sub("", _without_documents(card.decode("utf-8")))
    note = "The documents are not in this repository; the command under *How it was made* gives them."
    return re.sub(r"^# .*\n", lambda title: f"{title[0]}\n{note}\n", text, count=1, flags=re.MULTILINE).encode()


def corpus_patterns(card: bytes) -> list[str]:
    """Return patterns of the files that hold the documents a second time: those of the card's config `corpus`."""
    configs = [one for one in metadata_of(card).get("configs") or [] if one["config_name"] == CORPUS]
    return [str(file["path"]) for config in configs for file in config["data_files"]]


def metadata_of(card: bytes) -> dict[str, Any]:
    """Return the card's YAML head."""
    try:
        return dict(huggingface_hub.DatasetCard(card.decode("utf-8")).data.to_dict())  # type: ignore[no-untyped-call]
    except Exception as error:
        # the YAML library is the Hub client's own choice, and so are its errors
        raise BundleError(f"{CARD}: its head is no YAML: {' '.join(str(error).split())}") from error


def load_lines(metadata: Mapping[str, Any], repo_id: str, revision: str | None) -> list[str]:
    """Return one `load_dataset` call for each config of the card, the default first."""
    ordered = sorted(metadata.get("configs") or [], key=lambda config: not config.get("default"))
    tail = f', revision="{revision}")' if revision else ")"
    return [f'load_dataset("{repo_id}", "{config["config_name"]}", split="train"{tail}' for config in ordered]


def _quoted(name: str) -> bytes:
    return f'"{name}"'.encode()


def _without_documents(card: str) -> str:
    begin, end = _DOCUMENTS
    kept, *shown = card.split(begin)
    for part in shown:
        inside, mark, rest = part.partition(end)
        kept += rest.removeprefix("\n") if mark else begin + inside
    return kept
