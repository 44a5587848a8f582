"""Count the data that questions and replies lack, for the terminal, the report and `evidence.json`.

A metric is None if its data is missing; this module reports the missing data.
"""

from collections import Counter

from exhibit.evaluation.cases import Case, Passage
from exhibit.evidence.place import MIN_SHARED_LETTERS, letters_of
from exhibit.law.names import FileNames

_EXAMPLES = 3  # example names: enough to recognise their form
_MUCH = 0.1
"""The run's last line mentions missing data when more than this share of the questions lacks it."""

PASSAGES = {
    "foreign": "name files that the bundle lacks",
    "nameless": "have no name",
    "ambiguous": "have words that are in several files (ambiguous)",
    "misnamed": "have words of another document than the one that they name",
    "added": "have words besides those of their document",
    "few": "have too few words to be located",
    "nowhere": "have words that are in no document",
    "wordless": "have no words",
}
"""What a passage may lack."""
QUESTIONS = {
    "gold": "no gold passage is located",
    "some gold": "some gold is not located: passage metrics use the other gold",
    "ambiguous gold": "gold of few words has many occurrences, and counts in no passage metric",
    "quote": "no words are quoted: document and answer metrics only",
    "passages": "the reply has no passages",
    "file": "the file of no passage is known",
    "words": "no passage has words",
    "answer": "the reply has no answer",
}
"""What a question or its reply may lack."""


def passage_lacks(passage: Passage) -> list[str]:
    """Return the keys of `PASSAGES` (kinds of missing data) that apply to a passage."""
    name, worded = passage.told_filename, bool(passage.text.strip())
    files = [passage.filename] if passage.filename else passage.also_in
    lost = worded and passage.span is None and not passage.also_in
    few = lost and passage.unplaced and len(letters_of(passage.text).text) < MIN_SHARED_LETTERS
    lacks = {
        "foreign": bool(name) and not passage.misnamed and not FileNames(files).find_all(str(name)),
        "nameless": name == "" or (name is None and passage.filename is None),
        "ambiguous": bool(passage.also_in),
        "misnamed": passage.misnamed,
        "added": bool(passage.added),
        "few": few,
        "nowhere": lost and not few,
        "wordless": not worded and not passage.also_in,
    }
    return [kind for kind, lacking in lacks.items() if lacking]


def question_lacks(case: Case) -> list[str]:
    """Return the kinds of data that an answered question or its reply lacks, as keys of `QUESTIONS`."""
    passages, gold = case.reply.passages, () if case.is_impossible else case.gold
    ambiguous, absent = any(passage.ambiguous for passage in gold), any(passage.absent for passage in gold)
    unknown = bool(gold) and not ambiguous and not any(passage.worded for passage in gold)
    named = any(passage.filename for passage in passages)
    lacks = {
        "ambiguous gold": ambiguous,
        "gold": unknown and absent,
        "quote": unknown and not absent,
        "some gold": absent and not unknown,
        "passages": not passages,
        "file": bool(passages) and not named,
        "words": named and not any(passage.text.strip() or passage.span for passage in passages),
        "answer": case.reply.answer is None,
    }
    return [kind for kind, lacking in lacks.items() if lacking]


class Evidence:
    """Counts the questions and the passages of a dataset that lack data, by the kind of data."""

    def __init__(self) -> None:
        self.questions = self.passages = 0
        self._counts = Counter[str]()
        self._examples = dict[str, None]()
        """Some file names that the bundle does not have."""

    def add(self, case: Case) -> list[str]:
        """Count what a question and its reply lack, and return it as notes; a failed reply is not counted."""
        if case.reply.error:
            return []
        lacks = question_lacks(case)
        counts, total = Counter[str](), len(case.reply.passages)
        for passage in case.reply.passages:
            kinds = passage_lacks(passage)
            counts.update(kinds)
            if "foreign" in kinds and len(self._examples) < _EXAMPLES:
                self._examples[str(passage.told_filename)] = None
        self.questions += 1
        self.passages += total
        self._counts.update([*lacks, *counts.elements()])
        passages = [f"{counts[kind]} of {total} passages {words}" for kind, words in PASSAGES.items() if counts[kind]]
        return [*(QUESTIONS[kind] for kind in lacks), *passages]

    def lines(self, name: str) -> list[str]:
        """Return a line for each kind of data that passages lack, and a line on what over 10% of the questions lack."""
        kinds = [kind for kind in PASSAGES if self._counts[kind] and kind not in ("added", "wordless")]
        notes = [f"{name}: {self._counts[kind]:,} of {self.passages:,} passages {PASSAGES[kind]}" for kind in kinds]
        if self._counts["foreign"]:
            notes[0] += f": {', '.join(self._examples)}"
        much = [
            f"{words} ({self._counts[kind]:,} of {self.questions:,} questions)"
            for kind, words in QUESTIONS.items()
            if self._counts[kind] > _MUCH * self.questions
        ]
        if much:
            notes.append(f"{name}: questions with missing data are excluded from every mean: {'; '.join(much)}")
        return notes
