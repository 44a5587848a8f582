"""The pipeline from the command line: `exhibit index`, `exhibit search` and `exhibit ask`.

exhibit index samples/cuad/CUAD_v1/full_contract_pdf --out index --preset routed
exhibit search index "Which law governs the distributor agreement?"
exhibit ask index "Which law governs the distributor agreement?"
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from exhibit.engine import add_engine_arguments, check_engine, read_limits
from exhibit.rag.config import ASKED, DEFAULT, Config, Ingest, add_setting_flags, choose_given_settings, list_presets
from exhibit.rag.index import open_index
from exhibit.rag.ingest import Report
from exhibit.rag.pipeline import Answered, Pipeline
from exhibit.rag.protocols import Retrieved
from exhibit.runtime.command import add_json, build_parser, guarded, print_results
from exhibit.storage.locations import parse_location

_WIDTH = 100  # characters of a line on a terminal


def _make_parser() -> argparse.ArgumentParser:
    parser = build_parser("exhibit", __doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    index = actions.add_parser("index", help="build an index of a folder or of one file")
    index.add_argument("source", type=parse_location, help="a folder of documents, or one document; also s3://, gs://")
    index.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the new index")
    index.add_argument("--force", action="store_true", help="replace an existing index")
    add_engine_arguments(index)
    add_json(index)
    index.add_argument(
        "--preset", default=DEFAULT, help=f"the preset: {', '.join(list_presets())}, or a .toml (default: {DEFAULT})"
    )
    add_setting_flags(index.add_argument_group("settings, which override the preset"))
    for name, text in {"search": "find passages that answer a question", "ask": "answer with citations"}.items():
        action = actions.add_parser(name, help=text)
        action.add_argument("index", type=Path, help="the folder of an index")
        action.add_argument("questions", nargs="+", metavar="QUESTION")
        add_json(action)
        group = action.add_argument_group("settings, which override those of the index")
        add_setting_flags(group, but=frozenset(Ingest.model_fields) - frozenset(ASKED))
    return parser


@guarded()
def main(argv: list[str] | None = None) -> int:
    options = _make_parser().parse_args(argv)
    if options.action == "index":
        config = Config.preset(options.preset, **choose_given_settings(vars(options)))
        engine, limits = check_engine(options.engine), read_limits(options)
        pipeline = Pipeline(config, engine=engine, jobs=options.jobs, limits=limits)
        report = pipeline.index(options.source, options.out, force=options.force)
        print_results(asdict(report), "\n".join(_report_lines(options.out, report)), as_json=options.json)
        return 0
    index = open_index(options.index, overrides=choose_given_settings(vars(options)))
    pipeline = Pipeline(index.config).open(options.index)
    if options.action == "search":
        records = [_describe_passages(retrieved) for retrieved in pipeline.search(options.questions)]
    else:
        records = [_describe_answer(answered) for answered in pipeline.answer(options.questions)]
    print_results(records, "\n".join(map(_format_record, records)), as_json=options.json)
    return 0


def _report_lines(out: Path, report: Report) -> Iterator[str]:
    yield f"{out}: {report.documents} documents, {report.pages} pages, {report.chunks} chunks, {report.seconds:.1f} s"
    if report.set_aside:
        given = report.documents + len(report.set_aside)
        yield f"files given: {given} = {report.documents} indexed + {len(report.set_aside)} not indexed"
    yield from (f"not indexed: {reason}" for reason in report.set_aside)
    yield from (f"note: {note}" for note in report.notes)


def _describe_passages(retrieved: Retrieved) -> dict[str, Any]:
    hits = [
        {
            "document": hit.document,
            "page": hit.page,
            "section": hit.section,
            "span": list(hit.span),
            "score": round(hit.score, 4),
            "text": hit.text,
        }
        for hit in retrieved.selected
    ]
    return {"question": retrieved.question, "passages": hits}


def _describe_answer(answered: Answered) -> dict[str, Any]:
    record, answer = _describe_passages(answered.retrieved), answered.answer
    record |= {"answer": answer.text, "citations": list(answer.citations), "refused": answer.refused}
    return record | ({"error": answer.error} if answer.error else {})


def _format_record(record: dict[str, Any]) -> str:
    lines = [f"\n{record['question']}"]
    if "answer" in record:
        lines.append(f"  {record.get('error') or record['answer']}")
    for number, hit in enumerate(record["passages"], 1):
        page = f"page {hit['page']}" if hit["page"] else ""
        where = ", ".join(filter(None, [hit["document"], page, hit["section"]]))
        lines.append(f"  [{number}] {hit['score']:.3f}  {where}\n      {' '.join(hit['text'].split())[:_WIDTH]}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
