"""A list of URLs becomes a corpus of PDFs despite faulty servers, in real Chromium on a local site."""

import json
import socket
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pypdf
import pytest

from exhibit.conversion import main
from exhibit.converters import Tally
from exhibit.converters.pages import fetch
from exhibit.converters.pages.fetch import USER_AGENT, Policy, UrlLine, fetch_all, filename_of, flaw_of, report
from exhibit.converters.pages.text_pdf import find_font
from exhibit.evidence import read_document
from exhibit.schemas.bundle import GOLD, INFO, TRAIN
from exhibit.schemas.errors import SourceError
from exhibit.schemas.validate import validate
from tests.converters.site import Site, serve

QUICK = ("--delay", "0", "--jobs", "1")


@dataclass(frozen=True)
class WebConversion:
    """A finished conversion: its site, its bundle and its cache."""

    site: Site
    bundle: Path
    cache: Path

    def text(self, name: str) -> str:
        return read_document(self.bundle / "corpus" / name).text


@pytest.fixture(scope="module")
def site_folder(samples: Path) -> Path:
    return samples / "web" / "site"


@pytest.fixture
def site(site_folder: Path) -> Iterator[Site]:
    with serve(site_folder) as running:
        yield running


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def list_of(path: Path, *urls: str) -> Path:
    path.write_text("\n".join(urls) + "\n", encoding="utf-8")
    return path


_HEAD = "<?xml version='1.0'?><!DOCTYPE fontconfig SYSTEM 'fonts.dtd'><fontconfig>"
_WRONG = "<match target='pattern'><edit name='family' mode='assign' binding='strong'><string>{}</string></edit></match>"
_HINTS = "<match target='font'><edit name='hintstyle' mode='assign'><const>hintfull</const></edit></match>"


