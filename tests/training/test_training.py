"""A small adapter and a small reranker, trained on the CPU: they learn, deterministically, and not on excluded data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from exhibit.models.network import read_safetensors
from exhibit.schemas.errors import ToolkitError
from tests.training.material import tiny_weights, write_contracts, write_library
from training import adapter, blend, calibrate, figures, hints, reader, reading, reranker
from training.adapter import Batch, compute_contrast, train_adapter
from training.exclusion import Excluded
from training.gather import gather
from training.ground import Ground
from training.library import hold_out_queries
from training.network import CLS, SEP, Encoder, Judge, Reader, Texts, export_lowrank, merge, start_from
from training.pack import Pack, is_called, save_pack
from training.reranker import train_reranker
from training.sampling import Examples
from training.scoring import embed_all
from training.tensors import read_tensors, write_tensors
from training.windows import Windows, mark_edges

pytestmark = pytest.mark.extra
CPU = torch.device("cpu")
torch.set_num_threads(1)  # so small a network is slower on several
QUICK = adapter.Recipe(rank=4, epochs=2, batch=4, library=2, rate=2e-2)


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    folder = tmp_path_factory.mktemp("bundles")
    return gather([write_contracts(folder / "cuad"), write_library(folder / "acord")], excluded=Excluded(), dev=0.3)


@pytest.fixture
def common(tmp_path: Path, pack: Pack) -> list[str]:
    """Return the flags of every command: the pack and the network's own weights, on the CPU."""
    save_pack(pack, tmp_path / "pack.npz")
    write_tensors(tiny_weights(), tmp_path / "base.safetensors", about={})
    return ["--pack", str(tmp_path / "pack.npz"), "--base", str(tmp_path / "base.safetensors"), "--device", "cpu"]


def test_the_network_is_the_model_that_the_pipeline_runs(pack: Pack) -> None:
    from tokenizers import Tokenizer

    from exhibit.models.embedders.minilm import MiniLM
    from exhibit.models.network import MODEL, TOKENIZER, find_file

    words = ["This Agreement is governed by the law of Norway.", "who pays?"]
    tokenizer = Tokenizer.from_file(str(find_file(TOKENIZER)))
    tokenizer.no_padding()
    ids = [encoding.ids[1:-1] for encoding in tokenizer.encode_batch(words)]
    tokens = np.concatenate([np.array(one, np.uint16) for one in ids])
    texts = Texts(tokens, np.cumsum([len(one) for one in ids]), CPU)
    with torch.no_grad():
        found = Encoder(read_tensors(find_file(MODEL)), rank=1, seed=0).embed(texts, torch.arange(2)).numpy()
    assert np.allclose(found, MiniLM("fp32").embed(words, role="query"), atol=1e-4)


def margin(encoder: Encoder, pack: Pack, strength: float) -> float:
    """Return the mean margin of answers over the other passages of their document, on the dev contracts."""
    passages, queries = embed_all(encoder, Texts(pack.tokens, pack.ends, CPU), pack, strength=strength)
    ahead = []
    for row in Examples(pack, split=("dev",)).answerable:
        near = passages @ queries[Examples(pack).wordings[row.kind]].mean(0)
        ahead.append(float(near[row.answers].mean() - near[row.others].mean()))
    return float(np.mean(ahead))


def test_an_adapter_learns(pack: Pack) -> None:
    encoder = train_adapter(Ground(pack, CPU), tiny_weights(), replace(QUICK, epochs=15))
    assert margin(encoder, pack, 1.0) > margin(encoder, pack, 0.0) + 0.02


def test_a_second_training_gives_the_same(pack: Pack) -> None:
    first, second = (export_lowrank(train_adapter(Ground(pack, CPU), tiny_weights(), QUICK)) for _ in range(2))
    other = export_lowrank(train_adapter(Ground(pack, CPU), tiny_weights(), replace(QUICK, seed=2)))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert not all(np.array_equal(first[name], other[name]) for name in first)


