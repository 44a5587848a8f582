"""The room `exhibit.rag` under the short name: `python -m rag.inspect` works in a checkout."""

from exhibit.rag import __path__ as __path__
