"""The stages that can lose a gold passage, and the parsed texts and chunks of other tools."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.evaluate import evaluate
from exhibit.evaluation.outcomes import find_outcome
from exhibit.evaluation.replies import read_reply
from exhibit.evaluation.runs import RunResults
from exhibit.evaluation.scoring import format_row
from exhibit.evaluation.settings import parse_settings
from exhibit.evaluation.stages import (
    GoldStages,
    ceilings_of,
    find_first_loss,
    find_in_chunks,
    find_in_text,
    follow_gold,
    read_chunks,
    read_parsed_folder,
    stages_of,
)
from exhibit.evidence import Document, Span
from exhibit.evidence.place import blank_markup
from exhibit.models.embedders.hashing import Hashing
from exhibit.schemas.errors import ToolkitError
from exhibit.schemas.run import QUESTION, Outcome
from exhibit.viewer.results import main as results
from tests.rag.bundles import row, rows_of, write_files

BERTH = "The Master shall berth the vessel at the north quay and pay harbour dues of 640 crowns a week"
PROVISO = ", provided that no dues are owed while the quay is closed by ice."
LIGHTS = "The Keeper trims the lamps of both lighthouses each evening and enters the hour in the book of lights."
TOLL = "Toll in crowns\nSloop 12\nBrig 30\nBarque 45"
PORT = "\n\n".join(("HARBOUR RULES OF SKERRYVOE", BERTH + PROVISO, LIGHTS, TOLL, "Signed at Skerryvoe by the Reeve."))
DOCUMENT = Document("harbour.txt", PORT)


def gold(words: str, text: str = PORT) -> GoldPassage:
    start = text.index(words)
    return GoldPassage("harbour.txt", words, ((Span(start, start + len(words)),),))


def parsed(text: str) -> Document:
    return Document("harbour.txt", blank_markup(text))


def follow(words: str, *lists: list[Passage] | None, **known: Any) -> GoldStages:
    """Return each stage's result for gold; `lists` are the passages retrieved, reranked, in the context and cited."""
    names = ("retrieved", "reranked", "context", "cited")
    return follow_gold(gold(words), dict(zip(names, lists, strict=False)), **known)


def passage(words: str) -> Passage:
    start = PORT.index(words)
    return Passage(words, "harbour.txt", Span(start, start + len(words)))


def test_gold_absent_from_the_document_is_lost_at_the_page_stage() -> None:
    absent = GoldPassage("harbour.txt", "No such words stand in these rules at all.", absent=True)
    assert follow_gold(absent, {})["lost_at"] == "page"
    assert follow(LIGHTS)["lost_at"] is None
    assert follow_gold(GoldPassage("harbour.txt", None), {}) == {"lost_at": None, "reason": ""}


@pytest.mark.parametrize("form", [
    PORT, PORT.replace(LIGHTS, f"**{LIGHTS}**").replace(" lamps ", " <b>lamps</b> "),
    PORT.replace("lighthouses", "light-\nhouses"), "Another parser puts this line in front.\n" + PORT,
])  # fmt: skip
def test_find_in_text_ignores_markup_and_line_breaks(form: str) -> None:
    assert find_in_text(gold(LIGHTS), DOCUMENT, parsed(form)).share == 1.0


@pytest.mark.parametrize("dropped", ["both", "each evening", "640", "closed by ice"])
def test_find_in_text_counts_words_dropped_by_parser(dropped: str) -> None:
    clause = LIGHTS if dropped in LIGHTS else BERTH + PROVISO
    share = find_in_text(gold(clause), DOCUMENT, parsed(PORT.replace(f" {dropped}", ""))).share
    whole, letters = (sum(map(str.isalnum, words)) for words in (clause, dropped))
    assert share == pytest.approx(1 - letters / whole, abs=0.02)
    assert follow(clause, in_text=share)["lost_at"] is None  # the text contains most of it


def test_find_in_text_returns_zero_for_a_dropped_clause() -> None:
    assert find_in_text(gold(LIGHTS), DOCUMENT, parsed(PORT.replace(LIGHTS, ""))) == (0.0, ())
    assert follow(LIGHTS, in_text=0.0)["lost_at"] == "text"


def test_find_in_text_returns_none_for_short_gold_unless_absent_from_text() -> None:
    short = gold("north quay")
    assert find_in_text(short, DOCUMENT, DOCUMENT) is None
    assert find_in_text(short, DOCUMENT, parsed(LIGHTS)) == (0.0, ())