def test_a_training_begins_with_earlier_weights(tmp_path: Path, pack: Pack, common: list[str]) -> None:
    first = train_adapter(Ground(pack, CPU), tiny_weights(), QUICK)
    again = Encoder(tiny_weights(), rank=QUICK.rank, seed=9)
    start_from(again, export_lowrank(first))
    before, after = (embed_all(one, Ground(pack, CPU).texts, pack)[0] for one in (first, again))
    assert torch.equal(before, after)
    judge, other = (Judge(tiny_weights(), rank=2, seed=seed) for seed in (1, 2))
    trained = export_lowrank(judge.encoder) | {"head.weight": judge.head.weight.detach().numpy() + 1}
    start_from(other, trained)
    assert torch.equal(other.head.weight, judge.head.weight + 1)
    numbers = ["--rank", "4", "--epochs", "1", "--batch", "4", "--library", "0"]
    assert adapter.main([*common, *numbers, "--out", str(tmp_path / "one")]) == 0
    assert (
        adapter.main([*common, *numbers, "--out", str(tmp_path / "two"), "--start", str(tmp_path / "one.safetensors")])
        == 0
    )
    records = [json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8")) for name in ("one", "two")]
    assert records[0]["start"] is None
    assert records[1]["start"] == {"sha256": records[0]["sha256"], "recipe": records[0]["recipe"]}
    assert records[1]["sha256"] != records[0]["sha256"]


def test_a_kind_that_is_left_out_is_not_trained_on(pack: Pack) -> None:
    examples = Examples(pack, leave_out=frozenset({"Governing Law"}))
    assert {pack.kinds[row.kind] for row in examples.answerable} == {"cuad/Expiration Date"}


def test_documents_for_tuning_are_not_trained_on(pack: Pack) -> None:
    examples = Examples(pack)
    tuning = set(pack.documents_of("dev").tolist())
    assert tuning
    assert not tuning & {row.document for row in [*examples.answerable, *examples.impossible]}
    assert not tuning & set(pack.passages[examples.headings[:, 1], 0].tolist())


def test_test_wordings_are_never_drawn(pack: Pack) -> None:
    drawn = {int(query) for numbers in Examples(pack).wordings.values() for query in numbers}
    assert {int(role) for role in pack.queries[sorted(drawn), 2]} == {0, 1}


def test_a_passage_that_may_answer_is_not_held_against_a_question(pack: Pack) -> None:
    examples = Examples(pack, split=("train", "dev"))
    rows = [row for row in examples.answerable if row.kind == 0]
    query = int(pack.queries[examples.wordings[0][0], 0])
    answers = np.array([rows[0].answers[0]])

    def loss(other: int) -> float:
        batch = Batch(np.array([query]), np.array([0]), np.array([-1]), answers, np.array([other]))
        encoder = Encoder(tiny_weights(), rank=1, seed=0)
        texts = Texts(pack.tokens, pack.ends, CPU)
        with torch.no_grad():
            return float(compute_contrast(encoder, texts, batch, examples, QUICK, encoder.merged()))

    assert loss(int(rows[1].answers[0])) == 0  # another contract's governing law: nothing is left to compare with
    assert loss(int(rows[0].others[0])) > 0


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """A user's own bundle, whose questions have no known kind."""
    folder = tmp_path_factory.mktemp("own")
    return gather([write_contracts(folder / "deeds", name="deeds")], excluded=Excluded(), dev=0.3)


def test_questions_of_no_kind_are_trained_on_in_their_own_words(own: Pack) -> None:
    assert not own.kinds
    encoder = train_adapter(Ground(own, CPU), tiny_weights(), replace(QUICK, epochs=15))
    ahead = {}
    for strength in (0.0, 1.0):
        passages, queries = embed_all(encoder, Texts(own.tokens, own.ends, CPU), own, strength=strength)
        rows = Examples(own, split=("dev",)).answerable
        near = [(row, passages @ queries[row.query]) for row in rows]
        ahead[strength] = np.mean([float(n[row.answers].mean() - n[row.others].mean()) for row, n in near])
    assert ahead[1.0] > ahead[0.0] + 0.02
    recipe = reranker.Recipe(rank=4, epochs=12, batch=4, headings=0.0, rate=1e-2)
    judge, texts = train_reranker(Ground(own, CPU), tiny_weights(), recipe), Texts(own.tokens, own.ends, CPU)
    row = Examples(own).answerable[0]
    asked = torch.full((1 + len(row.others),), int(own.queries[row.query, 0]))
    with torch.no_grad():
        scores = judge.score(texts, asked, torch.tensor([int(row.answers[0]), *row.others.tolist()]))
    assert int(scores.argmax()) == 0


def test_a_question_of_no_kind_is_compared_with_its_own_document_alone(own: Pack) -> None:
    examples = Examples(own, split=("train", "dev"))
    row, other = examples.answerable[0], examples.answerable[-1]
    assert row.document != other.document

    def loss(passage: int) -> float:
        nothing = np.array([-1])
        asked = np.array([own.queries[row.query, 0]])
        batch = Batch(asked, nothing, nothing, row.answers[:1], np.array([passage]), {0: row.others})
        encoder = Encoder(tiny_weights(), rank=1, seed=0)
        with torch.no_grad():
            merged = encoder.merged()
            return float(compute_contrast(encoder, Texts(own.tokens, own.ends, CPU), batch, examples, QUICK, merged))

    assert loss(int(other.others[0])) == 0
    assert loss(int(row.others[0])) > 0


def test_a_query_on_clauses_is_asked_in_other_words_too(pack: Pack) -> None:
    library = Ground(pack, CPU).library
    assert library is not None
    texts = {int(pack.queries[other, 0]) for query in library.graded for other in library.words[query]}
    random = np.random.default_rng(1)
    drawn = {int(text) for _ in range(200) for text in library.draw(1, random).queries}
    assert drawn == texts
    assert len(texts) > len(library.graded) == 2
    kept = frozenset(int(query) for query in pack.also[:, 0])
    left = Ground(pack, CPU, kept_back=kept).library
    assert left is not None and len(left.words) == 1 and not kept & left.words.keys()


def test_folds_keep_every_query_once(pack: Pack) -> None:
    folds = [hold_out_queries(pack, 0.2, fold) for fold in range(5)]
    assert sorted(query for fold in folds for query in fold) == sorted({int(query) for query in pack.grades[:, 0]})


def test_pairs_are_joined_with_one_mark_between_them(pack: Pack) -> None:
    texts = Texts(pack.tokens, pack.ends, CPU)
    question, passage = int(pack.queries[0, 0]), 1
    ids, mask, types = texts.make_pairs(torch.tensor([question]), torch.tensor([passage]))
    first, second = pack.text(question).tolist(), pack.text(passage).tolist()
    expected = [CLS, *first, SEP, *second, SEP]
    filling = [0] * (-len(expected) % 16)
    assert ids[0].tolist() == expected + filling
    assert types[0].tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1) + filling
    assert mask[0].tolist() == [True] * len(expected) + [False] * len(filling)


