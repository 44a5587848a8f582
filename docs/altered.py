"""Writes the tables of altered clauses in docs/vary.md, made from the sample datasets.

python -m docs.altered
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from exhibit.conversion import main as convert
from exhibit.converters.benchmark import Tally
from exhibit.runtime.command import Parser, guarded
from exhibit.schemas.errors import ToolkitError
from exhibit.storage.bundle import open_bundle
from exhibit.vary.corpus import TextCorpus, TextRow, read_corpus
from exhibit.vary.kinds import VaryRequest, load_kind

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "vary.md"
BEGIN, END = "<!-- altered -->\n", "<!-- /altered -->"
SAMPLES = (("cuad", ("--keep-ambiguous",)), ("contractnli", ()), ("maud", ()), ("squad", ()))
KINDS = ("figures", "removed", "negated", "contradiction:within", "amended")
SHOWN = 30  # clauses of each kind
SEEDS = 9  # tried in turn until there are so many
_LONGEST = 420  # characters of a clause that a table's cell shows


@guarded()
def main(argv: Sequence[str] | None = None) -> int:
    """Write examples of altered clauses, old and new, into docs/vary.md, in a block for each kind of variant."""
    parser = Parser(prog="python -m docs.altered", description=__doc__)
    parser.parse_args(argv)
    text = PAGE.read_text(encoding="utf-8")
    before, mark, rest = text.partition(BEGIN)
    if not mark or END not in rest:
        raise ToolkitError(f"{PAGE}: no lines {BEGIN.strip()} and {END}, between which the clauses go")
    with tempfile.TemporaryDirectory() as folder:
        corpora = list(_read_corpora(Path(folder)))
    tables = "\n\n".join(_format_table(kind, corpora) for kind in KINDS)
    PAGE.write_text(f"{before}{BEGIN}\n{tables}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8", newline="\n")
    return 0


def _read_corpora(folder: Path) -> Iterator[TextCorpus]:
    for name, flags in SAMPLES:
        out = folder / name
        source = ROOT / "samples" / name
        if convert([name, "--source", str(source), "--out", str(out), *flags]):
            raise ToolkitError(f"{source}: cannot be converted")
        yield read_corpus(open_bundle(out), Tally())


def _format_table(kind: str, corpora: Sequence[TextCorpus]) -> str:
    pairs: dict[tuple[str, str], None] = {}
    module, argument = load_kind(kind)
    for seed in range(1, SEEDS + 1):
        for corpus in corpora:
            after = module.vary(corpus, VaryRequest(seed, argument), Tally())
            parents = {row.id: row for row in corpus.rows}
            for row in after.rows:
                pairs |= dict.fromkeys(_find_changes(row, parents[row.control], corpus, after))
    lines = [line for old, new in list(pairs)[:SHOWN] for line in (f"- {old}", f"+ {new}")]
    return "\n".join([f"### {kind}", "", "```diff", *lines, "```"])


def _find_changes(row: TextRow, parent: TextRow, corpus: TextCorpus, after: TextCorpus) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text of each altered passage of one question.

    For a removed passage, the new text is `[Intentionally omitted.]`.
    """
    old = [corpus.words(passage) for passage in parent.passages]
    if row.is_impossible:
        text = after.documents[str(row.filename)].text
        yield from ((_cut(words), "[Intentionally omitted.]") for words in old if words not in " ".join(text.split()))
        return
    new = [after.words(passage) for passage in row.passages]
    if len(new) == len(old):
        yield from ((_cut(one), _cut(other)) for one, other in zip(old, new, strict=True) if one != other)
    else:
        yield from ((_cut(old[0]), _cut(words)) for words in new if words not in old)


def _cut(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST].rpartition(' ')[0]} …"


if __name__ == "__main__":
    sys.exit(main())
