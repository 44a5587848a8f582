"""Titles: cleaned, made unique and, if an LLM writes them, requested only once."""

from __future__ import annotations

import http.server
import json
import threading

import pytest

from exhibit.converters.raw.titles import choose_unique_titles, join_names
from exhibit.law.casing import tidy, to_title_case


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        ("MARKETING AFFILIATE AGREEMENT", "Marketing Affiliate Agreement"),
        (
            "AMENDMENT AND TERMINATION \n\nOF \n\nJOINT VENTURE AGREEMENT",
            "Amendment and Termination of Joint Venture Agreement",
        ),
        ("Reseller Agreement", "Reseller Agreement"),
        ("Development Agreement (“", "Development Agreement"),
        ("Servicing Agreement, d", "Servicing Agreement"),
        ("PACTIV LLC", "Pactiv LLC"),
        ("HARROW & SONS, L.L.C.", "Harrow & Sons, L.L.C."),
        ("NORTHGATE SYSTEMS, INC.", "Northgate Systems, Inc."),
        ("BRIGHT LTD.", "Bright Ltd."),
        ("NCC ESCROW", "NCC Escrow"),
        ("O'NEILL'S OF THE WEST", "O'neill's of the West"),
    ],
)
def test_names_are_tidied(raw, title):
    assert tidy(raw) == title


def test_small_words_stay_small_inside():
    assert (
        to_title_case("THE TERMS OF AN AGREEMENT FOR THE SUPPLY OF GAS")
        == "The Terms of an Agreement for the Supply of Gas"
    )


def test_names_are_joined():
    assert [join_names(n) for n in ([], ["A"], ["A", "B"], ["A", "B", "C"])] == ["", "A", "A and B", "A, B and C"]
    assert join_names(["A", "B", "C", "D", "E"]) == "A, B and 3 others"


def test_titles_become_as_precise_as_they_must_and_no_more():
    candidates = {
        "a.pdf": ["Lease of X", "Lease of X dated 1/1/01", "Lease of X dated 1/1/01 (a)"],
        "b.pdf": ["Lease of X", "Lease of X dated 2/2/02", "Lease of X dated 2/2/02 (b)"],
        "c.pdf": ["Lease of Y", "Lease of Y dated 2/2/02"],
        "d.pdf": ["LEASE of x", "Lease of X dated 2/2/02", "Lease of X dated 2/2/02 (d)"],
    }
    assert choose_unique_titles(candidates) == {
        "a.pdf": "Lease of X dated 1/1/01",
        "b.pdf": "Lease of X dated 2/2/02 (b)",
        "c.pdf": "Lease of Y",
        "d.pdf": "Lease of X dated 2/2/02 (d)",
    }


def test_the_last_resort_is_the_whole_file_name():
    titles = choose_unique_titles({"a.pdf": ["Lease", "Lease (a)"], "a.PDF": ["Lease", "Lease (a)"]})
    assert titles == {"a.pdf": "Lease (a) (a.pdf)", "a.PDF": "Lease (a) (a.PDF)"}


@pytest.fixture
def llm(monkeypatch, tmp_path):
    """A local OpenAI-compatible server that returns titles; its replies are cached in a separate folder."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append((self.path, self.headers.get("Authorization"), body))
            content = server.reply or f'"Deed {len(server.asked)} between A and B."'
            reply = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()
            self.send_response(server.status)
            self.end_headers()
            self.wfile.write(b"[]" if server.nonsense else reply)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.reply, server.status, server.nonsense = [], None, 200, False
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-secret")
    monkeypatch.setenv("OPENAI_MODEL", "tiny")
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    yield server
    server.shutdown()


@pytest.fixture
def source(samples, tmp_path):
    import shutil

    return shutil.copytree(samples / "cuad" / "CUAD_v1", tmp_path / "CUAD_v1")


def test_llm_titles_are_asked_once_and_kept(llm, source, convert, capsys, tmp_path):
    first = convert("cuad", "--source", source, "--titles", "llm", "--max-documents", "2", out="first")
    questions = {
        row["question"].split(";")[0] for row in json.loads((first / "train.json").read_text(encoding="utf-8"))
    }
    assert questions == {"Consider the Deed 1 between A and B", "Consider the Deed 2 between A and B"}
    path, _, body = llm.asked[0]
    assert path == "/v1/chat/completions" and body["model"] == "tiny" and body["temperature"] == 0
    assert "HOSTING AGREEMENT" in body["messages"][0]["content"]

    second = convert("cuad", "--source", source, "--titles", "llm", "--max-documents", "2", out="second")
    assert len(llm.asked) == 2
    assert (second / "train.json").read_bytes() == (first / "train.json").read_bytes()
    kept = b"".join(path.read_bytes() for path in (tmp_path / "cache" / "titles").iterdir())
    assert b"Deed 1" in kept and b"planted" not in kept + capsys.readouterr().err.encode()


def test_llm_titles_that_clash_are_told_apart(llm, source, convert):
    llm.reply = "Supply Agreement"
    bundle = convert("cuad", "--source", source, "--titles", "llm", "--max-documents", "2")
    titles = [
        document["title"] for document in json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["documents"]
    ]
    assert len(set(titles)) == 2 and all(title.startswith("Supply Agreement (") for title in titles)


def test_a_model_that_can_be_held_to_a_schema_is(llm, source, convert):
    llm.reply = '{"title": "Hosting Agreement between A and B"}'
    bundle = convert("cuad", "--source", source, "--titles", "llm", "--max-documents", "1")
    [document] = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["documents"]
    assert document["title"] == "Hosting Agreement between A and B"
    wanted = llm.asked[0][2]["response_format"]["json_schema"]
    assert wanted["strict"] and wanted["schema"]["required"] == ["title"]


def test_a_failing_llm_keeps_the_titles_so_far(llm, source, convert, capsys, monkeypatch):
    llm.status = 500
    convert("cuad", "--source", source, "--titles", "llm", "--max-documents", "2", expect=1)
    error = capsys.readouterr().err
    assert "no title" in error and "planted" not in error
    llm.status, llm.nonsense = 200, True
    convert("cuad", "--source", source, "--titles", "llm", "--max-documents", "2", expect=1)
    assert "no title" in capsys.readouterr().err


def test_no_key_is_a_clear_error(monkeypatch, source, convert, capsys):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    convert("cuad", "--source", source, "--titles", "llm", expect=1)
    assert "needs OPENAI_API_KEY" in capsys.readouterr().err