def test_a_reranker_learns_whether_there_is_an_answer(pack: Pack) -> None:
    recipe = reranker.Recipe(rank=4, epochs=12, batch=4, headings=0.0, library=0.5, rate=1e-2)
    judge = train_reranker(Ground(pack, CPU), tiny_weights(), recipe)
    examples = Examples(pack)
    texts = Texts(pack.tokens, pack.ends, CPU)
    scores = {}
    for name, rows in (("yes", examples.answerable), ("no", examples.impossible)):
        query = [int(pack.queries[examples.wordings[row.kind][0], 0]) for row in rows]
        best = [int(row.answers[0]) if len(row.answers) else int(row.others[0]) for row in rows]
        with torch.no_grad():
            scores[name] = judge.score(texts, torch.tensor(query), torch.tensor(best))
    assert scores["yes"].min() > scores["no"].max()


def test_nothing_is_trained_on_a_pack_for_measuring(tmp_path: Path) -> None:
    measured = gather([write_contracts(tmp_path / "cuad")], excluded=Excluded(), measure=True)
    with pytest.raises(ToolkitError, match="for measuring"):
        train_adapter(Ground(measured, CPU), tiny_weights(), QUICK)
    with pytest.raises(ToolkitError, match="for measuring"):
        train_reranker(Ground(measured, CPU), tiny_weights(), reranker.Recipe())


