"""Replies read as a target file describes: whole, as events, or as lines like `t:"text"`; filled requests."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from exhibit.evaluation.servers.reading import NoAnswerError, Read, ReplyReader
from exhibit.evaluation.servers.system import System
from exhibit.evaluation.servers.templates import fill, fill_path, uses_history
from exhibit.storage.http_policy import HttpError, Secrets

NDJSON = "application/x-ndjson"


def reader(reply: dict[str, object] | None = None, stream: dict[str, object] | None = None, **options) -> ReplyReader:
    return ReplyReader(System(reply=reply or {}, stream=stream or {}), Secrets([]), **options)


def response(body: str, kind: str = "application/json") -> SimpleNamespace:
    data = body.encode()
    return SimpleNamespace(kind=kind, read=lambda: data, lines=lambda: body.split("\n"), read_parts=lambda: [data])


def streamed(*events: object, one: ReplyReader | None = None, **parts) -> Read:
    lines = "\n".join(event if isinstance(event, str) else json.dumps(event) for event in events)
    return (one or reader(**parts)).read(response(lines, NDJSON))


# ---------------------------------------------------------------- whole


def test_a_whole_reply_is_read_by_its_fields_or_as_a_file_says():
    own = reader({"answer": "a.b", "passages": "c", "pages_from": 0}).read_whole({"a": {"b": "Yes."}, "c": ["p"]})
    assert (own.answer, own.passages, own.shape, own.pages_from, own.blank) == ("Yes.", ["p"], "", 0, True)
    known = reader().read_whole({"answer": "Yes.", "passages": ["p"]})
    assert (known.answer, known.passages, known.pages_from) == ("Yes.", ["p"], 1) and known.shape
    half = reader({"answer": "said"}).read_whole({"said": "Yes.", "answer": "No.", "passages": ["p"]})
    assert (half.answer, half.passages, half.shape) == ("Yes.", ["p"], "")
    wrapped = {"output": {"said": "Yes.", "found": ["p"]}}
    inside = reader({"answer": "said", "passages": "found", "unwrap": True}).read_whole(wrapped)
    assert (inside.answer, inside.passages) == ("Yes.", ["p"])
    outside = reader({"answer": "said", "passages": "output.found", "unwrap": True})
    assert outside.read_whole({"output": {"x": 1}, "said": "Yes."}).answer == "Yes."
    with pytest.raises(NoAnswerError, match="no answer in the reply at said"):
        reader({"answer": "said", "passages": "found"}).read_whole(wrapped)
    assert reader({"answer": "x", "passages": ""}).read_whole("Bare words.").answer == "Bare words."


@pytest.mark.parametrize(
    ("paths", "reply", "words", "blank"),
    [
        (["said"], {"said": " "}, "no answer in the reply at said; its form is {said: text}", True),
        (["said"], {"other": 1}, "no answer in the reply at said", False),
        (["said", "told"], {"other": 1}, "no answer in the reply", False),
        (None, {"other": 1}, "no answer in the reply", False),
    ],
)
def test_a_reply_without_an_answer_says_where_it_was_looked_for(paths, reply, words, blank):
    given = {} if paths is None else {"answer": paths}
    with pytest.raises(NoAnswerError, match=words) as caught:
        reader(given).read_whole(reply)
    assert (caught.value.blank, caught.value.reply) == (blank, reply)


def test_passages_alone_are_a_reply_until_an_answer_was_seen():
    found = {"found": ["p"]}
    for paths in ("", "said"):
        one = reader({"answer": paths, "passages": "found"})
        assert (one.read_whole(found).answer, one.read_whole(found).passages) == (None, ["p"])
    one.answers = True
    with pytest.raises(NoAnswerError):
        one.read_whole(found)
    assert reader({"answer": "", "passages": "found"}).read_whole({"found": []}).passages == []
    with pytest.raises(NoAnswerError):
        reader({"answer": "said", "passages": "found"}).read_whole({"found": []})


def test_fields_of_passages_are_renamed_and_what_is_spent_is_read():
    one = reader({"answer": "a", "passages": "p", "fields": {"text": "words", "page": "at.page"}, "usage": {"x": "n"}})
    read = one.read_whole({"a": "Yes.", "p": [{"words": "w", "at": {"page": 3}}, "bare", {"text": "own"}], "n": 5})
    assert read.passages == [{"words": "w", "at": {"page": 3}, "text": "w", "page": 3}, "bare", {"text": "own"}]
    assert read.usage == {"x": 5.0}
    keyed = one.read_whole({"a": "Yes.", "p": {"7": {"words": "w"}}, "n": 0, "usage": {"prompt_tokens": 2}})
    assert keyed.passages == {"7": {"words": "w", "text": "w"}} and keyed.usage == {"tokens_in": 2.0}


def test_an_error_that_a_reply_reports_is_raised():
    one = reader({"answer": "a", "error": "fault", "refused": "code == `7`"})
    for reply, status in (({"fault": "down", "code": 7}, 401), ({"error": {"no": 1}, "code": 8}, None)):
        with pytest.raises(HttpError, match="the server reports an error") as caught:
            one.read_whole(reply)
        assert caught.value.status == status and not caught.value.transient
    with pytest.raises(HttpError) as bare:
        reader({"answer": "a", "error": "fault"}).read_whole({"fault": "down", "code": 7})
    assert bare.value.status is None
    assert one.read_whole({"a": "Yes.", "error": None, "fault": ""}).answer == "Yes."
    with pytest.raises(HttpError, match="ERROR: full") as failed:
        reader({"answer": "a", "failed": "ERROR"}).read_whole({"a": "ERROR: full"})
    assert failed.value.transient


def test_an_answer_s_citations_become_ranks():
    marks = {"answer": "a", "passages": "p", "citations": ["[ID:{n}]", "(see {n})"], "selected": True}
    by_key = reader(marks).read_whole({"a": "So [ID:7], (see 3), [ID:9].", "p": {"3": {"x": 1}, "7": {"x": 2}}})
    assert by_key.answer == "So [2], [1], [ID:9]." and by_key.selected == 2
    from_nought = reader(marks).read_whole({"a": "So [ID:0][ID:1][ID:2].", "p": ["x", "y"]})
    assert from_nought.answer == "So [1][2][ID:2]."
    none = reader(marks).read_whole({"a": "So [ID:0].", "p": []})
    assert none.answer == "So [ID:0]." and none.selected is None
    assert reader({"answer": "a", "passages": "p"}).read_whole({"a": "Yes.", "p": ["x"]}).selected is None


# ---------------------------------------------------------------- streams


def test_events_are_put_together():
    read = streamed(
        {"answer": ""}, {"answer": " "}, {"answer": "Nor"}, {"answer": "way."}, {"context": ["p"]},
        {"context": ["p", "q"]}, {"context": ["r"]}, {"context": []}, {"usage": {"prompt_tokens": 3}},
        {"usage": {"completion_tokens": 4}},
    )  # fmt: skip
    assert read.answer == " Norway." and read.passages == ["p", "q"] and read.shape == "a stream" and read.blank
    assert read.usage == {"tokens_in": 3.0, "tokens_out": 4.0} and read.first_token is not None and len(read.raw) == 3


def test_a_stream_is_read_as_its_file_says():
    told = {"answer": "whole", "passages": "p"}
    assert streamed({"piece": "Yes."}, {"p": ["x"]}, reply=told, stream={"answer": "piece"}).answer == "Yes."
    read = streamed({"whole": "Yes."}, {"p": ["x"]}, {"q": ["y"]}, reply=told, stream={"passages": "q"})
    assert (read.answer, read.passages, read.shape) == ("Yes.", ["y"], "")
    boxed = {"output": {"p": ["x"]}, "whole": "Yes."}
    within = {"answer": "whole", "passages": "output.p"}
    assert streamed(boxed, reply=within).passages == ["x"], "nothing is unwrapped where the file says where it is"
    assert streamed(boxed, reply={"answer": "whole"}, stream={"passages": "output.p"}).passages == ["x"]
    spent = {"u": {"prompt_tokens": 3}, "usage": {"prompt_tokens": 5}}
    assert streamed({"whole": "Yes."}, spent, reply=told, stream={"usage": "u"}).usage == {}
    nested = {"u": {"usage": {"prompt_tokens": 3}}}
    assert streamed({"whole": "Yes."}, nested, reply=told, stream={"usage": "u"}).usage == {"tokens_in": 3.0}


@pytest.mark.parametrize(
    ("lines", "stream", "words"),
    [
        (["event: error", '{"detail": "full"}'], {}, "full"),
        (['{"bad": "full"}'], {"error": "bad"}, "full"),
        (['{"answer": "x"}', '{"error": "full"}'], {}, "full"),
    ],
)
def test_an_error_in_a_stream_is_raised(lines, stream, words):
    with pytest.raises(HttpError, match=f"the server reports an error: .*{words}"):
        streamed(*lines, stream=stream)


def test_a_stream_that_stops_is_seen_where_others_had_an_end():
    one = reader(stream={"end": "done"})
    cut = [{"answer": "Nor"}]
    assert streamed(*cut, one=one).answer == "Nor", "nobody has seen how it ends"
    assert streamed(*cut, {"done": False}, one=one).answer == "Nor"
    assert streamed(*cut, {"done": True}, {"answer": "way."}, one=one).answer == "Norway."
    with pytest.raises(HttpError, match="the reply is incomplete: its stream has no end mark") as caught:
        streamed(*cut, one=one)
    assert caught.value.transient
    marked = reader()
    assert streamed(*cut, "data: [DONE]", one=marked).answer == "Nor"
    with pytest.raises(HttpError, match="its stream has no end mark"):
        streamed(*cut, one=marked)
    assert marked.read_whole({"answer": "Yes.", "passages": []}).answer == "Yes.", "a whole reply has no end"


def test_a_stream_without_words_has_no_answer():
    with pytest.raises(NoAnswerError, match="no answer in the reply; its form is {answer: text}") as caught:
        streamed({"answer": " "}, {"answer": " "})
    assert caught.value.blank and caught.value.reply == {"answer": " "}
    with pytest.raises(NoAnswerError, match="at said; its form is {other: number}") as lost:
        streamed({"other": 1}, reply={"answer": "said"})
    assert not lost.value.blank
    with pytest.raises(NoAnswerError, match=r"no answer in the reply; its form is \[\]"):
        reader().read(response("", NDJSON))


def test_words_alone_lines_of_a_letter_and_lines_that_call_themselves_otherwise():
    bare = reader(stream={"format": "text"})
    assert bare.read(response("The law\nof Norway.", "text/plain")).answer == "The law\nof Norway."
    assert (
        bare.read(response("data: The law\n\ndata:  of Norway.\n", "text/event-stream")).answer == "The law of Norway."
    )
    assert bare.read(response('{"answer": "Yes.", "passages": []}')).answer == "Yes.", "an object all the same"
    letters = reader({"answer": "t", "passages": "p"}, {"format": "parts"})
    read = letters.read(response('t:"Nor"\n\nt:"way."\np:["x"]\n', "text/plain"))
    assert (read.answer, read.passages) == ("Norway.", ["x"])
    assert letters.read(response('{"t": "Yes.", "p": []}')).answer == "Yes."
    for line in ("no colon", 'tt:"two letters"', "t:no json"):
        with pytest.raises(HttpError, match=f"a line of the stream does not have the form LETTER:JSON: {line[:4]}"):
            letters.read(response(line, "text/plain"))
    lines = '{"answer": "Nor"}\n{"answer": "way."}'
    assert ReplyReader(System(), Secrets([]), stream=True).read(response(lines, "text/plain")).answer == "Norway."
    for one, body, words in ((reader(), lines, "the reply is not JSON"), (reader(), " ", "the reply is empty")):
        with pytest.raises(HttpError, match=words):
            one.read(response(body, "text/plain"))


# ---------------------------------------------------------------- requests


TURNS = [{"role": "user", "content": "a"}, {"type": "ai", "content": "b"}]


@pytest.mark.parametrize(
    ("template", "filled"),
    [
        ("{question}", "Why?"),
        ("Q: {question} {unknown}", "Q: Why? {unknown}"),
        ("{unknown}", "{unknown}"),
        ("{none}!", "!"),
        ("{late}", "called"),
        ("so: {history}", "so: user: a\nai: b"),
        ({"q": "{question}", "n": "{none}", "k": 3}, {"q": "Why?", "k": 3}),
        ({"a": {"n": "{none}"}, "b": {}}, {"b": {}}),
        ({"...": "{more}", "....": "{none}", "..": "x"}, {"x": 1, "..": "x"}),
        (["{history}", "{question}", 3], [*TURNS, "Why?", 3]),
        ([["{question}"]], [["Why?"]]),
        (7, 7),
    ],
)
def test_a_template_is_filled(template, filled):
    values = {"question": "Why?", "none": None, "late": lambda: "called", "history": TURNS, "more": {"x": 1}}
    assert fill(template, values) == filled


def test_values_in_a_path_are_quoted_and_a_template_may_use_what_was_said():
    assert fill_path("/c/{name}/x", {"name": "a/b c"}) == "/c/a%2Fb%20c/x"
    for place in ("{history}", "{session}", "{thread}"):
        assert uses_history({"a": [1, f"x {place}"]}) and uses_history(place)
    assert not uses_history({"a": ["{question}", 3], "b": None})
