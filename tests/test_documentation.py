"""Every command in README.md and docs/ is run in a copy of the checkout.

Each page is followed from its top in its own copy, which has the demo's bundles. Addresses are replaced by
those of servers on loopback. A new command on a page is run without being listed anywhere.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from docs import traces
from tests.evaluation.hosted import INDEX, reply_as_azure, reply_as_openai
from tests.evaluation.hosted import KEY as AZURE_KEY
from tests.evaluation.loopback import imitating
from tests.evaluation.rag_server import RagServer, chat
from tests.evaluation.rag_server import serving as rag_serving
from tests.hub.loopback import LoopbackHub
from tests.object_stores import KEY, SECRET, moto
from tests.plugin_page import write_files

ROOT = Path(__file__).parent.parent
GUIDES = ("README.md", *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))))
PAGES = (*GUIDES, *(f"bench/results/{path.name}" for path in sorted((ROOT / "bench" / "results").glob("*.md"))))
DEMO = ("cuad", "contractnli", "maud", "privacyqa", "cpr")
QUICK = ("cuad", "privacyqa")
"""Bundles of the quick test: real PDFs, and text that is printed."""


class Rule(NamedTuple):
    """The action for commands that match a pattern, and its reason."""

    pattern: str
    action: str | Callable[[Path], None]
    """A shell command, a replacement, an exit status, or a function of the reader's folder."""
    reason: str


NOT_RUN = (
    Rule(r"^make |exhibit demo$", "", "what this and other tests do themselves"),
    Rule(r"python -m venv|pip install (?!\./)|llm_server", "", "installs packages: there is no network"),
    Rule(
        r"MILVUS_URI=|milvus:https://HOST|exhibit search index \"Who may",
        "",
        "a server: tests/rag/test_milvus_server.py",
    ),
    Rule(r"^exhibit view\b", "", "serves until it is stopped: tests/viewer/test_view_clicks.py"),
    Rule(r"training\.", "", "needs torch (tests/training)"),
    Rule(r"bench\.scale\s*$", "", "twenty minutes; its parts are run by tests/bench/test_scale.py"),
)
REPLACED = (
    Rule(r"exhibit convert cuad(?= )", r"\g<0> --source samples/cuad", "the official archive is a download"),
    Rule(r"exhibit convert cuad (?=.*--out datasets_out/cuad)", r"\g<0>--force ", "the demo's bundle is there already"),
    Rule(r"http://localhost:8000/ask", "$RAG_SERVER", "a free port"),
    Rule(r"http://localhost:8000/v1", "$OPENAI_BASE_URL", "a free port"),
    Rule(r"https://NAME\.(search\.windows\.net|openai\.azure\.com)", "$AZURE_SERVER", "the reader's own services"),
    Rule(r"(AZURE_SEARCH_KEY|AZURE_OPENAI_API_KEY)=…", rf"\1={AZURE_KEY}", "the reader's own keys"),
    Rule(r"(/indexes/|target_index=)INDEX", rf"\1{INDEX}", "the reader's own index"),
    Rule(r"datasets_out/ohr\b", "datasets_out/cuad", "OHR-Bench's questions are not in the repository"),
    Rule(
        r"pip install (?=\./)",
        "python -m pip install --no-index --no-deps --no-build-isolation --target plugins ",
        "there is no network, and the environment of the tests stays as it is",
    ),
    Rule(r"(?<=NOT_FOR_TRAINING\.tsv --skip )6", "1", "the samples have fewer documents"),
    Rule(
        r"(?<=bench\.sensitivity --source )DIR", "samples/legalbenchrag --embedder hashing", "the reader's own folder"
    ),
    Rule(r"(?<=bench\.gpu --source )FOLDER", "samples/cuad/CUAD_v1/full_contract_txt", "the reader's own folder"),
    Rule(
        r"--source TEXTS (.*) --embedder cuda",
        r"--source samples/cuad/CUAD_v1/full_contract_txt \1 --embedder hashing --rows 300",
        "the reader's own folder, and an accelerator",
    ),
    Rule(r"bench\.mixed_folder mixed", r"\g<0> --each 1", "minutes"),
    Rule(r"(?<=--part chunks )--vectors", "--quick --stores faiss --vectors", "minutes"),
    Rule(r"bench\.scale --part .*", r"\g<0> --busy", "other tests run beside it"),
    Rule(r"--embedder cuda --repeat 400 --seconds 5", "--embedder hashing --seconds 1", "an accelerator"),
)
RUNS = (
    'python evaluate_rag.py --dataset-paths datasets_out/cuad --target-url "$RAG_SERVER" --limit 4 --run-name before'
    " && cp -r results/before results/after"
)
SHEET = """python -c "
import csv, openpyxl
book = openpyxl.Workbook()
for row in csv.reader(open('samples/table/questions.csv', encoding='utf-8')):
    book.active.append(row)
book.save('questions.xlsx')" """
SCORED = """python -c "
import json, pathlib
gold = json.loads(pathlib.Path('gold/benchmarks/cuad.json').read_text(encoding='utf-8'))
replies = [{'query': t['query'], 'retrieved_passages': [s['answer'] for s in t['snippets']]} for t in gold['tests']]
pathlib.Path('predictions.json').write_text(json.dumps(replies), encoding='utf-8')
pathlib.Path('gold.json').write_text(json.dumps(gold), encoding='utf-8')" """
BUCKET = """python -c "
import s3fs
files = s3fs.S3FileSystem()
files.mkdir('bucket')
files.put('samples/cuad/CUAD_v1/full_contract_txt/', 'bucket/contracts/', recursive=True)
files.put('datasets_out/cuad/', 'bucket/bundles/cuad/', recursive=True)" """