def test_the_commands_write_weights_and_what_they_were_trained_on(
    tmp_path: Path, pack: Pack, common: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    made = ["--rank", "2", "--epochs", "1", "--batch", "4", "--leave-out", "Expiration Date"]
    assert adapter.main([*common, *made, "--out", str(tmp_path / "legal")]) == 0
    told = capsys.readouterr().out
    assert "dev, words not trained on: MiniLM" in told
    assert "kinds left out: adapter at 1" in told
    assert "each kind left out: adapter at 1\n  cuad/Expiration Date" in told
    record = json.loads((tmp_path / "legal.json").read_text(encoding="utf-8"))
    trained = {document["sha256"] for document in pack.documents if document["split"] == "train"}
    assert {digest for hashes in record["documents"].values() for digest in hashes} == trained
    assert record["left_out"] == ["Expiration Date"]
    low = read_tensors(tmp_path / "legal.safetensors")
    changed = merge(tiny_weights(), low)
    assert any(not np.array_equal(changed[name], tiny_weights()[name]) for name in changed)
    given = [*common, "--adapter", str(tmp_path / "legal.safetensors"), "--rank", "2", "--batch", "4"]
    assert reranker.main([*given, "--out", str(tmp_path / "judge")]) == 0
    assert "AUROC" in capsys.readouterr().out
    assert read_tensors(tmp_path / "judge.safetensors")["head.weight"].shape == (1, 64)
    assert adapter.main([*common, "--leave-out", "No Such Kind", "--out", str(tmp_path / "x")]) == 1
    assert "no such kind" in capsys.readouterr().err


def test_low_rank_weights_survive_half_precision(tmp_path: Path) -> None:
    judge = Judge(tiny_weights(), rank=3, seed=5)
    with torch.no_grad():
        for up in judge.encoder.up.values():
            up.normal_(generator=torch.Generator().manual_seed(1))
    arrays = export_lowrank(judge.encoder, 0.5)
    write_tensors(arrays, tmp_path / "low.safetensors", about={"format": "test"})
    back = read_tensors(tmp_path / "low.safetensors")
    assert back.keys() == arrays.keys()
    assert all(np.allclose(back[name], arrays[name], atol=2e-3) for name in arrays)
    name = judge.encoder.names[0]
    whole = judge.encoder.merged(0.5)[name].detach().numpy()
    assert np.allclose(merge(tiny_weights(), back)[f"{name}.weight"], whole, atol=5e-3)


def test_adapters_are_blended_in_their_shares(tmp_path: Path, common: list[str]) -> None:
    for name, seed in (("one", "1"), ("two", "2")):
        made = ["--rank", "2", "--epochs", "1", "--batch", "4", "--seed", seed]
        assert adapter.main([*common, *made, "--out", str(tmp_path / name)]) == 0
    files = [str(tmp_path / f"{name}.safetensors") for name in ("one", "two")]
    made = ["--shares", "0.5", "0.25", "--out", str(tmp_path / "both")]
    assert blend.main([*files, *made, "--rank", "4"]) == 0
    one, two, both = (read_tensors(tmp_path / f"{name}.safetensors") for name in ("one", "two", "both"))
    for name in [name.removesuffix(".up") for name in one if name.endswith(".up")]:
        wanted = sum(share * low[f"{name}.up"] @ low[f"{name}.down"] for share, low in ((0.5, one), (0.25, two)))
        assert np.allclose(both[f"{name}.up"] @ both[f"{name}.down"], wanted, atol=2e-3)
    record = json.loads((tmp_path / "both.json").read_text(encoding="utf-8"))
    assert [(part["share"], part["recipe"]["seed"]) for part in record["blend"]] == [(0.5, 1), (0.25, 2)]
    assert record["documents"] and record["strength"] == 1.0
    assert blend.main([*files, "--shares", "1", "--out", str(tmp_path / "none")]) == 1
    again = ["--shares", "0.5", "0.5", "--rank", "4", "--out", str(tmp_path / "again")]
    assert blend.main([str(tmp_path / "both.safetensors"), files[0], *again]) == 0
    parts = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))["blend"]
    assert [part["share"] for part in parts[0]["blend"]] == [0.5, 0.25] and parts[1]["recipe"]["seed"] == 1