def test_find_in_text_chooses_repetition_of_clause_at_the_position_of_the_gold() -> None:
    text = "\n\n".join((LIGHTS, BERTH, "x " * 900, LIGHTS, "The end."))
    second = text.rindex(LIGHTS)
    last = GoldPassage("harbour.txt", LIGHTS, ((Span(second, second + len(LIGHTS)),),))
    found = find_in_text(last, Document("harbour.txt", text), parsed(text))
    assert found.places == ((Span(second, second + len(LIGHTS)),),)


def halves(words: str) -> list[tuple[Span, ...]]:
    """Return two chunks that split the rules in the middle of these words."""
    middle = PORT.index(words) + len(words) // 2
    return [(Span(0, middle),), (Span(middle, len(PORT)),)]


@pytest.mark.parametrize("words", [LIGHTS, BERTH + PROVISO, TOLL])
def test_find_in_chunks_reports_gold_cut_by_every_chunk(words: str) -> None:
    share = find_in_chunks(gold(words).places, halves(words), PORT)
    assert share == pytest.approx(0.5, abs=0.06)
    assert follow(words, in_chunks=share)["lost_at"] == "chunks"
    assert find_in_chunks(gold(words).places, [*halves(words), (Span(0, len(PORT)),)], PORT) == 1.0
    assert follow(words, in_chunks=1.0)["lost_at"] is None


def test_find_in_chunks_requires_all_spans_of_the_gold_in_a_single_chunk() -> None:
    assert find_in_chunks(gold(LIGHTS).places, [(Span(0, 40),)], PORT) == 0.0
    assert follow(LIGHTS, in_chunks=0.0)["reason"] == "in no chunk"
    start, end = gold(LIGHTS).places[0][0]
    assert find_in_chunks(gold(LIGHTS).places, [(Span(start, end - 1),)], PORT) == 1.0, "only the full stop is cut off"
    place = (*gold(BERTH).places[0], *gold(TOLL).places[0])
    assert find_in_chunks([place], [place], PORT) == 1.0
    assert find_in_chunks([place], [place[:1], place[1:]], PORT) < 1.0, "no chunk has both spans"


SIGNED = "Signed at Skerryvoe by the Reeve."
LIST = [passage(BERTH), passage(SIGNED), passage(LIGHTS), passage(TOLL)]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [(Outcome.WRONG, "the answer is wrong"), (Outcome.WRONGLY_REFUSED, "the system refused"), (Outcome.NOT_JUDGED, "")],
)
def test_loss_at_answer_stage_takes_its_reason_from_the_outcome(outcome: Outcome, reason: str) -> None:
    assert follow(LIGHTS, LIST, LIST, LIST, LIST[2:3], outcome=outcome)["reason"] == reason


def test_follow_gold_reports_gold_lost_in_retrieval_even_if_the_answer_is_right() -> None:
    # the answer may come from another passage
    assert follow(LIGHTS, LIST[:2], outcome=Outcome.RIGHT)["lost_at"] == "retrieved"
    assert follow(LIGHTS, LIST, LIST, LIST, LIST[2:3], outcome=Outcome.RIGHT)["lost_at"] is None


def test_follow_gold_ignores_loss_before_retrieval_when_gold_is_retrieved() -> None:
    middle = len(LIGHTS) // 2
    both = [passage(LIGHTS[:middle]), passage(LIGHTS[middle:])]
    assert follow(LIGHTS, both, in_chunks=0.5)["lost_at"] is None
    assert follow(LIGHTS, LIST[:2], in_chunks=0.5)["lost_at"] == "chunks"


def test_follow_gold_leaves_unreported_stages_unknown() -> None:
    assert [*follow(LIGHTS, LIST)] == ["lost_at", "reason", "page", "retrieved"]
    unplaced = replace(Passage("words of nobody knows where"), unplaced=True)
    assert "retrieved" not in follow(LIGHTS, [unplaced])


def test_stage_ceiling_is_the_share_of_gold_that_reaches_the_stage() -> None:
    absent = {"lost_at": "page", "reason": "", "page": False}
    stages = [follow(LIGHTS, LIST, LIST), follow(TOLL, LIST, LIST[:3]), follow(BERTH, LIST[1:], LIST[1:]), absent]
    left = ceilings_of(stages)
    assert left["ceiling_page"] == 0.75
    assert left["ceiling_retrieved"] == pytest.approx(2 / 3)
    assert left["ceiling_reranked"] == pytest.approx(1 / 3)


def test_gold_stages_row_omits_unknown_stages() -> None:
    row = follow(BERTH + PROVISO, LIST[1:3], in_chunks=0.5, outcome=Outcome.WRONG)
    assert row == {
        "lost_at": "chunks", "reason": "cut", "page": True, "chunks": {"share": 0.5}, "retrieved": {"rank": None},
        "answered": "wrong",
    }  # fmt: skip


