"""The fields read from replies, one by one, and the one-line message for a reply that cannot be read."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import pytest

from exhibit.evaluation.cases import Passage
from exhibit.evaluation.servers.probing import Advice, advise, sample_cases, without_words
from exhibit.evaluation.servers.request_forms import find_missing_fields, list_served_paths, make_request
from exhibit.evaluation.servers.shapes import (
    PassagesError,
    describe,
    find_list,
    find_words,
    read_confidence,
    read_count,
    read_items,
    read_number,
    read_passages,
    read_usage,
    recognise,
    search,
    unwrap,
)
from exhibit.evidence import Span
from exhibit.storage.http_policy import HttpError


def names(name: str) -> str | None:
    plain = name.partition("#")[0]
    return plain if plain.endswith(".pdf") else None


# ---------------------------------------------------------------- values


@pytest.mark.parametrize(
    ("value", "number"),
    [(True, None), (2, 2.0), (0.5, 0.5), ("2", None), (math.inf, None), (10**400, None), (None, None)],
)
def test_a_number_is_finite_and_no_truth(value, number):
    assert read_number(value) == number


@pytest.mark.parametrize(
    ("value", "count"), [(0, 0), (3, 3), (-1, None), (" 7 ", 7), ("-7", None), (True, None), (2.0, None), ("", None)]
)
def test_a_count_is_whole_and_from_nought(value, count):
    assert read_count(value) == count


def test_the_shape_of_a_reply_is_one_line_without_its_words():
    assert describe({"a": "x", "b": [1, 2], "c": [], "d": None, "e": True, "f": 0.5}) == (
        "{a: text, b: [2 × number], c: [], d: null, e: true or false, f: number}"
    )
    assert describe({"a": {"b": {"c": {"d": {"e": 1}}}}}) == "{a: {b: {c: {d: {…}}}}}"
    assert describe([[[[[1]]]]]) == "[1 × [1 × [1 × [1 × […]]]]]" and describe(object()) == "value"
    twelve = {f"k{n}": 1 for n in range(12)}
    assert "…" not in describe(twelve) and describe({**twelve, "more": 1}).endswith("k11: number, …}")


def test_what_is_at_a_path():
    assert search("a[0].b", {"a": [{"b": 1}]}) == 1 and search("length(@)", 3) is None
    assert find_words(["a", "b", "c"], {"a": " ", "b": 3, "c": "words"}) == "words" and find_words(["a"], {}) is None
    assert read_items("a", {"a": [1]}) == [1] and read_items("a", {"a": ""}) == read_items("b", {}) == []
    with pytest.raises(HttpError, match="a in the reply is not a list: text"):
        read_items("a", {"a": "words"})
    assert find_list(["a", "b", "c"], {"a": [], "b": {"x": []}, "c": [1]}) == [1]
    assert find_list(["a", "b"], {"a": [], "b": {"x": [0]}}) == {"x": [0]}
    assert find_list(["a", "b"], {"a": False, "b": []}) == [] and find_list(["a"], {}) is None


def test_what_a_server_wraps_is_unwrapped():
    assert unwrap([{"output": {"data": {"answer": "x"}}}]) == {"answer": "x"} and unwrap(["x"]) == "x"
    assert unwrap({"output": {"a": 1}, "answer": "x"}) == {"output": {"a": 1}, "answer": "x"}
    haystack = {"llm": {"replies": ["x"]}, "retriever": {"documents": [1]}}
    assert unwrap(haystack) == {**haystack, "replies": ["x"], "documents": [1]}
    assert unwrap({"a": {"b": 1}}) == {"a": {"b": 1}} and unwrap([1, 2]) == [1, 2]
    assert recognise("words") is None and recognise({"nothing": "known"}) is None


def test_tokens_and_costs_are_read_where_systems_put_them():
    assert read_usage({"usage": {"prompt_tokens": 20, "completion_tokens": 10}}) == {
        "tokens_in": 20.0,
        "tokens_out": 10.0,
    }
    assert read_usage({"usage": {"prompt_tokens": 0, "completion_tokens": -1}}) == {} == read_usage("words")
    outer = {"usage": {"prompt_tokens": 1, "usage": {"prompt_tokens": 2, "completion_tokens": 3}}}
    assert read_usage(outer) == {"tokens_in": 1.0, "tokens_out": 3.0}, "the outermost tells"
    deep = {"replies": [{"usage": {"usage": {"prompt_tokens": 5}}}]}
    assert read_usage(deep) == {"tokens_in": 5.0}
    assert read_usage({"replies": [{"replies": [{"usage": {"usage": {"prompt_tokens": 5}}}]}]}) == {}
    assert read_usage({"answer": {"usage": {"prompt_tokens": 6}}}) == {"tokens_in": 6.0}


@pytest.mark.parametrize(
    ("reply", "sure"),
    [
        ({"confidence": 0.25}, 0.25),
        ({"confidence": 0}, 0.0),
        ({"confidence": 1}, 1.0),
        ({"confidence": 1.01}, None),
        ({"confidence": -0.01}, None),
        ({"confidence": True}, None),
        ([{"delta": "x"}, {"confidence": 0.5}], 0.5),
        ({"data": {"data": {"confidence": 0.5}}}, 0.5),
        ({"data": {"data": {"data": {"confidence": 0.5}}}}, None),
        ("words", None),
    ],
)
def test_a_confidence_lies_between_nought_and_one(reply, sure):
    assert read_confidence(reply) == sure


# ---------------------------------------------------------------- passages


def test_passages_are_strings_objects_or_both_by_name():
    assert read_passages(None, names=names) == () and read_passages("x", names=names) == (Passage("x"),)
    assert read_passages({"text": ["a", "b"]}, names=names) == (Passage("a"), Passage("b"))
    [numbered] = read_passages({"3": {"text": "a", "filename": "b.pdf"}}, names=names)
    assert (numbered.text, numbered.filename) == ("a", "b.pdf")
    [named] = read_passages({"b.pdf": "words"}, names=names)
    assert (named.text, named.filename, named.told_filename) == ("words", "b.pdf", "b.pdf")
    for wrong, words in ((3, "passages are int"), ([3], "a passage is int")):
        with pytest.raises(PassagesError, match=words):
            read_passages(wrong, names=names)


@pytest.mark.parametrize(
    ("given", "text", "filename", "page"),
    [
        ("a.pdf#page=7: words: more", "words: more", "a.pdf", 7),
        ("a.pdf: words", "words", "a.pdf", None),
        ("note: a.pdf: words", "words", None, None),
        ("a.pdf:words", "a.pdf:words", None, None),
        (f"{'n' * 249}.pdf: words", "words", f"{'n' * 249}.pdf", None),
        (f"{'n' * 250}.pdf: words", f"{'n' * 250}.pdf: words", None, None),
    ],
)
def test_a_string_may_begin_with_its_file(given, text, filename, page):
    known = names if "note" not in given else lambda name: None
    [passage] = read_passages([given], names=known)
    assert (passage.text if filename else passage.text.endswith("words") and text, passage.filename, passage.page) == (
        text, filename, page,
    )  # fmt: skip


def read(**fields):
    [passage] = read_passages([{"filename": "a.pdf", "text": "x", **fields}], names=names)
    return passage


@pytest.mark.parametrize(
    ("span", "placed"),
    [([0, 1], Span(0, 1)), ([1, 1], None), ([-1, 1], None), ([0, 1, 2], None), ([0, True], None), ("0-1", None)],
)
def test_a_span_is_two_numbers_in_order(span, placed):
    assert read(span=span).span == placed
    assert read(span=[0, 1], filename="unknown").span is None, "it counts in a document that is known"


@pytest.mark.parametrize(
    ("page", "from_", "told"), [(3, 1, 3), (3, 0, 4), (0, 0, 1), (0, 1, None), ("5", 1, 5), ("x", 1, None)]
)
def test_pages_count_from_one_or_from_nought(page, from_, told):
    [passage] = read_passages([{"filename": "a.pdf", "page": page}], names=names, pages_from=from_)
    assert passage.page == passage.told_page == told
    [linked] = read_passages([{"filename": "a.pdf#page=9"}], names=names, pages_from=from_)
    assert linked.page == 9


def test_fields_inside_a_passage_are_its_own_where_it_has_none():
    inner = {"metadata": {"source": "b.pdf", "metadata": {"metadata": {"page": 4, "metadata": {"score": 1.0}}}}}
    [passage] = read_passages([{"content": "words", "score": None, **inner}], names=names)
    assert (passage.text, passage.filename, passage.page, passage.score) == ("words", "b.pdf", 4, None)
    [own] = read_passages([{"text": "mine", "metadata": {"text": "theirs"}}], names=names)
    assert own.text == "mine" and own.filename is None and own.told_filename == ""
    [told] = read_passages([{"text": "x", "filename": "unknown", "source": "c.pdf"}], names=names)
    assert (told.filename, told.told_filename) == ("c.pdf", "c.pdf")
    [strange] = read_passages([{"text": "x", "filename": "unknown"}], names=names)
    assert (strange.filename, strange.told_filename) == ("unknown", "unknown")


# ---------------------------------------------------------------- advice on a reply that is not read


LONG = "the law of Norway governs this charter"


@pytest.mark.parametrize(
    ("reply", "advice"),
    [
        ({"out": {"said": "two words"}, "hits": [{"words": LONG}]}, Advice("out.said", "hits[].{text: words}")),
        ({"a": LONG, "b": [LONG, "x"]}, Advice("a", "b")),
        ({"a": "short one", "b": ["only two"]}, Advice("a", "")),
        ({"a": LONG, "b": [{"text": LONG, "filename": "x.pdf"}]}, Advice("a", "b")),
        (
            {"odd key": LONG, "b": [{"w": LONG, "m": {"doc": "x.pdf"}}]},
            Advice('"odd key"', "b[].{text: w, filename: m.doc}"),
        ),
        ({"b": [{"w": LONG, "title": "A charter"}]}, Advice("", "b[].{text: w, filename: title}")),
        ({"a": "one"}, Advice()),
        ([], Advice()),
        ({"a": {"b": {"c": {"d": {"e": {"f": LONG}}}}}}, Advice("a.b.c.d.e.f", "")),
        ({"a": {"b": {"c": {"d": {"e": {"f": {"g": LONG}}}}}}}, Advice()),
        ({"a": [3, 4], "b": [[LONG]]}, Advice("", "b[0]")),
        ({"b": [{"c": [{"d": ["two words"]}]}]}, Advice("b[0].c[0].d[0]", "")),
        ({"b": [{"c": [{"d": [["two words"]]}]}]}, Advice()),
    ],
)
def test_where_answer_and_passages_are_is_advised(reply, advice):
    assert advise(reply, names) == advice


def test_advice_is_given_as_flags():
    assert Advice().flags == "" and Advice("a").flags == "--set target_response_answer_jmespath='a'"
    assert Advice("a", "b").flags.endswith("'a' --set target_response_context_jmespath='b'")


def test_passages_without_words_are_seen():
    assert without_words([{"filename": "a.pdf"}], names, 1) == (True, True)
    assert without_words([{"filename": "b", "text": "x"}], names, 1) == (False, False)
    assert without_words([{"filename": "a.pdf", "span": [0, 1]}], names, 1) == (False, True)
    assert without_words([], names, 1) == (False, False)


@pytest.mark.parametrize(
    ("count", "places"),
    [(1, [0]), (2, [0, 1]), (5, [0, 1, 2, 3, 4]), (9, [0, 2, 4, 6, 8]), (101, [0, 25, 50, 75, 100])],
)
def test_a_few_questions_are_spread_over_the_set(count, places):
    assert sample_cases(list(range(count))) == places


def test_the_fields_that_a_server_misses_are_read_from_its_error():
    def error(detail):
        return HttpError("no", status=422, body=json.dumps({"detail": detail}).encode())

    faults = [
        {"loc": ["body", "q", 0], "type": "missing"},
        {"loc": ["body", "q", 0]},
        {"loc": ["body", "x"], "type": "int_parsing"},
        {"loc": ["body"], "type": "value_error.missing"},
    ]
    assert find_missing_fields(error(faults)) == ["q.0"]
    assert find_missing_fields(error("no")) == find_missing_fields(HttpError("no", body=b"no json")) == []


class Server(SimpleNamespace):
    """A stub server that returns API descriptions by address."""

    def fetch(self, path, *, deadline, method, url):
        assert method == "GET" and deadline.seconds == 10
        self.asked.append(f"{url}{path}")
        told = self.told.get(f"{url}{path}")
        if told is None:
            raise HttpError("none")
        return told


def server(told, **values):
    ask = SimpleNamespace(described=None)
    return Server(url="http://x/rag/invoke", told=told, asked=[], values=values, system=SimpleNamespace(ask=ask))


def test_the_paths_that_a_server_takes_requests_at():
    paths = {f"/p{n}": {"post": {}} for n in range(11)}
    told = {"http://x/openapi.json": {"paths": {"/get": {"get": {}}, "/odd": [], **paths}}}
    assert list_served_paths(server(told)) == [f"/p{n}" for n in range(10)]
    assert list_served_paths(server({})) == list_served_paths(server({"http://x/openapi.json": {"paths": []}})) == []
    assert list_served_paths(server({"http://x/openapi.json": ["no"]})) == []


def test_a_request_is_made_as_a_description_has_it():
    schema = {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]}
    body = {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}
    one = server({"http://x/openapi.json": {"paths": {"/rag/invoke": body}}}, request=None)
    made = make_request(one)
    assert made is not None and made.where == "/openapi.json" and list(made.template) == ["question"]
    other = server({"http://x/rag/input_schema": schema}, request=None)
    made = make_request(other)
    assert made is not None and made.where == "/input_schema" and list(made.template["input"]) == ["question"]
    assert other.asked == ["http://x/openapi.json", "http://x/rag/input_schema"]
    assert make_request(server({}, request=None)) is None
    assert make_request(server({}, request="{}")) is make_request(server({})) is None


TEXT, LIST = {"type": "string"}, {"type": "array"}
TURN = {"role": "user", "content": "{question}"}


def deep(levels: int) -> dict[str, object]:
    return TEXT if not levels else {"properties": {"query": deep(levels - 1)}}


def filled(levels: int) -> object:
    return "{question}" if not levels else {"query": filled(levels - 1)}


@pytest.mark.parametrize(
    ("fields", "template"),
    [
        ({"question": TEXT}, {"question": "{question}"}),
        ({"text": TEXT, "question": TEXT}, {"question": "{question}"}),
        ({"text": TEXT, "other": TEXT}, {"text": "{question}"}),
        ({"other": TEXT}, None),
        ({"question": {"type": "integer"}}, None),
        ({"question": TEXT, "messages": LIST}, {"question": "{question}", "messages": ["{history}"]}),
        ({"messages": LIST}, {"messages": ["{history}", TURN]}),
        ({"history": LIST, "messages": LIST}, {"history": ["{history}"], "messages": ["{history}", TURN]}),
        ({"history": LIST}, None),
        ({"messages": TEXT, "question": TEXT}, {"question": "{question}"}),
        ({"question": TEXT, "must": {"type": "integer"}}, None),
        ({"question": TEXT, "must": {"type": "integer", "default": 3}}, {"question": "{question}", "must": 3}),
        ({"question": TEXT, "must": {"const": 0}}, {"question": "{question}", "must": 0}),
        ({"question": TEXT, "must": {"enum": ["b", "a"]}}, {"question": "{question}", "must": "b"}),
        ({"question": TEXT, "must": {"examples": [5], "example": 6}}, {"question": "{question}", "must": 5}),
        ({"question": TEXT, "must": {"example": 6}}, {"question": "{question}", "must": 6}),
        ({"question": TEXT, "must": {"default": 1, "enum": [2]}}, {"question": "{question}", "must": 1}),
        ({"question": TEXT, "must": LIST}, {"question": "{question}", "must": []}),
        ({"question": TEXT, "must": {"type": "object"}}, {"question": "{question}", "must": {}}),
        ({"question": TEXT, "must": {"type": "boolean"}}, {"question": "{question}", "must": False}),
        ({"question": {"$ref": "#/defs/words"}}, {"question": "{question}"}),
        ({"question": {"$ref": "#/defs/nowhere"}}, None),
        ({"question": {"$ref": "#/defs/round"}}, None),
        ({"question": {"anyOf": [{"type": "null"}, TEXT]}}, {"question": "{question}"}),
        ({"question": {"oneOf": [TEXT, {"type": "null"}]}}, {"question": "{question}"}),
        ({"question": {"allOf": [{"$ref": "#/defs/words"}]}}, {"question": "{question}"}),
        ({"question": {"anyOf": [{"type": "null"}]}}, None),
        ({"question": ["odd"]}, None),
        ({"query": deep(6)}, {"query": filled(6)}),
        ({"query": deep(7)}, None),
        ({"question": {"$ref": "#/chain/0"}}, {"question": "{question}"}),
        ({"question": {"$ref": "#/more/0"}}, None),
    ],
)
def test_a_request_has_the_question_once_and_what_must_be_there(fields, template):
    links = {str(n): {"$ref": f"#/chain/{n + 1}"} for n in range(6)} | {"6": TEXT}
    more = {str(n): {"$ref": f"#/more/{n + 1}"} for n in range(7)} | {"7": TEXT}
    root = {"defs": {"words": TEXT, "round": {"$ref": "#/defs/round"}}, "chain": links, "more": more}
    told = {"properties": fields, "required": ["must"], **root}
    made = make_request(server({"http://x/schema": told}, request=None))
    assert (made and made.template) == template and (made is None or made.where == "/schema")


def test_a_schema_is_that_of_the_path_that_is_asked_with_or_without_its_last_stroke():
    body = {"post": {"requestBody": {"content": {"application/json": {"schema": {"properties": {"q": TEXT}}}}}}}

    def made(url: str, path: str):
        one = server({"http://x/openapi.json": {"paths": {path: body}}}, request=None)
        one.url = url
        return make_request(one)

    assert made("http://x/ask", "/ask").template == made("http://x/ask/", "/ask").template == {"q": "{question}"}
    assert made("http://x/ask", "/other") is None


def test_a_description_that_the_system_s_own_file_names_fills_its_setting():
    asked = SimpleNamespace(described={"path": "/schema", "setting": "input"}, body={"in": "{input}", "k": 3})
    settings = {"input": SimpleNamespace(default="x")}

    def made(value: str, schema: object):
        one = server({"http://x/rag/schema": schema}, input=value)
        one.system = SimpleNamespace(ask=asked, settings=settings)
        return make_request(one)

    assert made("x", {"properties": {"q": TEXT}}) == ({"in": {"q": "{question}"}, "k": 3, "config": {}}, "/schema")
    assert made("mine", {"properties": {"q": TEXT}}) is made("x", {"properties": {"z": TEXT}}) is None


def test_advice_looks_six_levels_down_and_at_two_of_a_list():
    def nested(levels: int, value: object) -> object:
        return value if not levels else {"a": nested(levels - 1, value)}

    answer = "the rent is due"
    assert advise(nested(6, answer), names).answer == "a.a.a.a.a.a" and advise(nested(7, answer), names) == ("", "")
    assert advise({"rows": [{"n": 1}, {"n": answer}]}, names).answer == "rows[1].n"
    assert advise({"rows": [1, 2, {"n": answer}]}, names) == ("", "")
    assert advise({"odd key": answer}, names).answer == '"odd key"'
    assert advise({"a": "one two", "b": "one two three"}, names).answer == "b", "the longest"
    assert advise({"a": "word"}, names) == ("", ""), "no sentence"


@pytest.mark.parametrize(
    ("rows", "path"),
    [
        (["the rent is"], "rows"),
        (["the rent"], ""),
        ([7], ""),
        ([{"text": "the rent is due"}], "rows"),
        ([{"text": "the rent is"}], "rows"),
        ([{"text": "the rent"}], ""),
        ([{"says": "the rent is due", "file": "a.pdf"}], "rows[].{text: says, filename: file}"),
        ([{"says": "the rent is due", "doc_title": "Lease"}], "rows[].{text: says, filename: doc_title}"),
        ([{"says": "the rent is due", "id": "Lease"}], "rows[].{text: says}"),
    ],
)
def test_advice_on_passages_gives_a_path_that_was_tried(rows, path):
    assert advise({"rows": rows}, names).passages == path
