"""Statutes in several versions: the sample's bundle, its questions, and Git repositories as sources."""

import json
import subprocess
from argparse import Namespace
from datetime import date
from pathlib import Path

import pytest

from exhibit.converters import Benchmark, Tally, statutes
from exhibit.converters.statutes import Law, Version, read_law, read_versions
from exhibit.schemas.errors import SourceError
from tests.conftest import Convert
from tests.converters.account import account_of


def read(source: Path, *, since: str | None = None, as_of: str | None = None, questions: int = 6) -> Benchmark:
    return statutes.read(source, Namespace(**{"from": since}, as_of=as_of, questions=questions), Tally())


def parse(markdown: str) -> Law:
    return read_law(Version("law", markdown, "law.md"))


def test_statutes_sample_converts_to_a_bundle_with_exact_gold_only(converted: Convert, golden):
    bundle = converted("statutes")
    golden("statutes/account.json", account_of(bundle))
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    assert info["counts"]["located"]["exact"] == info["counts"]["contexts"] > 30
    days = {document["filename"]: document["labels"] for document in info["documents"]}
    first = {"law": "pristavni-zakon", "effective_from": "2019-07-01", "effective_to": "2022-12-31"}
    assert days["pristavni-zakon_2019-07-01.pdf"] == first
    gold = [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    kinds = {"says", "said", "governs", "changed", "leads", "repealed", "before"}
    assert {line["labels"]["kind"] for line in gold} == kinds
    card = (bundle / "README.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in card for kind in kinds)


def test_statutes_converter_selects_versions_by_date(samples: Path):
    source = samples / "statutes"
    names = [document.filename for document in read(source, as_of="2020-05-01").documents]
    assert names == ["poplatkova-vyhlaska_2020-01-01.pdf", "pristavni-zakon_2019-07-01.pdf"]
    assert len(read(source, since="2023-01-01").documents) == 2
    with pytest.raises(SourceError, match="none of its 3 versions was in force at the dates of --from and --as-of"):
        read(source, as_of="1990-01-01")


def git(folder: Path, *arguments: str, day: str = "2000-01-01") -> None:
    env = {
        "GIT_AUTHOR_DATE": f"{day}T12:00:00Z", "GIT_COMMITTER_DATE": "2024-01-01T12:00:00Z", "HOME": str(folder),
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
        "PATH": "/usr/bin:/bin:/usr/local/bin",
    }  # fmt: skip
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, env=env)


def test_read_versions_reads_laws_of_normal_and_bare_git_repositories(samples: Path, tmp_path: Path):
    clone = tmp_path / "laws"
    clone.mkdir()
    git(clone, "init", "-q")
    for day in ("2019-07-01", "2023-01-01"):
        words = (samples / "statutes" / "pristavni-zakon" / f"{day}.md").read_text(encoding="utf-8")
        header = "\n".join(line for line in words.split("\n") if not line.startswith("effectiveness_date"))
        (clone / "pristavni-zakon.md").write_text(header, encoding="utf-8")
        (clone / "README.md").write_text(f"as of {day}", encoding="utf-8")
        git(clone, "add", "-A")
        git(clone, "commit", "-qm", day, day=day)
    git(tmp_path, "clone", "-q", "--bare", str(clone), str(tmp_path / "bare.git"))
    for source in (clone, tmp_path / "bare.git"):
        versions = read_versions(source, Tally(strict=True))
        assert [(version.law, version.start, version.end) for version in versions] == [
            ("pristavni-zakon", date(2019, 7, 1), date(2022, 12, 31)),
            ("pristavni-zakon", date(2023, 1, 1), None),
        ]
    assert [row.question for row in read(clone).rows] == [row.question for row in read(tmp_path / "bare.git").rows]


def test_read_law_reads_german_titles_and_empty_repealed_paragraphs():
    law = parse(
        "---\nTitle: Hafengesetz\njurabk: HafG\n---\n# Hafengesetz (HafG)\n\n## Abschnitt 1 - Allgemeines\n\n"
        "### § 1 Begriff\n\n(1) Ein Hafen ist\nein Ort für Schiffe.\n\n### § 2 (weggefallen)\n\n"
        "### (XXXX) §§ 3 bis 6 (weggefallen)\n"
    )
    assert [(p.label, p.title, p.words) for p in law.paragraphs] == [
        ("§ 1", "Begriff", "(1) Ein Hafen ist ein Ort für Schiffe."),
        ("§ 2", "(weggefallen)", ""),
    ]


def test_statutes_sample_questions_match_golden_rows(samples: Path, golden):
    lines = [f"{most}: {[row.id for row in read(samples / 'statutes', questions=most).rows]}\n" for most in (1, 2, 4)]
    for row in read(samples / "statutes", questions=50).rows:
        labels = {name: value for name, value in row.labels.items() if name not in ("language", "question_language")}
        gold = [[*quote.spans[0], *dict(quote.labels).values()] for quote in row.quotes]
        values = [row.id, row.question, row.answer, row.filename, list(labels.values()), gold]
        lines.append(json.dumps(values, ensure_ascii=False) + "\n")
    golden("statutes/rows.jsonl", "".join(lines))


LAW = """---
title: "Zákon o molech"
country: cz
---
# Zákon o přístavech

## ČÁST PRVNÍ

### HLAVA I

#### Díl 1

Pododdíl 1

##### § 1

###### Předmět úpravy

(1) Zákon upravuje **provoz** přístavů.

- a) a lodí
- b) a mol

##### § 2 Pojmy

| Loď | plavidlo |
|-----|----------|
| Molo | stavba |

#### Díl 2

Společná ustanovení

##### § 3

[image omitted]
Pro účely zákona.

## ČÁST DRUHÁ

### Čl. II

##### § 4 Vložený

Text.

### Čl. III

Účinnost.
"""


def test_read_law_reads_the_structure_of_a_czech_law():
    law = parse(LAW)
    assert (law.title, law.system.language, law.fields["title"]) == ("Zákon o přístavech", "cs", "Zákon o molech")
    assert [(p.label, p.title, p.quoted, p.words) for p in law.paragraphs] == [
        ("§ 1", "Předmět úpravy", False, "(1) Zákon upravuje provoz přístavů. a) a lodí b) a mol"),
        ("§ 2", "Pojmy", False, "Loď; plavidlo Molo; stavba"),
        ("§ 3", "", False, "Pro účely zákona."),
        ("Čl. II", "", False, ""),
        ("§ 4", "Vložený", True, "Text."),
        ("Čl. III", "", False, "Účinnost."),
    ]
    assert [law.text[p.start : p.end].partition("\n")[0] for p in law.paragraphs] == [
        "§ 1", "§ 2 Pojmy", "§ 3", "Čl. II", "§ 4 Vložený", "Čl. III",
    ]  # fmt: skip
    assert parse("# A\n\nb").title == "A" and parse("---\nTitle: C\n---\nb").title == "C"


def test_version_of_a_law_ends_the_day_before_the_next_version_begins(tmp_path: Path):
    for name, text in {
        "mola/2020-01-01.md": "first",
        "mola/2021-03-01.md": "second",
        "vyhlaska.md": "effective_date: 2019-05-05\n",
        "bez data.md": "nothing",
        "README.md": "no law",
        "2018-01-01.md": "a date at the top is no law's folder",
        "pozdni.md": "x" * 3983 + "\neffective_date: 2019-05-05\n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    versions = {(v.law, v.start): v.end for v in read_versions(tmp_path, Tally(strict=True))}
    assert versions == {
        ("mola", date(2020, 1, 1)): date(2021, 2, 28),
        ("mola", date(2021, 3, 1)): None,
        ("vyhlaska", date(2019, 5, 5)): None,
        ("bez data", None): None,
        ("2018-01-01", date(2018, 1, 1)): None,
        ("pozdni", None): None,
    }
    for day, laws in {"2021-02-28": ["mola"], "2021-03-01": ["mola"], "2019-12-31": []}.items():
        kept = read_versions(tmp_path, Tally(strict=True), as_of=date.fromisoformat(day))
        assert [v.law for v in kept if v.law == "mola"] == laws and "bez data" in {v.law for v in kept}
    for day, number in {"2021-02-28": 2, "2021-03-01": 1}.items():
        kept = read_versions(tmp_path, Tally(strict=True), since=date.fromisoformat(day))
        assert len([version for version in kept if version.law == "mola"]) == number
    (tmp_path / "mola" / "2021-02-30.md").write_text("no day", encoding="utf-8")
    tally = Tally()
    assert len(read_versions(tmp_path, tally)) == len(versions)
    assert tally.left_out == {"the date in its name or header does not exist": ["mola/2021-02-30.md"]}