CASE = Case(7, "Who trims the lamps?", "The Keeper.", (gold(LIGHTS),), filename="harbour.txt")


def answered(*golds: GoldPassage, **reply: Any) -> Case:
    given = {"answer": "The Keeper trims the lamps [3].", "passages": tuple(LIST), **reply}
    return replace(CASE, gold=golds or CASE.gold, reply=Reply(**given))


@pytest.mark.parametrize(
    ("reply", "lost_at"),
    [
        ({"selected": 3}, None),
        ({"reranked": (3, 1, 2), "selected": 3, "answer": "The Keeper."}, None),
        ({"reranked": (1, 2, 4), "answer": "The Keeper."}, "reranked"),
        ({"context": (1, 2), "answer": "The Keeper."}, "context"),
        ({"passages": tuple(LIST[:2]), "answer": "The Master [1]."}, "retrieved"),
        ({"answer": "The Keeper trims the lamps [1]."}, "cited"),
        ({"answer": "Not found in provided documents"}, "answered"),
        ({"passages": (), "answer": "The Keeper."}, None),
    ],
)
def test_field_lost_at_names_the_stage_that_loses_the_gold(reply: dict[str, Any], lost_at: str | None) -> None:
    case = answered(**reply)
    (stages,) = stages_of(case, outcome=find_outcome(case).outcome)
    assert stages["lost_at"] == lost_at


def test_impossible_and_failed_questions_have_no_gold_stages() -> None:
    assert stages_of(replace(answered(), is_impossible=True)) == []
    assert stages_of(answered(error="timeout")) == []


def test_find_first_loss_returns_earliest_stage_of_several_gold_passages() -> None:
    absent = GoldPassage("harbour.txt", "Nobody wrote these words.", absent=True)
    both = stages_of(answered(*CASE.gold, gold(BERTH), passages=tuple(LIST[1:]), answer="The Keeper."))
    assert [stages["lost_at"] for stages in both] == [None, "retrieved"]
    assert find_first_loss(both) == "retrieved"
    assert find_first_loss(stages_of(answered(absent, gold(BERTH), passages=tuple(LIST[1:])))) == "page"
    assert find_first_loss([]) is None


def test_format_row_writes_gold_stages_and_reranked_numbers() -> None:
    case = answered(answer="The Keeper.", reranked=(2, 1))
    finding = find_outcome(case)
    fields = json.loads(format_row(case, finding, stages_of(case, outcome=finding.outcome), tag="t"))
    fields.pop("trec")
    row = QUESTION.validate_json(json.dumps(fields), strict=True)
    assert row.lost_at == "reranked"
    assert row.gold_stages[0]["reranked"] == {"rank": None, "before": 3}
    assert row.reply.reranked == [2, 1]


@pytest.mark.parametrize(
    "reranked", [[3, 1], [LIGHTS, BERTH], [{"content": f" {LIGHTS}"}, {"text": "of no list"}, {"text": BERTH}]]
)
def test_read_reply_matches_reranked_passages_by_number_or_text(reranked: list[object]) -> None:
    row = {"id": 7, "answer": "The Keeper.", "passages": [BERTH, SIGNED, LIGHTS, TOLL], "reranked": reranked}
    assert read_reply(row, lambda _: None).reranked == (3, 1)
    assert read_reply({**row, "reranked": None}, lambda _: None).reranked is None
    assert read_reply({**row, "reranked": [17, 4]}, lambda _: None).reranked == (4,)


def resolve_name(name: str) -> str | None:
    return "harbour.pdf" if Path(name).stem.split(".")[0].lower() == "harbour" else None


def test_read_parsed_folder_blanks_markup_and_rejects_two_texts_of_a_document(tmp_path: Path) -> None:
    (tmp_path / "harbour").mkdir()
    (tmp_path / "harbour" / "harbour.md").write_text(f"# Harbour\n\n<!-- image -->\n\n{LIGHTS}", encoding="utf-8")
    (tmp_path / "lamps.md").write_text("Lamps.", encoding="utf-8")
    (tmp_path / "harbour.png").write_bytes(b"x")
    texts = read_parsed_folder(tmp_path, resolve_name)
    assert texts["harbour.pdf"].text.split() == ["#", "Harbour", *LIGHTS.split()], "the comment is blanked"
    (tmp_path / "harbour.txt").write_text(LIGHTS, encoding="utf-8")
    with pytest.raises(ToolkitError, match="remove one of them"):
        read_parsed_folder(tmp_path, resolve_name)
    with pytest.raises(ToolkitError, match="nowhere: no file has the name of a document"):
        read_parsed_folder(tmp_path / "nowhere", resolve_name)


