"""The HTML layout that all results pages share, and its texts in several languages."""

import base64
import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

_STATIC, _LANGUAGES = (Path(__file__).parent / name for name in ("static", "languages"))
_NO_XML = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~])")

GROUP_MEANINGS: Mapping[str, str] = {
    "Retrieval": "Did the system find the passages that answer the question, and how much else did it bring?",
    "Stages": "How much of the answer's words is left after each step, from the file to the passages?",
    "Answers": "Is the answer right, and did the system refuse where the documents do not answer?",
    "Citations": "Does the answer name its sources, and do the named places say what it says?",
    "Cost": "How long did a reply take, and how much text did a model read and write for it?",
    "Other": "Measures of your own, and those that belong to no other group.",
}
"""The question that each group of metrics answers, in one sentence for a lawyer."""


def format_page(
    title: str,
    body: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    data: Mapping[str, str] | None = None,
    pieces: bool = False,
    served: bool = False,
    language: str = "en",
) -> str:
    """Return a complete HTML page: `body` inside the layout that all results pages share.

    `styles` are added after the shared style sheet. `scripts` run in their order at the end of the body. `data`
    are JSON blocks (made with `as_json`), which the scripts read by id. The content security policy blocks
    every other script and every request. With `pieces`, the page may also load scripts and images from its own
    folder. A page that is `served` by `exhibit view` may send requests to that server.
    """
    css = "\n".join(map(read, ["viewer.css", *styles]))
    code = translate("\n".join(map(read, scripts)), language)
    blocks = "".join(
        f'<script type="application/json" id="{escape(name)}">{text}</script>\n' for name, text in (data or {}).items()
    )
    text = (
        f'<!doctype html>\n<html lang="{escape(language)}">\n'
        '<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_make_policy(css, code, pieces, served)}">\n'
        f"<title>{escape(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n{body}\n{blocks}"
        + (f"<script>{code}</script>\n" if code else "")
        + "</body>\n</html>\n"
    )
    # a lone surrogate, which a model can produce, cannot be encoded as UTF-8
    return text.encode("utf-8", "replace").decode("utf-8")


def read(name: str) -> str:
    """Return the text of one of the viewer's static files: a style sheet, a script or a template."""
    return (_STATIC / name).read_text(encoding="utf-8")


def render(template: str, *, language: str = "en", **values: Any) -> Markup:
    """Return a filled template; all values are escaped."""
    return Markup(_make_environment(language).get_template(template).render(**values))


def list_languages() -> list[str]:
    """Return the available languages, English first."""
    return ["en", *sorted(path.stem for path in _LANGUAGES.glob("*.toml"))]


@cache
def _read_texts(language: str) -> dict[str, Any]:
    """Return the translations of a language: each English text of a template or script with its translation.

    The key `words` holds a second mapping, for the texts that the program inserts into a page.
    """
    if language == "en":
        return {"words": {}}
    return tomllib.loads((_LANGUAGES / f"{language}.toml").read_text(encoding="utf-8"))


def read_words(language: str) -> dict[str, str]:
    """Return the translations of the names and sentences that the program writes into a page."""
    return dict(_read_texts(language)["words"])


def say(language: str, text: str, **values: object) -> str:
    """Return a text in a language, filled with values; in English where there is no translation."""
    other: str = _read_texts(language)["words"].get(text, text)
    return other.format(**values) if values else other


def translate(source: str, language: str) -> str:
    """Return a template or a script with its texts translated into a language.

    A text is replaced only as a whole, between quotation marks, backquotes or tags.
    """
    for english, other in _read_texts(language).items():
        for first, last in ('""', "``", "><") if english != "words" else ():
            source = source.replace(f"{first}{english}{last}", f"{first}{other}{last}")
    return source


def escape_markdown(text: object) -> Markup:
    """Return a text with its Markdown characters escaped, because names and questions are untrusted input."""
    return Markup(_MARKDOWN.sub(r"\\\1", " ".join(str(text).split())))


@cache
def _make_environment(language: str) -> Environment:
    # cached: to compile the templates takes longer than to fill them for a small run
    environment = Environment(
        loader=FunctionLoader(lambda name: translate(read(name), language)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": escape_markdown, "t": lambda text: say(language, str(text))}
    environment.filters["fill"] = lambda text, *values: text.format(*values)
    environment.filters["xml"] = lambda text: _NO_XML.sub("\ufffd", text)  # characters that XML does not allow
    return environment


def _make_policy(css: str, code: str, pieces: bool, served: bool) -> str:
    # `file:` is the equivalent of 'self' for a page that is opened by double click
    beside = " 'self' file:" if pieces else ""
    script = f"'{_hash_text(code)}'{beside}" if code else "'none'"
    asked, form = ("connect-src 'self'; ", "'self'") if served else ("", "'none'")
    beside = beside or (" 'self'" if served else "")
    return (
        f"default-src 'none'; {asked}img-src data:{beside}; style-src '{_hash_text(css)}'; script-src {script}; "
        f"base-uri 'none'; form-action {form}"
    )


def _hash_text(text: str) -> str:
    """Return the hash by which a content security policy allows exactly this script or style sheet."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
