"""Makes a variant of a bundle: `exhibit vary BUNDLE --kind figures --out FOLDER`.

Rules change the documents of the variant. The command also writes a control: a bundle with the same
questions, but without the changes. Evaluating both bundles shows the effect of the changes.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from exhibit.converters.core.command import format_table
from exhibit.engine import add_engine_arguments, apply_limits, check_engine, read_limits
from exhibit.evidence.scan import add_ocr_arguments
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.schemas.models import BundleInfo
from exhibit.vary.kinds import TITLES
from exhibit.vary.make import make_variant


def make_parser() -> argparse.ArgumentParser:
    width = max(map(len, TITLES))
    kinds = "\n".join(["kinds:", *(f"  {name:<{width}}  {title}" for name, title in TITLES.items())])
    usage = "exhibit vary BUNDLE --kind KIND [--kind KIND …] --out FOLDER [--seed N] [flags]"
    parser = build_parser("exhibit vary", f"{__doc__}\n{kinds}", usage=usage)
    add = parser.add_argument
    add("bundle", type=Path, metavar="BUNDLE", help="the parent bundle")
    kind = "the kind of variation; several are applied one after another, as in figures, or figures+scanned"
    add("--kind", action="append", required=True, metavar="KIND", help=kind)
    add("--out", type=Path, required=True, metavar="FOLDER", help="the folder of the variant")
    add("--no-control", action="store_true", help="do not write the control (default: it is written to FOLDER-control)")
    add("--seed", type=int, default=0, metavar="N", help="the seed for the choice of new values (default: 0)")
    add("--others", type=Path, metavar="DIR", help="the folder or bundle with further documents for growth")
    add("--strict", action="store_true", help="stop at the first fault instead of counting faults")
    add("--force", action="store_true", help="replace existing bundles")
    add_json(parser)
    add_engine_arguments(parser.add_argument_group("execution"))
    add_ocr_arguments(parser)
    return parser


@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int:
    """Write the variant and its control, and print their counts."""
    options = make_parser().parse_args(argv)
    check_engine(options.engine)
    started = time.monotonic()
    out = Path(options.out)
    control = None if options.no_control else out.with_name(f"{out.name}-control")
    kinds = [name for given in options.kind for name in given.split("+")]
    with apply_limits(read_limits(options)):
        variant, twin = make_variant(options.bundle, kinds, out, control, options)
    seconds = time.monotonic() - started
    record = {"out": _record(variant, out), "control": _record(twin, control), "seconds": seconds}
    lines = format_table(variant, out, seconds) + (f"\ncontrol, to be evaluated as well: {control}" if control else "")
    print_results(record, lines, as_json=options.json)
    return 0


def _record(bundle: BundleInfo | None, out: Path | None) -> dict[str, object] | None:
    if bundle is None:
        return None
    left_out = {reason: len(names) for reason, names in bundle.left_out.items()}
    return {"folder": str(out), **bundle.counts.model_dump(), "left_out": left_out}


if __name__ == "__main__":
    sys.exit(main())