CHUNKS: list[dict[str, object]] = [
    {"text": LIGHTS, "filename": "harbour.pdf", "start": 0, "end": len(LIGHTS)},
    {"page_content": LIGHTS, "metadata": {"source": "/data/harbour.pdf"}},
    {"chunk_text": LIGHTS, "document": "harbour.pdf", "char_start": 4, "char_end": 9},
]


@pytest.mark.parametrize("line", CHUNKS)
@pytest.mark.parametrize("ending", ["jsonl", "json", "parquet"])
def test_read_chunks_reads_text_filename_and_span_from_known_keys(
    line: dict[str, object], ending: str, tmp_path: Path
) -> None:
    path = tmp_path / f"chunks.{ending}"
    if ending == "parquet":
        parquet.write_table(pa.Table.from_pylist([line]), path)
    else:
        path.write_text(json.dumps(line if ending == "jsonl" else [line]), encoding="utf-8")
    (chunk,) = read_chunks(path, resolve_name)
    assert (chunk.text, chunk.filename) == (LIGHTS, "harbour.pdf")
    start = line.get("start", line.get("char_start"))
    assert (chunk.span.start if chunk.span else None) == start


def test_read_chunks_rejects_missing_file_and_file_without_chunks(tmp_path: Path) -> None:
    (tmp_path / "chunks.jsonl").write_text("not JSON", encoding="utf-8")
    with pytest.raises(ToolkitError, match="not JSON"):
        read_chunks(tmp_path / "chunks.jsonl", resolve_name)
    with pytest.raises(ToolkitError, match="no such file"):
        read_chunks(tmp_path / "nothing.jsonl", resolve_name)


FARES = "Fares in shillings\nFoot passenger 2\nHorse and rider 9\nCart of peat 14"
CLAUSES = (
    "The Ferryman crosses the Sound of Uist at every slack tide between sunrise and the lighting of the lamps, "
    "provided that no crossing is owed in fog.",
    FARES,
    "The Tacksman keeps two boats of not less than twenty feet in repair and shows them to the Factor each Lammas.",
    "A passenger who brings a beast aboard without a halter pays half a shilling to the poor box of the parish.",
)
TEXT = "\n\n".join(("FERRY TACK OF THE SOUND", *CLAUSES, "Set down at Lochmaddy.")) + "\n"
ANSWERS = {
    "When does the Ferryman cross?": "At every slack tide.",
    "What are the fares?": "Two to fourteen shillings.",
    "What does the Tacksman keep?": "Two boats.",
    "What of a beast aboard?": "Half a shilling.",
}
Run = Callable[..., RunResults]


def answer_alone(question: str) -> dict[str, Any]:
    """Reply with the right answer and a citation, but without passages."""
    return {"answer": f"{ANSWERS[question]} [{list(ANSWERS).index(question) + 1}]"}


