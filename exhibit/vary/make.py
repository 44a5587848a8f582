"""Makes a variant of a bundle: `exhibit vary BUNDLE --kind figures --out FOLDER`.

The command also writes a control: a bundle with the same questions, printed in the same way, but without the changes.
Evaluating both bundles shows the effect of the changes.
"""

import hashlib
import io
import random
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PIL import Image, ImageFilter

from exhibit.converters import Benchmark, Block, DatasetInfo, RawDocument, RawRow, Tally
from exhibit.converters.core.build import build
from exhibit.converters.core.command import format_table
from exhibit.converters.pages.text_pdf import pdf_of
from exhibit.engine import add_engine_arguments, apply_limits, check_engine, open_engine, read_limits, track
from exhibit.evidence.read import read_document
from exhibit.evidence.readers.pdf import render
from exhibit.evidence.scan import add_ocr_arguments
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import BundleInfo, Licence
from exhibit.storage.atomic import make_scratch_folder, replace_folder
from exhibit.storage.bundle import BundleFolder, open_bundle, sha256_of
from exhibit.storage.locations import check_out
from exhibit.vary.corpus import CONTROL_ROW, TextCorpus, read_corpus, with_labels
from exhibit.vary.kinds import KINDS, TITLES, VaryRequest, read_kind

NO_TWIN = "the variant does not have this question"
CONTROL = "control"  # the value of the label `varied` in a control, in place of a kind of variation


def make_variant(options: Namespace, control: Path | None) -> BundleInfo:
    """Write a variant to the folder `options.out`, and its control to the folder `control` unless this is None."""
    root, out, done = options.bundle, options.out, "+".join(options.kind)
    steps = [read_kind(wanted) for wanted in done.split("+")]
    for place in filter(None, (out, control)):
        check_out(place, force=options.force)
    bundle = open_bundle(root)
    tally = Tally(strict=options.strict)
    engine = open_engine(options.engine, jobs=options.jobs, items=len(bundle.files), limits=read_limits(options))
    varied = corpus = read_corpus(bundle, tally, engine)
    for name, argument in steps:
        varied = KINDS[name](varied, VaryRequest(options.seed, argument, options.others), tally)
    if not varied.rows:
        reasons = "; ".join(f"{reason}: {len(names)}" for reason, names in tally.left_out.items())
        raise BundleError(f"{root}: no question can be varied: {reasons}; choose another kind or another bundle")
    checksums = {name: sha256_of(root / name) for name in (TRAIN, GOLD, INFO) if (root / name).is_file()}
    checksums |= {f"{CORPUS}/{name}": sha256_of(path) for name, path in sorted(bundle.files.items())}
    words = [done, str(options.seed), *(f"{name} {digest}" for name, digest in checksums.items())]
    pair = hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]  # unique to a variant and its control

    def write(corpus: TextCorpus, kind: str, tally: Tally, out: Path) -> BundleInfo:
        info = _make_info(bundle, done, [name for name, _ in steps], options.seed, is_control=kind == CONTROL)
        rows = [with_labels(_add_words(row, corpus), varied=kind, pair=pair) for row in corpus.rows]
        documents, others = list(corpus.documents.values()), options.others.name if options.others else None
        given = {**vars(options), "kind": done, "others": others, "ocr": options.ocr or corpus.scanned}
        content = Namespace(**{name: given[name] for name in given if name not in ("bundle", "no_control")})
        with make_scratch_folder() as folder:
            if corpus.scanned:
                tracked = track(documents, total=len(documents), label="scans")
                documents = [write_scan(document, folder, seed=options.seed) for document in tracked]
            benchmark = Benchmark(documents, rows, checksums, info=info, by_construction=True)
            with replace_folder(out, force=options.force) as place:
                return build(info, benchmark, tally, content, place)

    variant = write(varied, done, tally, out)
    if control is not None:
        kept = {row.labels[CONTROL_ROW] for row in varied.rows}
        other = Tally(strict=options.strict)
        for row in corpus.rows:
            if row.id not in kept:
                other.leave_out(NO_TWIN, row.name)
        plain = replace(corpus, rows=tuple(row for row in corpus.rows if row.id in kept))
        write(plain, CONTROL, other, control)
    return variant


def _add_words(row: RawRow, corpus: TextCorpus) -> RawRow:
    quotes, near_misses = (
        tuple(replace(quote, text=corpus.words(quote)) for quote in some) for some in (row.quotes, row.near_misses)
    )
    return replace(row, quotes=quotes, near_misses=near_misses, filename=next(iter(row.files), None))


