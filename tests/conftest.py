"""What the tests share: the project's own samples, real data where it is, and golden files."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from socketserver import BaseServer
from types import SimpleNamespace

# before numpy and faiss are there to read it: on matrices as small as the tests' a second thread only waits, and by
# turning in a circle; that was a fifth of the suite's processor time. What a test starts inherits it.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

import certifi
import pytest
from filelock import FileLock
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from PIL import Image
from playwright.sync_api import Browser

from exhibit.conversion import main
from exhibit.converters.steps import build
from exhibit.engine.runners import local
from exhibit.hub import card
from exhibit.models.reader import Reader
from tests.browser import browsing, taking_turns
from tests.press import SharedPress
from tests.rag.models import link_models

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "samples"
GOLDEN = Path(__file__).parent / "golden"

Convert = Callable[..., Path]

# a busy machine is no fault of the code: speed is measured in bench/, never by a test
settings.register_profile("few", deadline=None, max_examples=25)
settings.register_profile("many", deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew, then read the diff")


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples of a property where slow tests are left out."""
    few = "not slow" in config.option.markexpr
    settings.load_profile("few" if few else "many")
    if few:  # else Hypothesis reads every file of ours for numbers and words to try: three seconds of a new process
        providers.is_local_module_file = lambda path: False


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what asks a real language model, or needs an environment of its own, unless `-m` names it."""
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
    """A folder for what is made once, whichever of the processes that run the tests needs it first."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder  # each process of xdist has its own in it


@pytest.fixture(scope="session", autouse=True)
def cache_of_run(shared_folder: Path) -> Iterator[None]:
    """Let what the tests keep be this run's own, and the user's cache be left alone; only models stay there.

    A reply that an earlier run had from a server on the same port of loopback would be taken for that of another.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXHIBIT_CACHE", str(link_models(shared_folder / "cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_reader(cache_of_run: None) -> Iterator[None]:
    """Let the reader be opened from the graph that was built on this machine, whichever cache a test names."""
    cache, begin = os.environ["EXHIBIT_CACHE"], Reader.__init__

    def begin_with_graph(self: Reader, *given: object, **options: object) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EXHIBIT_CACHE", cache)
            begin(self, *given, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Reader, "__init__", begin_with_graph)
        yield


@pytest.fixture(scope="session", autouse=True)
def few_authorities(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let clients of the web trust one authority instead of all: to read them takes each new client 30 ms.

    No test speaks to anybody but this machine, and without encryption.
    """
    end = "-----END CERTIFICATE-----\n"
    first, *_ = Path(certifi.where()).read_text(encoding="utf-8").split(end)
    path = tmp_path_factory.mktemp("authorities") / "one.pem"
    path.write_text(first + end, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"):
            patch.setenv(name, str(path))
        yield


@pytest.fixture(scope="session", autouse=True)
def one_worker() -> Iterator[None]:
    """Let a map that is not told otherwise have one worker: the tests themselves run on every processor."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "os", SimpleNamespace(cpu_count=lambda: 1))
        yield


@pytest.fixture(scope="session", autouse=True)
def servers_end_soon() -> Iterator[None]:
    """Let the tests' servers look fifty times a second, not twice, whether they are to end: each is waited for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseServer.serve_forever, "__defaults__", (0.02,))
        yield


@pytest.fixture(scope="session", autouse=True)
def shared_press() -> Iterator[None]:
    """Let all conversions in this process print with one browser."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "PdfPrinter", SharedPress)
        SharedPress.begin()
        yield
    SharedPress.end()


@pytest.fixture(scope="session", autouse=True)
def pictures_once() -> Iterator[None]:
    """Let the same picture of a card be packed once: half of what a conversion of a sample takes."""
    pack, packed = card._encode_png, dict[bytes, bytes]()

    def remembered(picture: Image.Image) -> bytes:
        key = hashlib.sha256(f"{picture.mode} {picture.size} ".encode() + picture.tobytes()).digest()
        return packed.get(key) or packed.setdefault(key, pack(picture))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(card, "_encode_png", remembered)
        yield


@pytest.fixture(scope="session")
def running_browser() -> Iterator[Browser]:
    """The browser of this process, started with the first test that looks at a page."""
    with browsing() as running:
        with taking_turns(running):
            pass
        yield running
        asyncio._set_running_loop(running._loop)


@pytest.fixture(scope="module")
def browser(running_browser: Browser) -> Iterator[Browser]:
    """A browser, for a module at a time, as asyncio is not to be had in this thread while it is used."""
    with taking_turns(running_browser) as mine:
        yield mine


@pytest.fixture
def convert(tmp_path: Path) -> Convert:
    """Run a converter as its command line does, in this process; return the bundle's folder."""

    def run(name: str, *flags: str | Path, out: str = "bundle", expect: int = 0) -> Path:
        folder = tmp_path / out
        arguments = ["--out", str(folder), "--jobs", "1", *map(str, flags)]
        assert main([name, *arguments]) == expect
        return folder

    return run


@pytest.fixture(scope="session")
def converted(samples: Path, shared_folder: Path) -> Convert:
    """Return the bundle of a sample, converted once for all tests that read it and change nothing there."""

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
    """Compare a text with the file of that name under tests/golden/."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        assert path.is_file(), f"no golden file {path}; run pytest --update-golden and read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return check
