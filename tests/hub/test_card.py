"""The dataset card: YAML that the Hub reads, statements that are true, and a page that shows the gold."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import DatasetCard, DatasetCardData
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from exhibit.conversion import main as convert_main
from exhibit.converters.cuad import INFO
from exhibit.engine import open_engine
from exhibit.evidence import Span, fold, read_document
from exhibit.hub import card as cards
from exhibit.hub import tables
from exhibit.hub.card import CardText, escape_cell, format_code, format_fence, holds_documents, link, render_card
from exhibit.hub.commit import without_documents
from exhibit.hub.tables import LICENCES, dump, find_size_category
from exhibit.schemas.bundle import read_info
from exhibit.schemas.models import Gold, Licence, Row
from exhibit.storage.bundle import open_bundle
from tests.hostile.files import page_pdf
from tests.hub.bundles import write


@pytest.fixture(scope="module")
def bundle(converted):
    return converted("cuad")


@pytest.fixture(scope="module")
def text(bundle):
    return (bundle / "README.md").read_text(encoding="utf-8")


def head(text: str) -> dict:
    return yaml.safe_load(re.match(r"---\n(.*?\n)---\n", text, re.DOTALL)[1])


def render(bundle: Path, *, example: Row | None = None, line: Gold | None = None, **changes: object) -> str:
    info = read_info(bundle / "bundle.json").model_copy(update=changes)
    shown = cards.Example(example, line) if example else None
    config = tables.HubConfig("corpus", "parquet/corpus-*.parquet", [{"name": "text", "dtype": "string"}], 1, 1)
    return render_card(info, configs=[config], example=shown, text=CardText())


def test_a_card_without_documents_shows_none_and_says_where_they_come_from(text):
    bare = without_documents(text.encode()).decode()
    data = head(bare)
    for key in ("configs", "dataset_info"):
        assert [one["config_name"] for one in data[key]] == ["questions", "gold"]
        assert data[key] == head(text)[key][:2]
    assert "page.png" not in bare and '"corpus"' not in bare and "<!--" not in bare
    assert "# CUAD on its PDFs\n\nThe documents are not in this repository" in bare
    assert "page.png" in text and "python -m converters.cuad" in bare


# ---------------------------------------------------------------- the head


def test_the_head_is_what_the_hub_reads(text):
    data = head(text)
    assert data["license"] == "cc-by-4.0" and data["language"] == ["en"] and data["pretty_name"] == "CUAD on its PDFs"
    assert data["task_categories"] == ["question-answering", "text-retrieval"]
    assert data["annotations_creators"] == ["expert-generated"]
    assert data["source_datasets"] == ["extended|other-cuad"]
    assert "legal" in data["tags"] and "pdf" in data["tags"] and data["size_categories"] == ["n<1K"]
    assert [(c["config_name"], c.get("default")) for c in data["configs"]] == [
        ("questions", True),
        ("gold", None),
        ("corpus", None),
    ]
    assert [info["splits"][0]["num_examples"] for info in data["dataset_info"]] == [164, 199, 4]
    assert all(info["splits"][0]["num_bytes"] > 1000 for info in data["dataset_info"]) and text.endswith("\n")


def test_an_example_is_shown_as_far_as_it_is_read_at_a_glance(bundle):
    long = "x" * 300
    for words, shown in ((long, long), (f"{long}y", f"{long} …")):
        row = row_of(0, words, "a.pdf", "b.pdf", "c.pdf").model_copy(update={"answer": words})
        line = gold_of(0, pages=[], labels={"clause": words, "year": 2008})
        card = render(bundle, example=row, line=line)
        assert f'"{shown}"' in card and card.count(f'"{shown}"') == 4, "the answer, two contexts and a label"


def test_the_hubs_own_library_reads_the_head_and_keeps_all_of_it(text):
    card = DatasetCard(text)
    assert isinstance(card.data, DatasetCardData) and card.data.to_dict() == head(text)
    assert card.text.lstrip().startswith("# CUAD on its PDFs")


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        (Licence(id="mit", name="MIT"), {"license": "mit"}),
        (
            Licence(id="other", name="Terms: «x», 2.0", url="https://e.org"),
            {"license": "other", "license_name": "terms-x-2.0", "license_link": "https://e.org"},
        ),
        (Licence(id="other", name="«»"), {"license": "other", "license_name": "unnamed"}),
        (Licence(id="house-rules", name="House rules"), {"license": "other", "license_name": "house-rules"}),
    ],
)
def test_a_licence_that_the_hub_does_not_know_is_other(bundle, licence, expected):
    data = head(render(bundle, licence=licence))
    assert {name: value for name, value in data.items() if name.startswith("license")} == expected
    assert data["license"] in LICENCES


def test_sizes():
    assert [find_size_category(n) for n in (0, 999, 1000, 20_910, 5_000_000, 50_000_000, 10**9)] == [
        "n<1K",
        "n<1K",
        "1K<n<10K",
        "10K<n<100K",
        "1M<n<10M",
        "10M<n<100M",
        "10M<n<100M",
    ]


nested = st.recursive(
    st.text() | st.booleans() | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), nested, max_size=4))
def test_yaml_says_what_it_was_given(value):
    assert yaml.safe_load(dump(value)) == value


def test_yaml_keeps_its_order_and_its_letters_and_a_long_line_is_one():
    same = ["no"]
    assert dump({"b": "É", "a": "x " * 99, "c": [same, same]}) == f'b: "É"\na: "{"x " * 99}"\nc:\n- - "no"\n- - "no"\n'


@given(st.text(min_size=1), st.text())
def test_no_title_or_tag_breaks_the_head(title, tag):
    data = DatasetCard(f"---\n{dump({'pretty_name': title, 'tags': [tag]})}---\n# x\n").data
    assert data.pretty_name == title and data.tags == [tag]


# ---------------------------------------------------------------- the body


def test_the_body_says_what_came_out_and_what_did_not(bundle, text):
    info = read_info(bundle / "bundle.json")
    for how, number in info.counts.located.items():
        assert f"| {how} | {number:,} |" in text
    assert "| located in their document | 131 (100.00%) |" in text and "| pages | 18 |" in text
    assert "| ambiguous contract: one of several versions or parts | 2 |" in text
    assert "python -m converters.cuad --titles rule --out datasets_out/cuad" in text
    assert info.source.sha256["master_clauses.csv"] in text
    assert "hendrycks2021cuad" in text and "@misc{exhibit-cuad," in text and f"exhibit-rag {info.tool.version}" in text
    for name in ("gold", "corpus"):
        assert f'load_dataset("PATH_OR_REPO", "{name}", split="train")' in text
    assert "pip install pdfplumber" in text and INFO.limits in text


def test_the_example_its_gold_and_its_picture_are_one(bundle, text):
    row, line = (json.loads(block) for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL))
    assert list(row) == ["id", "question", "answer", "is_impossible", "contexts"]
    assert line["id"] == row["id"] and line["filename"] == row["contexts"][0]["filename"]
    assert f"Row {row['id']}: " in text and f"on page {line['pages'][0]} of" in text and "](page.png)" in text
    found = read_document(bundle / "corpus" / line["filename"])
    quoted = "".join(found.text[start:end] for start, end in line["spans"])
    assert fold(quoted) == fold(row["contexts"][0]["text"])


def test_the_card_of_a_corpus_asks_nothing(bundle):
    counts = read_info(bundle / "bundle.json").counts.model_copy(
        update={"questions": 0, "answerable": 0, "impossible": 0, "contexts": 0, "located": {}}
    )
    text = render(bundle, counts=counts)
    assert "questions = load_dataset" not in text and "evaluate_rag" not in text and "| questions |" not in text
    assert head(text)["task_categories"] == ["text-retrieval"]


HOSTILE = "A` | b <script>alert(1)</script> ![x](http://e.org/x) [y](javascript:z) *k* _l_ $m$\n# n\n```\n---\n"


def test_words_from_a_source_are_words(bundle):
    row = Row(id=0, question=HOSTILE, answer=HOSTILE, is_impossible=False, contexts=[])
    text = render(
        bundle, example=row, title=HOSTILE, left_out={HOSTILE: ["x"]}, noted={HOSTILE: ["y"]}, citation=HOSTILE
    )
    assert head(text)["pretty_name"] == HOSTILE
    body = text.split("---\n", 2)[2]
    shown = re.sub(r"^(`{3,})\w*\n.*?^\1$", "", body, flags=re.DOTALL | re.MULTILINE)  # what is no block of code
    assert "<script" not in shown and "\n# n" not in shown
    assert re.findall(r"(?<!\\)\]\(<?([a-z]+):", shown) == ["https", "https"]  # the source and its licence
    assert [line for line in shown.splitlines() if line.startswith("| A")] == [f"| {escape_cell(HOSTILE)} | 1 |"] * 2
    assert shown.count("```") == 0


@given(st.text())
def test_markup_is_shown_not_obeyed(words):
    shown = escape_cell(words)
    assert "\n" not in shown and "<" not in shown and not re.search(r"(?<!\\)(?:\\\\)*[`*_\[\]|]", shown)
    ticks = re.match("`+", format_code(words))[0]
    assert ticks not in format_code(words)[len(ticks) : -len(ticks)]
    block = format_fence(words, "json")
    ticks = re.match("`+", block)[0]
    assert block.count(ticks) == 2


def test_code_is_marked_with_as_many_ticks_as_it_needs():
    assert format_code("x") == "`x`" and format_code("a`b") == "``a`b``" and format_code("a\n|b") == "`a ¦b`"
    assert format_code("`a") == "`` `a ``" and format_code("a``") == "``` a`` ```" and format_code("") == "``"
    assert format_fence("x", "json") == "```json\nx\n```" and format_fence("``", "").startswith("```\n")
    assert format_fence("```", "").startswith("````\n")
    assert (
        escape_cell("1) a") == "\\1) a"
        and escape_cell("- a & b") == "\\- a &amp; b"
        and escape_cell("a - 1) b") == "a - 1) b"
    )


def test_the_command_and_the_citation_are_those_of_the_bundle(bundle):
    options = {"keep_ambiguous": True, "dry": False, "limit": None, "least": 0, "title": "a b"}
    text = render(bundle, options=options, name="«»")
    assert "converters.«» --keep-ambiguous --least 0 --title 'a b' --out datasets_out/«»" in text
    assert "@misc{exhibit-bundle," in text


def test_only_addresses_of_the_web_are_links():
    assert link("a", "https://e.org/x y") == link("a", "javascript:alert(1)") == link("a", "") == "a"
    assert link("a|b", "https://e.org/(x)") == "[a\\|b](<https://e.org/(x)>)"


# ---------------------------------------------------------------- the picture


def test_the_picture_shows_the_gold_and_is_small(bundle, text):
    content = (bundle / "page.png").read_bytes()
    assert len(content) < 200_000 and read_info(bundle / "bundle.json").files["page.png"].bytes == len(content)
    colours = Image.open(io.BytesIO(content)).convert("RGB").getcolors()
    marked = sum(number for number, (red, _, blue) in colours if red > 200 and red - blue > 50)
    assert marked > 2_000, "the gold is drawn in yellow"
    picture = Image.open(io.BytesIO(content))
    assert len(picture.getcolors()) == 32, "few colours make a small file"
    edge, paper = ((x, picture.convert("RGB").getpixel((x, x))) for x in (0, 1))
    assert edge == (0, (200, 204, 210)) and paper == (1, (255, 255, 255)), "a frame of one pixel around white paper"


def test_the_same_bundle_gives_the_same_picture_and_tables(bundle, tmp_path):
    opened = open_bundle(bundle)
    info = read_info(bundle / "bundle.json")
    rows = [Row.model_validate(row) for row in json.loads((bundle / "train.json").read_text(encoding="utf-8"))]
    (tmp_path / "corpus").symlink_to(bundle / "corpus")
    tables.write_tables(info, tmp_path, rows=rows, gold=opened.gold, engine=open_engine("local", jobs=1))
    cards.write_example(rows, opened.gold, tmp_path)
    for name in ("page.png", *(f"parquet/{n}.parquet" for n in ("questions", "gold", "corpus-00000"))):
        assert (tmp_path / name).read_bytes() == (bundle / name).read_bytes(), name


def row_of(number: int, text: str, *names: str) -> Row:
    contexts = [{"filename": name, "text": text} for name in names]
    return Row.model_validate(
        {"id": number, "question": "q?", "answer": "a", "is_impossible": not names, "contexts": contexts}
    )


def gold_of(number: int, *, pages: list[int], **fields: object) -> Gold:
    given = {"id": number, "context": 0, "filename": "a.pdf", "spans": [(0, 9)] if pages else [], "alternatives": []}
    return Gold.model_validate({**given, "pages": pages, "how": "exact" if pages else "absent", **fields})


def test_a_good_example_is_located_on_one_page_and_readable():
    rows = [
        row_of(0, "", *[]),
        row_of(1, "x" * 300, "a.pdf"),  # not found
        row_of(2, "x" * 300, "a.pdf"),  # over two pages
        row_of(3, "x" * 2_000, "a.pdf"),
        row_of(4, "x" * 250, "a.pdf"),
        row_of(5, "x" * 150, "a.pdf", "a.pdf"),
    ]
    gold = [gold_of(0, pages=[], context=None), gold_of(1, pages=[]), gold_of(2, pages=[1, 2])]
    gold += [gold_of(3, pages=[1]), gold_of(4, pages=[1]), gold_of(5, pages=[1]), gold_of(5, pages=[1], context=1)]
    assert [example.row.id for example in cards.choose(rows, gold)] == [4, 3, 2, 5, 1, 0]


def test_without_located_gold_there_is_no_picture(tmp_path):
    example = cards.write_example([row_of(0, "x", "a.pdf")], [gold_of(0, pages=[])], tmp_path)
    assert example.row.id == 0 and example.page is None and not list(tmp_path.iterdir())
    assert cards.write_example([], [], tmp_path) is None


def test_a_page_that_cannot_be_drawn_is_named_and_another_shown(tmp_path):
    (tmp_path / "corpus").mkdir()
    words = b"BT /H 9 Tf 9 9 Td (Rent is due.) Tj ET"
    for name, box in {"town.pdf": b"0 0 14400000 14400000", "a.pdf": b"0 0 612 792"}.items():
        (tmp_path / "corpus" / name).write_bytes(page_pdf(words, box=box))
    rows = [row_of(0, "Rent is due.", "town.pdf"), row_of(1, "Rent is due.", "a.pdf")]
    gold = [gold_of(0, pages=[1], filename="town.pdf"), gold_of(1, pages=[1])]
    undrawn: list[str] = []
    example = cards.write_example(rows, gold, tmp_path, undrawn=undrawn.append)
    assert example.row.id == 1 and (tmp_path / "page.png").is_file()
    assert undrawn == ["town.pdf: page 1 is 1.44e+07 by 1.44e+07 points, which is too large to draw"]


def test_five_pages_are_tried_and_no_more(tmp_path):
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "town.pdf").write_bytes(
        page_pdf(b"BT /H 9 Tf 9 9 Td (Rent is due.) Tj ET", box=b"0 0 14400000 14400000")
    )
    rows = [row_of(number, "Rent is due.", "town.pdf") for number in range(6)]
    gold = [gold_of(number, pages=[1], filename="town.pdf") for number in range(6)]
    undrawn: list[str] = []
    assert cards.write_example(rows, gold, tmp_path, undrawn=undrawn.append) == cards.Example(rows[0], gold[0])
    assert len(undrawn) == 5 and not (tmp_path / "page.png").exists()


def test_a_picture_too_large_is_drawn_smaller(bundle, monkeypatch):
    line = next(line for line in open_bundle(bundle).gold if len(line.pages) == 1)
    path = bundle / "corpus" / line.filename
    large = cards.draw_example(path, line)
    monkeypatch.setattr(cards, "_MOST_BYTES", len(large))
    small = cards.draw_example(path, line)
    assert len(small) < len(large)
    widths = [Image.open(io.BytesIO(large)).width - 2]  # without its frame
    while small:
        widths.append(Image.open(io.BytesIO(small)).width - 2)
        monkeypatch.setattr(cards, "_MOST_BYTES", len(small))
        small = cards.draw_example(path, line)
    assert [round(width / widths[1], 2) for width in widths] == [1.3, 1, 0.75, 0.5]


# ---------------------------------------------------------------- the tables


def test_labels_of_every_kind_share_a_table(tmp_path):
    labels = [
        {"a": 1, "b": True, "c": "x", "d": 1, "e": None},
        {"a": 2, "d": 2.5, "f": "only here"},
        {"a": None, "d": 3},
    ]
    mixed = [{"g": 1}, {"g": "two"}, {"g": True}]
    gold = [
        gold_of(n, pages=[1], labels={**one, **two}) for n, (one, two) in enumerate(zip(labels, mixed, strict=True))
    ]
    (tmp_path / "parquet").mkdir()
    tables.write_parquet(tmp_path, "gold", tables.make_gold_schema(gold), list(tables.make_gold_records(gold)))
    stored = [row["labels"] for row in pq.read_table(tmp_path / "parquet" / "gold.parquet").to_pylist()]
    assert stored == [
        {"a": 1, "b": True, "c": "x", "d": 1.0, "e": None, "g": "1", "f": None},
        {"a": 2, "b": None, "c": None, "d": 2.5, "e": None, "g": "two", "f": "only here"},
        {"a": None, "b": None, "c": None, "d": 3.0, "e": None, "g": "True", "f": None},
    ]


def test_features_are_declared_as_datasets_itself_declares_them(bundle):
    from datasets import Features, Pdf  # with pandas, half a second for every process that collects the tests

    written = sorted((bundle / "parquet").glob("*.parquet"))
    assert len(written) >= 3
    for table in written:
        schema = pq.read_schema(table)
        theirs = Features.from_arrow_schema(schema)
        if "pdf" in theirs:
            theirs["pdf"] = Pdf()  # the type is the reader's to say: Arrow knows bytes and a path
        assert tables.describe_features(schema) == theirs._to_yaml_list()


def test_gold_without_labels_has_no_such_column():
    assert "labels" not in tables.make_gold_schema([gold_of(0, pages=[1])]).names


def test_a_large_corpus_is_cut_into_groups_and_files(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "_GROUP_BYTES", 1)
    monkeypatch.setattr(tables, "_SHARD_BYTES", 150_000)
    info = read_info(bundle / "bundle.json")
    (tmp_path / "corpus").symlink_to(bundle / "corpus")
    [config] = tables.write_tables(info, tmp_path, rows=[], gold=[], engine=open_engine("local", jobs=1))
    files = sorted((tmp_path / "parquet").iterdir())
    assert len(files) > 1 and config.path == "parquet/corpus-*.parquet" and config.rows == 4
    assert [pq.ParquetFile(file).num_row_groups for file in files] == [len(pq.read_table(file)) for file in files]
    names = [name for file in files for name in pq.read_table(file)["filename"].to_pylist()]
    assert names == [document.filename for document in info.documents]
    groups = [
        pa.Table.from_pylist([row], table.schema) for table in map(pq.read_table, files) for row in table.to_pylist()
    ]
    assert config.bytes == sum(group.nbytes for group in groups)


@pytest.mark.parametrize(("before", "pdf"), [(1019, True), (1020, False)])
def test_a_pdf_says_so_within_a_kilobyte(tmp_path, before, pdf):
    content = b"x" * before + b"%PDF-1.7"
    folder = write(tmp_path / "charters", names=("aurora.txt",), more={"corpus/b.txt": content})
    [config] = tables.write_tables(
        read_info(folder / "bundle.json"),
        folder,
        rows=[],
        gold=[],
        engine=open_engine("serial"),
        texts=folder / "corpus",
    )
    table = pq.read_table(folder / "parquet" / "corpus-00000.parquet").to_pylist()
    assert config.pdf is pdf and ("pdf" in table[0]) is pdf
    assert not pdf or [row["pdf"] for row in table] == [None, {"bytes": content, "path": "b.txt"}]


def test_a_text_that_is_known_is_not_read_again(bundle, tmp_path):
    info = read_info(bundle / "bundle.json")
    known, *others = [document.filename for document in info.documents]
    (tmp_path / "corpus").symlink_to(bundle / "corpus")
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / known).write_text("Words that\r\nno file has.", encoding="utf-8", newline="")
    tables.write_tables(info, tmp_path, rows=[], gold=[], engine=open_engine("local", jobs=1), texts=tmp_path / "texts")
    rows = pq.read_table(tmp_path / "parquet" / "corpus-00000.parquet").to_pylist()
    texts = {row["filename"]: row["text"] for row in rows}
    assert texts.pop(known) == "Words that\r\nno file has."
    assert texts == {name: read_document(bundle / "corpus" / name).text for name in others}


def test_a_conversion_reads_each_document_once(samples, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "read_document", None)  # whoever calls it fails
    out = tmp_path / "cuad"
    assert convert_main(["cuad", "--source", str(samples / "cuad"), "--out", str(out), "--engine", "serial"]) == 0
    rows = pq.read_table(out / "parquet" / "corpus-00000.parquet").to_pylist()
    assert rows and all(row["text"] == read_document(out / "corpus" / row["filename"]).text for row in rows)
    assert not list(out.glob("*.partial")), "what was kept for the tables is gone"


def test_pdfs_stand_uncompressed_in_the_table(bundle):
    table = (bundle / "parquet" / "corpus-00000.parquet").read_bytes()
    assert all(path.read_bytes() in table for path in (bundle / "corpus").iterdir())


def test_what_holds_documents(bundle):
    held = {name for name in read_info(bundle / "bundle.json").files if holds_documents(name)}
    assert {name for name in held if not name.startswith("corpus/")} == {"page.png", "parquet/corpus-00000.parquet"}
    assert len(held) == 6


def test_spans_are_drawn_where_they_are(bundle):
    line = next(line for line in open_bundle(bundle).gold if len(line.pages) == 1)
    document = read_document(bundle / "corpus" / line.filename)
    assert document.pages_of(Span(*line.spans[0])) == line.pages
