"""An alias of the package `exhibit.schemas`, so that `python -m schemas.generate` works in a checkout."""

from exhibit.schemas import __path__ as __path__
