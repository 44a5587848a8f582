"""Write a bundle's dataset card for the Hub, its Parquet tables, and an image of a gold passage."""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from huggingface_hub import DatasetCardData
from jinja2 import Environment, StrictUndefined
from PIL import ImageChops, ImageOps

from exhibit.engine import Engine
from exhibit.evidence import Span
from exhibit.evidence.read import read_within
from exhibit.evidence.show import draw_spans
from exhibit.hub.tables import without_surrogates, write_tables
from exhibit.schemas.bundle import CARD, CORPUS
from exhibit.schemas.errors import DocumentError
from exhibit.schemas.models import HOWS, BundleInfo, CardText, Gold, Licence, Row


def find_sample(source: object) -> str:
    """Return the path of a source that is a sample of the project, as in `samples/cuad`; "" for any other source."""
    path = Path(str(source)).resolve()
    for root in Path(__file__).resolve().parents[1:3]:  # the installed package, or the checkout
        if source and root / "samples" in path.parents:
            return path.relative_to(root).as_posix()
    return ""


PROJECT_LICENCE = Licence(id="apache-2.0", name="Apache 2.0", url="https://www.apache.org/licenses/LICENSE-2.0")
PLACEHOLDER = "PATH_OR_REPO"  # The path on the card for a bundle whose name might be unsafe in code


def write_card(
    bundle: BundleInfo, folder: Path, *, rows: Sequence[Row], gold: Sequence[Gold], engine: Engine, text: CardText,
    texts: Path | None = None,
) -> None:  # fmt: skip
    """Write `README.md`, `parquet/` and, if a page can be drawn, `page.png` into a folder."""
    configs, languages, has_pdfs = write_tables(bundle, folder, rows=rows, gold=gold, engine=engine, texts=texts)
    example = write_example(rows, gold, folder)
    words = render_card(bundle, configs=configs, languages=languages, has_pdfs=has_pdfs, example=example, text=text)
    (folder / CARD).write_text(words, encoding="utf-8", newline="\n")


def make_card_path(name: str) -> str:
    """Return the path from which the card's code loads the bundle."""
    return f"datasets_out/{name}" if re.fullmatch(r"[\w .-]+", name) else PLACEHOLDER


def render_card(
    bundle: BundleInfo, *, configs: Mapping[str, str], languages: Sequence[str], example: "Example | None",
    has_pdfs: bool, text: CardText,
) -> str:  # fmt: skip
    """Return the card's Markdown with its YAML header."""
    if text.sample and not bundle.options.get("licence"):
        bundle = bundle.model_copy(update={"licence": PROJECT_LICENCE, "citation": ""})
    passages = sum(bundle.counts.located.values())
    # the card is Markdown, so nothing is escaped as HTML
    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.keep_trailing_newline = True
    environment.filters |= {"plain": escape_cell, "code": format_code, "fence": format_fence, "link": link}
    environment.filters |= {"number": "{:,}".format, "quote": shlex.quote}
    template = environment.from_string(Path(__file__).with_name("card.md.j2").read_text(encoding="utf-8"))
    record = example.row.model_dump(exclude_none=True) if example else {"contexts": []}
    row = {**record, "contexts": record["contexts"][:2]}
    return template.render(
        head=_format_head(bundle, configs, languages, text),
        bundle=bundle,
        counts=bundle.counts,
        passages=passages,
        located=passages - bundle.counts.located.get("absent", 0),
        pages=sum(document.pages or 0 for document in bundle.documents),
        characters=sum(document.characters for document in bundle.documents),
        hows=HOWS,
        configs=configs,
        has_pdfs=has_pdfs,
        example=example,
        row=json.dumps(_cut_texts(row), ensure_ascii=False, indent=2),
        line=json.dumps(_cut_texts(example.line.model_dump()), ensure_ascii=False) if example else "",
        picture=PICTURE,
        path=make_card_path(bundle.name),
        text=text,
        command=_format_command(bundle, text.command or f"exhibit convert {text.converter or bundle.name}"),
        citation=_format_citation(bundle),
    )


LICENCES = frozenset(Path(__file__).with_name("licences.txt").read_text(encoding="ascii").split())
"""The licence identifiers that the Hub knows; it refuses a card with any other identifier."""


def _format_head(bundle: BundleInfo, configs: Mapping[str, str], languages: Sequence[str], text: CardText) -> str:
    """Return the YAML header of the dataset card: licence, language, tags, tables and their columns."""
    has_questions = bundle.counts.questions > 0
    has_pages = any(document.pages for document in bundle.documents)
    words = [*text.tags, "rag", "retrieval-augmented-generation", *(["pdf"] if has_pages else [])]
    licence = bundle.licence
    terms: dict[str, Any] = {"license": licence.id.lower()}
    if licence.id.lower() not in LICENCES - {"other"}:
        name = re.sub(r"[^a-z0-9.]+", "-", licence.name.lower()).strip("-.") or "unnamed"  # the Hub accepts this form
        address = {"license_link": licence.url} if licence.url else {}
        terms = {"license": "other", "license_name": name, **address}
    files = {name: [{"split": "train", "path": path}] for name, path in configs.items()}
    tables: list[dict[str, Any]] = [{"config_name": name, "data_files": parts} for name, parts in files.items()]
    tables[0]["default"] = True
    data = DatasetCardData(
        **terms,
        language=list(languages) or None,
        multilinguality=("multilingual" if len(languages) > 1 else "monolingual") if languages else None,
        pretty_name=without_surrogates(bundle.title),
        task_categories=["question-answering", "text-retrieval"] if has_questions else ["text-retrieval"],
        task_ids=["closed-domain-qa", "document-retrieval"] if has_questions else ["document-retrieval"],
        annotations_creators=list(text.annotations) or None,
        source_datasets=[f"extended|other-{text.derived}"] if text.derived else None,
        tags=[without_surrogates(tag) for tag in dict.fromkeys(words)],
        size_categories=find_size_category(bundle.counts.questions or bundle.counts.documents),
        configs=tables,
    )
    return f"{data.to_yaml()}\n"