def write_chunks(folder: Path) -> None:
    """Write the sentences of the parsed texts as the chunks of another system."""
    with (folder / "chunks.jsonl").open("w", encoding="utf-8") as rows:
        for path in sorted((folder / "parsed").iterdir()):
            for words in path.read_text(encoding="utf-8").split(". "):
                rows.write(json.dumps({"document": path.stem, "text": words}) + "\n")


def list_held_out(folder: Path) -> None:
    """Write the names of all documents, as if no model had been trained on them."""
    names = [path.name for path in sorted(folder.glob("datasets_out/*/corpus/*"))]
    (folder / "NOT_FOR_TRAINING.tsv").write_text("\n".join(["document", *names]), encoding="utf-8")


PREPARED = (
    Rule(r"exhibit results (diff|summary|index|report|compare)", RUNS, "two runs to compare"),
    Rule(r"score\.py", f"exhibit export datasets_out/cuad --to legalbenchrag --out gold && {SCORED}",
         "the reader's own files"),
    Rule(r"matter/", f"cp -r samples/table/documents matter && {SHEET}", "the reader's own files"),
    Rule(r"s3://", BUCKET, "a bucket with contracts and a bundle"),
    Rule(r"(?<!/)\bcontracts\b", "mkdir contracts && cp samples/cuad/CUAD_v1/full_contract_txt/[HV]* contracts",
         "the reader's own files"),
    Rule(r"parsed/|chunks\.jsonl", "exhibit text datasets_out/cuad --out parsed", "the output of the reader's parser"),
    Rule(r"chunks\.jsonl", write_chunks, "the chunks of the reader's system"),
    Rule(r"NOT_FOR_TRAINING", list_held_out, "a list that is not in the repository"),
    Rule(r"datasets_out/legalbenchrag",
         "exhibit convert legalbenchrag --source samples/legalbenchrag --out datasets_out/legalbenchrag",
         "the official archive is a download"),
    Rule(r"\./exhibit-leases", write_files, "the files that the page shows"),
    # the test of the quick commands leaves out those that make these on their pages
    Rule(r"inspect index ", "test -d index || exhibit index samples/table/documents --out index --preset bm25",
         "an index"),
    Rule(r"(validate|check) datasets_out/mine",
         "test -d datasets_out/mine || cp -r datasets_out/cuad datasets_out/mine", "a bundle"),
    Rule(r"results/builtin results/mine",
         "test -d results/mine || { cp -r results/before results/builtin && cp -r results/before results/mine; }",
         "two runs to compare"),
    Rule(r"export faq", "test -d faq || exhibit convert faq --source house --out faq", "the plug-in's bundle"),
)  # fmt: skip
EXIT_STATUS = (Rule(r"--fail-on band", "4", "the means of the small sample are poor"),)
WORDS = 1200
"""Of a page that is read from its top to its end."""
MOST = 20_000
"""Words of all guides together, code apart: what a person can read in a day."""
EXTRA = r"--engine ray|s3://|--ocr|bench\.mixed_folder"
"""Needs an extra of the project."""
LONG = (
    r"exhibit (?:convert|draft|ceiling|index|ask|search|evaluate|demo)|evaluate_rag\.py|exhibit review|bench\.|docs\."
)
"""Embeds, prints or measures: over a second or two."""


