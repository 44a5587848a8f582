"""Web: a list of URLs becomes a corpus of PDFs despite faulty servers, in real Chromium on a local site."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pypdf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exhibit.conversion import main
from exhibit.converters import Tally, web
from exhibit.converters.benchmark import BEYOND
from exhibit.converters.fetching import download
from exhibit.converters.fetching.download import USER_AGENT, Downloader, FetchError, Host, Resource, flaw_of
from exhibit.converters.fetching.fetch import Policy, fetch_all, filename_of, make_corpus_names, stem_of
from exhibit.converters.printing.text_pdf import read_font_hashes
from exhibit.evidence import read_document
from exhibit.schemas.bundle import GOLD, INFO, TRAIN
from exhibit.schemas.errors import BundleError, SourceError
from exhibit.schemas.validate import validate
from exhibit.storage.http import Rules
from tests.converters.fontconfigs import misleading_fonts
from tests.converters.site import Site, serve
from tests.evidence import files

ROOT = Path(__file__).parents[2]
QUICK = ("--delay", "0", "--per-host", "4", "--jobs", "1")
UNFINISHED = "printed before everything on the page had loaded"


@dataclass(frozen=True)
class Run:
    """A finished conversion: its site, its bundle and its cache."""

    site: Site
    bundle: Path
    cache: Path

    @property
    def manifest(self) -> dict[str, dict[str, object]]:
        """The manifest's lines, keyed by the path and query of their URL."""
        [path] = (self.cache / "web").glob("manifest-*.jsonl")
        lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        return {str(line["url"]).partition(f":{self.site.port}")[2] or str(line["url"]): line for line in lines}

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


# ---------------------------------------------------------------- the sample