def test_wrong_passages_are_drawn_from_the_first_of_the_embedder(pack: Pack) -> None:
    ground = Ground(pack, CPU)
    recipe = reranker.Recipe(rank=2, others=3, impossible=1.0, headings=0.0, library=0.0)
    far, near = (reranker.Groups(ground, tiny_weights(), replace(recipe, first=first)) for first in (40, 2))
    for some, few in zip([*far.hard, *far.lacking], [*near.hard, *near.lacking], strict=True):
        assert len(few) == min(2, len(some)) and set(few.tolist()) <= set(some.tolist())
    assert any(len(some) > 2 for some in far.hard), "the bound must leave something out"
    drawn = [group for batch in near.make_epoch(2) for group in batch]
    assert drawn and all(sum(share == 0 for share in group.shares) <= 2 for group in drawn)


def test_rerankers_are_blended_with_their_heads_and_measured(
    tmp_path: Path, common: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    low = ["--rank", "2", "--epochs", "1", "--batch", "4"]
    for name, seed in (("one", "1"), ("other", "2")):
        assert adapter.main([*common, *low, "--seed", seed, "--out", str(tmp_path / name)]) == 0
    on = {name: ["--adapter", str(tmp_path / f"{name}.safetensors")] for name in ("one", "other")}
    for name, seed, adapted in (("a", "1", "one"), ("b", "2", "one"), ("c", "3", "other")):
        assert reranker.main([*common, *on[adapted], *low, "--seed", seed, "--out", str(tmp_path / name)]) == 0
    a, b, c = (str(tmp_path / f"{name}.safetensors") for name in "abc")
    halves = ["--shares", "0.5", "0.5", "--rank", "4", "--out", str(tmp_path / "both")]
    assert blend.main([a, b, *halves]) == 0
    one, two, both = (read_tensors(Path(path)) for path in (a, b, str(tmp_path / "both.safetensors")))
    assert np.allclose(both["head.weight"], (one["head.weight"] + two["head.weight"]) / 2, atol=1e-3)
    capsys.readouterr()
    assert blend.main([a, c, *halves]) == 1
    assert "different adapters" in capsys.readouterr().err
    assert figures.main([*common, *on["one"], "--reranker", str(tmp_path / "both.safetensors")]) == 0
    assert "AUROC" in capsys.readouterr().out


def test_figures_of_weights_are_those_that_their_training_printed(
    tmp_path: Path, pack: Pack, common: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    made = ["--rank", "2", "--epochs", "2", "--batch", "4", "--keep-queries", "0.5", "--out", str(tmp_path / "one")]
    assert adapter.main([*common, *made]) == 0
    trained = [line for line in capsys.readouterr().out.splitlines() if " P@1 " in line or "nDCG" in line]
    measured = ["--adapter", str(tmp_path / "one.safetensors"), "--keep-queries", "0.5"]
    assert figures.main([*common, *measured]) == 0
    printed = [line for line in capsys.readouterr().out.splitlines() if " P@1 " in line or "nDCG" in line]
    assert printed == trained
    assert any("not trained on: adapter at 1: nDCG@5" in line for line in printed)
    record = json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))
    assert record["queries_kept_back"] == len(hold_out_queries(pack, 0.5)) > 0
    library = Ground(pack, CPU, kept_back=hold_out_queries(pack, 0.5)).library
    assert library and not hold_out_queries(pack, 0.5) & library.graded.keys()


