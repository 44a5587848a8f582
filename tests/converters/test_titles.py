"""Titles are cleaned and made unique; an LLM's titles are requested once."""

from __future__ import annotations

import http.server
import json
import threading
from pathlib import Path

import pytest

from exhibit.converters.core import titles
from exhibit.converters.core.titles import choose_unique_titles, join_names, pair_files
from exhibit.evidence.fold import edit_distance


def test_join_names_lists_names_and_shortens_long_lists():
    assert [join_names(n) for n in ([], ["A"], ["A", "B"], ["A", "B", "C"])] == ["", "A", "A and B", "A, B and C"]
    assert join_names(["A", "B", "C", "D", "E"]) == "A, B and 3 others"


def test_choose_unique_titles_uses_the_least_precise_title_that_is_unique():
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


def test_pair_files_compares_only_names_with_nearly_the_same_letters(monkeypatch):
    compared = []
    monkeypatch.setattr(titles, "edit_distance", lambda *names: compared.append(names) or edit_distance(*names))
    paths = [Path("Verre-Élor agreement of 2019.pdf"), *(Path(f"Harbour lease of berth {n}.pdf") for n in range(99))]
    pairs = pair_files(["Verre-_lor agreement of 2019.pdf", "Verre agreement of 2019.pdf"], paths)
    assert (pairs.files, pairs.missing, len(compared)) == ({0: paths[0]}, [1], 1)


@pytest.fixture
def llm(monkeypatch, tmp_path):
    """A local OpenAI-compatible server that returns titles; its replies are cached in a separate folder."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append((self.path, self.headers.get("Authorization"), body))
            content = f'"Deed {len(server.asked)} between A and B."'
            reply = json.dumps({"choices": [{"message": {"role": "assistant", "content": content}}]}).encode()
            self.send_response(server.status)
            self.end_headers()
            self.wfile.write(server.reply or reply)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked, server.reply, server.status = [], None, 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-secret")
    monkeypatch.setenv("OPENAI_MODEL", "tiny")
    monkeypatch.setattr("exhibit.models.openai._BACKOFF_SECONDS", 0.01)
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    yield server
    server.shutdown()


@pytest.fixture
def flags(samples):
    return ["cuad", "--source", samples / "cuad" / "CUAD_v1", "--titles", "llm", "--max-documents", "2"]


def test_llm_titles_are_requested_once_and_cached(llm, flags, convert, capsys, tmp_path):
    first = convert(*flags, out="first")
    questions = {
        row["question"].split(";")[0] for row in json.loads((first / "train.json").read_text(encoding="utf-8"))
    }
    assert questions == {"Consider the Deed 1 between A and B", "Consider the Deed 2 between A and B"}
    path, _, body = llm.asked[0]
    assert path == "/v1/chat/completions" and body["model"] == "tiny" and body["temperature"] == 0
    assert any("HOSTING AGREEMENT" in body["messages"][0]["content"] for _, _, body in llm.asked)

    second = convert(*flags, out="second")
    assert len(llm.asked) == 2
    assert (second / "train.json").read_bytes() == (first / "train.json").read_bytes()
    kept = b"".join(path.read_bytes() for path in (tmp_path / "cache" / "titles").iterdir())
    assert b"Deed 1" in kept and b"planted" not in kept + capsys.readouterr().err.encode()


@pytest.mark.parametrize(("status", "reply"), [(500, None), (200, b"[]")])
def test_convert_reports_missing_title_when_llm_fails_or_reply_is_unusable(llm, flags, convert, capsys, status, reply):
    llm.status, llm.reply = status, reply
    convert(*flags, expect=1)
    error = capsys.readouterr().err
    assert "no title" in error and "planted" not in error