def find_size_category(rows: int) -> str:
    """Return the Hub's size category for a number of rows, such as `1K<n<10K`."""
    names = ["n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M"]
    return names[min(max(len(str(rows)) - 3, 0), len(names) - 1)]


def escape_cell(text: object) -> str:
    """Return a text escaped for a cell of a Markdown table, so that no character acts as Markdown or HTML."""
    words = " ".join(str(text).split())
    words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    words = re.sub(r"([\\`*_\[\]|~#$])", r"\\\1", words)
    return re.sub(r"^([-+=]|\d+[.)])", r"\\\1", words)  # escape a list or a heading at the start of a line


def format_code(text: object) -> str:
    """Return a text as inline code, even if it contains backticks."""
    words = " ".join(str(text).split()).replace("|", "¦")
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", words)), default=0))
    edge = " " if words.startswith("`") or words.endswith("`") else ""
    return f"{ticks}{edge}{words}{edge}{ticks}"


def format_fence(text: str, language: str) -> str:
    """Return a code block whose fence is longer than any fence in the text."""
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{ticks}{language}\n{text}\n{ticks}"


def link(text: str, address: str) -> str:
    """Return a link, or only its text if the address is not safe."""
    safe = re.fullmatch(r"https?://[^\s<>\"]+", address)
    return f"[{escape_cell(text)}](<{address}>)" if safe else escape_cell(text)


def _format_command(bundle: BundleInfo, command: str) -> str:
    flags = []
    for name, value in bundle.options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            flags.append(flag)
        elif value is not False and value is not None and value != "":
            flags.append(f"{flag} {shlex.quote(str(value))}")
    # `exhibit vary` writes a control beside its variant
    name = bundle.name.removesuffix("-control") if command.startswith("exhibit vary ") else bundle.name
    return " ".join([command, *flags, f"--out {shlex.quote(f'datasets_out/{name}')}"])


def _format_citation(bundle: BundleInfo) -> str:
    key = re.sub(r"[^a-z0-9]+", "-", bundle.name.lower()).strip("-") or "bundle"
    title, source = (re.sub(r"[{}\\]", "", " ".join(words.split())) for words in (bundle.title, bundle.source.name))
    return (
        f"@misc{{exhibit-{key},\n"
        f"  title = {{{{{title}}}: documents and questions with located gold}},\n"
        f"  note = {{Converted from {source} by {bundle.tool.name} {bundle.tool.version}}}\n}}"
    )


def _cut_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut_texts(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_cut_texts(part) for part in value]
    return f"{value[:_CUT]} …" if isinstance(value, str) and len(value) > _CUT else value


PICTURE = "page.png"
_CUT = 300  # most characters of a text in the card's example
_READABLE = 300  # most characters of a passage that a reader can read at a glance


class Example(NamedTuple):
    """The example on the card: a question, its gold, and the number of the page that `page.png` shows."""

    row: Row
    line: Gold
    page: int | None = None


def choose(rows: Sequence[Row], gold: Sequence[Gold]) -> list[Example]:
    """Return candidate examples; the best have one located passage, on one page, of about 300 characters."""
    lines = {line.id: line for line in reversed(gold)}  # the first line of each question

    def rank(example: Example) -> tuple[bool, bool, bool, int, int]:
        row, line, _ = example
        length = sum(len(context.text or "") for context in row.contexts)
        return (not line.spans, len(row.contexts) != 1, len(line.pages) > 1, abs(length - _READABLE), row.id)

    return sorted((Example(row, lines[row.id]) for row in rows), key=rank)


def write_example(rows: Sequence[Row], gold: Sequence[Gold], folder: Path) -> Example | None:
    """Choose the example question of the dataset card, and write an image of the page with its gold."""
    examples = choose(rows, gold)[:5]
    for example in examples:
        line = example.line
        if len(line.pages) != 1:
            continue
        try:
            document = read_within(folder / CORPUS / str(line.filename))
            picture = draw_spans(document, [Span(*span) for span in line.spans], scale=1.3).get(line.pages[0])
        except DocumentError:  # a page that is too large to draw
            continue
        if picture:
            written = ImageChops.invert(picture.convert("L")).getbbox()
            if written:  # crop: the last page of a document is mostly blank
                picture = picture.crop((0, 0, picture.width, min(picture.height, written[3] + picture.width // 16)))
            framed = ImageOps.expand(picture, border=1, fill=(200, 204, 210))  # a frame around the white paper
            framed.quantize(32).save(folder / PICTURE, "PNG", optimize=True)
            return example._replace(page=line.pages[0])
    return next(iter(examples), None)