def test_averaged_weights_take_the_place_of_the_last_ones(pack: Pack) -> None:
    last = train_adapter(Ground(pack, CPU), tiny_weights(), QUICK)
    mean = train_adapter(Ground(pack, CPU), tiny_weights(), replace(QUICK, average=0.9))
    size = [sum(float(p.detach().norm()) for p in encoder.up.values()) for encoder in (last, mean)]
    assert 0 < size[1] < size[0]  # all start from zero, so that a mean over the way lags behind


def test_a_question_without_an_answer_costs_by_its_best_score(pack: Pack) -> None:
    texts = Texts(pack.tokens, pack.ends, CPU)
    judge = Judge(tiny_weights(), rank=2, seed=1)
    group = reranker.Group(int(pack.queries[0, 0]), [0, 1], [0.0, 0.0])
    recipe = reranker.Recipe(sure=0.0, exists=1.0)
    with torch.no_grad():
        scores = judge.score(texts, torch.tensor([group.query] * 2), torch.tensor(group.passages))
        loss = reranker.compute_judged_loss(judge, texts, [group], recipe)
    assert float(loss) == pytest.approx(float(torch.log1p(torch.exp(scores).sum())), rel=1e-5)


def test_a_kind_has_its_name_with_and_without_its_benchmark() -> None:
    assert is_called("cuad/Rofr/Rofo/Rofn", {"Rofr/Rofo/Rofn"})
    assert is_called("cuad/Rofr/Rofo/Rofn", {"cuad/Rofr/Rofo/Rofn"})
    assert not is_called("cuad/Rofr/Rofo/Rofn", {"Rofn"})


def test_the_logistic_curve_is_the_one_that_drew_the_answers() -> None:
    random = np.random.default_rng(7)
    scores = random.normal(0, 3, 20_000)
    answerable = (random.random(20_000) < 1 / (1 + np.exp(-(0.7 * scores - 0.4)))).astype(float)
    assert calibrate.fit(scores, answerable) == pytest.approx((0.7, -0.4), abs=0.05)
    with pytest.raises(ToolkitError, match="only one kind"):
        calibrate.fit(scores, np.ones_like(scores))
    steep, _ = calibrate.fit(np.array([-1.0, 1.0]), np.array([0.0, 1.0]))  # nothing overlaps: the fit still ends
    assert 2 < steep < 100


