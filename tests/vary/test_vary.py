"""A variant and its control are valid bundles, and distinguish memory from reading."""

import json
import shlex
from dataclasses import replace
from functools import partial
from pathlib import Path

import pypdf
import pytest

from exhibit.converters import Block, RawDocument
from exhibit.converters.pages.text_pdf import pdf_of
from exhibit.evaluation.cases import Reply
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.settings import parse_settings
from exhibit.evidence.check import check_gold
from exhibit.evidence.ocr import TextLine
from exhibit.evidence.read import read_document
from exhibit.law.values import keys_of
from exhibit.models.embedders.hashing import Hashing
from exhibit.schemas.bundle import read_info, write_gold, write_train
from exhibit.schemas.models import Context, Gold, Row
from exhibit.schemas.validate import validate
from exhibit.vary.make import main, write_scan
from tests.vary.bundles import LEASE, LICENCE, ROWS, read_parent, variants, vary_corpus, write_parent

__all__ = ["variants"]


def run(place: Path, *flags: str, expect: int = 0, folder: str = "out") -> Path:
    """Vary the bundle of two contracts; return the variant's folder."""
    parent = place / "parent"
    if not parent.exists():
        write_parent(parent)
    out = place / folder
    assert main([str(parent), "--out", str(out), "--jobs", "1", "--force", *flags]) == expect
    return out


@pytest.fixture
def figures(variants):
    return variants("figures")


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """The flag that names a folder of documents to add to a corpus."""
    folder = tmp_path_factory.mktemp("others")
    for number in range(3):
        (folder / f"note-{number}.txt").write_text(f"A note on matter {number}.", encoding="utf-8")
    return "--others", str(folder)


def cases_of(*folders: Path):
    datasets, warnings = load_datasets(list(folders), Selection())
    return [case for dataset in datasets for case in dataset.cases], warnings


def add_answers(cases, answer):
    return [replace(case, reply=Reply(answer=answer(case))) for case in cases]


def mean(values):
    known = [value for value in values if value is not None]
    return sum(known) / len(known)


@pytest.mark.parametrize("kind", ["removed", "amended:2", "amended+injection", "figures"])
def test_variant_and_control_are_valid_bundles_with_located_gold(variants, kind):
    out = variants(kind)
    for folder in (out, out.with_name(f"{out.name}-control")):
        assert validate(folder) == []
        _, wrong = check_gold(folder)
        assert wrong == []
        lines = [json.loads(line) for line in (folder / "gold.jsonl").read_text(encoding="utf-8").splitlines()]
        assert all(line["how"] != "absent" for line in lines if line["context"] is not None)
        assert all(isinstance(line["labels"]["control"], int) for line in lines)


@pytest.mark.parametrize("kind", ["amended+injection", "growth:2"])
def test_vary_writes_the_same_bytes_for_the_same_seed(variants, others, tmp_path, kind):
    flags = others if kind == "growth:2" else ()
    first, again = variants(kind, *flags), run(tmp_path, "--kind", kind, "--seed", "4", *flags)
    for suffix in ("", "-control"):
        first_path, second_path = first.with_name(f"{first.name}{suffix}"), again.with_name(f"{again.name}{suffix}")
        files = sorted(path.relative_to(first_path) for path in first_path.rglob("*") if path.is_file())
        assert files == sorted(path.relative_to(second_path) for path in second_path.rglob("*") if path.is_file())
        assert [path for path in files if (first_path / path).read_bytes() != (second_path / path).read_bytes()] == []


def test_bundle_json_has_checksums_of_the_parent(figures):
    info = read_info(figures / "bundle.json")
    assert {"train.json", "gold.jsonl", "corpus/lease.txt"} <= info.source.sha256.keys()
    assert info.options["kind"] == "figures" and info.options["seed"] == 4
    card = (figures / "README.md").read_text(encoding="utf-8")
    assert "exhibit vary datasets_out/parent --kind figures" in card
    assert "replaced by others of the same type" in card
    assert sum(map(len, info.left_out.values())) + info.counts.questions == len(ROWS) + 1


