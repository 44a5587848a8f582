"""Score the replies to a dataset's questions, a few at a time, and write the dataset's result files."""

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from exhibit.engine import track
from exhibit.evaluation import outcomes, statistics
from exhibit.evaluation.cases import Case, Passage
from exhibit.evaluation.datasets import Dataset
from exhibit.evaluation.metrics import CEILING, Options, describe_metric, find_needing, limit_gold, measure
from exhibit.evaluation.metrics.retrieval import count_wrong_files, ranking_of
from exhibit.evaluation.runs import compute_breakdown, make_summary_json
from exhibit.evaluation.stages import FindPrepared, GoldStages, ceilings_of, find_first_loss, stages_of
from exhibit.evaluation.statistics import Table
from exhibit.law.names import FileNames
from exhibit.law.refusals import is_refusal
from exhibit.schemas import run as files
from exhibit.schemas.run_folder import RunFolder
from exhibit.storage.atomic import replace_file, write_whole

PREDICTIONS = "predictions.json"  # the first ten passages of each question, in the format that score.py reads
DIRECT = "direct_evaluation_results.json"  # of the third seed: a search server whose answers a language model writes
RUN, QRELS = "run.trec", "qrels.trec"  # the rankings for `ir_measures`, `ranx` and `trec_eval`
_QUOTED = 10  # the number of passages that are written with their text
BATCH = 64  # the number of cases that are scored, or judged, together


