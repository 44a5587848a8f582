"""Small bundles for the tests of the evaluator: contracts as text, and questions with located gold."""

import json
from pathlib import Path
from typing import Any

PARTIES = {"alder": ("Alder Ltd", "Norway"), "birch": ("Birch Inc.", "Ohio"), "cedar": ("Cedar SA", "Chile")}


def contract(party: str, law: str) -> str:
    """Return a contract of four clauses."""
    return (
        f"SUPPLY AGREEMENT\n\nThis Supply Agreement is made between {party} and Dune plc.\n\n"
        "1. Term. The term of this Agreement is five years from the Effective Date.\n\n"
        f"2. Governing Law. This Agreement is governed by the law of {law}.\n\n"
        f"3. Notice. {party} shall give ninety days' notice of termination in writing.\n\n"
        "4. Payment. The price is due within thirty days of the invoice.\n"
    )


def row(id: int | str, question: str, answer: str, *contexts: Any, **fields: Any) -> dict[str, Any]:
    """Return a row of train.json."""
    return {"id": id, "question": question, "answer": answer, "contexts": list(contexts), **fields}


def gold_line(id: int, context: int | None, file: str, spans: list[Any], labels: dict[str, Any]) -> dict[str, Any]:
    """Return a line of gold.jsonl; without spans, the line marks its gold as absent from the document."""
    how = "exact" if spans else "absent"
    return {"id": id, "context": context, "filename": file, "pages": [], "spans": spans, "alternatives": [], "how": how,
            "score": 1.0, "labels": labels}  # fmt: skip


def write_files(folder: Path, texts: dict[str, str], rows: list[dict[str, Any]], gold: list[Any] | None = None) -> Path:
    """Write documents, questions and, if given, lines of gold as a bundle; return its folder."""
    (folder / "corpus").mkdir(parents=True)
    for name, text in texts.items():
        (folder / "corpus" / name).write_text(text, encoding="utf-8")
    (folder / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    if gold is not None:
        (folder / "gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in gold), encoding="utf-8")
    return folder


def write_bundle(folder: Path, *, rows: list[dict[str, Any]] | None = None, gold: bool = True) -> Path:
    """Write three contracts and three questions about each, one of them impossible; `gold` also writes gold.jsonl."""
    texts, asked_rows, lines = {}, [], []
    for number, (stem, (party, law)) in enumerate(PARTIES.items()):
        name, text = f"{stem}.txt", contract(party, law)
        texts[name] = text
        quotes = (f"This Agreement is governed by the law of {law}.", "The term of this Agreement is five years")
        asked = (f"Which law governs the agreement of {party}?", f"What is the term of the agreement of {party}?")
        for offset, (question, quote) in enumerate(zip(asked, quotes, strict=True)):
            id = 3 * number + offset
            asked_rows.append(row(id, question, quote, {"filename": name, "text": quote}, is_impossible=False))
            spans = [[text.index(quote), text.index(quote) + len(quote)]]
            lines.append(gold_line(id, 0, name, spans, {"clause": ("law", "term")[offset], "party": name[0]}))
        refusal = "Not found in provided documents"
        question = f"Consider {party}; who won the cup final of 1998?"
        asked_rows.append(row(3 * number + 2, question, refusal, {"filename": name, "text": ""}, is_impossible=True))
        lines.append(gold_line(3 * number + 2, None, name, [], {"clause": "none", "party": name[0]}))
    return write_files(folder, texts, asked_rows if rows is None else rows, lines if gold else None)


def rows_of(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def drop_times(value: Any) -> Any:
    """Return a result without its times."""
    if isinstance(value, dict):
        clock = ("seconds", "latency", "pages_per_second", "started")
        return {key: drop_times(held) for key, held in value.items() if key not in clock}
    return [drop_times(held) for held in value] if isinstance(value, list) else value


def contents(folder: Path) -> dict[str, Any]:
    """Return every JSON file of a run except the journal, without times."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.json*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".jsonl" and path.name != "journal.jsonl":
            found[name] = drop_times(rows_of(path))
        elif path.suffix == ".json":
            found[name] = drop_times(json.loads(path.read_text(encoding="utf-8")))
    return found