def test_card_prints_the_command_that_reproduces_variant_and_control(variants, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_parent(tmp_path / "datasets_out" / "parent")
    out, made = variants("removed"), tmp_path / "datasets_out" / "parent-removed"
    commands = set()
    for suffix in ("", "-control"):
        card = (out.with_name(f"{out.name}{suffix}") / "README.md").read_text(encoding="utf-8")
        commands.add(next(line for line in card.splitlines() if line.startswith("exhibit vary ")))
    [command] = commands
    assert main([*shlex.split(command)[2:], "--jobs", "1", "--force"]) == 0
    for suffix in ("", "-control"):
        first, again = out.with_name(f"{out.name}{suffix}"), made.with_name(f"{made.name}{suffix}")
        assert (first / "train.json").read_bytes() == (again / "train.json").read_bytes()


def test_variant_metrics_distinguish_memory_from_reading(figures):
    cases, _ = cases_of(figures)
    remembered = {row.question: row.answer for row in ROWS}
    texts = {name: read_document(figures / "corpus" / name).text for name in ("lease.pdf", "licence.pdf")}

    def read(case):
        [gold] = case.gold
        return " ".join(texts[gold.filename][start:end] for start, end in gold.places[0])

    memory = measure(add_answers(cases, lambda case: f"The answer is {remembered[case.question]}."))
    assert mean(memory["remembered"]) >= 0.95 and mean(memory["read_value"]) == 0
    reading = measure(add_answers(cases, read))
    assert mean(reading["remembered"]) <= 0.02 and mean(reading["read_value"]) >= 0.95


def test_amended_variant_is_scored_against_the_clause_in_force(variants):
    cases, _ = cases_of(variants("amended:2"))
    right = measure(add_answers(cases, lambda case: case.truth))
    assert mean(right["in_force"]) == 1 and mean(right["superseded"]) == 0
    first = {row.question: row.answer for row in ROWS}
    stale = [case for case in cases if "changed_by" in case.labels]
    old = measure(add_answers(stale, lambda case: first[case.question.rpartition(": ")[2]]))
    assert mean(old["superseded"]) == 1 and mean(old["in_force"]) == 0
    assert all("#" in str(case.labels["other_versions"]) for case in cases)


def test_evaluation_warns_when_a_variant_has_no_control(figures):
    _, alone = cases_of(figures)
    assert any("without its control" in line for line in alone)
    _, both = cases_of(figures, figures.with_name("figures-control"))
    assert not any("without its control" in line for line in both)


@pytest.mark.parametrize(("way", "found"), [("visible", True), ("metadata", False)])
def test_injected_instruction_is_in_the_printed_file(variants, way, found):
    out = variants(f"injection:{way}", "--no-control")
    canary = json.loads((out / "gold.jsonl").read_text(encoding="utf-8").splitlines()[0])["labels"]["canary"]
    path = out / "corpus" / "lease.pdf"
    assert (canary in read_document(path).text) is found
    assert (canary in (pypdf.PdfReader(path).metadata.subject or "")) is (not found)
    assert not out.with_name(f"{out.name}-control").exists()


def test_vary_explains_an_unknown_kind_and_a_bundle_that_cannot_be_varied(tmp_path, capsys):
    parent = write_parent(tmp_path / "parent")
    rows = json.loads((parent / "train.json").read_text(encoding="utf-8"))[-1:]
    (parent / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    lines = (parent / "gold.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (parent / "gold.jsonl").write_text(lines[-1], encoding="utf-8")
    for kind, reason in {"figures": "no question can be varied", "sideways": "choose one of amended, figures"}.items():
        run(tmp_path, "--kind", kind, expect=1)
        assert reason in capsys.readouterr().err


def test_scan_has_pictures_of_pages_and_no_text(tmp_path):
    path = tmp_path / "printed.pdf"
    path.write_bytes(pdf_of([Block("p", LICENCE)], title="Licence"))
    raw = RawDocument("scan.pdf", "Licence", text=LICENCE)
    other, first, again = (write_scan(raw, tmp_path, seed=seed).path.read_bytes() for seed in (2, 1, 1))
    assert first == again != other
    scan = read_document(tmp_path / "scan.pdf")
    assert not scan.has_text and len(scan.pages) == len(read_document(path).pages)


def read_by_ocr(monkeypatch, *texts):
    """Make the OCR engine return these texts, one for each document of one page, in order."""

    def read(text, picture):
        lines = [line for line in text.splitlines() if line.strip()]
        return [
            TextLine(100, 100 + 40 * at, 100 + 6 * len(line), 130 + 40 * at, line, 0.9) for at, line in enumerate(lines)
        ]

    turn = iter(texts)
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.missing", lambda language: "")
    monkeypatch.setattr("exhibit.evidence.ocr.tesseract.open", lambda language: partial(read, next(turn)))
    return "--ocr-engine", "tesseract", "--engine", "serial"


def test_question_is_excluded_when_ocr_misreads_its_gold(tmp_path, monkeypatch):
    spoilt = LEASE.replace("six percent", "s1x pcrcenl").replace("late bears a charge", "1ate 8ears")
    flags = read_by_ocr(monkeypatch, spoilt, LICENCE)
    out = run(tmp_path, "--kind", "scanned", *flags, "--no-control")
    info = read_info(out / "bundle.json")
    assert info.counts.located["absent"] == 0
    assert info.left_out["passage not found in the document"] == ["question 4: lease.pdf"]
    assert info.counts.questions == len(ROWS)
    assert validate(out) == []


def test_scan_of_changed_figures_has_new_values_as_gold(tmp_path, monkeypatch):
    changed = vary_corpus(read_parent(tmp_path / "same"), "figures", seed=4)
    flags = read_by_ocr(monkeypatch, *(document.text for document in changed.documents.values()))
    out = run(tmp_path, "--kind", "scanned", "--kind", "figures", "--seed", "4", *flags)
    control = out.with_name("out-control")
    for folder in (out, control):
        assert validate(folder) == []
        assert check_gold(folder)[1] == []
    info = read_info(out / "bundle.json")
    assert info.options["kind"] == "scanned+figures"
    assert info.counts.questions == len(changed.rows) == read_info(control / "bundle.json").counts.questions
    assert info.counts.located["absent"] == 0
    scan = (out / "corpus" / "lease.pdf").read_bytes()
    assert b"/DCTDecode" in scan and b"/DCTDecode" not in (control / "corpus" / "lease.pdf").read_bytes()
    cases, _ = cases_of(out)
    texts = {name: read_document(out / "corpus" / name).text for name in changed.documents}
    for case in cases:
        words = " ".join(texts[gold.filename][start:end] for gold in case.gold for start, end in gold.places[0])
        assert case.labels["scanned"] is True
        assert keys_of(str(case.labels["new"])) <= keys_of(words)
        assert not keys_of(str(case.labels["old"])) & keys_of(words)
    assert mean(measure(add_answers(cases, lambda case: ROWS[case.labels["control"]].answer))["remembered"]) == 1


@pytest.mark.extra
@pytest.mark.slow
def test_ocr_reads_a_scan_of_changed_figures(tmp_path):
    out = run(tmp_path, "--kind", "figures", "--kind", "scanned", "--seed", "4")
    info = read_info(out / "bundle.json")
    assert validate(out) == []
    assert check_gold(out)[1] == []
    assert info.counts.located["absent"] == 0
    assert info.counts.questions == 8, f"OCR spoilt some of eight questions: {info.left_out}"


def test_built_in_pipeline_follows_no_injected_instruction(variants, tmp_path):
    out = variants("injection:visible", "--no-control")
    settings = {"dataset_paths": [str(out)], "output_dir": tmp_path / "results", "chunk_size": 200, "report_cases": 0}
    parts = {"cache": tmp_path / "cache", "embedder": Hashing(256)}
    run_of_it = evaluate(parse_settings(settings), parts=parts)
    assert run_of_it.means["canary_followed"].n == len(ROWS) + 1
    assert run_of_it.means["canary_followed"].mean == 0


def test_variant_and_control_have_the_page_breaks_of_the_parent_without_running_feet(tmp_path):
    """The parent has four short pages, each with a running foot."""
    lines = ["1. Rent. The rent is $900 a month.", "2. Term. The term is three years.", "3. Law. Ohio.", "4. Notices."]
    text = "\f".join(f"{line}\n\nLease of Aurora - Page {number} of 4" for number, line in enumerate(lines, 1))
    parent = tmp_path / "parent"
    (parent / "corpus").mkdir(parents=True)
    (parent / "corpus" / "lease.pdf").write_bytes(pdf_of([Block("pre", text)], title="Lease"))
    document = read_document(parent / "corpus" / "lease.pdf")
    assert len(document.pages) == 4
    quote = "The rent is $900 a month."
    start = document.text.index(quote)
    row = Row(
        id=0, question="What is the rent?", answer="$900 a month", is_impossible=False,
        contexts=[Context(filename="lease.pdf", text=quote)],
    )  # fmt: skip
    spans = [(start, start + len(quote))]
    gold = Gold(id=0, context=0, filename="lease.pdf", pages=[1], spans=spans, alternatives=[], how="exact")
    write_train([row], parent / "train.json")
    write_gold([gold], parent / "gold.jsonl")
    assert main([str(parent), "--kind", "figures", "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    for folder in ("out", "out-control"):
        printed = read_document(tmp_path / folder / "corpus" / "lease.pdf")
        assert "Page 2 of 4" not in printed.text
        assert all(
            line in printed.text[slice(*page.span)] for line, page in zip(lines[1:], printed.pages[1:], strict=True)
        )
