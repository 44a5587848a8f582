"""Edge cases of a pipeline's parts: addresses of stores, index types, settings, quotations and places."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from exhibit.evidence import Document, Span
from exhibit.evidence.scan import Ocr
from exhibit.law.profile import read_profile
from exhibit.law.structure import read_structure
from exhibit.models.llms import estimate
from exhibit.rag import Pipeline
from exhibit.rag.answerers import section_of
from exhibit.rag.answerers.extractive import NEAR, ExtractiveAnswerer, format_quotable
from exhibit.rag.answerers.extractive import open as open_extractive
from exhibit.rag.config import Config, choose_given_settings, describe_settings, list_presets
from exhibit.rag.index_kinds import IndexType
from exhibit.rag.ingest import read_chunk_texts, read_with_ocr
from exhibit.rag.inspect import kind_of
from exhibit.rag.milvus_address import Address, find_named_servers, make_conditions, parse_origin
from exhibit.rag.protocols import Chunk, Hit, make_section_key, make_section_keys
from exhibit.rag.retrieval.stages import assemble
from exhibit.rag.stores import faiss
from exhibit.rag.summaries import extractive
from exhibit.rag.summaries.extractive import TOLERANCE, fit
from exhibit.runtime.plugins import load_plugin
from exhibit.schemas.errors import ToolkitError
from tests.rag.bundles import document_of


def test_every_default_is_as_it_is_told(golden):
    golden("rag/defaults.json", json.dumps(Config().model_dump(), indent=1) + "\n")
    assert Config().ingest_hash == Config.parse({"top_k": 3} if "top_k" in Config.model_fields else {}).ingest_hash
    assert len(Config().ingest_hash) == 16 and Config(chunk_size=501).ingest_hash != Config().ingest_hash
    assert Config.preset("routed") == Config()


def test_settings_are_told_apart_by_when_they_decide():
    with pytest.raises(ToolkitError, match="chunk_size: set when the index was built"):
        Config().with_search(chunk_size=400)
    with pytest.raises(ToolkitError, match="no preset 'ruoted'; did you mean routed\\? there are "):
        Config.preset("ruoted")
    with pytest.raises(ToolkitError, match="no preset 'none'; there are "):
        Config.preset("none")
    with pytest.raises(ToolkitError, match="nowhere: chunk_size: .*; settings are "):
        Config.parse({"chunk_size": 0}, where="nowhere")
    for wrong in ({"lexicon": False}, {"layer_documents": 5, "layers": "chunks"}):
        with pytest.raises(ToolkitError):
            Config.parse(wrong)
    assert "routed" in list_presets() and list_presets() == sorted(list_presets())
    told = describe_settings()
    assert told["chunk_size"].endswith("(default: 500)") and any(name.startswith("weight_") for name in told)
    assert choose_given_settings({"chunk_size": 3, "elsewhere": 4}) == {"chunk_size": 3}
    unset = next(name for name, field in Config.model_fields.items() if field.default is None)
    assert choose_given_settings({unset: "none", "splitter": "none"}) == {unset: None, "splitter": "none"}
    assert (
        Config().get_setting("chunk_size") == 500 and Config().get_setting("weight_lexical") == Config().weights.lexical
    )


def test_an_index_does_not_decide_where_questions_are_sent(tmp_path):
    remote = Config.parse({"embedder": "openai:m"})
    with pytest.raises(
        ToolkitError, match="x: the index was built with embedder = 'openai:m', .* add --embedder openai:m$"
    ):
        remote.with_own({}, where="x")
    assert remote.with_own({"embedder": "openai:m"}, where="x").embedder == "openai:m"
    for answerer in ("reader", "extractive", "auto"):
        local = Config.parse({"answerer": answerer})
        assert local.with_own({}, where="x") == local, "no answerer of ours sends a question anywhere by itself"
    with pytest.raises(ToolkitError, match="add --llm openai:m, or --llm none"):
        Config.parse({"llm": "openai:m"}).with_own({}, where="x")
    (tmp_path / "p.toml").write_text('store = "milvus:http://far:1"\n', encoding="utf-8")
    with pytest.raises(ToolkitError, match="names a server, and only you can allow that"):
        Config.preset(str(tmp_path / "p.toml"))
    assert Config.preset(str(tmp_path / "p.toml"), store="milvus:http://far:1").store == "milvus:http://far:1"


# ---------------------------------------------------------------- stores


def test_an_address_is_a_server_or_a_file(tmp_path):
    own = tmp_path / "own.db"
    assert Address.parse(None, own=own) == Address.parse("lite", own=own) == Address(str(own))
    server = Address.parse("http://h:1/db?index=hnsw&M=8", own=own)
    assert (server.uri, server.kind, server.options, server.is_server) == ("http://h:1/db", "HNSW", {"M": 8}, True)
    assert server.build() == {"M": 8, "efConstruction": 80} and server.widen(10) == {"ef": 256}
    assert server.widen(300) == {"ef": 300}
    lists = Address.parse("a.db?index=IVF_FLAT&nlist=32", own=own)
    assert lists.build() == {"nlist": 32} and lists.widen(9) == {"nprobe": 32} and not lists.is_server
    assert Address.parse("a.db?index=ivf_flat", own=own).widen(9) == {"nprobe": 64}
    assert Address(str(own)).build() == Address(str(own)).widen(9) == {}
    for wrong, words in {
        "http://u:p@h": "MILVUS_TOKEN",
        "a.sqlite": "neither a server nor",
        "lite?index=x": "no index type 'X'",
        "lite?index=": "no index type ''",
    }.items():
        with pytest.raises(ToolkitError, match=words):
            Address.parse(wrong, own=own)


def test_a_token_is_for_a_scheme_a_host_and_a_port():
    assert parse_origin("HTTP://Host:1/db") == ("http", "host", 1) and parse_origin("https://h") == ("https", "h", None)
    assert parse_origin("http://h:x/") == ("", "http://h:x/", None)


def test_servers_are_those_that_a_command_line_names():
    words = [
        "--store",
        "milvus:http://a:1?x",
        "--store=milvus:tcp://b",
        "--store",
        "milvus:lite",
        "--other",
        "milvus:http://c",
    ]
    assert list(find_named_servers(words)) == ["http://a:1", "tcp://b"] and list(find_named_servers(["--store"])) == []


def test_keys_are_asked_for_in_ranges_and_singly():
    def asked(keys):
        return list(make_conditions("id", np.array(keys)))

    assert asked([]) == [] and asked([1, 2, 3, 4]) == ["id in [1, 2, 3, 4]"]
    assert asked([1, 2, 3, 4, 5]) == ["(id >= 1 and id <= 5)"]
    assert asked([1, 2, 3, 4, 5, 7, 9]) == ["(id >= 1 and id <= 5) or id in [7, 9]"]
    three = asked([*range(1, 6), *range(11, 16), *range(21, 26)])
    assert three == ["((id >= 1 and id <= 5) or (id >= 11 and id <= 15)) or (id >= 21 and id <= 25)"]
    many = asked(list(range(0, 2 * 4097, 2)))
    assert len(many) == 2 and many[1] == "id in [8192]"
    assert len(asked(list(range(0, 2 * 4096, 2)))) == 1


def test_a_kind_of_index_is_flat_while_rows_are_few():
    kind = IndexType.parse("pq,refine=8")
    assert (kind.name, kind.options) == ("pq", {"refine": 8}) and IndexType.parse(None) == IndexType() == IndexType(
        "flat", {}
    )
    assert kind.choose_type(999) == IndexType() and kind.choose_type(1000) is kind
    for wrong in ("tree", "hnsw", "ivf", "flat,M=3", "pq,refine", "pq,refine=x", "pq,refine=0"):
        with pytest.raises(ToolkitError, match="faiss:"):
            IndexType.parse(wrong)


# ---------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("document", "path", "cited"),
    [
        ("Part 36 – Offers.pdf", "Part 36 > 36.14 Costs > (3) Where", "CPR 36.14(3)"),
        ("Part 3 – Powers.pdf", "36.14 Costs", "36.14 Costs"),
        ("PD 52a – Appeals.pdf", "4.2 Papers > (1) x > (a) y", "PD 52A para 4.2(1)(a)"),
        ("lease.pdf", "ARTICLE III Rent > 3.2 > (b) late", "ARTICLE III, 3.2(b)"),
        ("lease.pdf", "article iii Rent > 3.2", "Article Iii, 3.2"),
        ("lease.pdf", "ARTICLE III Rent > General > 3.2 > (b) late", "ARTICLE III, 3.2(b)"),
        ("lease.pdf", "9.10 Specific Performance", "9.10 Specific Performance"),
        ("lease.pdf", "Definitions > (a) x", "Definitions (a)"),
        ("lease.pdf", "(a) x > (ii) y", "(a)(ii)"),
        ("lease.pdf", "", ""),
        ("lease.pdf", "w" * 80, "w" * 80),
        ("lease.pdf", "word " * 16 + "more", ("word " * 16).strip() + " …"),
        ("lease.pdf", "word " * 15 + "words more", ("word " * 15).strip() + " …"),
    ],
)
def test_a_section_is_cited_as_lawyers_cite_it(document, path, cited):
    assert section_of(document, path) == cited


@pytest.mark.parametrize(
    ("sentence", "quoted"),
    [
        ("Rent is\n due.", "Rent is due."),
        ("rent is due.", "… rent is due."),
        ("(a) rent is due", "(a) rent is due …"),
        ("ii. rent is due.", "ii. rent is due."),
        ("Rent [1] is due.", "Rent (1) is due."),
        ("“Rent is due.”", "“Rent is due.”"),
        ("W" * 600, "W" * 600 + " …"),
        ("W" * 590 + " " + "x" * 20 + ".", "W" * 590 + " …"),
        ("W" * 590 + " " + "x" * 9 + " y.", "W" * 590 + " …"),
    ],
)
def test_a_sentence_is_quoted_on_one_line(sentence, quoted):
    assert format_quotable(sentence) == quoted


@pytest.mark.parametrize(
    ("path", "kind"),
    [("1 Definitions", "definitions"), ("Term > Recitals", "preamble"), ("Term > Rent", ""),
     ("General", "miscellaneous"), ("Exceptions", "exclusions"), ("Obligations of X", "obligations"),
     ("Duration", "term")],
)  # fmt: skip
def test_a_section_is_of_the_kind_that_its_title_says(path, kind):
    assert kind_of(path) == kind


def test_a_summary_may_be_a_little_longer_than_asked_for():
    words = "w" * (20 + TOLERANCE)
    assert fit(f" {words}\n", 20) == words and len(fit("word " * 50, 20)) <= 20 + 2


# ---------------------------------------------------------------- while an index is built, and what models may cost


def test_vectors_that_another_process_writes_are_read_from_their_rows_or_from_their_index(tmp_path):
    keys, vectors = np.arange(3), np.eye(3, dtype=np.float32)
    store = faiss.open(tmp_path, None, name="chunk", dimensions=3)
    store.add(keys, vectors)
    before = faiss.peek(tmp_path, None, name="chunk", dimensions=3, keys=keys[:2])
    assert len(before) == 2 and before.search(vectors[:1], 1)[1].tolist() == [[0]]
    store.save()
    after = faiss.peek(tmp_path, None, name="chunk", dimensions=3, keys=keys[:2])
    assert len(after) == 3 and after.search(vectors[2:], 1)[1].tolist() == [[2]]
    store.close()


def test_a_file_whose_pages_have_text_is_not_read_by_ocr(tmp_path):
    (tmp_path / "a.txt").write_text("Rent is due.", encoding="utf-8")
    assert read_with_ocr(tmp_path / "a.txt", Ocr("none", "en")).text == "Rent is due."


@pytest.mark.parametrize("prices", [{}, {"price_in": 1.0}, {"price_out": 1.0}])
def test_a_cap_on_cost_needs_both_prices(prices):
    pipeline = Pipeline(Config.parse({"llm": "openai:m", "max_cost": 1.0, **prices}))
    with pytest.raises(ToolkitError, match="--max-cost needs --price-in and --price-out"):
        assert pipeline.llm


def test_what_a_model_may_cost_is_passed_on(monkeypatch):
    told = {}
    module = SimpleNamespace(open=lambda argument, options: told.update({"model": argument, **options}))
    monkeypatch.setattr(
        "exhibit.rag.pipeline.load_plugin", lambda _folder, name: (module, name.partition(":")[2] or None)
    )
    caps = {"max_cost": 1.0, "price_in": 0.5, "price_out": 2.0, "max_requests": 7, "top_p": 0.9}
    Pipeline(Config.parse({"llm": "openai:m", **caps})).llm  # noqa: B018
    assert told["prices"] == {"m": (0.5, 2.0)} and (told["max_cost"], told["max_requests"], told["top_p"]) == (
        1.0,
        7,
        0.9,
    )
    told.clear()
    Pipeline(Config.parse({"llm": "openai:m"})).llm  # noqa: B018
    assert told["prices"] == {} and told["max_cost"] is None and "top_p" not in told


@pytest.mark.parametrize("name", ["extractive", "llm"])
def test_an_answerer_that_asks_nobody_by_itself_says_so(name):
    assert load_plugin("exhibit.rag.answerers", name)[0].LOCAL is True


@pytest.mark.parametrize("name", ["faiss"])
def test_a_store_that_asks_nobody_says_so(name):
    assert load_plugin("exhibit.rag.stores", name)[0].LOCAL is True


# ---------------------------------------------------------------- summaries


DEED = """DEED OF CHARGE

