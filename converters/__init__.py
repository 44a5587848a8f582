"""The room `exhibit.converters` under the short name: `python -m converters.cuad` works in a checkout."""

from exhibit.converters import __path__ as __path__
