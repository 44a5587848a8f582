"""The promises of docs/security.md: no pickle or code from outside, no token to a host that nobody named."""

import ast
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from exhibit.models.openai import Endpoint
from exhibit.runtime.command import guarded
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.http import HttpError
from tests.loopback import Reply, Request, serve

ROOT = Path(__file__).parent.parent.parent
OWN_PROCESSES = {"exhibit/engine/worker.py", "exhibit/engine/runners/ray.py"}
"""The only files that unpickle data, which comes from their own workers through a pipe or a cluster."""


def sources() -> list[Path]:
    return [*sorted((ROOT / "exhibit").rglob("*.py")), ROOT / "evaluate_rag.py", ROOT / "score.py"]


def nodes(path: Path, words: str) -> list[ast.AST]:
    """Return the syntax nodes of a file if its text matches `words`; other files are not parsed."""
    text = path.read_text(encoding="utf-8")
    return list(ast.walk(ast.parse(text))) if re.search(words, text) else []


def test_pickle_is_imported_only_by_modules_that_start_workers():
    found = set()
    for path in sources():
        for node in nodes(path, "pickle|dill|shelve|marshal|joblib"):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(alias.name for alias in node.names)]
            if {name.partition(".")[0] for name in names} & {
                "pickle",
                "cloudpickle",
                "dill",
                "shelve",
                "marshal",
                "joblib",
            }:
                found.add(path.relative_to(ROOT).as_posix())
            if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
                assert isinstance(node.value, ast.Constant) and node.value.value is False, path
    assert found == OWN_PROCESSES


def test_source_code_has_no_eval_exec_shell_or_unsafe_loaders():
    words = r"eval|exec|(?<!\.)\bcompile|__import__|system|popen|torch|yaml|trust_remote_code|shell"
    for path in sources():
        for node in nodes(path, words):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in ("eval", "exec", "compile", "__import__"), f"{path}:{node.lineno}"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                called = ast.unparse(node.func)
                assert called not in ("os.system", "os.popen", "torch.load", "torch.hub.load", "yaml.load"), path
            if isinstance(node, ast.keyword) and node.arg in ("trust_remote_code", "shell"):
                assert isinstance(node.value, ast.Constant) and node.value.value is False, f"{path}: {node.arg}"


@pytest.mark.parametrize("name", ["os", "../../etc/x", "..index", "minilm.os", "_weights", "a/b"])
def test_load_plugin_refuses_names_outside_the_plugin_folder(name):
    with pytest.raises(ToolkitError):
        load_plugin("exhibit.models.embedders", name)


@contextmanager
def server(location: str = "") -> Iterator[tuple[str, list[Mapping[str, str]]]]:
    """Yield the address of a server and the headers it receives; with `location`, it redirects every request."""
    heard: list[Mapping[str, str]] = []

    def answer(request: Request) -> Reply:
        heard.append(request.headers)
        return Reply(b"", 307 if location else 200, {"Location": location})

    with serve(answer) as url:
        yield f"{url}/v1", heard


def test_redirected_request_contains_no_api_token(monkeypatch):
    with server() as (elsewhere, stolen), server(elsewhere) as (named, heard):
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        monkeypatch.setenv("OPENAI_BASE_URL", named)
        with pytest.raises(HttpError):
            Endpoint("openai", 30).post("chat/completions", {"a": 1})
        assert [headers["Authorization"] for headers in heard] == ["Bearer sk-secret"]
        assert stolen == []


@guarded()
def speak(text: str) -> int:
    print(text)
    if "error" in text:
        raise ToolkitError(text)
    return 0


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="only Unix has such terminals")
def test_control_characters_are_escaped_only_on_a_terminal(monkeypatch, capsys):
    ours, theirs = os.openpty()
    with open(theirs, "w", encoding="utf-8", closefd=False) as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        assert speak("red \x1b[31m\x9b1m \x07\tend") == 0
        terminal.flush()
        assert os.read(ours, 1000) == b"red \\x1b[31m\\x9b1m \\x07\tend\r\n"
    os.close(theirs)
    os.close(ours)
    monkeypatch.undo()
    assert speak("an error \x1b]0;owned\x07.txt") == 1
    output = capsys.readouterr()
    assert output.err == "error: an error \\x1b]0;owned\\x07.txt\n"
    assert output.out == "an error \x1b]0;owned\x07.txt\n", "a file or pipe gets unchanged bytes"
