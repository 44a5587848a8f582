"""The dataset card: YAML that the Hub accepts, true statements, and a page image with the gold."""

import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import DatasetCard
from PIL import Image

from exhibit.engine import open_engine
from exhibit.hub import card as cards
from exhibit.hub import tables
from exhibit.hub.card import (
    LICENCES,
    escape_cell,
    find_size_category,
    format_code,
    format_fence,
    link,
    render_card,
)
from exhibit.hub.tables import make_gold_table
from exhibit.schemas.bundle import read_info
from exhibit.schemas.models import CardText, Gold, Licence, Row
from exhibit.storage.bundle import open_bundle
from tests.hostile.files import page_pdf
from tests.hub.bundles import write

CONFIGS = {"corpus": "parquet/corpus.parquet"}


@pytest.fixture(scope="module")
def bundle(converted):
    return converted("cuad")


@pytest.fixture(scope="module")
def text(bundle):
    return (bundle / "README.md").read_text(encoding="utf-8")


def head(text: str) -> dict:
    return yaml.safe_load(re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)[1])


def render(bundle: Path, languages: tuple[str, ...] = ("en",), **changes: object) -> str:
    info = read_info(bundle / "bundle.json").model_copy(update=changes)
    return render_card(info, configs=CONFIGS, has_pdfs=True, languages=languages, example=None, text=CardText())


def test_card_head_describes_the_dataset_and_its_configs(text):
    data = head(text)
    assert data["license"] == "apache-2.0" and data["language"] == ["en"] and data["pretty_name"] == "CUAD on its PDFs"
    assert data["task_categories"] == ["question-answering", "text-retrieval"]
    assert data["annotations_creators"] == ["expert-generated"]
    assert data["source_datasets"] == ["extended|other-cuad"]
    assert {"legal", "pdf", "rag"} <= set(data["tags"]) and data["size_categories"] == "n<1K"
    assert [config["config_name"] for config in data["configs"]] == ["questions", "gold", "corpus"]
    assert data["configs"][0]["default"] is True
    assert DatasetCard(text).data.to_dict() == data


GERMAN = "Der Mieter ist verpflichtet, dem Vermieter die vereinbarte Miete zu entrichten. " * 5
CZECH = "Nájemce je povinen platit pronajímateli sjednané nájemné a hradit náklady na služby. " * 5
ENGLISH = "The tenant shall pay the agreed rent to the landlord on the first day of each month. " * 5


@pytest.mark.parametrize(
    ("texts", "languages", "multilinguality"),
    [([GERMAN], ["de"], "monolingual"), ([CZECH, CZECH, ENGLISH], ["cs", "en"], "multilingual")],
)
def test_card_names_the_languages_of_the_documents(tmp_path, texts, languages, multilinguality):
    folder = write(tmp_path / "in", names=tuple(f"{number}.txt" for number in range(len(texts))))
    info = read_info(folder / "bundle.json")
    for number, words in enumerate(texts):
        (folder / "corpus" / f"{number}.txt").write_text(words, encoding="utf-8")
    cards.write_card(info, folder, rows=[], gold=[], engine=open_engine("local", jobs=1), text=CardText())
    data = head((folder / "README.md").read_text(encoding="utf-8"))
    assert (data["language"], data["multilinguality"]) == (languages, multilinguality)


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        (Licence(id="mit", name="MIT"), {"license": "mit"}),
        (Licence(id="CC-BY-SA-4.0", name="CC BY-SA 4.0"), {"license": "cc-by-sa-4.0"}),
        (
            Licence(id="other", name="Terms: «x», 2.0", url="https://e.org"),
            {"license": "other", "license_name": "terms-x-2.0", "license_link": "https://e.org"},
        ),
        (Licence(id="house-rules", name="«»"), {"license": "other", "license_name": "unnamed"}),
    ],
)
def test_card_licence_uses_a_licence_id_known_to_the_hub(bundle, licence, expected):
    data = head(render(bundle, licence=licence))
    assert {name: value for name, value in data.items() if name.startswith("license")} == expected
    assert data["license"] in LICENCES


@pytest.mark.parametrize("title", ['"quoted": {yes}', "- no", "a\nb # c", "1.0", "lone \ud800 surrogate", "條約"])
def test_card_head_preserves_any_title(bundle, title):
    shown = head(render(bundle, title=title))["pretty_name"]
    assert shown == title.encode("utf-8", "replace").decode()


def test_find_size_category_returns_hub_size_range():
    sizes = [find_size_category(n) for n in (0, 999, 1000, 20_910, 5_000_000, 10**9)]
    assert sizes == ["n<1K", "n<1K", "1K<n<10K", "10K<n<100K", "1M<n<10M", "10M<n<100M"]


def test_card_body_states_the_counts_the_command_and_the_citation(bundle, text):
    counts = read_info(bundle / "bundle.json").counts
    assert f"| questions | {counts.questions} |" in text
    assert f"| impossible (the document has no answer) | {counts.impossible} |" in text
    assert "exhibit convert cuad" in text and "@misc{exhibit-cuad," in text
    assert "![Page " in text and "](page.png)" in text


