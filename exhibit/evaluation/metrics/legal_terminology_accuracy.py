"""Legal terminology accuracy: the share of the expected answer's UK terms that an answer uses.

The share is halved for each different US term in the answer. A term counts once, in the singular or plural.
A US term is ignored inside a quotation, in a name (the Attorney General, Discovery Holdings Ltd), in a use
that is also English (power of attorney, the discovery of a fraud), and if the expected answer has it as
well. The metric is None if the expected answer has no UK term. Parity "seed" also treats `lawyer` and
`settlement offer` as US terms, although English lawyers use them.
"""

import re
from collections.abc import Iterable, Mapping

from exhibit.evaluation.metrics import Case, Options, with_options
from exhibit.schemas.parsing import read_beside

Terms = Mapping[str, re.Pattern[str]]
PENALTY = 0.5
"""The factor by which each different US term reduces the score."""

_TOO = re.compile(
    r"""\bpowers?\s+of\s+attorney|\battorneys?\s+under\s+(?:a|an|the)\s+(?:lasting\s+|enduring\s+)?power
    |\battorneys?(?:[-\s]+general)\b|\b(?:patent|trade\s*mark)\s+attorneys?
    |\bdiscovery\s+of\s+(?:the\s+|a\s+|any\s+)?(?:relevant\s+)?(?:fraud|concealment|mistake|damage|error|breach|facts?|defect|harm)
    |\b(?:date|time)\s+of\s+(?:the\s+)?discovery|\b(?:value|moral|professional|business|commercial)\s+judgements?""",
    re.VERBOSE | re.IGNORECASE,
)
"""Uses of US terms that are also English."""
_QUOTED = re.compile(
    # bounded: a quotation mark that is never closed begins no quotation
    r"“[^”]{0,400}”|\"[^\"\n]{0,400}\"|(?<!\w)‘[^‘’\n]{0,400}(?:’\w[^‘’\n]{0,400}){0,9}’(?!\w)|"
    r"(?<!\w)'[^'\n]{0,400}(?:'\w[^'\n]{0,400}){0,9}'(?!\w)|^>.*$",
    re.M,
)
_NAME_AFTER = re.compile(r"\s+(?:&\s+)?[A-Z][\w'’]+")
_NAME_BEFORE = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w.'’]+\s+$")
_ROLES = frozenset({"plaintiff", "plaintiffs", "appellee", "appellees"})
"""Terms that are not part of a name: "Plaintiff Smith" is a fault."""
_CASE_NAME = re.compile(r"\b(?:R|Re|[A-Z]\w+)\s+(?:v\.?\s+|\([^)]{0,40}+\)?)[^.;]{0,60}\bex\s+p(?:arte|\.)?\s+[A-Z]")


def _compile_terms(terms: Iterable[str]) -> dict[str, re.Pattern[str]]:
    # the words of a term may be on two lines
    spaced = {term: re.sub(r" (?![?\]])", r"\\s+", term) for term in terms}
    return {term: re.compile(rf"(?<![\w-])(?:{form})(?![\w-])", re.IGNORECASE) for term, form in spaced.items()}


_TERMS = read_beside(__file__, "_terms.toml")
_UK_TERMS = _compile_terms(_TERMS["uk"])
_US_TERMS = _compile_terms(_TERMS["us"])
_SEED_TERMS = _US_TERMS | _compile_terms(_TERMS["us_in_the_seed"])


def _score(case: Case, options: Options) -> float | None:
    """Return the share of the expected answer's UK terms that are also in the reply, reduced by US terms.

    Each US term that is in the reply but not in the expected answer halves the share. The result is None if
    the expected answer has no UK term.
    """
    terms = _SEED_TERMS if options.parity == "seed" else _US_TERMS
    expected, answer = find_uk_terms(case.truth), case.reply.answer or ""
    if not expected:
        return None
    share = len(expected & find_uk_terms(answer)) / len(expected)
    return float(share * PENALTY ** len(find_us_terms(answer, terms) - find_us_terms(case.truth, terms)))


def find_uk_terms(text: str) -> set[str]:
    """Return the UK terms that a text uses."""
    straight = text.replace("’", "'")
    return {term for term, pattern in _UK_TERMS.items() if pattern.search(straight)}


def find_us_terms(text: str, terms: Terms = _US_TERMS) -> set[str]:
    """Return the US terms that a text uses, except in quotations and names."""
    own = _CASE_NAME.sub(" ", _TOO.sub(" ", _QUOTED.sub(" ", text)))
    return {term for term, pattern in terms.items() if any(not _is_name(own, match) for match in pattern.finditer(own))}


def _is_name(text: str, match: re.Match[str]) -> bool:
    """Return whether a capitalised term is next to another capitalised word, as in a name."""
    if not match.group()[0].isupper() or match.group().lower() in _ROLES:
        return False
    before = text[max(0, match.start() - 40) : match.start()]
    article = re.search(r"\b(?:The|An?|Any|Each|Under|In|Pre-trial)\s+$", before)
    return bool(_NAME_AFTER.match(text, match.end()) or (_NAME_BEFORE.search(before) and not article))


NAMES, measure = with_options(legal_terminology_accuracy=_score)