This Deed of Charge is made on 4 May 2021 between Fir Estates Ltd, Gorse Mills plc, Heath Farms Ltd and Ivy Docks Ltd.

WHEREAS the parties wish to secure the debts of Gorse Mills plc to Fir Estates Ltd by a charge over the old mill.

1. Charge

The mill is charged with the payment of all sums that are owed under this Deed, now or later. More follows.

2. Release

The charge ends when the last of these sums is paid, and the keys are given back on that day.
"""
NOTE = (
    "Notes\n\n1. Mooring of boats\n\nBoats are moored at the quay.\n\n2. Dues of boats\n\nDues are paid in advance.\n"
)


def summarised(text, *, length=None):
    document = Document("a.txt", text)
    root, profile = read_structure(document), read_profile(document)
    summarise = extractive.open(None, llm=None, style="", characters=length or 300)
    sections = [part for part in root.walk() if part.heading and part is not root]
    return summarise(document, root, profile), summarise.summarise_sections(document, sections, profile)


def test_a_summary_says_between_whom_and_what_for(golden):
    told = {name: summarised(text) for name, text in {"deed": DEED, "note": NOTE}.items()}
    told["short"] = summarised(DEED, length=60)
    golden("rag/summaries.json", json.dumps(told, ensure_ascii=False, indent=1) + "\n")
    assert len(told["short"][0]) <= 60 + TOLERANCE


# ---------------------------------------------------------------- quotations as answers


SENTENCES = (
    "The rent is 500 crowns a month. It is due in advance on the first working day. Rent that is late bears interest.",
    "Rent. The tenant pays the rent to the landlord without any deduction, and the landlord gives a receipt for it.",
    "The term is five years from the day on which the keys are given, and the tenant may end it after two years.",
    "the deposit is returned within thirty days of the end of the term, less what the tenant still owes by then",
)
QUESTIONS = (
    "What is the rent and when is it due?",
    "Consider the Lease of the Mill; how long is the term?",
    "When is the deposit returned?",
    "Who insures the mill against fire and flood?",
    "Does late rent bear interest, is it due in advance, and does the landlord give a receipt for the rent?",
    "rent",
)


def test_sentences_are_quoted_that_are_near_the_question(golden):
    hits = [
        Hit(Chunk("lease.pdf", Span(1000 * n, 1000 * n + len(text))), 0.9 - n / 10, text)
        for n, text in enumerate(SENTENCES)
    ]
    told = {}
    for question in QUESTIONS:
        context = assemble(question, hits, summaries={}, tokens=estimate)
        for near in (0.0, NEAR, 0.6):
            answer = ExtractiveAnswerer(near=near).answer(question, context)
            told[f"{question} {near:g}"] = [answer.text, answer.refused, list(answer.unsupported)]
    golden("rag/quoted.json", json.dumps(told, ensure_ascii=False, indent=1) + "\n")
    assert any(refused for _, refused, _ in told.values()) and all(text.count("[") <= 3 for text, _, _ in told.values())


def test_one_who_is_sure_by_other_means_quotes_what_is_nearest():
    assert open_extractive(Config(), llm=None)._near in (0.0, NEAR)
    assert open_extractive(Config(refuse_below=None), llm=None)._near == NEAR
    assert open_extractive(Config.parse({"refuse_below": 0.3, "reranker": "none"}), llm=None)._near == NEAR
    assert open_extractive(Config.parse({"refuse_below": 0.3, "reranker": "words"}), llm=None)._near == 0.0


@pytest.mark.parametrize(
    ("name", "sound", "wrong"),
    [
        *(
            (name, (1,), (0, -1))
            for name in ("chunk_size", "k", "depth", "budget", "max_requests", "rerank", "max_tokens")
        ),
        *((name, (0,), (-1,)) for name in ("overlap", "min_chunks", "document_limit")),
        *((name, (0, 0.5, 1), (-0.1, 1.1)) for name in ("document_max", "threshold", "refuse_below", "hyde_weight")),
        *((name, (0, 2), (-0.1, 2.1)) for name in ("temperature", "summary_temperature")),
        *((name, (0, 9), (-0.1,)) for name in ("weight_lexical", "weight_document", "price_in", "price_out")),
        ("top_p", (0.1, 1), (0, 1.1)),
        ("max_cost", (0.01,), (0, -1)),
    ],
)
def test_a_setting_is_refused_beyond_its_bounds(name, sound, wrong):
    assert [Config.parse({name: value}).get_setting(name) for value in sound] == list(sound)
    for value in wrong:
        with pytest.raises(ToolkitError, match=f"config: .*{name.removeprefix('weight_')}"):
            Config.parse({name: value})


def test_layers_are_searched_where_they_are_there():
    for name in ("layer_documents", "layer_sections", "weight_summary", "weight_gist"):
        assert Config.parse({name: 1, "layers": "all"}).get_setting(name) == 1
        with pytest.raises(ToolkitError, match="layer_documents and layer_sections need an index with all layers"):
            Config.parse({name: 1})
    with pytest.raises(ToolkitError, match="routing needs an index with a lexicon"):
        Config.parse({"lexicon": False, "routing": False, "method": "bm25"})
    assert Config.parse({"lexicon": False, "routing": False}).method == "dense"


def test_who_reads_is_the_reader_unless_a_model_or_another_answers():
    assert Config().reads and Config(answerer="reader", llm="openai:m").reads
    assert not Config(llm="openai:m").reads and not Config(answerer="extractive").reads


def test_keys_of_sections_are_as_in_every_index_that_was_built():
    assert make_section_keys(2, 3).tolist() == [2097152, 2097153, 2097154] and make_section_key(0, 5) == 5


def test_a_chunk_of_nothing_but_a_running_head_keeps_its_words():
    head, body = "Lease of the Mill, page", "The rent is due."
    pages = [f"{head} {n}\n{body} {'It is paid. ' * n}\n" for n in range(1, 6)]
    document = document_of(pages)
    assert document.furniture, "its running heads are known"
    first, second = document.furniture[0], len(pages[0])
    for span, words in [
        (Span(*first), document.text[first.start : first.end]),
        (Span(first.start, first.end + 10), document.text[first.end : first.end + 10]),
        (Span(second - 5, second + len(head) + 12), None),
    ]:
        [told] = read_chunk_texts(document, np.array([[*span, 0, 0]]))
        assert told == words if words is not None else head not in told
