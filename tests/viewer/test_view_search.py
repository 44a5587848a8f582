"""`exhibit view`: full-text search in a bundle's documents, whatever their file type."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient

from exhibit.engine import open_engine
from exhibit.viewer.server.app import make_application
from exhibit.viewer.server.library import key_of
from exhibit.viewer.server.search import TextSearch, lower

HOST, TOKEN = "127.0.0.1:8000", "a-token-of-the-test"
PATIENCE = 120.0  # seconds that a busy machine may take to start a worker
LICENCE = (
    "Software Licence\n\n1. Grant. Brindle Data GmbH grants Osier Labs Ltd a licence.\n\n"
    "2. Liability. The liability of the Licensor\nis limited to the fees paid in the year before.\n"
)
LETTER = "Dear Ms Ashby,\n\nwe accept no liability for the delay.\n\nThe fees are due on Monday.\n"
MIETE = "Mietvertrag\n\n§ 4 Kündigung. Der Mieter kann mit einer Frist von drei Monaten KÜNDIGEN.\n"


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A minimal bundle of three texts, one with a hostile name, and a `.pdf` file that is not a PDF."""
    folder = tmp_path / "datasets_out" / "texts"
    corpus = folder / "corpus"
    corpus.mkdir(parents=True)
    for name, text in {"licence.txt": LICENCE, "letter <b>.txt": LETTER, "miete.txt": MIETE}.items():
        (corpus / name).write_text(text, encoding="utf-8")
    (corpus / "damaged.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    row = {"question": "Who grants?", "answer": "Brindle Data GmbH", "is_impossible": False, "id": 1}
    row["contexts"] = [{"filename": "licence.txt", "text": "Brindle Data GmbH grants Osier Labs Ltd a licence."}]
    (folder / "train.json").write_text(json.dumps([row]), encoding="utf-8")
    return folder


@pytest.fixture
def texts(tmp_path: Path) -> TextSearch:
    return TextSearch(tmp_path / "texts.sqlite", engine=open_engine("serial"))


def files_of(bundle: Path) -> dict[str, Path]:
    return {path.name: path for path in (bundle / "corpus").iterdir()}


def found(texts: TextSearch, bundle: Path, words: str) -> dict[str, list[str]]:
    """Return the marked words of each passage, by document."""
    result = texts.find(files_of(bundle), words, patience=PATIENCE)
    return {
        one.name: ["|".join(piece.text for piece in passage.pieces if piece.is_hit) for passage in one.passages]
        for one in result.documents
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("grants", {"licence.txt": ["grants"]}),
        ("LIABILITY fees", {"letter <b>.txt": ["liability|fees"], "licence.txt": ["Liability|liability|fees"]}),
        ('"licensor is limited"', {"licence.txt": ["Licensor\nis limited"]}),
        ('"is licensor"', {}),
        ("kündig", {"miete.txt": ["Kündig|KÜNDIG"]}),
        ("bility", {}),
        ("zebra", {}),
        ("grants zebra", {}),
    ],
)
def test_documents_with_all_the_words_are_found_and_the_words_marked(texts, bundle, words, expected):
    assert found(texts, bundle, words) == expected


def test_a_document_that_cannot_be_read_is_named_and_the_others_are_searched(texts, bundle):
    result = texts.find(files_of(bundle), "fees", patience=PATIENCE)
    assert (result.read, result.of, result.total) == (4, 4, 2) and list(result.unread) == ["damaged.pdf"]


def test_a_document_that_changed_is_read_again_and_the_others_are_not(texts, bundle):
    assert found(texts, bundle, "arbitration") == {}
    (bundle / "corpus" / "letter <b>.txt").write_text("We agree on arbitration.", encoding="utf-8")
    assert found(texts, bundle, "arbitration") == {"letter <b>.txt": ["arbitration"]}


class WaitingEngine:
    """An engine that reads the first document at once and the others when the test allows it."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def map(self, function, items):
        for number, item in enumerate(items):
            if number:
                self.go_on.wait()
            yield from open_engine("serial").map(function, [item])


def test_what_was_read_so_far_is_shown_while_the_rest_is_read(bundle, tmp_path):
    engine, files = WaitingEngine(), files_of(bundle)
    texts = TextSearch(tmp_path / "texts.sqlite", engine=engine)
    while (result := texts.find(files, "fees", patience=0.1)).read < 1:
        pass
    assert (result.read, result.of) == (1, 4)
    engine.go_on.set()
    assert texts.find(files, "fees", patience=PATIENCE).read == 4


def test_passages_with_most_of_the_words_come_first(texts, bundle):
    far = "Fees. " + "Other words stand here. " * 40
    (bundle / "corpus" / "long.txt").write_text(f"{far}{far}Liability for fees is excluded.", encoding="utf-8")
    result = texts.find(files_of(bundle), "fees liability", patience=PATIENCE)
    long = next(one for one in result.documents if one.name == "long.txt")
    assert [sum(piece.is_hit for piece in passage.pieces) for passage in long.passages] == [2, 1, 1]
    assert result.total == 3 and long.places == 4


def test_small_letters_are_as_many_as_the_capital_ones():
    assert lower("İSTANBUL Kündigung") == "İstanbul kündigung" and lower("ΑΒΓ") == "αβγ"


# ---------------------------------------------------------------- on the page


@pytest.fixture
def client(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("exhibit.viewer.server.search.PATIENCE", PATIENCE)
    app = make_application([bundle.parent], token=TOKEN, hosts=[HOST])
    with TestClient(app, base_url=f"http://{HOST}/{TOKEN}/", follow_redirects=True) as one:
        yield one


def test_the_page_of_a_bundle_lists_passages_that_open_their_place(client, bundle):
    key = key_of(bundle.resolve())
    text = client.get(f"bundle/{key}", params={"text": '"limited to the fees"'}).text
    assert "<mark>limited to the fees</mark>" in text and "1 document has all the words" in text
    assert "1 document could not be read" in text and "damaged.pdf" in text
    [address] = re.findall(r'href="([^"]+&amp;start=[^"]+)"', text)
    start, end = (int(re.search(rf"{name}=(\d+)", address)[1]) for name in ("start", "end"))
    assert LICENCE[start:end] == "limited to the fees" and "licence.txt" in unquote(address)
    page = client.get(f"bundle/{address.replace('&amp;', '&')}")
    assert page.status_code == 200 and f'"hits":[[{start},{end}]]' in page.text


def test_words_and_names_are_shown_as_words_and_a_search_has_a_limit(client, bundle):
    key = key_of(bundle.resolve())
    text = client.get(f"bundle/{key}", params={"text": "<script>alert(1)</script>"}).text
    assert "<script>alert" not in text and "0 documents have all the words" in text
    assert "letter <b>" not in client.get(f"bundle/{key}", params={"text": "Ashby"}).text
    assert client.get(f"bundle/{key}", params={"text": "a" * 201}).status_code == 400
