"""HTML split into tags and text as a browser does it."""

from __future__ import annotations

import pytest

from exhibit.evidence.markup import split_markup, unescape


def cut(markup: str) -> str:
    """Return the tokens joined by `|`: `<p>`, `</p>`, and texts unchanged."""
    marks = {"start": "<{}>", "end": "</{}>", "text": "{}"}
    return "|".join(marks[piece.kind].format(piece.value) for piece in split_markup(markup))


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("", ""),
        ("plain", "plain"),
        ("<p>a</p>", "<p>|a|</p>"),
        ("a<P CLASS=x>b</P >c", "a|<p>|b|</p>|c"),
        ("1 < 2 <3 a<b", "1 < 2 <3 a"),
        ("<br/>x<hr />", "<br>|</br>|x|<hr>|</hr>"),
        ("<a href='x>y'>z", "<a>|z"),
        ('<a href = "x>y">z', "<a>|z"),
        ("<a href=" + " " * 14 + "'x>y'>z", "<a>|z"),
        ("<a href=" + " " * 16 + "'x>y'>z", "<a>|y'>z"),
        ("<a b'c>d'>e", "<a>|d'>e"),
        ("<a b='c>d", "<a>|d"),
        ("<a b='c' d=\"e>f\">g", "<a>|g"),
        ("<a b='x><c d='y>z'>w", "<a>|z'>w"),
        ("1>0<a b='c>d", "1>0|<a>|d"),
        ("<a b='='>c'>d", "<a>|c'>d"),
        ("a<!-- x > y -->b", "a|b"),
        ("a<!---->b<!-- -->c", "a|b|c"),
        ("a<!-->b-->c", "a|b-->c"),
        ("a<!--->b-->c", "a|b-->c"),
        ("a<!-- never ends", "a"),
        ("a<!doctype html>b<?xml ?>c<![foo[ x ]]>d", "a|b|c|d"),
        ("a</>b</ x>c", "a|b|c"),
        ("a</p", "a|</p>"),
        ("a<p", "a"),
        ("a<p>", "a|<p>"),
        ("<script>if (a<b) '</p>'</script>x", "<script>|if (a<b) '</p>'|</script>|x"),
        ("<style>p{}</STYLE\n>x", "<style>|p{}|</style>|x"),
        ("<title>A &amp; <b></title>x", "<title>|A & <b>|</title>|x"),
        ("<script>&amp;", "<script>|&amp;"),
        ("<textarea>&lt;", "<textarea>|<"),
        ("<script/>x</script>", "<script>|</script>|x|</script>"),
        ("<script></scripts></script>x", "<script>|</scripts>|</script>|x"),
    ],
)
def test_pieces(markup, expected):
    assert cut(markup) == expected


def test_references_to_characters():
    assert unescape("a&lt;b &#65; &#x41; no & sign") == "a<b A A no & sign"
    assert unescape("&#65536;") == chr(65536)
    assert unescape(f"&#{'9' * 5000};x") == "\ufffdx"
    assert unescape("&#12345678;") == unescape("&#x12345678;") == "\ufffd"
