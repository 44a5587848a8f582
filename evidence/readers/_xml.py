"""XML inside documents, parsed by lxml without entities, networks or endless nesting."""

from __future__ import annotations

from typing import Any


def parse(data: bytes) -> Any:
    """Return the root of an XML part; what is not well-formed raises lxml's own error."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    root = etree.fromstring(data, parser)
    # office formats forbid them; they are only good for making small files large
    if root.getroottree().docinfo.internalDTD is not None and root.getroottree().docinfo.internalDTD.entities():
        raise ValueError("it declares entities, which no document of this kind does")
    return root
