"""The Inspect format: questions as samples, the documents' texts, and a task with a scorer that `inspect eval` runs."""

from pathlib import Path

from exhibit.hub.exports import Export, write_lines

_TASK = Path(__file__).parent.parent / "inspect_task.txt"


def write(export: Export, folder: Path) -> None:
    """Write the bundle for Inspect: `questions.jsonl` with the samples, `task.py`, and the texts in `documents`."""
    (folder / "documents").mkdir()
    for filename, text in export.documents():
        (folder / "documents" / f"{filename}.txt").write_text(text, encoding="utf-8", newline="")
    samples = []
    for question in export.bundle.questions:
        lines = export.gold[question.id]
        filenames = list(dict.fromkeys(line.filename for line in lines if line.filename))
        if len(filenames) > 1:
            export.note("question on several documents: the model sees only the first", question.id)
        metadata = {
            "document": filenames[0] if filenames else None,
            "is_impossible": question.is_impossible,
            "passages": [context.text for context in question.contexts],
            "labels": lines[0].labels if lines else {},
        }
        sample = {"id": str(question.id), "input": question.question, "target": question.answer}
        samples.append({**sample, "metadata": metadata})
    write_lines(folder / "questions.jsonl", samples)
    (folder / "task.py").write_bytes(_TASK.read_bytes())
