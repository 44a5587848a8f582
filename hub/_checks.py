"""What is checked before a byte is sent: the bundle, its licence, its card, and who would see it."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path, PureWindowsPath
from typing import Any

from huggingface_hub.utils import get_session, hf_raise_for_status  # type: ignore[attr-defined]

from exhibit.hub._remote import KIND, Hub, State
from exhibit.schemas.bundle import CARD, INFO, TRAIN, read_info, read_questions
from exhibit.schemas.errors import BundleError, ToolkitError
from exhibit.schemas.models import BundleInfo
from exhibit.schemas.validate import validate

_FAULTS_SHOWN = 10  # a screen has no room for more


def check_bundle(root: Path) -> BundleInfo:
    """Return bundle.json of a sound bundle; refuse a broken one and name its first faults."""
    problems = validate(root)
    if not problems:
        return read_info(root / INFO)
    listed = [f"  {problem}" for problem in problems[:_FAULTS_SHOWN]]
    if len(problems) > _FAULTS_SHOWN:
        listed.append(f"  … and {len(problems) - _FAULTS_SHOWN} more: python -m schemas.validate {root}")
    raise BundleError("\n".join([f"{root}: not published, as it breaks {len(problems)} promises:", *listed]))


def check_licence(info: BundleInfo, root: Path, *, rights: bool, corpus: bool) -> None:
    """Refuse to pass on what the source's terms do not let anybody pass on, unless the user has the right to."""
    licence = info.licence
    if licence.redistributable or rights:
        return
    reason = licence.note or "its terms do not say that the documents may be passed on"
    quoted = [len(c.text) for question in read_questions(root / TRAIN) for c in question.contexts if c.text]
    without = (
        "" if corpus else
        f"\n--no-corpus does not help: train.json itself quotes {len(quoted):,} passages ({sum(quoted):,} characters) "
        "of the documents, under the same terms"
    )  # fmt: skip
    raise ToolkitError(
        f"{root}: not published: {info.source.name} is under {licence.name}. {reason}{without}\n"
        "if you have the right to publish it all the same, add --i-have-the-rights"
    )


def check_reviewed(info: BundleInfo, root: Path, *, as_drafted: bool) -> None:
    """Refuse to pass drafted questions off as a benchmark before a person has judged them."""
    if info.draft is None or as_drafted or info.draft.reviewed:
        return
    raise ToolkitError(
        f"{root}: not published: its questions are {info.draft.told(info.counts.questions)}\n"
        "have some judged with exhibit review, or add --as-drafted to publish them as what they are"
    )


def check_card(hub: Hub, card: bytes) -> None:
    """Let the Hub check the card before anything is created or uploaded."""

    def ask() -> dict[str, Any]:
        # not DatasetCard.validate: its older versions ask huggingface.co whatever HF_ENDPOINT says
        body = {"content": card.decode("utf-8"), "repoType": KIND}
        reply = get_session().post(f"{hub.api.endpoint}/api/validate-yaml", json=body)
        if reply.status_code != 400:
            hf_raise_for_status(reply)
        told = reply.json()
        return told if isinstance(told, dict) else {}

    told = hub.ask(ask, doing="checking the card")
    errors = [str(one.get("message")) for one in told.get("errors") or []]
    if errors:
        raise BundleError(f"{CARD}: the Hub does not take this card: {'; '.join(errors)}")
    for one in told.get("warnings") or []:
        hub.say(f"{CARD}: {one.get('message')}")


def check_visibility(hub: Hub, state: State | None, *, private: bool) -> None:
    """Refuse to put what is meant to be private where everybody can see it."""
    if state is not None and private and state.private is False:
        raise ToolkitError(
            f"{hub.repo_id} is public, so nothing was sent: make it private on {hub.url}/settings, choose another "
            "--repo-id, or leave out --private"
        )


_RESERVED = frozenset('<>:"\\|?*')
_DEVICES = frozenset(
    {"con", "prn", "aux", "nul", "conin$", "conout$"}
    | {f"{port}{n}" for port in ("com", "lpt") for n in "123456789¹²³"}
)
_LONGEST_NAME = 255  # of NTFS, in units of UTF-16
_LONGEST_PATH = 200
"""Windows stops at 260 with the folder in front, which is seldom shorter than 60."""


def warnings_for(paths: Iterable[str]) -> list[str]:
    """Return what is wrong with the paths on Windows, or where upper and lower case are one."""
    listed = sorted(paths)
    warnings = [f"{path}: {reason}" for path in listed for reason in _faults(path)]
    alike: dict[str, list[str]] = defaultdict(list)
    for path in listed:
        alike[unicodedata.normalize("NFC", path).casefold()].append(path)
    for same in alike.values():
        if len(same) > 1:
            warnings.append(f"{' and '.join(same)}: one file where upper and lower case are not told apart")
    return warnings


def refused_by_clients(paths: Iterable[str]) -> list[str]:
    """Return the paths that the Hub's clients do not download, on any system: they could lead out of a folder."""
    return sorted(path for path in paths if _leads_out(path))


def _leads_out(path: str) -> bool:
    parts = [PureWindowsPath(part) for part in path.split("/")]
    return ".." in path.replace("\\", "/").split("/") or any(part.drive or part.root for part in parts)


def _faults(path: str) -> Iterator[str]:
    for part in path.split("/"):
        held = sorted({c for c in part if c in _RESERVED or ord(c) < 32})
        if held:
            yield f"Windows allows no {' '.join(c if c.isprintable() else repr(c) for c in held)} in a name"
        if part.partition(".")[0].rstrip(" ").lower() in _DEVICES:
            yield f"{part.partition('.')[0]!r} is a device on Windows"
        if part.endswith((".", " ")):
            yield "Windows drops the dot or space at the end"
        if _units(part) > _LONGEST_NAME:
            yield f"longer than the {_LONGEST_NAME} characters that Windows holds"
    if _units(path) > _LONGEST_PATH:
        yield f"{_units(path)} characters: with a folder in front, more than the 260 that Windows takes by default"


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
