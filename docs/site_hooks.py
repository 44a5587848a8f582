"""Hooks that add pages to the MkDocs site: the README, the measurements, and pages made from the code.

The pages made from the code describe commands, settings, metrics, fields and the Python API. MkDocs calls
the `on_…` functions (mkdocs.yml).
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import posixpath
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from exhibit.__main__ import EXIT_CODES, VERBS
from exhibit.evaluation.metrics import import_metrics
from exhibit.evaluation.settings import list_settings
from exhibit.schemas.generate import generate

ROOT = Path(__file__).parent.parent
_LINK = re.compile(r"(\]\(|(?:src|href)=\")(?!\w+:|#|/)([^)#\"\s]+)")
"""A link to a file, in Markdown or HTML."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are not in docs/, and the files that pages link to."""
    pages = {"index.md": ROOT / "README.md"}
    pages |= {f"measured/{path.name}": path for path in sorted((ROOT / "bench" / "results").glob("*.md"))}
    for place, path in pages.items():
        files.append(File.generated(config, place, content=_move_links(path.read_text(encoding="utf-8"), path, place)))
    for place, text in write_reference().items():
        files.append(File.generated(config, place, content=text))
    texts = [(path, path.read_text(encoding="utf-8")) for path in [*(ROOT / "docs").glob("*.md"), *pages.values()]]
    linked = {(path.parent / link).resolve() for path, text in texts for _, link in _LINK.findall(text)}
    for target in sorted(path for path in linked if path.is_file() and _place(path).startswith("files/")):
        if target.suffix == ".md":
            text = _move_links(target.read_text(encoding="utf-8"), target, _place(target))
            files.append(File.generated(config, _place(target), content=text))
        else:
            files.append(File.generated(config, _place(target), abs_src_path=str(target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Return a page with its links to files outside docs/ rewritten to the copies of these files in the site.

    In a page below files/, a link such as `../../tags`, which only the web host of the repository can resolve,
    is replaced by its text.
    """
    path = ROOT / "docs" / page.file.src_uri
    if page.file.src_uri.startswith("files/"):
        folder = posixpath.dirname(page.file.src_uri)

        def link(match: re.Match[str]) -> str:
            target = posixpath.normpath(posixpath.join(folder, match[2]))
            return match[0] if files.get_file_from_path(target) else match[1]

        return re.sub(r"\[([^\]\n]+)\]\((\.\./\.\./[^)#\n]*)[^)\n]*\)", link, markdown)
    return _move_links(markdown, path, page.file.src_uri) if path.is_file() else markdown


def _place(target: Path) -> str:
    """Return the path that a file of the repository has in the documentation site."""
    inside = target.relative_to(ROOT).as_posix()
    if inside == "README.md":
        return "index.md"
    if inside.startswith("docs/"):
        return inside.removeprefix("docs/")
    if inside.startswith("bench/results/") and inside.endswith(".md"):
        return f"measured/{target.name}"
    return f"files/{inside}"


def _move_links(text: str, path: Path, place: str) -> str:
    """Return a page's text with its relative links rewritten for its path in the site."""

    def link(match: re.Match[str]) -> str:
        target = (path.parent / match[2]).resolve()
        if target.is_dir() or not target.is_relative_to(ROOT):
            target /= "README.md"
        if not target.is_file():
            return match[0]
        return match[1] + posixpath.relpath(_place(target), posixpath.dirname(place) or ".")

    return _LINK.sub(link, text)


# ---------------------------------------------------------------- pages from the code


def write_reference() -> dict[str, str]:
    """Return the pages that are written from the code: the Markdown text by file name."""
    return {
        "reference-commands.md": "\n".join(["# Commands\n", *_describe_commands()]),
        "reference-settings.md": "\n".join(["# Settings\n", "`evaluate --set NAME=VALUE`\n", *_describe_settings()]),
        "reference-metrics.md": "\n".join(["# Metrics\n", *_describe_metrics()]),
        "reference-fields.md": "\n".join(["# Fields\n", *_describe_fields()]),
        "api.md": "\n".join(["# Python API\n", *_describe_modules()]),
    }


def help_of(name: str) -> str:
    """Return what `exhibit NAME --help` prints."""
    verb, text = VERBS[name], io.StringIO()
    with (
        patch.dict(os.environ, COLUMNS="100"),
        contextlib.redirect_stdout(text),
        contextlib.suppress(SystemExit),
    ):
        import_module(verb.module).main([*verb.words, "--help"])
    return text.getvalue()


def _describe_commands() -> Iterator[str]:
    for name, verb in VERBS.items():
        yield f"## `exhibit {name}`\n\n{verb.help}\n\n```text\n{help_of(name)}```\n"
    yield from ("## Exit codes\n", "| code | meaning |", "|---|---|")
    yield from (f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items())


def _format_cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def _describe_settings() -> Iterator[str]:
    yield from ("| setting | of | values | default | meaning |", "|---|---|---|---|---|")
    for one in list_settings().values():
        cells = " | ".join(map(_format_cell, (one.values, one.default, one.meaning)))
        yield f"| `{one.name}` | {one.group} | {cells} |"


def _describe_metrics() -> Iterator[str]:
    yield from ("| metric | what it is | group | better |", "|---|---|---|---|")
    for name, described in import_metrics().items():
        meaning = _format_cell(f"{described.title}: {described.meaning}")
        yield f"| `{name}` | {meaning} | {described.group} | {described.better} |"


def _describe_fields() -> Iterator[str]:
    for name, text in generate().items():
        yield f"## `{name.removesuffix('.schema.json')}`\n"
        schema = json.loads(text)
        models = {schema.get("title", name): schema, **schema.get("$defs", {})}
        yield from ("| of | field | type | meaning |", "|---|---|---|---|")
        for title, model in models.items():
            for field, described in model.get("properties", {}).items():
                several = ", ".join(one.get("type", "object") for one in described.get("anyOf", ()))
                kind = described.get("type") or several or "object"
                yield f"| {title} | `{field}` | {kind} | {_format_cell(described.get('description', ''))} |"
        yield ""


PUBLIC = (
    "exhibit.bundles", "exhibit.conversion", "exhibit.runs", "exhibit.viewer.compare", "exhibit.evidence.locate",
    "exhibit.evidence.read", "exhibit.evidence.document", "exhibit.rag.pipeline", "exhibit.rag.config",
    "exhibit.rag.protocols", "exhibit.models.protocols", "exhibit.models.llms", "exhibit.evaluation.targets",
    "exhibit.evaluation.cases", "exhibit.evaluation.metrics",
    "exhibit.converters", "exhibit.hub.publish", "exhibit.schemas.models", "exhibit.schemas.run",
    "exhibit.schemas.errors",
)  # fmt: skip
"""Modules that users import: the public names of `exhibit`, and the modules for plug-ins."""


def _describe_modules() -> Iterator[str]:
    for module in PUBLIC:
        yield f"::: {module}\n"
