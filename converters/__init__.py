"""An alias of the package `exhibit.converters`: `python -m converters.cuad` is `exhibit convert cuad` in a checkout."""

import sys

from exhibit.conversion import main
from exhibit.converters import __path__ as __path__

if sys.argv[0] == "-m":  # Python imports this package to locate the module that it was asked to run
    module = next(word for word in sys.orig_argv if "converters." in word)
    sys.exit(main([module.rpartition(".")[2], *sys.argv[1:]]))
