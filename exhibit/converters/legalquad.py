"""LegalQuAD: German court decisions in the SQuAD format, one question each.

python -m converters.legalquad --source LegalQuAD.json --out datasets_out/legalquad
"""

import sys

from exhibit.converters import read_info
from exhibit.converters.squad import read
from exhibit.converters.steps.cli import main

__all__ = ["INFO", "read"]

INFO = read_info(__file__)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