def commands(page: str) -> list[str]:
    """Return the commands of a page's `bash` and `sh` blocks, without their comments."""
    blocks = re.findall(r"```(?:bash|sh)\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [stripped for line in lines if (stripped := re.sub(r"(^|\s+)#.*", "", line).strip())]


def matching(rules: tuple[Rule, ...], command: str) -> list[Rule]:
    return [rule for rule in rules if re.search(rule.pattern, command)]


# ---------------------------------------------------------------- a checkout, and servers


class Reader:
    """A simulated reader who runs the commands of a page in a copy of the checkout."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self.environment = folder, environment
        self.done: set[str | Callable[[Path], None]] = set()

    def shell(self, command: str, *, status: int = 0) -> str:
        """Run a command as a reader's shell does, check its exit status, and return what it prints."""
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, encoding="utf-8"
        )
        told = f"{command}\nexit {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        assert done.returncode == status, told
        return done.stdout

    def follow(self, command: str) -> None:
        """Prepare what a command needs, and run it with its addresses replaced."""
        for rule in matching(PREPARED, command):
            if rule.action not in self.done:
                self.shell(rule.action) if isinstance(rule.action, str) else rule.action(self.folder)
                self.done.add(rule.action)
        status = next((int(rule.action) for rule in matching(EXIT_STATUS, command)), 0)
        for rule in matching(REPLACED, command):
            command = re.sub(rule.pattern, rule.action, command)
        if command.startswith("export "):
            self.keep_variables(command)
        else:
            self.shell(command, status=status)

    def keep_variables(self, command: str) -> None:
        """Run a command that sets variables, which the commands after it see."""
        variables = self.shell(f"{command} && env -0").split("\0")
        self.environment = dict(variable.split("=", 1) for variable in variables if variable)


