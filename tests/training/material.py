"""Small bundles and a small network for the tests of training: contracts of fictional parties, as text."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from exhibit.schemas.models import BundleInfo, Counts, DocumentEntry, FileEntry, Licence, SourceEntry, Tool
from tests.rag.bundles import gold_line, write_files

NAMES = ("alder", "birch", "cedar", "dogwood", "elm", "fir")
LAWS = ("Norway", "Ohio", "Chile", "Texas", "Kenya", "Japan")
WARES = "boots chairs desks drums flutes forks gloves hats jars kites lamps mugs nets ovens pans rugs".split()
REFUSAL = "Not found in provided documents"


def contract(name: str, law: str) -> str:
    """Return a contract whose numbered clauses are each long enough for a passage of their own."""
    order = np.random.default_rng(NAMES.index(name)).permutation(WARES * 5)
    filler = f"{name.title()} Ltd keeps records of " + " and ".join(order.tolist()) + "."
    return (
        f"SUPPLY AGREEMENT\n\nThis Supply Agreement is made between {name.title()} Ltd and Dune plc.\n\n"
        f"1. Term and Expiry\n\nThe term of this Agreement ends five years after the Effective Date. {filler}\n\n"
        f"2. Governing Law\n\nThis Agreement is governed by the law of {law} and no other. {filler}\n\n"
        f"3. Payment of Invoices\n\nThe price is due within thirty days of the invoice. {filler}\n\n"
        f"4. Delivery of Goods\n\nGoods are delivered to the store that ordered them, at the seller's risk. {filler}\n"
    )


QUOTES = {
    "Governing Law": "This Agreement is governed by the law of",
    "Expiration Date": "The term of this Agreement ends five years after the Effective Date.",
    "Insurance": None,
}


def write_contracts(folder: Path, *, name: str = "cuad", names: tuple[str, ...] = NAMES) -> Path:
    """Write a bundle with three questions about each contract, the last of them impossible."""
    rows: list[dict[str, Any]] = []
    gold: list[dict[str, Any]] = []
    texts = {f"{stem}.txt": contract(stem, LAWS[NAMES.index(stem)]) for stem in names}
    for file, text in texts.items():
        for kind, quote in QUOTES.items():
            id = len(rows)
            context = {"filename": file, "text": quote or ""}
            rows.append(_row(id, f"Consider the {file} agreement; what of {kind}?", quote or REFUSAL, [context]))
            rows[-1]["is_impossible"] = quote is None
            start = text.index(quote) if quote else 0
            spans = [[start, start + len(quote)]] if quote else []
            gold.append(gold_line(id, 0 if quote else None, file, spans, {"clause": kind}))
    return _write(folder, name, texts, rows, gold)


def write_yes_no_questions(folder: Path) -> Path:
    """Write a bundle of questions that people wrote: two yes-no questions about the law of each contract."""
    texts = {f"{stem}.txt": contract(stem, law) for stem, law in zip(NAMES, LAWS, strict=True)}
    rows: list[dict[str, Any]] = []
    gold: list[dict[str, Any]] = []
    for file, text in texts.items():
        quote = QUOTES["Governing Law"] or ""
        for law, answer in (("another country", "No"), ("a single country", "Yes")):
            rows.append(
                _row(len(rows), f"May {file} follow the law of {law}?", answer, [{"filename": file, "text": quote}])
            )
            start = text.index(quote)
            gold.append(gold_line(len(gold), 0, file, [[start, start + len(quote)]], {}))
    return _write(folder, "people", texts, rows, gold)


def write_library(folder: Path) -> Path:
    """Write a bundle of clauses with two queries; each clause has a grade for both queries."""
    clauses = {
        "cap.txt": "In no event shall the liability of a party exceed the fees paid in the year before the claim.",
        "indirect.txt": "Neither party is liable for indirect, incidental or consequential damages of any kind.",
        "law.txt": "This contract is governed by the law of the State of New York without its conflict rules.",
        "notice.txt": "Notices are sent by courier to the address that a party has named for that purpose in writing.",
    }
    grades = {
        "cap on liability": {"cap.txt": 4, "indirect.txt": 2, "law.txt": 0, "notice.txt": 0},
        "New York law": {"cap.txt": 0, "indirect.txt": 0, "law.txt": 3, "notice.txt": 1},
    }
    rows, gold = [], []
    for id, (query, given) in enumerate(grades.items()):
        best = max(given, key=lambda file: given[file])
        rows.append(_row(id, query, clauses[best], [{"filename": best, "text": clauses[best]}]))
        labels = {"grade": given[best], "grades": json.dumps(given), "split": "train"}
        gold.append(gold_line(id, 0, best, [[0, len(clauses[best])]], labels))
    return _write(folder, "acord", clauses, rows, gold)


def tiny_weights(*, width: int = 32, layers: int = 2, seed: int = 3) -> dict[str, np.ndarray[Any, Any]]:
    """Return the weights of a network with MiniLM's architecture and a thousandth of its size."""
    random = np.random.default_rng(seed)

    def random_array(*shape: int) -> np.ndarray[Any, Any]:
        return (random.standard_normal(shape) * 0.08).astype(np.float32)

    def norm(name: str) -> dict[str, np.ndarray[Any, Any]]:
        return {f"{name}.weight": np.ones(width, np.float32), f"{name}.bias": np.zeros(width, np.float32)}

    weights = {
        "embeddings.word_embeddings.weight": random_array(30522, width) * 5,
        "embeddings.position_embeddings.weight": random_array(512, width),
        "embeddings.token_type_embeddings.weight": random_array(2, width),
        **norm("embeddings.LayerNorm"),
    }
    wide = 4 * width
    shapes = {
        "attention.self.query": (width, width), "attention.self.key": (width, width),
        "attention.self.value": (width, width), "attention.output.dense": (width, width),
        "intermediate.dense": (wide, width), "output.dense": (width, wide),
    }  # fmt: skip
    for layer in range(layers):
        for part, (rows, columns) in shapes.items():
            name = f"encoder.layer.{layer}.{part}"
            weights |= {f"{name}.weight": random_array(rows, columns), f"{name}.bias": np.zeros(rows, np.float32)}
        weights |= norm(f"encoder.layer.{layer}.attention.output.LayerNorm")
        weights |= norm(f"encoder.layer.{layer}.output.LayerNorm")
    return weights


