"""LegalQuAD: German court decisions in the SQuAD format, one question each.

exhibit convert legalquad --source LegalQuAD.json --out datasets_out/legalquad
"""

from dataclasses import replace

from exhibit.converters import Licence, squad
from exhibit.converters.squad import add_arguments as add_arguments
from exhibit.converters.squad import read as read

INFO = replace(
    squad.INFO,
    name="legalquad",
    title="LegalQuAD on PDFs",
    benchmark="LegalQuAD",
    summary="Questions in German on decisions of German courts, each answered by a passage of one decision.",
    licence=Licence(
        id="cc-by-4.0",
        name="CC BY 4.0, as its authors state",
        redistributable=False,
        note="The file itself names no licence; its authors state CC BY 4.0 elsewhere. Check before publishing.",
    ),
    url="https://github.com/Christoph911/AIKE2021_Appendix",
    citation="""@inproceedings{hoppe2021legalquad,
  title = {Towards Intelligent Legal Advisors for Document Retrieval and Question-Answering in German Legal Documents},
  author = {Hoppe, Christoph and Pelkmann, David and Migenda, Nico and H{\\"o}tte, Daniel and Schenck, Wolfram},
  booktitle = {IEEE International Conference on Artificial Intelligence and Knowledge Engineering},
  year = {2021}
}""",
    tags=("legal", "german", "court decisions", "question answering"),
    limits=f"""
        - Questions do not name a decision: several decisions may answer a question, but only one is gold.
        {squad.INFO.limits}""",
)
