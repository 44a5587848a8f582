"""A system under test described by a user's TOML file, and the probe's report if the server differs from it."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

import evaluate_rag
from exhibit.evaluation.cases import Turn
from exhibit.evaluation.datasets import Selection, load_datasets
from exhibit.evaluation.metrics import Options, measure
from exhibit.evaluation.scoring import ask
from exhibit.evaluation.servers.system import list_systems
from exhibit.evaluation.targets import TargetOptions, open_target, read_target_settings
from exhibit.schemas.errors import ToolkitError
from tests.evaluation.imitations import quotes
from tests.evaluation.loopback import Asked, Stream, System, imitating
from tests.rag.bundles import rows_of, write_bundle

FILE = """
url = "http://127.0.0.1:9"
key = "EXHIBIT_TARGET_ALDER_KEY"

[ask]
path = "/v2/answer"
body = { q = "{question}", earlier = "{history}", on = "{as_of}", limit = 8 }

[reply]
answer = "data.say"
passages = "data.ev"
fields = { text = "snip", filename = "src.doc_title", page = "src.p" }
"""


@pytest.fixture
def dataset(tmp_path):
    [dataset], _ = load_datasets([write_bundle(tmp_path / "leases")], Selection())
    return dataset


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.setenv("EXHIBIT_TARGET_ALDER_KEY", "alder-planted")

    def make(text: str = FILE) -> str:
        path = tmp_path / "alder.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return make


def opened(file, system, **options):
    return open_target(file, TargetOptions(**{"backoff": 0.01, **options}), {"url": system.url})


def nested(system: System, asked: Asked):
    """Reply as a server whose passages have unusual field names."""
    case = system.case(asked.body["q"])
    evidence = [{"snip": text, "src": {"doc_title": file, "p": 1}} for file, text in quotes(case)]
    return {"data": {"say": case.truth, "ev": evidence}, "took": 3}


# ---------------------------------------------------------------- a file of one's own


def staged(system: System, asked: Asked):
    """Reply as a server that reports what it retrieved, what its reranker kept, and what its model received."""
    case = system.case(asked.body["q"])
    right = [{"snip": text, "src": {"doc_title": file, "p": 1}} for file, text in quotes(case)]
    other = {
        "snip": "4. Payment. The price is due within thirty days of the invoice.",
        "src": {"doc_title": "cedar.txt"},
    }
    trace = {"first": [other, *right], "best": [1], "prompt": [other]}
    return {"data": {"say": case.truth, "ev": [other, *right]}, "trace": trace}


STAGES = 'retrieved = "trace.first"\nreranked = "trace.best"\ncontext = "trace.prompt"\nfields'


@pytest.mark.parametrize(("file", "told"), [(FILE.replace("\nfields", f"\n{STAGES}"), True), (FILE, False)])
def test_a_file_names_the_lists_of_a_system_s_stages(write, dataset, tmp_path, file, told):
    with imitating(staged, dataset.cases) as system:
        reply = next(iter(ask(tmp_path / "run", dataset, opened(write(file), system)))).reply
    if told:
        assert [one.filename for one in reply.retrieved] == ["cedar.txt", "alder.txt"]
        assert reply.retrieved[1].span is not None  # it is placed like any passage
        assert (reply.reranked, reply.context) == ((1,), (1,))
    else:
        assert (reply.retrieved, reply.reranked, reply.context) == (None, None, None)


def test_a_server_is_asked_and_read_as_its_file_says(write, dataset, tmp_path):
    said = (Turn("user", "Hello."), Turn("assistant", "Good day."))
    with imitating(nested, dataset.cases) as system:
        target = opened(write(), system)
        assert target.probe(dataset, dataset.cases) == [] and target.name == f"alder:{system.url}"
        cases = list(ask(tmp_path / "run", dataset, target))
        dated = replace(dataset.cases[0], labels={"as_of": "2020-05-01"}, history=said)
        [(_, reply)] = target.ask(dataset, [dated])
    for metric, values in measure(cases, Options(), names=["answer_f1", "char_recall@8", "document_hit@1"]).items():
        assert {value for value in values if value is not None} == {1.0}, metric
    assert reply.passages[0].told_page == 1
    assert system.asked[0].path == "/v2/answer" and system.asked[0].headers["Authorization"] == "Bearer alder-planted"
    assert system.asked[0].body == {"q": dataset.cases[0].question, "earlier": [], "limit": 8}, "no date, no field"
    history = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good day."}]
    assert system.asked[-1].body["on"] == "2020-05-01" and system.asked[-1].body["earlier"] == history


def test_the_command_takes_a_file(write, dataset, tmp_path, capsys):
    common = ["--dataset-paths", str(dataset.root), "--output-dir", str(tmp_path / "out"), "--run-name", "r"]
    with imitating(nested, dataset.cases) as system:
        own = write(FILE.replace("limit = 8", 'limit = "{most}"') + "[settings]\nmost = { default = 8, min = 1 }\n")
        flags = ["--target", own, "--target-url", system.url, "--report-cases", "0", "--set", "target_most=3"]
        assert evaluate_rag.main([*common, *flags]) == 0, capsys.readouterr().err
        assert {asked.body["limit"] for asked in system.asked} == {3}
        assert evaluate_rag.main([*common, *flags, "--set", "target_most=0"]) == 1
        assert "target_most: Input should be greater than or equal to 1" in capsys.readouterr().err
    rows = rows_of(tmp_path / "out" / "r" / "leases" / "eval_results.jsonl")
    assert all(row["scores"]["answer_f1"] in (1.0, None) for row in rows)
    told = (tmp_path / "out" / "r" / "config.json").read_text(encoding="utf-8")
    assert "alder.toml" in told and "planted" not in told


def test_a_search_by_get_and_a_stream(write, dataset):
    def search(system, asked):
        return {"hits": [{"body": text, "file": file} for file, text in quotes(system.case(asked.query["q"]))]}

    file = write('[ask]\nmethod = "GET"\npath = "/find"\nquery = { q = "{question}", n = "5" }\n'
                 '[reply]\nanswer = ""\npassages = "hits"\n')  # fmt: skip
    with imitating(search, dataset.cases) as system:
        [(_, reply)] = opened(file, system).ask(dataset, dataset.cases[:1])
        assert (reply.answer, reply.passages[0].filename) == (None, "alder.txt") and system.asked[0].query["n"] == "5"
    pieces = ['{"kind": "word", "w": "Nor"}\n', '{"kind": "word", "w": "way"}\n', '{"kind": "over"}\n']
    file = write(
        '[ask]\nbody = { q = "{question}" }\n[stream]\nanswer = "kind==\'word\' && w"\nend = "kind==\'over\'"\n'
    )
    with imitating(lambda system, asked: Stream(pieces, "application/x-ndjson"), dataset.cases) as system:
        target = opened(file, system, retries=0)
        replies = [reply for _, reply in target.ask(dataset, dataset.cases[:1])]
        pieces.pop()
        replies += [reply for _, reply in target.ask(dataset, dataset.cases[:1])]
    assert replies[0].answer == "Norway" and replies[0].first_token is not None
    assert replies[1].error == "the reply is incomplete: its stream has no end mark", "it has marked the end before"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[ask", "not TOML"),
        ("colour = 'red'", "colour: Extra inputs are not permitted"),
        ("[reply]\nanswer = 'a['", "reply.answer.0: .*'a\\[' is not JMESPath"),
        ("[reply]\nanswer = '" + "a." * 900 + "a'", "too many nested steps"),
        ("[reply]\nanswer = '" + "[" * 1500 + "'", "too many nested steps|is not JMESPath"),
        ("[reply]\nanswer = '" + "a" * 3000 + "'", "a JMESPath of 3000 characters"),
        ("[ingest]\nlist = { path = '/l' }", "ingest.*add"),
        ("[ask]\npath = '@elsewhere.example/'", "ask.path.*pattern"),
        ("[ask]\npath = ['/a', '.elsewhere.example']", "ask.path.*pattern"),
        ("[ingest]\nadd = { path = '@elsewhere.example', file = 'f' }", "ingest.*add.path.*pattern"),
        ("key = 'OPENAI_API_KEY'", "EXHIBIT_TARGET_…; to allow OPENAI_API_KEY, add --set target_key=OPENAI_API_KEY"),
        ("".join(f"key{n} = 1\n" for n in range(100_000)), "settings file"),
        (".".join(["a"] * 100_000) + " = 1", "settings file|nested too deep"),
        ("a = " + "[" * 50_000, "nested too deep|not TOML"),
        ("a = " + "{a = " * 20_000, "nested too deep|not TOML"),
    ],
)  # fmt: skip
def test_a_file_that_is_wrong_is_one_error_at_once(write, text, told):
    began = time.process_time()
    with pytest.raises(ToolkitError, match=told) as caught:
        open_target(write(text), TargetOptions())
    assert "alder.toml" in str(caught.value) and len(str(caught.value)) < 3000 and time.process_time() - began < 5


def test_a_file_that_is_not_there_and_its_settings(write, tmp_path, monkeypatch):
    with pytest.raises(ToolkitError, match=r"none.toml: missing; the systems are azure, haystack, http"):
        open_target(str(tmp_path / "none.toml"), TargetOptions())
    with pytest.raises(ToolkitError, match="target_depth: not a setting of the target .*its settings are target_url"):
        open_target(write(), TargetOptions(), {"depth": 3})
    monkeypatch.delenv("EXHIBIT_TARGET_ALDER_KEY")
    with pytest.raises(ToolkitError, match="the environment has no variable EXHIBIT_TARGET_ALDER_KEY"):
        open_target(write(), TargetOptions())


def test_a_file_reads_no_other_variable(write, dataset, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-aaaabbbb")
    text = FILE.replace("limit = 8", 'limit = "{OPENAI_API_KEY} $OPENAI_API_KEY ${OPENAI_API_KEY}"')
    with imitating(nested, dataset.cases) as system:
        list(opened(write(text), system).ask(dataset, dataset.cases[:1]))
        assert "planted" not in str(system.asked[0].body) and "sk-planted" not in str(system.asked[0].headers)


@pytest.mark.parametrize("setting", [True, False])
def test_a_file_gives_documents_and_keys_to_no_other_host_unless_the_user_names_it(write, dataset, setting):
    where = "{shelf}" if setting else "http://127.0.0.2:9"
    text = f"""[ingest]