def _row(id: int, question: str, answer: str, contexts: list[dict[str, str]]) -> dict[str, Any]:
    return {"id": id, "question": question, "answer": answer, "is_impossible": False, "contexts": contexts}


def _write(
    folder: Path, name: str, texts: dict[str, str], rows: list[dict[str, Any]], gold: list[dict[str, Any]]
) -> Path:
    write_files(folder, texts, rows, gold)
    files = {}
    for file, text in texts.items():
        data = text.encode()
        files[f"corpus/{file}"] = FileEntry(sha256=hashlib.sha256(data).hexdigest(), bytes=len(data))
    answerable = sum(not row["is_impossible"] for row in rows)
    info = BundleInfo(
        format="exhibit-bundle/1", name=name, title=name, source=SourceEntry(name=name),
        licence=Licence(id="cc0-1.0", name="CC0"), left_out={}, noted={}, options={},
        counts=Counts(documents=len(texts), questions=len(rows), answerable=answerable,
                      impossible=len(rows) - answerable, contexts=answerable, located={}),
        documents=[DocumentEntry(filename=file, title=file, characters=len(text)) for file, text in texts.items()],
        files=files, tool=Tool(name="test", version="1"),
    )  # fmt: skip
    (folder / "bundle.json").write_text(info.model_dump_json(), encoding="utf-8")
    return folder
