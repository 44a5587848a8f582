"""LegalQuAD: German court decisions in the SQuAD format, one question each.

python -m converters.legalquad --source LegalQuAD.json --out datasets_out/legalquad
"""

import sys

from exhibit.converters import DatasetInfo, Licence
from exhibit.converters.core.command import main
from exhibit.converters.squad import add_arguments, read

__all__ = ["INFO", "add_arguments", "read"]

INFO = DatasetInfo(
    name="legalquad",
    title="LegalQuAD on PDFs",
    benchmark="LegalQuAD",
    summary="Questions in German on decisions of German courts, each answered by a passage of one decision.",
    expects="a .json file in SQuAD's form: data, paragraphs, context, qas, answers with answer_start",
    licence=Licence(
        id="cc-by-4.0",
        name="CC BY 4.0, as its authors state",
        redistributable=False,
        note="The file itself names no licence; its authors state CC BY 4.0 elsewhere. Check before publishing.",
    ),
    url="https://github.com/Christoph911/AIKE2021_Appendix",
    version="as given",
    citation="""@inproceedings{hoppe2021legalquad,
  title = {Towards Intelligent Legal Advisors for Document Retrieval and Question-Answering in German Legal Documents},
  author = {Hoppe, Christoph and Pelkmann, David and Migenda, Nico and H{\\"o}tte, Daniel and Schenck, Wolfram},
  booktitle = {IEEE International Conference on Artificial Intelligence and Knowledge Engineering},
  year = {2021}
}""",
    tags=("legal", "german", "court decisions", "question answering"),
    accepts=(".json",),
    questions="The questions and answers are the source's own.",
    limits="""
        - A question names no decision: over one search space several may answer it, and one is gold.
        - An answer's offset is checked against its context; where the words stand elsewhere in it, they are located
          by the words, and the row is noted. Several answers to one question are further places of one passage
          where their words are the same, and passages of their own where they are not.""",
)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