def test_the_confidence_is_fitted_by_a_command(
    tmp_path: Path, pack: Pack, common: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    quick = ["--rank", "2", "--epochs", "1", "--batch", "4"]
    assert adapter.main([*common, *quick, "--out", str(tmp_path / "one")]) == 0
    on = ["--adapter", str(tmp_path / "one.safetensors")]
    assert reranker.main([*common, *quick, *on, "--out", str(tmp_path / "two")]) == 0
    both = [*on, "--reranker", str(tmp_path / "two.safetensors"), "--out", str(tmp_path / "confidence")]
    capsys.readouterr()
    assert calibrate.main([*common, *both, "--measure", str(tmp_path / "pack.npz")]) == 0
    told = capsys.readouterr().out
    record = json.loads((tmp_path / "confidence.json").read_text(encoding="utf-8"))
    assert f"slope {record['slope']:.4f}, offset {record['offset']:.4f}" in told
    dev = {number for number, document in enumerate(pack.documents) if document["split"] == "dev"}
    asked = [row for row in pack.rows.tolist() if row[0] in dev]
    assert record["fitted_on"]["documents"] == len({row[0] for row in asked})
    assert record["fitted_on"]["questions"] == 2 * len(asked)
    assert record["fitted_on"]["answerable"] == 2 * sum(not row[3] for row in asked)
    assert "fitted on: cuad, own words" in told
    assert "pack: cuad, test words" in told
    assert calibrate.main([*common, *both, "--fit-adapter", str(tmp_path / "one.safetensors")]) == 1
    assert "belong together" in capsys.readouterr().err


# ---------------------------------------------------------------- the reader


def test_a_reader_learns_the_words_of_answers_and_a_second_training_gives_the_same(pack: Pack) -> None:
    weights, recipe = tiny_weights(), reader.Recipe(rank=4, epochs=24, batch=4, rate=2e-2, average=0.0, hints=0.7)
    first, second = (reader.train_reader(Ground(pack, CPU), weights, weights, recipe) for _ in range(2))
    for name, array in reader.arrays_of(first).items():
        assert np.array_equal(array, reader.arrays_of(second)[name])
    windows = Windows(pack)
    rows = [row for row in Examples(pack).answerable if row.kind >= 0]
    asked = [
        (pack.text(int(pack.queries[Examples(pack).own[row.kind][0], 0])), windows.make_window(int(row.answers[0])))
        for row in rows
    ]
    found = list(reading.read(first, windows, asked))
    untrained = list(reading.read(Reader(weights, rank=4, seed=1), windows, asked))
    gold = [windows.gold[row.number].tolist() for row in rows]
    best, before = (
        np.mean(
            [
                reading.measure_overlap([span for span, _ in one.spans], some)
                for one, some in zip(told, gold, strict=True)
            ]
        )
        for told in (found, untrained)
    )
    assert best > before + 0.2


def test_labels_are_the_tokens_of_the_gold_and_wrong_windows_have_none(pack: Pack) -> None:
    windows, row = Windows(pack), Examples(pack).answerable[0]
    window = windows.make_window(int(row.answers[0]))
    inside = windows.mask_answers(row.number, window)
    [[start, end]] = windows.gold[row.number].tolist()
    assert windows.low[window.start : window.end][inside].min() == start
    assert windows.high[window.start : window.end][inside].max() == end
    assert not windows.mask_answers(row.number, windows.make_window(int(row.others[0]))).any()
    assert mark_edges(np.array([False, True, True])).tolist() == [[0, 0, 0], [1, 1, 0], [1, 0, 1]]


def test_a_window_has_the_rest_of_the_sentences_in_which_its_passage_begins_and_ends(pack: Pack) -> None:
    windows = Windows(pack)
    longer = 0
    for number, (document, start, end, *_) in enumerate(pack.passages.tolist()):
        window = windows.make_window(number)
        low, high = windows.low[window.start], windows.high[window.end - 1]
        whole = pack.sentences[number].tolist()
        assert window.document == document and whole[0] <= low <= start + 2 and end - 2 <= high <= whole[1]
        longer += high - low > end - start
    assert longer > len(pack.passages) / 4
    older = Windows(replace(pack, sentences=pack.sentences[:0]))
    assert older.make_window(0).end == older.ends[0]


def test_the_reader_is_trained_and_measured_by_commands(
    tmp_path: Path, common: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    adapter.main([*common, "--epochs", "1", "--rank", "4", "--out", str(tmp_path / "adapter")])
    stack = [*common, "--adapter", str(tmp_path / "adapter.safetensors")]
    reranker.main([*stack, "--rank", "4", "--out", str(tmp_path / "reranker")])
    stack += ["--reranker", str(tmp_path / "reranker.safetensors")]
    assert reader.main([*stack, "--epochs", "1", "--batch", "4", "--out", str(tmp_path / "reader")]) == 0
    record = json.loads((tmp_path / "reader.json").read_text(encoding="utf-8"))
    assert set(record["documents"]) == {"cuad"} and record["recipe"]["spans"] == 3.0
    capsys.readouterr()
    assert reading.main([*stack, "--reader", str(tmp_path / "reader.safetensors"), "--hints"]) == 0
    assert "cuad: 9 questions, F1" in capsys.readouterr().out
    again = ["--epochs", "1", "--batch", "4", "--seed", "2", "--out", str(tmp_path / "second")]
    assert reader.main([*stack, *again, "--start", str(tmp_path / "reader.safetensors")]) == 0
    files = [str(tmp_path / f"{name}.safetensors") for name in ("reader", "second")]
    assert blend.main([*files, "--shares", "0.5", "0.5", "--rank", "32", "--out", str(tmp_path / "blend")]) == 0
    sizes = [(tmp_path / f"{name}.safetensors").stat().st_size for name in ("reader", "blend")]
    assert sizes[1] < sizes[0], "a blend of readers is in 8 bits, as each of them, and has a lower rank"
    one, two, both = (read_tensors(Path(path)) for path in (*files, str(tmp_path / "blend.safetensors")))
    assert all(np.allclose(both[f"{head}.weight"], (one[f"{head}.weight"] + two[f"{head}.weight"]) / 2, atol=1e-3)
               for head in ("head", "says", "spans"))  # fmt: skip
    assert reading.main([*stack, "--reader", str(tmp_path / "blend.safetensors")]) == 0


def test_kinds_are_told_apart_and_written_with_their_questions(
    tmp_path: Path, common: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    adapter.main([*common, "--epochs", "1", "--rank", "4", "--out", str(tmp_path / "adapter")])
    given = [*common, "--adapter", str(tmp_path / "adapter.safetensors"), "--out", str(tmp_path / "kinds")]
    assert hints.main(given) == 0 and "taken for a kind" in capsys.readouterr().out
    record = json.loads((tmp_path / "kinds.json").read_text(encoding="utf-8"))
    assert record["kinds"]["cuad/Governing Law"] == "which state's or country's law governs it?"
    assert read_tensors(tmp_path / "kinds.safetensors")["weight"].shape[0] == len(record["kinds"])
    assert record["usual"].keys() == record["kinds"].keys() and any(record["usual"].values())
    spots = read_tensors(tmp_path / "kinds.safetensors")
    assert spots["spots.weight"].shape == spots["weight"].shape and spots["spots.bias"].shape == spots["bias"].shape


def test_passages_that_answer_a_kind_are_told_by_their_vectors() -> None:
    rows = [(document, kind, -1, int(document % 2 != kind)) for document in range(8) for kind in (0, 1)]
    passages = np.array([(document, 0, 1, 0, -1) for document in range(8) for _ in range(3)])
    gold = [(row, 3 * document, 1) for row, (document, _, _, impossible) in enumerate(rows) if not impossible]
    documents = [{"name": str(number), "source": "cuad", "split": "train"} for number in range(8)]
    none = np.zeros((0, 3), np.int64)
    pack = Pack(
        "training", documents, ["cuad/a", "cuad/b"], passages, none, np.array(rows), none, np.array(gold), none, none,
        np.zeros(0, np.uint16), np.zeros(0, np.int64),
    )  # fmt: skip
    vectors = torch.nn.functional.normalize(torch.randn(24, 16, generator=torch.Generator().manual_seed(3)), dim=1)
    for _, passage, _ in gold:
        vectors[passage] = torch.eye(16)[int(passages[passage, 0]) % 2]
    spots = hints.spot(pack, vectors, np.arange(6))
    odds = vectors.numpy() @ spots.weight.T + spots.bias
    assert (spots.slope > 0).all() and spots.offset.shape == (2,)
    assert odds[18].argmax() == 0 and odds[21].argmax() == 1, "of documents that were not learned from"
    assert odds[18, 0] > 0 > odds[18, 1] and odds[21, 1] > 0 > odds[21, 0]


def test_low_rank_weights_in_eight_bits_are_nearly_the_same(tmp_path: Path) -> None:
    arrays = {"a.up": np.random.default_rng(1).normal(size=(9, 4)), "head.weight": np.ones((1, 3))}
    write_tensors(arrays, tmp_path / "w.safetensors", about={}, eight=True)
    read = read_tensors(tmp_path / "w.safetensors")
    assert read.keys() == arrays.keys() == read_safetensors(tmp_path / "w.safetensors").keys()
    assert np.abs(read["a.up"] - arrays["a.up"]).max() < 0.01 * np.abs(arrays["a.up"]).max()
    assert np.array_equal(read["a.up"], read_safetensors(tmp_path / "w.safetensors")["a.up"])
