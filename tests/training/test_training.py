"""A small teacher and its students are trained on the CPU: their data, their files, and shipped weights."""

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import torch

from exhibit.schemas.errors import ToolkitError
from tests.training.material import tiny_weights, write_contracts, write_library, write_yes_no_questions
from training import confidence, ship, teach
from training.base import FILES, keep_words, read_base
from training.gather import Excluded, gather
from training.grades import Graded, Question, Weights, add_candidates, compute_taught_loss, list_questions, make_pages
from training.network import (
    Array,
    Encoder,
    Judge,
    Texts,
    export_difference,
    export_heads,
    export_lowrank,
    merge,
    read_tensors,
    write_tensors,
)
from training.pack import ROLES, Pack, list_rows, list_wordings, save_pack
from training.verdicts import Asked, draw_pair, list_asked, turn
from training.windows import Windows, mark_edges

pytestmark = pytest.mark.extra
CPU = torch.device("cpu")
torch.set_num_threads(1)  # a small network is slower on several threads


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    folder = tmp_path_factory.mktemp("bundles")
    return gather([write_contracts(folder / "cuad"), write_library(folder / "acord")], excluded=Excluded(), dev=0.3)


def make_head(seed: int) -> dict[str, np.ndarray]:
    """Return a small network with BERT's original head."""
    random = np.random.default_rng(seed)
    head = {"pooler.dense.weight": (32, 32), "head.weight": (1, 32), "pooler.dense.bias": 32, "head.bias": 1}
    return tiny_weights(seed=seed) | {n: random.standard_normal(shape).astype(np.float32) for n, shape in head.items()}


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory, pack: Pack) -> Path:
    """Return a folder that contains small initial weights and the output of the training program."""
    folder = tmp_path_factory.mktemp("taught")
    save_pack(pack, folder / "pack.npz")
    networks = {"minilm": tiny_weights(), "teacher": make_head(5)}
    write_tensors({f"{n}/{k}": a for n, some in networks.items() for k, a in some.items()}, folder / "base.safetensors")
    reader = teach.Reader(tiny_weights(), rank=2, seed=1)
    for name, file in FILES.items():
        heads = {"embedder": (), "reranker": ("head",), "reader": ("head", "says", "spans")}[name]
        path = folder / "models" / f"{file}.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_tensors(export_lowrank(reader.encoder) | export_heads(reader, *heads), path)
        record = {"sha256": name, "documents": {"cuad": ["one before"]}}
        path.with_suffix(".json").write_text(json.dumps(record), encoding="utf-8")
    command = ["--pack", "pack.npz", "--base", "base.safetensors", "--models", "models", "--out", "out"]
    places = [word if word.startswith("-") else str(folder / word) for word in command]
    assert teach.main([*places, "--device", "cpu", "--steps", "2", "--sample", "4"]) == 0
    return folder


def test_teach_writes_weights_and_tuning_results_of_each_student(taught: Path) -> None:
    record = json.loads((taught / "out" / "record.json").read_text(encoding="utf-8"))
    assert {f"{name}.safetensors" for name in (*FILES, "kinds")} == set(record["files"])
    assert all(record[name]["steps"] == 2 for name in ("teacher", *FILES))
    assert {"embedder before", "embedder x 0.5", "teacher", "reader", "reranker"} <= set(record["figures"])
    assert set(record["figures"]["reader"]) == {"cuad, own", "cuad, test"}
    low = read_tensors(taught / "out" / "embedder.safetensors")
    assert any(array.any() for name, array in low.items() if name.endswith(".up"))


