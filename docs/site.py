"""The pages of docs/ as a site: `python -m docs.site FOLDER`, which `make docs` runs; no network, no script.

Beside the pages stands the reference, written from the code: commands, settings, metrics, fields and exit codes.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import quote, unquote

from markdown_it import MarkdownIt

from exhibit.commands import EXIT_CODES, VERBS
from exhibit.evaluation.catalogue import catalogue
from exhibit.evaluation.metrics import about, abouts_of, headline, metric_modules, parameters_of
from exhibit.schemas.generate import generate

ROOT = Path(__file__).parent.parent
HELP = ROOT / "exhibit" / "help.json"
SECTIONS = {
    "Start": ("tutorial", "install", "python"),
    "Make bundles": ("bundle", "files", "locating", "print", "draft", "statutes", "shapes", "converters"),
    "Test a system": ("evaluation", "targets", "metrics", "citations", "report", "trend", "review"),
    "Publish": ("hub", "hub-cards"),
    "The pipeline": ("rag", "retrieval"),
    "Grow": ("engines", "stores", "storage"),
    "Extend": ("extending", "architecture", "differences", "parts"),
    "Promises": ("reliability", "security"),
    "Reference": ("reference-commands", "reference-settings", "reference-metrics", "reference-fields"),
}
_STYLE = """
body{margin:0;font:17px/1.55 system-ui,sans-serif;color:#1d2430;background:#fff;display:flex}
nav{flex:0 0 15rem;padding:1.5rem;background:#f4f5f7;min-height:100vh;box-sizing:border-box}
nav b{display:block;margin:1rem 0 .2rem}nav a{display:block;color:inherit;text-decoration:none;padding:.1rem 0}
nav a[aria-current]{font-weight:600;color:#0b57a4}main{max-width:52rem;padding:1.5rem 2.5rem;min-width:0}
pre{background:#f4f5f7;padding:.8rem;overflow:auto}code{font-size:.9em}table{border-collapse:collapse;display:block;
overflow:auto}td,th{border:1px solid #d5d9e0;padding:.3rem .6rem;text-align:left;vertical-align:top}img{max-width:100%}
@media(max-width:800px){body{display:block}nav{min-height:0}main{padding:1rem}}
@media(prefers-color-scheme:dark){body{color:#e4e7ec;background:#14171c}nav,pre{background:#1d2229}
td,th{border-color:#3a414c}a{color:#7db7f5}nav a[aria-current]{color:#7db7f5}}
"""


def reference() -> dict[str, str]:
    """Return the pages that are written from the code, as Markdown."""
    kept: dict[str, str] = json.loads(HELP.read_text(encoding="utf-8"))
    commands = [f"## `exhibit {name}`\n\n{VERBS[name].help}\n\n```text\n{kept[name]}```\n" for name in VERBS]
    codes = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    commands += ["## Exit codes\n", "| code | meaning |", "|---|---|", *codes]
    return {
        "reference-commands": "\n".join(["# Commands\n", *commands]),
        "reference-settings": "\n".join(["# Settings\n", "`evaluate --set NAME=VALUE`\n", *_settings()]),
        "reference-metrics": "\n".join(["# Metrics\n", *_metrics()]),
        "reference-fields": "\n".join(["# Fields\n", *_fields()]),
    }


def _cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def _settings() -> Iterator[str]:
    yield from ("| setting | of | values | default | meaning |", "|---|---|---|---|---|")
    for one in catalogue().values():
        yield f"| `{one.name}` | {one.group} | {_cell(one.values)} | {_cell(one.default)} | {_cell(one.meaning)} |"


def _metrics() -> Iterator[str]:
    yield from ("| metric | what it is | group | better | parameters | headline |", "|---|---|---|---|---|---|")
    for file, module in metric_modules().items():
        parameters = ", ".join(f"{name}={one.default}" for name, one in parameters_of(module).items())
        for name in abouts_of(module):
            told = about(name)
            first = headline(file) if headline(file).partition("@")[0] == name else ""
            meaning = f"{told.title}: {told.meaning}"
            yield f"| `{name}` | {_cell(meaning)} | {told.group} | {told.better} | {_cell(parameters)} | {first} |"


def _fields() -> Iterator[str]:
    for name, text in generate().items():
        yield f"## `{name.removesuffix('.schema.json')}`\n"
        schema = json.loads(text)
        models = {schema.get("title", name): schema, **schema.get("$defs", {})}
        yield from ("| of | field | type | meaning |", "|---|---|---|---|")
        for title, model in models.items():
            for field, told in model.get("properties", {}).items():
                kind = (
                    told.get("type")
                    or ", ".join(one.get("type", "object") for one in told.get("anyOf", ()))
                    or "object"
                )
                yield f"| {title} | `{field}` | {kind} | {_cell(told.get('description', ''))} |"
        yield ""


def build(folder: Path) -> list[Path]:
    """Write the site into a folder and return its pages; end where a page is missing from the sections."""
    sources = {path.stem: path for path in sorted((ROOT / "docs").glob("*.md"))}
    written = reference()
    listed = [name for names in SECTIONS.values() for name in names]
    if sorted([*sources, *written]) != sorted(listed):
        raise SystemExit(f"docs/site.py: SECTIONS and docs/ differ: {sorted({*sources, *written} ^ set(listed))}")
    sources |= {f"measured-{path.stem}": path for path in sorted((ROOT / "bench" / "results").glob("*.md"))}
    sources["index"] = ROOT / "README.md"
    texts = {name: path.read_text(encoding="utf-8") for name, path in sources.items()} | written
    titles = {name: re.sub(r"[`#]", "", text.partition("\n")[0]).strip() for name, text in texts.items()}
    names = {path: name for name, path in sources.items()}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in texts.items():
        body = MarkdownIt("commonmark").enable("table").render(text)
        beside = sources.get(name, ROOT / "docs" / "x").parent
        links = partial(_link, beside=beside, names=names, folder=folder)
        body = re.sub(r'(href|src)="([^"]+)"', links, body)
        (folder / f"{name}.html").write_text(_page(name, titles, body), encoding="utf-8", newline="\n")
    return [folder / f"{name}.html" for name in texts]


def _link(found: re.Match[str], *, beside: Path, names: dict[Path, str], folder: Path) -> str:
    """Return a link as the site has it; a file that is no page is copied and linked there."""
    path, mark, anchor = html.unescape(found[2]).partition("#")
    if "://" in path or not path:
        return found[0]
    target = (beside / unquote(path)).resolve()
    if target in names:
        return f'{found[1]}="{names[target]}.html{mark}{anchor}"'
    copy = Path("files") / target.relative_to(ROOT)
    if target.is_file():
        (folder / copy).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, folder / copy)
    return f'{found[1]}="{quote(copy.as_posix())}"'


def _page(name: str, titles: dict[str, str], body: str) -> str:
    body = re.sub(r"<h([23])>(.*?)</h\1>", lambda m: f'<h{m[1]} id="{_slug(m[2])}">{m[2]}</h{m[1]}>', body)
    parts = ['<a href="index.html">Exhibit</a>']
    for section, names in SECTIONS.items():
        parts.append(f"<b>{section}</b>")
        for one in names:
            here = " aria-current=page" if one == name else ""
            parts.append(f'<a href="{one}.html"{here}>{html.escape(titles[one].partition(":")[0])}</a>')
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><style>{_STYLE}</style>"
    head += f"<title>{html.escape(titles[name])}</title>"
    return f"<!doctype html><html lang=en>{head}<nav>{''.join(parts)}</nav><main>{body}</main></html>\n"


def _slug(heading: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", re.sub(r"<[^>]+>", "", heading).lower()).strip("-")


if __name__ == "__main__":
    print(f"{len(build(Path(sys.argv[1])))} pages in {sys.argv[1]}")
