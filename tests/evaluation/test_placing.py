"""Passages are located by parts: changes of format do not change metrics, changes of content do."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest

from exhibit.evaluation.cases import Case, GoldPassage, Passage, Reply
from exhibit.evaluation.metrics import measure
from exhibit.evaluation.placement import Documents
from exhibit.evaluation.scoring import Evidence
from exhibit.evidence import Document, Page, Span

RENT = "The Tenant shall pay a yearly rent of £48,000 in twelve equal instalments on the first day of each month."
REPAIR = "The Landlord shall keep the roof, the outer walls and the drains of the Mill in good and tenantable repair."
NOTICE = "Either party may end this Lease by six months' notice in writing, provided that no rent is in arrears."
LAW = "This Lease is governed by the law of Scotland, and the Sheriff Court at Perth decides disputes under it."
CLAUSES = (RENT, REPAIR, NOTICE, LAW)
FILLER = "The Tenant shall not {} without the written consent of the Landlord, which shall not be withheld."
DEEDS = ("sublet the Mill", "alter the wheel", "store petrol", "keep swans", "dam the lade", "fell the larches")


def lease(*clauses: str) -> str:
    """Return a lease with these clauses, numbered and separated by clauses on other matters."""
    lines = ["LEASE OF THE OLD MILL", *(FILLER.format(deed) for deed in DEEDS[:3])]
    for number, clause in enumerate(clauses, 1):
        lines += [f"{number}. {clause}", FILLER.format(DEEDS[2 + number % 4])]
    return "\n\n".join(lines)


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> Documents:
    folder = tmp_path_factory.mktemp("leases")
    texts = {"mill.txt": lease(*CLAUSES), "forge.txt": "FORGE\n\n" + "\n\n".join(f"{n}. The smith {w}." for n, w in (
        (1, "shoes every horse of the estate at Michaelmas and is paid for each in kind"),
        (2, "keeps the anvil, the bellows and all other tools of the forge at his own cost and risk"),
    ))}  # fmt: skip
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return Documents({name: folder / name for name in texts})


def gold_of(documents: Documents, words: str) -> GoldPassage:
    text = documents.get("mill.txt").text
    start = text.index(words)
    return GoldPassage("mill.txt", words, ((Span(start, start + len(words)),),))


def asked(documents: Documents, gold: str, *passages: Passage | str) -> Case:
    """Return a case on a clause whose reply has these passages, located in the documents."""
    golds = (gold_of(documents, gold),)
    given = [one if isinstance(one, Passage) else Passage(one, "mill.txt") for one in passages]
    reply = Reply("As the Lease says.", tuple(documents.place(one, golds) for one in given))
    return Case(0, "What does the lease say?", "As it says.", golds, filename="mill.txt", reply=reply)


FIGURES = ("char_recall@8", "char_precision@8", "recall@10", "ndcg@10", "mrr@10", "document_hit@1", "drm@1",
           "chunk_essential@10")  # fmt: skip


def figures(case: Case) -> dict[str, float | None]:
    return {name: column[0] for name, column in measure([case], names=FIGURES).items()}


FORMS = {
    "a sentence added before": lambda words: (
        f"This chunk is from a lease of a mill and deals with its money.\n\n{words}"
    ),
    "a summary added after": lambda words: f"{words}\n\nIn short: somebody owes somebody something, sooner or later.",
    "HTML": lambda words: "<p class='x'>" + html.escape(words).replace(" shall ", " <b>shall</b> ") + "</p>",
    "JSON": lambda words: json.dumps({"content": words, "score": 0.7312, "id": "chunk-000181"}),
    "Markdown": lambda words: "> **" + words.replace("Lease", "[Lease](https://leases.example/a?b=c)") + "**",
    "a heading added": lambda words: f"LEASE OF THE OLD MILL\n## Money\n{words}",
    "a line break after every word": lambda words: words.replace(" ", "\n"),
    "capitals": str.upper,
    "two OCR errors": lambda words: words.replace("shall", "sha1l", 1).replace("party", "pariy", 1),
    "zero-width marks": lambda words: words.replace("e", "e\u200b"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("clause", range(len(CLAUSES)))
def test_chunk_formatting_does_not_change_metrics(documents, form, clause):
    case = asked(documents, CLAUSES[clause], FORMS[form](CLAUSES[clause]))
    assert figures(case) == figures(asked(documents, CLAUSES[clause], CLAUSES[clause]))
    assert figures(case)["char_recall@8"] == figures(case)["char_precision@8"] == 1.0


def test_words_added_to_a_chunk_are_marked_and_reported(documents):
    case = asked(documents, RENT, FORMS["a sentence added before"](RENT))
    [passage] = case.reply.passages
    words = "This chunk is from a lease of a mill and deals with its money"
    assert [passage.text[start:end] for start, end in passage.added] == [words]
    assert "1 of 1 passages have words that their document lacks" in Evidence().add(case)


def test_joined_chunks_are_located_as_two_spans(documents):
    text = documents.get("mill.txt").text
    case = asked(documents, NOTICE, f"{RENT}\n\n{NOTICE}")
    [passage] = case.reply.passages
    assert sorted(text[slice(*span)] for span in passage.spans) == sorted([RENT, NOTICE])
    assert figures(case)["char_recall@8"] == 1.0
    assert figures(case)["char_precision@8"] == pytest.approx(len(NOTICE) / (len(NOTICE) + len(RENT)))
    assert figures(asked(documents, REPAIR, f"{RENT}\n\n{NOTICE}"))["char_recall@8"] == 0.0, "nothing between them"


def test_passage_with_wrong_file_name_is_assigned_to_its_real_document(documents):
    smith = "The smith keeps the anvil, the bellows and all other tools of the forge at his own cost and risk."
    case = asked(documents, RENT, Passage(smith, "mill.txt"))
    [passage] = case.reply.passages
    assert (passage.filename, passage.told_filename, passage.misnamed) == ("forge.txt", "mill.txt", True)
    assert figures(case)["document_hit@1"] == 0.0 and figures(case)["drm@1"] == 1.0
    assert "1 of 1 passages name one document, but have the words of another" in Evidence().add(case)
    right = asked(documents, RENT, Passage(RENT, "forge.txt"))
    assert figures(right)["document_hit@1"] == 1.0 and figures(right)["recall@10"] == 1.0


def test_metrics_ignore_text_that_no_document_contains(documents):
    own_words = "Rent is owed by whoever holds the mill, monthly, and comes to a good deal of money in a year."
    alone = asked(documents, RENT, own_words)
    assert {figures(alone)[name] for name in ("char_recall@8", "char_precision@8", "recall@10", "ndcg@10")} == {None}
    both = figures(asked(documents, RENT, own_words, RENT))
    assert both["char_recall@8"] == both["char_precision@8"] == both["recall@10"] == 1.0
    elsewhere = figures(asked(documents, RENT, Passage(own_words, "castle.txt")))
    assert elsewhere["char_recall@8"] == elsewhere["recall@10"] == 0.0, "a file that the corpus lacks is wrong"


def test_repeated_passages_and_gold_count_once(documents):
    once, thrice = asked(documents, RENT, RENT, REPAIR), asked(documents, RENT, RENT, RENT, RENT, REPAIR)
    assert figures(once) | {"chunk_essential@10": 0.75} == figures(thrice)
    half = asked(documents, RENT, RENT)
    golds = (gold_of(documents, RENT), gold_of(documents, REPAIR))
    several = replace(half, gold=(golds[0], *[golds[1]] * 3))
    lengths = len(RENT), len(REPAIR)
    assert figures(several)["recall@10"] == 0.5
    assert figures(several)["char_recall@8"] == pytest.approx(lengths[0] / sum(lengths))


def test_repeated_text_is_located_on_page_given_by_system(monkeypatch):
    words = "Each party shall keep the terms of this Lease secret for three years after its end."
    text, pages = "", []
    for number, matter in enumerate(("water", "grain", "rent"), 1):
        start = len(text)
        text += f"The part on the {matter} of the Mill.\n\n{words}\n\n"
        pages.append(Page(number, Span(start, len(text)), 595.0, 842.0))
    document = Document("parts.pdf", text, tuple(pages))
    shelf = Documents({"parts.pdf": Path("parts.pdf")})
    monkeypatch.setattr(shelf, "get", lambda name: document)
    assert shelf.place(Passage(words, "parts.pdf", told_page=3)).pages == (3,)
    assert shelf.place(Passage(words, "parts.pdf", told_page=9)).pages == (1,), (
        "a page without the words chooses nothing"
    )
