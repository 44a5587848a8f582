"""Citations: the sources and the references that an answer cites, their form, and the terms that it uses."""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import PurePath

from exhibit.evaluation import metrics
from exhibit.evaluation.metrics import Case, Options, list_gold_files
from exhibit.evaluation.metrics.answers import find_cited_names, without_named
from exhibit.evaluation.outcomes import find_cited
from exhibit.law.citations import BRACKETED, find_citations
from exhibit.law.names import normalise_name, without_ending
from exhibit.law.references import credit, find_references
from exhibit.law.refusals import is_refusal

metric = partial(metrics.metric, group="Citations", needs=("answer",))
on_truth = partial(metric, needs=("answer", "truth"))


@on_truth("Expected rules cited", "rules and statutes of the expected answer that the answer also cites")
def statute_citation_accuracy(case: Case) -> float | None:
    # a coarser reference (Part 36 for rule 36.5) earns half
    cited = find_references(without_named(case.truth), context=case.question)
    expected = dict.fromkeys(reference for reference in cited if reference.kind != "case")
    given = find_references(case.reply.answer or "", context=case.question)
    credits = [max((credit(reference, other) for other in given), default=0.0) for reference in expected]
    return sum(credits) / len(credits) if credits else None


@on_truth("Expected cases cited", "cases of the expected answer that the answer also cites", short=False)
def case_law_citation_accuracy(case: Case) -> float | None:
    # year, court, division and number must all agree: [2024] EWHC 789 (Ch) is not [2024] EWHC 789 (Admin)
    expected = {reference for reference in find_references(case.truth) if reference.kind == "case"}
    given = find_references(case.reply.answer or "")
    return len(expected.intersection(given)) / len(expected) if expected else None


@metric(
    "References that exist", "references of the answer that occur in the corpus",
    needs=("answer", "corpus"), short=False,
)  # fmt: skip
def references_exist(case: Case, options: Options) -> float | None:
    given = set(find_references(case.reply.answer or "", context=case.question))
    return sum(map(options.in_corpus, given)) / len(given) if given and options.in_corpus else None


@metric(
    "References that exist officially", "references of the answer that exist on legislation.gov.uk or in Find Case Law",
    needs=("answer", "registers"), gate=False,  # a register may be unavailable, or have grown
)  # fmt: skip
def references_official(case: Case, options: Options) -> float | None:
    given = dict.fromkeys(find_references(case.reply.answer or "", context=case.question))
    outcomes = [options.officials.check(reference).outcome for reference in given] if options.officials else []
    decided = [outcome == "found" for outcome in outcomes if outcome in ("found", "absent")]
    return sum(decided) / len(decided) if decided else None


_DOCUMENT = re.compile(r".*\S#page=.*|.*\w\.(?:pdf|txt|html?|docx?|json|md)(?:#.*)?", re.IGNORECASE)


@metric("Answers with a citation", "answers that cite a source", short=False)
def any_citation(case: Case) -> float | None:
    """Return whether an answer cites anything in any form; a contract's placeholder (`[amount]`) is not a citation."""
    answer = case.reply.answer or ""
    if is_refusal(answer):
        return None
    files = {gold.filename for gold in case.gold} | {passage.filename for passage in case.reply.passages}
    names = {name.casefold() for file in files if file for name in _list_file_names(file)}
    brackets = (match.strip() for match in BRACKETED.findall(answer))
    documents = any(_DOCUMENT.fullmatch(text) or text.casefold() in names for text in brackets)
    return float(documents or bool(find_citations(answer)))


@on_truth("Expected sources cited", "share of the expected answer's sources that the answer cites", short=False)
def citations_matched(case: Case) -> float | None:
    # the expected sources are the gold files or, without gold files, the sources that the expected answer names
    named = [_normalise_both(name) for name in find_cited_names(case.truth)]
    files = [{*map(normalise_source, _list_file_names(file))} for file in sorted(list_gold_files(case))]
    expected = [files[0] | named[0]] if len(files) == len(named) == 1 else files or named
    given = {form for name in _list_cited(case) for form in _normalise_both(name)}
    return sum(bool(names & given) for names in expected) / len(expected) if expected else None


@on_truth("Sources matched by name", "similarity between the cited and the expected names")
def precedent_matching(case: Case, options: Options) -> float | None:
    given, named = _list_cited(case), find_cited_names(case.truth)
    files = list(dict.fromkeys(gold.filename for gold in case.gold if gold.filename))
    # if there are as many gold files as named sources, each file name is another name of the source at its position
    others = map(_list_file_names, files) if len(files) == len(named) else [()] * len(named)
    seed = options.parity == "seed"
    scores = [
        max((compare_sources(name, other, seed=seed) for name in (source, *aliases) for other in given), default=0.0)
        for source, aliases in zip(named, others, strict=True)
    ]
    return sum(scores) / len(scores) if scores else None


def _list_cited(case: Case) -> list[str]:
    """Return the sources that an answer cites by name, and the files of the passages that it cites by number."""
    files = (case.reply.passages[number - 1].filename for number in find_cited(case))
    names = [name for file in files if file for name in _list_file_names(file)]
    return find_cited_names(case.reply.answer or "") + names


