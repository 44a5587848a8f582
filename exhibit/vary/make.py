"""Makes a variant of a bundle: `exhibit vary BUNDLE --kind figures --out FOLDER`.

Rules change the documents of the variant. The command also writes a control: a bundle with the same
questions, but without the changes. Both are printed in the same way, so that the changes are the only difference
between them. Evaluating both bundles shows the effect of the changes.
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

from exhibit.converters import Benchmark, Block, DatasetInfo, Label, Quote, RawDocument, RawRow, Tally
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
from exhibit.vary.corpus import CONTROL_ROW, TextCorpus, VaryRequest, read_corpus, with_labels
from exhibit.vary.kinds import KINDS, TITLES, read_kind

NO_TWIN = "the variant does not have this question"
CONTROL = "control"  # the value of the label `varied` in a control, in place of a kind of variation


def make_variant(
    root: Path, kinds: Sequence[str], out: Path, control: Path | None, options: Namespace
) -> tuple[BundleInfo, BundleInfo | None]:
    """Write a variant of a bundle to `out`, and its control to the folder `control` unless this is None."""
    steps = [read_kind(wanted) for wanted in kinds]
    for place in filter(None, (out, control)):
        check_out(place, force=options.force)
    bundle = open_bundle(root)
    tally = Tally(strict=options.strict)
    engine = open_engine(options.engine, jobs=options.jobs, items=len(bundle.files), limits=read_limits(options))
    corpus = read_corpus(bundle, tally, engine)
    varied = corpus
    for name, argument in steps:
        varied = KINDS[name].vary(varied, VaryRequest(options.seed, argument, options.others), tally)
    if not varied.rows:
        reasons = "; ".join(f"{reason}: {len(names)}" for reason, names in tally.left_out.items())
        raise BundleError(f"{root}: no question can be varied: {reasons}; choose another kind or another bundle")
    names = [name for name in (TRAIN, GOLD, INFO) if (root / name).is_file()]
    checksums = {name: sha256_of(root / name) for name in names}
    checksums |= {f"{CORPUS}/{name}": sha256_of(path) for name, path in sorted(bundle.files.items())}
    done = "+".join(kinds)
    words = [done, str(options.seed), *(f"{name} {digest}" for name, digest in checksums.items())]
    pair = hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]  # unique to a variant and its control

    def write(corpus: TextCorpus, kind: str, tally: Tally, out: Path) -> BundleInfo:
        info = _make_info(bundle, done, [name for name, _ in steps], options.seed, is_control=kind == CONTROL)
        rows = _finish_rows(corpus, {"varied": kind, "pair": pair})
        documents = list(corpus.documents.values())
        with make_scratch_folder() as folder:
            if corpus.scan_seed is not None:
                tracked = track(documents, total=len(documents), label="scans")
                documents = [write_scan(document, folder, seed=corpus.scan_seed) for document in tracked]
            benchmark = Benchmark(documents, rows, checksums, info=info, by_construction=True)
            scanned = corpus.scan_seed is not None
            with replace_folder(out, force=options.force) as place:
                return build(info, benchmark, tally, _list_build_options(options, done, scanned=scanned), place)

    variant = write(varied, done, tally, out)
    if control is None:
        return variant, None
    kept = {row.labels[CONTROL_ROW] for row in varied.rows}
    other = Tally(strict=options.strict)
    for row in corpus.rows:
        if row.id not in kept:
            other.leave_out(NO_TWIN, row.name)
    plain = replace(corpus, rows=tuple(row for row in corpus.rows if row.id in kept))
    return variant, write(plain, CONTROL, other, control)


def _list_build_options(options: Namespace, kinds: str, *, scanned: bool) -> Namespace:
    """Return the options of `vary` that the build of a bundle needs, or that bundle.json records."""
    names = ("seed", "engine", "jobs", "item_timeout", "item_memory", "ocr_language", "ocr_engine")
    given = {name: getattr(options, name) for name in names}
    others = options.others.name if options.others else None
    return Namespace(kind=kinds, others=others, ocr=options.ocr or scanned, **given)


def _finish_rows(corpus: TextCorpus, labels: dict[str, Label]) -> list[RawRow]:
    """Return a corpus's rows with the words of their quotes, and with the labels that link variant and control."""

    def with_words(quotes: Sequence[Quote]) -> tuple[Quote, ...]:
        return tuple(replace(quote, text=corpus.words(quote)) for quote in quotes)

    rows = []
    for row in corpus.rows:
        quotes = () if row.is_impossible else with_words(row.quotes)
        filename = row.filename or next(iter(row.files), None)
        row = replace(row, quotes=quotes, near_misses=with_words(row.near_misses), filename=filename)
        rows.append(with_labels(row, **labels))
    return rows


