"""Makes two bundles from one: a variant with edited documents or questions, and a control without the edits.

Both are printed in the same way, so that the edits are the only difference between them.
"""

import hashlib
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from exhibit.converters.core.benchmark import Benchmark, DatasetInfo, Quote, RawRow, Tally, format_points
from exhibit.converters.core.build import build
from exhibit.engine import open_engine, read_limits, track
from exhibit.schemas.bundle import CORPUS, GOLD, INFO, TRAIN
from exhibit.schemas.errors import BundleError
from exhibit.schemas.models import BundleInfo, Licence
from exhibit.storage.atomic import make_scratch_folder, replace_folder
from exhibit.storage.bundle import BundleFolder, open_bundle, sha256_of
from exhibit.storage.locations import check_out
from exhibit.vary.corpus import CONTROL_ROW, TextCorpus, read_corpus
from exhibit.vary.kinds import KindModule, VaryRequest, load_kind
from exhibit.vary.kinds.scanned import write_scan

NO_TWIN = "the variant has no twin of it"
CONTROL = "control"  # the value of the label `varied` in a control, in place of a kind of variation


def make_variant(
    root: Path, kinds: Sequence[str], out: Path, control: Path | None, options: Namespace
) -> tuple[BundleInfo, BundleInfo | None]:
    """Write a variant of a bundle to `out`, and its control to the folder `control` unless this is None."""
    loaded = [(name, *load_kind(name)) for name in kinds]
    for place in filter(None, (out, control)):
        check_out(place, force=options.force)
    bundle = open_bundle(root)
    tally = Tally(strict=options.strict)
    engine = open_engine(options.engine, jobs=options.jobs, items=len(bundle.files), limits=read_limits(options))
    corpus = read_corpus(bundle, tally, engine)
    varied = corpus
    for _, kind, argument in loaded:
        varied = kind.vary(varied, VaryRequest(options.seed, argument, options.others), tally)
    if not varied.rows:
        reasons = "; ".join(f"{reason}: {len(names)}" for reason, names in tally.left_out.items())
        raise BundleError(f"{root}: no question can be varied: {reasons}; choose another kind or another bundle")
    about = _About(bundle, "+".join(kinds), [kind for _, kind, _ in loaded], options.seed)
    kept = {row.labels[CONTROL_ROW] for row in varied.rows}
    plain = replace(corpus, rows=tuple(row for row in corpus.rows if row.id in kept))
    variant = _write(varied, about, about.kinds, tally, out, options)
    if control is None:
        return variant, None
    other = Tally(strict=options.strict)
    for row in corpus.rows:
        if row.id not in kept:
            other.leave_out(NO_TWIN, row.name)
    return variant, _write(plain, about, CONTROL, other, control, options)


@dataclass(frozen=True)
class _About:
    """The common properties of a variant and its control."""

    bundle: BundleFolder
    kinds: str
    modules: Sequence[KindModule]
    seed: int

    @cached_property
    def checksums(self) -> dict[str, str]:
        """The SHA-256 of the files of the original bundle, by path."""
        names = [name for name in (TRAIN, GOLD, INFO) if (self.bundle.root / name).is_file()]
        own = {name: sha256_of(self.bundle.root / name) for name in names}
        return own | {f"{CORPUS}/{name}": sha256_of(path) for name, path in sorted(self.bundle.files.items())}

    @cached_property
    def pair(self) -> str:
        """The id that only a variant and its control share."""
        words = [self.kinds, str(self.seed), *(f"{name} {digest}" for name, digest in self.checksums.items())]
        return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]

    @property
    def name(self) -> str:
        return self.bundle.info.name if self.bundle.info else self.bundle.root.name


def _write(corpus: TextCorpus, about: _About, kind: str, tally: Tally, out: Path, options: Namespace) -> BundleInfo:
    others = options.others.name if options.others else None
    scanned = corpus.scan_seed is not None
    names = ("engine", "jobs", "item_timeout", "item_memory", "ocr_language", "ocr_engine")
    how = {name: getattr(options, name) for name in names}
    given = Namespace(kind=about.kinds, seed=about.seed, others=others, ocr=options.ocr or scanned, **how)
    documents = list(corpus.documents.values())
    with make_scratch_folder() as folder:
        if corpus.scan_seed is not None:
            tracked = track(documents, total=len(documents), label="scans")
            documents = [write_scan(document, folder, seed=corpus.scan_seed) for document in tracked]
        info, rows = _make_info(about, kind), _finish_rows(corpus, about, kind)
        benchmark = Benchmark(documents, rows, about.checksums, info=info, by_construction=True)
        with replace_folder(out, force=options.force) as place:
            return build(info, benchmark, tally, given, place)


def _finish_rows(corpus: TextCorpus, about: _About, kind: str) -> list[RawRow]:
    """Return a corpus's rows with the words of their quotes, and with the labels that link variant and control."""
    return [
        replace(
            row,
            quotes=() if row.is_impossible else _with_words(row.quotes, corpus),
            near_misses=_with_words(row.near_misses, corpus),
            filename=row.filename or next(iter(row.files), None),
            labels={**row.labels, "varied": kind, "pair": about.pair},
        )
        for row in corpus.rows
    ]


def _with_words(quotes: Sequence[Quote], corpus: TextCorpus) -> tuple[Quote, ...]:
    return tuple(replace(quote, text=corpus.words(quote)) for quote in quotes)


def _make_info(about: _About, kind: str) -> DatasetInfo:
    parent = about.bundle.info
    done = "; ".join(module.TITLE for module in about.modules)
    measured = sorted({name for module in about.modules for name in module.MEASURED})
    title = parent.title if parent else about.name
    name = f"{about.name}-{about.kinds.replace(':', '-').replace('+', '-')}"
    named, ending = f"{title}, varied ({about.kinds})", ", and their words were changed by rule."
    summary = f"Made by rule from {title} with seed {about.seed}: {done}."
    if kind == CONTROL:
        name, named, ending = f"{name}-control", f"{title}, control of {about.kinds}", "."
        summary = f"{title} printed as its variant ({about.kinds}, seed {about.seed}) is, with nothing changed."
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
        command=f"exhibit vary datasets_out/{about.name}",
        tags=("legal", "varied"),
        groups=parent.groups if parent else None,
        questions="The parent's own; `labels.control` names the row of the parent that a question comes from.",
        limits=format_points(
            f"The documents are not the publisher's files: they were printed again from their text{ending}",
            "The effect is the difference between the variant and its control: evaluate both.",
            *([f"Metrics that tell the effect: {', '.join(measured)}."] if measured else []),
        ),
        annotations=("machine-generated",),
    )
