"""A Python function under test, plain or async, is called with each question."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from exhibit.evaluation.cases import Passage, Reply
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.targets import TargetOptions, open_target
from exhibit.evidence import Span
from exhibit.schemas.errors import ToolkitError
from tests.evaluation.systems import quotes


def ask(function, dataset, cases=None, **options):
    target = open_target("function", TargetOptions(function=function, **options))
    replies = dict(target.ask(dataset, dataset.cases[:1] if cases is None else cases))
    return [replies[position] for position in sorted(replies)]


@dataclass
class Document:
    """A document with the attributes of LangChain's class."""

    page_content: str
    metadata: dict[str, object]


RESULTS = {
    "text": "Norway.",
    "mapping": {"answer": "Norway.", "passages": [{"filename": "alder.txt", "text": "the law of Norway"}]},
    "pair": ("Norway.", ["alder.txt: the law of Norway"]),
    "object": SimpleNamespace(answer="Norway.", passages=(Passage("the law of Norway", "alder.txt", Span(3, 9)),)),
    "chain": {"answer": "Norway.", "context": [Document("the law of Norway", {"source": "docs/alder.txt", "page": 0})]},
    "reply": Reply("Norway.", (Passage("the law of Norway", "alder.txt"),)),
    "index": SimpleNamespace(
        response="Norway.",
        source_nodes=[SimpleNamespace(node=Document("", {"file_name": "alder.txt"}), text="the law of Norway")],
    ),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_function_target_accepts_all_supported_return_types(dataset, kind):
    [reply] = ask(lambda question: RESULTS[kind], dataset)
    assert reply.answer == "Norway." and not reply.error and reply.seconds >= 0
    if kind != "text":
        assert (reply.passages[0].filename, reply.passages[0].text) == ("alder.txt", "the law of Norway")


def test_function_target_runs_async_calls_in_a_single_event_loop(dataset):
    together = asyncio.Event()
    loops, waiting = set(), []

    async def answer(question: str) -> str:
        loops.add(asyncio.get_running_loop())
        waiting.append(question)
        if len(waiting) == 3:
            together.set()
        await asyncio.wait_for(together.wait(), 60)
        return f"re: {question}"

    replies = ask(answer, dataset, dataset.cases[:3], threads=3)
    assert [reply.answer for reply in replies] == [f"re: {case.question}" for case in dataset.cases[:3]]
    assert len(loops) == 1


def test_function_target_passes_as_of_when_requested(dataset):
    seen = []

    def answer(question, *, as_of=None):
        seen.append((question, as_of))
        return "x"

    ask(answer, dataset, [replace(dataset.cases[0], labels={"as_of": "2021-01-01"})])
    assert seen == [(dataset.cases[0].question, "2021-01-01")]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (None, "returned no answer: null"),
        (7, "returned no answer: number"),
        ({"colour": "red"}, "returned no answer: {colour: text}"),
        ({"answer": None, "passages": [], "output": {}}, "returned no answer"),
        ({"answer": "x", "passages": 7}, "passages are int, not a list"),
        (KeyError("answers"), "KeyError: 'answers'"),
    ],
)
def test_function_target_error_fails_only_its_question(dataset, wrong, told):
    def answer(question):
        if question == dataset.cases[1].question:
            if isinstance(wrong, Exception):
                raise wrong
            return wrong
        return "fine"

    replies = ask(answer, dataset, dataset.cases[:3])
    assert told in replies[1].error and [replies[0].answer, replies[2].answer] == ["fine", "fine"]


def test_empty_answer_of_a_function_is_a_reply_without_error(dataset):
    [reply] = ask(lambda question: {"answer": " ", "passages": []}, dataset, dataset.cases[:1])
    assert (reply.answer, reply.error) == ("", "")


def test_function_target_times_out_async_function_that_never_ends(dataset):
    async def answer(question):
        await asyncio.Event().wait()

    [reply] = ask(answer, dataset, timeout=0.1)
    assert reply.error == "no complete reply within 0.1 s (--timeout)"


def test_function_target_probe_tries_other_questions_after_failure(dataset):
    asked = []

    def answer(question):
        asked.append(question)
        if len(asked) == 1:
            raise RuntimeError("cold")
        return "warm"

    target = open_target("function", TargetOptions(function=answer))
    [note] = target.probe(dataset, dataset.cases)
    assert len(asked) == 2 and "the reply has no passages" in note
    target = open_target("function", TargetOptions(function=lambda: None))
    with pytest.raises(ToolkitError, match="none of 5 questions was answered. The first error: TypeError"):
        target.probe(dataset, dataset.cases)
    with pytest.raises(ToolkitError, match="--target function works from Python only"):
        open_target("function", TargetOptions())


def test_function_target_that_returns_gold_scores_1(dataset, tmp_path):
    by_question = {case.question: case for case in dataset.cases}
    threads = set()

    def answer(question):
        threads.add(threading.get_ident())
        case = by_question[question]
        return {"answer": case.truth, "passages": [{"filename": f, "text": t} for f, t in quotes(case)]}

    told = {"dataset_paths": [str(dataset.root)], "target": "function", "output_dir": tmp_path / "out"}
    run = evaluate(parse_settings({**told, "run_name": "r", "report_cases": 0}), parts={"function": answer})
    assert run.means["answer_f1"].mean == run.means["char_recall@8"].mean == 1.0 and not run.first_error
