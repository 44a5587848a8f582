"""PrivacyQA: users' questions about the privacy policies of apps, with the sentences that experts marked relevant.

exhibit convert privacyqa --source PrivacyQA_EMNLP/data --out datasets_out/privacyqa
"""

import itertools
import re
import sys
from argparse import Namespace
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from exhibit.converters import Benchmark, Block, DatasetInfo, Download, Licence, Quote, RawDocument, RawRow, Tally
from exhibit.converters.core.source import Release
from exhibit.converters.core.titles import choose_unique_titles
from exhibit.evidence import Span
from exhibit.schemas.errors import SourceError

_FILES = "https://media.githubusercontent.com/media/AbhilashaRavichander/PrivacyQA_EMNLP"

INFO = DatasetInfo(
    name="privacyqa",
    title="PrivacyQA as PDF",
    benchmark="PrivacyQA",
    summary="""Questions that users ask about the privacy policies of mobile apps, in their own words; some have
    no answer in any policy. Experts with legal training marked the sentences that answer.""",
    expects="policy_train_data.csv and policy_test_data.csv (or one of them), tab-separated",
    licence=Licence(id="mit", name="MIT", url="https://opensource.org/license/mit", redistributable=True),
    url="https://github.com/AbhilashaRavichander/PrivacyQA_EMNLP",
    version="EMNLP 2019",
    citation="""@inproceedings{ravichander-etal-2019-question,
  title = {Question Answering for Privacy Policies: Combining Computational and Legal Perspectives},
  author = {Ravichander, Abhilasha and Black, Alan W and Wilson, Shomir and Norton, Thomas and Sadeh, Norman},
  booktitle = {EMNLP-IJCNLP},
  year = {2019},
  pages = {4949--4959},
  doi = {10.18653/v1/D19-1500}
}""",
    downloads=(
        Download(
            f"{_FILES}/3b66816de3e2d116bbd743c5545d449f1dcc298c/policy_train_data.csv",
            "81aa674452fc822a49d7d96aead91fc85199ec99b6a56c7a862bb9deb02f004a",
            62_602_240,
        ),
        Download(
            f"{_FILES}/909da99c1f95f74b7c0830d411caee8fa452c38a/data/policy_test_data.csv",
            "afae1bb7a6b9d728b6633603821f2036569827de89ef468088ee4b70870eaaa2",
            22_409_449,
        ),
    ),
    headline="recall@10",
    tags=("legal", "privacy", "privacyqa"),
    annotations=("expert-generated",),
    accepts=(".csv", ".tsv"),
    derived="privacyqa",
    splits=("train", "test"),
    questions="""Each question is as a user asked it, in the form "Consider the {title}; {question}". The title is
        made of the app's name in the source's DocID, and, if needed, the app's package.""",
    limits="""
        - Each policy is printed with one sentence per line, unlike the page that users saw.
        - In the test set a sentence is gold if at least half of the annotators who answered call it relevant; a
          question is left out if more than two of the six did not answer. The training set has one mark per sentence.
        - A question without a relevant sentence counts as impossible.""",
)

TRAIN_QUESTIONS = 1_350  # questions in the release's training set; the ids of the test set begin here
_COLUMNS = ("DocID", "QueryID", "SentID", "Query", "Segment")
_UNSAFE = re.compile(r'[\x00-\x1f\x7f/\\:*?"<>|]')
_NUMBERED = re.compile(r"(.*?)(?<!\s)\s*_(\d+)")


class _Policy(NamedTuple):
    split: str
    key: str
    folder: str
    sentences: dict[str, str]
    questions: dict[str, tuple[int, str]]  # their ids and texts
    votes: dict[str, dict[str, Counter[str]]]  # the annotators' votes by question and sentence


def read(source: Path, options: Namespace, tally: Tally) -> Benchmark:  # noqa: ARG001
    """Read the tables, rebuild each policy from its sentences, and derive the gold from the annotators' marks."""
    release = Release(source, INFO)
    names = [f"policy_{split}_data.csv" for split in INFO.splits]
    tables = [source] if source.is_file() else [release.find(name) for name in names if any(source.rglob(name))]
    if len(tables) == 1:
        tally.note("half of the release: the other table is missing", tables[0].name)
    policies: list[_Policy] = []
    for path in tables or [release.find(names[0])]:
        rows = release.read_csv(path, _COLUMNS, delimiter="\t")
        marks = [name for name in rows[0] if re.fullmatch(r"Ann\d+", name)]
        split = "test" if marks else "train"
        if not marks and "Label" not in rows[0]:
            raise SourceError(f"{path}: no column 'Ann1' … 'Ann6' (test) or 'Label' (train); is it from PrivacyQA?")
        count = sum(len(policy.questions) for policy in policies)
        policies += _read_policies(rows, marks or ["Label"], split, count)
    candidates = {f"{policy.key}, {policy.split}": list(_list_names(policy)) for policy in policies}
    titles = choose_unique_titles(candidates)
    stems = choose_unique_titles({key: [_UNSAFE.sub("_", name) for name in names] for key, names in candidates.items()})
    benchmark = Benchmark([], [], release.sha256)
    for policy, title, stem in zip(policies, titles.values(), stems.values(), strict=True):
        document, spans = _make_document(policy, title, stem)
        benchmark.documents.append(document)
        benchmark.rows.extend(_make_rows(policy, document, spans, tally))
    return benchmark