def _make_info(bundle: BundleFolder, kinds: str, applied: Sequence[str], seed: int, *, is_control: bool) -> DatasetInfo:
    parent = bundle.info
    parent_name, title = (parent.name, parent.title) if parent else (bundle.root.name, bundle.root.name)
    name = f"{parent_name}-{kinds.replace(':', '-').replace('+', '-')}"
    named, ending = f"{title}, varied ({kinds})", ", and their words were changed by rule."
    summary = f"Made by rule from {title} with seed {seed}: {'; '.join(TITLES[name] for name in applied)}."
    if is_control:
        name, named, ending = f"{name}-control", f"{title}, control of {kinds}", "."
        summary = f"{title} printed in the same way as its variant ({kinds}, seed {seed}), without changes."
    return DatasetInfo(
        name=name,
        title=named,
        benchmark=parent.source.name if parent else title,
        summary=summary,
        url=parent.source.url if parent else "",
        version=parent.source.version if parent else "",
        licence=parent.licence if parent else Licence(id="unknown", name="unknown terms", redistributable=False),
        citation=parent.citation if parent else "",
        expects="a bundle",
        command=f"exhibit vary datasets_out/{parent_name}",
        tags=("legal", "varied"),
        groups=parent.groups if parent else None,
        questions="The parent's questions; `labels.control` is the id of the parent's row that a question comes from.",
        limits=f"""
            - The documents are not the publisher's files: they were printed again from their text{ending}
            - The effect of a variation is the difference between variant and control: evaluate both.""",
        annotations=("machine-generated",),
    )


_DPI = 150  # the usual resolution of office scanners
_MAX_TURN_DEGREES = 1.2  # degrees to either side: a scanner's feeder rotates a sheet by less
_BLUR_PIXELS = (0.4, 0.9)  # radius in pixels: print stays legible to a person
_JPEG_QUALITY = (35, 60)  # JPEG quality: scanners use such values to keep files small


def write_scan(raw: RawDocument, folder: Path, *, seed: int) -> RawDocument:
    """Print a document, and write a simulated scan of its pages, the same for a seed; return the scanned document."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    digest = hashlib.sha256(f"{seed}{raw.filename}".encode()).hexdigest()[:8]
    printed, scan = folder / f"{raw.filename}.printed.pdf", folder / raw.filename
    printed.write_bytes(pdf_of([Block("p", raw.text or "")], title=raw.title, subject=raw.subject))
    canvas = Canvas(str(scan), pageCompression=0, invariant=1)
    canvas.setTitle(raw.title)
    canvas.setCreator("exhibit-rag")
    for number in range(1, len(read_document(printed).pages) + 1):
        chance = random.Random(f"{int(digest, 16)}\0{printed.name}\0{number}")
        picture = render(printed, number, scale=_DPI / 72).convert("L")
        degrees = chance.uniform(-_MAX_TURN_DEGREES, _MAX_TURN_DEGREES)
        turned = picture.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=255)
        blurred = turned.filter(ImageFilter.GaussianBlur(chance.uniform(*_BLUR_PIXELS)))
        content = io.BytesIO()
        blurred.save(content, "JPEG", quality=chance.randint(*_JPEG_QUALITY))
        width, height = (side * 72 / _DPI for side in picture.size)
        canvas.setPageSize((width, height))
        canvas.drawImage(ImageReader(content), 0, 0, width, height)
        canvas.showPage()
    canvas.save()
    printed.unlink()
    return replace(raw, path=scan)


def make_parser() -> ArgumentParser:
    kinds = "\n".join(["kinds:", *(f"  {name:<9}  {title}" for name, title in TITLES.items())])
    usage = "exhibit vary BUNDLE --kind KIND [--kind KIND …] --out FOLDER [--seed N] [flags]"
    parser = build_parser("exhibit vary", f"{__doc__}\n{kinds}", usage=usage)
    add = parser.add_argument
    add("bundle", type=Path, metavar="BUNDLE", help="the bundle to vary")
    kind = "the kind of variation, such as figures or figures+scanned; several kinds are applied in the given order"
    add("--kind", action="append", required=True, metavar="KIND", help=kind)
    add("--out", type=Path, required=True, metavar="FOLDER", help="the folder of the variant")
    add("--no-control", action="store_true", help="do not write the control (default: it is written to FOLDER-control)")
    add("--seed", type=int, default=0, metavar="N", help="the seed for the choice of new values (default: 0)")
    add("--others", type=Path, metavar="DIR", help="a folder or bundle with the documents that growth adds")
    add("--strict", action="store_true", help="stop at the first fault instead of counting faults")
    add("--force", action="store_true", help="replace existing bundles")
    add_json(parser)
    add_engine_arguments(parser.add_argument_group("execution"))
    add_ocr_arguments(parser)
    return parser


@guarded("stopped; nothing was written")
def main(argv: Sequence[str] | None = None) -> int:
    options = make_parser().parse_args(argv)
    check_engine(options.engine)
    started = time.monotonic()
    control = None if options.no_control else options.out.with_name(f"{options.out.name}-control")
    with apply_limits(read_limits(options)):
        variant = make_variant(options, control)
    seconds = time.monotonic() - started
    left_out = {reason: len(names) for reason, names in variant.left_out.items()}
    counts = variant.counts.model_dump()
    record = {"out": options.out, "control": control, "seconds": seconds, **counts, "left_out": left_out}
    note = f"\nalso evaluate the control: {control}" if control else ""
    print_results(record, format_table(variant, options.out, seconds) + note, as_json=options.json)
    return 0
