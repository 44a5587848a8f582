"""The frame of every page of results: one look in light, dark and print, and a policy that lets nothing else run."""

import base64
import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

_STATIC = Path(__file__).parent / "static"
_LANGUAGES = _STATIC.with_name("languages")
_NO_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")


def page(
    title: str,
    body: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    data: Mapping[str, str] | None = None,
    pieces: bool = False,
    language: str = "en",
) -> str:
    """Return a whole HTML page: `body` inside the look that all pages of results share.

    `styles` are style sheets after the shared one, `scripts` run in their order at the end of the body, and `data` is
    put in front of them as blocks that scripts read by id (make them with `as_json`). Nothing else can run in the
    page, and it asks nothing of any server; with `pieces` it may also load scripts and images from beside itself.
    """
    css = "\n".join(map(read, ["viewer.css", *styles]))
    code = translated("\n".join(map(read, scripts)), language)
    blocks = "".join(
        f'<script type="application/json" id="{escape(name)}">{text}</script>\n' for name, text in (data or {}).items()
    )
    text = (
        f'<!doctype html>\n<html lang="{escape(language)}">\n'
        '<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(css, code, pieces)}">\n'
        f"<title>{escape(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n{body}\n{blocks}"
        + (f"<script>{code}</script>\n" if code else "")
        + "</body>\n</html>\n"
    )
    # half a surrogate pair, which a model can emit, is no UTF-8
    return text.encode("utf-8", "replace").decode("utf-8")


def as_json(value: Any) -> Markup:
    """Return JSON that can stand inside a script element: nothing in it can end the element or a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text.encode("utf-8", "replace").decode("utf-8"))


def read(name: str) -> str:
    """Return a style sheet or a script of the viewer."""
    return (_STATIC / name).read_text(encoding="utf-8")


def render(template: str, *, language: str = "en", **values: Any) -> Markup:
    """Return a template, filled; everything in it is escaped."""
    return Markup(_environment(language).get_template(template).render(**values))


def languages() -> list[str]:
    """Return the languages that there is a file of words for, English first."""
    return ["en", *sorted(path.stem for path in _LANGUAGES.glob("*.toml"))]


@cache
def _texts(language: str) -> dict[str, Any]:
    """Return a language's file, English = translation: texts of templates and scripts, and `words` put into them."""
    if language == "en":
        return {"words": {}}
    return tomllib.loads((_LANGUAGES / f"{language}.toml").read_text(encoding="utf-8"))


def words(language: str) -> dict[str, str]:
    """Return what a language calls the names and sentences that the program puts into a page."""
    return dict(_texts(language)["words"])


def say(language: str, text: str, **values: object) -> str:
    """Return a text in a language, filled with values; in English where its file does not know it."""
    other: str = _texts(language)["words"].get(text, text)
    return other.format(**values) if values else other


def translated(source: str, language: str) -> str:
    """Return a template or a script in another language: whole texts that its file knows, in quotes or between tags."""
    for english, other in _texts(language).items():
        for first, last in ('""', "``", "><") if english != "words" else ():
            source = source.replace(f"{first}{english}{last}", f"{first}{other}{last}")
    return source


def plain(text: object) -> Markup:
    """Return text that Markdown shows as it stands: names and questions come from outside."""
    return Markup(_MARKDOWN.sub(r"\\\1", " ".join(str(text).split())))


@cache
def _environment(language: str) -> Environment:
    # kept: to compile the templates takes longer than to fill them for a small run
    environment = Environment(
        loader=FunctionLoader(lambda name: translated(read(name), language)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": plain, "t": lambda text: say(language, str(text))}
    environment.filters["fill"] = lambda text, *values: text.format(*values)
    environment.filters["xml"] = lambda text: _NO_XML.sub("\ufffd", text)  # which XML cannot hold
    return environment


def _policy(css: str, code: str, pieces: bool) -> str:
    # `file:` is what 'self' means where a page was opened by double click
    beside = " 'self' file:" if pieces else ""
    script = f"'{_hash(code)}'{beside}" if code else "'none'"
    return (
        f"default-src 'none'; img-src data:{beside}; style-src '{_hash(css)}'; script-src {script}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    """Return what the page's policy allows: this text and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
