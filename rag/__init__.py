"""An alias of the package `exhibit.rag`: in a checkout, `python -m rag.inspect` works without `exhibit.`."""

from exhibit.rag import __path__ as __path__
