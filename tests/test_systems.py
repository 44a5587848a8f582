"""Other operating systems: no part of the product needs a module that only Unix has."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exhibit.__main__ import VERBS

ROOT = Path(__file__).parent.parent
UNIX_ONLY = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline", "posix")
NOT_SHIPPED = {"tests", "bench", "docs", "samples", "training"}

# Other packages may import these modules and handle the error, so only imports by the product are refused.
BLOCKED = """
import builtins, importlib, json, sys
blocked, ours, modules = json.loads(sys.argv[1])
real = builtins.__import__
def guarded(name, globals=None, locals=None, fromlist=(), level=0):
    asking = (globals or {}).get("__name__", "").partition(".")[0]
    if name.partition(".")[0] in blocked and asking in ours:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return real(name, globals, locals, fromlist, level)
builtins.__import__ = guarded
for module in modules:
    importlib.import_module(module)
print("imported", len(modules))
"""


def _shipped() -> list[Path]:
    """Return every Python file of the product."""
    folders = [path.parent for path in ROOT.glob("*/__init__.py") if path.parent.name not in NOT_SHIPPED]
    return sorted([*ROOT.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))])


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _import_with(blocked: tuple[str, ...], modules: list[str]) -> subprocess.CompletedProcess[str]:
    ours = sorted({_name(path).partition(".")[0] for path in _shipped()})
    arguments = json.dumps([blocked, ours, modules])
    command = [sys.executable, "-c", BLOCKED, arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_entry_points_import_without_unix_only_modules():
    entries = [_name(path) for path in _shipped() if '__name__ == "__main__"' in path.read_text(encoding="utf-8")]
    entries = sorted({*entries, *(verb.module for verb in VERBS.values())})
    assert {"exhibit.__main__", "exhibit.converters.pages.chromium", "evaluate_rag", "score"} < set(entries)
    done = _import_with(UNIX_ONLY, entries)
    assert done.stdout.split() == ["imported", str(len(entries))], done.stderr


WITHOUT = """
import os, signal
for name in ("setpgrp", "killpg", "getpgid", "geteuid"):
    delattr(os, name)
for name in ("SIGALRM", "SIGPROF", "ITIMER_PROF", "setitimer"):
    delattr(signal, name)
"""
"""A `sitecustomize` module, which every Python process imports first: it removes names that Windows lacks."""


@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_rag_index_is_built_on_systems_without_process_groups_and_alarms(tmp_path, jobs):
    (tmp_path / "sitecustomize.py").write_text(WITHOUT, encoding="utf-8")
    (tmp_path / "corpus").mkdir()
    for name in ("one", "two"):
        (tmp_path / "corpus" / f"{name}.txt").write_text(f"Party {name} pays the rent.", encoding="utf-8")
    command = [sys.executable, "-m", "rag", "index", str(tmp_path / "corpus"), "--out", str(tmp_path / "index")]
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "EXHIBIT_CACHE": str(tmp_path / "cache")}
    settings = ["--embedder", "hashing", "--jobs", jobs]
    done = subprocess.run([*command, *settings], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "2 documents" in done.stdout + done.stderr