def checkout(folder: Path) -> Path:
    """Copy the files that Git tracks, except tests/, into a folder; return the folder."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A reader's environment: `python` is the project's own, caches are new, and no address leads outside."""
    home = tmp_path_factory.mktemp("home")
    away = ("HF_", "AWS_", "AZURE_", "OPENAI_", "EXHIBIT_CACHE", "PYTHONPATH", "PYTEST_")
    kept = {n: v for n, v in os.environ.items() if not n.startswith(away) and not n.lower().endswith("_proxy")}
    return {
        **kept,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "EXHIBIT_CACHE": str(home / "cache"),
        "HF_HOME": str(home / "hub"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
        "NO_PROXY": "127.0.0.1,localhost",
        "PYTHONUTF8": "1",
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_REQUEST_CHECKSUM_CALCULATION": "when_required",
        "AWS_RESPONSE_CHECKSUM_VALIDATION": "when_required",
    }


@pytest.fixture(scope="module")
def bundle_of(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Callable[[str], Path]:
    """A function that returns a sample's bundle, converted once by the demo's own command."""
    place = checkout(tmp_path_factory.mktemp("demo"))

    def convert(name: str) -> Path:
        bundle = place / "datasets_out" / name
        if not bundle.exists():
            command = f"python -m converters.{name} --source samples/{name} --out datasets_out/{name}"
            Reader(place, environment).shell(command)
        return bundle

    return convert


@pytest.fixture
def reader(
    tmp_path: Path, environment: dict[str, str], bundle_of: Callable[[str], Path]
) -> Iterator[Callable[..., Reader]]:
    """A function that makes a reader with these bundles, a Hub, a RAG server, hosted services and, on request, S3."""
    with ExitStack() as stack:

        def make(bundles: tuple[str, ...], *, s3: bool = False) -> Reader:
            hub, server = stack.enter_context(LoopbackHub()), stack.enter_context(rag_serving())
            answer_with_a_clause(server)
            azure = stack.enter_context(imitating(reply_as_azure, []))
            openai = stack.enter_context(imitating(reply_as_openai, []))
            served = {
                "HF_ENDPOINT": hub.url,
                "HF_TOKEN": hub.token("me"),
                "RAG_SERVER": server.url,
                "AZURE_SERVER": azure.url,
                "OPENAI_BASE_URL": f"{openai.url}/v1",
                "OPENAI_API_KEY": "sk-none",
            }
            if s3:
                served["AWS_ENDPOINT_URL"] = stack.enter_context(moto(tmp_path))
            place = checkout(tmp_path / "checkout")
            for name in bundles:
                shutil.copytree(bundle_of(name), place / "datasets_out" / name)
            return Reader(place, {**environment, **served, "PYTHONPATH": str(place / "plugins")})

        yield make


def answer_with_a_clause(server: RagServer) -> None:
    clause = "This Agreement is governed by the laws of the State of Minnesota."
    server.reply = lambda question: chat(clause, [clause])


# ---------------------------------------------------------------- following the pages


def runnable(page: str) -> list[str]:
    return [line for line in commands(page) if not matching(NOT_RUN, line)]


def needing(*, extra: bool) -> list[str]:
    """Return the pages whose commands need an extra (`extra` true), or those whose commands need none."""
    pages = [page for page in PAGES if runnable(page)]
    return [page for page in pages if any(re.search(EXTRA, line) for line in runnable(page)) == extra]


@pytest.mark.slow
def test_the_quick_commands_of_all_pages_run(reader):
    every = [line for page in PAGES for line in runnable(page)]
    quick = dict.fromkeys(line for line in every if not re.search(f"{EXTRA}|{LONG}", line))
    assert len(quick) >= 10
    following = reader(QUICK)
    for line in quick:
        following.follow(line)


def bundles_of(lines: list[str]) -> tuple[str, ...]:
    """Return the names of the demo's bundles that the commands use."""
    text = "\n".join(lines)
    return tuple(
        name
        for name in DEMO
        if re.search(rf"datasets_out/(\*|{name}\b)|bundles/{name}\b|me/{name}|score\.py|results/", text)
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", needing(extra=False))
def test_every_command_of_a_page_runs(page, reader):
    lines = runnable(page)
    following = reader(bundles_of(lines))
    for line in lines:
        following.follow(line)


@pytest.mark.extra
@pytest.mark.slow
@pytest.mark.parametrize("page", needing(extra=True))
def test_every_command_of_a_page_that_needs_an_extra_runs(page, reader):
    lines = runnable(page)
    following = reader(bundles_of(lines), s3=any("s3://" in line for line in lines))
    for line in lines:
        following.follow(line)


def test_the_tables_name_nothing_that_no_page_shows():
    every = [line for page in PAGES for line in commands(page)]
    assert len(every) > 40
    for rule in (*NOT_RUN, *REPLACED, *PREPARED, *EXIT_STATUS):
        assert any(re.search(rule.pattern, line) for line in every), rule.pattern
        assert rule.reason


# ---------------------------------------------------------------- shown outputs


def page_trace() -> dict[str, Any]:
    shown = traces.PAGE.read_text(encoding="utf-8").partition(traces.BEGIN)[2].partition(traces.END)[0]
    trace: dict[str, Any] = json.loads(shown.removeprefix("```json\n").partition("```")[0])
    return trace


def test_the_trace_shown_is_current_but_for_what_the_embedder_says():
    page, now = page_trace(), traces.shorten(traces.ask(traces.QUESTION, embedder="hashing").trace)
    for trace in (page, now):
        del trace["passages"]["best"]
    assert now == page


@pytest.mark.slow
def test_the_trace_and_the_passage_shown_are_current():
    retrieved = traces.ask(traces.QUESTION)
    page, now = page_trace(), traces.shorten(retrieved.trace)
    for shown, given in zip(page["passages"].pop("best"), now["passages"].pop("best"), strict=True):
        assert shown == pytest.approx(given, abs=0.2)  # digits differ between processors
    assert page == json.loads(json.dumps(now))
    text = traces.PAGE.read_text(encoding="utf-8")
    assert traces.format_block(retrieved).partition("```\n\n")[2] in text


def test_the_pages_that_are_guides_are_short():
    lengths = {page: len(prose((ROOT / page).read_text("utf-8")).split()) for page in GUIDES}
    assert {page: words for page, words in lengths.items() if words > WORDS} == {}
    assert sum(words for page, words in lengths.items() if page != "README.md") <= MOST


def test_the_site_is_built_with_search_and_api_and_no_link_of_it_leads_nowhere(tmp_path):
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr  # --strict: no link leads nowhere
    found = json.loads((tmp_path / "site" / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    places = {entry["location"].partition("#")[0] for entry in found}
    assert {"index.html", "tutorial.html", "measured/legalbenchrag.html", "reference-settings.html"} <= places
    for page, word in (("reference-metrics", "ndcg"), ("reference-commands", "--top-k"), ("api", "read_document")):
        assert word in (tmp_path / "site" / f"{page}.html").read_text(encoding="utf-8")


def test_every_page_of_docs_is_in_the_menu_of_the_site():
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= set(re.findall(r"[\w-]+\.md", menu))


def prose(page: str) -> str:
    """Return a page without its blocks of code, which a reader copies."""
    return re.sub(r"^```.*?^```$", "", page, flags=re.DOTALL | re.MULTILINE)


def test_no_link_of_a_page_leads_nowhere():
    for page in PAGES:
        for link, heading in re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", (ROOT / page).read_text(encoding="utf-8")):
            target = (ROOT / page).parent / link if link else ROOT / page
            assert target.exists(), f"{page}: {link}"
            assert not heading or heading[1:] in addresses(target), f"{page}: {link}{heading}"


def addresses(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_the_page_of_rooms_names_every_room_in_order_and_files_that_are_there():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = "".join(re.findall(r"^\| (`.*?/`) \|", text, re.MULTILINE))
    rooms = {path.parent.name for path in ROOT.glob("exhibit/*/__init__.py")}
    assert set(re.findall(r"`(\w+)/`", rows)) == {"exhibit", *rooms}
    assert all(
        (ROOT / "exhibit" / file).is_file() or (ROOT / file).is_file()
        for file in re.findall(r"`(\w+/[\w/]+\.py)`", text)
    )
