"""Statutes in several versions: the bundle of the sample, kinds of questions, and a Git repository as source."""

from __future__ import annotations

import json
import os
import subprocess
from argparse import Namespace
from datetime import date
from pathlib import Path

import pytest

from exhibit.converters import Benchmark, Tally, statutes
from exhibit.converters.raw.law_files import read_versions
from exhibit.converters.raw.laws import read_law, wrap_paragraph
from exhibit.schemas.errors import SourceError
from tests.conftest import Convert
from tests.converters.account import account_of


def read(
    source: Path, *, since: str | None = None, as_of: str | None = None, questions: int = 6, ask_in: str | None = None
) -> Benchmark:
    return statutes.read(source, Namespace(since=since, as_of=as_of, questions=questions, ask_in=ask_in), Tally())


def test_the_sample_becomes_a_bundle_all_of_whose_gold_is_exact(converted: Convert, golden):
    bundle = converted("statutes")
    golden("statutes/account.json", account_of(bundle))
    info = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    assert info["counts"]["located"]["exact"] == info["counts"]["contexts"] > 30
    days = {document["filename"]: document["labels"] for document in info["documents"]}
    assert days["pristavni-zakon_2019-07-01.pdf"] == {
        "law": "pristavni-zakon",
        "effective_from": "2019-07-01",
        "effective_to": "2022-12-31",
    }
    gold = [json.loads(line) for line in (bundle / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {line["labels"]["kind"] for line in gold} == set(statutes.INFO.asked)
    assert "| `repealed` | impossible: a provision that was repealed on that day | 1 |" in (
        (bundle / "README.md").read_text(encoding="utf-8")
    )


def test_a_question_on_a_day_has_that_days_words_and_the_other_version_is_a_near_miss(samples: Path):
    rows = [row for row in read(samples / "statutes", questions=50).rows if row.labels["law"] == "pristavni-zakon"]
    said = {(row.labels["paragraph"], row.quotes[0].filename): row for row in rows if row.labels["kind"] == "said"}
    old = said["§ 8", "pristavni-zakon_2019-07-01.pdf"]
    assert "20 Kč" in old.answer
    assert "2019-07-01" < str(old.labels["as_of"]) <= "2022-12-31"
    assert str(old.labels["other_versions"]).startswith("pristavni-zakon_2023-01-01.pdf#")
    assert "35 Kč" in said["§ 8", "pristavni-zakon_2023-01-01.pdf"].answer


def test_a_change_is_told_in_its_words_and_a_repealed_paragraph_is_impossible(samples: Path):
    rows = [row for row in read(samples / "statutes", questions=50).rows if row.labels["law"] == "pristavni-zakon"]
    changed = {row.labels["paragraph"]: row for row in rows if row.labels["kind"] == "changed"}
    assert changed["§ 4"].answer == "Ano. Nově: „3“ Dříve: „6“"
    assert changed["§ 1"].answer == "Ne."
    assert len(changed["§ 4"].quotes) == 2
    repealed = [row for row in rows if row.labels["kind"] == "repealed"]
    assert [(row.labels["paragraph"], row.is_impossible) for row in repealed] == [("§ 6", True)]
    before = [row for row in rows if row.labels["kind"] == "before"]
    assert before
    assert all(row.is_impossible and str(row.labels["as_of"]) < "2019-07-01" for row in before)


def test_a_reference_leads_to_another_law_by_its_number(samples: Path):
    rows = read(samples / "statutes").rows
    leads = {(row.labels["law"], row.labels["paragraph"]): row for row in rows if row.labels["kind"] == "leads"}
    row = leads["poplatkova-vyhlaska", "§ 1"]
    assert "§ 3 zákona č. 907/2019 Sb." in row.question
    assert row.quotes[0].filename == "pristavni-zakon_2023-01-01.pdf"
    assert row.answer.startswith("§ 3: (1) Za stání lodi")


def test_laws_are_asked_about_in_another_language_with_the_same_gold(samples: Path):
    own, both = read(samples / "statutes").rows, read(samples / "statutes", ask_in="en,cs").rows
    assert {row.id: row for row in own}.items() <= {row.id: row for row in both}.items()
    english = [row for row in both if row.labels["question_language"] == "en"]
    assert {row.labels["language"] for row in english} == {"cs"}
    assert {row.labels["kind"] for row in english} == set(statutes.INFO.asked) - {"governs"}
    gold = {row.quotes for row in own}
    assert all(row.quotes in gold for row in english)
    assert any("section " in row.question for row in english)
    assert any("§ " in row.question for row in english)
    assert any(row.answer.startswith("Yes. Now: ") for row in english)


def test_ids_do_not_change_with_a_filter(samples: Path):
    every = {row.id: row.question for row in read(samples / "statutes").rows}
    some = {row.id: row.question for row in read(samples / "statutes", since="2023-01-01").rows}
    shared = [question for number, question in some.items() if every.get(number) == question]
    assert len(shared) > len(some) // 2


def test_the_versions_of_a_day_and_from_a_day_on(samples: Path):
    source = samples / "statutes"
    names = [document.filename for document in read(source, as_of="2020-05-01").documents]
    assert names == ["poplatkova-vyhlaska_2020-01-01.pdf", "pristavni-zakon_2019-07-01.pdf"]
    assert len(read(source, since="2023-01-01").documents) == 2
    with pytest.raises(SourceError, match="none of its 3 versions was in force at the dates of --from and --as-of"):
        read(source, as_of="1990-01-01")


def unexpected(reason: str, name: str) -> None:
    pytest.fail(f"{name}: {reason}")


def git(folder: Path, *arguments: str, day: str = "2000-01-01") -> None:
    env = {
        "GIT_AUTHOR_DATE": f"{day}T12:00:00Z", "GIT_COMMITTER_DATE": "2024-01-01T12:00:00Z", "HOME": str(folder),
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b",
        "PATH": "/usr/bin:/bin:/usr/local/bin",
    }  # fmt: skip
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, capture_output=True, env=env)


def test_a_repositorys_history_is_the_laws_bare_or_not(samples: Path, tmp_path: Path):
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
        versions = read_versions(source, skip=unexpected)
        assert [(version.law, version.start, version.end) for version in versions] == [
            ("pristavni-zakon", date(2019, 7, 1), date(2022, 12, 31)),
            ("pristavni-zakon", date(2023, 1, 1), None),
        ]
    assert [row.question for row in read(clone).rows] == [row.question for row in read(tmp_path / "bare.git").rows]


def test_a_german_law_has_titles_beside_its_numbers_and_repealed_paragraphs_say_nothing():
    law = read_law(
        "---\nTitle: Hafengesetz\njurabk: HafG\n---\n# Hafengesetz (HafG)\n\n## Abschnitt 1 - Allgemeines\n\n"
        "### § 1 Begriff\n\n(1) Ein Hafen ist\nein Ort für Schiffe.\n\n### § 2 (weggefallen)\n\n"
        "### (XXXX) §§ 3 bis 6 (weggefallen)\n"
    )
    assert [(p.label, p.title, p.path, law.words(p)) for p in law.paragraphs] == [
        ("§ 1", "Begriff", ("Abschnitt 1",), "(1) Ein Hafen ist ein Ort für Schiffe."),
        ("§ 2", "(weggefallen)", ("Abschnitt 1",), ""),
    ]


def test_no_line_ends_in_a_hyphen():
    lines = wrap_paragraph(("Fracht-, Liefer- und Zustellkosten " * 12).strip())
    assert not any(line.endswith("-") for line in lines)
    assert " ".join(lines) == ("Fracht-, Liefer- und Zustellkosten " * 12).strip()


def test_a_law_without_fields_is_called_by_the_number_in_its_title(tmp_path: Path):
    laws = {
        "pujcovny": "Zákon č. 417/2014 Sb., o obecních půjčovnách nářadí",
        "bazary": "Zákon č. 9/2016 Sb., o bazarech",
    }
    for law, title in laws.items():
        (tmp_path / law).mkdir()
        words = (
            "Provozovatel vede seznam věcí podle § 2 zákona č. 417/2014 Sb."
            if law == "bazary"
            else "Obec vede seznam nářadí."
        )
        second = "### § 2 Seznam\n\nSeznam obsahuje název věci, její stav a cenu."
        text = f"# {title}\n\n### § 1 Předmět\n\n{words}\n\n{second}\n"
        (tmp_path / law / "2015-01-01.md").write_text(text, encoding="utf-8")
    rows = read(tmp_path, questions=50).rows
    assert not any("č. Zákon" in row.question for row in rows) and any(
        "předpisu č. 417/2014 Sb." in row.question for row in rows
    )
    [leads] = [row for row in rows if row.labels["kind"] == "leads"]
    assert [quote.filename for quote in leads.quotes] == ["pujcovny_2015-01-01.pdf"]


def test_a_folder_without_laws_says_what_was_expected(tmp_path: Path):
    with pytest.raises(SourceError, match=r"no laws; expected LAW/DATE\.md"):
        read(tmp_path)
    (tmp_path / "a.md").write_text("# Title\n\nwords\n", encoding="utf-8")
    with pytest.raises(SourceError, match="no § or article in any of 1 files"):
        read(tmp_path)


def test_every_question_on_the_sample_is_as_it_was(samples: Path, golden):
    lines = [f"{most}: {[row.id for row in read(samples / 'statutes', questions=most).rows]}\n" for most in (1, 2, 4)]
    for row in read(samples / "statutes", questions=50, ask_in="en,cs").rows:
        labels = {name: value for name, value in row.labels.items() if name not in ("language", "question_language")}
        gold = [[*quote.spans[0], *dict(quote.labels).values()] for quote in row.quotes]
        told = [row.id, row.question, row.answer, row.filename, list(labels.values()), gold]
        lines.append(json.dumps(told, ensure_ascii=False) + "\n")
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


def test_a_czech_law_is_read_into_its_parts():
    law = read_law(LAW)
    assert (law.title, law.system.language, law.fields["title"]) == ("Zákon o přístavech", "cs", "Zákon o molech")
    above = ("ČÁST PRVNÍ", "HLAVA I", "Díl 1", "Pododdíl 1")
    assert [(p.label, p.title, p.path, law.words(p)) for p in law.paragraphs] == [
        ("§ 1", "Předmět úpravy", above, "(1) Zákon upravuje provoz přístavů. a) a lodí b) a mol"),
        ("§ 2", "Pojmy", above, "Loď; plavidlo Molo; stavba"),
        ("§ 3", "", ("ČÁST PRVNÍ", "HLAVA I", "Díl 2"), "Pro účely zákona."),
        ("Čl. II", "", ("ČÁST DRUHÁ",), ""),
        ("§ 4", "Vložený", ("ČÁST DRUHÁ", "Čl. II"), "Text."),
        ("Čl. III", "", ("ČÁST DRUHÁ",), "Účinnost."),
    ]
    assert [law.text[p.start : p.end].partition("\n")[0] for p in law.paragraphs] == [
        "§ 1", "§ 2 Pojmy", "§ 3", "Čl. II", "§ 4 Vložený", "Čl. III",
    ]  # fmt: skip
    assert read_law("# A\n\nb").title == "A" and read_law("---\nTitle: C\n---\nb").title == "C"


def test_a_line_is_as_long_as_the_page_is_wide_and_capitals_are_wider():
    assert [len(line) for line in wrap_paragraph("a" * 85)] == [84, 1] and wrap_paragraph("") == [""]
    assert [len(line) for line in wrap_paragraph("A" * 60)] == [56, 4]
    assert len(wrap_paragraph("A" * 20 + "a" * 64)) == 1 and len(wrap_paragraph("A" * 21 + "a" * 63)) == 2, (
        "a quarter of capitals"
    )
    assert wrap_paragraph("a-" * 43) == ["a-" * 42, "a-"], "what has no space is cut where it must be"


def test_a_version_ends_the_day_before_the_next_and_the_later_of_one_day_counts(tmp_path: Path):
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
    versions = {(v.law, v.start): v.end for v in read_versions(tmp_path, skip=unexpected)}
    assert versions == {
        ("mola", date(2020, 1, 1)): date(2021, 2, 28),
        ("mola", date(2021, 3, 1)): None,
        ("vyhlaska", date(2019, 5, 5)): None,
        ("bez data", None): None,
        ("2018-01-01", date(2018, 1, 1)): None,
        ("pozdni", None): None,
    }
    for day, laws in {"2021-02-28": ["mola"], "2021-03-01": ["mola"], "2019-12-31": []}.items():
        kept = read_versions(tmp_path, skip=unexpected, as_of=date.fromisoformat(day))
        assert [v.law for v in kept if v.law == "mola"] == laws and "bez data" in {v.law for v in kept}
    for day, number in {"2021-02-28": 2, "2021-03-01": 1}.items():
        assert (
            len([v for v in read_versions(tmp_path, skip=unexpected, since=date.fromisoformat(day)) if v.law == "mola"])
            == number
        )
    (tmp_path / "mola" / "2021-02-30.md").write_text("no day", encoding="utf-8")
    said: list[tuple[str, str]] = []
    kept = read_versions(tmp_path, skip=lambda *told: said.append(told))
    assert said == [("the date in its name or header does not exist", "mola/2021-02-30.md")] and len(kept) == len(
        versions
    )


UNITS = "### § 1 Pojem\n\nPřístavem je místo pro lodě.\n\n### § 2 Poplatek\n\nPoplatek je {fee} Kč za den.\n"


def law_text(title: str, fee: int) -> str:
    return f"---\ncountry: cz\n---\n# {title}\n\n{UNITS.format(fee=fee)}"


def test_what_cannot_be_used_is_left_out_by_name_and_the_rest_is_asked_about(tmp_path: Path):
    folder = tmp_path / "laws"
    for name in ("mola", "lode"):
        (folder / name).mkdir(parents=True)
    (folder / "mola" / "2020-01-01.md").write_text(law_text("Zákon o molech", 20), encoding="utf-8")
    (folder / "mola" / "2021-13-01.md").write_text(law_text("Zákon o molech", 30), encoding="utf-8")
    (folder / "mola" / "2022-01-01.md").write_bytes(b" \n")
    (folder / "lode" / "2020-01-01.md").write_bytes("Zákon o lodích".encode("cp1250"))
    (folder / "lode.md").write_text("---\neffective_date: 2020-02-31\n---\n" + law_text("x", 1), encoding="utf-8")
    os.mkfifo(folder / "pipe.md")
    (tmp_path / "private.md").write_text(law_text("Zákon o tajemství", 99), encoding="utf-8")
    (folder / "secret.md").symlink_to(tmp_path / "private.md")
    (folder / "away").symlink_to(tmp_path)
    tally = Tally()
    options = Namespace(since=None, as_of=None, questions=6, ask_in=None)
    benchmark = statutes.read(folder, options, tally)
    assert [document.filename for document in benchmark.documents] == ["mola_2020-01-01.pdf"]
    assert tally.left_out == {
        "a pipe, socket or device, not a file": ["pipe.md"],
        "a link that leads out of the folder; not followed": ["secret.md"],
        "the date in its name or header does not exist": ["lode.md", "mola/2021-13-01.md"],
        "the file is not in UTF-8": ["lode/2020-01-01.md"],
        "the file is empty": ["mola/2022-01-01.md"],
    }
    tally.account(item for document in benchmark.documents for item in document.items)
    with pytest.raises(SourceError, match="--strict"):
        statutes.read(folder, options, Tally(strict=True))


def test_two_laws_of_one_folder_name_are_two_laws(tmp_path: Path):
    for place, fee in (("cz/mola/2020-01-01.md", 20), ("sk/mola/2021-01-01.md", 30), ("sk/mola/2022-01-01.md", 40)):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(law_text("Zákon o molech", fee), encoding="utf-8")
    (tmp_path / "cz-mola.md").write_text(law_text("Jiný zákon", 5), encoding="utf-8")
    versions = [(v.law, v.source, v.end) for v in read_versions(tmp_path, skip=unexpected)]
    assert versions == [
        ("cz-mola", "cz-mola.md", None),
        ("cz-mola-2", "cz/mola/2020-01-01.md", None),
        ("sk-mola", "sk/mola/2021-01-01.md", date(2021, 12, 31)),
        ("sk-mola", "sk/mola/2022-01-01.md", None),
    ]


def test_in_a_repository_a_moved_law_is_one_law_and_two_of_one_name_are_two(tmp_path: Path):
    clone = tmp_path / "laws"
    clone.mkdir()
    git(clone, "init", "-q")
    days = iter(["2001-01-01", "2002-01-01", "2003-01-01", "2004-01-01"])

    def commit(**files: str | None) -> None:
        for name, text in files.items():
            path = clone / f"{name.replace('_', '/')}.md"
            path.parent.mkdir(exist_ok=True)
            path.unlink() if text is None else path.write_text(text, encoding="utf-8")
        git(clone, "add", "-A")
        git(clone, "commit", "-qm", "x", day=next(days))

    commit(mola=law_text("Zákon o molech", 1), cz_lode="a")
    commit(mola=None, cz_mola=law_text("Zákon o molech", 2))
    commit(sk_lode="b")
    commit(cz_lode="a2", cz_empty="")
    said: list[str] = []
    versions = read_versions(clone, skip=lambda reason, name: said.append(f"{name[11:]}: {reason}"))
    assert [(v.law, v.start and v.start.year) for v in versions] == [
        ("cz-lode", 2001), ("cz-lode", 2004), ("mola", 2001), ("mola", 2002), ("sk-lode", 2003),
    ]  # fmt: skip
    assert said == ["cz/empty.md: the file is empty"]


@pytest.mark.parametrize(("most", "changed", "same"), [(1, 1, 0), (3, 2, 1), (6, 4, 2), (50, 6, 3)])
def test_two_in_three_questions_on_changes_are_on_what_changed(tmp_path: Path, most: int, changed: int, same: int):
    (tmp_path / "mola").mkdir()
    for day, word in (("2015-01-01", "starých"), ("2016-01-01", "nových")):
        units = [
            f"### § {n}\n\nObec vede seznam {word if n <= 6 else 'všech'} mol a lodí číslo {n} v přístavu.\n"
            for n in range(1, 10)
        ]
        text = "---\ncountry: cz\n---\n# Zákon o molech\n\n" + "\n".join(units)
        (tmp_path / "mola" / f"{day}.md").write_text(text, encoding="utf-8")
    rows = [row for row in read(tmp_path, questions=most).rows if row.labels["kind"] == "changed"]
    answers = [row.answer for row in rows]
    assert (sum(answer.startswith("Ano.") for answer in answers), answers.count("Ne.")) == (changed, same)
    said = [row for row in read(tmp_path, questions=most).rows if row.labels["kind"] == "said"]
    files = [row.filename for row in said]
    assert len(said) == min(most, 18) and files.count("mola_2015-01-01.pdf") == min(9, (most + 1) // 2)