def rerank(*numbers: int) -> Callable[[str], dict[str, Any]]:
    """Return a system that retrieves all clauses, reranks them in this way, and cites none."""
    passages = [{"filename": "tack.txt", "text": clause} for clause in CLAUSES]
    return lambda question: {"answer": ANSWERS[question], "passages": passages, "reranked": list(numbers)}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A function that evaluates a system, or the built-in pipeline if it is None, on a bundle of one document."""
    asked = enumerate(zip(ANSWERS.items(), CLAUSES, strict=True))
    rows = [row(id, *answer, {"filename": "tack.txt", "text": clause}) for id, (answer, clause) in asked]
    bundle = write_files(tmp_path / "ferry", {"tack.txt": TEXT}, rows)

    def start(function: Any = answer_alone, *, name: str = "run", notes: Any = None, **options: Any) -> RunResults:
        target = {"target": "function"} if function else {"llm": "extractive", "chunk_size": 90}
        places = {"dataset_paths": [str(bundle)], "output_dir": tmp_path / "results", "run_name": name}
        settings = parse_settings({**places, "report_cases": 0, "threads": 1, **target, **options})
        parts = {"cache": tmp_path / "cache", "embedder": Hashing(256)} | ({"function": function} if function else {})
        return evaluate(settings, parts=parts, warn=(notes if notes is not None else []).append)

    return start


def stages_in(done: RunResults) -> list[dict[str, Any]]:
    """Return the stages of the single gold passage of each question."""
    return [row["gold_stages"][0] for row in rows_of(done.folder / "ferry" / "eval_results.jsonl")]


def losses(done: RunResults) -> list[str | None]:
    return [stages["lost_at"] for stages in stages_in(done)]


@pytest.fixture
def parsed_folder(tmp_path: Path) -> Callable[..., Path]:
    def write(text: str, name: str = "tack.md") -> Path:
        (tmp_path / "parsed").mkdir()
        (tmp_path / "parsed" / name).write_text(text, encoding="utf-8")
        return tmp_path / "parsed"

    return write


def write_chunks(path: Path, *texts: str) -> Path:
    path.write_text("".join(json.dumps({"filename": "tack.txt", "text": text}) + "\n" for text in texts), "utf-8")
    return path


def test_table_missing_from_parsed_text_is_lost_at_text_stage(run: Run, parsed_folder: Callable[..., Path]) -> None:
    # without passages: a list with the table would prove that the parser did not lose it
    done = run(parsed=parsed_folder(TEXT.replace(FARES, "")))
    assert losses(done) == [None, "text", None, None]
    lost = stages_in(done)[1]
    assert (lost["text"], lost["reason"]) == ({"share": 0.0}, "absent from the text")
    assert done.means["ceiling_text"].mean == 0.75


def test_parsed_folder_of_other_bundle_stops_run_before_start(
    run: Run, parsed_folder: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(ToolkitError, match="has the name of a document of the bundle"):
        run(parsed=parsed_folder("A lease.", "lease.md"))
    assert not (tmp_path / "results" / "run").exists()


def test_gold_cut_by_every_chunk_or_in_no_chunk_is_lost_at_chunks_stage(run: Run, tmp_path: Path) -> None:
    notes: list[str] = []
    strange = "Nobody in any tack has ever written a sentence about the tariffs of balloons over Vienna."
    middle = CLAUSES[0].index(" ", len(CLAUSES[0]) // 2)
    halved = CLAUSES[0][:middle], CLAUSES[0][middle:]
    done = run(chunks=write_chunks(tmp_path / "chunks.jsonl", *halved, *CLAUSES[1:3], strange), notes=notes)
    assert losses(done) == ["chunks", None, None, "chunks"]
    assert [stages["reason"] for stages in stages_in(done)] == ["cut", "", "", "in no chunk"]
    assert done.means["ceiling_chunks"].mean == 0.5
    assert any("1 of 5 chunks" in note for note in notes)


def test_chunks_are_compared_with_parsed_text_when_a_run_has_both(
    run: Run, tmp_path: Path, parsed_folder: Callable[..., Path]
) -> None:
    short = TEXT.replace(" of not less than twenty feet", "")
    chunks = write_chunks(tmp_path / "chunks.jsonl", *(part.strip() for part in short.split("\n\n")))
    done = run(parsed=parsed_folder(short), chunks=chunks)
    stages = stages_in(done)[2]
    assert 0.5 < stages["text"]["share"] < 1
    assert stages["chunks"]["share"] == 1.0  # the chunk has everything that the text has
    assert losses(done) == [None] * 4


def test_builtin_pipeline_reports_every_gold_stage(run: Run) -> None:
    done = run(None, preset="routed", reranker="legal")
    known = {stage for gold in stages_in(done) for stage in gold}
    assert {"page", "text", "chunks", "retrieved", "reranked", "context", "cited"} <= known
    for r in rows_of(done.folder / "ferry" / "eval_results.jsonl"):
        (gold,) = r["gold_stages"]
        assert ("answered" in gold) == (r["outcome"] in ("right", "wrong"))
        assert gold["text"] == {"share": 1.0}
        assert "before" in gold["reranked"]
    stages = ("text", "chunks", "retrieved", "reranked", "context")
    assert {f"ceiling_{stage}" for stage in stages} <= set(done.means)


def test_context_budget_is_named_as_reason_for_lost_gold(run: Run) -> None:
    common = {"preset": "naive", "chunk_size": 160, "embedder": "hashing:256"}
    lost = [stages for stages in stages_in(run(None, budget_tokens=40, **common)) if stages["lost_at"] == "context"]
    assert lost and {stages["reason"] for stages in lost} == {"cut by the token budget"}
    assert "context" not in losses(run(None, name="wide", budget_tokens=4000, **common))


def test_diff_reports_regression_when_a_stage_loses_more_gold(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    runs = {"before": rerank(1, 2, 3, 4), "after": rerank(1, 2)}
    folders = [str(run(function, name=name).folder) for name, function in runs.items()]
    assert results(["diff", *folders, "--fail-on-regression"]) == 1
    out = capsys.readouterr().out
    assert "ceiling_reranked" in out
    assert "reranked: gold lost for 0 questions of the first run, 2 of the second" in out
    assert results(["diff", *reversed(folders), "--fail-on-regression"]) == 0