def _list_file_names(file: str) -> tuple[str, ...]:
    return file, PurePath(file).stem


def _normalise_both(name: str) -> set[str]:
    return {normalise_source(name), normalise_source(name.partition("#page=")[0])}


_PAGES = re.compile(r"(?<!\s)\s*\(pp?\.\s*+[\d\s,–-]+\)\s*$")
CONTAINED = 0.95  # the similarity of two names where one contains the other
_SHARED = 0.9  # the similarity of two names with the same words in another order; with fewer common words it is lower
_SEED = 0.75  # the similarity of names of the same topic in the seed project; also its minimum for a common word
_TOPICS = (("hearings", "open justice", "media"), ("disclosure", "documents", "inspection"))  # of the seed project
_JOINING_WORDS = frozenset("the of in and a to for on about by or at p pp".split())


def normalise_source(name: str) -> str:
    """Return a source's name for comparison: without pages, file extension, case, accents and punctuation."""
    text = _PAGES.sub("", re.sub(r"#page=\d+$", "", name.strip()))
    return normalise_name(without_ending(text).replace("#page=", " # "))  # `PD 5#page=A Party` is not PD 5A


def compare_sources(expected: str, given: str, *, seed: bool = False) -> float:
    """Return the similarity of two source names: by containment or, without it, by the share of common words."""
    names = [normalise_source(expected).split(), normalise_source(given).split()]
    if [] in names:
        return 0.0
    short, long = sorted((f" {' '.join(words)} " for words in names), key=len)
    if short in long:
        return 1.0 if short == long else CONTAINED
    # if a name has only such words, all of them are compared
    first, second = (set(words) - _JOINING_WORDS or set(words) for words in names)
    shared = len(first & second) / len(first | second)
    if not seed:
        return _SHARED * shared
    same_topic = any(all(any(f" {term} " in name for term in topic) for name in (short, long)) for topic in _TOPICS)
    return _SEED + (_SHARED - _SEED) * shared if shared or same_topic else 0.0


_PINPOINT = re.compile(
    r"(\[(?:1[89]|20)\d\d\][^\[\]\n]{2,40}?)(?:,?\s*(?:at|paras?\.?|paragraphs?)\s*)(?:\[\d+\](?:\s*[-–—,;&]\s*|\s+and\s+)?)+"
)  # the paragraphs of a judgment in a citation: `[2024] EWCA Civ 123 at [45]-[48]`
_RANGE = re.compile(r"\[\d{1,3}\]\s*[-–—]\s*\[\d{1,3}\]")
_NUMBERS = r"\d{1,3}(?:\s{0,9},\s{0,9}\d{1,3}(?!\d)){1,99}(?:,?\s{0,9}(?:and|&)\s{0,9}\d{1,3})?"
_BARE = re.compile(
    rf"(?:(?<=[.!?…][)\"'”’ ])|(?<=[.!?…])|^)[^\S\n]{{0,9}}{_NUMBERS}[^\S\n]{{0,9}}\.?[^\S\n]{{0,9}}(?=$|\s[A-Z])",
    re.MULTILINE,
)
_LIST_NUMBER = re.compile(r"^[^\S\n]*\d{1,3}[.)]\s", re.MULTILINE)


@metric("Citations well formed", "share of the answer's citations that are well formed", short=False)
def citation_format_compliance(case: Case) -> float | None:
    text, ranges = _RANGE.subn(" ", _PINPOINT.sub(r"\1", case.reply.answer or ""))
    documents = sum(bool(_DOCUMENT.fullmatch(name)) for name in BRACKETED.findall(text))
    cited, bare = find_citations(text), len(_BARE.findall(_LIST_NUMBER.sub("", text)))
    good, count = documents + sum(citation.well_formed for citation in cited), documents + len(cited) + ranges + bare
    return good / count if count else None


