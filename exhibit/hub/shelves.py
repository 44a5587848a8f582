"""Files that other tools read in a published bundle: `eval.yaml` for Inspect, `metadata.jsonl` for PdfFolder.

They are written into the repository only; a bundle on disk does not have them.
"""

import json

import yaml

from exhibit.schemas.bundle import CORPUS
from exhibit.schemas.models import IMPOSSIBLE_ANSWER, BundleInfo

EVAL = "eval.yaml"
METADATA = "metadata.jsonl"
QUESTIONS_TASK = "questions"
"""The task with only the question, for a RAG system behind an API or a model without the documents."""

_INSTRUCTION = f"Answer in one sentence. If you cannot answer from the documents, reply: {IMPOSSIBLE_ANSWER}"
_TASKS = {
    QUESTIONS_TASK: ([], f"{{prompt}}\n\n{_INSTRUCTION}"),
    "reading": (["contexts"], f"Passages of the documents:\n{{contexts}}\n\nQuestion: {{prompt}}\n\n{_INSTRUCTION}"),
}
"""By task, the columns that its prompt shows besides the question, and the template of the prompt."""


def make_shelf_files(info: BundleInfo) -> dict[str, bytes]:
    """Return the files by name: `eval.yaml` if there are questions, `metadata.jsonl` if there are PDFs."""
    files = {}
    if info.counts.questions:
        files[EVAL] = yaml.safe_dump(_describe_benchmark(info), sort_keys=False, allow_unicode=True).encode()
    pdfs = [document for document in info.documents if document.filename.lower().endswith(".pdf")]
    if pdfs:
        lines = (
            {"file_name": f"{CORPUS}/{pdf.filename}", "title": pdf.title, "pages": pdf.pages, "source": pdf.source}
            for pdf in pdfs
        )
        files[METADATA] = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    return files


def _describe_benchmark(info: BundleInfo) -> dict[str, object]:
    """Return the benchmark's description; the Hub and Inspect accept only these keys and names."""
    tasks = [
        {
            "id": name,
            "config": "questions",
            "split": "train",
            "field_spec": {"input": "question", "target": "answer", **({"metadata": shown} if shown else {})},
            "solvers": [{"name": "prompt_template", "args": {"template": template}}, {"name": "generate"}],
            "scorers": [{"name": "f1"}, {"name": "includes"}],
        }
        for name, (shown, template) in _TASKS.items()
    ]
    return {"name": info.title, "description": info.summary, "evaluation_framework": "inspect-ai", "tasks": tasks}