@pytest.fixture(scope="module")
def sample(samples: Path, site_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
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
        yield Run(site, folder / "bundle", folder / "cache")


def test_a_word_document_at_an_address_is_printed(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "site"
    root.mkdir()
    (root / "lease.docx").write_bytes(files.docx(files.paragraph("The tenant pays.")))
    (root / "damaged.docx").write_bytes(b"PK\x03\x04 cut")
    with serve(root) as site:
        urls = [f"{site.url}/lease.docx", f"{site.url}/damaged.docx"]
        policy = Policy(allow_private=True, delay=0.0)
        good, broken = fetch_all(urls, folder=tmp_path / "fetched", policy=policy).values()
    assert (good.filename, good.outcome, good.reason) == ("lease.docx.pdf", "printed", "")
    assert good.path is not None and read_document(good.path).text.strip() == "The tenant pays."
    assert (broken.outcome, broken.reason) == ("unusable", "cannot be read") and "damaged" in broken.detail


def test_the_sample_becomes_the_golden_bundle(sample, golden):
    assert validate(sample.bundle) == []
    golden("web/train.json", (sample.bundle / TRAIN).read_text(encoding="utf-8"))
    golden("web/gold.jsonl", (sample.bundle / GOLD).read_text(encoding="utf-8"))
    info = json.loads((sample.bundle / INFO).read_text(encoding="utf-8"))
    shown = {
        "documents": [{name: one[name] for name in ("filename", "title", "source")} for one in info["documents"]],
        "left_out": info["left_out"],
        "noted": info["noted"],
        "options": info["options"],
    }
    text = json.dumps(shown, ensure_ascii=False, indent=2).replace(sample.site.url, "http://127.0.0.1:8765")
    golden("web/bundle.json", text + "\n")


def test_pictures_and_print_style_are_in_the_pdf(sample):
    path = sample.bundle / "corpus" / "practice-direction-3.html.pdf"
    [image] = [image for page in pypdf.PdfReader(path).pages for image in page.images]
    assert image.image.size == (120, 120)
    text = " ".join(sample.text(path.name).split())
    assert "not later than fourteen days before the hearing" in text
    assert "Request Registrar Permission" in text  # words of the inline SVG
    assert "for the screen" not in text  # print CSS hides it


def test_a_page_built_by_a_script_is_waited_for(sample):
    assert "Ostrander v Parish of Little Wend" in sample.text("sittings.html.pdf")
    assert "being loaded" not in sample.text("sittings.html.pdf")


def test_plain_text_is_printed_with_its_lines(sample):
    assert "treated as lodged on the next\n" in sample.text("notice.txt.pdf")


def test_the_publishers_pdf_is_copied_byte_for_byte(sample):
    assert (sample.bundle / "corpus" / "order-17.pdf").read_bytes() == sample.site.file("order-17.pdf")


def test_every_address_is_asked_once(sample):
    pages = ("/robots.txt", "/practice-direction-3.html", "/order-17.pdf", "/notice.txt", "/fees%20and%20forms.html")
    assert {path: sample.site.asked[path] for path in pages} == dict.fromkeys(pages, 1)
    assert sample.site.asked["/guide.html"] == 1  # although #costs is a document of its own
    assert sample.site.asked["/drafts/practice-direction-4.html"] == 0


def test_a_second_run_asks_only_for_what_failed(sample, monkeypatch, tmp_path):
    monkeypatch.setenv("EXHIBIT_CACHE", str(sample.cache))
    before = Counter(sample.site.asked)
    source = sample.bundle.parent / "urls.txt"
    assert main(["web", "--source", str(source), "--out", str(tmp_path / "again"), "--allow-private", *QUICK]) == 0
    assert set(sample.site.asked - before) == {"/robots.txt", "/repealed.html", "/seal.png"}
    names = sorted(path.relative_to(sample.bundle) for path in sample.bundle.rglob("*") if path.is_file())
    assert [
        name for name in names if (tmp_path / "again" / name).read_bytes() != (sample.bundle / name).read_bytes()
    ] == []


# ---------------------------------------------------------------- a hostile site


@pytest.fixture(scope="module")
def hostile(site_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A conversion of a list with every kind of faulty URL.

    Host names in `.example` resolve to the local site; `inside.example` counts as a private address.
    """
    folder = tmp_path_factory.mktemp("hostile")
    real = socket.getaddrinfo
    looked_up: Counter[str] = Counter()

    def look_up(host: str, port: int, *rest: int, **more: int) -> list[tuple[object, ...]]:
        if not host.endswith(".example"):
            return real(host, port, *rest, **more)
        looked_up[host] += 1
        # fickle is public when it is checked and private ever after
        private = host == "inside.example" or (host == "fickle.example" and looked_up[host] > 1)
        if host == "nowhere.example":
            raise socket.gaierror("no such name")
        return real("::ffff:127.0.0.1" if private else "127.0.0.1", port, *rest, **more)

    with serve(site_folder) as site:
        urls = [f"http://{host}.example:{site.port}{path}" for host, path, *_ in (*PRINTED, *REFUSED)]
        flags = ["--source", str(list_of(folder / "urls.txt", *urls)), "--out", str(folder / "bundle"), *QUICK]
        # a long time-out: what shall be printed must be, however busy this machine is
        flags += ["--per-host", "8", "--timeout", "30", "--retries", "1", "--max-bytes", "1000000"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EXHIBIT_CACHE", str(folder / "cache"))
            patch.setattr(socket, "getaddrinfo", look_up)
            patch.setattr(download, "is_public", lambda address: address == "127.0.0.1")
            assert main(["web", *flags]) == 0
        yield Run(site, folder / "bundle", folder / "cache")


PRINTED = [
    ("site", "/moved", "printed", "A case begins when the Registrar seals"),
    ("site", "/slow", "printed", "Late, but here."),
    ("site", "/mislabelled", "pdf", "compensation of £4,250"),
    ("site", "/attached", "printed", "A case begins when the Registrar seals"),
    ("busy", "/busy", "printed", "Now there is time."),
    ("site", "/lazy", "printed", "Scroll."),
    ("site", "/waiting", "printed", "All but the picture."),
    ("site", "/curious", "printed", "Looking around."),
    ("fickle", "/order-17.pdf", "pdf", "compensation of £4,250"),
]
PRIVATE = "a private or local address (--allow-private)"
REFUSED = [
    ("site", "/to-inside", "refused", PRIVATE),
    ("site", "/to-metadata", "refused", PRIVATE),
    ("inside", "/secret.txt", "refused", PRIVATE),
    ("site", "/wanders-inside", "refused", "leads to an address that cannot be reached"),
    ("site", "/to-file", "refused", "not a web address"),
    ("site", "/loop", "failed", "redirects without end"),
    ("site", "/spiral", "failed", "redirects without end"),
    ("site", "/nothing-here.html", "failed", "HTTP 404 not found"),
    ("broken", "/broken", "failed", "HTTP 500 internal server error"),
    ("rude", "/rude", "failed", "no connection, or a broken one"),
    ("nowhere", "/page.html", "failed", "host not found"),
    ("site", "/huge", "unusable", "too large (--max-bytes)"),
    ("site", "/archive", "unusable", "neither a page nor a PDF"),
    ("site", "/empty", "unusable", "the reply is empty"),
    ("site", "/drafts/practice-direction-4.html", "disallowed", "robots.txt forbids this page (--ignore-robots)"),
]


@pytest.mark.parametrize("path", [pytest.param("/never", marks=pytest.mark.slow), "/spinning"])
def test_what_never_ends_is_given_up(site_folder, tmp_path, monkeypatch, capsys, path):
    monkeypatch.setenv("EXHIBIT_CACHE", str(tmp_path / "cache"))
    with serve(site_folder) as site:
        urls = [f"http://127.0.0.1:{site.port}{name}" for name in ("/order-17.pdf", path)]
        source = list_of(tmp_path / "urls.txt", *urls)
        # the other page is in the cache: no time is sure to be enough for it on a busy machine
        fetch_all(urls[:1], folder=tmp_path / "cache" / "web", policy=Policy(allow_private=True, delay=0))
        flags = ["--source", str(source), "--out", str(tmp_path / "bundle"), "--allow-private", *QUICK]
        assert main(["web", *flags, "--timeout", "2", "--retries", "0"]) == 0
        assert site.asked["/order-17.pdf"] == 1
    left_out = json.loads((tmp_path / "bundle" / INFO).read_text(encoding="utf-8"))["left_out"]
    [name] = left_out["timed out"]
    assert name.startswith(urls[1])


@pytest.mark.parametrize(("host", "path", "outcome", "words"), PRINTED)
def test_a_page_is_had_in_spite_of_its_server(hostile, host, path, outcome, words):
    line = hostile.manifest[path]
    assert (line["outcome"], line["reason"]) == (outcome, "")
    assert words in hostile.text(filename_of(str(line["url"])))


@pytest.mark.parametrize(("host", "path", "outcome", "reason"), REFUSED)
def test_what_cannot_be_had_is_reported_with_its_reason(hostile, host, path, outcome, reason):
    line = hostile.manifest[path]
    assert (line["outcome"], line["reason"]) == (outcome, reason)
    left_out = json.loads((hostile.bundle / INFO).read_text(encoding="utf-8"))["left_out"]
    assert any(name.startswith(f"http://{host}.example:{hostile.site.port}{path}") for name in left_out[reason])


def test_nothing_private_is_reached_by_redirect_script_frame_or_picture(hostile):
    assert hostile.site.hosts["inside.example"] == 0
    assert hostile.site.asked["/to-inside?image"] == 1  # the browser did try
    assert "inside only" not in hostile.text("curious.pdf")
    assert "NOTICE TO THE PROFESSION" not in hostile.text("curious.pdf")  # a frame with a file of this machine


def test_the_address_that_was_checked_is_the_one_used(hostile):
    assert hostile.site.hosts["fickle.example"] == 2  # robots.txt and the page, both on the first answer


def test_a_server_that_asks_to_wait_is_waited_for(hostile):
    first, second = hostile.site.times["/busy"]
    assert second - first >= 2


def test_redirects_end_where_the_manifest_says(hostile):
    assert hostile.manifest["/moved"]["final_url"] == f"http://site.example:{hostile.site.port}/guide.html"
    assert hostile.site.asked["/loop"] == 11


def test_a_picture_below_the_fold_is_printed(hostile):
    pages = pypdf.PdfReader(hostile.bundle / "corpus" / "lazy.pdf").pages
    assert sum(len(page.images) for page in pages) == 1


def test_a_page_printed_too_early_is_noted(hostile):
    noted = json.loads((hostile.bundle / INFO).read_text(encoding="utf-8"))["noted"]
    assert noted[UNFINISHED] == [f"http://site.example:{hostile.site.port}/waiting"]


def test_the_same_page_gives_the_same_bytes_in_another_browser(sample, hostile):
    printed = (sample.bundle / "corpus" / "guide.html.pdf").read_bytes()
    assert printed == (hostile.bundle / "corpus" / "moved.pdf").read_bytes()


def test_the_machine_s_fonts_do_not_matter_and_the_bundle_says_what_was_used(sample):
    pages = pypdf.PdfReader(sample.bundle / "corpus" / "practice-direction-3.html.pdf").pages
    fonts = {font.get_object()["/BaseFont"].partition("+")[2] for font in pages[0]["/Resources"]["/Font"].values()}
    assert any(name.startswith("ExhibitSerif-") for name in fonts) and fonts != {"ExhibitMono-Bold"}
    printing = json.loads((sample.bundle / INFO).read_text(encoding="utf-8"))["printing"]
    assert printing["printer"].startswith("Chromium ") and printing["fonts"] == read_font_hashes()


@pytest.mark.slow
def test_the_machine_s_fonts_do_not_change_a_byte(sample, site, tmp_path):
    url = f"{site.url}/practice-direction-3.html"
    [fetched] = fetch_all([url], folder=tmp_path, policy=Policy(allow_private=True, delay=0)).values()
    assert fetched.path.read_bytes() == (sample.bundle / "corpus" / "practice-direction-3.html.pdf").read_bytes()
    printing = json.loads((sample.bundle / INFO).read_text(encoding="utf-8"))["printing"]
    assert fetched.printer in printing["printer"].split(", ")  # the text among the pages is printed otherwise


# ---------------------------------------------------------------- safety and resuming


def test_loopback_is_refused_before_anything_is_asked(site, cache, convert, tmp_path, capsys):
    source = list_of(tmp_path / "urls.txt", f"{site.url}/guide.html", f"http://localhost:{site.port}/notice.txt")
    convert("web", "--source", source, expect=1)
    assert PRIVATE in capsys.readouterr().err
    assert not site.asked


def test_a_killed_run_goes_on_where_it_stopped(site, cache, convert, tmp_path):
    urls = [f"{site.url}/order-17.pdf", f"{site.url}/mislabelled", f"{site.url}/held.pdf"]
    source = list_of(tmp_path / "urls.txt", *urls)
    command = [sys.executable, "-m", "converters.web", "--source", str(source), "--out", str(tmp_path / "bundle")]
    command += ["--allow-private", *QUICK]
    process = subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, "EXHIBIT_CACHE": str(cache)}, stderr=subprocess.DEVNULL
    )
    try:
        while len(list(cache.glob("web/*.json"))) < 2 or not site.asked["/held.pdf"]:
            assert process.poll() is None
            time.sleep(0.05)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "bundle").exists()
    site.released.set()
    bundle = convert("web", "--source", source, "--allow-private", *QUICK)
    assert [site.asked[path] for path in ("/order-17.pdf", "/mislabelled", "/held.pdf")] == [1, 1, 2]
    assert len(list((bundle / "corpus").iterdir())) == 3


def test_a_damaged_file_is_fetched_again(site, tmp_path):
    url = f"{site.url}/order-17.pdf"
    policy = Policy(allow_private=True, delay=0)
    path = fetch_all([url], folder=tmp_path, policy=policy)[url].path
    assert path is not None
    path.write_bytes(b"%PDF-1.4 cut short")
    again = fetch_all([url], folder=tmp_path, policy=policy)[url]
    assert (again.outcome, site.asked["/order-17.pdf"]) == ("pdf", 2)
    assert path.read_bytes() == site.file("order-17.pdf")


def test_robots_txt_can_be_overruled(site, tmp_path):
    url = f"{site.url}/drafts/practice-direction-4.html"
    policy = Policy(allow_private=True, delay=0, max_bytes=10)
    assert fetch_all([url], folder=tmp_path, policy=policy)[url].outcome == "disallowed"
    policy = Policy(allow_private=True, delay=0, max_bytes=10, ignore_robots=True)
    assert fetch_all([url], folder=tmp_path, policy=policy)[url].reason == "too large (--max-bytes)"


def test_servers_are_told_who_asks(site, tmp_path):
    assert USER_AGENT.startswith("exhibit-rag/")
    fetch_all([f"{site.url}/order-17.pdf"], folder=tmp_path, policy=Policy(allow_private=True, delay=0))
    assert site.agents == {USER_AGENT}


def test_requests_to_one_host_keep_their_distance(monkeypatch):
    clock = {"now": 100.0}
    waits: list[float] = []
    monkeypatch.setattr(download, "time", SimpleNamespace(monotonic=lambda: clock["now"]))
    waiting = SimpleNamespace(wait=lambda seconds: waits.append(round(seconds, 6)))
    one, other = Host(Policy(delay=0.5), waiting), Host(Policy(delay=0.5), waiting)
    for _ in range(3):
        one.turn()
    other.turn()  # another host has waited for nobody
    clock["now"] += 10.0
    one.turn()
    assert waits == [0.0, 0.5, 1.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("host", "allow_private", "reached"),
    [("127.0.0.1", True, True), ("127.0.0.1", False, False), ("[::ffff:127.0.0.1]", False, False)],
)
def test_a_page_in_the_browser_is_given_what_may_be_reached_and_nothing_else(site, host, allow_private, reached):
    downloader = Downloader(Policy(allow_private=allow_private))
    asked = Resource("GET", f"http://{host}:{site.port}/notice.txt", {"user-agent": "a browser"}, None, moves=False)
    try:
        status, headers, body = downloader.resource(asked)
        assert reached and (status, headers["content-type"]) == (200, "text/plain; charset=utf-8")
        assert b"NOTICE TO THE PROFESSION" in body and site.agents == {"a browser"}
    except FetchError as error:
        assert not reached and error.reason == PRIVATE
    finally:
        downloader.close()
    assert bool(site.asked) is reached


def test_a_cookie_set_on_the_way_goes_to_the_next_hop_and_to_no_other_url(site, tmp_path):
    for name in ("first", "second"):
        url = f"{site.url}/cookies.txt?{name}"
        [fetched] = fetch_all([url], folder=tmp_path, policy=Policy(allow_private=True, delay=0)).values()
        assert fetched.outcome == "printed"
    assert site.cookies == [None, "a=1; b=2", None, "a=1; b=2"]


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.example/x",
        "file:///etc/passwd",
        "page.html",
        "http://",
        "http://a.example:99999/x",
        "http://a]b.example/x",
        "http://[::1",
        "",
        "javascript:1",
    ],
)
def test_what_is_no_web_address_has_a_flaw(url):
    assert flaw_of(url) == "not a web address"


def test_a_password_in_an_address_is_neither_used_nor_shown(tmp_path):
    [fetched] = fetch_all(["https://me:hunter2@a.example/x"], folder=tmp_path, policy=Policy()).values()
    assert fetched.reason == "a user name or password in the address"
    assert not any("hunter2" in path.read_text(encoding="utf-8") for path in tmp_path.iterdir())


# ---------------------------------------------------------------- names


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
def test_a_file_is_named_by_its_url_exactly(url, name):
    assert filename_of(url) == name


@given(
    st.text(st.characters(exclude_characters="/?#;\t\r\n", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60)
)
def test_no_segment_is_ever_changed(segment):
    assert stem_of(f"https://a.example/folder/{segment}?q=1") == segment


@pytest.mark.parametrize(
    ("urls", "message"),
    [
        (["/a/x.html", "/b/x.html"], "/a/x.html and .*/b/x.html: both would be 'x.html.pdf'"),
        (["/x", "/x.pdf"], "/x and .*/x.pdf: both would be 'x.pdf'"),
        (["/x.html?a", "/x.html?b"], "both would be"),
        (["/"], "/: no file name in it"),
        (["/folder/"], "/folder/: no file name in it"),
        (["/" + "é" * 126], "256 bytes, but the limit is 255"),
        (["/app#/route"], "the part after '#' has a '/'"),
    ],
)
def test_names_that_cannot_be_are_an_error_before_any_download(site, tmp_path, urls, message):
    addresses = [f"{site.url}/guide.html", *(site.url + url for url in urls)]
    with pytest.raises(SourceError, match=message):
        fetch_all(addresses, folder=tmp_path, policy=Policy(allow_private=True))
    assert not site.asked


def test_one_url_twice_is_no_collision():
    assert make_corpus_names(["https://a.example/x", "https://a.example/x"]) == {"https://a.example/x": "x.pdf"}


# ---------------------------------------------------------------- lists


@pytest.fixture
def listed(monkeypatch):
    """A function that returns the URLs read from a list, without fetching them."""

    def read(source: Path, column: str | None = None, limit: int | None = None) -> tuple[list[str], Tally]:
        seen: list[str] = []
        monkeypatch.setattr(web, "fetch_all", lambda urls, **_: seen.extend(urls) or {})
        monkeypatch.setattr(web, "read_policy", lambda options: Policy())
        tally = Tally()
        web.read(source, Namespace(column=column, limit=limit), tally)
        return seen, tally

    return read


A, B = "https://a.example/one", "https://a.example/two#part"


@pytest.mark.parametrize(
    ("name", "text", "column"),
    [
        ("urls.txt", f"\ufeff# a comment\n\n  {A}  \n{B}\n", None),
        ("t.csv", f"case,URL\n1,{A}\n2,{B}\n", None),
        ("t.csv", f"case,where\n1,{A}\n2,{B}\n", None),
        ("t.csv", f"note,where,case\n,{A},\n ,{B},\n", None),
        ("t.csv", f"first,second\n{B},{A}\n{A},{B}\n", "second"),
        ("t.tsv", f"link\tcase\n{A}\t1\n{B}\t2\n", None),
        ("t.jsonl", f'{{"url": "{A}"}}\n{{"url": "{B}"}}\n', None),
        ("t.csv", f"case;url\n1;{A}\n2;{B}\n", None),
        ("t.json", json.dumps([{"at": A}, {"at": B}]), "at"),
    ],
)
def test_lists_and_tables_are_read(listed, tmp_path, name, text, column):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert listed(tmp_path / name, column)[0] == [A, B]


def test_blank_cells_and_repeated_urls_are_counted(listed, tmp_path):
    (tmp_path / "t.csv").write_text(f'url,case\n{A},1\n" ",2\n{A},3\n', encoding="utf-8")
    urls, tally = listed(tmp_path / "t.csv")
    assert urls == [A]
    assert tally.left_out == {"no URL in the row": ["t.csv: row 3"]}
    assert tally.noted == {"listed more than once, fetched once": [A]}


def test_a_limit_takes_the_first_urls_but_names_are_checked_for_all(listed, tmp_path):
    urls, tally = listed(list_of(tmp_path / "urls.txt", A, B), limit=1)
    assert urls == [A] and tally.left_out == {BEYOND: [A, B]}, "none was fetched"
    assert tally.account([])["rows"].left_out == {BEYOND: 2}
    _, tally = listed(list_of(tmp_path / "urls.txt", "# a comment", A))
    with pytest.raises(BundleError, match="line 2: this item was neither kept nor left out"):
        tally.account([])
    with pytest.raises(SourceError, match="no file name"):
        listed(list_of(tmp_path / "urls.txt", A, "https://a.example/"), limit=1)


@pytest.mark.parametrize(
    ("name", "text", "column", "message"),
    [
        ("urls.txt", "# nothing\n", None, "no URL in it; expected a list of URLs"),
        ("t.csv", f"a,b\n{A},{B}\n", None, "which column holds the URLs.*a, b"),
        ("t.csv", f"a,b\n{A},{B}\n", "c", "no column 'c'; there are a, b"),
        ("t.jsonl", "{", None, "which column holds the URLs.*none"),
        ("t.json", '{"url": "x"}', None, "expected a list of objects"),
    ],
)
def test_a_wrong_list_says_what_was_expected(listed, tmp_path, name, text, column, message):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(SourceError, match=message):
        listed(tmp_path / name, column)


def test_help_shows_an_example_that_works(capsys):
    with pytest.raises(SystemExit):
        main(["web", "--help"])
    shown = capsys.readouterr().out
    assert "--source samples/web/urls.txt --out datasets_out/web --allow-private" in shown
    assert (ROOT / "samples/web/urls.txt").is_file()
    assert (ROOT / "samples/web/site").is_dir()


# ---------------------------------------------------------------- robots.txt


ROBOTS = """
User-agent: other
Disallow: /

User-agent: first
User-agent: Exhibit-RAG
Disallow: /a
Allow: /a/b
Disallow: /*.cgi$
Disallow: /caf%c3%a9
Crawl-delay: 2.5

User-agent: *
Disallow: /everybody
"""


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/", True), ("/a", False), ("/a/c", False), ("/a/b", True), ("/a/b/c", True), ("/x/run.cgi", False),
        ("/x/run.cgi?q", True), ("/everybody", True), ("/caf%C3%A9", False), ("/café", False),
    ],
)  # fmt: skip
def test_the_longest_rule_of_our_own_group_decides(path, allowed):
    rules = Rules("exhibit-rag", ROBOTS)
    assert rules.allow(path) is allowed
    assert rules.delay == 2.5


def test_without_a_group_of_our_own_the_one_for_everybody_counts():
    rules = Rules("somebody", ROBOTS)
    assert not rules.allow("/everybody/x")
    assert rules.allow("/a")


@pytest.mark.parametrize("pattern", ["*a" * 500 + "z", "*" * 5000 + "x", "*ab" * 200 + "$", "[", "%", "\\"])
def test_a_hostile_pattern_ends(pattern):
    """A careless regular expression would run for years on each of these patterns, or fail."""
    rules = Rules("exhibit-rag", f"User-agent: *\nCrawl-delay: inf\nDisallow: /{pattern}\n")
    assert rules.allow("/" + "ab" * 2000 + "c") and rules.delay == 0


def test_no_rules_allow_everything():
    assert Rules("exhibit-rag", "User-agent: *\nDisallow:\n").allow("/anything")
    assert Rules("exhibit-rag", "").allow("/anything")
