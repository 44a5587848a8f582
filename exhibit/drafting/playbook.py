"""Playbooks: the questions that a reviewer asks about a kind of document, in TOML files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from exhibit.law.profile import AGREED, Profile
from exhibit.models.network import read_record
from exhibit.models.reader import KINDS
from exhibit.schemas.errors import SourceError
from exhibit.schemas.parsing import LARGEST_FILE, format_faults, parse_toml, read_text

SHIPPED = Path(__file__).parent / "playbooks"

SURE, ABSENT = 0.85, 0.1  # Default thresholds, chosen with contracts of CUAD (bench/results/models.md)

Words = Annotated[str, Field(pattern=r"\S", max_length=400)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PlaybookQuestion(_Model):
    name: Words
    ask: Words
    seek: Words | None = None  # The wording for the models, if the wording for people is not precise enough
    trained: str = ""  # a wording in the reader's training data, such as `maud/No-Shop`, that replaces `seek`

    @property
    def wordings(self) -> list[str]:
        """The question's wordings for the models, the most precise wording first."""
        return [self.seek, self.ask] if self.seek else [self.ask]


class Playbook(_Model):
    """A set of questions for certain kinds of documents."""

    name: str
    title: Words
    kinds: Annotated[list[Words], Field(min_length=1)]
    """The kinds of documents, as `exhibit index --inspect` names them: contract, nda, merger agreement, privacy policy,
    rules …
    """
    words: list[Words] = []  # The title must contain at least one of these words, unless the list is empty
    sure: Annotated[float, Field(ge=0, le=1)] = SURE
    absent: Annotated[float, Field(ge=0, le=1)] = ABSENT
    """The thresholds, which depend on the kind of document: the confidence above which an answer is certain (`sure`),
    and the confidence below which an absence is certain (`absent`).
    """
    again: bool = True  # whether a reranker checks apparent absences, which is unnecessary for some kinds
    trained: str = ""  # dataset of the reader's training data whose wording for its name is each question's `seek`
    questions: Annotated[list[PlaybookQuestion], Field(min_length=1)]

    @model_validator(mode="after")
    def _names_are_unique(self) -> Playbook:
        names = [question.name for question in self.questions]
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"several questions have the same name ({', '.join(sorted(twice))}); rename them")
        return self

    def applies_to(self, profile: Profile) -> bool:
        """Return whether the playbook's questions suit a document."""
        title = profile.title.casefold()
        named = not self.words or any(word.casefold() in title for word in self.words)
        return profile.kind in self.kinds and named


def read_playbook(path: Path) -> Playbook:
    """Return a playbook from its file; raise an error that names its first fault."""
    try:
        content = parse_toml(read_text(path, error=SourceError, most=LARGEST_FILE), where=path, error=SourceError)
        playbook = Playbook.model_validate({**content, "name": path.stem.replace("_", "-")})
    except ValidationError as error:
        fault = format_faults(error, most=1)
        raise SourceError(f"{path}: {fault}; docs/draft.md shows the form of a playbook") from error
    wordings = {name.lower(): wording for name, wording in read_record(KINDS)["kinds"].items()}
    questions = []
    for question in playbook.questions:
        seek = wordings.get(f"{playbook.trained}/{question.name}", question.seek)
        if question.trained and not (seek := wordings.get(question.trained.lower())):
            raise SourceError(f"{path}: {question.name}: unknown wording {question.trained!r}; correct `trained`")
        capital = seek[:1].upper() + seek[1:] if seek and question.trained else seek
        questions.append(question.model_copy(update={"seek": capital}))
    return playbook.model_copy(update={"questions": questions})


def find_playbooks(names: Sequence[str] = ()) -> list[Playbook]:
    """Return the playbooks with the given names or files; without names, all playbooks of the package."""
    shipped = {path.stem.replace("_", "-"): path for path in sorted(SHIPPED.glob("*.toml"))}
    for name in names:
        if name not in shipped and not name.endswith(".toml"):
            raise SourceError(f"no playbook {name!r}; choose one of {', '.join(shipped)}, or a file FILE.toml")
    return [read_playbook(shipped.get(name, Path(name))) for name in names or shipped]


_OPERATIVE = re.compile(
    r"\b(?:shall|hereby|hereunder|hereof|agrees?|undertakes?|covenants?|whereas|part(?:y|ies)|governed by|means"
    r"|agreement is (?:made|entered))\b",
    re.IGNORECASE,
)
_MIN_OPERATIVE_WORDS, _MAX_NOTE_CHARS = 2, 1500
"""A text of at most this many characters needs at least this many words of obligation to be an agreement."""
_MAIL = re.compile(r"\s*(?:(?:from|to|cc|sent|date|subject):[^\n]*\n\s*){2}", re.IGNORECASE)
"""Matches the head of a mail, which may be about an agreement but is not an agreement."""


def only_mentions_agreement(profile: Profile, text: str) -> bool:
    """Return whether a text that is titled as an agreement is in fact only an e-mail or a note about one."""
    binding = len(text) > _MAX_NOTE_CHARS or len(_OPERATIVE.findall(text)) >= _MIN_OPERATIVE_WORDS
    return profile.kind in AGREED and (not binding or _MAIL.match(text) is not None)


def choose_playbook(playbooks: Sequence[Playbook], profile: Profile, text: str | None = None) -> Playbook | None:
    """Return the playbook for a document; None if no playbook applies."""
    if text is not None and only_mentions_agreement(profile, text):
        return None
    fitting = [playbook for playbook in playbooks if playbook.applies_to(profile)]
    return min(fitting, key=lambda playbook: not playbook.words, default=None)