PENALTY = 0.5  # the factor by which each different US term reduces the score
_UK = (
    "claimants?", "defendants?", "solicitors?", "barristers?", "counsel", "judgments?", "disclosure",
    "part 36 offers?", "qocs|qualified one-way costs shifting", "claim forms?", "particulars of claim",
    "statements? of case", "defences?", "statements? of truth", "witness statements?", "witness summons(?:es)?",
    "acknowledge?ment of service", "application notices?", "skeleton arguments?", "litigation friends?",
    "litigants? in person", "costs budgets?|costs budgeting", "costs management", "summary assessment",
    "detailed assessment", "small claims track", "fast track", "intermediate track", "multi[- ]?track",
    "pre-action protocols?", r"practice directions?|pd ?\d\w*", "overriding objective", "pre-trial reviews?|ptr",
    "case management conferences?|cc?mc", "freezing (?:injunction|order)s?", "search orders?", "interim injunctions?",
    "without notice", "on notice", "in private", "permission to appeal", "group litigation orders?",
    "judicial review", "quashing orders?", "charging orders?", "attachment of earnings", "third party debt orders?",
    "district judges?", "masters?", "county court", "high court", "king's bench|queen's bench",
    "requests? for further information", "str(?:ike|ikes|uck|iking) out", "default judgments?", "summary judgments?",
)  # fmt: skip
_US = (
    "plaintiffs?", "attorneys?", "discovery", "judgements?", "interrogator(?:y|ies)", "subpoena(?:s|ed)?",
    "appellees?", "pro se", "guardians? ad litem", "ex parte", "in camera", "temporary restraining orders?",
    "class actions?", "defenses?", "trial briefs?",
    r"motions? (?:to|for) (?:dismiss|compel|strike|summary|default|reconsider\w*|sanctions|a new)"
    r"|(?:fil|mov)\w+ a motion",
    r"(?:fil|serv)\w+ (?:a|the|its|his|her|their) complaint", "bench trials?", "writs? of certiorari",
    "court docket|docket number",
)  # fmt: skip
_ALSO_ENGLISH = re.compile(
    r"""\bpowers?\s+of\s+attorney|\battorneys?\s+under\s+(?:a|an|the)\s+(?:lasting\s+|enduring\s+)?power
    |\battorneys?(?:[-\s]+general)\b|\b(?:patent|trade\s*mark)\s+attorneys?
    |\bdiscovery\s+of\s+(?:the\s+|a\s+|any\s+)?(?:relevant\s+)?(?:fraud|concealment|mistake|damage|error|breach|facts?|defect|harm)
    |\b(?:date|time)\s+of\s+(?:the\s+)?discovery|\b(?:value|moral|professional|business|commercial)\s+judgements?""",
    re.VERBOSE | re.IGNORECASE,
)  # uses of US terms that are also English
_QUOTED = re.compile(
    # a quotation has a limited length, because a quotation mark may be unclosed
    r"“[^”]{0,400}”|\"[^\"\n]{0,400}\"|(?<!\w)‘[^‘’\n]{0,400}(?:’\w[^‘’\n]{0,400}){0,9}’(?!\w)|"
    r"(?<!\w)'[^'\n]{0,400}(?:'\w[^'\n]{0,400}){0,9}'(?!\w)|^>.*$",
    re.M,
)
_NAME_AFTER = re.compile(r"\s+(?:&\s+)?[A-Z][\w'’]+")
_NAME_BEFORE = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-Z][\w.'’]+\s+$")
_ROLES = frozenset({"plaintiff", "plaintiffs", "appellee", "appellees"})  # US terms even beside a name
_CASE_NAME = re.compile(r"\b(?:R|Re|[A-Z]\w+)\s+(?:v\.?\s+|\([^)]{0,40}+\)?)[^.;]{0,60}\bex\s+p(?:arte|\.)?\s+[A-Z]")


def _compile_terms(terms: Iterable[str]) -> dict[str, re.Pattern[str]]:
    spaced = {term: re.sub(r" (?![?\]])", r"\\s+", term) for term in terms}  # a term may be on two lines
    return {term: re.compile(rf"(?<![\w-])(?:{form})(?![\w-])", re.IGNORECASE) for term, form in spaced.items()}


_UK_TERMS, _US_TERMS, _SEED_TERMS = map(_compile_terms, (_UK, _US, (*_US, "lawyers?", "settlement offers?")))


@on_truth("Terminology", "share of the expected UK terms that the answer has, reduced for each US term", short=False)
def legal_terminology_accuracy(case: Case, options: Options) -> float | None:
    terms = _SEED_TERMS if options.parity == "seed" else _US_TERMS
    expected, answer = find_uk_terms(case.truth), case.reply.answer or ""
    if not expected:
        return None
    share = len(expected & find_uk_terms(answer)) / len(expected)
    return float(share * PENALTY ** len(find_us_terms(answer, terms) - find_us_terms(case.truth, terms)))


def find_uk_terms(text: str) -> set[str]:
    straight = text.replace("’", "'")
    return {term for term, pattern in _UK_TERMS.items() if pattern.search(straight)}


def find_us_terms(text: str, terms: Mapping[str, re.Pattern[str]] = _US_TERMS) -> set[str]:
    """Return the US terms that a text uses, except in quotations and names."""
    text = _CASE_NAME.sub(" ", _ALSO_ENGLISH.sub(" ", _QUOTED.sub(" ", text)))
    matches = {term: pattern.finditer(text) for term, pattern in terms.items()}
    return {term for term, found in matches.items() if any(not _is_name(text, match) for match in found)}


def _is_name(text: str, match: re.Match[str]) -> bool:
    """Return whether a capitalised term is next to another capitalised word, as in a name."""
    if not match.group()[0].isupper() or match.group().lower() in _ROLES:
        return False
    before = text[max(0, match.start() - 40) : match.start()]
    article = re.search(r"\b(?:The|An?|Any|Each|Under|In|Pre-trial)\s+$", before)
    return bool(_NAME_AFTER.match(text, match.end()) or (_NAME_BEFORE.search(before) and not article))
