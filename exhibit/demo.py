"""Convert the samples of the project, validate them, test the built-in pipeline and write a report.

examples:
    exhibit demo
    exhibit demo --out elsewhere --only cuad

No API key is needed. Nothing is downloaded except the embedder's weights, if they are missing.
"""

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from exhibit.conversion import convert
from exhibit.converters.pages.chromium import HERE, find_browser
from exhibit.evidence.check import main as check
from exhibit.evidence.show import main as show
from exhibit.runtime.command import add_json, build_parser, guarded, print_note
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.bundle import main as validate
from exhibit.viewer.report import main as evaluate

SAMPLES = ("cuad", "contractnli", "maud", "privacyqa", "cpr", "statutes")
_PRINTED = "contractnli"  # the sample with an HTML page; the other samples are printed without a browser
_SHOWN = 33  # the question of the CUAD sample whose gold is drawn on its page


def samples_folder() -> Path:
    """Return the folder of the samples: inside the installed package, or beside it in a checkout."""
    places = (Path(__file__).parent / "samples", Path(__file__).parent.parent / "samples")
    return next((place for place in places if place.is_dir()), places[0])


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo, and return the exit code of the first command that fails, or 0."""
    parser = build_parser("exhibit demo", __doc__)
    what = "the folder for datasets_out and results"
    parser.add_argument("--out", type=Path, default=Path(), metavar="DIR", help=what)
    parser.add_argument("--only", choices=SAMPLES, metavar="NAME", help=f"one of {', '.join(SAMPLES)} (default: all)")
    parser.add_argument("--run-name", default="demo", metavar="NAME", help="default: demo")
    add_json(parser)
    options = parser.parse_args(argv)
    names = choose_samples(options.only)
    bundles = [str(options.out / "datasets_out" / name) for name in names]
    for name, bundle in zip(names, bundles, strict=True):
        print_note(f"converting the sample of {name}")
        convert(name, source=samples_folder() / name, out=Path(bundle), force=True)
    # with --json only the run's figures go to stdout
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        code = validate(bundles) or check(bundles)
        if not code and "cuad" in names:
            picture = options.out / "datasets_out" / "gold-on-the-page.png"
            code = show([bundles[names.index("cuad")], str(_SHOWN), "--out", str(picture)])
    if code:
        return code
    run = options.out / "results" / options.run_name
    if run.exists():
        raise ToolkitError(f"{run}: this run exists already; remove it, or choose another --run-name")
    words = [*bundles, "--file-type", "pdf", "--output-dir", str(run.parent), "--run-name", options.run_name]
    code = evaluate([*words, "--json"] if options.json else words)
    print_note(f"open {run / 'report.html'} in a browser")
    return code


def choose_samples(only: str | None) -> list[str]:
    """Return the requested sample, or else all samples; if there is no browser, omit the sample that needs one."""
    if only:
        return [only]
    if HERE and find_browser():
        return list(SAMPLES)
    print_note(f"the sample of {_PRINTED} is left out: a browser is needed to print its HTML; see exhibit doctor")
    return [name for name in SAMPLES if name != _PRINTED]