def test_ship_averages_old_and_taught_weights(taught: Path, pack: Pack) -> None:
    command = ["--before", "models", "--taught", "out", "--pack", "pack.npz", "--out", "shipped"]
    places = [word if word.startswith("-") else str(taught / word) for word in command]
    assert ship.main([*places, "--share", "0.5", "--only", *FILES]) == 0
    for name, file in FILES.items():
        before, after, mixed = (
            merge(tiny_weights(), read_tensors(path / f"{stem}.safetensors"))
            for path, stem in ((taught / "models", file), (taught / "out", name), (taught / "shipped", file))
        )
        query = "encoder.layer.1.attention.self.query.weight"
        added = after[query] - tiny_weights()[query]
        assert np.allclose(mixed[query], before[query] + 0.5 * added, atol=2e-3)
        if name != "embedder":
            mean = (before["head.weight"] + after["head.weight"]) / 2
            assert np.allclose(mixed["head.weight"], mean, atol=2e-3)
        record = json.loads((taught / "shipped" / f"{file}.json").read_text(encoding="utf-8"))
        assert record["start"]["sha256"] == name and record["taught"]["teacher"]["steps"] == 2
        trained = {d["sha256"] for d in pack.documents if d["split"] == "train" and d["source"] == "cuad"}
        assert set(record["documents"]["cuad"]) == {"one before", *trained}


def test_ship_writes_the_reranker_teacher_as_trained_by_the_recipe_careful(taught: Path) -> None:
    command = ["--pack", "pack.npz", "--base", "base.safetensors", "--models", "models", "--out", "deep"]
    places = [word if word.startswith("-") else str(taught / word) for word in command]
    assert teach.main([*places, "--only", "careful", "--device", "cpu", "--steps", "2", "--sample", "4"]) == 0
    command = ["--before", "models", "--taught", "deep", "--pack", "pack.npz", "--out", "shipped"]
    places = [word if word.startswith("-") else str(taught / word) for word in command]
    assert ship.main([*places, "--only", "teacher"]) == 0
    path = taught / "shipped" / "rerankers" / "weights" / "teacher.safetensors"
    low, record = read_tensors(path), json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    rank = teach.RECIPES["careful"].rank
    assert low["encoder.layer.1.output.dense.down"].shape == (rank, 128) and low["head.weight"].shape == (1, 32)
    assert record["taught"]["careful"]["steps"] == 2 and {"slope", "offset"} <= set(record)
    assert record["documents"]["cuad"] and not (taught / "deep" / "reader.safetensors").exists()


