"""A command's working folder may come from other people: no file in it is run, and no pipe in it blocks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from exhibit.drafting.playbook import read_playbook
from exhibit.evaluation.server_files import read_system
from exhibit.rag.config import Config
from exhibit.schemas.bundle import load_json, read_gold
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.review import read_patch, read_review

ROOT = Path(__file__).parents[2]
INDEX = """
import sys
from pathlib import Path
from exhibit.rag.__main__ import main
if __name__ == "__main__":
    sys.exit(main(["index", "documents", "--out", "index", "--embedder", "hashing", "--jobs", "2"]))
"""


def test_workers_import_no_module_from_the_working_folder(tmp_path):
    """multiprocessing starts `python -c`, which looks into the working folder before the standard library."""
    here = tmp_path / "received"
    (here / "documents").mkdir(parents=True)
    for number in range(3):
        (here / "documents" / f"{number}.txt").write_text(f"The rent of {number} is due.", encoding="utf-8")
    for name in ("struct", "pickle", "random", "signal", "socket", "threading", "tempfile"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'started')!r}, 'a').write('{name} ')", encoding="utf-8")
    (tmp_path / "run.py").write_text(INDEX, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment |= {"PYTHONPATH": str(ROOT), "EXHIBIT_CACHE": str(tmp_path / "cache")}
    command = [sys.executable, str(tmp_path / "run.py")]
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0 and not (tmp_path / "started").exists(), done.stderr


READERS = {
    "playbook": lambda path: read_playbook(path),
    "target": lambda path: read_system(str(path)),
    "preset": lambda path: Config.preset(str(path)),
    "review": lambda path: read_review(path),
    "patch": lambda path: read_patch(path),
    "settings": lambda path: load_json(path),
    "gold": lambda path: list(read_gold(path)),
}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such pipes")
@pytest.mark.parametrize("what", READERS)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_readers_refuse_a_pipe_device_or_folder_without_waiting(tmp_path, what, kind):
    path = tmp_path / "a.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(ToolkitError, match=r"a\.toml"):
        READERS[what](path)


def test_import_of_exhibit_disables_hub_telemetry():
    code = "import exhibit, huggingface_hub.constants as c; print(c.HF_HUB_DISABLE_TELEMETRY)"
    unset = {"HF_HUB_DISABLE_TELEMETRY", "DISABLE_TELEMETRY", "DO_NOT_TRACK", "HF_HUB_OFFLINE"}
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "True"
