"""LegalQuAD: German court decisions, a question each, in SQuAD's form.

python -m converters.legalquad --source LegalQuAD.json --out datasets_out/legalquad
"""

import sys

from exhibit.converters._benchmark import read_info
from exhibit.converters._cli import main
from exhibit.converters.squad import read

__all__ = ["INFO", "read"]

INFO = read_info(__file__)


if __name__ == "__main__":
    sys.exit(main(sys.modules[__name__]))
