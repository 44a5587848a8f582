"""XML inside documents, parsed by lxml without entities, networks or endless nesting."""

from __future__ import annotations

import re
import zipfile
from typing import Any

_ENTITIES = "it declares entities, which no document of this kind does"
_DECLARATIONS = tuple("<!ENTITY".encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be"))
_OTHER = re.compile(
    rb"\s*<\?xml[^>]*encoding\s*=\s*[\"'](?!utf-?8|utf-?16|us-ascii|iso-8859-1|windows-125)", re.IGNORECASE
)
_XML = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*<|\x4c\x6f\xa7\x94")  # the last is EBCDIC's
_BLOCK = 1 << 20  # bytes read at a time


def refuse_entities(archive: zipfile.ZipFile) -> None:
    """Raise ValueError where a part of an archive declares entities: other people's parsers expand or swallow them."""
    for name in archive.namelist():
        with archive.open(name) as file:
            block = file.read(_BLOCK)
            # a part may be called anything: what begins like XML is XML
            if not _XML.match(block):
                continue
            before = b""
            while block:
                if any(mark in before + block for mark in _DECLARATIONS):
                    raise ValueError(_ENTITIES)
                if not before and (_OTHER.match(block) or b"\0\0\0" in block[:8] or block[0] == 0x4C):
                    raise ValueError("its XML is in an encoding that no document of this kind has")
                before, block = block[-40:], file.read(_BLOCK)


def parse(data: bytes) -> Any:
    """Return the root of an XML part; what is not well-formed raises lxml's own error."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    root = etree.fromstring(data, parser)
    # office formats forbid them; they are only good for making small files large
    if root.getroottree().docinfo.internalDTD is not None and root.getroottree().docinfo.internalDTD.entities():
        raise ValueError(_ENTITIES)
    return root