def misleading_fonts(folder: Path) -> Path:
    """Write a fontconfig file that resolves every font family to a bold monospace font; return its path."""
    fonts = folder / "typewriter"
    fonts.mkdir(exist_ok=True)
    (fonts / "bold.ttf").write_bytes(find_font("ExhibitMono-Bold.ttf").read_bytes())
    path, rules = folder / "misleading.conf", f"<dir>{fonts}</dir>{_WRONG.format('Exhibit Mono')}{_HINTS}"
    path.write_text(f"{_HEAD}{rules}<cachedir>{folder / 'cache'}</cachedir></fontconfig>", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def sample(samples: Path, site_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebConversion]:
    """The sample, converted once from a local site, on a machine with a misleading font configuration."""
    folder = tmp_path_factory.mktemp("web")
    with serve(site_folder) as site:
        urls = (samples / "web" / "urls.txt").read_text(encoding="utf-8")
        source = list_of(folder / "urls.txt", urls.replace("http://127.0.0.1:8765", site.url))
        flags = ["--source", str(source), "--out", str(folder / "bundle"), "--allow-private", *QUICK]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EXHIBIT_CACHE", str(folder / "cache"))
            patch.setenv("FONTCONFIG_FILE", str(misleading_fonts(folder)))
            assert main(["web", *flags]) == 0
        yield WebConversion(site, folder / "bundle", folder / "cache")


def test_web_sample_converts_to_golden_bundle(sample, golden):
    assert validate(sample.bundle) == []
    golden("web/train.json", (sample.bundle / TRAIN).read_text(encoding="utf-8"))
    golden("web/gold.jsonl", (sample.bundle / GOLD).read_text(encoding="utf-8"))
    info = json.loads((sample.bundle / INFO).read_text(encoding="utf-8"))
    shown = {
        "documents": [{name: doc[name] for name in ("filename", "title", "source")} for doc in info["documents"]],
        "left_out": info["left_out"],
        "noted": info["noted"],
        "options": info["options"],
    }
    text = json.dumps(shown, ensure_ascii=False, indent=2).replace(sample.site.url, "http://127.0.0.1:8765")
    golden("web/bundle.json", text + "\n")


def test_web_prints_pictures_and_copies_published_pdfs_unchanged(sample):
    path = sample.bundle / "corpus" / "practice-direction-3.html.pdf"
    [image] = [image for page in pypdf.PdfReader(path).pages for image in page.images]
    assert image.image.size == (120, 120)
    text = " ".join(sample.text(path.name).split())
    assert "Request Registrar Permission" in text, "the inline SVG is printed"
    assert "for the screen" not in text, "print CSS hides this text"
    assert (sample.bundle / "corpus" / "order-17.pdf").read_bytes() == sample.site.file("order-17.pdf")


def test_web_second_run_requests_only_urls_that_failed_in_the_first_run(sample, monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_CACHE", str(sample.cache))
    before = Counter(sample.site.asked)
    source = sample.bundle.parent / "urls.txt"
    assert main(["web", "--source", str(source), "--out", str(tmp_path / "again"), "--allow-private", *QUICK]) == 0
    assert set(sample.site.asked - before) == {"/robots.txt", "/repealed.html", "/seal.png"}
    names = sorted(path.relative_to(sample.bundle) for path in sample.bundle.rglob("*") if path.is_file())
    assert [
        name for name in names if (tmp_path / "again" / name).read_bytes() != (sample.bundle / name).read_bytes()
    ] == []


@pytest.fixture(scope="module")
def hostile(site_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, dict[str, UrlLine]]]:
    """A site, and the result for every kind of faulty URL.

    Host names in `.example` resolve to the local site; `inside.example` counts as a private address.
    """
    real = socket.getaddrinfo
    looked_up: Counter[str] = Counter()

    def look_up(host: str, port: int, *rest: int, **more: int) -> list[tuple[object, ...]]:
        if not host.endswith(".example"):
            return real(host, port, *rest, **more)
        looked_up[host] += 1
        # the address of `fickle` is public at the check and private at all later look-ups
        private = host == "inside.example" or (host == "fickle.example" and looked_up[host] > 1)
        if host == "nowhere.example":
            raise socket.gaierror("no such name")
        return real("::ffff:127.0.0.1" if private else "127.0.0.1", port, *rest, **more)

    with serve(site_folder) as site:
        urls = {path: f"http://{host}.example:{site.port}{path}" for host, path, *_ in (*PRINTED, *REFUSED)}
        # a long timeout, so that pages are printed even on a busy machine
        policy = Policy(delay=0, timeout=30, retries=1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(socket, "getaddrinfo", look_up)
            patch.setattr(fetch, "is_public", lambda address: address == "127.0.0.1")
            lines = fetch_all(list(urls.values()), folder=tmp_path_factory.mktemp("hostile"), policy=policy)
        yield site, {path: lines[url] for path, url in urls.items()}


PRINTED = [
    ("site", "/moved", True, "A case begins when the Registrar seals"),
    ("site", "/mislabelled", False, "compensation of £4,250"),
    ("site", "/attached", True, "A case begins when the Registrar seals"),
    ("busy", "/busy", True, "Now there is time."),
    ("site", "/lazy", True, "Scroll."),
    ("site", "/waiting", True, "All but the picture."),
    ("site", "/curious", True, "Looking around."),
    ("fickle", "/order-17.pdf", False, "compensation of £4,250"),
]
PRIVATE = "a private or local address (--allow-private)"
REFUSED = [
    ("site", "/to-inside", PRIVATE),
    ("site", "/to-metadata", PRIVATE),
    ("inside", "/secret.txt", PRIVATE),
    ("site", "/wanders-inside", "leads to another page; list its address instead"),
    ("site", "/to-file", "not a web address"),
    ("site", "/nothing-here.html", "HTTP 404 not found"),
    ("rude", "/rude", "the connection failed"),
    ("nowhere", "/page.html", "host not found; check the address and the network"),
    ("site", "/archive", "neither a page nor a PDF"),
    ("site", "/empty", "the reply is empty"),
    ("site", "/drafts/practice-direction-4.html", "robots.txt forbids this page (--ignore-robots)"),
]


@pytest.mark.parametrize(("host", "path", "printed", "words"), PRINTED)
def test_fetch_all_prints_pages_of_slow_or_faulty_servers(hostile, host, path, printed, words):
    line = hostile[1][path]
    assert (bool(line.printer), line.reason) == (printed, "")
    assert words in read_document(line.path).text


@pytest.mark.parametrize(("host", "path", "reason"), REFUSED)
def test_fetch_all_reports_why_each_download_failed(hostile, host, path, reason):
    site, lines = hostile
    assert lines[path].reason == reason
    report(lines, tally := Tally())
    assert any(name.startswith(f"http://{host}.example:{site.port}{path}") for name in tally.left_out[reason])


def test_web_pages_cannot_reach_private_hosts(hostile):
    site, lines = hostile
    assert site.hosts["inside.example"] == 0
    assert site.asked["/to-inside?image"] == 1  # the browser requested it
    assert site.agents == {USER_AGENT, f"Mozilla/5.0 (compatible; {USER_AGENT})"}
    text = read_document(lines["/curious"].path).text
    assert "inside only" not in text
    assert "NOTICE TO THE PROFESSION" not in text  # the text of a local file in a frame


@pytest.mark.slow
def test_printed_web_page_does_not_depend_on_installed_fonts(sample, site, tmp_path):
    url = f"{site.url}/practice-direction-3.html"
    [fetched] = fetch_all([url], folder=tmp_path, policy=Policy(allow_private=True, delay=0)).values()
    assert fetched.path.read_bytes() == (sample.bundle / "corpus" / "practice-direction-3.html.pdf").read_bytes()
    printing = json.loads((sample.bundle / INFO).read_text(encoding="utf-8"))["printing"]
    assert fetched.printer in printing["printer"].split(", ")  # the plain text is printed by another program


def test_web_refuses_loopback_addresses_before_any_request(site, cache, convert, tmp_path, capsys):
    source = list_of(tmp_path / "urls.txt", f"{site.url}/guide.html", f"http://localhost:{site.port}/notice.txt")
    convert("web", "--source", source, expect=1)
    assert PRIVATE in capsys.readouterr().err
    assert not site.asked


def test_invalid_web_address_is_reported():
    wrong = ["ftp://a.example/x", "file:///etc/passwd", "page.html", "http://", "http://a.example:99999/x"]
    for url in [*wrong, "http://a]b.example/x", "http://[::1", "", "javascript:1"]:
        assert flaw_of(url) == "not a web address", url


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://a.example/w/Report_2023", "Report_2023.pdf"),
        ("https://a.example/Another%20Article", "Another%20Article.pdf"),
        ("https://a.example/x.PDF", "x.PDF"),
        ("https://a.example/x.pdf?version=2", "x.pdf"),
        ("https://a.example/x.html#costs", "x.html#costs.pdf"),
        ("https://a.example/x.pdf#page=3", "x.pdf#page=3.pdf"),
        ("https://a.example/O'Neill.v.(Smith)", "O'Neill.v.(Smith).pdf"),
        ("https://a.example/règlement–1.html", "règlement–1.html.pdf"),
        ("https://a.example/%C3%A9t%2Fé", "%C3%A9t%2Fé.pdf"),
        ("https://a.example/#top", "#top.pdf"),
    ],
)
def test_file_name_is_the_last_url_segment_unchanged(url, name):
    assert filename_of(url) == name


@pytest.mark.parametrize(
    ("urls", "message"),
    [
        (["/a/x.html", "/b/x.html"], "/a/x.html and .*/b/x.html: both would be named 'x.html.pdf'"),
        (["/x", "/x.pdf"], "/x and .*/x.pdf: both would be named 'x.pdf'"),
        (["/x.html?a", "/x.html?b"], "both would be"),
        (["/"], "/: no file name in it"),
        (["/folder/"], "/folder/: no file name in it"),
        (["/" + "é" * 126], "256 bytes, but the limit is 255"),
        (["/app#/route"], "the part after '#' has a '/'"),
    ],
)
def test_fetch_all_refuses_invalid_file_names_before_any_download(site, tmp_path, urls, message):
    addresses = [f"{site.url}/guide.html", *(site.url + url for url in urls)]
    with pytest.raises(SourceError, match=message):
        fetch_all(addresses, folder=tmp_path, policy=Policy(allow_private=True))
    assert not site.asked
