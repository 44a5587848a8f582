"""Writes the JSON Schema files: `python -m exhibit.schemas.generate [--check]`."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from exhibit.schemas.command import guarded
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
    """Return each schema file's text."""
    texts = {}
    for name, model in SCHEMAS.items():
        schema = TypeAdapter(model).json_schema()
        schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        texts[name] = json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"
    return texts


@guarded()
def main(argv: list[str] | None = None) -> int:
    """Write the files, or with --check say which differ from the models."""
    parser = argparse.ArgumentParser(prog="python -m exhibit.schemas.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is out of date")
    arguments = parser.parse_args(argv)
    stale = []
    for name, text in generate().items():
        path = FOLDER / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not arguments.check:
            FOLDER.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if stale:
        print(("out of date: " if arguments.check else "written: ") + ", ".join(stale))
    return 1 if stale and arguments.check else 0


if __name__ == "__main__":
    sys.exit(main())