def _make_info(bundle: BundleFolder, kinds: str, applied: Sequence[str], seed: int, *, is_control: bool) -> DatasetInfo:
    parent = bundle.info
    parent_name = parent.name if parent else bundle.root.name
    done = "; ".join(TITLES[name] for name in applied)
    measured = sorted({metric for name in applied for metric in KINDS[name].measured})
    title = parent.title if parent else parent_name
    name = f"{parent_name}-{kinds.replace(':', '-').replace('+', '-')}"
    named, ending = f"{title}, varied ({kinds})", ", and their words were changed by rule."
    summary = f"Made by rule from {title} with seed {seed}: {done}."
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
            - The effect of a variation is the difference between variant and control: evaluate both.
            - Metrics that show the effect: {", ".join(measured)}.""",
        annotations=("machine-generated",),
    )


_DPI = 150  # the usual resolution of office scanners
_MAX_TURN_DEGREES = 1.2  # degrees to either side: a scanner's feeder rotates a sheet by less
_BLUR_PIXELS = (0.4, 0.9)  # radius in pixels: print stays legible to a person
_JPEG_QUALITY = (35, 60)  # JPEG quality: scanners use such values to keep files small


def write_scan(raw: RawDocument, folder: Path, *, seed: int) -> RawDocument:
    """Print a document and write a simulated scan of its pages; return the document as a file without text."""
    digest = hashlib.sha256(f"{seed}{raw.filename}".encode()).hexdigest()[:8]
    printed, scan = folder / f"{raw.filename}.printed.pdf", folder / raw.filename
    printed.write_bytes(pdf_of([Block("p", raw.text or "")], title=raw.title, subject=raw.subject))
    scan.write_bytes(scan_pages(printed, seed=int(digest, 16), title=raw.title))
    printed.unlink()
    return replace(raw, path=scan)


def scan_pages(path: Path, *, seed: int, title: str) -> bytes:
    """Return a PDF with pictures of another PDF's pages; the same seed gives the same bytes."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    file = io.BytesIO()
    canvas = Canvas(file, pageCompression=0, invariant=1)
    canvas.setTitle(title)
    canvas.setCreator("exhibit-rag")
    for number in range(1, len(read_document(path).pages) + 1):
        chance = random.Random(f"{seed}\0{path.name}\0{number}")
        picture = render(path, number, scale=_DPI / 72).convert("L")
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
    return file.getvalue()


def make_parser() -> ArgumentParser:
    width = max(map(len, TITLES))
    kinds = "\n".join(["kinds:", *(f"  {name:<{width}}  {title}" for name, title in TITLES.items())])
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
    lines = format_table(variant, out, seconds) + (f"\nalso evaluate the control: {control}" if control else "")
    print_results(record, lines, as_json=options.json)
    return 0


def _record(bundle: BundleInfo | None, out: Path | None) -> dict[str, object] | None:
    if bundle is None:
        return None
    left_out = {reason: len(names) for reason, names in bundle.left_out.items()}
    return {"folder": str(out), **bundle.counts.model_dump(), "left_out": left_out}
