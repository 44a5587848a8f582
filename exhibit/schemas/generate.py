"""Writes the JSON Schema files: `python -m exhibit.schemas.generate`; a test fails if a file is out of date."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from exhibit.schemas.models import BundleInfo, Gold, Row
from exhibit.schemas.review import Patch, Review
from exhibit.schemas.run import Means, Provenance, RunConfig, RunQuestion

FOLDER = Path(__file__).parent / "json"
SCHEMAS: dict[str, type[BaseModel] | Any] = {
    "train.schema.json": list[Row],
    "gold.schema.json": Gold,
    "bundle.schema.json": BundleInfo,
    "review.schema.json": Review,
    "patch.schema.json": Patch,
    "run-config.schema.json": RunConfig,
    "run-provenance.schema.json": Provenance,
    "run-summary.schema.json": Means,
    "run-question.schema.json": RunQuestion,
}


def generate() -> dict[str, str]:
    """Return the text of each JSON Schema file, by file name."""
    texts = {}
    for name, model in SCHEMAS.items():
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(model).json_schema()}
        texts[name] = json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    return texts


if __name__ == "__main__":
    for name, text in generate().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
