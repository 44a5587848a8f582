"""How a gold passage was found: the one word that documents, gold and reports share."""

from __future__ import annotations

from typing import Literal, get_args

How = Literal["exact", "folded", "parts", "fuzzy", "section", "answer", "absent"]
"""How a gold passage was found, best first; `section`: under the heading or the number that the source cites;
`answer`: the source quotes nothing, and the words of its answer stand once in the document that it names."""

HOWS: tuple[How, ...] = get_args(How)
