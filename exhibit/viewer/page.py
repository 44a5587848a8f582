"""The HTML layout that all pages share, and the templates in `static/`."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

Record = dict[str, Any]  # the data that the scripts of a page read

_STATIC = Path(__file__).parent / "static"


def format_page(
    title: str, body: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = (),
    data: Mapping[str, str] | None = None, pieces: bool = False, served: bool = False,
) -> str:  # fmt: skip
    """Return a complete HTML page; its content security policy allows only the page's own scripts, and no requests.

    `data` are JSON blocks (made with `as_json`), which the scripts read by id. With `pieces`, the page may load
    scripts and images from its own folder. A page that is `served` by `exhibit view` may send requests to it.
    """
    css, code = "\n".join(map(read, ["viewer.css", *styles])), "\n".join(map(read, scripts))
    block = '<script type="application/json" id="{}">{}</script>\n'
    blocks = "".join(block.format(escape(name), text) for name, text in (data or {}).items())
    text = (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_make_policy(css, code, pieces, served)}">\n'
        f"<title>{escape(title)}</title>\n<style>{css}</style>\n</head>\n<body>\n{body}\n{blocks}"
        + (f"<script>{code}</script>\n" if code else "")
        + "</body>\n</html>\n"
    )
    # a lone surrogate, which a model can produce, cannot be encoded as UTF-8
    return text.encode("utf-8", "replace").decode("utf-8")


def _make_policy(css: str, code: str, pieces: bool, served: bool) -> str:
    digests = [base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii") for text in (css, code)]
    style, script = (f"'sha256-{digest}'" for digest in digests)
    # for a page that is opened as a file, `file:` has the effect of 'self'
    beside = " 'self' file:" if pieces else ""
    connect, form = ("connect-src 'self'; ", "'self'") if served else ("", "'none'")
    images = beside or (" 'self'" if served else "")
    allowed = f"{script}{beside}" if code else "'none'"
    sources = f"img-src data:{images}; style-src {style}; script-src {allowed}"
    return f"default-src 'none'; {connect}{sources}; base-uri 'none'; form-action {form}"


def read(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8")


def render(template: str, **values: Any) -> Markup:
    return Markup(_make_environment().get_template(template).render(**values))


@cache
def _make_environment() -> Environment:
    # cached: for a small run, compiling the templates takes longer than filling them
    environment = Environment(
        loader=FunctionLoader(read), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["fill"] = lambda text, *values: text.format(*values)
    return environment


def as_json(value: Any) -> Markup:
    """Return a value as JSON that is safe inside a script element: it cannot close the element or break a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text.encode("utf-8", "replace").decode("utf-8"))


def cut(text: str, longest: int) -> str:
    """Return a text cut to `longest` characters; an ellipsis marks the cut."""
    return text if len(text) <= longest else f"{text[:longest]} …"
