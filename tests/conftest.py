"""Fixtures for all tests: the project's own samples, real data if it is available, and golden files."""

import asyncio
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

# Set before numpy and faiss are imported: on small matrices a second thread only waits in a loop, which took a fifth of
# the suite's processor time. Processes that a test starts inherit this.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
# the tests already run in parallel on every processor
os.environ["EXHIBIT_JOBS"] = "1"
# as in a CI: else each evaluation asks git for the state of the whole checkout
os.environ["EXHIBIT_COMMIT"] = "0" * 40

import pytest
from filelock import FileLock
from hypothesis import settings
from playwright.sync_api import Browser

from exhibit.conversion import main
from tests.browser import lend_browser, open_browser
from tests.rag.models import link_models

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "samples"
GOLDEN = Path(__file__).parent / "golden"
NEED_EXTRAS = {"test_milvus.py", "test_training.py"}

Convert = Callable[..., Path]

# no deadlines: the time of a test depends on other work of the machine, and bench/ measures speed
settings.register_profile("few", deadline=None, max_examples=10)
settings.register_profile("many", deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew, then read the diff")


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples of each property-based test if slow tests are deselected."""
    settings.load_profile("few" if "not slow" in config.option.markexpr else "many")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that import an extra if the tests of extras are deselected, because the extra may be missing."""
    return True if "not extra" in config.option.markexpr and collection_path.name in NEED_EXTRAS else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that ask a real language model or need their own environment, unless `-m` names their marker."""
    for marker in ("llm", "interop"):
        if marker not in config.option.markexpr:
            asking = [item for item in items if item.get_closest_marker(marker)]
            config.hook.pytest_deselected(items=asking)
            items[:] = [item for item in items if item not in asking]


@pytest.fixture(scope="session")
def samples() -> Path:
    """The raw sources written for this project."""
    return SAMPLES


@pytest.fixture(scope="session")
def data() -> Path:
    """Real benchmark files, which are not part of the project."""
    for folder in (os.environ.get("EXHIBIT_DATA"), ROOT.parent / "shared" / "data"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    pytest.skip("no real data: set EXHIBIT_DATA to a folder with cuad/, maud/ … to measure on it")


@pytest.fixture(scope="session")
def peers() -> Path:
    """Other projects' own code, which is not part of the project."""
    for folder in (os.environ.get("EXHIBIT_PEERS"), ROOT.parent / "shared" / "peers"):
        if folder and Path(folder).is_dir():
            return Path(folder)
    pytest.skip("no peers' code: set EXHIBIT_PEERS to a folder with evaltools/, legalbenchrag/ and nvidia-rag/")


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all test processes share, for results that one process makes for all."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder  # each process of xdist has a subfolder


@pytest.fixture(scope="session", autouse=True)
def cache_of_run(shared_folder: Path) -> Iterator[None]:
    """Give the tests a separate cache, so that the user's cache is not changed; only its models are linked.

    Without this, a cached reply of a local server in an earlier run could be mistaken for the reply of another
    server on the same port.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXHIBIT_CACHE", str(link_models(shared_folder / "cache")))
        yield


@pytest.fixture(scope="session")
def running_browser() -> Iterator[Browser]:
    """The browser of this process, which the first test that opens a page starts."""
    with open_browser() as running:
        with lend_browser(running):
            pass
        yield running
        asyncio._set_running_loop(running._loop)


@pytest.fixture(scope="module")
def browser(running_browser: Browser) -> Iterator[Browser]:
    """A browser for the tests of one module; asyncio cannot be used in this thread while the module runs."""
    with lend_browser(running_browser) as mine:
        yield mine


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    """A function that runs a converter in this process as its command line does and returns the bundle's folder."""

    def run(name: str, *flags: str | Path, out: str = "bundle", expect: int = 0) -> Path:
        folder = tmp_path / out
        arguments = ["--out", str(folder), "--jobs", "1", *map(str, flags)]
        assert main([name, *arguments]) == expect
        return folder

    return run


@pytest.fixture(scope="session")
def converted(samples: Path, shared_folder: Path) -> Convert:
    """A function that returns the bundle of a sample, converted once for all tests; tests must not change it."""

    @cache
    def find(name: str, *flags: str) -> Path:
        place = shared_folder / "-".join(("converted", name, *flags))
        folder = place / name
        arguments = ["--source", str(samples / name), "--out", str(folder), "--jobs", "1", *flags]
        with FileLock(place.with_suffix(".lock")):
            assert folder.is_dir() or main([name, *arguments]) == 0
        return folder

    return find


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """A function that compares a text with a file under tests/golden/, or writes it with `--update-golden`."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.is_file(), f"no golden file {path}; run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return check
