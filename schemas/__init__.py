"""The room `exhibit.schemas` under the short name: `python -m schemas.generate` works in a checkout."""

from exhibit.schemas import __path__ as __path__
