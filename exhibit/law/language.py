"""The words of a text, and legal systems as data: the names, numbers and order of the parts of a law."""

import os
import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from exhibit.schemas.errors import ToolkitError

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_RUN = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_TYPED = str.maketrans("’‘ʼ“”•–—§…®©\xa0", "'''\"\";       ")
PART = "#"  # the mark before a part of a word, which distinguishes the part from a whole word
# Stop words: of English, of legal drafting, and of phrases that introduce the claims of an answer.
_STOP = frozenset(
    """
a about above according after again against all also am an and any are as at be because been before being below
between both but by can cannot could consider did do does doing done during each either else every for from further
had has have having he her here hers him his how however i if in into is it its itself just like may me might more
most must my neither no nor not of off on one only or other others our out over own per please said same shall she
should so some such than that the their them then there these they this those through thus to too under until up upon
us very was we were what when where whether which while who whom whose why will with within without would yes yet you
your forth foregoing hereby herein hereof hereto hereunder hereinafter notwithstanding pursuant set thereby therein
thereof thereto thereunder whereas wherein accordance answer context document documents found says source sources
state stated states provide provided provides
""".split()
)
_ENDINGS = frozenset(
    """
ifications ification ifying ified ifies ify ations ation ating ators ator ated ates ate itions ition itive ivity ively
ives ive ments ment ions ion ings ing ities ity ably able ibly ible ances ance ences ence ants ant ents ent ures ure
als al ers er ors or edly ed ies ied ly es s e y
""".split()
)
_LENGTHS = sorted({len(ending) for ending in _ENDINGS}, reverse=True)  # a word has at most one ending of each length
# endings that may leave a stem of three letters; other endings leave at least four
_SHORT_ENDINGS = frozenset({"s", "es", "e", "ed", "ing"})