url = "{where}"
add = {{ path = "/add", file = "file" }}
[settings]
shelf = {{ default = "http://127.0.0.2:9" }}
"""
    with imitating(lambda system, asked: {"answer": "x y"}, dataset.cases) as system:
        target = opened(write(text), system, ingest="auto")
        with pytest.raises(ToolkitError, match="its file sends documents to another server"):
            target.probe(dataset, dataset.cases)
        assert not system.asked
        if setting:
            told = {"url": system.url.replace("127.0.0.1", "localhost"), "shelf": system.url}
            named = open_target(write(text), TargetOptions(ingest="auto"), told)
            assert named.ingest(dataset).files == 3 and system.asked[0].path == "/add"


# ---------------------------------------------------------------- advice that was tried


def probe(system, dataset, **settings):
    target = open_target("http", TargetOptions(backoff=0.01), {"url": system.url, **settings})
    return target, target.probe(dataset, dataset.cases)


def test_advice_goes_to_the_fields_inside_a_passage_and_was_tried(dataset, tmp_path):
    def odd(system, asked):
        case = system.case(asked.body["messages"][-1]["content"])
        evidence = [{"snip": text, "doc_title": file, "n": 1} for file, text in quotes(case)]
        return {"data": {"say": case.truth, "ev": evidence}}

    with imitating(odd, dataset.cases) as system:
        with pytest.raises(ToolkitError) as caught:
            probe(system, dataset)
        answer, passages = "data.say", "data.ev[].{text: snip, filename: doc_title}"
        assert f"_answer_jmespath='{answer}'" in str(caught.value) and f"'{passages}'" in str(caught.value)
        target, notes = probe(system, dataset, response_answer_jmespath=answer, response_context_jmespath=passages)
        cases = list(ask(tmp_path / "run", dataset, target))
        assert notes == []
        with pytest.raises(
            ToolkitError, match=r"have no text; the form of one is \{snip: text, doc_title: text, n: number\}"
        ) as caught:
            probe(system, dataset, response_answer_jmespath=answer, response_context_jmespath="data.ev")
        assert f"Try --set target_response_context_jmespath='{passages}'" in str(caught.value)
    values = measure(cases, Options(), names=["char_recall@8"])["char_recall@8"]
    assert {value for value in values if value is not None} == {1.0}


def test_passages_of_names_alone_are_said_and_of_nothing_stop_the_run(dataset):
    held = [{"filename": "alder.txt", "rank": 1}]
    with imitating(lambda system, asked: {"answer": "Norway.", "passages": held}, dataset.cases) as system:
        _, notes = probe(system, dataset)
        assert any(
            "the passages have file names but no text ({filename: text, rank: number})" in note for note in notes
        )
        held[0] = {"rank": 1, "weight": 0.5}
        with pytest.raises(ToolkitError, match=r"have no text; the form of one is \{rank: number, weight: number\}"):
            probe(system, dataset)


def test_a_field_that_is_missing_is_named_with_the_flag_that_supplies_it(dataset):
    missing = [{"type": "missing", "loc": ["body", "query"], "msg": "Field required"},
               {"type": "missing", "loc": ["body", "user", "name"], "msg": "Field required"}]  # fmt: skip
    with imitating(lambda system, asked: (422, {"detail": missing}), dataset.cases) as system:
        with pytest.raises(
            ToolkitError, match="HTTP 422.*requires query, user.name: add --set target_request="
        ) as caught:
            probe(system, dataset)
        assert '\'{"query": "{question}", "user.name": "…"}\'' in str(caught.value)
        target = open_target("azure", TargetOptions(), {"url": system.url})
        with pytest.raises(ToolkitError, match="The server requires query, user.name: add --set target_parameters="):
            target.probe(dataset, dataset.cases)


OPENAPI = {
    "paths": {"/v1/rag": {"post": {"requestBody": {"content": {"application/json": {"schema": {
        "$ref": "#/components/schemas/Ask"}}}}}}, "/health": {"get": {}}},
    "components": {"schemas": {"Ask": {
        "type": "object", "required": ["query", "mode", "top_k"],
        "properties": {"query": {"type": "string"}, "mode": {"enum": ["fast", "slow"]},
                       "top_k": {"type": "integer", "default": 4}, "history": {"type": "array"},
                       "note": {"type": "string"}}}}},
}  # fmt: skip


def strict(system, asked):
    """Reply as a server that accepts one form of request and describes it in its OpenAPI document."""
    if asked.path == "/openapi.json":
        return OPENAPI
    if asked.method == "GET" or asked.path != "/v1/rag":
        return 404
    if set(asked.body) != {"query", "mode", "top_k", "history"}:
        return 422, {"detail": [{"type": "missing", "loc": ["body", "query"], "msg": "Field required"}]}
    case = system.case(asked.body["query"])
    return {"answer": case.truth, "passages": [{"filename": file, "text": text} for file, text in quotes(case)]}


def test_the_request_is_made_from_what_the_server_says_of_itself(dataset, tmp_path):
    with imitating(strict, dataset.cases) as system:
        target = open_target("http", TargetOptions(), {"url": f"{system.url}/v1/rag"})
        notes = target.probe(dataset, dataset.cases)
        assert any("asked as its /openapi.json says" in note and '"mode": "fast"' in note for note in notes), notes
        cases = list(ask(tmp_path / "run", dataset, target))
        assert not [case for case in cases if case.reply.error]
        sent = system.asked[-1].body
        assert (sent["mode"], sent["top_k"], sent["history"]) == ("fast", 4, []) and "note" not in sent
        with pytest.raises(
            ToolkitError, match=r"no endpoint for questions at this address: HTTP 404 .*; it has /v1/rag"
        ):
            probe(system, dataset)
        own = {"url": f"{system.url}/v1/rag", "request": {"q": "{question}"}}
        with pytest.raises(ToolkitError, match="The server requires query: add --set target_request="):
            open_target("http", TargetOptions(), own).probe(dataset, dataset.cases)


@pytest.mark.parametrize("path", ["/rag/input_schema", "/schema"])
def test_other_descriptions_are_read_as_well(dataset, path):
    schema = {"type": "object", "required": ["question"], "properties": {"question": {"type": "string"}}}

    def described(system, asked):
        if asked.method == "GET":
            return schema if asked.path == path else 404
        held = asked.body.get("input", asked.body)
        if set(held) != {"question"}:
            return 422, {"detail": "another shape, please"}
        return {"answer": system.case(held["question"]).truth, "passages": ["The price is due within thirty days"]}

    with imitating(described, dataset.cases) as system:
        target = open_target("http", TargetOptions(), {"url": f"{system.url}/rag"})
        assert any("asked as its" in note for note in target.probe(dataset, dataset.cases))
        if "input" in path:
            chain = open_target("langserve", TargetOptions(), {"url": f"{system.url}/rag"})
            assert any("asked as its /input_schema says" in note for note in chain.probe(dataset, dataset.cases))


@pytest.mark.parametrize(
    "odd", [{"$ref": "#/a/b"}, {"$ref": "#"}, {"anyOf": 7}, {"properties": 3}, {"properties": {"question": []}}, 7, []]
)
def test_a_description_that_is_odd_is_passed_over(dataset, odd):
    def described(system, asked):
        return odd if asked.method == "GET" else (422, {"detail": [7]})

    with imitating(described, dataset.cases) as system, pytest.raises(ToolkitError, match="none of 5 questions"):
        probe(system, dataset)


# ---------------------------------------------------------------- one odd reply blocks nothing


def test_a_run_begins_though_some_questions_always_fail_and_resumes_though_only_these_are_left(
    dataset, tmp_path, capsys
):
    bad = {case.question for case in dataset.cases[:4]}

    def filtered(system, asked):
        question = asked.body["messages"][-1]["content"]
        if question in bad:
            return 400, {"error": {"message": "filtered"}}
        return {"answer": system.case(question).truth, "passages": ["The price is due within thirty days"]}

    common = [
        "--dataset-paths",
        str(dataset.root),
        "--output-dir",
        str(tmp_path),
        "--run-name",
        "r",
        "--report-cases",
        "0",
    ]
    with imitating(filtered, dataset.cases) as system:
        flags = [*common, "--target-url", system.url, "--retries", "0", "--report-cases", "0"]
        assert evaluate_rag.main(flags) == 3, capsys.readouterr().err
        system.asked.clear()
        assert evaluate_rag.main([*flags, "--resume"]) == 3, "the failed ones were asked again, and failed again"
        asked = [one.body["messages"][-1]["content"] for one in system.asked]
        assert asked[0] not in bad and set(asked[1:]) == bad, "the probe asks what was answered before"
        bad.clear()
        assert evaluate_rag.main([*flags, "--resume"]) == 0, capsys.readouterr().err


def test_what_never_failed_is_asked_first(dataset, tmp_path):
    order: list[str] = []

    def reply(system, asked):
        order.append(asked.body["messages"][-1]["content"])
        return (400, {}) if order[-1] == dataset.cases[0].question else {"answer": "x y", "passages": ["a b c"]}

    with imitating(reply, dataset.cases) as system:
        target = open_target("http", TargetOptions(threads=1, retries=0), {"url": system.url})
        few = replace(dataset, cases=dataset.cases[:2])
        list(ask(tmp_path / "run", few, target))
        order.clear()
        list(ask(tmp_path / "run", dataset, target))
    assert order[-1] == dataset.cases[0].question and len(order) == 8, json.dumps(order)


# ---------------------------------------------------------------- odd servers that are given documents

ODD = [7, "text", None, [], {}, [7, None, [], {"a": 1}], {"data": 7}, {"data": [7, None]}, {"collections": "x"},
       {"data": [{"id": {}, "name": []}], "has_more": True, "last_id": {}}, {"id": None}, {"task_id": {"a": 1}},
       {"documents": [{"document_name": 7}], "collections": [{"collection_name": "leases"}], "state": [1]},
       {"data": {"docs": [{"run": {}}], "id": []}, "code": 0}, {"error": {"message": ["x"]}}, 500, 404]  # fmt: skip


@pytest.mark.parametrize("name", ["nvidia", "azure", "openai", "haystack", "ragflow"])
def test_an_odd_server_that_is_given_documents_is_one_error_or_named_files(dataset, name):
    own = {"openai": {"model": "m"}, "haystack": {"pipeline": "rag", "ingest_pipeline": "files"}}.get(name, {})
    more = {} if name == "haystack" else {"ingest_timeout": 0.05}
    for odd in ODD:
        with imitating(lambda system, asked, odd=odd: odd, dataset.cases) as system:
            given = {"url": system.url, **own, **more, **({"ingestor": system.url} if name == "nvidia" else {})}
            options = TargetOptions(ingest="auto", retries=0, timeout=5.0)
            target = open_target(name, options, given)
            try:
                target.probe(dataset, dataset.cases)
                told = target.ingest(dataset)
                assert all(isinstance(reason, str) for reason in told.set_aside)
            except ToolkitError as error:
                assert len(str(error).splitlines()) == 1


# ---------------------------------------------------------------- docs/targets.md


def test_the_example_of_the_page_does_what_the_page_says(write, dataset, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "targets.md").read_text(encoding="utf-8")
    request, reply = (json.loads(text) for text in re.findall(r"```json\n(.*?)```", page, re.DOTALL))
    [file] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    monkeypatch.setenv("EXHIBIT_TARGET_ALDER", "alder-planted")
    case = replace(dataset.cases[0], question=request["q"])
    with imitating(lambda system, asked: reply, [case]) as system:
        target = opened(write(file), system)
        assert target.probe(dataset, [case]) == []
        [(_, told)] = target.ask(dataset, [case])
    assert system.asked[-1].body == request and system.asked[-1].path == "/v2/answer"
    assert system.asked[-1].headers["Authorization"] == "Bearer alder-planted"
    [passage] = told.passages
    assert told.answer == "The law of Norway." and passage.text == "governed by the law of Norway"
    assert (passage.filename, passage.told_page) == ("alder.txt", 1)


def test_the_page_names_every_system_that_is_described(dataset):
    page = (Path(__file__).parents[2] / "docs" / "targets.md").read_text(encoding="utf-8")
    assert [name for name in list_systems() if name != "http" and f"--target {name}" not in page] == []
    for name in list_systems():
        read_target_settings(name, {})
