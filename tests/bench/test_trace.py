"""The traces in docs/architecture.md are those of a real conversion and evaluation."""

from __future__ import annotations

import pytest

from bench import trace
from exhibit.schemas.errors import escape_surrogates


def test_a_file_is_on_the_way_where_a_function_is_given_the_words_within_something():
    with trace.Way("governing law") as way:
        escape_surrogates("nothing")
    assert way.files == {}
    with way:
        escape_surrogates("the governing law")
    assert way.files == {"schemas/errors.py": "escape_surrogates"}


@pytest.fixture(scope="module")
def ways(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ways")
    return trace.quote_way(folder), trace.trace_question(folder)


def test_a_gold_quote_passes_few_files_from_the_archive_to_the_report(ways):
    files = list(ways[0].files)
    assert files[0] == "converters/cuad.py"
    assert files.index("evidence/locate.py") < files.index("schemas/bundle.py")
    assert files[-1].startswith("viewer/")
    assert len(files) <= trace.MOST_FOR_A_QUOTE


def test_a_question_passes_few_files_to_its_first_scored_passage(ways):
    files = list(ways[1].files)
    assert "rag/pipeline.py" in files
    assert files[-1].startswith("evaluation/metrics/")
    assert len(files) <= trace.MOST_FOR_A_QUESTION


def test_the_page_shows_the_ways_as_they_are(ways):
    shown = trace.PAGE.read_text(encoding="utf-8").partition(trace.BEGIN)[2].partition(trace.END)[0]
    assert shown == trace.format_block(*ways)
