"""An alias of the package `exhibit.converters`: `python -m converters.cuad` works in a checkout."""

from exhibit.converters import __path__ as __path__