def _read_policies(rows: list[dict[str, str]], marks: Sequence[str], split: str, first_number: int) -> list[_Policy]:
    """Group the rows of a table by policy and question, and number the questions in order of appearance."""
    policies: dict[str, _Policy] = {}
    # without the training set, test questions keep their ids from the whole release
    numbers = itertools.count(max(TRAIN_QUESTIONS, first_number) if split == "test" else first_number)
    for row in rows:
        key = row["DocID"].strip()
        policy = policies.setdefault(key, _Policy(split, key, row.get("Folder", ""), {}, {}, defaultdict(dict)))
        query, sentence = row["QueryID"].strip(), row["SentID"].strip()
        if query not in policy.questions:
            policy.questions[query] = next(numbers), " ".join(row["Query"].split())
        policy.sentences.setdefault(sentence, row["Segment"].strip())
        policy.votes[query].setdefault(sentence, Counter(row[mark].strip().casefold() for mark in marks))
    return list(policies.values())


def _list_names(policy: _Policy) -> Iterator[str]:
    """Yield candidate names of a policy, from the app's name (`Fiverr` for `Fiverr _1`) to the most precise."""
    numbered = _NUMBERED.fullmatch(policy.key)
    name = " ".join((numbered[1] if numbered else policy.key).split()) or policy.key
    yield name
    parts = [part for part in re.split(r"[/\\]", policy.folder) if part not in ("", ".", "..", "policies")]
    if parts:
        yield f"{name} ({parts[-1]})"
    yield f"{name} ({policy.split} {numbered[2]})" if numbered else f"{name} ({policy.split})"


def _make_document(policy: _Policy, name: str, stem: str) -> tuple[RawDocument, dict[str, Span]]:
    """Return a policy as text, with its title on top and one sentence per line, and the span of each sentence."""
    title = name if name.casefold().endswith("privacy policy") else f"{name} privacy policy"
    text = f"{title}\n"
    spans: dict[str, Span] = {}
    # sort by the number at the end of the sentence id, `_10` after `_9`; ids without a number come last
    numbers = {key: int(match[2]) for key in policy.sentences if (match := _NUMBERED.fullmatch(key))}
    for key in sorted(policy.sentences, key=lambda key: numbers.get(key, sys.maxsize)):
        if words := policy.sentences[key]:
            spans[key] = Span(len(text) + 1, len(text) + 1 + len(words))
            text += f"\n{words}"
    blocks = (Block("h1", title), Block("p", text.removeprefix(title).lstrip("\n")))
    return RawDocument(f"{stem}.pdf", title, text=text, blocks=blocks), spans


def _make_rows(policy: _Policy, document: RawDocument, spans: dict[str, Span], tally: Tally) -> Iterator[RawRow]:
    for key, (id, question) in policy.questions.items():
        name, votes = f"{policy.key}: question {key}", policy.votes[key]
        answered = {sentence: count["relevant"] + count["irrelevant"] for sentence, count in votes.items()}
        if any(not known or votes[sentence].total() - known > 2 for sentence, known in answered.items()):
            tally.leave_out("a sentence that more than 2 annotators left blank, or that none marked", name)
            continue
        quotes = []
        for sentence, span in spans.items():
            relevant = votes[sentence]["relevant"] if sentence in votes else 0
            if relevant and 2 * relevant >= answered[sentence]:
                labels = (("sentence", sentence), ("relevant", relevant), ("annotators", answered[sentence]))
                quotes.append(Quote(document.filename, policy.sentences[sentence], (span,), labels))
        words, filename = f"Consider the {document.title}; {question}", document.filename
        answer = " ".join(quote.text or "" for quote in quotes)
        stated = {"split": policy.split, "policy": policy.key, "query": key}
        yield RawRow(id, words, answer, tuple(quotes), filename, not quotes, stated, place=name)
