"""LegalQuAD: German court decisions, a question each, in SQuAD's form.

python -m converters.legalquad --source LegalQuAD.json --out datasets_out/legalquad
"""

from __future__ import annotations

import sys
from dataclasses import replace

from exhibit.converters import squad
from exhibit.converters._benchmark import points
from exhibit.converters._cli import main
from exhibit.converters.squad import add_arguments, read
from exhibit.schemas.models import Licence

__all__ = ["INFO", "add_arguments", "read"]

INFO = replace(
    squad.INFO,
    name="legalquad",
    title="LegalQuAD on PDFs",
    benchmark="LegalQuAD",
    summary="Questions in German on decisions of German courts, each answered by a passage of one decision.",
    url="https://github.com/Christoph911/AIKE2021_Appendix",
    licence=Licence(
        id="cc-by-4.0",
        name="CC BY 4.0, as its authors state",
        redistributable=False,
        note="The file itself names no licence; its authors state CC BY 4.0 elsewhere. Check before publishing.",
    ),
    citation="""@inproceedings{hoppe2021legalquad,
  title = {Towards Intelligent Legal Advisors for Document Retrieval and Question-Answering in German Legal Documents},
  author = {Hoppe, Christoph and Pelkmann, David and Migenda, Nico and H{\\"o}tte, Daniel and Schenck, Wolfram},
  booktitle = {IEEE International Conference on Artificial Intelligence and Knowledge Engineering},
  year = {2021}
}""",
    tags=("legal", "german", "court decisions", "question answering"),
    limits=points(
        "A question names no decision: over one search space several may answer it, and one is gold.",
        squad.INFO.limits.removeprefix("- ").replace("\n- ", " "),
    ),
)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