class Scored:
    """The scores of a dataset's replies; the replies themselves are not in memory."""

    def __init__(
        self, place: Path, dataset: Dataset, replied: Iterable[Case], options: Options, *, names: Sequence[str] = (),
        answers: bool = True, find_prepared: FindPrepared | None = None, repeats: "Sequence[Scored]" = (),
    ) -> None:  # fmt: skip
        """Score the replied cases with the metrics `names` or, if empty, with all metrics.

        `answers` is whether any reply has an answer. `find_prepared` searches the system's texts and chunks, if known.
        `repeats` are the scores of further replies to the same questions.
        """
        self.name, self.evidence = dataset.name, Evidence()
        self._rounds = (self, *repeats)
        self._place, self._dataset, self._options, self._names = place, dataset, options, names
        self._answers, self._find_prepared = answers, find_prepared
        self._values: dict[str, list[float | None]] = defaultdict(list)
        self._outcomes: list[files.Outcome] = []
        self._choices: list[outcomes.Chosen] = []
        self._known_stages = set[str]()
        self._confidences: list[float | None] = []
        # for each cutoff, the numbers of passages from wrong files, and of all passages whose file is known
        self._drm = {k: Counter[str]() for k in options.ks}
        place.mkdir(parents=True, exist_ok=True)
        self._rows: IO[bytes] = tempfile.TemporaryFile(dir=place)  # noqa: SIM115  (the rows, until `write` reads them)
        cases = iter(replied)
        batches = iter(lambda: list(islice(cases, BATCH)), [])
        for batch in track(batches, total=-(-len(dataset.cases) // BATCH), label=f"{dataset.name}: score", unit="part"):
            self._add(batch)

    def _add(self, cases: Sequence[Case]) -> None:
        columns = measure(cases, self._options, names=self._names)
        for name, column in columns.items():
            self._values[name] += column
        for case, mark in zip(cases, columns.get(outcomes.MARK) or [None] * len(cases), strict=True):
            finding = outcomes.find_outcome(case, mark=mark, answers=self._answers)
            stages = stages_of(case, self._find_prepared, finding.outcome)
            notes = self.evidence.add(case)
            self._rows.write(format_row(case, finding, stages, notes=notes, tag=self._place.parent.name))
            self._outcomes.append(finding.outcome)
            self._known_stages |= {key for gold in stages for key in gold}
            for name, left in ceilings_of(stages).items() if not self._names else ():
                self._values[name].append(left)
            self._confidences.append(None if case.reply.error else case.reply.confidence)
            if usable := limit_gold(case, describe_metric("drm").needs, self._options):
                for k, counts in self._drm.items():
                    wrong, known = count_wrong_files(usable, k)
                    counts.update(wrong=wrong, known=known)
        self._choices += outcomes.list_choices(cases)

    def table(self, say: Callable[[str], None]) -> Table:
        """Return the table of scores over all rounds; metrics that are not measured are reported to `say`."""
        first, *others = self._rounds
        return Table.of_rounds([first._make_table(say), *(other._make_table(lambda _: None) for other in others)])

    def _make_table(self, say: Callable[[str], None]) -> Table:
        cases, info, columns = self._dataset.cases, self._dataset.info, dict(self._values)
        # if no reply reports a stage, the share of gold after that stage is unknown
        known = {f"{CEILING}{stage}" for stage in self._known_stages}
        unknown = [name for name in columns if name.startswith(CEILING) and name not in known]
        failed = [outcome is files.Outcome.FAILED for outcome in self._outcomes]
        if not self.evidence.passages and not all(failed):
            if needing := [*find_needing(columns, "passages"), *find_needing(columns, "passage files")]:
                say(f"{self.name}: no reply has passages, so retrieval is not measured")
            unknown += needing
        columns |= {name: [None] * len(cases) for name in unknown}
        impossible = [case.is_impossible for case in cases]
        shares = outcomes.make_outcome_columns(self._outcomes, impossible) if self._answers else {}
        return Table(
            self.name, [case.id for case in cases], [case.document for case in cases], shares | columns | shares,
            failed, [case.labels for case in cases], info.groups if info else None, outcomes=self._outcomes,
        )  # fmt: skip

    def write(self, table: Table, *, failed: float | None) -> None:
        rows = [scored._rows for scored in self._rounds]
        for file in rows:
            file.seek(0)
        write_rows(self._place, zip(*rows, strict=True), table, failed=failed)
        kinds = compute_breakdown(table).items()
        breakdown = {kind: {value: make_summary_json(m) for value, m in groups.items()} for kind, groups in kinds}
        write_json(self._place / files.BREAKDOWN, breakdown)
        means = statistics.summarise_run([table])
        # also the share over all passages, and the mean over documents
        for k, counts in self._drm.items():
            if counts and (name := f"drm@{k}") in means:
                pooled = counts["wrong"] / counts["known"] if counts["known"] else None
                macro = statistics.compute_macro_mean(table.values[name], table.documents)
                means[name] = replace(means[name], pooled=pooled, macro=macro)
        write_json(self._place / files.EVIDENCE, {"lines": self.evidence.lines(self.name)})
        if self._choices:
            write_json(self._place / outcomes.LABELS, outcomes.describe_choices(self._choices))
        answerable = [not case.is_impossible for case in self._dataset.cases]
        if confidence := statistics.summarise_confidences(self._confidences, answerable, table.values):
            write_json(self._place / files.CONFIDENCE, confidence)
        write_json(self._place / files.SUMMARY, make_summary_json(means))


_MUCH = 0.1  # the run's last line mentions missing data when more than this share of the questions lacks it
_FOREIGN, _ADDED = "name files that the bundle lacks", "have words that their document lacks"
_WORDLESS = "have no words"


def _find_gaps_of_passage(passage: Passage) -> dict[str, bool]:
    """Return, for each possible gap in a passage's data, whether the passage has it."""
    name, worded = passage.told_filename, bool(passage.text.strip())
    named = [passage.filename] if passage.filename else passage.also_in
    lost = worded and passage.span is None and not passage.also_in
    return {
        _FOREIGN: bool(name) and not passage.misnamed and not FileNames(named).find_all(str(name)),
        "have no name": name == "" or (name is None and passage.filename is None),
        "have words that are in several files (ambiguous)": bool(passage.also_in),
        "name one document, but have the words of another": passage.misnamed,
        _ADDED: bool(passage.added),
        "have words that are in no document, or too few to be located": lost,
        _WORDLESS: not worded and not passage.also_in,
    }


def _find_gaps_of_question(case: Case) -> dict[str, bool]:
    passages, gold = case.reply.passages, () if case.is_impossible else case.gold
    ambiguous, absent = any(passage.ambiguous for passage in gold), any(passage.absent for passage in gold)
    unknown = bool(gold) and not ambiguous and not any(passage.worded for passage in gold)
    named = any(passage.filename for passage in passages)
    return {
        "a short gold passage has many occurrences, and is excluded from passage metrics": ambiguous,
        "no gold passage is located": unknown and absent,
        "the gold quotes no words: document and answer metrics only": unknown and not absent,
        "some gold is not located: passage metrics use the other gold": absent and not unknown,
        "the reply has no passages": not passages,
        "no passage has a known file": bool(passages) and not named,
        "no passage has words": named and not any(passage.text.strip() or passage.span for passage in passages),
        "the reply has no answer": case.reply.answer is None,
    }


class Evidence:
    """Counts the questions and the passages of a dataset that lack data, for the terminal and `evidence.json`."""

    def __init__(self) -> None:
        self.questions = self.passages = 0
        self._of_questions, self._of_passages = Counter[str](), Counter[str]()
        self._foreign = dict[str, None]()  # some file names that the bundle lacks

    def add(self, case: Case) -> list[str]:
        """Count what a question and its reply lack, and return it as notes; a failed reply is not counted."""
        if case.reply.error:
            return []
        gaps, counts, total = _find_gaps_of_question(case), Counter[str](), len(case.reply.passages)
        for passage in case.reply.passages:
            counts.update(lacks := _find_gaps_of_passage(passage))
            if lacks[_FOREIGN] and len(self._foreign) < 3:
                self._foreign[str(passage.told_filename)] = None
        self.questions += 1
        self.passages += total
        self._of_questions.update(gaps)
        self._of_passages.update(counts)
        notes = [words for words, lacking in gaps.items() if lacking]
        return notes + [f"{count:d} of {total} passages {words}" for words, count in counts.items() if count]

    def lines(self, name: str) -> list[str]:
        notes = []
        for words, count in self._of_passages.items():
            if count and words not in (_ADDED, _WORDLESS):
                examples = f": {', '.join(self._foreign)}" if words == _FOREIGN else ""
                notes.append(f"{name}: {count:,} of {self.passages:,} passages {words}{examples}")
        many = [(words, count) for words, count in self._of_questions.items() if count > _MUCH * self.questions]
        if much := [f"{words} ({count:,} of {self.questions:,} questions)" for words, count in many]:
            notes.append(f"{name}: questions without data are excluded from the means that need it: {'; '.join(much)}")
        return notes


def write_json(path: Path, content: Any) -> None:
    write_whole(path, json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def format_row(
    case: Case, finding: outcomes.Finding, stages: Sequence[GoldStages], *, notes: Sequence[str] = (), tag: str
) -> bytes:
    row: dict[str, Any] = {"trec": format_trec(case, tag=tag)}
    row |= {name: getattr(case, name) for name in ("id", "question", "truth", "is_impossible", "filename", "labels")}
    row["gold"] = [{name: getattr(gold, name) for name in files.RunGold.model_fields} for gold in case.gold]
    row |= {"reply": format_reply(case), "scores": {}, "outcome": finding.outcome, "reason": finding.reason}
    row |= {"supported": outcomes.find_support(case), "lost_at": find_first_loss(stages), "gold_stages": stages}
    return _encode({**row, "notes": notes})


def _encode(row: dict[str, Any]) -> bytes:
    """Return a row as a line of JSON; a lone surrogate, as in damaged PDFs, becomes a question mark."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n"


def format_trec(case: Case, *, tag: str) -> tuple[str, str]:
    """Return a question's lines for TREC's run and qrels files; percent-encoding removes the spaces from names."""
    known = limit_gold(case, describe_metric("ndcg").needs, Options())
    ranking = ranking_of(known) if known else None
    if ranking is None:
        return "", ""
    query, name, order = quote(str(case.id), safe=""), quote(tag, safe=""), list(enumerate(ranking.order, 1))
    # the score is derived from the rank, because the system's own scores may have ties
    run = (f"{query} Q0 {quote(unit, safe='')} {rank} {len(order) - rank + 1} {name}\n" for rank, unit in order)
    judged = (f"{query} 0 {quote(unit, safe='')} {grade}\n" for unit, grade in ranking.grades.items())
    return "".join(run), "".join(judged)


def write_rows(folder: Path, rows: Iterable[Sequence[bytes]], table: Table, *, failed: float | None = None) -> None:
    """Write a dataset's results, TREC files and predictions; `rows` has the rows of all replies to each question."""
    runs, qrels, predictions = list[str](), list[str](), list[str]()
    with replace_file(folder / files.RESULTS) as partial, partial.open("wb") as out:
        for number, texts in enumerate(rows):
            replies = [json.loads(text) for text in texts]
            # the first reply that is not an error is written completely
            fields = next((reply for reply in replies if not reply["reply"]["error"]), replies[0])
            error = fields["reply"]["error"]
            scores = {name: column[number] for name, column in table.values.items()}
            other = {name: failed for name in scores if error and name not in files.COUNTS_FAILED}
            fields["scores"] = scores | other
            if table.rounds:
                fields["repeats"] = [
                    {"outcome": reply["outcome"], "scores": {name: column[number] for name, column in columns.items()}}
                    | {name: reply["reply"][name] for name in ("answer", "seconds", "error")}
                    for reply, columns in zip(replies, table.rounds, strict=True)
                ]
            for written, lines in zip((runs, qrels), fields.pop("trec"), strict=True):
                written.append(lines)
            row = files.QUESTION.validate_json(json.dumps(fields), strict=True)
            out.write(files.QUESTION.dump_json(row, exclude_unset=True) + b"\n")
            if not row.reply.error:
                passages = [passage.text or "" for passage in row.reply.passages[:_QUOTED]]
                entry = {"query": row.question, "retrieved_passages": passages}
                predictions.append(f"\n{json.dumps(entry, ensure_ascii=False)}")
    write_whole(folder / PREDICTIONS, f"[{','.join(predictions)}\n]\n" if predictions else "[]\n")
    write_whole(folder / RUN, "".join(runs))
    write_whole(folder / QRELS, "".join(qrels))


def format_reply(case: Case) -> dict[str, Any]:
    """Return a case's reply in the form of a run's files; only the first passages and the used passages have text."""
    reply, read = case.reply, frozenset(case.reply.context or ())
    passages = [_format_passage(p, quoted=rank <= _QUOTED or rank in read) for rank, p in enumerate(reply.passages, 1)]
    refused = reply.answer is not None and is_refusal(reply.answer)
    # the ranks before the reranker are in the stages; the list itself would double the size of the row
    fields = {name: value for name, value in vars(reply).items() if name not in ("retrieved", "cut_by")}
    return {**fields, "refused": refused, "citations": outcomes.find_cited(case), "passages": passages}


def _format_passage(passage: Passage, *, quoted: bool) -> dict[str, Any]:
    row: dict[str, Any] = {name: getattr(passage, name) for name in ("filename", "span", "page", "score")}
    reported = ("also_in", "more", "added", "misnamed", "unplaced")
    row |= {name: value for name in reported if (value := getattr(passage, name))}
    row |= {"pages": passage.pages} if len(passage.pages) > 1 else {}
    row |= {"told_page": passage.told_page} if passage.told_page is not None else {}
    row |= {"told_filename": passage.told_filename} if passage.told_filename not in (None, passage.filename) else {}
    return {**row, "text": passage.text} if quoted else row


def write_evaltools(folder: Path) -> None:
    """Write the two files that the tool evaltools needs for its commands `summary` and `diff`."""
    run = RunFolder(folder)
    with replace_file(folder / files.RESULTS) as partial, partial.open("wb") as out:
        for row in run.rows:  # one row at a time: the text of all passages may not fit into memory
            out.write(_encode(_flatten_row(row)))
    given = run.config.model_dump(exclude_unset=True, exclude={"format", "version", "datasets", "measured", "target"})
    options = {key.removeprefix("target_"): value for key, value in given.items()}
    testdata = [dataset.path for dataset in run.config.datasets.values()]
    parameters: dict[str, Any] = {"evaluation_gpt_model": run.config.measured.judge, "testdata_path": testdata}
    parameters |= {"target_url": options.pop("url", run.config.target), "target_parameters": options}
    write_json(folder / "evaluate_parameters.json", parameters | {"num_questions": len(run.rows)})


def _flatten_row(row: files.RunQuestion) -> dict[str, Any]:
    """Return a row as the tool evaltools expects it: a column per metric, and any error message in `answer`."""
    error, passages = row.reply.error, row.reply.passages
    context = "\n\n".join(f"{passage.filename or '?'}: {passage.text}" for passage in passages if passage.text)
    fields: dict[str, Any] = {"question": row.question, "truth": row.truth, "answer": error or row.reply.answer or ""}
    fields |= {"context": error or context, "latency": -1 if error else row.reply.seconds, "dataset": row.dataset}
    return fields | {name: value for name, value in row.scores.items() if value is not None and not error}


def write_direct_results(folder: Path) -> None:
    """Write a run's questions with sources and scores, and the means by source type and by category."""
    rows = []
    for row in RunFolder(folder).rows:
        fields: dict[str, Any] = {"question": row.question, "truth": row.truth, "answer": row.reply.answer}
        fields |= {"error": row.reply.error or None, "sources": [passage.filename for passage in row.reply.passages]}
        fields |= {name: row.labels.get(name) for name in ("source_type", "category")}
        rows.append({**fields, "metrics": dict(row.scores)})
    groups: dict[str, dict[str, Any]] = {}
    for label in ("source_type", "category"):
        values = sorted({str(row[label]) for row in rows if row[label] is not None})
        groups[f"by_{label}"] = {v: _compute_means([row for row in rows if str(row[label]) == v]) for v in values}
    write_json(folder / DIRECT, {"overall": _compute_means(rows), **groups, "results": rows})


def _compute_means(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers of questions and of failed questions, and the mean of each metric over the other questions."""
    scores = [row["metrics"] for row in rows if not row["error"]]
    means = {name: statistics.compute_mean(row[name] for row in scores) for name in (scores[0] if scores else ())}
    return {"count": len(rows), "failed": len(rows) - len(scores), "metrics": means}
