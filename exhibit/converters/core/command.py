"""The command line that all converters share: its flags, error messages and summary table."""

import argparse
import textwrap
import time
from dataclasses import replace
from pathlib import Path

from exhibit.converters import PAST_A_LIMIT, UNREADABLE, Converter, Tally, choose
from exhibit.converters.core.build import apply_patches, build, find_patch, make_card_text
from exhibit.converters.core.source import open_source
from exhibit.engine import add_engine_arguments, apply_limits, check_engine, read_limits
from exhibit.evidence.scan import add_ocr_arguments
from exhibit.hub.card import find_sample
from exhibit.runtime.command import Parser, add_json, align_rows, guarded, parse_positive, print_results
from exhibit.schemas.errors import SourceError
from exhibit.schemas.models import HOWS, BundleInfo
from exhibit.storage.atomic import make_scratch_folder, replace_folder
from exhibit.storage.locations import Location, check_out, parse_location

SAMPLE_SENTENCE = "An invented sample: nothing in it comes from the source that this card names."


@guarded("stopped; nothing was written")
def main(converter: Converter, argv: list[str] | None = None) -> int:
    options = make_parser(converter).parse_args(argv)
    started = time.monotonic()
    with apply_limits(read_limits(options)):
        bundle = convert(converter, options)
    seconds = time.monotonic() - started
    left_out = {reason: len(names) for reason, names in bundle.left_out.items()}
    record = {"out": str(options.out), "seconds": seconds, **bundle.counts.model_dump(), "left_out": left_out}
    print_results(record, format_table(bundle, options.out, seconds), as_json=options.json)
    return 0


def convert(converter: Converter, options: argparse.Namespace) -> BundleInfo:
    """Write the bundle that the options describe; it appears complete or not at all."""
    tally = Tally(strict=options.strict)
    check_engine(options.engine)
    out = check_out(options.out, force=options.force)
    patches = [find_patch(name, converter.INFO) for name in options.patch]
    with open_source(converter.INFO, options.source) as source:
        benchmark = choose(converter.read(source, options, tally), options, tally)
        if not benchmark.rows and not converter.INFO.corpus_only:
            left_out = tally.left_out.items()
            reasons = "; ".join(f"{len(names)} × {reason}, such as {names[0]}" for reason, names in left_out)
            raise SourceError(f"{options.source or source}: no questions left; {reasons or 'is it empty?'}")
        info = converter.INFO
        if find_sample(options.source):
            info = replace(info, summary=f"{SAMPLE_SENTENCE} Its form is that of this source: {info.summary}")
        if not patches:
            with replace_folder(out, force=options.force) as folder:
                return build(info, benchmark, tally, options, folder)
        with make_scratch_folder() as folder:
            build(info, benchmark, tally, options, folder)
            text = make_card_text(benchmark.info or info, info.name, options)
            return apply_patches(patches, folder, out, force=options.force, strict=options.strict, text=text)


def make_parser(converter: Converter) -> argparse.ArgumentParser:
    info = converter.INFO
    command = "exhibit draft" if info.name == "draft" else f"exhibit convert {info.name}"
    about = (info.benchmark, info.summary, f"The source must contain {info.expects}.", info.by_hand)
    sample = "contracts" if info.name == "draft" else f"samples/{info.name}"
    parser = Parser(
        prog=command,
        usage=f"{command} --out DIR {'[--source DIR|ZIP]' if info.downloads else '--source PATH'} [flags]",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="\n\n".join(textwrap.fill(part, 80) for part in about if part),
        epilog=f"example:\n  {command} --source {sample} --out datasets_out/{info.name} --force\n\n"
        f"licence of the source: {info.licence.name}. {info.url}",
    )
    downloaded = "the raw benchmark (default: the official release, downloaded once and cached)"
    add = parser.add_argument
    add("--out", type=parse_location, required=True, metavar="DIR", help="the folder of the new bundle")
    add("--source", type=Path, metavar="PATH", help=downloaded if info.downloads else "the raw benchmark (see above)")
    add("--max-documents", type=parse_positive, metavar="N", help="convert only the first N documents")
    if info.splits:
        add("--split", choices=[*info.splits, "all"], default="all", help="convert one split (default: all)")
    add("--answerable-only", action="store_true", help="leave out questions that have no answer in the document")
    add("--strict", action="store_true", help="stop at the first bad row instead of counting it")
    add("--force", action="store_true", help="replace an existing bundle")
    patch = "files with reviewers' corrections of the gold, applied in order; shipped: those of the converter"
    add("--patch", nargs="+", action="extend", default=[], metavar="FILE", help=patch)
    add_json(parser)
    if add_arguments := getattr(converter, "add_arguments", None):
        add_arguments(parser)
    add_engine_arguments(parser.add_argument_group("execution"))
    add_ocr_arguments(parser)
    return parser


def format_table(bundle: BundleInfo, out: Location | str, seconds: float) -> str:
    """Return the summary table at the end of a conversion: what was kept, located and left out, and the time."""
    counts = bundle.counts
    rows = [("documents", f"{counts.documents:,}"), ("questions", f"{counts.questions:,}")]
    if counts.questions:
        rows += [("  answerable", f"{counts.answerable:,}"), ("  impossible", f"{counts.impossible:,}")]
    quotes = sum(counts.located.values())
    if counts.contexts > quotes:
        rows.append(("contexts that name only a document", f"{counts.contexts - quotes:,}"))
    if quotes:
        located = quotes - counts.located.get("absent", 0)
        rows += [("gold passages", f"{quotes:,}"), ("  located", f"{located:,}  ({100 * located / quotes:.2f}%)")]
        rows += [(f"    {how}", f"{counts.located[how]:,}") for how in HOWS[:-1] if how in counts.located]
        rows.append(("  not located", f"{quotes - located:,}"))
    for kind, account in bundle.account.items():
        left = account.given - account.kept
        rows.append((f"{kind} given", f"{account.given:,}  = {account.kept:,} kept + {left:,} left out"))
    for reason, names in bundle.left_out.items():
        rows.append((f"left out: {reason}", f"{len(names):,}"))
        rows += [("", name) for name in (names[:5] if reason in (UNREADABLE, PAST_A_LIMIT) else ())]
    rows += [(f"noted: {remark}", f"{len(names):,}") for remark, names in bundle.noted.items()]
    lines = align_rows([*rows, ("time", f"{seconds:.1f} s")])
    return "\n".join([f"{bundle.title} -> {out}", *lines, "bundle.json lists what was left out; README.md is the card"])