def make_word_pattern(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    word = word.lower().removesuffix("'s")
    for length in () if word.endswith("ss") else _LENGTHS:
        left = len(word) - length
        if left >= 3 and (ending := word[left:]) in _ENDINGS and (left > 3 or ending in _SHORT_ENDINGS):
            word = word[:left]
            break
    bare = word.rstrip("e")  # one stem for agree, agreed and agreement
    return bare if len(bare) >= 3 else word


@lru_cache(maxsize=4096)  # cached, because many questions are compared with the same sentences
def list_content_words(text: str) -> tuple[str, ...]:
    return tuple(stem(word) for word in list_written_words(text) if is_content(word))


def list_written_words(text: str) -> list[str]:
    """Return every word in lower case, in order, with repetitions and stop words; numbers are left out."""
    return _WORD.findall(replace_typography(unicodedata.normalize("NFKC", text)).lower())


def replace_typography(text: str) -> str:
    """Return a text with ASCII quotation marks, and with spaces for dashes and similar signs; words do not change."""
    return text.translate(_TYPED)


def is_content(word: str) -> bool:
    return len(word) > 1 and word not in _STOP


def list_numbers(text: str) -> list[str]:
    return _NUMBER.findall(text)


def search_terms(text: str) -> list[str]:
    return [*list_content_words(text), *list_numbers(text)]


def list_word_parts(text: str) -> list[str]:
    """Return all substrings of four letters (4-grams) of the content words, each with `#` in front."""
    words = [word for word in list_written_words(text) if is_content(word)]
    folded = [word if word.isascii() else strip_accents(word.replace("ß", "ss")) for word in words]
    return [PART + word[at : at + 4] for word in folded for at in range(len(word) - 3)]


def strip_accents(text: str) -> str:
    """Return a text without accents, with its characters decomposed (NFKD)."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def list_word_runs(text: str) -> list[str]:
    """Return every run of letters and digits in order, as written; `don't` gives two runs."""
    return _RUN.findall(text)


FREE = 3.001  # the rank of a part whose level differs from law to law
FOLDER = Path(__file__).with_name("systems")
_DIGITS = (
    r"(?:[LRD]\.? ?)?\d{1,4}(?:[-.]\d{1,4})*(?:[ -]?(?:bis|ter|quater))?(?:\.?[ºª°]|er(?!\w)|o(?!\w))?"
    r"(?:-?[A-Za-z]{1,2})?(?![\w%])"
)
_PART_NUMBER = rf"{_DIGITS}|[IVXLC]+(?:er)?(?!\w)|[A-Z](?!\w)"
"""The default numbering of the parts of laws: 5, 5a, 103-B, 5º, 1er, L. 121-1, IV, A."""


@dataclass(frozen=True)
class Level:
    kind: str
    rank: float
    words: tuple[str, ...]
    unit: bool = False  # whether references cite laws by this part, as by an article or a §
    text: bool = False  # whether the part's words may follow its number on the same line, `Art. 5º Todos são iguais …`
    free: bool = False  # whether the part's level differs from law to law
    alone: bool = False  # whether a heading of this part may be in capitals, without a number
    # whether a Roman number without a word is a label, before a full stop or (if `text` is set) a dash
    roman: bool = False


@dataclass(frozen=True, eq=False)
class LegalSystem:
    name: str
    language: str
    levels: tuple[Level, ...]
    ordinals: Mapping[str, int]
    refers: tuple[str, ...]  # words that make a number after them a reference; includes stop words
    follows: tuple[str, ...]  # capitalised words after a number that show that it is a reference
    number: str = _PART_NUMBER
    country: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)  # the whole content of the file, for other modules

    @cached_property
    def by_word(self) -> dict[str, Level]:
        """A mapping from each word for a part of a law, such as `article`, to its level; words are in lower case."""
        pairs = [(word, level) for level in self.levels for word in level.words]
        return dict(sorted(pairs, key=lambda pair: -len(pair[0])))

    @cached_property
    def units(self) -> tuple[Level, ...]:
        """The levels by which references cite laws, such as § or article."""
        return tuple(level for level in self.levels if level.unit)

    @cached_property
    def glue(self) -> frozenset[str]:
        """Stop words of the language, such as `und` in German."""
        return frozenset(word for word in self.refers if word.isalpha() and word not in self.by_word)

    @cached_property
    def small(self) -> frozenset[str]:
        """Stop words that are common in questions, such as `wann` in German; `glue` has the other stop words."""
        return frozenset(self.data.get("small", "").split())

    @cached_property
    def label(self) -> re.Pattern[str]:
        """The pattern for a heading's label at the start of a line: a word and a number, as in `Article 4`."""
        forms = "|".join(
            re.escape(form)
            for word in self.by_word
            for form in dict.fromkeys((word.title(), word.upper(), word[:1].upper() + word[1:]))
        )
        ordinal = rf"(?i:{'|'.join(sorted(self.ordinals, key=len, reverse=True))})"
        if not self.units:
            return re.compile(
                rf"(?P<word>{forms})[ \xa0]*(?P<number>{self.number}|{ordinal}(?!\w)|)"
                r"(?P<mark>[ \xa0]?[.:)\-–—]{0,2})[ \xa0]*"
            )
        ordinals = rf"{ordinal}\w{{0,4}}(?:[ \xa0]{ordinal}\w{{0,4}})?(?!\w)"
        return re.compile(
            rf"(?:(?P<before>{ordinals}|\d{{1,3}}\.|[IVXLC]{{1,6}}\.?)[ \xa0]+)?(?P<word>{forms})(?!\w)[ \xa0]*"
            rf"(?P<number>{self.number}|{ordinals}|)(?P<mark>[ \xa0]?[.:)\-–—]{{0,3}})[ \xa0]*"
        )

    @cached_property
    def goes_on(self) -> re.Pattern[str]:
        """The pattern for the end of a line, such as a comma or `gemäß`, after which a reference continues."""
        return re.compile(
            rf"(?:(?<!\w)(?:{'|'.join(map(re.escape, self.refers))})|,)$", 0 if self.units else re.IGNORECASE
        )

    def parse_ordinal(self, words: str) -> int | None:
        total = None
        for word in words.lower().split():
            stem = max((stem for stem in self.ordinals if word.startswith(stem)), key=len, default=None)
            if stem is None or len(word) > len(stem) + 4:
                return None
            total = (total or 0) + self.ordinals[stem]
        return total


@cache
def load_systems() -> tuple[LegalSystem, ...]:
    user_folder = os.environ.get("EXHIBIT_SYSTEMS", "")
    paths = [*sorted(FOLDER.glob("*.toml")), *(sorted(Path(user_folder).glob("*.toml")) if user_folder else ())]
    return tuple({path.stem: read_system(path) for path in paths}.values())


def read_system(path: Path) -> LegalSystem:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        levels = tuple(
            Level(**{**level, "words": tuple(level["words"]), "rank": FREE if level.get("free") else level["rank"]})
            for level in data["levels"]
        )
        ordinals = {word: int(value) for word, value in (pair.split("=") for pair in data["ordinals"].split())}
        refers, follows = (tuple(data.get(key, "").split()) for key in ("refers", "follows"))
        optional = {key: data[key] for key in ("number", "country") if key in data}
        return LegalSystem(data["name"], data["language"], levels, ordinals, refers, follows, **optional, data=data)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        example = "see law/systems/english.toml for an example"
        raise ToolkitError(f"{path}: not a legal system: {error}; {example}") from error


def choose_system(language: str) -> LegalSystem:
    systems = {system.language: system for system in load_systems()}
    return systems.get(language, systems["en"])


@cache
def _load_identifier() -> Any:
    """Return py3langid's model, limited to the languages of the legal systems."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    known = LanguageIdentifier.from_model_file(MODEL_FILE)
    known.set_languages({system.language for system in load_systems()} & set(known.labels))
    return known


_MIN_WORDS = 2  # a single word is a name or a citation, `BGB § 433`


def language_of(text: str) -> str:
    words = re.findall(r"[^\W\d_]{2,}", text.lower())
    if len(words) < _MIN_WORDS:
        return "en"
    english = sum(not is_content(word) for word in words)
    others = (
        sum(word in system.glue or word in system.small for word in words) for system in load_systems() if system.units
    )
    # load the model, which takes 0.7 s, only if a question is not clearly English
    return "en" if english > 2 * max(1, *others) else str(_load_identifier().classify(text)[0])


def list_asked_terms(question: str) -> list[str]:
    """Return the distinct search terms of a question, with 4-letter parts of its words if it is not in English."""
    terms = search_terms(question)
    return sorted({*terms, *(list_word_parts(question) if language_of(question) != "en" else ())})


_MAX_CHARS, _MAX_LINES = 20_000, 4000  # the start of a text, which is enough to see its stop words and headings
_MAX_HEADING_CHARS = 120  # most characters of a line that is the heading of a part
_MIN_HEADINGS = 2  # fewest such lines that make a text a law


def system_of(text: str) -> LegalSystem:
    words = Counter(re.findall(r"[^\W\d_]+", text[:_MAX_CHARS].lower()))
    glue = {system.name: sum(words[word] for word in system.glue) for system in load_systems()}
    best = max(load_systems(), key=lambda system: (glue[system.name], system.language == "en"))
    if not best.units:
        return choose_system("en")
    lines = (line.strip() for line in text.split("\n", _MAX_LINES)[:_MAX_LINES])
    labels = (best.label.match(line) for line in lines if len(line) < _MAX_HEADING_CHARS)
    parts = (label for label in labels if label and (label["number"] or label["before"]))
    return best if len(list(islice(parts, _MIN_HEADINGS))) == _MIN_HEADINGS else choose_system("en")
