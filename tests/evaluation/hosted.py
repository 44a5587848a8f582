"""Local imitations of hosted services: an Azure AI Search index with an Azure OpenAI deployment, and OpenAI."""

from __future__ import annotations

import re

from tests.evaluation.loopback import Asked, System
from tests.rag.bundles import PARTIES, contract

KEY = "query-key-5b1e"
CATEGORIES = {"alder.txt": "King's Bench Division", "birch.txt": "Commercial Court", "cedar.txt": "Commercial Court"}
ROWS = [
    {
        "sourcefile": f"{stem}.txt",
        "sourcepage": f"{stem}.txt#page=1",
        "content": part,
        "category": CATEGORIES[f"{stem}.txt"],
    }
    for stem, (party, law) in PARTIES.items()
    for part in contract(party, law).split("\n\n")
]
INDEX = "guides"
MOST = 4
"""Rows of one reply: a service may give fewer than are asked for."""
WIDTH = 3072
"""Dimensions of text-embedding-3-large."""


def reply_as_azure(_: System, asked: Asked) -> object:
    """Reply as the REST interface of a search service does, and as a deployment of Azure OpenAI."""
    if asked.path.endswith("/chat/completions"):
        words = re.findall(r"governed by the law of (\w+)", asked.body["messages"][-1]["content"])
        text = (
            f"This Agreement is governed by the law of {words[0]} [1]." if words else "Not found in provided documents"
        )
        usage = {"prompt_tokens": 40, "completion_tokens": 9}
        return {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": usage}
    if asked.headers.get("api-key") != KEY or asked.query.get("api-version") != "2024-07-01":
        return 403, {"error": {"code": "", "message": "Access denied due to invalid key"}}
    if asked.path != f"/indexes/{INDEX}/docs/search":
        return 404, {"error": {"code": "", "message": "The index was not found"}}
    wanted = re.fullmatch(r"category eq '(.*)'", asked.body.get("filter", "category eq ''"))
    name = wanted[1].replace("''", "'") if wanted else ""
    rows = [row for row in ROWS if name in ("", row["category"])]
    if asked.body["search"] != "*":
        words = set(re.findall(r"\w{3,}", asked.body["search"].lower()))
        score = {
            id(row): len(words & set(re.findall(r"\w{3,}", f"{row['sourcefile']} {row['content']}".lower())))
            for row in rows
        }
        rows = sorted(rows, key=lambda row: -score[id(row)])
    skip, top = asked.body.get("skip", 0), asked.body["top"]
    chosen = asked.body.get("select", "sourcefile,sourcepage,category,content").split(",")
    value = [
        {"@search.score": 1.0, **{field: row[field] for field in chosen}} for row in rows[skip : skip + min(top, MOST)]
    ]
    return {"@odata.count": len(rows), "value": value}


def reply_as_openai(_: System, asked: Asked) -> object:
    """Reply as OpenAI does: with vectors of each text's letter counts, or with a fixed text."""
    if asked.path.endswith("/embeddings"):
        rows = [[1.0 + text.count(chr(97 + place % 26)) for place in range(WIDTH)] for text in asked.body["input"]]
        return {"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]}
    words = "A supply agreement." if asked.body["model"] == "gpt-4o-mini" else "The law of Ohio governs [1]."
    return {"choices": [{"message": {"content": words}, "finish_reason": "stop"}], "usage": {}}
