"""The references of a run's answers, looked up and written down."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.cases import Case
from evaluation.officials.register import Checked, Register
from law.references import Reference, references
from storage.whole import write_whole

REFERENCES = "references.jsonl"
"""One line for each reference of each answer."""


def check_replies(
    cases: Sequence[Case], register: Register, *, label: str, say: Callable[[str], None]
) -> dict[Reference, Checked]:
    """Return what became of every reference that an answer gives, and say in a line what could not be decided."""
    found = [reference for case in cases for reference in given(case)]
    checks = register.check_all(found, label=f"{label}: references checked")
    counts = Counter(one.outcome for one in checks.values())
    away = dict.fromkeys(one.detail for one in checks.values() if one.outcome == "unreachable")
    if away:
        say(f"{label}: {counts['unreachable']} of {len(checks)} references not checked: {'; '.join(away)}")
    return checks


def given(case: Case) -> list[Reference]:
    """Return the references of an answer, each once; "the Act" may be the question's."""
    if case.reply.error:
        return []
    return list(dict.fromkeys(references(case.reply.answer or "", context=case.question)))


def write_checks(path: Path, cases: Sequence[Case], checks: Mapping[Reference, Checked]) -> None:
    """Write each answer's references with what became of them."""
    lines = [_line(case, one, checks[one]) for case in cases for one in given(case) if one in checks]
    write_whole(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))


def _line(case: Case, reference: Reference, checked: Checked) -> dict[str, Any]:
    return {"id": case.id, "reference": str(reference), "kind": reference.kind, **checked._asdict()}