@pytest.mark.parametrize(
    ("formatted", "expected"),
    [
        (escape_cell("a|b *c* <i> [x](y)"), r"a\|b \*c\* &lt;i&gt; \[x\](y)"),
        (escape_cell("1. not a list"), r"\1. not a list"),
        (format_code("a`b"), "``a`b``"),
        (format_code("`b"), "`` `b ``"),
        (format_fence("```", "json"), "````json\n```\n````"),
        (link("me", "https://e.org/a"), "[me](<https://e.org/a>)"),
        (link("me", "javascript:alert(1)"), "me"),
    ],
)
def test_card_formatters_escape_markdown_html_and_unsafe_links(formatted, expected):
    assert formatted == expected


def test_card_picture_highlights_gold(bundle):
    content = (bundle / "page.png").read_bytes()
    colours = Image.open(io.BytesIO(content)).convert("RGB").getcolors()
    assert sum(number for number, (red, _, blue) in colours if red > 200 and red - blue > 50) > 2_000


def make_row(number: int, text: str, *names: str) -> Row:
    contexts = [{"filename": name, "text": text} for name in names]
    fields = {"id": number, "question": "q?", "answer": "a", "is_impossible": not names, "contexts": contexts}
    return Row.model_validate(fields)


def make_gold(number: int, *, pages: list[int], **fields: object) -> Gold:
    record = {"id": number, "context": 0, "filename": "a.pdf", "spans": [(0, 9)] if pages else [], "alternatives": []}
    return Gold.model_validate({**record, "pages": pages, "how": "exact" if pages else "absent", **fields})


def test_choose_puts_examples_of_readable_length_located_on_a_single_page_first():
    rows = [
        make_row(0, ""),
        make_row(1, "x" * 300, "a.pdf"),  # not found
        make_row(2, "x" * 300, "a.pdf"),  # over two pages
        make_row(3, "x" * 2_000, "a.pdf"),
        make_row(4, "x" * 250, "a.pdf"),
    ]
    gold = [make_gold(0, pages=[], context=None), make_gold(1, pages=[]), make_gold(2, pages=[1, 2])]
    gold += [make_gold(3, pages=[1]), make_gold(4, pages=[1])]
    assert [example.row.id for example in cards.choose(rows, gold)] == [4, 3, 2, 1, 0]


def test_write_example_skips_page_that_cannot_be_drawn(tmp_path):
    (tmp_path / "corpus").mkdir()
    words = b"BT /H 9 Tf 9 9 Td (Rent is due.) Tj ET"
    for name, box in {"town.pdf": b"0 0 14400000 14400000", "a.pdf": b"0 0 612 792"}.items():
        (tmp_path / "corpus" / name).write_bytes(page_pdf(words, box=box))
    rows = [make_row(0, "Rent is due.", "town.pdf"), make_row(1, "Rent is due.", "a.pdf")]
    gold = [make_gold(0, pages=[1], filename="town.pdf"), make_gold(1, pages=[1])]
    example = cards.write_example(rows, gold, tmp_path)
    assert example.row.id == 1 and (tmp_path / "page.png").is_file()
    assert cards.write_example([], [], tmp_path) is None


def test_gold_table_derives_types_of_label_columns_from_values():
    labels = [{"a": 1, "b": True, "c": "x", "d": 1}, {"a": 2, "b": None, "c": 3, "d": 0.5}]
    gold = [make_gold(number, pages=[1], labels=given) for number, given in enumerate(labels)]
    table = make_gold_table(gold)
    kinds = [pa.int64(), pa.bool_(), pa.string(), pa.float64()]
    assert [field.type for field in table.schema.field("labels").type] == kinds
    assert table.to_pylist()[1]["labels"] == {"a": 2, "b": None, "c": "3", "d": 0.5}
    assert "labels" not in make_gold_table([make_gold(0, pages=[1])]).column_names


def test_write_tables_splits_large_corpus_into_row_groups(bundle, tmp_path, monkeypatch):
    info = read_info(bundle / "bundle.json")
    (tmp_path / "corpus").symlink_to(bundle / "corpus")
    monkeypatch.setattr(tables, "_GROUP_BYTES", 1)
    tables.write_tables(info, tmp_path, rows=[], gold=[], engine=open_engine("local", jobs=1))
    table = pq.ParquetFile(tmp_path / "parquet" / "corpus.parquet")
    assert table.num_row_groups == len(info.documents) > 1
    assert table.read()["filename"].to_pylist() == [document.filename for document in info.documents]


def test_write_tables_is_reproducible_and_stores_pdfs_uncompressed(bundle, tmp_path):
    info, opened = read_info(bundle / "bundle.json"), open_bundle(bundle)
    rows = [Row.model_validate(row) for row in json.loads((bundle / "train.json").read_text(encoding="utf-8"))]
    (tmp_path / "corpus").symlink_to(bundle / "corpus")
    tables.write_tables(info, tmp_path, rows=rows, gold=opened.gold, engine=open_engine("local", jobs=1))
    for name in ("questions", "gold", "corpus"):
        path = f"parquet/{name}.parquet"
        assert (tmp_path / path).read_bytes() == (bundle / path).read_bytes(), name
    stored = (bundle / "parquet" / "corpus.parquet").read_bytes()
    assert all(path.read_bytes() in stored for path in (bundle / "corpus").iterdir()), "stored as is"