def test_teach_and_ship_write_every_trained_matrix_of_the_yes_no_model(
    taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[Encoder] = []

    def export(encoder: Encoder, base: Mapping[str, Array], rank: int) -> dict[str, Array]:
        trained.append(encoder)
        return export_difference(encoder, base, rank)

    monkeypatch.setattr(teach, "export_difference", export)
    pack = gather([write_yes_no_questions(tmp_path / "people")], excluded=Excluded(), dev=0.3)
    save_pack(pack, tmp_path / "pack.npz")
    command = ["--pack", str(tmp_path / "pack.npz"), "--base", str(taught / "base.safetensors")]
    command += ["--models", str(taught / "models"), "--out", str(tmp_path / "out")]
    assert teach.main([*command, "--only", "verdicts", "--device", "cpu", "--steps", "2"]) == 0
    record = json.loads((tmp_path / "out" / "record.json").read_text(encoding="utf-8"))
    assert 0 <= record["figures"]["verdicts"] <= 1 and record["verdicts"]["steps"] == 2
    command = [
        "--before",
        str(taught / "models"),
        "--taught",
        str(tmp_path / "out"),
        "--out",
        str(tmp_path / "shipped"),
    ]
    assert ship.main([*command, "--pack", str(tmp_path / "pack.npz"), "--only", "verdicts"]) == 0
    low = read_tensors(tmp_path / "shipped" / "weights" / "verdicts.safetensors")
    assert low["encoder.layer.1.output.dense.up"].any() and low["head.weight"].shape == (1, 64)
    layers = {
        name: array for name, array in read_base(taught / "base.safetensors")["minilm"].items() if ".layer." in name
    }
    changed = {name for name, array in layers.items() if (trained[0].get_weight(name).detach().numpy() != array).any()}
    assert changed == {name for name, array in layers.items() if array.ndim == 2}, "only matrices are written"


def test_list_asked_returns_the_clause_of_each_yes_no_question(tmp_path: Path) -> None:
    pack = gather([write_yes_no_questions(tmp_path / "people")], excluded=Excluded(), dev=0.0)
    asked = list_asked(pack, "train")
    assert len(asked) == 12 and sum(question.yes for question in asked) == 6
    clauses = {tuple(question.text[question.clause].tolist()) for question in asked}
    [clause] = clauses
    assert len(clause) == 8, "the clause excludes the country"


def test_turn_negates_a_clause_by_adding_or_removing_a_single_denial() -> None:
    may, pay, no, not_ = 2089, 3477, 2053, 2025
    assert turn(np.array([may, pay])).tolist() == [may, not_, pay]
    assert turn(np.array([may, not_, pay])).tolist() == [may, pay]
    assert turn(np.array([may, pay, may])) is None and turn(np.array([may, no, pay])) is None
    asked = Asked(np.array([7]), np.array([1, may, pay, 2]), slice(1, 3), yes=True)
    drawn = [draw_pair(asked, np.random.default_rng(seed)) for seed in range(40)]
    assert {yes for *_, yes in drawn} == {True, False}
    assert all(yes != (not_ in words) for _, words, yes in drawn)
    assert draw_pair(asked, None)[1].tolist() == [may, pay]


def test_training_encoder_gives_the_same_vectors_as_the_pipeline_model() -> None:
    from tokenizers import Tokenizer

    from exhibit.models.embedders.minilm import MiniLM
    from exhibit.models.network import MODEL, TOKENIZER, find_file

    words = ["This Agreement is governed by the law of Norway.", "who pays?"]
    tokenizer = Tokenizer.from_file(str(find_file(TOKENIZER)))
    tokenizer.no_padding()
    ids = [encoding.ids[1:-1] for encoding in tokenizer.encode_batch(words)]
    tokens = np.concatenate([np.array(some, np.uint16) for some in ids])
    texts = Texts(tokens, np.cumsum([len(some) for some in ids]), CPU)
    with torch.no_grad():
        vectors = Encoder(read_tensors(find_file(MODEL)), rank=1, seed=0).embed(texts, torch.arange(2)).numpy()
    assert np.allclose(vectors, MiniLM("fp32").embed(words, role="query"), atol=1e-4)


def test_training_excludes_tuning_documents_and_test_wordings(pack: Pack) -> None:
    tuning = set(pack.documents_of("dev").tolist())
    questions = list_questions(pack, np.random.default_rng(0), others=1.0, headings=1.0)
    assert tuning and not tuning & {question.document for question in questions}
    assert "test" not in {ROLES[pack.queries[question.query, 2]] for question in questions}
    assert {row.number >= 0 for row in list_rows(pack)} == {True}


def test_candidates_exclude_passages_next_to_the_gold(pack: Pack) -> None:
    random = np.random.default_rng(0)
    questions = [q for q in list_questions(pack, random, others=0, headings=0) if len(q.gold)]
    vectors = torch.randn(len(pack.passages), 4), torch.randn(len(pack.queries), 4)
    add_candidates(questions, pack, *vectors, random)
    for question in questions:
        assert question.passages[: len(question.gold)].tolist() == question.gold.tolist()
        assert len(set(question.passages.tolist())) == len(question.passages)
        assert {int(at) + step for at in question.gold for step in (-1, 1)} & set(question.barred.tolist())
        assert not set(question.barred.tolist()) & set(question.passages.tolist())


def test_training_loss_is_lower_if_scores_agree_with_teacher_and_gold() -> None:
    gold = torch.tensor([[1.0, 0, 0], [0, 0, 0]])
    scores = torch.tensor([[4.0, 1, -3], [-4, -5, -6]])
    batch = Graded([], np.zeros((2, 3), np.int64), gold.bool().numpy(), scores, gold, torch.ones(2))
    agrees, differs = (float(compute_taught_loss(s, batch, Weights())) for s in (scores, scores.flip(1)))
    assert agrees < differs


def test_make_pages_derives_targets_from_teacher_probabilities_and_gold() -> None:
    first = Question(0, 7, 0, np.array([3]), passages=np.array([3, 5]), scores=np.array([0.0, 0.0], np.float32))
    second = Question(1, 7, passages=np.array([4]), scores=np.array([-9.0], np.float32))
    [page] = make_pages([first, second], np.random.default_rng(0), size=16, gold=0.4)
    at = page.questions.index(first)
    assert page.passages.tolist() == [3, 4, 5]
    assert page.target[at].tolist() == pytest.approx([0.7, 0, 0.3])
    assert page.worth[at] == 1 and page.worth[1 - at] == pytest.approx(0.3, abs=1e-3)


def test_training_judge_with_rank_0_trains_all_layers_but_not_embeddings() -> None:
    judge = Judge(tiny_weights(), rank=4, seed=1)
    assert {name for name, parameter in judge.named_parameters() if parameter.requires_grad} >= {"head.weight"}
    full = Judge(tiny_weights(), rank=0, seed=1)
    names = [name for name, parameter in full.named_parameters() if parameter.requires_grad]
    assert any("encoder_layer_0" in name for name in names) and not any("embeddings" in name for name in names)


def test_keep_words_sets_vectors_of_unused_words_to_zero(tmp_path: Path) -> None:
    kept = keep_words(tiny_weights(), np.array([5, 9]))
    vectors = kept["embeddings.word_embeddings.weight"]
    assert vectors[[5, 9]].all() and not vectors[6].any()
    write_tensors({"minilm/a": np.ones((2, 2), np.float32)}, tmp_path / "base.safetensors")
    assert read_base(tmp_path / "base.safetensors")["minilm"]["a"].tolist() == [[1, 1], [1, 1]]


def test_list_wordings_returns_own_wording_and_training_wordings_separately(pack: Pack) -> None:
    own, train = list_wordings(pack, "own"), list_wordings(pack, "train")
    assert len(own[0]) == 1 and len(train[0]) >= 12 and not set(own[0]) & set(train[0])


def test_mask_answers_marks_only_gold_tokens(pack: Pack) -> None:
    windows, row = Windows(pack), list_rows(pack)[0]
    window = windows.make_window(int(row.answers[0]))
    inside = windows.mask_answers(row.number, window)
    [[start, end]] = windows.gold[row.number].tolist()
    assert windows.low[window.start : window.stop][inside].min() == start
    assert windows.high[window.start : window.stop][inside].max() == end
    span = pack.passages_of(row.document)
    wrong = next(n for n in range(span.start, span.stop) if n not in {*row.answers.tolist(), *row.barred.tolist()})
    assert not windows.mask_answers(row.number, windows.make_window(wrong)).any()
    assert mark_edges(np.array([False, True, True])).tolist() == [[0, 0, 0], [1, 1, 0], [1, 0, 1]]


def test_confidence_is_fitted_only_to_rows_of_tuning_documents(
    tmp_path: Path, pack: Pack, capsys: pytest.CaptureFixture[str]
) -> None:
    save_pack(pack, tmp_path / "pack.npz")
    dev, trained = (next(d["name"] for d in pack.documents if d["split"] == split) for split in ("dev", "train"))
    rows = [
        {"reply": {"confidence": sure}, "is_impossible": sure < 0.5, "filename": name}
        for name, sures in ((dev, (0.7, 0.9, 0.6, 0.2, 0.4)), (trained, (0.5,)))
        for sure in sures
    ]
    results = tmp_path / "eval_results.jsonl"
    results.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    given = [str(results), "--pack", str(tmp_path / "pack.npz"), "--out", str(tmp_path / "confidence.json")]
    assert confidence.main(given) == 0
    assert "5 questions, AUROC 1.000" in capsys.readouterr().out
    fitted = json.loads((tmp_path / "confidence.json").read_text(encoding="utf-8"))["alone"]
    assert fitted["questions"] == 5 and fitted["answerable"] == 3
    results.write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    assert confidence.main(given) == 1


def test_gather_refuses_a_bundle_used_for_measurement(tmp_path: Path) -> None:
    with pytest.raises(ToolkitError, match="must not be used for training"):
        gather([write_contracts(tmp_path / "mini", name="legalbenchrag")], excluded=Excluded())
